"""Data of the page Pictures: the sets there are, their contents, and which may be deleted."""

import json
import os
import re
import shutil
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeGuard

import pandas as pd

from semsim.base.errors import DataError, WeightsError
from semsim.base.jobs import folders as jobs
from semsim.base.sets.imports import Listed, list_imports, list_pictures
from semsim.base.sets.reader import ReconstructionSet, read_set, set_folders
from semsim.base.sets.set_format import ATTACKED, MANIFEST, RUN
from semsim.base.words import counted, words_of_test
from semsim.distractors.registry import check_classes, classes_of, find_judge, judges
from semsim.importers.import_plan import in_classes
from semsim.lab.sets import key_of
from semsim.sets.strip import spread, strip
from semsim.ui import ScienceContext
from semsim.ui.answers import GoneError

KINDS = ("original", "attacked", "reconstruction")


@dataclass(frozen=True, kw_only=True, eq=False)
class Shelved:
    """A set where it lies.

    Attributes:
        built_in: It came with the product.
        problem: Why it cannot be read.
    """

    key: str
    folder: Path
    built_in: bool
    changed: int
    found: ReconstructionSet | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        return self.folder.name if self.found is None else self.found.name

    @property
    def model(self) -> str:
        return "" if self.found is None else self.found.model

    @property
    def dataset(self) -> str:
        return self._named("dataset")

    @property
    def attack(self) -> str:
        return self._named("attack")

    @property
    def attacker(self) -> str:
        """Of `attacker_words`; "" where it is not known."""
        return "" if self.found is None else self.found.attacker_words

    @property
    def target(self) -> str:
        """Quality of the target model, in words; "" where it was not kept."""
        known = None if self.found is None else self.found.run.get("target")
        return words_of_test(known) if known else ""

    @property
    def at_chance(self) -> bool:
        """True where the target model was no better than guessing."""
        target = {} if self.found is None else self.found.run.get("target")
        return isinstance(target, Mapping) and target.get("at_chance") is True

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Those of its manifest whose attack succeeded; none of a set that cannot be read."""
        return pd.DataFrame() if self.found is None else self.found.pairs

    @property
    def said(self) -> str:
        """Numbers of pairs and of failed attacks, or why the set cannot be read, in words."""
        if self.found is None:
            return self.problem
        status = self.found.manifest["status"]
        failed = int((status != "ok").sum())
        lost = f", {failed} failed" if failed else ""
        return counted(len(status) - failed, "pair") + lost

    @cached_property
    def classes(self) -> list[str]:
        """Those that its pictures show, in order."""
        return [] if self.found is None else sorted({*self.pairs["class_name"].map(str)} - {""})

    def _named(self, entry: str) -> str:
        value = None if self.found is None else self.found.run.get(entry)
        return str(value.get("name", "")) if isinstance(value, Mapping) else str(value or "")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Filter of the sets that a page shows; "" for all.

    Attributes:
        own: "own" or "built in".
    """

    dataset: str = ""
    model: str = ""
    attack: str = ""
    own: str = ""

    def wants(self, one: Shelved) -> bool:
        """Return whether a set passes the filter."""
        asked = ((self.dataset, one.dataset), (self.model, one.model), (self.attack, one.attack))
        own = "built in" if one.built_in else "own"
        return all(want in ("", has) for want, has in (*asked, (self.own, own)))


def shelf(context: ScienceContext) -> list[Shelved]:
    """All sets, one's own and the newest first, then those that came with the product."""
    own = _below([context.data / "runs"], built_in=False)
    return [*sorted(own, key=lambda one: -one.changed), *_below(context.built_in, built_in=True)]


def _below(roots: Sequence[Path], *, built_in: bool) -> list[Shelved]:
    return [_shelved(folder, _changed(folder), built_in) for folder in set_folders(roots)]


def _changed(folder: Path) -> int:
    times = [
        os.stat(folder / name).st_mtime_ns for name in (RUN, MANIFEST) if (folder / name).exists()
    ]
    return max(times, default=0)


@lru_cache(maxsize=512)
def _shelved(folder: Path, changed: int, built_in: bool) -> Shelved:
    facts: dict[str, Any] = {
        "key": key_of(folder),
        "folder": folder,
        "built_in": built_in,
        "changed": changed,
    }
    try:
        return Shelved(found=read_set(folder), **facts)
    except DataError as error:
        return Shelved(problem=str(error), **facts)


def find_shelved(context: ScienceContext, key: str) -> Shelved:
    """The set with this key; `DataError` where it is gone."""
    for one in shelf(context):
        if one.key == key:
            return one
    raise GoneError("This set is gone. All pictures lists those there are.")


