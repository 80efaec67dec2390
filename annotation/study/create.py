"""Making a study: everything is read and checked before anything is written.

A manifest describes sets by one table: .csv, .jsonl or .parquet, a row a reconstruction. Columns:
model, dataset, attack, image_id, class_name, original, reconstruction and, if known, attacked. The
last three are paths from the manifest's folder on, and lie in it. Row 1 is the first below the
header. Text in CSV that was escaped for spreadsheets is restored.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from annotation import images as kept
from annotation.design import quality
from annotation.design.candidates import list_facts
from annotation.design.quality import Gold
from annotation.design.study_plan import Original, Reconstruction, StudyPlan, plan_study
from annotation.design.workload import load_of, told_by_lists, workload
from annotation.domain import Study
from annotation.errors import StudyError
from annotation.formats.plain import read_table
from annotation.spec import StudySpec
from annotation.store import Store, studies
from annotation.study.protocols import problems_of
from annotation.study.sets import SetFolder, SetImage, place_below, read_set
from annotation.tasks import KINDS
from annotation.tasks.kind import NONE
from annotation.texts import counted, flaw, flaw_of_class
from semsim.base.alike import alike, called, partners, written
from semsim.base.errors import SemsimError
from semsim.base.picture_files import PictureFacts, notes_on, read_picture, read_pixels
from semsim.base.table_files import REMARKS, whole_texts
from semsim.base.words import first_of

PATHS = ("original", "reconstruction")
NAMES = ("model", "dataset", "attack", "image_id", "class_name")
COLUMNS = (*NAMES, *PATHS)
ATTACKED = "attacked"
_TIDY = ("model", "dataset", "attack", "image_id")  # two forms of a class are told, not joined

Row = Mapping[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Hold a manifest: one set a model, every problem with its row, columns not used.

    Attributes:
        remarks: What was taken for granted of the file.
    """

    sets: tuple[SetFolder, ...]
    problems: tuple[str, ...]
    unused: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def read_manifest(path: Path) -> Manifest:
    """The manifest in `path`; rows with problems are in no set. No image is opened.

    Raises `StudyError` for a file that is no such table.
    """
    path = Path(path).resolve()
    table = read_table(path, COLUMNS)
    if ATTACKED in table.columns:
        table[ATTACKED] = table[ATTACKED].astype("str")
    rows = _Rows(path=path)
    for row in table.astype(object).where(table.notna(), None).to_dict("records"):
        rows.add({**row, **{name: written(row[name]) for name in _TIDY if row[name]}})
    if not rows.n_rows:
        rows.problems.append(f"{path} has no row.")
    return Manifest(
        sets=tuple(rows.sets()),
        problems=tuple(rows.problems),
        remarks=tuple(table.attrs.get(REMARKS, ())),
        unused=tuple(str(name) for name in table.columns if name not in (*COLUMNS, ATTACKED)),
    )


