"""Pages of the science. A page is a module with `render(context)`; `app.py` composes them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class StudyChoice:
    """A study a page can offer; `simulated` says that no person voted in it."""

    id: str
    name: str
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class ScienceContext:
    """What the pages get from the outside.

    data: the data folder, with jobs/ and scores/ below it.
    studies: the studies there are, newest first.
    labels: a study's table of labels, one row a reconstruction.
    device: name of the device jobs compute on, such as "auto".
    """

    data: Path
    checkpoints: Path
    studies: Callable[[], list[StudyChoice]]
    labels: Callable[[str], pd.DataFrame]
    device: str
