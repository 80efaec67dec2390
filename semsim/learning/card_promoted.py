"""Which SemSim is the SemSim of this workspace: the one Compare shows first."""

import json
from pathlib import Path

from semsim.errors import SettingsError, WeightsError
from semsim.kept.whole import write_json
from semsim.learning.orders import checkpoint_path
from semsim.metrics.network import read_training

PROMOTED_FILE = "workspace-semsim.json"


def promote(checkpoints: Path, name: str) -> Path:
    """Make the checkpoint called `name` the SemSim of the workspace; returns its file.

    Raises `SettingsError` for what cannot be a name, `WeightsError` where it is no SemSim.
    """
    path = checkpoint_path(checkpoints, name)
    if not path.is_file():
        raise WeightsError(f"There is no SemSim called {name!r} in {checkpoints}.")
    read_training(path)
    write_json(Path(checkpoints) / PROMOTED_FILE, {"semsim": name})
    return path


def promoted(checkpoints: Path) -> str | None:
    """The name of the SemSim of the workspace; None where none was chosen or its file has gone."""
    try:
        content = json.loads((Path(checkpoints) / PROMOTED_FILE).read_text(encoding="utf-8"))
        name = str(content["semsim"])
        return name if checkpoint_path(checkpoints, name).is_file() else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, SettingsError):
        return None  # a file edited by hand is no reason for Compare not to open
