"""Results that the other half of the product computes and keeps of votes, handed in as needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pandas as pd


class Ceiling(Protocol):
    """Correlation of the ranking of the models by some people with that by the others.

    rho: mean Spearman's ρ over `n_splits` splits into groups of `sizes`, with the ends of its 95 %
    interval where there is one; `undefined` says why there is no ρ.
    """

    @property
    def rho(self) -> float | None: ...
    @property
    def rho_low(self) -> float | None: ...
    @property
    def rho_high(self) -> float | None: ...
    @property
    def sizes(self) -> tuple[int, int]: ...
    @property
    def n_splits(self) -> int: ...
    @property
    def undefined(self) -> str | None: ...


def _nothing(key: str) -> tuple[str, pd.DataFrame, int]:
    raise LookupError(f"There is no import {key!r}.")


@dataclass(frozen=True, kw_only=True)
class Science:
    """All of it can be sent to another process.

    ceiling: that of people, from a table of votes.
    import_names: of each import, by its key, what it is called and what it holds: "votes", or
    "labels" without any. read_import: by that key its name, its votes as a study exports them, and
    a number that changes when they do; raises `trouble`.
    """

    ceiling: Callable[[pd.DataFrame], Ceiling]
    import_names: Callable[[], Mapping[str, tuple[str, str]]] = dict
    read_import: Callable[[str], tuple[str, pd.DataFrame, int]] = _nothing
    trouble: type[Exception] = LookupError
