"""The attack lab: declarations of its pages, their forms, and HTML that pages share."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class LabContext:
    """Inputs of a page from outside.

    Attributes:
        data: The data folder, with jobs/ and runs/ below it.
        checkpoints: Folder of weights.
        device: Name of the device jobs compute on, such as "auto".
    """

    data: Path
    checkpoints: Path
    device: str
