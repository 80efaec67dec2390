"""Questions to annotators: one file a kind, one line here; everything may come in."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from annotation.tasks.kind import Kind
from annotation.tasks.pair import Pair
from annotation.tasks.rating import Rating
from annotation.tasks.recognition import Recognition

_ALL: tuple[type[Kind], ...] = (
    Recognition,
    Pair,
    Rating,
)
KINDS: Mapping[str, type[Kind]] = MappingProxyType({one.name: one for one in _ALL})

if TYPE_CHECKING:

    class Task(StrEnum):
        """Question about an item: the name of one of `KINDS`."""

else:
    Task = StrEnum("Task", {name.upper(): name for name in KINDS}, module=__name__)

USUAL_TASK = Task(next(iter(KINDS)))  # where nothing else is said
