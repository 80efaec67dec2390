"""Exposure: how often each annotator meets an original, and in which order of target models.

The target models of a study form a Latin square with its originals: in each of M blocks (M target
models) an annotator meets every original once and every model equally often. A decoy lies in the
cell of the model whose reconstruction it shows, so with decoys an original may come twice in a
block. Originals that are items themselves have a cell of their own. It is every annotator's last.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annotation.spec import StudySpec


def source_ranks(image_ids: Sequence[str], seed: int) -> dict[str, int]:
    """A place for each original, from 0, in an order that only `seed` decides."""
    order = sorted(image_ids)
    random.Random(f"sources/{seed}").shuffle(order)
    return {image_id: place for place, image_id in enumerate(order)}


def cell_of(source_rank: int, model_rank: int, n_models: int) -> int:
    """The cell of the Latin square, 0 to `n_models` - 1, in which a reconstruction lies."""
    return (source_rank + model_rank) % n_models


def cells_in_order(seat: int, n_cells: int, *, originals: bool) -> list[int]:
    """The cells of the study in the order in which whoever has `seat` works through them.

    Args:
        n_cells: All there are; with `originals` the last one is theirs and comes last. The cell c
            of others is block (c + seat) mod M, so that M people in a row begin with M different
            cells.
    """
    n_models = n_cells - originals
    rest = [n_models] if originals else []
    return [(block - seat) % n_models for block in range(n_models)] + rest


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Item that an annotator might be given; `source` is the original it asks about."""

    item: str
    source: str
    is_original: bool = False


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Items that an annotator has been given before.

    Attributes:
        views: Items by original.
        again: Items they had before, which are no further view.
        named: Originals they were asked to name, after which nothing else of them may come.
        recent: The originals of the last items, the latest last; as many as the lag, or more.
        near: Further originals, of which nothing may come for now where a lag is kept.
        waiting: Originals that are not to be named yet, as a trial, or an item in another tab, that
            shows something else of them has no answer.
    """

    views: Mapping[str, int] = field(default_factory=dict)
    again: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    recent: tuple[str, ...] = ()
    near: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()


def fits(one: Candidate, spec: StudySpec, seen: Seen) -> bool:
    """Check whether `one` may be given next with all limits kept, the lag as well."""
    return (
        _is_in_order(one, seen)
        and _has_view(one, seen.views, spec, seen)
        and _is_far(one, seen.recent, spec, seen)
    )


def choose(candidates: Sequence[Candidate], n: int, spec: StudySpec, seen: Seen) -> list[str]:
    """Up to `n` of `candidates` (best first) to be given next, in the order they are to be shown.

    The number of views is never exceeded. The lag is kept as long as any candidate allows it; where
    none does, those whose original was met longest ago are given rather than nothing.
    """
    chosen: list[str] = []
    views, recent = dict(seen.views), list(seen.recent)
    rest = [one for one in candidates if _is_in_order(one, seen)]
    gives_way = not any(_is_far(one, recent, spec, seen) for one in rest)
    while len(chosen) < n:
        rest = [one for one in rest if _has_view(one, views, spec, seen)]
        far = (one for one in rest if _is_far(one, recent, spec, seen))
        best = next(far, None)
        if best is None and gives_way and rest:
            best = max(rest, key=lambda one: _lag(one, recent, seen))
        if best is None:
            break
        rest.remove(best)
        chosen.append(best.item)
        recent.append(best.source)
        views[best.source] = views.get(best.source, 0) + (best.item not in seen.again)
    return chosen


def _is_in_order(one: Candidate, seen: Seen) -> bool:
    """Check whether the order holds: the original itself comes after all else of it."""
    return one.source not in (seen.waiting if one.is_original else seen.named)


def _has_view(one: Candidate, views: Mapping[str, int], spec: StudySpec, seen: Seen) -> bool:
    if spec.max_views is None or one.item in seen.again:
        return True
    return views.get(one.source, 0) < spec.max_views


def _is_far(one: Candidate, recent: Sequence[str], spec: StudySpec, seen: Seen) -> bool:
    if spec.min_lag == 0:
        return True
    return one.source not in seen.near and one.source not in recent[-spec.min_lag :]


def _lag(one: Candidate, recent: Sequence[str], seen: Seen) -> int:
    """Count the items that have come since the last one of the same original."""
    if one.source in seen.near:
        return 0
    return next((i for i, s in enumerate(reversed(recent)) if s == one.source), len(recent))