@dataclass(kw_only=True)
class _Rows:
    """The rows read so far; `known` says for each thing what the first row about it said."""

    path: Path
    n_rows: int = 0
    problems: list[str] = field(default_factory=list)
    good: dict[str, list[tuple[Row, SetImage]]] = field(default_factory=dict)  # by model
    known: dict[str, tuple[str, int]] = field(default_factory=dict)  # value, row
    places: dict[str, Path] = field(default_factory=dict)  # of paths looked up

    def add(self, row: Row) -> None:
        self.n_rows += 1
        found = list(self._problems(row))
        self.problems += [f"{self._where()}{problem}" for problem in found]
        if not found:
            self.good.setdefault(row["model"], []).append((row, self._image(row)))

    def sets(self) -> Iterator[SetFolder]:
        classes = {row["class_name"] for rows in self.good.values() for row, _ in rows}
        for model, rows in self.good.items():
            yield SetFolder(
                folder=self.path,
                model=model,
                attack=rows[0][0]["attack"],
                dataset=rows[0][0]["dataset"],
                classes=tuple(sorted(classes)),
                images=tuple(image for _, image in rows),
                n_failed=0,
            )

    def _where(self) -> str:
        return f"{self.path.name}, row {self.n_rows}: "

    def _problems(self, row: Row) -> Iterator[str]:
        empty = [name for name in COLUMNS if not (row[name] or "").strip()]
        if empty:
            yield f"{', '.join(empty)} must not be empty."
            return
        for name in NAMES:
            if wrong := (flaw_of_class if name == "class_name" else flaw)(row[name]):
                yield f"{name} {wrong}"
        for name in (*PATHS, ATTACKED):
            if row.get(name):
                try:
                    self._path(row[name])
                except StudyError as error:
                    yield f"{name} {error}"
        yield from self._contradictions(row)

    def _contradictions(self, row: Row) -> Iterator[str]:
        """Yield problems where a row differs from the first row about the same thing."""
        model, image = row["model"], row["image_id"]
        for what, value in (
            ("dataset", row["dataset"]),
            (f"attack on model {model!r}", row["attack"]),
            (f"class_name of image {image!r}", row["class_name"]),
        ):
            first, where = self.known.setdefault(what, (value, self.n_rows))
            if first != value:
                yield f"the {what} is {value!r}, in row {where} it is {first!r}; expected one."
        pair = f"model {model!r} has image {image!r}"
        _, where = self.known.setdefault(pair, ("", self.n_rows))
        if where != self.n_rows:
            yield f"{pair} in row {where} already."

    def _image(self, row: Row) -> SetImage:
        attacked = row.get(ATTACKED)
        return SetImage(
            image_id=row["image_id"],
            class_name=row["class_name"],
            original=self._path(row["original"]),
            reconstruction=self._path(row["reconstruction"]),
            attacked=self._path(attacked) if attacked else None,
            where=self._where(),
        )

    def _path(self, relative: str) -> Path:
        if relative not in self.places:
            self.places[relative] = place_below(self.path.parent, relative)
        return self.places[relative]


T = TypeVar("T")
log = logging.getLogger(__name__)

