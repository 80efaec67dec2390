import time
from dataclasses import replace

import gradio as gr
import pytest
from made_weights import make_semsim
from scipy import stats

from semsim.analysis.human import RULES
from semsim.jobs import folders as jobs
from semsim.learning.card_promoted import BUILT_IN
from semsim.ui import ScienceContext, StudyChoice, compare
from semsim.ui.compare import Chosen, page_values
from semsim.ui.compare_data import held

STUDIES = [StudyChoice("1", "First", True), StudyChoice("2", "Second, simulated", True)]


@pytest.fixture
def context(made_context):
    draw = [0, 2, 1, 3, 5, 4]  # people do not quite see what the metrics see

    def change(labels):
        return labels.assign(n_recognised=[draw[i % 6] for i in range(len(labels))])

    made = made_context(n_images=4, change=change, scored=())
    return ScienceContext(**{**vars(made), "studies": lambda: STUDIES})


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
    assert "nothing to compare" in values["forest"]
    deadline = time.monotonic() + 60
    while jobs.state(job) in {jobs.JobState.QUEUED, jobs.JobState.RUNNING}:
        assert time.monotonic() < deadline, jobs.log_tail(job)
        time.sleep(0.05)
    assert jobs.state(job) is jobs.JobState.DONE, jobs.error_text(job)
    values, job = page_values(context, Chosen(study="1", metric="ssim", order="psnr"))
    assert job is None
    models = held(context, "1").analysis.models
    expected = stats.spearmanr(models["human"], models["ssim"]).statistic
    assert f"{abs(expected):.3f}" in values["agreement"]
    assert f"ρ = {expected:.2f}".replace("-", "−") in values["scatter"]
    assert (values["metric"].value, values["order"].value) == ("ssim", "psnr")
    assert "alexnet-owt-7be5be79.pth is missing" in values["unavailable"]
    assert values["weights_row"].visible
    assert "&lt;" not in "".join(one for one in values.values() if isinstance(one, str))
    assert "Second" not in values["table1"]


def test_a_load_reads_labels_and_votes_once(made_context):
    """Also where the SemSim of the workspace says which originals are left out."""
    context = made_context(n_images=2)
    make_semsim(context.checkpoints / f"{BUILT_IN}.safetensors", ["symbols/000"])
    asked = []

    def counted(name):
        return lambda study: asked.append(name) or getattr(context, name)(study)

    counting = replace(context, labels=counted("labels"), votes=counted("votes"))
    values, job = page_values(counting, Chosen(study="1"))
    jobs.request_stop(job)
    assert values["originals"].value == BUILT_IN
    assert sorted(asked) == ["labels", "votes"]


def test_what_is_chosen_stays_a_choice_while_the_attacked_images_are_scored(context):
    """A control whose value is no choice of it refuses every later event of the page."""
    for rule in RULES:
        values, job = page_values(context, Chosen(study="1", rule=rule, reference="attacked"))
        if job is not None:
            jobs.request_stop(job)
        assert values["metric"].choices == []  # nothing is scored yet
        assert [value for _, value in values["rule"].choices] == list(RULES)
        assert (values["rule"].value, values["reference"].value) == (rule, "attacked")
        for name, control in values.items():
            if isinstance(control, gr.Dropdown):
                assert control.preprocess(control.value) == control.value, name


def test_a_study_without_votes_shows_its_pictures_but_no_ranking(made_context):
    context = made_context(n_images=2, votes=0)
    values, job = page_values(context, Chosen())
    assert values["ranked"].visible is False
    assert values["body"].visible is True
    assert values["gallery"].count("<img") == 7
    if job is not None:
        jobs.request_stop(job)


def test_several_studies_stand_in_one_table(context, made_context):
    shown = compare._table1(context, ["1", "2"], None)
    assert "No scores yet: First, Second, simulated" in shown
    scored = ScienceContext(**{**vars(made_context(n_images=2)), "studies": lambda: STUDIES})
    shown = compare._table1(scored, ["1", "2"], None)
    assert "No scores" not in shown
    assert shown.count('<th scope="row">First') == shown.count('<th scope="row">Second') > 0
    assert "at least one study" in compare._table1(scored, [], None)
