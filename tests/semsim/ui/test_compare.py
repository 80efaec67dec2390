import time

import gradio as gr
import pytest
from made_study import make_labels
from scipy import stats

from semsim import jobs
from semsim.ui import ScienceContext, StudyChoice, compare
from semsim.ui.compare import Chosen, page_values

STUDIES = [StudyChoice("1", "First", True), StudyChoice("2", "Second, simulated", True)]


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


@pytest.fixture
def context(tmp_path):
    labels = make_labels(tmp_path / "images", n_images=4)
    draw = [0, 2, 1, 3, 5, 4]  # people do not quite see what the metrics see
    labels["n_recognised"] = [draw[i % 6] for i in range(len(labels))]
    labels["recognisable"] = labels["n_recognised"] * 2 > 5
    return ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path / "checkpoints",
        studies=lambda: STUDIES,
        labels=lambda study: labels,
        device="cpu",
    )


def test_a_product_without_studies_says_what_to_do(context):
    bare = ScienceContext(**{**vars(context), "studies": list})
    values, job = page_values(bare, Chosen())
    assert job is None
    assert "There is no study yet" in values["notice"]
    assert values["body"].visible is False


def test_the_page_lays_out_and_loads_what_it_promises(context):
    with gr.Blocks():
        ((load, outputs),) = compare.render(context)
    request = gr.Request(username="r")
    request.kwargs = {"query_params": {"study": "2"}}
    values = load(request)
    assert len(values) == len(outputs)
    assert values[0].value == "2"
    assert values[0].choices == [("First (simulated)", "1"), ("Second, simulated", "2")]
    for job in jobs.list_jobs(context.data / "jobs"):
        jobs.request_stop(job)


def test_scores_start_by_themselves_and_the_page_then_shows_scipys_numbers(context):
    values, job = page_values(context, Chosen(study="1"))
    assert "no scores yet" in values["agreement"]
    deadline = time.monotonic() + 60
    while jobs.state(job) in {jobs.JobState.QUEUED, jobs.JobState.RUNNING}:
        assert time.monotonic() < deadline, jobs.log_tail(job)
        time.sleep(0.05)
    assert jobs.state(job) is jobs.JobState.DONE, jobs.error_text(job)
    values, job = page_values(context, Chosen(study="1", metric="ssim", order="psnr"))
    assert job is None
    comparison = compare.read_comparison(context, STUDIES[0])
    expected = stats.spearmanr(comparison.models["recognised_rate"], comparison.models["ssim"])
    assert f"<td>{abs(expected.statistic):.3f}</td>" in values["agreement"]
    assert list(values["plot"].data[0].x) == comparison.models["ssim"].tolist()
    assert (values["metric"].value, values["order"].value) == ("ssim", "psnr")
    assert "alexnet-owt-7be5be79.pth is missing" in values["unavailable"]
    assert values["weights_row"].visible