@lru_cache(maxsize=256)
def strip_of(one: Shelved) -> bytes:
    """A PNG file of a few pairs of a set; `DataError` where none can be read."""
    if one.found is None:
        raise DataError(one.problem)
    pairs = one.pairs
    places = [pairs.iloc[place] for place in spread(len(pairs))]
    return strip([(Path(row["original"]), Path(row["reconstruction"])) for row in places])


def shown_classes(one: Shelved) -> list[str]:
    """Return the class names of the pairs in the strip of a set."""
    if one.found is None:
        return []
    pairs = one.pairs
    return [str(pairs.iloc[place]["class_name"]) for place in spread(len(pairs))]


def picture_file(one: Shelved, row: int, kind: str) -> Path:
    """The file of a picture of a set, by its place among the pairs; `DataError` for none."""
    if one.found is None:
        raise DataError(one.problem)
    pairs = one.pairs
    path = pairs.iloc[row][kind] if kind in KINDS and 0 <= row < len(pairs) else None
    if path is None or not Path(path).resolve().is_relative_to(one.folder):
        raise GoneError("There is no such picture.")
    return Path(path)


@dataclass(frozen=True, kw_only=True)
class ShownPair:
    """A pair on the page of a set.

    Attributes:
        attacked: Whether what was attacked is another picture.
    """

    row: int
    image_id: str
    class_name: str
    attacked: bool
    notes: str


def pairs_of(one: Shelved, class_name: str = "") -> list[ShownPair]:
    """The pairs of a set, of one class or of all, in order of class."""
    if one.found is None:
        raise DataError(one.problem)
    pairs = one.pairs
    rows = [
        ShownPair(
            row=place,
            image_id=str(row["image_id"]),
            class_name=str(row["class_name"]),
            attacked=row[ATTACKED] is not None and row[ATTACKED] != row["original"],
            notes=_notes(row),
        )
        for place, row in enumerate(pairs.to_dict("records"))
        if class_name in ("", str(row["class_name"]))
    ]
    return sorted(rows, key=lambda shown: (shown.class_name, shown.image_id))


def _notes(row: Mapping[Hashable, Any]) -> str:
    """Return the attack's note on its picture; "" where it has none."""
    if row["blown_up"] is True:
        return "the solution left the range of pictures"
    return "no closer than a grey picture" if row["worse_than_grey"] is True else ""


