"""Progress reports of long work: one value, one callback, adapted at the edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from semsim.base.errors import StopRequestedError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class Look:
    """A picture that work is making.

    Attributes:
        place: Which of those it was given.
        share: Done of that one, 0 to 1, never falling.
        picture: What it looks like now, (H, W, 3) uint8; it takes time and reads what the work goes
            on changing, so only who shows it calls it, before the report returns.
    """

    place: int
    share: float
    picture: Callable[[], np.ndarray]


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps; `values` holds what a live plot may draw, such as the loss.

    Attributes:
        look: At a picture that is being made, where one is.
        paced: Whether steps so far tell how long those left will take; not where these are of
            another kind and of unknown cost.
    """

    done: int
    total: int
    note: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    look: Look | None = field(default=None, compare=False)
    paced: bool = True


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Discard the report."""


def one_step(progress: Progress) -> None:
    """A report for a try: `StopRequestedError` as soon as it is told anything."""
    raise StopRequestedError("One step is enough.")


def placed(report: Report, places: Sequence[int]) -> Report:
    """A report for work that was given only those at `places`, told as of all of them."""

    def tell(progress: Progress) -> None:
        look = progress.look
        if look is not None:
            look = replace(look, place=places[look.place])
        report(replace(progress, look=look))

    return tell
