"""Outlook of a draft of a study, step by step: what is wrong, what it takes, what it asks.

A draft is the mapping of `study.study_file`, as the page sends it; sets go by their names.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from annotation.design.candidates import RANDOM_LISTS, list_facts
from annotation.design.study_plan import PlannedItem, StudyPlan, list_key
from annotation.design.workload import Workload, load_of, told_by_lists, workload
from annotation.domain import StimulusKind
from annotation.errors import StudyError
from annotation.spec import (
    SETTINGS,
    USUAL_TASK,
    Distractors,
    Setting,
    StudySpec,
    as_text,
    headlines,
)
from annotation.store import Store
from annotation.study.create import Examination, examine, listed, outline, problems_between
from annotation.study.labelling import usual_rt_ms
from annotation.study.protocols import problems_of
from annotation.study.sets import SetFolder, read_set
from annotation.study.study_file import StudyFile
from annotation.tasks import KINDS
from annotation.texts import counted
from annotation.web import label_page
from semsim.base.stats.standstill import evidence

T = TypeVar("T")
TOP_LISTS = (
    "With the likeliest words, a class that is rarely confused is on few lists but its own. Lists "
    "alone may then give answers away."
)
MOST_DRAWN = 4000  # originals whose lists are drawn while somebody fills the form in
SHOWN = 12  # items of a preview
STEPS = ("pictures", "question", "people", "review")
Known = Mapping[str, Path]  # the sets there are, by name


def steps() -> dict[str, dict[str, list[Setting]]]:
    """Every setting that a page can make, by step and title of its group, "" for the first one."""
    found: dict[str, dict[str, list[Setting]]] = {step: {"": []} for step in STEPS}
    for one in SETTINGS.values():
        if one.at:
            step, title = one.at
            found[step].setdefault(title, []).append(one)
    return found


def scores_of() -> dict[str, list[str]]:
    """The human scores that a study may have, by task."""
    return {name: [rule.value for rule in headlines(name)] for name in KINDS}


def without_others(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` without those that mean nothing in their task; where 0 means no limit, without."""
    task = settings.get("task", USUAL_TASK)
    meant = {name: value for name, value in settings.items() if SETTINGS[name].task in ("", task)}
    limitless = {name for name, one in SETTINGS.items() if one.empty and one.of is int}
    return {
        name: None if name in limitless and value == 0 else value for name, value in meant.items()
    }


def fields_of(settings: Mapping[str, Any], error: StudyError) -> dict[str, str]:
    """Return the setting that each problem of `error`, which `settings` raise, is put right at.

    It goes away without it, or comes by it alone; of several settings it is one of the last step.
    """
    lines, found = set(str(error).splitlines()), dict[str, str]()
    usual = {"name": "-", "task": settings["task"]}
    own = [name for name in settings if name not in usual]
    for name in (one for step in reversed(STEPS) for one in own if _is_of(step, one)):
        others = {one: value for one, value in settings.items() if one != name}
        gone = lines - {*_problems(others)}
        for line in gone or lines & {*_problems({**usual, name: settings[name]})}:
            found.setdefault(line, name)
    return found


