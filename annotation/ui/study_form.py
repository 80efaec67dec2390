"""The form for a new study: what it asks, what it would mean, and the settings it stands for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import gradio as gr

from annotation.design.decoys import n_decoys
from annotation.design.quality import set_aside
from annotation.design.study_plan import Original
from annotation.domain import (
    MAX_LIST_SIZE,
    Background,
    HeadlineRule,
    Interpolation,
    StudySpec,
)
from annotation.errors import StudyError
from annotation.study.sets import read_set
from annotation.study.settings import HELP
from annotation.tasks import KINDS
from annotation.ui import StudyContext, study_view

TASKS = [(kind.choice, name) for name, kind in KINDS.items()]
HEADLINES = [
    ("Majority: more than half recognise it", HeadlineRule.MAJORITY.value),
    ("Mean response: share of votes that recognise it", HeadlineRule.MEAN_RESPONSE.value),
    ("Ignoring none: share among votes that name a class", HeadlineRule.IGNORING_NONE.value),
    ("Dawid-Skene: annotators weighted by reliability", HeadlineRule.DAWID_SKENE.value),
]
INTERPOLATIONS = [
    ("Nearest: pixels stay squares", Interpolation.NEAREST.value),
    ("Smooth", Interpolation.SMOOTH.value),
]
BACKGROUNDS = [(one.value.capitalize(), one.value) for one in Background]
# Setting that means something in one task only → that task.
ONLY_OF = {setting: name for name, kind in KINDS.items() for setting in kind.only}
DECIDING = (  # settings that the preview depends on
    "task",
    "votes_per_item",
    "extra_vote",
    "decoy_rate",
    "label_originals",
    "max_views",
    "items_per_person",
    "set_aside",
)


@dataclass(frozen=True, kw_only=True)
class Filled:
    """The form as somebody has filled it in; `settings` by name."""

    sets: list[str]
    people: float | None
    gold: StringIO | None
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class StudyForm:
    """The components of the form; `settings` by the name of the study's setting."""

    sets: gr.CheckboxGroup
    people: gr.Number  # not a setting: how many annotators there will be
    gold: gr.Textbox  # nor this: answers of gold items
    settings: Mapping[str, Any]
    preview: gr.HTML
    create: gr.Button
    problems: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """What `named` takes, in that order."""
        return [self.sets, self.people, self.gold, *self.settings.values()]

    def named(self, values: Sequence[Any]) -> Filled:
        """The values of `inputs`."""
        sets, people, gold, *rest = values
        settings = dict(zip(self.settings, rest, strict=True))
        # What is copied from a spreadsheet has tabs.
        answers = StringIO(gold.strip().replace("\t", ",")) if gold and gold.strip() else None
        return Filled(sets=sets, people=people, gold=answers, settings=settings)

    @property
    def of_one_task(self) -> list[Any]:
        """The components `by_task` returns a value for, in that order."""
        return [self.settings[name] for name in ONLY_OF]


def draw() -> StudyForm:
    """Lay the form out where the caller stands."""
    sets = gr.CheckboxGroup(choices=[], label="Reconstruction sets", elem_id="new-sets")
    settings: dict[str, Any] = {}
    with gr.Row():
        settings |= _text("name", "Name") | _text("title", "Title for annotators")
        settings["task"] = gr.Radio(TASKS, value=TASKS[0][1], label="Task", elem_id="new-task")
    with gr.Row():
        settings |= _number("votes_per_item", "Votes per item (K)", 5)
        settings |= _slider("list_size", "Candidates per item", (2, MAX_LIST_SIZE, 1), 20)
        settings["decoy_rate"] = gr.Slider(
            0,
            1,
            0.5,
            step=0.05,
            label="Decoys per matched item",
            visible=False,  # the task is recognition at first
            elem_id="new-decoy-rate",
        )
        people = gr.Number(
            5, precision=0, minimum=1, label="People you expect", elem_id="new-people"
        )
    with gr.Row():
        settings |= _choice("headline", "Headline human score", HEADLINES)
        settings |= _number("seed", "Seed", 0)
        settings["password"] = gr.Textbox(
            label="Password (optional)", type="password", max_lines=1, elem_id="new-password"
        )
    for title, fields in _GROUPS.items():
        with gr.Accordion(title, open=False):
            for row in fields:
                with gr.Row():
                    for field in row:
                        # Not every component can say how narrow is too narrow.
                        with gr.Column(min_width=220):
                            settings |= field()
            if title == QUALITY:
                gold = gr.Textbox(
                    "",
                    label="Answers of gold items",
                    info="Paste rows of a table; these are not asked about otherwise.",
                    placeholder="model,image_id,answer",
                    lines=3,
                    elem_id="new-gold",
                )
    preview = html("new-preview", value=study_view.preview_nothing())
    problems = html("new-problems")
    create = gr.Button("Create study", variant="primary", elem_id="new-create")
    return StudyForm(
        sets=sets,
        people=people,
        gold=gold,
        settings=settings,
        preview=preview,
        create=create,
        problems=problems,
    )


Field = Callable[[], dict[str, Any]]


def _id(name: str) -> str:
    return f"new-{name.replace('_', '-')}"


def _text(name: str, label: str, lines: int = 1) -> dict[str, Any]:
    info = HELP.get(name)
    box = gr.Textbox("", label=label, info=info, lines=lines, elem_id=_id(name))
    return {name: box}


def _number(name: str, label: str, value: int) -> dict[str, Any]:
    number = gr.Number(
        value, precision=0, minimum=0, label=label, info=HELP[name], elem_id=_id(name)
    )
    return {name: number}


def _slider(
    name: str, label: str, span: tuple[float, float, float], value: float
) -> dict[str, Any]:
    low, high, step = span
    slider = gr.Slider(low, high, value, step=step, label=label, info=HELP[name], elem_id=_id(name))
    return {name: slider}