MOST_PROBLEMS_SHOWN = 30
NOTHING_TO_SHOW = "The sets hold no reconstruction whose attack succeeded."
ROOM = 2**28  # bytes of pixels of originals that are kept while sets are read
GOLD = ("model", "image_id", "answer")  # columns


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Contents of a study that may be made, and everything that is wrong with it.

    Attributes:
        problems: All of them, in the order of the sets, manifests and rows.
        notes: What is not wrong but should be known.
        plan: None where there is a problem.
        content: PNG by SHA-256.
    """

    counts: Mapping[str, int]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    plan: StudyPlan | None = field(repr=False)
    content: Mapping[str, bytes] = field(repr=False)

    def text(self) -> str:
        """The report: counts, notes, every problem."""
        counts = [f"{number:8d} {what}" for what, number in self.counts.items()]
        people = [self.people_needed] if self.plan else []
        return "\n".join([*counts, *people, *self.notes, *self.problems])

    def rows(self) -> list[dict[str, Any]]:
        """The report as a table: what each line is, its words, and the number of a count."""
        people = [self.people_needed] if self.plan else []
        lines = {"people": people, "note": self.notes, "problem": self.problems}
        return [
            *({"kind": "count", "text": what, "n": n} for what, n in self.counts.items()),
            *({"kind": kind, "text": one, "n": None} for kind in lines for one in lines[kind]),
        ]

    @property
    def people_needed(self) -> str:
        """Number of people it takes, and what to expect of so many; empty where nothing is made."""
        if self.plan is None:
            return ""
        found = workload(self.plan.spec, load_of(self.plan))
        return f"{found.people}. {found.risk}"


def create_study(
    store: Store,
    spec: StudySpec,
    sets: Sequence[Path],
    images: kept.Shelf,
    manifests: Sequence[Path] = (),
    *,
    gold: Path | StringIO | None = None,
) -> Study:
    """A running study over the reconstruction sets in the folders `sets` and the files `manifests`.

    Images are copied to `images`; the sets are not needed afterwards. `gold` is a CSV
    file of answers, or its text (`read_gold`), whose reconstructions are not asked about.
    Raises `StudyError` that names the problems found; then nothing has been stored.
    """
    return keep_study(store, examine(spec, sets, manifests, gold=gold), images)


def keep_study(
    store: Store,
    found: Examination,
    images: kept.Shelf,
    tell: Callable[[str], None] = lambda what: None,
) -> Study:
    """The study that has been examined, as `create_study` makes it.

    Args:
        tell: Called with what is done next.
    """
    plan = found.plan
    if plan is None:
        raise StudyError(listed(found.problems))
    tell(f"Keeping {counted(len(found.content), 'picture')}.")
    kept.keep_all(images, found.content.values())
    tell(f"Storing {counted(len(plan.items), 'item')}.")
    now = datetime.now(UTC)
    made = store.write(lambda tx: studies.add_study(tx, plan, now))
    store.settle()
    log.info("Study %s was made, of %d items.", made.id, made.n_items)
    return made


def examine(
    spec: StudySpec,
    sets: Sequence[Path],
    manifests: Sequence[Path] = (),
    *,
    gold: Path | StringIO | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Examination:
    """Read and check all that a study would be made of; nothing is stored.

    Args:
        tell: Called with how many reconstructions have been read, and how many there are.
    """
    reading = _Reading()
    folders = [f for f in (reading.attempt(partial(read_set, folder)) for folder in sets) if f]
    for path in manifests:
        folders += reading.read_manifest(path)
    if not sets and not manifests:
        reading.problems.append(
            "A study needs at least one reconstruction set or manifest; got none."
        )
    reading.problems += problems_between(spec, folders)
    images = [(folder, image) for folder in folders for image in folder.images]
    for done, (folder, image) in enumerate(images):
        tell(done, len(images))
        reading.read_image(folder, image)
    reading.notes += notes_on(reading.sights)
    known, remarks = (reading.attempt(partial(read_gold, gold)) if gold else None) or ([], ())
    reading.notes += remarks
    if not reading.reconstructions and not reading.problems:
        reading.problems.append(NOTHING_TO_SHOW)
    sound = not reading.problems
    plan = reading.attempt(partial(_plan, spec, folders, reading, known)) if sound else None
    reading.notes += _notes_on_lists(plan) if plan else ()
    return Examination(
        counts=_counts(folders, reading, plan),
        problems=tuple(reading.problems),
        notes=tuple(reading.notes),
        plan=plan,
        content=reading.content,
    )


def read_gold(source: Path | StringIO) -> tuple[list[Gold], tuple[str, ...]]:
    """The answers of gold items in a CSV file, or its text, and what was taken for granted of it.

    A row, with the columns `GOLD`, is of one reconstruction. Whether there are such
    reconstructions, and whether they offer the answer, is for `annotation.design.quality` to say.
    Raises `StudyError`.
    """
    name = source.name if isinstance(source, Path) else "Answers of gold items"
    table = whole_texts(
        source if isinstance(source, Path) else source.getvalue(), StudyError, name=name
    )
    rows = table.columns(*GOLD).fillna("")
    gold = [
        Gold(model=model, image_id=image_id, answer=answer, where=f"{name}, {place}: ")
        for place, (model, image_id, answer) in zip(rows.index, rows.to_numpy(), strict=True)
    ]
    return gold, table.remarks


@dataclass
class _Reading:
    """Contents of the sets as far as they are read, and what was wrong with them."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    originals: dict[str, Original] = field(default_factory=dict)
    reconstructions: list[Reconstruction] = field(default_factory=list)
    content: dict[str, bytes] = field(default_factory=dict)  # PNG by SHA-256
    held: dict[tuple[object, ...], str] = field(default_factory=dict)  # that SHA-256 by pixels
    # First originals, and what is known of both pictures of each pair.
    known: dict[Path, tuple[np.ndarray, PictureFacts]] = field(default_factory=dict)
    room: int = ROOM
    sights: dict[str, tuple[PictureFacts, PictureFacts]] = field(default_factory=dict)

    def attempt(self, work: Callable[[], T], where: str = "") -> T | None:
        try:
            return work()
        except SemsimError as error:
            self.problems.append(f"{where}{error}")
            return None

    def read_manifest(self, path: Path) -> tuple[SetFolder, ...]:
        manifest = self.attempt(partial(read_manifest, path))
        if manifest is None:
            return ()
        self.problems += manifest.problems
        self.notes += manifest.remarks
        if manifest.unused:
            self.notes.append(f"{path}: not used are the columns {', '.join(manifest.unused)}.")
        return manifest.sets

    def read_image(self, folder: SetFolder, image: SetImage) -> None:
        self.attempt(partial(self._read_pair, folder, image), image.where)

    def _read_pair(self, folder: SetFolder, image: SetImage) -> None:
        left = self.attempt(partial(self._read_original, image.original), image.where)
        right = self.attempt(partial(read_picture, image.reconstruction), image.where)
        if left is None or right is None:
            return
        original, shown = left[0], np.asarray(right[0])
        self.sights[f"image {image.image_id} of {folder.model}"] = (left[1], right[1])
        _check_size(image.reconstruction, shown, original)
        attacked = self._read_attacked(image, original)
        held = self._hold(original), self._hold(shown)
        error = kept.mean_squared_error(original, shown)
        self.add(folder, image, *held, error, attacked)

    def add(
        self,
        folder: SetFolder,
        image: SetImage,
        original: str = "",
        shown: str = "",
        error: float = 0.0,
        attacked: str | None = None,
    ) -> None:
        """Take an original and its reconstruction, by their SHA-256; "" where they are not read."""
        self._add_original(folder, image, original)
        self.reconstructions.append(
            Reconstruction(
                image_id=image.image_id,
                class_name=image.class_name,
                model=folder.model,
                attack=folder.attack,
                sha256=shown,
                error=error,
                attacked_sha256=attacked,
                jury=folder.jury.get(("reconstruction", image.image_id), ()),
            )
        )

    def _read_original(self, path: Path) -> tuple[np.ndarray, PictureFacts]:
        """Read a picture that every model may have again: once, as long as there is room."""
        if path in self.known:
            return self.known[path]
        picture, sight = read_picture(path)
        pixels = np.asarray(picture)
        if pixels.nbytes <= self.room:
            self.room -= pixels.nbytes
            self.known[path] = pixels, sight
        return pixels, sight

    def _read_attacked(self, image: SetImage, original: np.ndarray) -> str | None:
        if image.attacked is None:
            return None
        pixels = read_pixels(image.attacked)
        _check_size(image.attacked, pixels, original)
        return self._hold(pixels)

    def hold_noise(self, image_id: str, seed: int) -> str:
        """The SHA-256 of an original with its pixels in random order, kept like all others."""
        rng = np.random.default_rng([seed & 0xFFFFFFFF, *image_id.encode()])
        digest = self.originals[image_id].sha256
        return self._hold(kept.shuffled(kept.decode(self.content[digest]), rng))

    def _hold(self, pixels: np.ndarray) -> str:
        """Keep pixels, (H, W, 3) uint8, once: each set has the originals of the others again."""
        key = (pixels.shape, kept.sha256(pixels.tobytes()))
        if key not in self.held:
            content = kept.encode(pixels)
            self.held[key] = kept.sha256(content)
            self.content[self.held[key]] = content
        return self.held[key]

    def _add_original(self, folder: SetFolder, image: SetImage, digest: str) -> None:
        predicted = folder.predicted_originals.get(image.image_id, {})
        new = Original(
            image_id=image.image_id,
            class_name=image.class_name,
            sha256=digest,
            logs=predicted or None,
            jury=folder.jury.get(("original", image.image_id), ()),
        )
        known = self.originals.setdefault(image.image_id, new)
        if known is new:
            return
        self.originals[image.image_id] = replace(
            known, logs=known.logs or new.logs, jury=known.jury or new.jury
        )
        if (known.class_name, known.sha256) != (new.class_name, new.sha256):
            raise StudyError(
                f"{image.original} (class {image.class_name!r}) is not the image that another set "
                f"calls {image.image_id!r} (class {known.class_name!r}); one id must mean one "
                "original in all sets."
            )


