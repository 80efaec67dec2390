"""The page Split inference: choose network, cuts, defences and attacks, watch, see what leaks."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import gradio as gr

from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.split.plan import RUNS, SplitPlace, SplitPlan
from semsim.split.split_answer import answer_words
from semsim.split.split_job import KIND, like, plan_of
from semsim.ui import ScienceContext, jobpanel, lab_frame, lab_sets, split_form, split_view
from semsim.ui.jobpanel import last_words
from semsim.ui.lab_cards import free_name
from semsim.ui.lab_frame import SAME, Attacking, Loads, More
from semsim.ui.settings_form import Given

_INTRO = (
    "A client runs a network's first layers and sends their features to a server ([[split "
    "inference]]). Can the server get the pictures back, and what do defences hide?"
)
_NOTHING = "No experiment has been run here yet. Choose a card and press Start."
_OUTLOOK = "semsim.split.outlook"
_Planned = tuple[tuple[str, str, Path], ...]


def render(context: ScienceContext) -> Loads:
    """Lay the page out where the caller stands; returns what it does when it is loaded."""
    return lab_frame.render(context, page(context))


def page(context: ScienceContext) -> Attacking:
    """What the page says and does, as `lab_frame` takes it."""
    return Attacking(
        name=split_form.NAME,
        title="Split inference",
        intro=_INTRO,
        called="Experiment",
        papers=("ensembler",),
        kind=KIND,
        form=split_form.form_html(context.checkpoints),
        cards=lambda: split_form.cards_html(context.data),
        told=lambda given: _told(context, split_form.plan_of(given, _free(context))),
        begin=lambda given: begin_experiment(context, given),
        draw=lambda job: draw(context, job),
        nothing=_NOTHING,
        more=_pictures,
    )


def _pictures(ran: jobpanel.Jobs) -> More:
    return More(drawn=[gr.HTML(elem_id="split-grid", apply_default_css=False, padding=False)])


def _told(context: ScienceContext, plan: SplitPlan) -> str:
    found = apart(f"{_OUTLOOK}:outlook", plan)
    return split_view.outlook_html(found, last_words(context.data / "jobs", KIND, like(plan), SAME))


def begin_experiment(context: ScienceContext, given: Given) -> Job:
    """Start the form's experiment as a job; raises `SemsimError` where it cannot be."""
    place = SplitPlace(
        data=context.data, checkpoints=Path(context.checkpoints), device=str(context.device)
    )
    plan = split_form.plan_of(given, _free(context))
    job: Job = apart("semsim.split.split_job:queue_split", plan, place)
    jobs.start(job)
    return job


def draw(context: ScienceContext, job: Job) -> list[Any]:
    """What came back last, how far each attack is, and, when it is done, what that says."""
    state = jobs.state(job)
    steps = lab_sets.in_turn(
        [
            (split_view.step_name(model, attack), folder)
            for model, attack, folder in planned(plan_of(job), context.data)
        ],
        state,
    )
    begun = [lab_sets.strip_html(steps), lab_sets.sets_html(steps)]
    if state is not JobState.DONE:
        return [*begun, "", "", lab_sets.line_up_html(steps)]
    result = jobs.result(job)
    said = answer_words(result)
    return [
        *begun,
        lab_sets.verdict_html(said, steps, lab_sets.METHOD),
        split_view.result_html(result),
        lab_sets.line_up_html(steps),
    ]


@lru_cache(maxsize=8)
def planned(plan: SplitPlan, data: Path) -> _Planned:
    """Every set of a plan: model, attack, folder; the last few are kept, as a page asks often."""
    found: _Planned = apart(f"{_OUTLOOK}:planned_sets", plan, Path(data).resolve())
    return found


def _free(context: ScienceContext) -> str:
    """A name no experiment has."""
    return free_name(context.data / "runs", "experiment", RUNS)
