"""Which originals a SemSim learned from, so that it can be judged by the others."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.errors import DataError, WeightsError
from semsim.learning.card_promoted import promoted
from semsim.learning.orders import checkpoint_path
from semsim.metrics.learned import Seen, learned_by
from semsim.metrics.provenance import checkpoint_of, original_keys, read_training
from semsim.words import agreeing, counted


def unseen(labels: pd.DataFrame | None, checkpoints: Path, names: Iterable[str]) -> dict[str, int]:
    """Of each SemSim that has seen some of the originals, and not others, how many it has not."""
    if labels is None:
        return {}
    found = {}
    for name in names:
        with suppress(WeightsError):  # what cannot be read has no number either
            training = read_training(checkpoints / f"{name}.safetensors")
            told = learned_by(training).among(labels)
            if told.unseen and told.seen:
                found[name] = len(told.unseen)
    return found


def usually_unseen_by(labels: pd.DataFrame | None, checkpoints: Path) -> str:
    """The SemSim of the workspace where it has seen some of the originals and not others, or ""."""
    own = promoted(checkpoints)
    return next(iter(unseen(labels, checkpoints, [own] if own else [])), "")


def seen_by(checkpoints: Path, name: str, listed: pd.DataFrame) -> Seen | None:
    """What the SemSim called `name` learned from of the originals in `listed`; None for no name.

    Raises `DataError` where its file cannot be read or nothing tells of any that it did not learn
    from it, `SettingsError` for a name that is none.
    """
    if not name:
        return None
    try:
        training = read_training(checkpoint_path(checkpoints, name))
    except WeightsError as error:
        raise DataError(f"{error} Choose all originals.") from error
    found = learned_by(training).among(listed)
    if found.unknown and not found.unseen:
        raise DataError(
            f"It is not known which of these originals SemSim ({name}) learned from: no table says "
            "their data set, and there are no pixels to go by. Add the column dataset, or choose "
            "all originals."
        )
    return found


def without(seen: Seen | None, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of originals that a SemSim did not learn from; scores of whole sets stay."""
    if seen is None:
        return table
    return table[~original_keys(table).isin(seen.seen | seen.unknown)]


def left_out_remark(name: str, seen: Seen | None, analysis: Analysis) -> list[str]:
    """What to say where only what the SemSim called `name` has not seen counts; "" for all.

    seen: what it has seen of all originals, looked at or not.
    """
    if seen is None:
        return []
    sets = any(not spec.per_image for spec in analysis.specs)
    learned = {checkpoint_of(spec.name) for spec in analysis.specs} - {"", name}
    by_name = ", going by their names" if seen.by_name else ""
    unknown = counted(len(seen.unknown), "other")
    said = [
        f"Only the {len(seen.unseen)} of {counted(len(seen.told), 'original')} count that SemSim "
        f"({name}) did not learn from{by_name}, so that it is on equal terms with metrics that "
        "learned from no votes.",
        "Another SemSim may have learned from some of these." if learned else "",
        f"Whether it learned from {unknown} is not known; they do not count."
        if seen.unknown
        else "",
        *(f"{words}." for words in namesakes_words(seen)),
        "Metrics of sets have their values from all originals." if sets else "",
    ]
    return [" ".join(filter(None, said))]


def namesakes_words(seen: Seen) -> list[str]:
    """That originals only share a name with what a SemSim learned from, where some do."""
    n = len(seen.namesakes)
    have = agreeing(n, "has", "have")
    said = f"{n} of these originals {have} the name of one it learned from, with other pixels"
    return [said] if n else []
