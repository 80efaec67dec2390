import shutil
import time

import pytest
from made_study import MODELS, make_labels

from semsim import jobs
from semsim.learning.model import ModelSettings, SemSimModel, Training, save_semsim
from semsim.metrics import METRICS, Resources
from semsim.scoring import pair_sets_of_labels, score_sets
from semsim.ui import ScienceContext, StudyChoice
from semsim.ui.compare_data import (
    compare,
    image_choices,
    live_download,
    missing_weights,
    model_choices,
    model_key,
    model_name,
    read_comparison,
    rows_of_model,
    scoring_job,
    start_download,
)
from semsim.weights import read_manifest

STUDY = StudyChoice("1", "Made", True)
SPECS = [METRICS[name].spec for name in ("mse", "psnr", "fid")]


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


@pytest.fixture
def labels(tmp_path):
    return make_labels(tmp_path / "images", models=MODELS[:4], n_images=3)


@pytest.fixture
def context(labels, tmp_path):
    return ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path / "checkpoints",
        studies=lambda: [STUDY],
        labels=lambda study: labels,
        device="cpu",
    )


def ended(job, seconds=60):
    deadline = time.monotonic() + seconds
    while jobs.state(job) in {jobs.JobState.QUEUED, jobs.JobState.RUNNING}:
        assert time.monotonic() < deadline, jobs.log_tail(job)
        time.sleep(0.05)
    return jobs.state(job)


def test_a_comparison_splits_metrics_by_whether_they_have_weights(labels, tmp_path):
    resources = Resources(checkpoints=tmp_path)
    names = [spec.name for spec in SPECS]
    book = score_sets(pair_sets_of_labels(labels), names, resources, tmp_path / "scores")
    found = compare(STUDY, labels, book, SPECS)
    assert [spec.name for spec in found.specs] == ["mse", "psnr"]
    assert [spec.name for spec, _ in found.unavailable] == ["fid"]
    assert found.agreement["metric"].tolist() == ["mse", "psnr"]
    assert (found.agreement["rho"] > 0.8).all()  # made so; people tie where metrics do not
    assert found.spec("psnr").name == "psnr"
    assert found.spec("fid").name == "mse"  # gone: the best of those with scores
    assert found.has_decisions
    assert found.n_votes == 60


def test_missing_scores_are_computed_by_one_job_that_is_not_repeated(context):
    before = read_comparison(context, STUDY)
    assert {name for _, name in before.book.missing} >= {"mse", "psnr", "ssim"}
    assert before.spec(None) is None
    job = scoring_job(context, before)
    assert scoring_job(context, before).id == job.id  # a second page finds it
    assert ended(job) is jobs.JobState.DONE, jobs.error_text(job)
    after = read_comparison(context, STUDY)
    assert after.book.missing == ()
    assert scoring_job(context, after) is None
    shutil.rmtree(context.data / "scores")
    # it was tried and the scores are not there: a person decides, not a loop
    assert scoring_job(context, before).id == job.id
    assert len(jobs.list_jobs(context.data / "jobs")) == 1


def test_a_download_is_a_job_and_its_failure_stays_visible(context, monkeypatch):
    assert live_download(context) is None
    assert {entry.name for entry in missing_weights(context)} == set(read_manifest())
    # no web server answers at a proxy that is not there: nothing leaves this machine
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    job = start_download(context, "squeezenet1_1")
    assert ended(job) is jobs.JobState.FAILED
    assert "could not be fetched" in jobs.error_text(job)
    assert live_download(context).id == job.id


def test_lists_name_every_original_and_model_once(labels):
    assert image_choices(labels) == [
        ("000 · cat", "symbols\n000"),
        ("001 · cow", "symbols\n001"),
        ("002 · mouse", "symbols\n002"),
    ]
    models = labels[["dataset", "attack", "model"]].drop_duplicates()
    choices = dict(model_choices(models))
    assert choices["resnet/none"] == "symbols\ninvgrad\nresnet/none"
    mine = rows_of_model(labels, choices["resnet/none"])
    assert mine["model"].tolist() == ["resnet/none"] * 3


def test_a_model_is_named_with_its_data_set_where_there_are_several(labels):
    models = labels[["dataset", "attack", "model"]].drop_duplicates(ignore_index=True)
    row = models.iloc[0]
    assert model_name(row, models) == "resnet/none"
    models.loc[1, "dataset"] = "faces"
    assert model_name(row, models) == "resnet/none · symbols"
    assert model_key(models.iloc[1]) == "faces\ninvgrad\nresnet/crop"


@pytest.mark.parametrize(
    ("simulated", "study", "remark"),
    [
        (True, "Made", "trained on simulated votes; in-sample: learned from this study"),
        (False, "Another", ""),
    ],
)
def test_a_semsim_says_whom_it_learned_from(context, simulated, study, remark):
    training = Training(
        n_originals=1,
        n_triplets=1,
        simulated=simulated,
        created="",
        versions={},
        settings={},
        study=study,
    )
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.2] * 3)
    save_semsim(model, context.checkpoints / "mine.safetensors", training)
    assert read_comparison(context, STUDY).remarks == {"semsim:mine": remark}
