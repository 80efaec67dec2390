"""The part of Train SemSim that runs the paper's studies: budget, network, loss and margin."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import UNSEEN, gr
from semsim.lab.curves import Chart, Curve, svg
from semsim.lab.markup import pieces
from semsim.learning import PRESETS, baselines
from semsim.learning.ablations import (
    STUDIES,
    AblationPlan,
    failures,
    study_plan,
    study_table,
    summary,
    usual_values,
)
from semsim.learning.baselines import auc_words
from semsim.learning.evaluation import judged_of, scale_notes, scope_of
from semsim.learning.splits import parse_hold_out
from semsim.ui import ScienceContext, jobpanel
from semsim.ui.learn_chosen import material_of, started

_COLOURS = {
    **{"auc": ("accent", False), "start": ("accent", True), "mse": ("ink", True)},
    **{"psnr": ("soft", True), "ssim": ("soft", False)},
}
_NAMES = {"auc": "SemSim", "start": "Its start", "mse": "MSE", "psnr": "PSNR", "ssim": "SSIM"}


def section(context: ScienceContext, study: Any, hold_out: Any, share: Any) -> jobpanel.Jobs:
    """Lay the section out where the caller stands; returns its jobs, which the page loads.

    Args:
        study, hold_out, share: The components of the page that say what is learned from and judged
            by.
    """
    with gr.Tab("What it depends on", id="studies", render_children=True, elem_id="learn-studies"):
        gr.Markdown(
            "Each run varies one thing and leaves all else as it is. It learns from the studies "
            "chosen under New and is judged by what is kept for the test there."
        )
        with gr.Row():
            what = gr.Radio(
                [(kind.title, name) for name, kind in STUDIES.items()],
                value="budget",
                label="What is varied",
                elem_id="study-what",
            )
            preset = gr.Radio(list(PRESETS), value="small", label="Preset", elem_id="study-preset")
        with gr.Row():
            values = gr.Dropdown(
                usual_values("budget"),
                value=[],
                multiselect=True,
                allow_custom_value=True,
                label="Values",
                info="None chosen: all of these that the votes allow. Another one can be typed.",
                elem_id="study-values",
            )
            seeds = gr.Number(
                1, precision=0, minimum=1, label="Trainings of each", elem_id="study-seeds"
            )
        begin = gr.Button("Start the study", elem_id="study-start")
        trouble = gr.HTML(elem_id="study-trouble")
        ran = jobpanel.Jobs("Study run", "study", context.data / "jobs", AblationPlan.KIND)
        plot = gr.HTML(elem_id="study-plot")
        table = gr.HTML(elem_id="study-table")
    what.input(offered_values, what, values, **UNSEEN)
    ran.follow(draw, [plot, table])
    asked = [study, hold_out, share, what, preset, values, seeds]
    ran.begin_with(begin, asked, trouble, lambda *given: start_study(context, *given))
    return ran


def offered_values(what: str) -> Any:
    """An update of the list of values: those of what is varied, none of them chosen."""
    return gr.Dropdown(
        choices=list(usual_values(what)), value=[], multiselect=True, allow_custom_value=True
    )


def start_study(
    context: ScienceContext,
    studies: Sequence[str],
    held: str | None,
    share: float,
    *varied: Any,
) -> Job:
    """Start a study as a job;

    Args:
        varied: What is varied, the preset, the values chosen, as people write them, and seeds.

    Raises:
        SemsimError: Where it cannot be.
    """
    what, preset, chosen, seeds = varied
    material = material_of(context, studies)
    if not seeds or seeds < 1:
        raise SettingsError(f"Trainings of each must be at least 1; got {seeds!r}.")
    plan = study_plan(
        what,
        ",".join(chosen) if chosen else None,
        material.labels,
        settings=replace(PRESETS[preset], device=str(context.device)),
        hold_out=parse_hold_out(held or "original", share),
        trainings=int(seeds),
    )
    plan = replace(plan, controls=baselines.ALL)
    return started(context, "queue_ablation", plan, material)


def draw(job: Job | None) -> list[Any]:
    """Figure and table of a finished study."""
    if job is None or jobs.state(job) is not JobState.DONE:
        return ["", ""]
    found = jobs.result(job)
    return [svg(study_chart(found)), study_html(found)]


def study_chart(found: Mapping[str, Any]) -> Chart:
    """Held-out AUC of SemSim against what is varied, lowest to highest seed as a bar."""
    kind, table = STUDIES[found["what"]], summary(found["rows"])
    curves = []
    for name, title in _NAMES.items():
        colour, dashed = _COLOURS[name]
        ends = ("auc_lowest", "auc_highest") if name == "auc" else ()
        low, high = (table[one].tolist() for one in ends) if ends else ((), ())
        values = [str(one) for one in table["value"]]
        y = table[name].astype(float).tolist()
        curves.append(
            Curve(name=title, x=values, y=y, colour=colour, dashed=dashed, low=low, high=high)
        )
    auc = auc_words(scope_of(*judged_of(found["rows"])))
    title = f"{kind.title}: held-out {auc}"
    return Chart(title=title, x=kind.axis, y="AUC", curves=tuple(curves), highest=1.05)


def study_html(found: Mapping[str, Any]) -> str:
    """Return the findings of a study as a table: a row a value, means over seeds."""
    heads, rows = study_table(found)
    said = [*scale_notes(found["rows"]), *failures(found["rows"])]
    what = STUDIES[found["what"]]
    return pieces("learn_studies.html", "semsim.ui").found(
        what, heads, rows, found["simulated"], said
    )