def _plan(
    spec: StudySpec, folders: Sequence[SetFolder], reading: _Reading, gold: Sequence[Gold]
) -> StudyPlan:
    originals = list(reading.originals.values())
    gold = _meant(gold, spec, folders, reading)
    aside = quality.set_aside(spec, originals, gold)
    material = quality.Material(
        originals=originals,
        reconstructions=reading.reconstructions,
        aside=aside,
        noise={one: reading.hold_noise(one, spec.seed) for one in aside if spec.catch_rate},
        gold=gold,
    )
    plan = plan_study(
        spec,
        dataset=folders[0].dataset,
        classes=folders[0].classes,
        originals=originals,
        reconstructions=quality.counted(material),
        n_failed=sum(folder.n_failed for folder in folders),
        quality=quality.quality_items(spec, material),
    )
    quality.check_expected(plan)
    judges = sorted({one.judge for one in folders if one.judge and plan.spec.kind.lists})
    targets = {folder.model: folder.target for folder in folders}
    return replace(plan, targets=targets, judges=tuple(judges))


def outline(spec: StudySpec, folders: Sequence[SetFolder]) -> StudyPlan:
    """The plan over sets as far as it can be told without opening a picture; raises `StudyError`.

    Items have no content of their own, and none is there that never counts.
    """
    reading = _Reading()
    for folder in folders:
        for image in folder.images:
            reading.add(folder, image)
    if not reading.reconstructions:
        raise StudyError(NOTHING_TO_SHOW)
    bare = replace(spec, practice=0, catch_rate=0.0, gold_rate=0.0)
    return replace(_plan(bare, folders, reading, ()), spec=spec)


