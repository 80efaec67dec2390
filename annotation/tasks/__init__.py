"""What annotators are asked: one file a kind, one line here; everything may come in."""

from collections.abc import Mapping
from types import MappingProxyType

from annotation.tasks.kind import Kind
from annotation.tasks.pair import Pair
from annotation.tasks.rating import Rating
from annotation.tasks.recognition import Recognition

_ALL: tuple[type[Kind], ...] = (Recognition, Pair, Rating)
KINDS: Mapping[str, type[Kind]] = MappingProxyType({one.name: one for one in _ALL})
