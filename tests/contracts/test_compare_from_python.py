"""The demo compared from Python, on the command line and on the page: one way, one result."""

import pandas as pd
import pytest
from helpers import ROOT
from study_factory import fresh_database
from typer.testing import CliRunner

import semsim
from annotation import formats
from annotation.formats import What
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study import exports
from annotation.study.create import create_study
from annotation.study.simulate import simulate
from semsim.base.stats.analysis import AnalysisSettings
from semsim.cli.main import app
from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.reporting.figures import figures
from semsim.ui import ScienceContext, StudyChoice
from semsim.ui.compare_data import ComparisonView, opened

SETS = sorted((ROOT / "data/demo/sets").iterdir())[:4]
OWN = ["semsim:demo", "semsim:demo.start", "semsim:demo.calibrated"]
METRICS = ["mse", "psnr", "ssim", *OWN]
FEW = AnalysisSettings(bootstraps=20, permutations=99)
WORDS = ("--bootstraps", 20, "--permutations", 99)


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A store with the demo's simulated study, its folder, and what the studio exports of it."""
    folder = tmp_path_factory.mktemp("study")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        spec = StudySpec(name="demo", task=Task.RECOGNITION, votes_per_item=5, simulated=True)
        made = create_study(store, spec, SETS, folder / "images")
        simulate(store, made.id)
        data = exports.read_study(store, made.id, folder / "images")
        for what in (What.VOTES, What.LABELS):
            formats.export(data, folder / f"{what.value}.parquet", what=what)
        yield store, made, folder


@pytest.fixture(scope="module")
def frames(study):
    _, _, folder = study
    return [pd.read_parquet(folder / f"{name}.parquet") for name in ("votes", "labels")]


@pytest.fixture(scope="module")
def scored(study, tmp_path_factory):
    """Scores as the command writes them, and what `compare` and `report` are asked with."""
    _, _, folder = study
    data = tmp_path_factory.mktemp("data")
    labels = ("--labels", folder / "labels.parquet")
    named = ("--metrics", ",".join(METRICS), "--cache-dir", data / "kept")
    run("score", *labels, *named, "--out", data / "scores.parquet")
    few = pd.read_parquet(data / "scores.parquet").query("metric == 'psnr'")
    few.to_parquet(data / "few.parquet")
    return data, lambda scores: (
        *(folder / "votes.parquet", data / f"{scores}.parquet", *labels, *WORDS),
        *("--data-dir", data),
    )


def test_python_prints_and_reports_what_the_command_does(frames, scored, tmp_path):
    votes, labels = frames
    data, asked = scored
    printed = run("compare", *asked("scores"))
    found = semsim.compare(votes, semsim.score(labels, METRICS), labels, settings=FEW, data=data)
    assert f"{found}\n" == printed
    assert "simulated" in printed.splitlines()[0].lower()
    assert "initial weights" in printed
    ours, theirs = tmp_path / "python.html", tmp_path / "command.html"
    run("report", *asked("few"), "--out", theirs)
    few = semsim.score(labels, ["psnr"])
    assert semsim.compare(votes, few, labels, settings=FEW, data=data).report(ours) == ours
    assert ours.read_bytes() == theirs.read_bytes()


def test_python_writes_the_files_that_the_command_writes(frames, scored, tmp_path, monkeypatch):
    monkeypatch.setattr("semsim.reporting.bundle.figures", lambda analysis: figures(analysis)[:2])
    votes, labels = frames
    data, asked = scored
    run("compare", *asked("few"), "--out", tmp_path / "command")
    few = semsim.score(labels, ["psnr"])
    semsim.compare(votes, few, labels, settings=FEW, data=data).write(tmp_path / "python")
    files = [path for path in sorted((tmp_path / "command").rglob("*")) if path.is_file()]
    assert len(files) > 20
    for path in files:
        twin = tmp_path / "python" / path.relative_to(tmp_path / "command")
        assert twin.read_bytes() == path.read_bytes(), path.name


def test_python_says_what_the_page_shows(study, frames, tmp_path):
    store, made, folder = study
    context = ScienceContext(
        data=tmp_path,
        checkpoints=ROOT / "checkpoints",
        studies=lambda: [StudyChoice(made.id, made.name, True)],
        labels=lambda one: exports.export_labels(store, one, folder / "images"),
        votes=lambda one: exports.export_votes(store, one),
        device="cpu",
    )
    resources = Resources(checkpoints=context.checkpoints, classifiers=())
    score_sets(pair_sets_of_labels(frames[1]), METRICS, resources, tmp_path / "scores")
    page = opened(context, ComparisonView(study=made.id, rule="")).analysis
    names = [spec.name for spec in page.specs]
    assert set(names) == set(METRICS)
    scores = semsim.score(frames[1], names, checkpoints=context.checkpoints)
    found = semsim.compare(frames[0], scores, frames[1], data=tmp_path).analysis
    assert found.settings == page.settings
    for name in ("agreement", "differences", "models", "auc", "rules", "matrix"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(page, name))


def test_votes_that_say_no_more_than_the_answer_give_the_same_ranking(frames):
    votes, labels = frames
    scores = semsim.score(labels, METRICS[:3])
    whole = semsim.compare(votes, scores, settings=FEW)
    least = votes[["model", "image_id", "annotator", "answer"]]
    found = semsim.compare(least, scores, labels, settings=FEW, headline=whole.origin.protocol)
    columns = ["metric", "n", "rho", "tau", "p_rho"]
    pd.testing.assert_frame_equal(found.agreement[columns], whole.agreement[columns])
