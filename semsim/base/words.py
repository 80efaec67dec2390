"""Counts and lists in words, the same in both halves."""

from collections.abc import Sequence


def agreeing(n: int, one: str, many: str) -> str:
    """The word that goes with `n` things: "has" with one, "have" with none or several."""
    return one if n == 1 else many


def counted(n: int, one: str, many: str = "") -> str:
    """`n` things by what they are called: "1 model", "1,200 images"; `many` where no s is added."""
    return f"{n:,} {agreeing(n, one, many or one + 's')}"


def listed(names: Sequence[str]) -> str:
    """Names one after another: "a", "a and b", "a, b and c"; at least one."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def first_of(
    names: Sequence[str], most: int, between: str = ", ", last: str = " and {} more"
) -> str:
    """The first `most` of `names`; `last`, with how many more there are, where there are any."""
    more = len(names) - most
    return between.join(names[:most]) + (last.format(f"{more:,}") if more > 0 else "")
