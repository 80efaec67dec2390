"""Pairs of images that belong to no set: two folders, matched name by name, and their scores."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.alike import partners, written
from semsim.base.errors import DataError, WeightsError
from semsim.base.picture_files import Sight, notes_on
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.folders import files_below
from semsim.base.storage.places import resolved
from semsim.images import is_image_file, look, why_unread
from semsim.metrics import Metric, Pairs, Reference, Resources, summarise
from semsim.metrics.base import judged, told_parts
from semsim.metrics.scoring import FORMAT, PAIR_COLUMNS, provenance, read_pairs, referenced

_SHOWN = 20  # problems written out in an error


@dataclass(frozen=True, kw_only=True)
class FolderPairs:
    """Pairs that two folders have in common.

    pairs: one row a pair that can be judged, columns as `scoring.PAIR_COLUMNS`; the class
        is the name of the image's own folder, None for an image at the top; attacked is None.
        Those of one size follow each other. sizes: how many there are of each.
    problems: a sentence for every file that was left out, naming it. notes: sentences on what was
        done to pictures that are in.
    """

    pairs: pd.DataFrame
    problems: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def match_folders(originals: Path, reconstructions: Path) -> FolderPairs:
    """Pair the images of two folders by path below the folder, without the suffix.

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
    return FolderPairs(
        pairs=table,
        problems=tuple(problems),
        sizes=tuple(counts[size] for size in sorted(counts)),
        notes=tuple(notes_on({name: sights[name] for name in sorted(kept)})),
    )


def folder_scores(
    found: FolderPairs, metrics: Sequence[Metric], resources: Resources, report: Report = silent
) -> pd.DataFrame:
    """`pair_scores` of two folders; `attrs` has, as `left_out`, the problems of the folders."""
    ends = list(itertools.accumulate(found.sizes))

    @functools.cache
    def pairs(reference: Reference) -> list[Pairs]:
        rows = referenced(found.pairs, reference)
        return [read_pairs(rows[end - n : end]) for n, end in zip(found.sizes, ends, strict=True)]

    table = pair_scores(referenced(found.pairs, "clean"), pairs, metrics, resources, report)
    records = table.attrs | {"left_out": list(found.problems)}
    table = table.sort_values("image_id", ignore_index=True)
    table.attrs = records
    return table


def pair_scores(
    rows: pd.DataFrame,
    pairs: Callable[[Reference], Sequence[Pairs]],
    metrics: Sequence[Metric],
    resources: Resources,
    report: Report = silent,
) -> pd.DataFrame:
    """`rows`, one a pair, with one more column a metric of images.

    pairs: the images of the rows in their order, of one size each, as each reference makes them.
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
    pairs: Callable[[Reference], Sequence[Pairs]],
    resources: Resources,
    report: Report,
    steps: Progress,
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """A metric's values and their record; no values, and the reason, where it is unavailable."""
    try:
        given = pairs(metric.spec.reference)
        parts = itertools.chain.from_iterable(one.parts() for one in given)
        told = told_parts(parts, lambda done: report(replace(steps, done=steps.done + done)))
        scores = judged(metric.prepare(resources), told, metric.spec)
        summary = summarise(scores.values)
    except (WeightsError, DataError) as error:
        return None, {"unavailable": str(error)}
    record = {
        "mean": summary.mean,
        "sd": summary.sd,
        "n": sum(map(len, given)),
        "n_inf": summary.n_inf,
        "standard_error": scores.standard_error,
        "notes": list(scores.notes),
        **provenance(metric, resources),
    }
    return scores.values, record


def _images(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Images below `folder` by name, and what is wrong with the names."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
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


def _looked(original: Path, reconstruction: Path) -> tuple[Sight, Sight] | str:
    """Return facts of both images, or what is wrong with them."""
    try:
        one, two = look(original), look(reconstruction)
    except DataError as error:
        return str(error)
    if one.size != two.size:
        sides = [f"{width}×{height}" for height, width in (one.size, two.size)]
        notes = notes_on({original.name: (one, two)}) if one.size == two.size[::-1] else []
        return " ".join([f"{original} is {sides[0]} but {reconstruction} is {sides[1]}.", *notes])
    return one, two
