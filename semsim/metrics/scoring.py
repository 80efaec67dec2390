"""Scores of pairs of images: readers of pairs, what computes and keeps scores, and their tables.

    <scores>/<key>.parquet   image_id and value, one row an image (one row in all for a metric of
                             sets); beside the table, as Parquet metadata, what made it

The key is a hash of the set's images, the metric's settings and its weight files, so a score is
found again by what it was computed from, never by a name. A pair of set and metric that cannot be
judged, such as images too small for it, is kept the same way: an empty table with the reason. One
for which the key is no reason, as a library that is missing, is tried again by the next computing.
What is hashed is the reference image really used: the clean original or the attacked one.
Pairs that belong to no set, of two folders or of tensors, are computed the same way and not kept.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.alike import partners, written
from semsim.base.columns import ATTACKER, LEAKS, SCORE_COLUMNS
from semsim.base.errors import DataError, PictureError, WeightsError
from semsim.base.picture_files import PictureFacts, notes_on, read_picture
from semsim.base.progress import Progress, Report, silent
from semsim.base.sets.reader import read_set
from semsim.base.storage.atomic import whole
from semsim.base.storage.folders import files_below
from semsim.base.storage.optional import arrow
from semsim.base.storage.pieces import key_of
from semsim.base.storage.places import resolved
from semsim.base.storage.records import guarded, require_folder
from semsim.base.storage.versions import software_versions
from semsim.base.table_files import check_columns, read_frame
from semsim.base.words import counted
from semsim.device import cores, keep_freed_memory, pick_device
from semsim.images import is_image_file, read_images, size_words, why_unread
from semsim.metrics import (
    Metric,
    MetricSpec,
    Pairs,
    Reference,
    Resources,
    find_metric,
    is_known,
    summarise,
)
from semsim.metrics.base import PART, judged, settings_of
from semsim.weights import sha256_of

if TYPE_CHECKING:
    from torch import Tensor

# Columns of tables that stay texts, whatever they look like.
TEXTS = (
    *("study", "dataset", "attack", "model", "metric", "image_id", "class_name", "annotator"),
    *("answer", "weights", LEAKS),
)
FORMAT = "semsim-scores/2"  # part of every key: raise it where the same images get other values
SCORE_JOB, LABELS_FILE = "score", "labels.parquet"  # a job's kind, and what is in its folder
WEIGHTS = "weights"
FACT_COLUMNS = ("metric", "n", "standard_error", "notes")
BOOK_COLUMNS = (*SCORE_COLUMNS, WEIGHTS)
PAIR_COLUMNS = ("image_id", "class_name", "original", "reconstruction", "attacked")
_JUDGED = ("image_id", "class_name", "original", "reconstruction")
_LABEL_COLUMNS = ("dataset", "attack", "model", *_JUDGED)
_PARTS_KEPT = 4  # of originals that were read for a metric with a network
_SHOWN = 20  # problems written out in an error

Originals = Callable[[tuple[Path, ...]], "Tensor"]  # reads those of a part from their paths
_Place = Path | str  # of a table of scores: a file, or a key in memory
_Wanted = tuple[Metric, _Place]


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """Pairs of images that are scored together: of a target model, two folders or two tensors.

    Attributes:
        dataset, attack, model: What they are of; "" where they belong to no set.
        attacker: Knowledge of the attacker, see `attacker_words`; "" where not recorded.
        pairs: One row an image, columns `PAIR_COLUMNS`; paths are absolute; class_name, and
            attacked where the attacked image is not known, may be None. Of `images` it has image_id
            alone.
        sizes: Where they may be of several sizes, how many there are of each; those of one size
            follow each other.
        images: The pictures of all pairs, where they are in memory.
        problems: A sentence for every file that was left out, naming it.
        notes: Sentences on what was done to pictures that are in.
    """

    dataset: str = ""
    attack: str = ""
    model: str = ""
    attacker: str = ""
    pairs: pd.DataFrame
    sizes: tuple[int, ...] = ()
    images: Pairs | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name it in words; "" where it belongs to no set."""
        return _title(self.model, self.dataset, self.attack)


def _title(model: str, dataset: str, attack: str) -> str:
    return f"{model} on {dataset} by {attack}" if model else ""


