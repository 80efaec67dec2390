"""The form for a new study: what it asks, what it would mean, and the settings it stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from io import StringIO
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import gradio as gr

from annotation.design.decoys import n_decoys
from annotation.design.list_facts import RANDOM_LISTS
from annotation.design.quality import set_aside
from annotation.design.study_plan import Original
from annotation.errors import StudyError
from annotation.spec import (
    MAX_LIST_SIZE,
    Background,
    Distractors,
    HeadlineRule,
    Interpolation,
    Lists,
    StudySpec,
    headlines,
)
from annotation.store import Store
from annotation.study.labelling import usual_rt_ms
from annotation.study.sets import SetFolder, read_set
from annotation.tasks import KINDS
from annotation.ui import StudyContext, study_view

TOP_LISTS = (
    "With the likeliest words a class that is rarely confused stands on few lists but its own, so "
    "that lists alone may give answers away; how far is said once they are drawn."
)
BETWEEN = 0.4  # seconds that an answer takes beyond looking, as the labelling page has it
TASKS = [(kind.choice, name) for name, kind in KINDS.items()]
CHOICES: Mapping[str, list[tuple[str, Any]]] = {
    "headline": [
        ("Majority: more than half recognise it", HeadlineRule.MAJORITY.value),
        ("Mean response: share of votes that recognise it", HeadlineRule.MEAN_RESPONSE.value),
        ("Ignoring none: share among votes that name a class", HeadlineRule.IGNORING_NONE.value),
        (
            "As original named: what most call the original (needs “Name the originals too”)",
            HeadlineRule.AS_ORIGINAL_NAMED.value,
        ),
        ("Dawid-Skene: annotators weighted by reliability", HeadlineRule.DAWID_SKENE.value),
        ("Mean rating: what ratings are averaged to", HeadlineRule.MEAN_RATING.value),
    ],
    "distractors": [
        ("Balanced: every word on about as many lists", Distractors.BALANCED.value),
        ("Top: an independent classifier's likeliest words", Distractors.TOP.value),
    ],
    "lists": [
        ("All items of an original, as in the paper", Lists.ORIGINAL.value),
        ("Each item: wrong words drawn anew", Lists.ITEM.value),
    ],
    "rating_levels": [("1 to 4", 4), ("1 to 5", 5)],
    "interpolation": [
        ("Nearest: pixels stay squares", Interpolation.NEAREST.value),
        ("Smooth", Interpolation.SMOOTH.value),
    ],
    "background": [(one.value.capitalize(), one.value) for one in Background],
}
# Setting that means something in one task only → that task.
ONLY_OF = {setting: name for name, kind in KINDS.items() for setting in kind.only}
DECIDING = (  # settings that the preview depends on
    "task",
    "votes_per_item",
    "extra_vote",
    "list_size",
    "decoy_rate",
    "label_originals",
    "distractors",
    "lists",
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
        return [self.settings[name] for name in (*ONLY_OF, "headline")]


def draw() -> StudyForm:
    """Lay the form out where the caller stands."""
    sets = gr.CheckboxGroup(choices=[], label="Reconstruction sets", elem_id="new-sets")
    with gr.Row():
        settings = {name: _field(name) for name in ("name", "title", "task")}
    with gr.Row():
        settings |= {name: _field(name) for name in ("votes_per_item", "list_size", "decoy_rate")}
        people = gr.Number(
            StudySpec.votes_per_item,
            precision=0,
            minimum=1,
            label="People you expect",
            elem_id="new-people",
        )
    for names in _RATINGS:
        with gr.Row():
            settings |= {name: _field(name) for name in names}
    with gr.Row():
        settings |= {name: _field(name) for name in ("headline", "seed", "password")}
    for title, rows in _GROUPS.items():
        with gr.Accordion(title, open=False):
            for row in rows:
                with gr.Row():
                    for name in row:
                        # Not every component can say how narrow is too narrow.
                        with gr.Column(min_width=220):
                            settings[name] = _field(name)
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


# What a page adds to a setting that its type does not say.
_LOOKS: Mapping[str, Mapping[str, Any]] = {
    "name": {"info": None},
    "task": {"info": None},
    "list_size": {"minimum": 2, "maximum": MAX_LIST_SIZE, "step": 1},
    "decoy_rate": {
        "maximum": 1,
        "value": 0.5,  # pairs without decoys would all have the same answer
        "step": 0.05,
        "info": None,
    },
    "rating_threshold": {"minimum": 1, "maximum": 5, "step": 0.25},
    "password": {"value": None, "type": "password", "max_lines": 1, "info": None},
    "consent": {"lines": 6},
    "instructions": {"lines": 6},
}


def _field(name: str) -> Any:
    """The component for a setting: its type says which, the setting what stands there."""
    setting = _SETTINGS[name]
    kind, looks = _KIND[name], _LOOKS.get(name, {})
    usual: Any = "" if setting.default is MISSING else setting.default
    shown: dict[str, Any] = {
        "value": usual,
        "label": setting.metadata["label"],
        "info": setting.metadata["text"],
        "elem_id": f"new-{name.replace('_', '-')}",
        "visible": ONLY_OF.get(name, TASKS[0][1]) == TASKS[0][1],  # the task that is chosen first
    }
    if name == "task":
        return gr.Radio(**{**shown, "choices": TASKS, "value": TASKS[0][1], **looks})
    if name in CHOICES:
        choices = _scores_of(TASKS[0][1]) if name == "headline" else CHOICES[name]
        return gr.Dropdown(
            **{**shown, "choices": choices, "value": getattr(usual, "value", usual), **looks}
        )
    if kind is bool:
        return gr.Checkbox(**{**shown, **looks})
    if kind is float or "maximum" in looks:
        return gr.Slider(**{**shown, "minimum": 0, "maximum": 0.5, "step": 0.01, **looks})
    if kind is str or kind == str | None:
        return gr.Textbox(**{**shown, **looks})
    return gr.Number(**{**shown, "value": usual or 0, "precision": 0, "minimum": 0, **looks})


_SETTINGS = {one.name: one for one in fields(StudySpec)}
_KIND = get_type_hints(StudySpec)
_RATINGS: tuple[tuple[str, ...], ...] = (
    ("rating_levels", "rating_threshold", "original_first_ms"),
    ("rating_lowest", "rating_highest"),
)
QUALITY = "Quality control"
_GROUPS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Who sees what": (
        ("balanced", "max_views", "min_lag"),
        ("items_per_person", "extra_vote", "label_originals"),
        ("distractors", "lists"),
    ),
    QUALITY: (
        ("set_aside", "practice", "catch_rate"),
        ("catch_warn_after", "catch_pause_after"),
        ("gold_rate", "repeat_rate", "repeat_lag"),
    ),
    "Consent, instructions, end": (
        ("consent", "instructions"),
        ("check", "check_attempts"),
        ("completion_code", "completion_url"),
    ),
    "On screen": (
        ("image_scale", "interpolation"),
        ("background", "lease_seconds", "min_rt_ms"),
    ),
}


def by_task(task: str, headline: str) -> list[Any]:
    """Show what means something in `task` and hide the rest, in the order of `of_one_task`.

    headline: the human score chosen so far, which stays where the task has it.
    """
    scores = _scores_of(task)
    kept = headline if headline in [rule for _, rule in scores] else scores[0][1]
    shown = [gr.update(visible=only == task) for only in ONLY_OF.values()]
    return [*shown, gr.update(choices=scores, value=kept)]


def _scores_of(task: str) -> list[tuple[str, str]]:
    """The human scores that a study of `task` may have, as choices."""
    offered = headlines(task)
    return [(label, rule) for label, rule in CHOICES["headline"] if rule in offered]


def spec_of(values: Mapping[str, Any]) -> StudySpec:
    """The study that filled-in settings ask for; `StudyError` says what to put right."""
    off = {
        name: _SETTINGS[name].default for name, only in ONLY_OF.items() if values["task"] != only
    }
    settings = {**values, **off, "password": values["password"] or None}
    empty = [
        f"{name.replace('_', ' ').capitalize()} is empty; give a whole number."
        for name, value in settings.items()
        if value is None and _KIND[name] is int
    ]
    if empty:
        raise StudyError("\n".join(empty))
    return StudySpec(**{name: _typed(_KIND[name], value) for name, value in settings.items()})


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


def preview_of(
    store: Store, folders: Sequence[Path], people: float | None, values: Mapping[str, Any]
) -> str:
    """What the form as it stands would mean; `StudyError` for a set that cannot be read.

    People are taken to be as quick as those who have answered the same task in other studies.
    """
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
        ),
        _seconds_per_vote(usual_rt_ms(store, spec.task)),
        _of_lists(spec, sets),
    )


def _of_lists(spec: StudySpec, sets: Sequence[SetFolder]) -> str:
    """What to know of the lists before they are drawn; empty without any."""
    ranked = {image_id for one in sets for image_id in one.predicted_originals}
    blind = any(image.image_id not in ranked for one in sets for image in one.images)
    drawn = any(len(one.classes) > spec.list_size for one in sets)
    if not spec.kind.lists or not drawn:
        return ""
    if blind:
        return RANDOM_LISTS
    return TOP_LISTS if spec.distractors is Distractors.TOP else ""


def _seconds_per_vote(looked_ms: float | None) -> float:
    return study_view.SECONDS_PER_VOTE if looked_ms is None else looked_ms / 1000 + BETWEEN


def html(elem_id: str, *, js_on_load: str = "", **settings: Any) -> gr.HTML:
    """An HTML component that brings its own looks."""
    # Gradio's own rules for text would box every table.
    return gr.HTML(elem_id=elem_id, js_on_load=js_on_load, apply_default_css=False, **settings)
