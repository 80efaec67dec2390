"""Which originals a SemSim learned from, so that it can be judged by the others."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.errors import DataError, WeightsError
from semsim.learning.card_promoted import promoted
from semsim.learning.orders import checkpoint_path
from semsim.metrics.provenance import checkpoint_of, original_keys, read_training
from semsim.words import counted


def unseen(labels: pd.DataFrame | None, checkpoints: Path, names: Iterable[str]) -> dict[str, int]:
    """Of each SemSim that has seen some of the originals, and not others, how many it has not."""
    if labels is None:
        return {}
    keys, found = set(original_keys(labels)), {}
    for name in names:
        with suppress(WeightsError):  # what cannot be read has no number either
            left = keys - set(read_training(checkpoints / f"{name}.safetensors").originals)
            if 0 < len(left) < len(keys):
                found[name] = len(left)
    return found


def usually_unseen_by(labels: pd.DataFrame | None, checkpoints: Path) -> str:
    """The SemSim of the workspace where it has seen some of the originals and not others, or ""."""
    own = promoted(checkpoints)
    return next(iter(unseen(labels, checkpoints, [own] if own else [])), "")


def seen_by(checkpoints: Path, name: str) -> set[str]:
    """Keys of the originals that the SemSim called `name` learned from; none for no name.

    Raises `DataError` where its file cannot be read, `SettingsError` for a name that is none.
    """
    if not name:
        return set()
    try:
        return set(read_training(checkpoint_path(checkpoints, name)).originals)
    except WeightsError as error:
        raise DataError(f"{error} Choose all originals.") from error


def without(seen: set[str], table: pd.DataFrame) -> pd.DataFrame:
    """The rows that are not of these originals; scores of whole sets stay."""
    return table[~original_keys(table).isin(seen)] if seen else table


def left_out_remark(
    name: str, seen: set[str], listed: pd.DataFrame, analysis: Analysis
) -> list[str]:
    """What to say where only what the SemSim called `name` has not seen counts; "" for all.

    listed: the reconstructions of all originals, looked at or not.
    """
    if not name:
        return []
    keys = set(original_keys(listed))
    left, n_originals = len(keys - seen), len(keys)
    sets = any(not spec.per_image for spec in analysis.specs)
    learned = {checkpoint_of(spec.name) for spec in analysis.specs} - {"", name}
    return [
        f"Only the {left} of {counted(n_originals, 'original')} count that SemSim ({name}) did "
        "not learn from, so that it is on equal terms with metrics that learned from no votes."
        + (" Another SemSim may have learned from some of these." if learned else "")
        + (" Metrics of sets have their values from all originals." if sets else "")
    ]