@dataclass(frozen=True, kw_only=True)
class ScoreBook:
    """Known scores of some sets under some metrics.

    Attributes:
        scores: Columns `BOOK_COLUMNS`; image_id is None in the one row of a metric of sets, weights
            is `<file>:<sha256>` of each weight file, with spaces between, missing where there is
            none.
        made: What made the scores, by (set title, metric), of those that have scores.
        unavailable: Metrics without their weights, with the reason.
        refused: (set title, metric) that cannot be judged, with the reason.
        missing: (set title, metric) still to be computed.
        attackers: `PairSet.attacker` by set title, of those that have one.
    """

    scores: pd.DataFrame
    made: dict[tuple[str, str], dict[str, Any]]
    unavailable: dict[str, str]
    refused: dict[tuple[str, str], str]
    missing: tuple[tuple[str, str], ...]
    attackers: Mapping[str, str] = field(default_factory=dict)

    @property
    def facts(self) -> pd.DataFrame:
        """One row a (set, metric) that has scores, columns `FACT_COLUMNS`."""
        rows = [
            (name, one["n"], one["standard_error"], "; ".join(one["notes"]))
            for (_, name), one in self.made.items()
        ]
        return pd.DataFrame(rows, columns=list(FACT_COLUMNS))

    @property
    def reasons(self) -> dict[str, str]:
        """Reasons of metrics without scores, or without those of some set, by name."""
        return self.unavailable | {name: why for (_, name), why in self.refused.items()}

    def beside(self, other: ScoreBook) -> ScoreBook:
        """Return the scores of both, of the same sets under different metrics."""
        return ScoreBook(
            scores=pd.concat([self.scores, other.scores], ignore_index=True),
            made=self.made | other.made,
            unavailable=self.unavailable | other.unavailable,
            refused=self.refused | other.refused,
            missing=self.missing + other.missing,
            attackers={**self.attackers, **other.attackers},
        )

    def record(self) -> dict[str, Any]:
        """Return, ready for JSON, how much there is, why the rest is not, and `summaries`."""
        return {
            "computed": len(self.made),
            "unavailable": self.unavailable,
            "refused": [
                {"set": title, "metric": name, "reason": reason}
                for (title, name), reason in self.refused.items()
            ],
            "rows": summaries(self),
        }


def specs_of(scores: pd.DataFrame) -> list[MetricSpec]:
    """Return the specs of the metrics of a table of scores, in their order."""
    return [find_metric(str(name)).spec for name in scores["metric"].unique()]


def pair_sets_of_folders(folders: Iterable[Path]) -> list[PairSet]:
    """The pairs of each reconstruction set, without images whose attack failed.

    Raises `DataError` where all did, and where two sets are called the same.
    """
    sets = []
    for source in map(read_set, folders):
        dataset, attack = (_name(source.run.get(key)) for key in ("dataset", "attack"))
        pairs = _ordered(source.pairs)
        if pairs.empty:
            raise DataError(f"{source.folder} has no image that was reconstructed.")
        sets.append(
            PairSet(
                dataset=dataset,
                attack=attack,
                model=source.model,
                attacker=source.attacker_words,
                pairs=pairs,
            )
        )
    titles = [one.title for one in sets]
    twice = sorted({title for title in titles if titles.count(title) > 1})
    if twice:
        raise DataError(f"Two sets are both {twice[0]}; give each model one set.")
    return sets


def pair_sets_of_labels(labels: pd.DataFrame) -> list[PairSet]:
    """The pairs of every model in a study's table of labels, in order of name.

    The column `attacked` may be absent; `DataError` where another is.
    """
    check_columns(labels, _LABEL_COLUMNS, "The table of labels", DataError)
    groups = labels.groupby(["dataset", "attack", "model"], sort=True, dropna=False)
    return [
        PairSet(
            dataset=str(dataset),
            attack=str(attack),
            model=str(model),
            attacker=next(iter(rows.get(ATTACKER, pd.Series(dtype=str)).dropna()), ""),
            pairs=_ordered(rows),
        )
        for (dataset, attack, model), rows in groups
    ]


