"""Scores of reconstruction sets, on disk: a (set, metric) that is done is never computed again.

    <scores>/<key>.parquet   image_id and value, one row an image (one row in all for a metric of
                             sets); beside the table, as Parquet metadata, what made it

The key is a hash of the set's images, the metric's settings and its weight files, so a score is
found again by what it was computed from, never by a name. A pair of set and metric that cannot be
judged, such as images too small for it, is kept the same way: an empty table with the reason.
What is hashed is the reference image really used: the clean original or the attacked one.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from semsim.analysis.evidence import SCORE_COLUMNS
from semsim.errors import DataError, WeightsError
from semsim.images import read_images
from semsim.kept.keys import key_of
from semsim.kept.versions import software_versions
from semsim.kept.whole import whole_file
from semsim.metrics import Judge, Metric, Pairs, Reference, Resources, find_metric
from semsim.progress import Progress, Report, silent
from semsim.sets.reader import ReconstructionSet, read_set
from semsim.weights import sha256_of

FORMAT = "semsim-scores/2"  # 1 had PSNR from single precision
WEIGHTS = "weights"
FACT_COLUMNS = ("dataset", "attack", "model", "metric", "n", "standard_error", "notes")
BOOK_COLUMNS = (*SCORE_COLUMNS, WEIGHTS)
PAIR_COLUMNS = ("image_id", "class_name", "original", "reconstruction", "attacked")
_JUDGED = ("image_id", "class_name", "original", "reconstruction")
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
    """What is known of some sets under some metrics.

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


def pair_set(source: ReconstructionSet) -> PairSet:
    """The pairs of a reconstruction set; images whose attack failed are not among them."""
    pairs = source.pairs
    if pairs.empty:
        raise DataError(f"{source.folder} has no image that was reconstructed.")
    return PairSet(
        dataset=_name(source.run.get("dataset")),
        attack=_name(source.run.get("attack")),
        model=source.model,
        pairs=_ordered(pairs),
    )


def pair_sets_of_folders(folders: Iterable[Path]) -> list[PairSet]:
    """The pairs of each reconstruction set; `DataError` where two are called the same."""
    sets = [pair_set(read_set(folder)) for folder in folders]
    titles = [one.title for one in sets]
    twice = sorted({title for title in titles if titles.count(title) > 1})
    if twice:
        raise DataError(f"Two sets are both {twice[0]}; give each model one set.")
    return sets


def pair_sets_of_labels(labels: pd.DataFrame) -> list[PairSet]:
    """The pairs of every model in a study's table of labels, in order of name.

    The column `attacked` may be absent; `DataError` where another is.
    """
    absent = sorted(set(_LABEL_COLUMNS) - set(labels.columns))
    if absent:
        raise DataError(f"The table of labels lacks the columns {', '.join(absent)}.")
    groups = labels.groupby(["dataset", "attack", "model"], sort=True, dropna=False)
    return [
        PairSet(dataset=str(dataset), attack=str(attack), model=str(model), pairs=_ordered(rows))
        for (dataset, attack, model), rows in groups
    ]


def score_sets(
    sets: Sequence[PairSet],
    names: Sequence[str],
    resources: Resources,
    folder: Path,
    report: Report = silent,
) -> ScoreBook:
    """Compute what is not yet in `folder`, then read all of it.

    names: of metrics, as in the registry. One report a (set, metric). Raises
    `UnknownNameError` for a name no metric has, `DataError` for an image file that is gone.
    """
    total = len(sets) * len(names)
    report(Progress(0, total, "looking for what is known"))
    hashes = _hashes(sets)
    for done, name in enumerate(names):
        metric = find_metric(name)
        todo = _unknown(metric, sets, hashes, resources, folder)
        known = (done + 1) * len(sets) - len(todo)
        judge = _judge(metric, resources)
        for step, (one, path) in enumerate(todo, start=1):
            _write(path, _judged(metric, one, judge, resources))
            report(Progress(known + step, total, f"{metric.spec.title}: {one.model}"))
        report(Progress(known + len(todo), total, metric.spec.title))
    return read_scores(sets, names, resources, folder)


