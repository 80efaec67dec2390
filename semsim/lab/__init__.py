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


@dataclass(frozen=True, kw_only=True)
class Effort:
    """An order's effort before it is started.

    Attributes:
        made, attacked: Counts in words.
        more: Beside what is made.
        disk: Bytes at most.
        time: In words, or "" where there is no forecast.
        note: What else is to be known.
    """

    made: str
    more: str
    attacked: str
    disk: int
    time: str = ""
    note: str = ""
