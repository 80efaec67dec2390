"""Finished pieces of campaigns on disk, by key: trained targets and attacked images.

    <data>/runs/_pieces/targets/<key>.safetensors  weights, as `save_target` writes them
    <data>/runs/_pieces/targets/<key>.json         what the training cost
    <data>/runs/_pieces/targets/<key>.part         a training under way, kept by the worker
    <data>/runs/_pieces/targets/<key>.error.txt    why there are none
    <data>/runs/_pieces/cells/<key>.npz            one attacked image

Every file is written whole or not at all. All campaigns below one data folder share them.
"""

import json
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semsim.campaign.failures import told_of_the_machine
from semsim.errors import DataError
from semsim.jobs.folders import read_json
from semsim.kept.whole import whole_file, write_bytes, write_json, write_text
from semsim.sets.image import AttackResult

PIECES = "_pieces"  # begins with a sign that no campaign's name begins with


@dataclass(frozen=True, kw_only=True)
class StoredCell:
    """An attacked image as it is kept.

    original: (H, W, 3) uint8. crashed: the attack ended in an error nobody foresaw, rather than by
    saying that it failed. seconds: of computing, shared evenly by images attacked together.
    """

    image_id: str
    class_id: int
    class_name: str
    original: np.ndarray
    result: AttackResult
    crashed: bool
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether there is a picture."""
        return self.result.ok

    @property
    def worse_than_grey(self) -> bool:
        """Whether a grey image explains the gradient at least as well as the picture."""
        return self.result.worse_than_grey

    @property
    def blown_up(self) -> bool:
        """Whether the solution was farther from grey than any picture; clamping hides that."""
        return self.result.blown_up


class PieceStore:
    """The finished pieces below `data`. Only one process of a campaign writes."""

    def __init__(self, data: Path) -> None:
        self.folder = Path(data) / "runs" / PIECES

    def weights(self, key: str) -> Path:
        """Where the target's weights are, or will be."""
        return self.folder / "targets" / f"{key}.safetensors"

    def write_target(self, key: str, content: bytes, cost: dict[str, Any]) -> None:
        """Keep a trained target; a failure kept before is forgotten."""
        path = self.weights(key)
        write_json(path.with_suffix(".json"), cost)
        write_bytes(path, content)
        self.checkpoint(key).unlink(missing_ok=True)
        self.forget_failure(key)

    def checkpoint(self, key: str) -> Path:
        """Where a training under way keeps what it needs to go on, in a folder that is there."""
        path = self.weights(key).with_suffix(".part").resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def target_cost(self, key: str) -> dict[str, Any]:
        """What the training cost: seconds and device."""
        return read_json(self.weights(key).with_suffix(".json"))

    def write_failure(self, key: str, why: str) -> None:
        """Keep why a target could not be trained."""
        write_text(self._failure(key), why)

    def failure(self, key: str) -> str:
        """Why the target could not be trained, or "" where nothing is known of that."""
        path = self._failure(key)
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def forget_failure(self, key: str) -> None:
        """The target may be tried again."""
        self._failure(key).unlink(missing_ok=True)

    def cell(self, key: str) -> Path:
        """Where the cell is, or will be."""
        return self.folder / "cells" / f"{key}.npz"

    def has_cell(self, key: str) -> bool:
        """Whether the cell is done or failed."""
        return self.cell(key).exists()

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of `keys` that are neither done nor failed."""
        folder = self.folder / "cells"
        there = {path.stem for path in folder.glob("*.npz")} if folder.is_dir() else set()
        return [key for key in keys if key not in there]

    def write_cell(self, key: str, cell: StoredCell) -> None:
        """Keep an attacked image."""
        facts = {**asdict(cell.result), "picture": None, "attacked": None}
        facts = {**facts, "image_id": cell.image_id, "class_id": cell.class_id}
        facts |= {"class_name": cell.class_name, "crashed": cell.crashed, "seconds": cell.seconds}
        nothing = np.empty(0, np.uint8)
        picture = nothing if cell.result.picture is None else cell.result.picture
        with whole_file(self.cell(key)) as part, open(part, "wb") as file:
            np.savez(  # into a file, as it would add .npz to a name
                file,
                original=cell.original,
                attacked=cell.result.attacked,
                picture=picture,
                facts=json.dumps(facts),
            )

    def read_cell(self, key: str) -> StoredCell:
        """The kept cell; `DataError` where it is missing or broken."""
        path = self.cell(key)
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in ("original", "attacked", "picture")}
                facts = json.loads(str(stored["facts"]))
            about = {k: facts.pop(k) for k in _ABOUT}
            shift = facts.pop("found_shift")
            facts |= {"found_shift": None if shift is None else tuple(shift)}
            picture = arrays["picture"] if arrays["picture"].size else None
            facts |= {"picture": picture, "attacked": arrays["attacked"]}
            return StoredCell(original=arrays["original"], result=AttackResult(**facts), **about)
        except _BROKEN as error:
            raise DataError(
                f"{path} cannot be read ({error}); delete it, and the campaign makes it again."
            ) from error

    def forget_cell(self, key: str) -> None:
        """The cell will be computed again."""
        self.cell(key).unlink(missing_ok=True)

    def forget_machine_failures(self, cells: Iterable[str], targets: Iterable[str]) -> None:
        """Forget what earlier versions kept though no attack and no training had said it."""
        for key in targets:
            if told_of_the_machine(self.failure(key)):
                self.forget_failure(key)
        cells = list(cells)
        for key in set(cells) - set(self.missing(cells)):
            facts = self._facts(key)
            if facts.get("crashed") and told_of_the_machine(str(facts.get("error"))):
                self.forget_cell(key)

    def _facts(self, key: str) -> dict[str, Any]:
        """What is kept of a cell beside its pictures; nothing where it cannot be read."""
        try:
            with np.load(self.cell(key), allow_pickle=False) as stored:
                return dict(json.loads(str(stored["facts"])))
        except _BROKEN:
            return {}  # whoever reads all of it says what to do

    def _failure(self, key: str) -> Path:
        return self.folder / "targets" / f"{key}.error.txt"


# What numpy and zipfile raise of a file that is cut short, empty or something else.
_BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)
_ABOUT = ("image_id", "class_id", "class_name", "crashed", "seconds")
