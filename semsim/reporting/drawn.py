"""What a figure is made of before it has a name or a format."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure as a table and a way to paint it.

    caption: what it shows, what its intervals are, and n.
    frame: everything that is drawn. A row with a `model_key` is a point a page can react to: the
        artist of row i has the gid `row-i`.
    paint: from the frame and a width in millimetres; draws nothing that is not in the frame.
    tooltip: of a row of the frame.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    paint: Callable[[pd.DataFrame, float], "Figure"]
    tooltip: Callable[[pd.Series], str] | None = None