def facts_of(one: Shelved) -> list[tuple[str, str]]:
    """Return the known facts of a run, as the page of a set lists them."""
    if one.found is None:
        return []
    run = one.found.run
    target, brought = _mapping(run.get("target")), _mapping(run.get("import"))
    size = _mapping(run.get("dataset")).get("size")
    facts = [
        ("Model", one.model),
        ("Accuracy of the model", one.target),
        ("Trained with", _plugin(target.get("strategy"))),
        ("Attack", _plugin(run.get("attack"))),
        ("Attacker", one.attacker),
        ("Data set", one.dataset),
        ("Size", f"{size[1]}×{size[0]} pixels" if _is_size(size) else ""),
        ("Seed", str(run.get("seed", ""))),
        ("Distractor model", str(_mapping(run.get("predictor")).get("name", ""))),
        ("Brought in from", _origin(brought)),
        ("Computed in", f"{run['seconds']:g} s" if isinstance(run.get("seconds"), float) else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_size(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and len(value) == 2


def _plugin(record: Any) -> str:
    """A name and its settings, as people write them."""
    known = _mapping(record)
    settings = _mapping(known.get("settings"))
    told = ", ".join(f"{name} {value}" for name, value in settings.items() if value not in ("", 0))
    return " · ".join(part for part in (str(known.get("name", "")), told) if part)


def _origin(brought: Mapping[str, Any]) -> str:
    return f"{brought.get('source', '')}, read as {brought.get('kind', '')}" if brought else ""


def why_kept(context: ScienceContext, one: Shelved) -> str:
    """Return why a set cannot be deleted; "" where it can."""
    if one.built_in:
        return "It came with SemSim Studio: its examples and tests are made of it."
    studies = context.used_by(one.folder)
    if studies:
        names = ", ".join(studies)
        return f"{counted(len(studies), 'study', 'studies')} asked people about it: {names}."
    for folder, found in list_imports(context.data / "imports").items():
        if folder.name == one.folder.parent.name and found.problem is None:
            return (
                f"The {found.holds} brought in with it, {found.name}, are about its pictures. "
                "Delete them on the page Pictures first."
            )
    return ""


def delete(context: ScienceContext, key: str, typed: str) -> str:
    """Delete the set with this key, and its import where nothing is left of it; returns its name.

    Args:
        typed: Its name, as whoever wants it gone has typed it.

    Raises:
        DataError: Where it may not go.
    """
    one = find_shelved(context, key)
    why = why_kept(context, one)
    if why:
        raise DataError(f"{one.name} stays. {why}")
    if typed.strip() != one.name:
        raise DataError(f"To delete the set, type its name: {one.name}.")
    shutil.rmtree(one.folder)
    above = one.folder.parent
    left = [path for path in above.iterdir() if path.is_dir()]
    if above.parent == (context.data / "runs").resolve() and not left:
        shutil.rmtree(above)
    return one.name


@dataclass(frozen=True, kw_only=True)
class ImportEntry:
    """Votes, labels or pictures to attack, from elsewhere.

    Attributes:
        holds: Which of these it is.
        key: Name of its folder.
        said: How much it is.
    """

    folder: Path
    name: str
    holds: str
    said: str
    problem: str

    @property
    def key(self) -> str:
        return self.folder.name


def brought(context: ScienceContext) -> list[ImportEntry]:
    """Return what was brought in beside sets, by name: pictures to attack first."""
    pictures = [
        (folder, found, "pictures", f"{pictures_words(found)}, to attack")
        for folder, found in list_pictures(context.data).items()
    ]
    human = [
        (folder, found, found.holds, _votes_words(found))
        for folder, found in list_imports(context.data / "imports").items()
    ]
    return [
        ImportEntry(
            folder=at,
            name=one.name,
            holds=holds,
            said="" if one.problem else said,
            problem=one.problem or "",
        )
        for at, one, holds, said in (*pictures, *human)
    ]


def pictures_words(found: Listed) -> str:
    """Return the numbers of pictures to attack and of their classes in an import, in words."""
    return in_classes(found.count("pictures"), found.count("classes"))


def _votes_words(found: Listed) -> str:
    return "no votes" if found.holds == "labels" else counted(found.count("votes"), "vote")


def delete_brought(context: ScienceContext, holds: str, key: str, typed: str) -> str:
    """Delete what was brought in; sets that came with votes or that attacks made of pictures stay.

    Returns its name. Raises `DataError` for another name, and while a job works on it.
    """
    for one in brought(context):
        if (one.holds, one.key) == (holds, key):
            break
    else:
        raise GoneError("This set no longer exists. Load the page again.")
    if typed.strip() != one.name:
        raise DataError(f"To delete the {one.holds}, type their name: {one.name}.")
    if at_work := _at_work_on(context, one.folder):
        raise DataError(f"{one.name} stays: {', '.join(at_work)} works on it. Cancel that first.")
    shutil.rmtree(one.folder)
    return one.name


def _at_work_on(context: ScienceContext, folder: Path) -> list[str]:
    """Titles of the jobs that wait or run and were asked for something of a folder."""
    path = json.dumps(str(folder.resolve()), ensure_ascii=False)[1:-1]  # as an order has it
    named = re.compile(rf'{re.escape(path)}(?=[",/\\])')  # and no folder that only begins so
    asked = [
        (job, job.folder / jobs.ORDER_FILE)
        for job in jobs.list_jobs(context.data / "jobs")
        if jobs.state(job) in jobs.LIVE
    ]
    return [
        job.title for job, file in asked if file.is_file() and named.search(file.read_text("utf-8"))
    ]


def same_originals(context: ScienceContext, dataset: str, class_name: str) -> dict[str, list[Any]]:
    """By original of a class, every set of a data set that has it, with the row of its pair."""
    found: dict[str, list[Any]] = {}
    for one in shelf(context):
        if one.found is None or one.dataset != dataset:
            continue
        for shown in pairs_of(one, class_name):
            found.setdefault(shown.image_id, []).append((one, shown))
    return dict(sorted(found.items()))


def judge_choices(context: ScienceContext, plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each trained judge, and why it cannot read what a plan has found; "" where it can."""
    return [(name, _why_not(context, name, plan)) for name in judges(context.checkpoints)]


def _why_not(context: ScienceContext, name: str, plan: Mapping[str, Any]) -> str:
    try:
        check_judge(context, name, plan)
    except (DataError, WeightsError) as error:
        return str(error)
    return ""


def check_judge(context: ScienceContext, name: str, plan: Mapping[str, Any]) -> None:
    """Raise `DataError` unless the judge knows just the classes of what a plan has found.

    Raises `WeightsError` where there is no judge of this name.
    """
    known = classes_of(find_judge(name, context.checkpoints))
    for one in plan["sets"]:
        check_classes(known, name, one["classes"], "What was found")