def _by_step(error: StudyError, fields: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the problems of `error` by the step of their settings, see `fields_of`."""
    found: dict[str, list[str]] = {}
    for line in str(error).splitlines():
        at = SETTINGS[fields[line]].at if line in fields else None
        found.setdefault(at[0] if at else "question", []).append(line)
    return found


def _is_of(step: str, name: str) -> bool:
    at = SETTINGS[name].at
    return at is not None and at[0] == step


def _problems(settings: Mapping[str, Any]) -> list[str]:
    try:
        StudySpec(**settings)
    except StudyError as error:
        return str(error).splitlines()
    return []


@dataclass(frozen=True, kw_only=True)
class DraftCheck:
    """Outlook of a draft.

    Attributes:
        problems: By step.
        fields: The setting of each problem that one setting is to blame for.
        said: Sentences by step.
        enough: Whether the expected people are enough.
        plan: What would be asked, None where something is wrong with it or no set is chosen.
    """

    problems: Mapping[str, Sequence[str]]
    said: Mapping[str, Sequence[str]]
    enough: bool = True
    plan: StudyPlan | None = None
    folders: Sequence[SetFolder] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


def chosen(draft: StudyFile, known: Known) -> list[Path]:
    """The folders of the sets that a draft names; raises `StudyError` for any other folder.

    What comes from a browser must not make the server read wherever it likes.
    """
    found = [_folder(name, known) for name in draft.sets]
    gone = [name for name, folder in zip(draft.sets, found, strict=True) if folder is None]
    if gone:
        raise StudyError(f"Not on this machine (any more): {', '.join(gone)}. Choose others.")
    if draft.manifests:
        raise StudyError("A page takes no manifests; make this study in a terminal.")
    return [folder for folder in found if folder is not None]


def _folder(name: str, known: Known) -> Path | None:
    """The known set that `name` means: its own, or the one place whose end it is."""
    if name in known:
        return known[name]
    parts = [part for part in Path(name).parts if part not in (".", "..")]
    ends = [one for one in known.values() if parts and list(one.parts[-len(parts) :]) == parts]
    return ends[0] if len(ends) == 1 else None


def read(folders: Sequence[Path]) -> list[SetFolder]:
    """The sets in these folders; those that are as they were are not read again."""
    return [_read(folder, _age(folder)) for folder in folders]


def _age(folder: Path) -> tuple[int, ...]:
    files = ("run.json", "manifest.parquet", "predictions.parquet", "jury.parquet")
    return tuple(
        path.stat().st_mtime_ns if (path := folder / name).exists() else 0 for name in files
    )


@lru_cache(maxsize=64)
def _read(folder: Path, age: tuple[int, ...]) -> SetFolder:
    del age
    return read_set(folder)


def look(store: Store, draft: StudyFile, known: Known) -> DraftCheck:
    """Return the outlook of the draft as it stands."""
    settings = without_others(draft.settings)
    name = str(settings.get("name", "")).strip() or "-"  # asked for in the last step
    named = {**settings, "name": name}
    problems: dict[str, list[str]] = {}
    fields: dict[str, str] = {}
    folders: list[SetFolder] = []
    spec = None
    try:
        spec = StudySpec(**named) if "task" in named else None
    except StudyError as error:
        fields = fields_of(named, error)
        problems = _by_step(error, fields)
    if "task" not in named:
        problems["question"] = ["Choose what people are asked."]
    try:
        folders = read(chosen(draft, known))
        if spec is not None and folders:
            problems = _between(spec, folders)
            if not problems:
                return _told(store, draft, outline(spec, folders), folders)
    except StudyError as error:
        problems["pictures"] = str(error).splitlines()
    return DraftCheck(problems=problems, said=_of_sets(folders), folders=folders, fields=fields)


def _between(spec: StudySpec, folders: Sequence[SetFolder]) -> dict[str, list[str]]:
    """Return why sets cannot be asked about together, or not so, by step."""
    between, own = problems_between(spec, folders), problems_of(spec)
    parts = {"question": own, "pictures": [one for one in between if one not in own]}
    return {step: lines for step, lines in parts.items() if lines and between}


def _told(
    store: Store, draft: StudyFile, plan: StudyPlan, folders: Sequence[SetFolder]
) -> DraftCheck:
    spec, n = plan.spec, draft.people or plan.spec.votes_per_item
    usual, n_gold = usual_rt_ms(store, spec.task), len(draft.gold.strip().splitlines()[1:])
    found = workload(spec, load_of(plan, drawn=False), n, usual_ms=usual, n_gold=n_gold)
    wage = draft.wage or 0
    cost = [f"At {wage:g} an hour that costs about {found.hours * wage:,.2f}."] if wage else []
    early = [f"An early end: {evidence(spec.quiet_looks)}"] if spec.quiet_looks else []
    lists = _of_lists(plan, folders)
    said = {
        **_of_sets(folders),
        "question": lists,
        "people": [
            found.work,
            *cost,
            f"{found.people}.",
            found.risk,
            *early,
            *(line.split(" With inside")[0] for line in lists[:1]),
        ],
        "review": review(plan, found, n),
    }
    enough = found.annotators_enough is not None and n >= found.annotators_enough
    return DraftCheck(problems={}, said=said, enough=enough, plan=plan, folders=folders)


def _of_sets(folders: Sequence[SetFolder]) -> dict[str, list[str]]:
    if not folders:
        return {}
    originals = {image.image_id for one in folders for image in one.images}
    pictures = sum(len(one.images) for one in folders)
    guessing = [one.model for one in folders if one.target.at_chance]
    said = [
        f"{counted(len(folders), 'set')}: {counted(pictures, 'reconstruction')} of "
        f"{counted(len(originals), 'original')}, data set {folders[0].dataset} with "
        f"{counted(len(folders[0].classes), 'class', 'classes')}."
    ]
    if guessing:
        said.append(
            f"{counted(len(guessing), 'target')} guess{'es' if len(guessing) == 1 else ''} at "
            "chance. Models at chance are little evidence about trained ones."
        )
    return {"pictures": said}


def _of_lists(plan: StudyPlan, folders: Sequence[SetFolder]) -> list[str]:
    """Return sentences on what a guesser reaches who sees only the lists; empty without any."""
    spec = plan.spec
    if not spec.kind.lists:
        return []
    if len(plan.candidates) > MOST_DRAWN:
        blind = any(not one.predicted_originals for one in folders)
        return [RANDOM_LISTS] if blind else []
    facts = list_facts(plan.candidates.values())
    top = [TOP_LISTS] if spec.distractors is Distractors.TOP else []
    return [*reversed(facts.said), *told_by_lists(plan), *top] if facts else top


def review(plan: StudyPlan, found: Workload, n: int) -> list[str]:
    """All that the study would be, in sentences; `n` people are expected."""
    spec, kinds = plan.spec, Counter(item.kind for item in plan.items)
    never = (StimulusKind.DECOY, StimulusKind.ORIGINAL)
    extra = [counted(kinds[kind], kind.value) for kind in never if kinds[kind]]
    with_extra = f", {' and '.join(extra)} among them" if extra else ""
    failed = (
        f" {counted(plan.n_failed, 'failed reconstruction')} left out." if plan.n_failed else ""
    )
    most = max((len(one.classes) for one in plan.candidates.values()), default=0)
    lists = f" Each picture comes with up to {most} words, one of them right." if most else ""
    return [
        f"People look at {counted(len(plan.items), 'item')} of "
        f"{counted(len(plan.models), 'target model')} on {plan.dataset}{with_extra}.{failed}",
        f"They are asked: “{spec.wording(spec.task + '.question')}”{lists}",
        f"Each item gets {counted(spec.votes_per_item, 'vote')} from different people. "
        f"{found.people}; {counted(n, 'is', 'are')} expected.",
        f"The human score is {spec.headline.label.split(':')[0].lower()}; it is fixed before the "
        "first vote.",
        _of_checks(spec, len(plan.items)),
        "Annotators never see the name of the study, of a model or of an attack; they "
        f"read “{spec.shown_title}”.",
    ]


def _of_checks(spec: StudySpec, n_items: int) -> str:
    never = spec.repeat_rate > 0 and n_items <= spec.repeat_lag
    rates = {"catch_rate": spec.catch_rate, "gold_rate": spec.gold_rate}
    rates |= {"repeat_rate": 0.0 if never else spec.repeat_rate}
    some = [f"{one:.0%} {SETTINGS[name].label.lower()}" for name, one in rates.items() if one]
    before = [
        words
        for words, there in (
            ("a consent form", spec.consent),
            ("questions on the instructions", spec.check),
            (counted(spec.practice, "practice item"), spec.practice),
        )
        if there
    ]
    first = f"Before the first item: {', '.join(before)}. " if before else ""
    rest = f"Among the items: {', '.join(some)}, which never count." if some else "No checks."
    lacks = (
        f" No blind repeat will come: one comes {counted(spec.repeat_lag, 'vote')} after its item "
        f"at least, and there are {counted(n_items, 'item')}."
        if never
        else ""
    )
    return first + rest + lacks


def unusual(spec: StudySpec) -> list[tuple[str, str, str]]:
    """The settings that are not as usual: label, value, what is usual; never the password."""
    usual = StudySpec(name=spec.name, task=spec.task)
    return [
        (one.label, _words(getattr(spec, one.name)), _words(getattr(usual, one.name)))
        for one in SETTINGS.values()
        if one.name not in ("name", "task", "password", "title")
        and getattr(spec, one.name) != getattr(usual, one.name)
    ]


def _words(value: Any) -> str:
    return as_text(value) or "none"


def made_of(draft: StudyFile, known: Known) -> Examination:
    """Everything read and checked; raises `StudyError` for settings no study can have."""
    spec = StudySpec(**without_others(draft.settings))
    return examine(spec, chosen(draft, known), gold=draft.answers)


def problems_of_making(
    draft: StudyFile, examined: Examination, known: Known
) -> dict[str, list[str]]:
    """Return the problems that kept a study from being made of a draft, by step.

    Problems that go away without gold items stand by the people, the others by the pictures.
    """
    bare = replace(draft, gold="", settings={**draft.settings, "gold_rate": 0.0})
    left = made_of(bare, known).problems
    gold = {line for line in examined.problems if line not in left}
    parts: dict[str, list[str]] = {}
    for line in listed(examined.problems).splitlines():
        parts.setdefault("people" if line in gold else "pictures", []).append(line)
    return parts


def page_of(spec: StudySpec, total: int) -> dict[str, Any]:
    """Return the data that the labelling page gets of a study that is only tried."""
    return {
        **label_page.shown(spec),
        "key": "preview",
        "annotator": "nobody: a preview",
        "sign_in": "#",
        "step": "main",
        "place": None,
        "progress": {"done": 0, "left": total, "total": total, "median_rt_ms": None},
    }


def items_of(plan: StudyPlan, picture: Any) -> list[dict[str, Any]]:
    """The first items of a plan as the labelling page gets them.

    Args:
        picture: The address of a picture of (model, image_id), original or not.
    """
    lists = plan.candidates
    return as_told(
        plan.items,
        lambda item: _addresses(plan, item, picture),
        lambda item: lists[list_key(plan.spec, item)].classes if lists else (),
    )


def as_told(
    items: Sequence[T], images: Callable[[T], list[str]], candidates: Callable[[T], Sequence[str]]
) -> list[dict[str, Any]]:
    """Some of all items, from different models, as the labelling page gets them."""
    return [
        {
            "item": str(number),
            "images": images(item),
            "candidates": list(candidates(item)),
            "lease_until": "9999-01-01T00:00:00+00:00",
        }
        for number, item in enumerate(items[:: max(1, len(items) // SHOWN)][:SHOWN])
    ]


def _addresses(plan: StudyPlan, item: PlannedItem, picture: Any) -> list[str]:
    shown = item.shown
    one = picture(shown.model, shown.image_id, "reconstruction" if shown.model else "original")
    if not plan.spec.kind.beside:
        return [one]
    return [picture(shown.model, item.image_id, "original"), one]
