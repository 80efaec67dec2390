"""Scores of reconstruction sets, on disk: a (set, metric) that is done is never computed again.

    <scores>/<key>.parquet   image_id and value, one row an image (one row in all for a metric of
                             sets); beside the table, as Parquet metadata, what made it

The key is a hash of the set's images, the metric's settings and its weight files, so a score is
found again by what it was computed from, never by a name. A pair of set and metric that cannot be
judged, such as images too small for it, is kept the same way: an empty table with the reason. One
for which the key is no reason, as a library that is missing, is tried again by the next computing.
What is hashed is the reference image really used: the clean original or the attacked one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.columns import LEAKS, SCORE_COLUMNS
from semsim.base.errors import DataError, PictureError, WeightsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import whole
from semsim.base.storage.optional import arrow
from semsim.base.storage.pieces import key_of
from semsim.base.storage.records import guarded
from semsim.base.storage.versions import software_versions
from semsim.base.table_files import check_columns, read_frame
from semsim.device import cores, keep_freed_memory
from semsim.images import read_images, size_words
from semsim.metrics import Judge, Metric, Pairs, Reference, Resources, find_metric
from semsim.metrics.base import PART, judged, settings_of, told_parts
from semsim.sets.reader import read_set
from semsim.weights import sha256_of

if TYPE_CHECKING:
    from torch import Tensor

# Columns of tables that stay texts, whatever they look like.
TEXTS = (
    *("study", "dataset", "attack", "model", "metric", "image_id", "class_name", "annotator"),
    *("answer", "weights", LEAKS),
)
FORMAT = "semsim-scores/2"  # part of every key: raise it where the same images get other values
WEIGHTS = "weights"
FACT_COLUMNS = ("dataset", "attack", "model", "metric", "n", "standard_error", "notes")
BOOK_COLUMNS = (*SCORE_COLUMNS, WEIGHTS)
PAIR_COLUMNS = ("image_id", "class_name", "original", "reconstruction", "attacked")
_JUDGED = ("image_id", "class_name", "original", "reconstruction")
_PARTS_KEPT = 4  # of originals that were read for a metric with a network
_LABEL_COLUMNS = ("dataset", "attack", "model", *_JUDGED)

Hashes = Callable[[Reference], list[str]]


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """The pairs of images of one attacked model.

    pairs: one row an image, columns `PAIR_COLUMNS`; paths are absolute; class_name, and attacked
        where the attacked image is not known, may be None.
    """

    dataset: str
    attack: str
    model: str
    pairs: pd.DataFrame

    @property
    def title(self) -> str:
        return f"{self.model} on {self.dataset} by {self.attack}"


@dataclass(frozen=True, kw_only=True)
class ScoreBook:
    """Known scores of some sets under some metrics.

    scores: columns `BOOK_COLUMNS`; image_id is None in the one row of a metric of sets, weights is
        `<file>:<sha256>` of each weight file, with spaces between, missing where there is none.
    facts: columns `FACT_COLUMNS`, one row a (set, metric) that has scores.
    unavailable: metrics without their weights, with the reason.
    refused: (set title, metric) that cannot be judged, with the reason.
    missing: (set title, metric) still to be computed.
    """

    scores: pd.DataFrame
    facts: pd.DataFrame
    unavailable: dict[str, str]
    refused: dict[tuple[str, str], str]
    missing: tuple[tuple[str, str], ...]


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
        sets.append(PairSet(dataset=dataset, attack=attack, model=source.model, pairs=pairs))
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
        PairSet(dataset=str(dataset), attack=str(attack), model=str(model), pairs=_ordered(rows))
        for (dataset, attack, model), rows in groups
    ]


def score_sets(
    sets: Sequence[PairSet],
    names: Sequence[str | Metric],
    resources: Resources,
    folder: Path,
    report: Report = silent,
) -> ScoreBook:
    """Compute what is not yet in `folder`, then read all of it.

    names: of metrics, as in the registry, or metrics themselves. Those that need no weights share
    one reading of a set, and as many sets are read at once as there are cores; the others, which
    use all cores by themselves, come one after another.
    For those no more than some hundred pictures of a set are in memory at once.
    Raises `UnknownNameError` for a name no metric has, `DataError` for an image file that is gone.
    """
    keep_freed_memory()
    done = 0

    def tell(note: str) -> None:
        report(Progress(done, len(sets) * len(names), note))

    tell("looking for what is known")
    hashes = _hashes(sets)
    for metrics in _side_by_side([_metric(name) for name in names], resources):
        todo = _unknown(metrics, sets, hashes, resources, folder)
        titles = metrics[0].spec.title if len(metrics) == 1 else f"{len(metrics)} metrics"
        done += len(sets) * len(metrics) - sum(len(of_set) for _, of_set in todo)
        # Loaded when the first set asks for it.
        judges = {metric: cache(partial(metric.prepare, resources)) for metric in metrics}
        heavy = _has_weights(metrics[0], resources)
        # Those of most sets are those of the set before.
        originals = lru_cache(maxsize=_PARTS_KEPT if heavy else 1)(read_images)
        told = tell if heavy else None
        work = partial(
            _judge_set, judges=judges, resources=resources, originals=originals, tell=told
        )
        with closing(_each(work, todo, 1 if heavy else cores())) as finished:
            for model, n in finished:
                done += n
                tell(f"{titles}: {model}")
        tell(titles)
    return read_scores(sets, names, resources, folder, hashes)


def read_scores(
    sets: Sequence[PairSet],
    names: Sequence[str | Metric],
    resources: Resources,
    folder: Path,
    hashes: Hashes | None = None,
) -> ScoreBook:
    """Return what `folder` knows of `sets` under the metrics `names`; computes nothing.

    hashes: of the sets, where they have been computed already.
    """
    hashes = hashes or _hashes(sets)
    tables: list[tuple[pd.DataFrame, PairSet, str]] = []
    facts, missing = [], []
    unavailable: dict[str, str] = {}
    refused: dict[tuple[str, str], str] = {}
    for metric in map(_metric, names):
        name = metric.spec.name
        try:
            paths = _paths(metric, hashes, resources, folder)
        except WeightsError as error:
            unavailable[name] = str(error)
            continue
        for one, path in zip(sets, paths, strict=True):
            found = _read(path)
            if found is None:
                missing.append((one.title, name))
            elif "refused" in found.attrs:
                refused[one.title, name] = str(found.attrs["refused"])
            else:
                n, spread, notes = (found.attrs[key] for key in ("n", "standard_error", "notes"))
                key = (one.dataset, one.attack, one.model, name)
                facts.append((*key, n, spread, "; ".join(notes)))
                tables.append((found, one, name))
    return ScoreBook(
        scores=_scores(tables),
        facts=pd.DataFrame(facts, columns=list(FACT_COLUMNS)),
        unavailable=unavailable,
        refused=refused,
        missing=tuple(missing),
    )


def referenced(pairs: pd.DataFrame, reference: Reference) -> pd.DataFrame:
    """`pairs` with the reference image in the column `original`, "" where there is none.

    Takes the columns `PAIR_COLUMNS` and returns all of them but `attacked`.
    """
    table = pairs[list(_JUDGED)]
    return table if reference == "clean" else table.assign(original=pairs["attacked"].fillna(""))


def read_pairs(
    pairs: pd.DataFrame, originals: Callable[[tuple[Path, ...]], Tensor] = read_images
) -> Pairs:
    """The images of a table as `referenced` makes it, (N, 3, H, W) float32 in [0, 1] a side.

    originals: reads those on the left from their paths. Raises `DataError` that names a broken
    image, or says how many have no reference.
    """
    (read,) = read_parts(pairs, originals, max(1, len(pairs)))
    return read


def read_parts(
    pairs: pd.DataFrame, originals: Callable[[tuple[Path, ...]], Tensor], size: int
) -> Iterator[Pairs]:
    """`read_pairs` in parts of (N, 3, H, W) images, N at most `size`, each read when asked for.

    Raises as it does, and `DataError` where an attacked image that is wanted is missing.
    """
    lacking = int((pairs["original"] == "").sum())
    if lacking:
        raise DataError(
            f"{lacking} of {len(pairs)} images come without the attacked image that was to be the "
            "reference. Use the metric without @attacked, or sets that record what was attacked."
        )
    sizes: list[str] = []
    for start in range(0, max(1, len(pairs)), size):
        rows = pairs.iloc[start : start + size]
        names = rows["class_name"]
        part = Pairs(
            originals=originals(tuple(Path(path) for path in rows["original"])),
            reconstructions=read_images([Path(path) for path in rows["reconstruction"]]),
            class_names=None if names.isna().any() else tuple(str(name) for name in names),
        )
        sizes.append(size_words(part.originals[0]))
        if sizes[-1] != sizes[0]:
            raise DataError(
                f"{pairs['original'].iloc[start]} is {sizes[-1]} but "
                f"{pairs['original'].iloc[0]} is {sizes[0]}; all images of a set need one size."
            )
        yield part


def read_labels(path: Path, what: str = "labels") -> pd.DataFrame:
    """The labels, or votes, in a table; `DataError` where there are none to be read."""
    if path.suffix.lower() == ".parquet":
        arrow()
    if not path.is_file():
        raise DataError(f"No {what} at {path}. Export them from a study.")
    return read_frame(path, DataError, texts=TEXTS)


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


def _metric(named: str | Metric) -> Metric:
    return find_metric(named) if isinstance(named, str) else named


def _hashes(sets: Sequence[PairSet]) -> Hashes:
    """Of the pairs of each set as each reference makes them, computed when first asked for."""
    return cache(lambda reference: [content_hash(referenced(one.pairs, reference)) for one in sets])


def _paths(metric: Metric, hashes: Hashes, resources: Resources, folder: Path) -> list[Path]:
    keys = [score_key(metric, images, resources) for images in hashes(metric.spec.reference)]
    return [folder / f"{key}.parquet" for key in keys]


def _side_by_side(metrics: Sequence[Metric], resources: Resources) -> list[list[Metric]]:
    """Metrics in groups that are computed together: first all that need no weights."""
    light = [metric for metric in metrics if not _has_weights(metric, resources)]
    return [*([light] if light else []), *([metric] for metric in metrics if metric not in light)]


def _has_weights(metric: Metric, resources: Resources) -> bool:
    try:
        return bool(metric.files(resources))
    except WeightsError:  # they are not there
        return True


def _unknown(
    metrics: Sequence[Metric],
    sets: Sequence[PairSet],
    hashes: Hashes,
    resources: Resources,
    folder: Path,
) -> list[tuple[PairSet, dict[Metric, Path]]]:
    """Sets with scores that are not on disk, and where those belong; none without weights."""
    found: list[dict[Metric, Path]] = [{} for _ in sets]
    for metric in metrics:
        try:
            paths = _paths(metric, hashes, resources, folder)
        except WeightsError:  # reading the scores afterwards finds it again, with its reason
            continue
        for of_set, path in zip(found, paths, strict=True):
            kept = _read(path)
            if kept is None or kept.attrs.get("again"):
                of_set[metric] = path
    return [(one, of_set) for one, of_set in zip(sets, found, strict=True) if of_set]


def _judge_set(
    one: PairSet,
    wanted: Mapping[Metric, Path],
    *,
    judges: Mapping[Metric, Callable[[], Judge]],
    resources: Resources,
    originals: Callable[[tuple[Path, ...]], Tensor],
    tell: Callable[[str], None] | None,
) -> tuple[str, int]:
    """Keep one set's scores; its model, and how many. tell: called of each part, if in parts."""
    all_of = cache(lambda reference: [read_pairs(referenced(one.pairs, reference), originals)])

    def parts(reference: Reference) -> Iterable[Pairs]:
        if tell is None:
            yield from all_of(reference)
            return
        read = read_parts(referenced(one.pairs, reference), originals, PART)
        said = f"of {len(one.pairs):,}"
        yield from told_parts(read, lambda done: tell(f"{one.model}, image {done + 1:,} {said}"))

    for metric, path in wanted.items():
        table = _judged(metric, one, judges[metric], parts, resources)
        with whole(path) as part:
            table.to_parquet(part, index=False)
    return one.model, len(wanted)


