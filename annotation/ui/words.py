"""Counts in words: one item has, two items have."""


def agreeing(n: int, one: str, many: str) -> str:
    """The word that goes with `n` things: "has" with one, "have" with none or several."""
    return one if n == 1 else many


def counted(n: int, one: str, many: str = "") -> str:
    """`n` things by what they are called: "1 vote", "1,200 items"; `many` where no s is added."""
    return f"{n:,} {agreeing(n, one, many or one + 's')}"