def _meant(
    gold: Sequence[Gold], spec: StudySpec, folders: Sequence[SetFolder], reading: _Reading
) -> list[Gold]:
    """Gold items whose models, ids and answers are written as the sets write them."""
    known: dict[str, set[str]] = {
        "model": {folder.model for folder in folders},
        "image_id": {*reading.originals},
        "answer": {*folders[0].classes, *spec.kind.offered(())},
    }
    for what, names in known.items():
        meant = partners((getattr(row, what) for row in gold), names)
        gold = [replace(r, **{what: meant.get(getattr(r, what), getattr(r, what))}) for r in gold]
    return list(gold)


def _notes_on_lists(plan: StudyPlan) -> tuple[str, ...]:
    facts = list_facts(plan.candidates.values())
    return (*facts.said, *told_by_lists(plan)) if facts else ()


def _counts(
    folders: Sequence[SetFolder], reading: _Reading, plan: StudyPlan | None
) -> dict[str, int]:
    counts = {
        "target models": len(folders),
        "originals": len(reading.originals),
        "classes": len({original.class_name for original in reading.originals.values()} - {""}),
        "reconstructions": len(reading.reconstructions),
        "failed attacks left out": sum(folder.n_failed for folder in folders),
        "problems": len(reading.problems),
    }
    if plan is None:
        return counts
    never = {"items that never count": len(plan.quality)} if plan.quality else {}
    return {**counts, "items": len(plan.items), **never}


def problems_between(spec: StudySpec, folders: Sequence[SetFolder]) -> list[str]:
    """Return why sets cannot be asked about together, or not in this task; opens no picture."""
    problems = []
    for model, count in Counter(folder.model for folder in folders).items():
        if count > 1:
            where = ", ".join(str(f.folder) for f in folders if f.model == model)
            problems.append(f"{count} sets are of model {model!r}; expected one each: {where}.")
    problems += [
        f"{folder.folder} is of data set {folder.dataset!r} with {len(folder.classes)} classes, "
        f"{folders[0].folder} of {folders[0].dataset!r} with {len(folders[0].classes)}; "
        "expected one data set with one list of classes."
        for folder in folders[1:]
        if (folder.dataset, folder.classes) != (folders[0].dataset, folders[0].classes)
    ]
    problems += [problem for folder in folders for problem in _problems_within(folder)]
    return problems + _problems_of_task(spec, folders)


def _problems_within(folder: SetFolder) -> list[str]:
    counts = Counter(image.image_id for image in folder.images)
    twice = [f"{folder.folder} has {n} rows for image {i!r}." for i, n in counts.items() if n > 1]
    unknown = sorted({image.class_name for image in folder.images} - {*folder.classes, ""})
    unlisted = [
        f"{folder.folder} has images of class {name!r}, which its run.json does not list."
        for name in unknown
    ]
    return [*twice, *_unusable_names(folder), *unlisted]


def _unusable_names(folder: SetFolder) -> Iterator[str]:
    for image in folder.images:
        where = image.where or f"{folder.folder}/manifest.parquet, image {image.image_id!r}: "
        found = {"image_id": flaw(image.image_id)}
        if image.class_name:  # else it is not known
            found["class_name"] = flaw_of_class(image.class_name)
        yield from (f"{where}{what} {wrong}" for what, wrong in found.items() if wrong)
    for number, name in enumerate(folder.classes, start=1):
        if wrong := flaw_of_class(name):
            yield f"{folder.folder}/run.json, class {number}: {wrong}"