def match_folders(originals: Path, reconstructions: Path) -> PairSet:
    """Pair the images of two folders by path below the folder, without the suffix.

    An image is of the class that its own folder is called after, one at the top of none.
    Names that are the same word are one name, hidden files are none. Left out, and named: images
    without a partner, two files of one name, broken images, kinds that are not read, pairs of two
    sizes. Raises `DataError` where nothing is left.
    """
    left, problems = _images(resolved(originals))
    right, more = _images(resolved(reconstructions))
    problems += more
    meant = partners(right, left)
    right = {meant.get(name, name): path for name, path in right.items()}
    problems += [f"{left[name]} has no reconstruction." for name in left if name not in right]
    problems += [f"{right[name]} has no original." for name in right if name not in left]
    pairs = {name: (left[name], right[name]) for name in sorted(set(left) & set(right))}
    looked = {name: _looked(*of_name) for name, of_name in pairs.items()}
    problems += [found for found in looked.values() if isinstance(found, str)]
    sights = {name: found for name, found in looked.items() if not isinstance(found, str)}
    kept = sorted(sights, key=lambda name: (sights[name][0].size, name))
    if not kept:
        listed = "\n".join(f"  {problem}" for problem in problems[:_SHOWN])
        raise DataError(f"No pair of images in {originals} and {reconstructions}:\n{listed}")
    rows = [
        (name, Path(name).parent.name or None, str(left[name]), str(right[name]), None)
        for name in kept
    ]
    table = pd.DataFrame(rows, columns=list(PAIR_COLUMNS)).astype(
        {"class_name": object, "attacked": object}
    )
    counts = Counter(sights[name][0].size for name in kept)
    return PairSet(
        pairs=table,
        problems=tuple(problems),
        sizes=tuple(counts[size] for size in sorted(counts)),
        notes=tuple(notes_on({name: sights[name] for name in sorted(kept)})),
    )


def pairs_in_memory(images: Pairs) -> PairSet:
    """The pairs that tensors are; the id of each is its place, from 0."""
    ids = [str(place) for place in range(len(images))]
    return PairSet(pairs=pd.DataFrame({"image_id": ids}), images=images)


def read_labels(path: Path, what: str = "labels") -> pd.DataFrame:
    """The labels, or votes, in a table; `DataError` where there are none to be read."""
    if path.suffix.lower() == ".parquet":
        arrow()
    if not path.is_file():
        raise DataError(f"No {what} at {path}. Export them from a study.")
    return read_frame(path, DataError, texts=TEXTS)


def score_sets(
    sets: Sequence[PairSet],
    names: Sequence[str | Metric],
    resources: Resources,
    folder: Path | None,
    report: Report = silent,
) -> ScoreBook:
    """Compute what is not yet in `folder`, then read all of it.

    Metrics that need no weights share one reading of a set, and as many sets are read at once as
    there are cores; the others, which use all cores by themselves, come one after another.
    For those no more than some hundred pictures of a set are in memory at once.

    Args:
        sets: Pairs to score.
        names: Of metrics, as in the registry, or metrics themselves, each of another name.
        resources: Weights and the device.
        folder: Scores are looked for and kept there; None keeps nothing. Never kept are those of a
            metric of the caller's own, whose code of today no key tells.
        report: Told how many pairs are done, each once a metric.

    Raises:
        UnknownNameError: No metric has such a name.
        DataError: An image file is gone.
    """
    keep_freed_memory()
    kept, metrics = _Kept(sets, resources, folder), [_metric(name) for name in names]
    every, done, begun, place = sum(len(one.pairs) for one in sets), 0, 0, ""

    def tell(note: str, more: int = 0) -> None:
        report(Progress(done + more, every * len(metrics), place + note))

    if folder is not None:
        tell("looking for what is known")
    for group in _side_by_side(metrics, resources):
        begun += len(group)
        place = f"{begun} of {counted(len(metrics), 'metric')}, "
        todo, together = kept.lacking(group), _Together(group, kept, tell)
        done += every * len(group) - sum(len(one.pairs) * len(wanted) for one, wanted in todo)
        with closing(_each(together.judge, todo, together.at_once)) as finished:
            for one, n in finished:
                done += n
                if one.title:
                    tell(f"{together.title}: {one.model}")
        if any(one.title for one in sets):
            tell(together.title)
    return kept.book(metrics)


