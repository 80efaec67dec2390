"""How long work tells the world where it is: one value, one callback, adapted at the edges."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps; `values` holds what a live plot may draw, such as the loss."""

    done: int
    total: int
    note: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Report to nobody."""
