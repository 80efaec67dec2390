"""Choice of the SemSim of this workspace, the one that Compare shows first."""

from pathlib import Path

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.storage.records import read_record, write_record
from semsim.learning.baselines import verdict_of
from semsim.learning.card import read_card
from semsim.learning.settings import checkpoint_path
from semsim.metrics.provenance import read_training

PROMOTED_FILE, FORMAT = "workspace-semsim.json", "semsim-chosen/1"
_UNKNOWN = (
    "was compared with none of MSE, PSNR, SSIM and its initial weights: nobody knows if it lost"
)
BUILT_IN = "demo"  # the SemSim that comes with the product


def promote(checkpoints: Path, name: str) -> Path:
    """Make the checkpoint called `name` the SemSim of the workspace; returns its file.

    Raises `SettingsError` for what cannot be a name, `WeightsError` where it is no SemSim.
    """
    path = checkpoint_path(checkpoints, name)
    if not path.is_file():
        raise WeightsError(f"There is no SemSim called {name!r} in {checkpoints}.")
    read_training(path)
    write_record(Path(checkpoints) / PROMOTED_FILE, FORMAT, {"semsim": name})
    return path


def doubt(checkpoints: Path, name: str) -> str:
    """Return the doubt about the checkpoint called `name`, by its card; "" if there is none.

    Such as "lost to MSE, PSNR": of MSE, PSNR, SSIM, initial weights and the calibrated baseline, on
    what was held out. A card that compares it with none of them leaves a doubt as well. A
    checkpoint without a card leaves none: its user chose to train without a test. Raises as
    `promote` for a name, and `WeightsError` for a broken card.
    """
    card = read_card(checkpoint_path(checkpoints, name))
    lost = () if card is None else verdict_of(card["held_out"]).lost
    if lost is None:
        return _UNKNOWN
    return f"lost to {', '.join(lost)}" if lost else ""


def promoted(checkpoints: Path) -> str | None:
    """The name of the SemSim of the workspace; None where there is none.

    Until one is chosen, and where its file has gone, it is the one that comes with the product.
    """
    built_in = BUILT_IN if checkpoint_path(checkpoints, BUILT_IN).is_file() else None
    try:
        name = str(read_record(Path(checkpoints) / PROMOTED_FILE, FORMAT, WeightsError)["semsim"])
        return name if checkpoint_path(checkpoints, name).is_file() else built_in
    except (WeightsError, KeyError, SettingsError):
        return built_in  # a file edited by hand is no reason for Compare not to open
