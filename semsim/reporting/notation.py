"""Notation of numbers for people: no more digits than they deserve, a reason for none."""

import math

import pandas as pd

from semsim.base.columns import ATTACKER, TARGET_COLUMNS
from semsim.base.words import target_words

NONE = "–"
LACKING = f" {NONE}: the study has no score by that metric."
_MOST = 6  # decimals at most: what is nearer to 1 may be read as 1


def number(value: float, digits: int = 3) -> str:
    """A number with `digits` decimals, fewer for large ones; a dash for NaN; ∞ as such.

    With more where it would else read as 0 or as 1 and is not.
    """
    if pd.isna(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value += 0.0  # of −0 it makes 0
    if 0 < abs(value) < 10.0**-digits:
        text = f"{value:.2g}"
    else:
        places = max(0, digits + 1 - len(str(int(abs(value)))))
        while abs(value) < 1 and places < _MOST and float(f"{abs(value):.{places}f}") == 1:
            places += 1
        text = f"{value:.{places}f}"
    return text.replace("-", "−")


def rank_text(rank: float) -> str:
    """A rank, with the half of models that share one, as "10.5", or an end of its range; a dash
    for NaN.
    """
    return NONE if pd.isna(rank) else f"{round(rank, 1):g}"


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """An interval such as "[0.21, 0.87]", or a dash where there is none."""
    if pd.isna(low) or pd.isna(high):
        return NONE
    return f"[{number(low, digits)}, {number(high, digits)}]"


def with_interval(
    value: float | None, low: float | None, high: float | None, digits: int = 2
) -> str:
    """A value and its interval, such as "0.670 [0.21, 0.87]"; a dash where there is no value."""
    if pd.isna(value):
        return NONE
    return number(value) if pd.isna(low) else f"{number(value)} {interval(low, high, digits)}"


def with_interval_or_why(
    value: float | None, low: float | None, high: float | None, why: object, note: object = None
) -> str:
    """A value and its interval with a note, or in brackets why it has none."""
    said = reason(why)
    if pd.isna(value) or said is None:
        return with_interval(value, low, high) + noted(note)
    return f"{number(value)} [{said}]"


def noted(note: object) -> str:
    """Return the note of an interval in brackets, to follow it; "" without one."""
    said = reason(note)
    return "" if said is None else f" ({said})"


def attacker_text(row: pd.Series) -> str:
    """Say what the attacker knew and saw, of a row that may have `ATTACKER`."""
    found = row.get(ATTACKER)
    return NONE if found is None or pd.isna(found) else str(found)


def target_text(row: pd.Series) -> str:
    """Say how good a target model was, of a row that may have `TARGET_COLUMNS`."""
    found = (row.get(name) for name in TARGET_COLUMNS)
    return target_words(*(None if one is None or pd.isna(one) else one for one in found))


def p_value(p: float) -> str:
    """A p value: three decimals, "< 0.001" below; a dash for NaN."""
    return "< 0.001" if p < 0.001 else number(p)


def reason(undefined: object) -> str | None:
    """Return why there is no number, or None where there is one; tables keep None as NaN."""
    return None if undefined is None or undefined != undefined else str(undefined)


def undefined_text(undefined: object) -> str:
    """ "undefined: why", or an empty text."""
    why = reason(undefined)
    return "" if why is None else f"undefined: {why}"
