"""Which texts may be sent to this server: those that every database can hold.

PostgreSQL refuses a zero, both refuse half a surrogate pair; no other control character belongs
into a name or an answer either. Checked where a text comes in, so that both databases say the same.
"""

import math
import re
from typing import Any

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
DEEPEST = 20  # lists and objects in each other
UNFIT = "Expected a text without control characters and halves of characters"


def is_fit(text: str) -> bool:
    """Whether `text` has no control character but tab and line breaks, and no lone surrogate."""
    return _UNFIT.search(text) is None


def fit(text: str) -> str:
    """`text` if `is_fit`; else `ValueError`, as validators raise."""
    if not is_fit(text):
        raise ValueError(f"{UNFIT}; got {text[:80]!r}.")
    return text


def fit_json(value: Any, depth: int = DEEPEST) -> Any:
    """`value`, made of JSON, if a database can hold it; else `ValueError`.

    Texts must be `fit`, numbers finite, and nothing nested deeper than `depth`.
    """
    if depth < 0:
        raise ValueError(f"Expected at most {DEEPEST} lists and objects in each other.")
    if isinstance(value, str):
        fit(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"Expected finite numbers; got {value}.")
    elif isinstance(value, dict):
        fit_json([*value, *value.values()], depth)
    elif isinstance(value, list):
        for one in value:
            fit_json(one, depth - 1)
    return value


def sendable(text: str) -> str:
    """`text` as UTF-8 can say it; halves of characters are spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()