def read_scores(
    sets: Sequence[PairSet], names: Sequence[str], resources: Resources, folder: Path
) -> ScoreBook:
    """What `folder` knows of `sets` under the metrics `names`; computes nothing."""
    tables, facts, missing = [], [], []
    unavailable: dict[str, str] = {}
    refused: dict[tuple[str, str], str] = {}
    hashes = _hashes(sets)
    for name in names:
        try:
            paths = _paths(find_metric(name), hashes, resources, folder)
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
                facts.append(_facts(found, one, name))
                tables.append(_scores(found, one, name))
    empty = pd.DataFrame(columns=list(BOOK_COLUMNS))
    return ScoreBook(
        scores=pd.concat(tables, ignore_index=True) if tables else empty,
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


def read_pairs(pairs: pd.DataFrame) -> Pairs:
    """The images of a table as `referenced` makes it.

    Raises `DataError` that names a broken image, or says how many have no reference.
    """
    lacking = int((pairs["original"] == "").sum())
    if lacking:
        raise DataError(
            f"{lacking} of {len(pairs)} images come without the attacked image that was to be the "
            "reference. Use the metric without @attacked, or sets that record what was attacked."
        )
    names = pairs["class_name"]
    return Pairs(
        originals=read_images([Path(path) for path in pairs["original"]]),
        reconstructions=read_images([Path(path) for path in pairs["reconstruction"]]),
        class_names=None if names.isna().any() else tuple(str(name) for name in names),
    )


def read_labels(path: Path) -> pd.DataFrame:
    """The labels in a Parquet file; `DataError` where there are none to be read."""
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        raise DataError(f"No labels at {path}. Export them from a study.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable Parquet file ({error}).") from error


def score_key(metric: Metric, images: str, resources: Resources) -> str:
    """What scores depend on, as a hash; `images` is the `content_hash` of the pairs judged.

    Raises `WeightsError` where the metric's weights are not usable.
    """
    settings: dict[str, Any] = {
        "format": FORMAT,
        "metric": metric.spec.name,
        "settings": asdict(metric),
        "weights": [sha256_of(path) for path in metric.files(resources)],
        "images": images,
    }
    if metric.spec.revision:  # so that the others keep the keys they had before there were any
        settings["revision"] = metric.spec.revision
    return key_of(settings, 40)


def content_hash(pairs: pd.DataFrame) -> str:
    """A hash of the images, ids and classes of a `referenced` table, wherever its files lie."""
    digest = hashlib.sha256()
    for image_id, class_name, *files in pairs[list(_JUDGED)].astype(str).to_numpy():
        row = [image_id, class_name, *(_digest(path) for path in files)]
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()


def _hashes(sets: Sequence[PairSet]) -> Hashes:
    """Of the pairs of each set as each reference makes them, computed when first asked for."""
    return functools.cache(
        lambda reference: [content_hash(referenced(one.pairs, reference)) for one in sets]
    )


def _paths(metric: Metric, hashes: Hashes, resources: Resources, folder: Path) -> list[Path]:
    keys = [score_key(metric, images, resources) for images in hashes(metric.spec.reference)]
    return [folder / f"{key}.parquet" for key in keys]


def _unknown(
    metric: Metric,
    sets: Sequence[PairSet],
    hashes: Hashes,
    resources: Resources,
    folder: Path,
) -> list[tuple[PairSet, Path]]:
    """The sets whose scores are not on disk, and where they belong; none without weights."""
    try:
        paths = _paths(metric, hashes, resources, folder)
    except WeightsError:  # reading the scores afterwards finds it again, with its reason
        return []
    return [(one, path) for one, path in zip(sets, paths, strict=True) if _read(path) is None]


def _judged(metric: Metric, one: PairSet, judge: Judge, resources: Resources) -> pd.DataFrame:
    """The scores of one set, or an empty table that says why it cannot be judged."""
    try:
        scores = judge(read_pairs(referenced(one.pairs, metric.spec.reference)))
    except (DataError, WeightsError) as error:
        table = pd.DataFrame({"image_id": [], "value": []})
        record: dict[str, Any] = {"refused": str(error)}
    else:
        ids = one.pairs["image_id"].astype(str).tolist() if metric.spec.per_image else [None]
        table = pd.DataFrame({"image_id": ids, "value": scores.values})
        record = {"standard_error": scores.standard_error, "notes": list(scores.notes)}
    record |= {**provenance(metric, resources), "n": len(one.pairs)}
    table.attrs.update(record)
    return table


def provenance(metric: Metric, resources: Resources) -> dict[str, Any]:
    """What made a score: settings, reference, sha256 of each weight file, versions."""
    return {
        "format": FORMAT,
        "metric": metric.spec.name,
        "reference": metric.spec.reference,
        "settings": asdict(metric),
        "weights": {path.name: sha256_of(path) for path in metric.files(resources)},
        "versions": software_versions(*metric.spec.libraries),
    }


def _judge(metric: Metric, resources: Resources) -> Judge:
    """The metric's judge, loaded when the first set asks for it."""
    loaded = functools.cache(lambda: metric.prepare(resources))
    return lambda pairs: loaded()(pairs)


def _write(path: Path, table: pd.DataFrame) -> None:
    with whole_file(path) as part:
        table.to_parquet(part, index=False)


def _read(path: Path) -> pd.DataFrame | None:
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        return None
    except pa.ArrowInvalid:  # a full disk cut it short: computed again
        return None


def _scores(found: pd.DataFrame, one: PairSet, metric: str) -> pd.DataFrame:
    # Built anew: the attributes of the file differ from set to set and are read elsewhere.
    made_by: Mapping[str, str] = found.attrs["weights"]
    return pd.DataFrame(
        {
            "dataset": one.dataset,
            "attack": one.attack,
            "model": one.model,
            "metric": metric,
            "image_id": found["image_id"].astype(object),
            "value": found["value"].astype(float),
            WEIGHTS: " ".join(f"{file}:{sha}" for file, sha in made_by.items()) or None,
        }
    )


def _facts(found: pd.DataFrame, one: PairSet, metric: str) -> dict[str, Any]:
    return {
        "dataset": one.dataset,
        "attack": one.attack,
        "model": one.model,
        "metric": metric,
        "n": found.attrs["n"],
        "standard_error": found.attrs["standard_error"],
        "notes": "; ".join(found.attrs["notes"]),
    }


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