@dataclass(frozen=True, kw_only=True)
class ScoreOrder:
    """Job: metrics to compute of the labels in its folder. scores: where they are kept."""

    metrics: tuple[str, ...]
    scores: Path
    checkpoints: Path
    device: str = "auto"


def do_score(order: ScoreOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Compute what is missing; say how much that was, why the rest is not there, and the means."""
    resources = Resources(checkpoints=order.checkpoints, device=pick_device(order.device))
    pair_sets = pair_sets_of_labels(read_labels(folder / LABELS_FILE))
    return score_sets(pair_sets, order.metrics, resources, order.scores, report).record()


def read_scores(
    sets: Sequence[PairSet], names: Sequence[str | Metric], resources: Resources, folder: Path
) -> ScoreBook:
    """Return what `folder` knows of `sets` under the metrics `names`; computes nothing."""
    return _Kept(sets, resources, folder).book([_metric(name) for name in names])


def summaries(book: ScoreBook) -> list[dict[str, Any]]:
    """Return a row for each model and metric: the attacker, mean, deviation and counts."""
    keys = ["dataset", "attack", "model", "metric"]
    rows = []
    for named, part in book.scores.groupby(keys, sort=False):
        of = dict(zip(keys, map(str, named), strict=True))
        attacker = book.attackers.get(_title(of["model"], of["dataset"], of["attack"]), "")
        rows.append({**of, "attacker": attacker, **asdict(summarise(part["value"].to_numpy()))})
    return rows


def wide_table(one: PairSet, book: ScoreBook, names: Iterable[str]) -> pd.DataFrame:
    """The scores of one set as a row a pair, in order of its id, and a column a metric of images.

    Args:
        names: Of the metrics. `attrs` of the table, which Parquet keeps: for every metric its
            summary and what made it, or the reason why it is unavailable; metrics of sets have only
            that.
    """
    table = one.pairs.drop(columns="attacked", errors="ignore")
    reasons = book.reasons
    records: dict[str, dict[str, Any]] = {}
    for name in names:
        if name in reasons:
            records[name] = {"unavailable": reasons[name]}
            continue
        rows = book.scores[book.scores["metric"] == name]
        records[name] = asdict(summarise(rows["value"].to_numpy())) | book.made[one.title, name]
        if rows["image_id"].notna().all():
            table[name] = rows["value"].to_numpy()
    if one.images is None:
        table = table.sort_values("image_id", ignore_index=True)
    table.attrs = {"format": FORMAT, "metrics": records, "left_out": list(one.problems)}
    return table


def referenced(pairs: pd.DataFrame, reference: Reference) -> pd.DataFrame:
    """`pairs` with the reference image in the column `original`, "" where there is none.

    Takes the columns `PAIR_COLUMNS` and returns all of them but `attacked`.
    """
    table = pairs[list(_JUDGED)]
    return table if reference == "clean" else table.assign(original=pairs["attacked"].fillna(""))


def read_parts(
    one: PairSet, reference: Reference, originals: Originals = read_images, size: int = PART
) -> Iterator[Pairs]:
    """The pairs in parts of at most `size` and of one size, each read when it is asked for.

    Args:
        originals: Reads those on the left from their paths.

    Raises:
        DataError: That names a broken image, one of another size where only one is expected, or
            says how many have no reference.
    """
    if one.images is not None:
        if reference != "clean":
            raise DataError("Two tensors come without the attacked image. Leave @attacked out.")
        yield from one.images.parts(size)
        return
    pairs = referenced(one.pairs, reference)
    lacking = int((pairs["original"] == "").sum())
    if lacking:
        raise DataError(
            f"{lacking} of {len(pairs)} images come without the attacked image that was to be the "
            "reference. Use the metric without @attacked, or sets that record what was attacked."
        )
    ends = list(itertools.accumulate(one.sizes or [len(pairs)], initial=0))
    first = ""
    for begin, end in itertools.pairwise(ends):
        for start in range(begin, end, size):
            rows = pairs.iloc[start : min(start + size, end)]
            part = _read_part(rows, originals)
            found = size_words(part.originals[0])
            if not one.sizes and found != (first := first or found):
                raise DataError(
                    f"{rows['original'].iloc[0]} is {found} but {pairs['original'].iloc[0]} is "
                    f"{first}; all images of a set need one size."
                )
            yield part


def _read_part(rows: pd.DataFrame, originals: Originals) -> Pairs:
    names = rows["class_name"]
    return Pairs(
        originals=originals(tuple(Path(path) for path in rows["original"])),
        reconstructions=read_images([Path(path) for path in rows["reconstruction"]]),
        class_names=None if names.isna().any() else tuple(str(name) for name in names),
    )


def score_key(metric: Metric, images: str, resources: Resources) -> str:
    """Return a hash of what scores depend on; `images` is the `content_hash` of the pairs judged.

    Raises `WeightsError` where the metric's weights are not usable.
    """
    settings: dict[str, Any] = {
        "format": FORMAT,
        "metric": metric.spec.name,
        "settings": settings_of(metric),
        "weights": [sha256_of(path) for path in metric.files(resources)],
        "images": images,
    }
    return key_of(settings, 40)


def content_hash(pairs: pd.DataFrame) -> str:
    """A hash of the images, ids and classes of a `referenced` table, wherever its files lie."""
    digest = hashlib.sha256()
    for image_id, class_name, *files in pairs[list(_JUDGED)].astype(str).to_numpy():
        row = [image_id, class_name, *(_digest(path) for path in files)]
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()


class _Kept:
    """Tables of scores of some sets: in a folder, each under its key, or in memory for one call."""

    def __init__(self, sets: Sequence[PairSet], resources: Resources, folder: Path | None) -> None:
        self.sets, self.resources, self._folder = sets, resources, folder
        self._memory: dict[str, pd.DataFrame] = {}
        self._hashes = cache(
            lambda reference: [content_hash(referenced(one.pairs, reference)) for one in sets]
        )

    def read(self, place: _Place) -> pd.DataFrame | None:
        if isinstance(place, str):
            return self._memory.get(place)
        arrow()
        try:
            with guarded(place, DataError):
                return pd.read_parquet(place)
        except DataError:  # none, or a full disk cut it short: computed again
            return None

    def write(self, place: _Place, table: pd.DataFrame) -> None:
        if isinstance(place, str):
            self._memory[place] = table
            return
        with whole(place) as part:
            table.to_parquet(part, index=False)

    def lacking(self, metrics: Sequence[Metric]) -> list[tuple[PairSet, list[_Wanted]]]:
        """Sets with scores that are not there, and where those belong; none without weights."""
        found: list[list[_Wanted]] = [[] for _ in self.sets]
        for metric in metrics:
            try:
                places = self._places(metric)
            except WeightsError:  # the book finds it again, with its reason
                continue
            for of_set, place in zip(found, places, strict=True):
                table = self.read(place)
                if table is None or table.attrs.get("again"):
                    of_set.append((metric, place))
        return [(one, of_set) for one, of_set in zip(self.sets, found, strict=True) if of_set]

    def book(self, metrics: Sequence[Metric]) -> ScoreBook:
        """All that is there."""
        tables: list[tuple[pd.DataFrame, PairSet, str]] = []
        missing: list[tuple[str, str]] = []
        made: dict[tuple[str, str], dict[str, Any]] = {}
        unavailable: dict[str, str] = {}
        refused: dict[tuple[str, str], str] = {}
        for metric in metrics:
            name = metric.spec.name
            try:
                places = self._places(metric)
            except WeightsError as error:
                unavailable[name] = str(error)
                continue
            for one, place in zip(self.sets, places, strict=True):
                found = self.read(place)
                if found is None:
                    missing.append((one.title, name))
                elif "refused" in found.attrs:
                    refused[one.title, name] = str(found.attrs["refused"])
                else:
                    made[one.title, name] = {str(key): value for key, value in found.attrs.items()}
                    tables.append((found, one, name))
        return ScoreBook(
            scores=_scores(tables),
            made=made,
            unavailable=unavailable,
            refused=refused,
            missing=tuple(missing),
            attackers={one.title: one.attacker for one in self.sets if one.attacker},
        )

    def _places(self, metric: Metric) -> list[_Place]:
        """Name the place of the scores of each set; `WeightsError` without the metric's weights."""
        metric.files(self.resources)
        if self._folder is None or not _has_key(metric):
            return [f"{metric.spec.name} {place}" for place in range(len(self.sets))]
        keys = (
            score_key(metric, images, self.resources)
            for images in self._hashes(metric.spec.reference)
        )
        return [self._folder / f"{key}.parquet" for key in keys]


def _has_key(metric: Metric) -> bool:
    """Return whether a key tells what a metric computes: the registry's, or one with a digest."""
    name = metric.spec.name
    return hasattr(metric, "sha256") or (is_known(name) and find_metric(name) == metric)


class _Together:
    """Metrics that are computed together, with their judges and what is read for them.

    Attributes:
        tell: Called with a note and how many pairs of the set at hand are done.
    """

    def __init__(
        self, metrics: Sequence[Metric], kept: _Kept, tell: Callable[[str, int], None]
    ) -> None:
        self.title = metrics[0].spec.title if len(metrics) == 1 else f"{len(metrics)} metrics"
        self._kept, self._tell = kept, tell
        self._heavy = _has_weights(metrics[0], kept.resources)
        # Loaded when the first set asks for it.
        self._judges = {
            one.spec.name: cache(partial(one.prepare, kept.resources)) for one in metrics
        }
        # Those of most sets are those of the set before.
        most = 1 + max((len(one.pairs) for one in kept.sets), default=0) // PART
        self._originals = lru_cache(maxsize=_PARTS_KEPT if self._heavy else most)(read_images)

    @property
    def at_once(self) -> int:
        """Sets that are computed at once."""
        return 1 if self._heavy else max(1, min(cores(), len(self._kept.sets)))

    def judge(self, one: PairSet, wanted: Sequence[_Wanted]) -> tuple[PairSet, int]:
        """Compute and keep scores of a set; returns it, and how many pairs were judged."""

        def lazily(reference: Reference) -> Iterator[Pairs]:
            return read_parts(one, reference, self._originals, PART)

        # Several metrics share what is read.
        read = lazily if self._heavy else cache(lambda reference: list(lazily(reference)))
        n = len(one.pairs)
        for place, (metric, goal) in enumerate(wanted):
            parts = self._parts(one, metric, read, place * n)
            self._kept.write(goal, self._judged(metric, one, parts))
            if not one.title:
                self._tell(metric.spec.title, (place + 1) * n)
        return one, len(wanted) * n

    def _parts(
        self,
        one: PairSet,
        metric: Metric,
        read: Callable[[Reference], Iterable[Pairs]],
        done: int,
    ) -> Iterator[Pairs]:
        """Yield the parts of a set and report each, unless sets go side by side."""
        n = 0
        for part in read(metric.spec.reference):
            if not one.title:
                self._tell(metric.spec.title, done + n)
            elif self._heavy:
                self._tell(f"{one.model}, image {n + 1:,} of {len(one.pairs):,}", n)
            yield part
            n += len(part)

    def _judged(self, metric: Metric, one: PairSet, parts: Iterable[Pairs]) -> pd.DataFrame:
        """The scores of one set, or an empty table that says why it cannot be judged."""
        record: dict[str, Any]
        try:
            scores = judged(self._judges[metric.spec.name](), parts, metric.spec)
        except (DataError, WeightsError) as error:
            table = pd.DataFrame({"image_id": [], "value": []})
            again = isinstance(error, WeightsError | PictureError)  # no word of images, as the key
            record = {"refused": str(error), "again": again}
        else:
            ids = one.pairs["image_id"].astype(str).tolist() if metric.spec.per_image else [None]
            table = pd.DataFrame({"image_id": ids, "value": scores.values})
            record = {"standard_error": scores.standard_error, "notes": list(scores.notes)}
        record |= {**provenance(metric, self._kept.resources), "n": len(one.pairs)}
        table.attrs.update(record)
        return table


def _each(
    work: Callable[[PairSet, Any], tuple[PairSet, int]],
    todo: Sequence[tuple[PairSet, Any]],
    n: int,
) -> Generator[tuple[PairSet, int]]:
    """Yield what `work` returns of each, `n` at a time, as they come; closed, it begins no more."""
    if n == 1:
        yield from (work(*one) for one in todo)
        return
    with ThreadPoolExecutor(n) as threads:
        try:
            for finished in as_completed([threads.submit(work, *one) for one in todo]):
                yield finished.result()
        finally:
            threads.shutdown(cancel_futures=True)


def provenance(metric: Metric, resources: Resources) -> dict[str, Any]:
    """Return what made a score: settings, reference, sha256 of each weight file, versions."""
    return {
        "format": FORMAT,
        "metric": metric.spec.name,
        "reference": metric.spec.reference,
        "settings": settings_of(metric),
        "weights": {path.name: sha256_of(path) for path in metric.files(resources)},
        "versions": software_versions(*metric.spec.libraries),
    }


def _metric(named: str | Metric) -> Metric:
    return find_metric(named) if isinstance(named, str) else named


def _side_by_side(metrics: Sequence[Metric], resources: Resources) -> list[list[Metric]]:
    """Metrics in groups that are computed together: first all that need no weights."""
    light = [metric for metric in metrics if not _has_weights(metric, resources)]
    return [*([light] if light else []), *([metric] for metric in metrics if metric not in light)]


def _has_weights(metric: Metric, resources: Resources) -> bool:
    try:
        return bool(metric.files(resources))
    except WeightsError:  # they are not there
        return True


def _scores(tables: Sequence[tuple[pd.DataFrame, PairSet, str]]) -> pd.DataFrame:
    """One table, columns `BOOK_COLUMNS`, of what was read of each set by each metric."""
    if not tables:
        return pd.DataFrame(columns=list(BOOK_COLUMNS))
    # In one go: a frame for each of hundreds of files takes longer than reading them.
    of_sets = [
        (one.dataset, one.attack, one.model, metric, weights_words(found.attrs["weights"]))
        for found, one, metric in tables
    ]
    lengths = [len(found) for found, _, _ in tables]
    named = zip(*of_sets, strict=True)
    repeated = (np.repeat(np.array(values, dtype=object), lengths) for values in named)
    columns = dict(zip(("dataset", "attack", "model", "metric", WEIGHTS), repeated, strict=True))
    for name, kind in (("image_id", object), ("value", float)):
        columns[name] = np.concatenate([found[name].to_numpy(kind) for found, _, _ in tables])
    return pd.DataFrame(columns)[list(BOOK_COLUMNS)]


def weights_words(made_by: Mapping[str, str]) -> str | None:
    """The cell of the column `WEIGHTS` for these files, SHA-256 by name; None for no file."""
    return " ".join(f"{file}:{sha}" for file, sha in made_by.items()) or None


def _ordered(pairs: pd.DataFrame) -> pd.DataFrame:
    known = pairs.reindex(columns=list(PAIR_COLUMNS)).astype({"attacked": object})
    return known.sort_values("image_id", ignore_index=True)


def _digest(path: str) -> str:
    try:
        return sha256_of(Path(path)) if path else ""
    except FileNotFoundError:
        raise DataError(f"No image at {path}.") from None


def _name(setting: Any) -> str:
    """The name in a record that is either the name or a mapping that has it."""
    return str(setting["name"] if isinstance(setting, Mapping) else setting)


def _images(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Images below `folder` by name, and what is wrong with the names."""
    require_folder(folder, DataError)
    found: dict[str, list[Path]] = {}
    problems = []
    for path in filter(Path.is_file, files_below(folder).paths):
        if is_image_file(path):
            name = "/".join(map(written, path.relative_to(folder).with_suffix("").parts))
            found.setdefault(name, []).append(path)
        elif why := why_unread(path):
            problems.append(f"{path} {why}")
    if not found:
        raise DataError(f"{folder} holds no image. {' '.join(problems[:_SHOWN])}".rstrip())
    problems += [
        f"{' and '.join(path.name for path in paths)} in {paths[0].parent} have one name."
        for paths in found.values()
        if len(paths) > 1
    ]
    return {name: paths[0] for name, paths in found.items() if len(paths) == 1}, problems


def _looked(original: Path, reconstruction: Path) -> tuple[PictureFacts, PictureFacts] | str:
    """Return facts of both images, or what is wrong with them."""
    try:
        one, two = read_picture(original)[1], read_picture(reconstruction)[1]
    except DataError as error:
        return str(error)
    if one.size != two.size:
        sides = [f"{width}×{height}" for height, width in (one.size, two.size)]
        notes = notes_on({original.name: (one, two)}) if one.size == two.size[::-1] else []
        return " ".join([f"{original} is {sides[0]} but {reconstruction} is {sides[1]}.", *notes])
    return one, two
