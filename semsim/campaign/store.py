"""Finished pieces of campaigns on disk, by key: trained targets and attacked images.

    <data>/runs/_pieces/targets/<key>.safetensors  weights, as `save_target` writes them
    <data>/runs/_pieces/targets/<key>.json         what the training cost
    <data>/runs/_pieces/targets/<key>.part         a training under way, kept by the worker
    <data>/runs/_pieces/targets/<key>.error.txt    why there are none
    <data>/runs/_pieces/cells/<key>.npz            one attacked image

All campaigns below one data folder share them.
"""

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from semsim.base.jobs.folders import read_json
from semsim.base.storage.atomic import whole, write_bytes, write_json, write_text
from semsim.base.storage.pieces import Pieces
from semsim.sets.image import AttackResult

PIECES = "_pieces"  # begins with a sign that no campaign's name begins with
_ABOUT = ("image_id", "class_id", "class_name", "crashed", "seconds")


@dataclass(frozen=True, kw_only=True)
class StoredCell:
    """An attacked image as it is kept.

    Attributes:
        original: (H, W, 3) uint8.
        crashed: The attack ended in an unforeseen error, rather than by reporting that it failed.
        seconds: Of computing, shared evenly by images attacked together.
    """

    image_id: str
    class_id: int
    class_name: str
    original: np.ndarray
    result: AttackResult
    crashed: bool
    seconds: float


class PieceStore:
    """The finished pieces below `data`. Only one process of a campaign writes.

    Attributes:
        cells: Attacked images.
        weights: Content of weight files.
        costs: Seconds, device and course of a training.
        failures: Why a target could not be trained.
        probes: Seconds that a step took.
    """

    def __init__(self, data: Path) -> None:
        folder = Path(data) / "runs" / PIECES
        targets = folder / "targets"
        self.cells = Pieces(folder / "cells", ".npz", read=_read_cell, write=_write_cell)
        self.weights = Pieces(targets, ".safetensors", read=Path.read_bytes, write=write_bytes)
        self.costs = Pieces(targets, ".json", read=read_json, write=write_json)
        self.failures = Pieces(
            targets, ".error.txt", read=partial(Path.read_text, encoding="utf-8"), write=write_text
        )
        self.probes = Pieces(folder / "probes", ".json", read=read_json, write=write_json)

    def write_target(self, key: str, content: bytes, cost: dict[str, Any]) -> None:
        """Keep a trained target; a failure kept before is forgotten."""
        self.costs.write(key, cost)
        self.weights.write(key, content)
        self.checkpoint(key).unlink(missing_ok=True)
        self.failures.forget(key)

    def checkpoint(self, key: str) -> Path:
        """Return the file in which a training keeps what it needs to go on; make its folder."""
        path = self.weights.path(key).with_suffix(".part").resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def failure(self, key: str) -> str:
        """Return the reason why the target could not be trained, or "" where none is known."""
        return self.failures.read(key) if key in self.failures else ""


def _write_cell(path: Path, cell: StoredCell) -> None:
    facts = {**asdict(cell.result), "picture": None, "attacked": None}
    facts |= {name: getattr(cell, name) for name in _ABOUT}
    nothing = np.empty(0, np.uint8)
    with whole(path) as part, open(part, "wb") as file:  # np.savez would add .npz to a name
        np.savez(
            file,
            original=cell.original,
            attacked=cell.result.attacked,
            picture=nothing if cell.result.picture is None else cell.result.picture,
            facts=json.dumps(facts),
        )


def _read_cell(path: Path) -> StoredCell:
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in ("original", "attacked", "picture")}
        facts = json.loads(str(stored["facts"]))
    about = {name: facts.pop(name) for name in _ABOUT}
    shift = facts.pop("found_shift")
    facts |= {"found_shift": None if shift is None else tuple(shift)}
    picture = arrays["picture"] if arrays["picture"].size else None
    facts |= {"picture": picture, "attacked": arrays["attacked"]}
    return StoredCell(original=arrays["original"], result=AttackResult(**facts), **about)
