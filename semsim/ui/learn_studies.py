"""The part of Train SemSim that runs the paper's studies: budget, network, loss and margin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from semsim.errors import SemsimError, SettingsError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.learning import PRESETS
from semsim.learning.ablations import STUDIES, StudyPlan, default_values, read_values, summary
from semsim.learning.ablations_run import STUDY_KIND, Workplace
from semsim.learning.splits import parse_hold_out
from semsim.ui import ScienceContext, jobpanel
from semsim.ui.jobpanel import QUIETLY, alert_html
from semsim.ui.learn_chosen import material_of
from semsim.ui.markup import pieces

_GREY = "#7a7a7a"  # read on white and on black alike
_COLOURS = {
    **{"auc": "#2563eb", "start": "#0891b2", "mse": "#ea580c", "psnr": "#16a34a"},
    "ssim": "#9333ea",
}
_NAMES = {"auc": "SemSim", "start": "Its start", "mse": "MSE", "psnr": "PSNR", "ssim": "SSIM"}


@dataclass(frozen=True, kw_only=True)
class Section:
    """What the page must do on load: values for `outputs`."""

    load: Callable[[], list[Any]]
    outputs: list[Any]


def section(context: ScienceContext, study: Any, hold_out: Any, share: Any) -> Section:
    """Lay the section out where the caller stands.

    study, hold_out, share: the components of the page that say what is learned from and judged by.
    """
    with gr.Accordion("Studies: what does SemSim depend on?", open=False, elem_id="learn-studies"):
        gr.Markdown(
            "Each varies one thing and leaves all else as it is. It learns from the studies chosen "
            "above and is judged by what is kept for the test there."
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
            values = gr.Textbox(
                label="Values", info="With commas; empty: the usual ones.", elem_id="study-values"
            )
            seeds = gr.Number(
                1, precision=0, minimum=1, label="Trainings of each", elem_id="study-seeds"
            )
        begin = gr.Button("Start the study", elem_id="study-start")
        trouble = gr.HTML(elem_id="study-trouble")
        chosen = gr.Dropdown(
            [], label="Study run", allow_custom_value=True, visible=False, elem_id="study-job"
        )
        panel = jobpanel.build("study")
        plot = gr.Plot(show_label=False, visible=False, elem_id="study-plot")
        table = gr.HTML(elem_id="study-table")
    root = context.data / "jobs"
    look = jobpanel.wire(panel, chosen, root, also=draw, also_outputs=[plot, table])
    watched = [*panel.outputs, plot, table]

    def load() -> list[Any]:
        newest = jobpanel.newest(root, STUDY_KIND)
        return [jobpanel.chooser(root, STUDY_KIND, newest), *look(newest)]

    def begin_study(*asked: Any) -> list[Any]:
        try:
            job = start_study(context, *asked)
        except SemsimError as error:
            return [alert_html(error), *(gr.skip() for _ in [chosen, *watched])]
        return ["", jobpanel.chooser(root, STUDY_KIND, job.id), *look(job.id)]

    chosen.input(look, chosen, watched, show_progress="hidden", **QUIETLY)
    asked = [study, hold_out, share, what, preset, values, seeds]
    begin.click(begin_study, asked, [trouble, chosen, *watched], **QUIETLY)
    return Section(load=load, outputs=[chosen, *watched])


def start_study(
    context: ScienceContext,
    studies: Sequence[str],
    held: str | None,
    share: float,
    what: str,
    preset: str,
    *varied: Any,
) -> Job:
    """Start a study as a job; varied: values as text, and seeds.

    Raises `SemsimError` where it cannot be.
    """
    text, seeds = varied
    material = material_of(context, studies)
    if not seeds or seeds < 1:
        raise SettingsError(f"Trainings of each must be at least 1; got {seeds!r}.")
    plan = StudyPlan(
        what=what,
        values=read_values(what, text)
        if (text or "").strip()
        else default_values(what, material.labels),
        seeds=tuple(range(int(seeds))),
        settings=replace(PRESETS[preset], device=str(context.device)),
        hold_out=parse_hold_out(held or "original", share),
    )
    place = Workplace(
        checkpoints=Path(context.checkpoints).resolve(),
        scores=(context.data / "scores").resolve(),
        device=str(context.device),
    )
    where = "semsim.learning.ablations_run:queue_study"
    job: Job = apart(where, plan, material, place, context.data / "jobs")
    jobs.start(job)
    return job


def draw(job: Job | None) -> list[Any]:
    """Figure and table of a finished study."""
    if job is None or jobs.state(job) is not JobState.DONE:
        return [gr.Plot(visible=False), ""]
    found = jobs.result(job)
    return [gr.Plot(study_figure(found), visible=True), study_html(found)]


def study_figure(found: Mapping[str, Any]) -> go.Figure:
    """Held-out AUC of SemSim against what is varied, lowest to highest seed as a bar."""
    kind, table = STUDIES[found["what"]], summary(found["rows"])
    figure = go.Figure()
    for name, title in _NAMES.items():
        bars = {}
        if name == "auc":
            above, below = table["auc_highest"] - table["auc"], table["auc"] - table["auc_lowest"]
            bars = {"error_y": {"array": above, "arrayminus": below, "symmetric": False}}
        figure.add_scatter(
            x=table["value"],
            y=table[name],
            name=title,
            mode="lines+markers",
            line={"color": _COLOURS[name], "dash": "solid" if name == "auc" else "dot"},
            **bars,
        )
    axis = {"gridcolor": "rgba(122,122,122,.25)", "zeroline": False}
    return figure.update_layout(
        title={"text": f"{kind.title}: held-out AUC", "font": {"size": 14}},
        xaxis={**axis, "type": "category", "title": {"text": kind.axis}},
        yaxis={**axis, "title": {"text": "AUC"}, "range": [0, 1.05]},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": _GREY},
        legend={"orientation": "h", "y": -0.3},
        margin={"l": 50, "r": 10, "t": 40, "b": 40},
        height=320,
    )


def study_html(found: Mapping[str, Any]) -> str:
    """What a study found, as a table: a row a value, means over seeds."""
    kind, table = STUDIES[found["what"]], summary(found["rows"])
    heads = (
        *(kind.axis, "trainings", "originals", "SemSim AUC", "lowest", "highest"),
        *("its start", "MSE", "SSIM"),
    )
    columns = [
        *("value", "seeds", "n_originals", "auc", "auc_lowest", "auc_highest"),
        *("start", "mse", "ssim"),
    ]
    rows = [[_text(cell) for cell in row] for row in table[columns].to_numpy().tolist()]
    return pieces("learn_studies.html").found(kind, heads, rows, found["simulated"])


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return "–" if cell != cell else f"{cell:.3g}"
    return str(cell)
