"""The form for a new study: what it asks, what it would mean, and the settings it stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from annotation.domain import MAX_LIST_SIZE, HeadlineRule, StudySpec, Task
from annotation.errors import StudyError
from annotation.sets import read_set
from annotation.ui import StudyContext, study_view

TASKS = [
    ("Recognition: which of these classes is it?", Task.RECOGNITION.value),
    ("Pair: do both show the same?", Task.PAIR.value),
]
HEADLINES = [
    ("Majority: more than half recognise it", HeadlineRule.MAJORITY.value),
    ("Mean response: share of votes that recognise it", HeadlineRule.MEAN_RESPONSE.value),
    ("Ignoring none: share among votes that name a class", HeadlineRule.IGNORING_NONE.value),
    ("Dawid-Skene: annotators weighted by reliability", HeadlineRule.DAWID_SKENE.value),
]


@dataclass(frozen=True, kw_only=True)
class StudyForm:
    """The components of the form for a new study, in the order `spec_of` takes them."""

    sets: gr.CheckboxGroup
    name: gr.Textbox
    task: gr.Radio
    votes: gr.Number
    list_size: gr.Slider
    decoy_rate: gr.Slider
    headline: gr.Dropdown
    seed: gr.Number
    scale: gr.Number
    password: gr.Textbox
    preview: gr.HTML
    create: gr.Button
    problems: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        return [
            self.sets,
            self.name,
            self.task,
            self.votes,
            self.list_size,
            self.decoy_rate,
            self.headline,
            self.seed,
            self.scale,
            self.password,
        ]


def draw() -> StudyForm:
    """Lay the form out where the caller stands."""
    sets = gr.CheckboxGroup(choices=[], label="Reconstruction sets", elem_id="new-sets")
    with gr.Row():
        name = gr.Textbox(label="Name", max_lines=1, elem_id="new-name")
        task = gr.Radio(TASKS, value=Task.RECOGNITION.value, label="Task", elem_id="new-task")
    with gr.Row():
        votes = gr.Number(
            5, precision=0, minimum=1, label="Votes per item (K)", elem_id="new-votes"
        )
        list_size = gr.Slider(
            2, MAX_LIST_SIZE, MAX_LIST_SIZE, step=1, label="Candidates per item", elem_id="new-list"
        )
        decoy_rate = gr.Slider(
            0, 1, 0.5, step=0.05, label="Decoys per matched item", visible=False, elem_id="new-rate"
        )
    with gr.Row():
        headline = gr.Dropdown(
            HEADLINES,
            value=HeadlineRule.MAJORITY.value,
            label="Headline human score",
            info="Fixed with the study; Compare shows the others beside it.",
            elem_id="new-headline",
        )
        seed = gr.Number(0, precision=0, label="Seed", elem_id="new-seed")
        scale = gr.Number(
            8, precision=0, minimum=1, label="Screen pixels per image pixel", elem_id="new-scale"
        )
        password = gr.Textbox(
            label="Password (optional)", type="password", max_lines=1, elem_id="new-password"
        )
    preview = html("new-preview", value=preview_of([], Task.RECOGNITION.value, 5, 0.0))
    problems = html("new-problems")
    create = gr.Button("Create study", variant="primary", elem_id="new-create")
    return StudyForm(
        sets=sets,
        name=name,
        task=task,
        votes=votes,
        list_size=list_size,
        decoy_rate=decoy_rate,
        headline=headline,
        seed=seed,
        scale=scale,
        password=password,
        preview=preview,
        create=create,
        problems=problems,
    )


def spec_of(
    name: str,
    task: str,
    votes: float | None,
    list_size: float,
    decoy_rate: float,
    headline: str,
    seed: float | None,
    scale: float | None,
    password: str,
) -> StudySpec:
    """The study that a filled-in form asks for; `StudyError` says what to put right."""
    numbers = {
        "Votes per item": votes,
        "Seed": seed,
        "Screen pixels per image pixel": scale,
    }
    empty = [f"{label} is empty; give a whole number." for label, n in numbers.items() if n is None]
    if votes is None or seed is None or scale is None:
        raise StudyError("\n".join(empty))
    return StudySpec(
        name=name.strip(),
        task=Task(task),
        votes_per_item=int(votes),
        list_size=int(list_size),
        decoy_rate=float(decoy_rate) if task == Task.PAIR.value else 0.0,
        headline=HeadlineRule(headline),
        seed=int(seed),
        image_scale=int(scale),
        password=password or None,
    )


def known_folders(context: StudyContext, chosen: Sequence[str]) -> list[Path]:
    """The folders of the sets chosen on the page; `StudyError` for any other folder.

    What comes from a browser must not make the server read wherever it likes.
    """
    known = {str(folder): folder for _, folder in context.find_sets()}
    gone = [name for name in chosen if name not in known]
    if gone:
        raise StudyError(f"No such reconstruction set (any more): {', '.join(gone)}. Reload.")
    return [known[name] for name in chosen]


def preview_of(folders: Sequence[Path], task: str, votes: float | None, decoy_rate: float) -> str:
    """What the form as it stands would mean; `StudyError` for a set that cannot be read."""
    sets = [read_set(folder) for folder in folders]
    return study_view.preview(
        task=Task(task),
        n_reconstructions=sum(len(one.images) for one in sets),
        n_models=len({one.model for one in sets}),
        votes_per_item=int(votes or 0),
        decoy_rate=decoy_rate,
    )


def html(elem_id: str, *, js_on_load: str = "", **settings: Any) -> gr.HTML:
    """An HTML component that brings its own looks."""
    # Gradio's own rules for text would box every table.
    return gr.HTML(elem_id=elem_id, js_on_load=js_on_load, apply_default_css=False, **settings)
