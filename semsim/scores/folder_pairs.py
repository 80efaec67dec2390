"""Pairs of images that belong to no set: two folders, matched name by name, and their scores."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.places import resolved
from semsim.errors import DataError, WeightsError
from semsim.images import is_image_file, read_image
from semsim.metrics import Metric, Pairs, Reference, Resources, summarise
from semsim.metrics.base import judged
from semsim.progress import Progress, Report, silent
from semsim.scores.scoring import FORMAT, PAIR_COLUMNS, provenance, read_pairs, referenced

_SHOWN = 20  # problems written out in an error


@dataclass(frozen=True, kw_only=True)
class FolderPairs:
    """What two folders have in common.

    pairs: one row a pair that can be judged, columns as `scoring.PAIR_COLUMNS`; the class
        is the name of the image's own folder, None for an image at the top; attacked is None.
    problems: a sentence for every file that was left out, naming it.
    """

    pairs: pd.DataFrame
    problems: tuple[str, ...]


def match_folders(originals: Path, reconstructions: Path) -> FolderPairs:
    """Pair the images of two folders by path below the folder, without the suffix.

    Left out, and named: images without a partner, two files of one name, broken images, pairs of
    two sizes, pairs of another size than most. Raises `DataError` where nothing is left.
    """
    left, problems = _images(resolved(originals))
    right, more = _images(resolved(reconstructions))
    problems += more
    problems += [f"{left[name]} has no reconstruction." for name in left if name not in right]
    problems += [f"{right[name]} has no original." for name in right if name not in left]
    both = sorted(set(left) & set(right))
    sizes = {name: _size_of_pair(left[name], right[name]) for name in both}
    problems += [size for size in sizes.values() if isinstance(size, str)]
    kept, odd = _of_usual_size({n: s for n, s in sizes.items() if not isinstance(s, str)}, right)
    problems += odd
    if not kept:
        listed = "\n".join(f"  {problem}" for problem in problems[:_SHOWN])
        raise DataError(f"No pair of images in {originals} and {reconstructions}:\n{listed}")
    rows = [(name, _class(name), str(left[name]), str(right[name]), None) for name in kept]
    table = pd.DataFrame(rows, columns=list(PAIR_COLUMNS)).astype(
        {"class_name": object, "attacked": object}
    )
    return FolderPairs(pairs=table, problems=tuple(problems))


def folder_scores(
    found: FolderPairs, metrics: Sequence[Metric], resources: Resources, report: Report = silent
) -> pd.DataFrame:
    """`pair_scores` of two folders; `attrs` has, as `left_out`, the problems of the folders."""
    pairs = functools.cache(lambda reference: read_pairs(referenced(found.pairs, reference)))
    table = pair_scores(referenced(found.pairs, "clean"), pairs, metrics, resources, report)
    table.attrs["left_out"] = list(found.problems)
    return table


def pair_scores(
    rows: pd.DataFrame,
    pairs: Callable[[Reference], Pairs],
    metrics: Sequence[Metric],
    resources: Resources,
    report: Report = silent,
) -> pd.DataFrame:
    """`rows`, one a pair, with one more column a metric of images.

    pairs: the images of the rows, as each reference makes them.
    `attrs` of the table, which Parquet keeps: for every metric its summary and what made it, or
    the reason why it is unavailable; metrics of sets have only that. `report` is called for each
    part of the pairs, of which it counts every one once a metric.
    """
    table, records = rows.copy(), {}
    for step, metric in enumerate(metrics):
        steps = Progress(step * len(rows), len(metrics) * len(rows), metric.spec.title)
        column, records[metric.spec.name] = _column(metric, pairs, resources, report, steps)
        if column is not None and metric.spec.per_image:
            table[metric.spec.name] = column
        report(replace(steps, done=steps.done + len(rows)))
    table.attrs = {"format": FORMAT, "metrics": records, "left_out": []}
    return table


def _column(
    metric: Metric,
    pairs: Callable[[Reference], Pairs],
    resources: Resources,
    report: Report,
    steps: Progress,
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """A metric's values and their record; no values, and the reason, where it is unavailable."""
    try:
        given = pairs(metric.spec.reference)
        parts = _told(given.parts(), report, steps)
        scores = judged(metric.prepare(resources), parts, metric.spec)
        summary = summarise(scores.values)
    except (WeightsError, DataError) as error:
        return None, {"unavailable": str(error)}
    record = {
        "mean": summary.mean,
        "sd": summary.sd,
        "n": len(given),
        "n_inf": summary.n_inf,
        "standard_error": scores.standard_error,
        "notes": list(scores.notes),
        **provenance(metric, resources),
    }
    return scores.values, record


def _told(parts: Iterable[Pairs], report: Report, steps: Progress) -> Iterator[Pairs]:
    """The parts, each reported before it is judged; `steps` were done before them."""
    done = steps.done
    for part in parts:
        report(replace(steps, done=done))
        yield part
        done += len(part)


def _images(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Images below `folder` by name, and what is wrong with the names."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_image_file(path):
            found.setdefault(path.relative_to(folder).with_suffix("").as_posix(), []).append(path)
    if not found:
        raise DataError(f"{folder} holds no image.")
    problems = [
        f"{' and '.join(path.name for path in paths)} in {paths[0].parent} have one name."
        for paths in found.values()
        if len(paths) > 1
    ]
    return {name: paths[0] for name, paths in found.items() if len(paths) == 1}, problems


def _size_of_pair(original: Path, reconstruction: Path) -> tuple[int, int] | str:
    """(H, W) of both images, or what is wrong with them."""
    try:
        sizes = [tuple(read_image(path).shape[1:]) for path in (original, reconstruction)]
    except DataError as error:
        return str(error)
    (height, width), other = sizes
    if sizes[0] != other:
        return f"{original} is {width}×{height} but {reconstruction} is {other[1]}×{other[0]}."
    return height, width


def _of_usual_size(
    sizes: dict[str, tuple[int, int]], images: dict[str, Path]
) -> tuple[list[str], list[str]]:
    """The names of the commonest size, and a sentence for each of the others."""
    if not sizes:
        return [], []
    usual, _ = Counter(sizes.values()).most_common(1)[0]
    odd = [
        f"{images[name]} is {width}×{height} but most are {usual[1]}×{usual[0]}."
        for name, (height, width) in sizes.items()
        if (height, width) != usual
    ]
    return [name for name, size in sizes.items() if size == usual], odd


def _class(name: str) -> str | None:
    folder = Path(name).parent.name
    return folder or None