_SIMULATED = ", ".join(name for name, kind in KINDS.items() if kind.simulated)
_NOT_SIMULATED = (
    "Simulated annotators cannot answer this task: they are networks that name what a picture "
    f"shows and can say nothing else. Take one that they can (--task {_SIMULATED}), let people "
    "answer (without --simulated), or a vision-language model (--voter NAME)."
)


def _problems_of_task(spec: StudySpec, folders: Sequence[SetFolder]) -> list[str]:
    of_jury = spec.simulated and not spec.voter
    if of_jury and not spec.kind.simulated:
        return [_NOT_SIMULATED]
    problems = problems_of(spec)
    problems += [
        f"{folder.folder} {problem}"
        for folder in folders
        for problem in (
            *spec.kind.problems(folder.classes),
            *_without_class(spec, folder),
            *_unnamed(spec, folder.classes),
            *_alike(spec, folder.classes),
        )
    ]
    return problems + (_without_jury(spec, folders) if of_jury else [])


def _without_jury(spec: StudySpec, folders: Sequence[SetFolder]) -> list[str]:
    """Return problems where a juror has not seen what all are asked about."""
    asked = ["reconstruction", *(["original"] if spec.label_originals else [])]
    seen = {
        (folder.folder, *key): {sight.juror for sight in sights}
        for folder in folders
        for key, sights in folder.jury.items()
        if key[0] in asked
    }
    jury = set().union(*seen.values())
    problems = []
    for folder, subject in product(folders, asked):
        who = [seen.get((folder.folder, subject, one.image_id)) for one in folder.images]
        lacking = sum(not one or one != jury for one in who)
        if lacking:
            problems.append(
                f"{folder.folder} lacks the simulated annotators' answers for {lacking} "
                f"{subject}s; they answer from jury.parquet, which `semsim-studio demo "
                "jury` writes into sets of the built-in symbols."
            )
    return problems


def _without_class(spec: StudySpec, folder: SetFolder) -> list[str]:
    lacking = sum(not image.class_name for image in folder.images)
    if not (lacking and folder.classes and spec.kind.lists):
        return []
    pictures = counted(lacking, "picture")
    return [f"has {pictures} without a class. Import it with their classes, or take another task."]


def _unnamed(spec: StudySpec, classes: Sequence[str]) -> list[str]:
    unknown = sorted(set(spec.class_names) - set(classes))
    return [
        f"has no class {name!r}, for which there is a shown name; it has {', '.join(classes[:9])}."
        for name in unknown
    ]


def _alike(spec: StudySpec, classes: Sequence[str]) -> Iterator[str]:
    """Classes that people could not tell from another on a list, or from the answer "none"."""
    shown = {one: spec.wording.class_name(one) for one in dict.fromkeys(classes)}
    none = [spec.wording("label.none"), *(key.label for key in spec.wording.keys(spec.kind))]
    groups: dict[str, list[str]] = {}
    for name, words in shown.items() if spec.kind.lists else ():
        groups.setdefault(alike(words), []).append(name)
        if called([NONE, *none], [words]) and not called([NONE], [name]):
            yield f"shows the class {name!r} as {words!r}, which is an answer; rename the class."
    for names in groups.values():
        if len(names) > 1:
            yield (
                f"has classes that people read as the same word, {shown[names[0]]!r}: "
                f"{', '.join(map(repr, names))}. Give them other shown names (class_names)."
            )


def _check_size(path: Path, pixels: np.ndarray, original: np.ndarray) -> None:
    if pixels.shape != original.shape:
        raise StudyError(
            f"{path} is {_size(pixels)}, its original {_size(original)}; expected the same size."
        )


def _size(pixels: np.ndarray) -> str:
    return f"{pixels.shape[1]}×{pixels.shape[0]}"


def listed(problems: Sequence[str]) -> str:
    """A problem a line, of many the first ones and how many more there are."""
    return first_of(problems, MOST_PROBLEMS_SHOWN, "\n", "\n… and {} more.")
