"""Provenance of a SemSim: its training as its checkpoint records it, read without its weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import WeightsError
from semsim.base.jobs.orders import from_record
from semsim.base.storage.records import guarded
from semsim.weights import read_facts

FORMAT = "semsim-network/1"
# Of the calibrated baseline in `results`: what a block counts, where 1 is that of blocks that all
# count alike, and to how many pairs of an original and a reconstruction that was fitted. MOVED:
# whether votes changed the weights of the SemSim, as 1 or 0.
WEIGHT_OF, N_PAIRS, MOVED = "weight of ", "n_pairs", "moved"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Provenance of a checkpoint; written into it and shown wherever it is used.

    Attributes:
        simulated: Whether any of the votes were simulated, so that no person stands behind them.
        settings: Every setting that determined the result.
        pixels: By the key of each original whose votes it was given (`original_keys`), also of
            those it was only watched by, what tells its pictures from others
            (`semsim.metrics.learned`).
        results: What was measured at the end, such as the accuracy on held-out originals.
        stopped: Why it ended before its last epoch; empty where it did not.
        control: Of `CONTROLS` where this is no SemSim of its own but what one is compared with.
        start: Sha256 of the file with its initial weights; empty where none was kept.
    """

    n_originals: int
    n_triplets: int
    simulated: bool
    created: str
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    pixels: Mapping[str, Sequence[str]]
    study: str = ""
    warnings: Sequence[str] = ()
    results: Mapping[str, float] = field(default_factory=dict)
    stopped: str = ""
    control: str = ""
    start: str = ""


def original_keys(table: pd.DataFrame) -> pd.Series:
    """One string a row: which original it is of, by its data set and image id."""
    return table["dataset"].astype(str) + "/" + table["image_id"].astype(str)


def read_training(path: Path) -> Provenance:
    """Read the provenance of the checkpoint at `path`, without loading its weights."""
    with guarded(path, WeightsError, "does not say how it was trained ({})."):
        found = from_record(Provenance, read_config(path)["training"])
        if not all(isinstance(one, Mapping) for one in (found.settings, found.pixels)):
            raise TypeError("settings and pixels are no objects")
        return found


def read_config(path: Path) -> dict[str, Any]:
    """All that the checkpoint at `path` says of itself; `WeightsError` where it is no SemSim's."""
    if not Path(path).is_file():
        raise WeightsError(f"No SemSim checkpoint at {path}. The page Train SemSim makes one.")
    return read_facts(path, FORMAT)
