"""Decoys for the pair task: an original beside the reconstruction of something else."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.errors import StudyError

STRATA = 4
MOST_USES = 2  # of one reconstruction as a decoy: who meets it often learns what it shows


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A reconstruction that could be shown beside its own original."""

    image_id: str
    label: str  # what "same" means: class or identity
    model: str
    stratum: int  # quality within its model, 0 = best


def quality_strata(errors: Sequence[float], n_strata: int = STRATA) -> list[int]:
    """Return the quantile group of each error, 0 = smallest; equal errors share a group."""
    ordered = sorted(errors)
    first = {error: place for place, error in reversed([*enumerate(ordered)])}
    return [first[error] * n_strata // len(errors) for error in errors]


def n_decoys(n_pairs: int, rate: float) -> int:
    """Return the number of decoys for the pairs of one model."""
    return int(rate * n_pairs + 0.5)


def decoys(pairs: Sequence[Pair], rate: float, *, rng: random.Random) -> list[tuple[int, int]]:
    """Decoys for `rate` of the pairs of each model, as (whose original, whose reconstruction).

    The reconstruction shown has another label (never only another image id), comes from the same
    model and lies in the nearest quality stratum, so that quality gives nothing away; among equals
    the one shown least so far. None is shown more than `MOST_USES` times as long as another one has
    been shown less often. Raises `StudyError` where a model has only one label.
    """
    by_model: dict[str, list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        by_model[pair.model].append(index)
    chosen: list[tuple[int, int]] = []
    for members in by_model.values():
        chosen += _decoys_of_model(pairs, members, rate, rng)
    return chosen


def _decoys_of_model(
    pairs: Sequence[Pair], members: list[int], rate: float, rng: random.Random
) -> list[tuple[int, int]]:
    # In groups of one stratum that were shown as often, so that no pair is set beside all others.
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for member in members:
        groups[pairs[member].stratum, 0].append(member)
    of_label = Counter((pairs[member].stratum, 0, pairs[member].label) for member in members)
    chosen = []
    for index in sorted(rng.sample(members, n_decoys(len(members), rate))):
        pair = pairs[index]
        others = {key: len(one) - of_label[*key, pair.label] for key, one in groups.items()}
        ranked = {key: _unlike(pair, *key) for key, n in others.items() if n}
        if not ranked:
            raise StudyError(
                f"Decoys need reconstructions of at least two classes; model "
                f"{pair.model!r} has only {pair.label!r}."
            )
        best = [key for key, rank in ranked.items() if rank == min(ranked.values())]
        (key,) = rng.choices(best, [others[one] for one in best])
        group = groups[key]
        while pairs[group[place := rng.randrange(len(group))]].label == pair.label:
            continue
        group[place], group[-1] = group[-1], group[place]
        shown, (stratum, used) = group.pop(), key
        groups[stratum, used + 1].append(shown)
        of_label[*key, pairs[shown].label] -= 1
        of_label[stratum, used + 1, pairs[shown].label] += 1
        chosen.append((index, shown))
    return chosen


def _unlike(pair: Pair, stratum: int, used: int) -> tuple[int, int, int]:
    """Return how little a reconstruction of `stratum`, shown `used` times, suits beside a pair."""
    return max(0, used + 1 - MOST_USES), abs(stratum - pair.stratum), used
