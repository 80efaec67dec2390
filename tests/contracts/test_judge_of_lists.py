"""Who ranked the words of a study's lists, and what the lists tell, in both halves.

They meet in files only: what the human study exports must be enough for `compare` to leave
the judge of the lists out, and to say what the page Compare says of the lists.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from made_weights import make_classifier
from study_factory import CLASSES, SURE, fresh_database, let_answer, of_convnet8, write_set
from typer.testing import CliRunner

from annotation import formats
from annotation.formats import What
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study import exports
from annotation.study.create import create_study
from semsim.cli.compare import compare, report
from semsim.cli.score import score
from semsim.importers.table import Table
from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.ui import ScienceContext, StudyChoice
from semsim.ui.compare_data import ComparisonView, opened
from semsim.weights import sha256_of

METRICS = ("mse", "recogniser:J", "recogniser:K", "fd:J", "fd:K")
REFUSED = ("Recognised by J", "Fréchet distance (J)")
FEW = ("--bootstraps", "20", "--permutations", "99")

app = typer.Typer()
for name, command in (("compare", compare), ("report", report), ("score", score)):
    app.command(name)(command)


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def judged_sets(folder: Path, sha256: str | None) -> list[Path]:
    """Two sets; the judge with `sha256` ranked the words, or nobody did."""
    sets = []
    for model in ("convnet8", "resnet20-4"):
        one = folder / "sets" / model
        write_set(one, model=model, probabilities=SURE if sha256 else None)
        facts = json.loads((one / "run.json").read_text())
        if sha256:
            facts["predictor"] = {"name": "J", "sha256": sha256}
        (one / "run.json").write_text(json.dumps(facts))
        sets.append(one)
    return sets


@pytest.fixture(params=[True, False], ids=["ranked by J", "ranked by nobody"])
def voted(request, tmp_path):
    """A study with votes in its store, the folder of J and K, and whether J ranked the words."""
    for name, one in (("J", CLASSES), ("K", tuple(reversed(CLASSES)))):
        make_classifier(tmp_path / f"checkpoints/judges/{name}.safetensors", classes=one)
    sha256 = sha256_of(tmp_path / "checkpoints/judges/J.safetensors")
    with fresh_database("sqlite", tmp_path) as url, Store(url) as store:
        sets = judged_sets(tmp_path, sha256 if request.param else None)
        spec = StudySpec(name="s", task=Task.RECOGNITION, list_size=4, votes_per_item=3)
        study = create_study(store, spec, sets, tmp_path / "images")
        let_answer(store, tmp_path / "images", study, of_convnet8)
        yield store, study, request.param


def on_the_page(store, study, folder):
    context = ScienceContext(
        data=folder / "data",
        checkpoints=folder / "checkpoints",
        studies=lambda: [StudyChoice(study.id, study.name, False)],
        labels=lambda one: exports.export_labels(store, one, folder / "images"),
        votes=lambda one: exports.export_votes(store, one),
        device="cpu",
    )
    resources = Resources(checkpoints=context.checkpoints, classifiers=())
    sets = pair_sets_of_labels(context.labels(study.id))
    score_sets(sets, METRICS, resources, context.data / "scores")
    return opened(context, ComparisonView(study=study.id, rule=""))


def about_judges(notes):
    return sorted(note for note in notes if "ranked the words" in note)


@pytest.mark.parametrize(
    ("voted", "ending"), [(True, "parquet"), (True, "csv"), (False, "csv")], indirect=["voted"]
)
def test_the_command_knows_from_files_what_the_page_knows(voted, tmp_path, ending):
    store, study, ranked = voted
    files = {name: tmp_path / f"{name}.{ending}" for name in ("votes", "scores")}
    labels = tmp_path / "labels.parquet"
    data = exports.read_study(store, study.id, tmp_path / "images")
    formats.export(data, files["votes"], what=What.VOTES)
    formats.export(data, labels, what=What.LABELS)
    places = ("--checkpoints", tmp_path / "checkpoints", "--cache-dir", tmp_path / "kept")
    asked = ("--metrics", ",".join(METRICS), "--out", files["scores"], "--device", "cpu")
    run("score", "--labels", labels, *asked, *places)

    page = on_the_page(store, study, tmp_path)
    said = run("compare", files["votes"], files["scores"], *FEW)  # no weights are at hand here
    lines = said.splitlines()
    notes = [line.removeprefix("Note: ") for line in lines if line.startswith("Note: ")]
    assert about_judges(notes) == about_judges(page.analysis.notes)
    assert len(about_judges(notes)) == (len(REFUSED) if ranked else 0)
    for title in REFUSED:
        assert any(line.startswith(title) for line in lines) != ranked
        other = title.replace("J", "K")
        assert any(line.startswith(other) for line in lines)
    shown = {spec.title for spec in page.analysis.specs}
    assert shown.isdisjoint(REFUSED) if ranked else shown >= set(REFUSED)

    text = run("report", files["votes"], files["scores"], *FEW, "--out", "-")
    told = " ".join(exports.facts_of_lists(store, study.id).said)
    assert page.origin.collection == told
    assert told in text
    assert ("drawn at random" in told) != ranked
    assert page.origin.weights.items() >= {"K.safetensors": weight_of(tmp_path, "K")}.items()
    assert weight_of(tmp_path, "K") in text


def weight_of(folder, name):
    return sha256_of(folder / f"checkpoints/judges/{name}.safetensors")


def test_before_anybody_has_voted_the_judge_is_not_scored(tmp_path, voted):
    store, study, ranked = voted
    names = {"J": weight_of(tmp_path, "J")} if ranked else {}
    labels = exports.export_labels(store, study.id, tmp_path / "images")
    assert set(labels["judges"].dropna()) == set(names.values())


def test_an_import_of_the_exported_votes_keeps_what_they_say(voted, tmp_path):
    store, study, _ = voted
    data = exports.read_study(store, study.id, tmp_path / "images")
    formats.export(data, tmp_path / "votes.csv", what=What.VOTES)
    again = Table()(tmp_path / "votes.csv", "again").tables.votes
    for column in ("judges", "lists"):
        pd.testing.assert_series_equal(
            again[column].drop_duplicates(), data.votes[column].drop_duplicates()
        )


def test_scores_that_do_not_say_their_weights_are_told(voted, tmp_path):
    store, study, ranked = voted
    data = exports.read_study(store, study.id, tmp_path / "images")
    formats.export(data, tmp_path / "votes.parquet", what=What.VOTES)
    images = data.labels[["dataset", "attack", "model", "image_id"]]
    scores = [images.assign(metric=name, value=np.arange(len(images)) % 2) for name in METRICS[:2]]
    pd.concat(scores).to_csv(tmp_path / "scores.csv", index=False)
    said = run("compare", tmp_path / "votes.parquet", tmp_path / "scores.csv", *FEW)
    assert ("Recognised by J: the weights behind its scores" in said) == ranked
    assert "MSE: nothing says" not in said