def _each(
    work: Callable[[PairSet, Any], tuple[str, int]], todo: Sequence[tuple[PairSet, Any]], n: int
) -> Generator[tuple[str, int]]:
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


def _judged(
    metric: Metric,
    one: PairSet,
    loaded: Callable[[], Judge],
    parts: Callable[[Reference], Iterable[Pairs]],
    resources: Resources,
) -> pd.DataFrame:
    """The scores of one set, or an empty table that says why it cannot be judged."""
    try:
        scores = judged(loaded(), parts(metric.spec.reference), metric.spec)
    except (DataError, WeightsError) as error:
        table = pd.DataFrame({"image_id": [], "value": []})
        again = isinstance(error, WeightsError | PictureError)  # no word of the images, as the key
        record: dict[str, Any] = {"refused": str(error), "again": again}
    else:
        ids = one.pairs["image_id"].astype(str).tolist() if metric.spec.per_image else [None]
        table = pd.DataFrame({"image_id": ids, "value": scores.values})
        record = {"standard_error": scores.standard_error, "notes": list(scores.notes)}
    record |= {**provenance(metric, resources), "n": len(one.pairs)}
    table.attrs.update(record)
    return table


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


def _read(path: Path) -> pd.DataFrame | None:
    arrow()
    try:
        with guarded(path, DataError):
            return pd.read_parquet(path)
    except DataError:  # none, or a full disk cut it short: computed again
        return None


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