def _rate(name: str, label: str, value: float) -> dict[str, Any]:
    return _slider(name, label, (0, 0.5, 0.01), value)


def _box(name: str, label: str, value: bool) -> dict[str, Any]:
    box = gr.Checkbox(value, label=label, info=HELP[name], elem_id=_id(name))
    return {name: box}


def _choice(name: str, label: str, choices: list[tuple[str, str]]) -> dict[str, Any]:
    info, first = HELP[name], choices[0][1]
    menu = gr.Dropdown(choices, value=first, label=label, info=info, elem_id=_id(name))
    return {name: menu}


QUALITY = "Quality control"
_GROUPS: Mapping[str, tuple[tuple[Field, ...], ...]] = {
    "Who sees what": (
        (
            lambda: _box("balanced", "Balanced order of target models", True),
            lambda: _number("max_views", "Most views of one original (0: any)", 0),
            lambda: _number("min_lag", "Least lag between them", 0),
        ),
        (
            lambda: _number("items_per_person", "Votes per person (0: all)", 0),
            lambda: _box("extra_vote", "A further vote on close items", False),
            lambda: _box("label_originals", "Name the originals too", False),
        ),
    ),
    QUALITY: (
        (
            lambda: _number("set_aside", "Originals set aside", 0),
            lambda: _number("practice", "Practice items", 0),
            lambda: _rate("catch_rate", "Catch trials", 0.0),
        ),
        (
            lambda: _number("catch_warn_after", "Warn after failed catch trials (0: never)", 2),
            lambda: _number("catch_pause_after", "Pause after failed catch trials (0: never)", 0),
        ),
        (
            lambda: _rate("gold_rate", "Gold items", 0.0),
            lambda: _rate("repeat_rate", "Blind repeats", 0.05),
            lambda: _number("repeat_lag", "Least lag of repeats", 50),
        ),
    ),
    "Consent, instructions, end": (
        (
            lambda: _text("consent", "Consent", 6),
            lambda: _text("instructions", "Instructions", 6),
        ),
        (
            lambda: _box("check", "Ask about the instructions", False),
            lambda: _number("check_attempts", "Attempts", 2),
        ),
        (
            lambda: _text("completion_code", "Completion code"),
            lambda: _text("completion_url", "Completion address"),
        ),
    ),
    "On screen": (
        (
            lambda: _number("image_scale", "Scale", 8),
            lambda: _choice("interpolation", "Interpolation", INTERPOLATIONS),
        ),
        (
            lambda: _choice("background", "Background", BACKGROUNDS),
            lambda: _number("lease_seconds", "Seconds of a reservation", 600),
            lambda: _number("min_rt_ms", "Too quick (ms)", 150),
        ),
    ),
}


def by_task(task: str) -> list[Any]:
    """Show what means something in `task` and hide the rest, in the order of `of_one_task`."""
    return [gr.update(visible=only == task) for only in ONLY_OF.values()]


def spec_of(values: Mapping[str, Any]) -> StudySpec:
    """The study that filled-in settings ask for; `StudyError` says what to put right."""
    hints = get_type_hints(StudySpec)
    off = {name: _OFF[name] for name, only in ONLY_OF.items() if values["task"] != only}
    settings = {**values, **off, "password": values["password"] or None}
    empty = [
        f"{name.replace('_', ' ').capitalize()} is empty; give a whole number."
        for name, value in settings.items()
        if value is None and hints[name] is int
    ]
    if empty:
        raise StudyError("\n".join(empty))
    return StudySpec(**{name: _typed(hints[name], value) for name, value in settings.items()})


_OFF = {"list_size": MAX_LIST_SIZE, "label_originals": False, "decoy_rate": 0.0}


def _typed(kind: Any, value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if NoneType in get_args(kind):
        return int(value) if value else None  # 0 on the page
    return int(value) if kind is int else value  # a browser has only one kind of number


def known_folders(context: StudyContext, chosen: Sequence[str]) -> list[Path]:
    """The folders of the sets chosen on the page; `StudyError` for any other folder.

    What comes from a browser must not make the server read wherever it likes.
    """
    known = {str(folder): folder for _, folder in context.find_sets()}
    gone = [name for name in chosen if name not in known]
    if gone:
        raise StudyError(f"No such reconstruction set (any more): {', '.join(gone)}. Reload.")
    return [known[name] for name in chosen]


def preview_of(folders: Sequence[Path], people: float | None, values: Mapping[str, Any]) -> str:
    """What the form as it stands would mean; `StudyError` for a set that cannot be read."""
    sets = [read_set(folder) for folder in folders]
    if not sets:
        return study_view.preview_nothing()
    # Nobody has to think of a name before.
    spec = spec_of({**values, "name": values["name"].strip() or "–"})
    classes = {image.image_id: image.class_name for one in sets for image in one.images}
    originals = [
        Original(image_id=image_id, class_name=name, sha256="")
        for image_id, name in classes.items()
    ]
    aside = set(set_aside(spec, originals))
    shown = [sum(image.image_id not in aside for image in one.images) for one in sets]
    return study_view.preview(
        study_view.Size(
            spec=spec,
            n_reconstructions=sum(shown),
            n_decoys=sum(n_decoys(n, spec.decoy_rate) for n in shown),
            n_originals=len(originals) - len(aside),
            n_models=len({one.model for one in sets}),
            people=int(people or 0),
        )
    )


def html(elem_id: str, *, js_on_load: str = "", **settings: Any) -> gr.HTML:
    """An HTML component that brings its own looks."""
    # Gradio's own rules for text would box every table.
    return gr.HTML(elem_id=elem_id, js_on_load=js_on_load, apply_default_css=False, **settings)
