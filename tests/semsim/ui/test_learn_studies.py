"""The studies of SemSim on the page: what is asked for, and what is drawn of the outcome."""

import gradio as gr
import pytest
from made_judged import judged_labels, judged_votes

from semsim.base.errors import DataError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.lab.curves import svg
from semsim.lab.markup import alert_html
from semsim.learning.ablations import STUDIES, read_values
from semsim.learning.ablations_run import StudyJob
from semsim.ui import ScienceContext, StudyChoice, learn


def judged(auc, mse):
    def row(name, value):
        scopes = {"pooled": {"auc": value, "low": None, "high": None}}
        return {"metric": name, "rho": None, "auc": scopes}

    return {"metrics": [row("semsim:semsim", auc), row("mse", mse)], "scale_differs": []}


FOUND = {
    "what": "loss",
    "simulated": True,
    "rows": [
        {"value": value, "seed": seed, "n_originals": 4, "held_out": judged(auc, 0.7)}
        for value, seed, auc in (("triplet", 0, 0.8), ("triplet", 1, 0.6), ("<b>", 0, None))
    ],
}


@pytest.fixture
def context(tmp_path):
    labels = judged_labels(tmp_path / "toy", originals=6)
    return ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path / "checkpoints",
        studies=lambda: [StudyChoice("s1", "Demo", True)],
        labels=lambda study: labels,
        votes=lambda study: judged_votes(labels),
        device="cpu",
    )


@pytest.fixture
def started(monkeypatch):
    """Jobs that would have been started: running them is tested elsewhere."""
    found = []
    monkeypatch.setattr(jobs, "start", found.append)
    return found


def start(context, what="margin", values=(".5", "1"), seeds=2, studies=("s1",)):
    return learn.start_study(
        context, studies, "architecture=net1", 0.25, what, "triplet", values, seeds
    )


def test_a_study_is_asked_for_as_the_page_says(context, started):
    job = start(context)
    assert started == [job]
    plan = jobs.read_order(job, StudyJob).plan
    assert (plan.what, plan.values, plan.seeds) == ("margin", (0.5, 1.0), (0, 1))
    assert (plan.hold_out.kind, plan.hold_out.value) == ("architecture", "net1")
    assert "simulated votes" in job.title


def test_empty_values_are_the_usual_ones(context, started):
    job = start(context, "loss", [], 1)
    plan = jobs.read_order(job, StudyJob).plan
    assert plan.values == ("triplet", "contrastive")


@pytest.mark.parametrize(
    "asked", [{"studies": ()}, {"values": ["x"]}, {"seeds": 0}, {"seeds": None}, {"values": ["-1"]}]
)
def test_what_cannot_be_is_told_and_starts_nothing(context, started, asked):
    with pytest.raises(SemsimError):
        start(context, **asked)
    assert started == []


@pytest.mark.parametrize("what", STUDIES)
def test_the_values_that_are_offered_can_be_taken(what):
    offered = learn.offered_values(what)
    assert offered.value == []
    values = [value for _, value in offered.choices]
    assert len(values) > 1
    assert [str(value) for value in read_values(what, ",".join(values))] == values


def test_mistakes_are_told_on_the_page(context, started):
    with gr.Blocks() as blocks:
        study, held, share = gr.Textbox(), gr.Textbox(), gr.Number()
        made = learn.section(context, study, held, share)
    (begin,) = [fn for fn in blocks.fns.values() if fn.fn.__name__ == "start"]
    told, *others = begin.fn(None, "original", 0.25, "margin", "triplet", [], 1)
    assert alert_html(DataError("Choose a study first"))[:20] == told[:20]
    assert others == [gr.skip()] * (len(begin.outputs) - 1)
    assert len(made.load()) == len(made.outputs)


def test_the_table_has_a_row_a_value_and_escapes_it():
    html = learn.study_html(FOUND)
    assert html.count("<tr>") == 3
    assert "&lt;b&gt;" in html
    assert ">0.7<" in html
    assert "Fig. 7C" in html
    assert "Simulated votes" in html
    assert "Simulated" not in learn.study_html({**FOUND, "simulated": False})


def test_the_figure_shows_the_mean_and_how_far_trainings_lie_apart():
    own, start, mse = learn.study_chart(FOUND).curves[:3]
    assert list(own.x) == ["triplet", "<b>"]
    assert own.y[0] == pytest.approx(0.7)
    assert (own.low[0], own.high[0]) == (pytest.approx(0.6), pytest.approx(0.8))
    assert list(mse.y) == pytest.approx([0.7, 0.7])
    assert (mse.low, mse.high) == ((), ())
    assert start.name == "Initial weights"
    html = svg(learn.study_chart(FOUND))
    assert "&lt;b&gt;" in html
    assert "nan" not in html
