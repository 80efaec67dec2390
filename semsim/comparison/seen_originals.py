"""Originals that a SemSim learned from, so that it can be judged by the others."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd

from semsim.base.errors import DataError, WeightsError
from semsim.base.metric_spec import checkpoint_of, voted_for
from semsim.base.stats.analysis import Analysis
from semsim.base.words import agreeing, counted
from semsim.learning.settings import checkpoint_path
from semsim.metrics import MetricSpec
from semsim.metrics.learned import SeenOriginals, learned_by
from semsim.metrics.provenance import original_keys, read_training

ALL = "all"  # in place of the name of a SemSim: every original counts


def seen_by_each(
    checkpoints: Path, metrics: Iterable[str], listed: pd.DataFrame
) -> dict[str, SeenOriginals]:
    """Of each SemSim among `metrics`, by its name, what it learned from of the originals `listed`.

    A baseline calibrated to the same votes stands for its SemSim.

    Without those of which no checkpoint here says it.
    """
    found = {}
    for name in dict.fromkeys(filter(None, map(voted_for, metrics))):
        with suppress(WeightsError):
            training = read_training(checkpoints / f"{name}.safetensors")
            found[name] = learned_by(training).among(listed)
    return found


def uncounted(seen: Mapping[str, SeenOriginals]) -> frozenset[str]:
    """The originals that are left out so that the others are held out for every SemSim.

    Args:
        seen: By SemSim, as `seen_by_each`. One that has seen all of them holds out none, and counts
            for nothing here; none is left out either where the others together have seen all.
    """
    some = [one for one in seen.values() if one.unseen]
    if not any(one.seen for one in some):
        return frozenset()
    left_out = frozenset[str]().union(*(one.seen | one.unknown for one in some))
    return left_out if left_out < frozenset().union(*(one.told for one in some)) else frozenset()


def seen_by(
    checkpoints: Path, name: str, listed: pd.DataFrame, known: Mapping[str, SeenOriginals]
) -> SeenOriginals | None:
    """Return what the SemSim called `name` learned from of the originals `listed`; None for "".

    Args:
        known: As `seen_by_each` has it, of SemSims whose checkpoints need not be read again.

    Raises:
        DataError: Where its file cannot be read or nothing tells of any that it did not learn from
            it.
        SettingsError: For a name that is none.
    """
    if not name:
        return None
    try:
        path = checkpoint_path(checkpoints, name)
        found = known.get(name) or learned_by(read_training(path)).among(listed)
    except WeightsError as error:
        raise DataError(f"{error} Choose all originals.") from error
    if found.unknown and not found.unseen:
        raise DataError(
            f"It is not known which of these originals SemSim ({name}) learned from: no table has "
            "their data set, and there are no pixels. Add the column dataset, or choose "
            "all originals."
        )
    return found


def without(left_out: frozenset[str], table: pd.DataFrame) -> pd.DataFrame:
    """The rows of all originals but `left_out`; scores of whole sets stay."""
    return table[~original_keys(table).isin(left_out)] if left_out else table


def exposed(spec: MetricSpec, seen: Mapping[str, SeenOriginals], counting: Iterable[str]) -> str:
    """Return why a metric is no candidate on the originals `counting`: it learned from them.

    Args:
        seen: By SemSim, as `seen_by_each`. "" for one that did not.
    """
    name = voted_for(spec.name)
    if not name:
        return ""
    found = seen[name].among(counting) if name in seen else None
    if found is None or (found.unknown and not found.seen):
        return "may be trained on these"
    n, every = len(found.seen), len(found.told)
    return "" if not n else f"trained on {'these' if n == every else f'{n} of these {every}'}"


def held_out_remark(left_out: frozenset[str], n_originals: int, analysis: Analysis) -> list[str]:
    """Return the remark where only originals count that no SemSim of a table learned from."""
    if not left_out:
        return []
    return _remark(
        analysis,
        f"Only the {n_originals - len(left_out)} of {counted(n_originals, 'original')} count that "
        "no SemSim here learned from.",
    )


def _remark(analysis: Analysis, *sentences: str) -> list[str]:
    sets = any(not spec.per_image for spec in analysis.specs)
    last = "Metrics of sets have their values from all originals." if sets else ""
    return [" ".join(filter(None, (*sentences, last)))]


def left_out_remark(name: str, seen: SeenOriginals | None, analysis: Analysis) -> list[str]:
    """Return what to say where only what the SemSim called `name` has not seen counts.

    Args:
        seen: What it has seen of all originals, looked at or not; None where that is not asked.
    """
    if seen is None:
        return []
    learned = {checkpoint_of(spec.name) for spec in analysis.specs} - {"", name}
    by_name = ", going by their names" if seen.by_name else ""
    unknown = counted(len(seen.unknown), "other")
    return _remark(
        analysis,
        f"Only the {len(seen.unseen)} of {counted(len(seen.told), 'original')} count that SemSim "
        f"({name}) did not learn from{by_name}, so that it is on equal terms with metrics that "
        "learned from no votes.",
        "Another SemSim may have learned from some of these." if learned else "",
        f"Whether it learned from {unknown} is not known; they do not count."
        if seen.unknown
        else "",
        *(f"{words}." for words in namesakes_words(seen)),
    )


def namesakes_words(seen: SeenOriginals) -> list[str]:
    """That originals only share a name with what a SemSim learned from, where some do."""
    n = len(seen.namesakes)
    have = agreeing(n, "has", "have")
    said = f"{n} of these originals {have} the name of one it learned from, with other pixels"
    return [said] if n else []
