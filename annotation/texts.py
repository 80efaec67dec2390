"""Texts that may be sent to this server, names that a study can keep, and counts in words.

PostgreSQL refuses a zero, both refuse half a surrogate pair; no other control character belongs
into a name or an answer either. Checked where a text comes in, so that both databases say the same.
"""

import math
import re
from typing import Any

from semsim.base.words import agreeing as agreeing
from semsim.base.words import counted as counted

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
LONGEST_ANSWER = 200  # letters of what a browser may answer
_SHOWN = 40  # letters of a name in a message
_UNUSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # in a name
DEEPEST = 20  # lists and objects in each other
UNFIT = "Expected a text without control characters and halves of characters"


def is_fit(text: str) -> bool:
    """Check that `text` has no control character but tab and line breaks, and no lone surrogate."""
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


def flaw(name: str) -> str:
    """Return why `name` can name nothing in a study, naming it; empty where it can.

    Control characters break files and terminals, and PostgreSQL takes neither U+0000 nor half of a
    surrogate pair.
    """
    if not name.strip():
        return f"{shortened(name)} is empty; give it a name."
    found = _UNUSABLE.search(name)
    if found is None:
        return ""
    code = f"U+{ord(found.group()):04X}"
    if "\ud800" <= found.group() <= "\udfff":
        return f"{shortened(name)} holds {code}, which is half a letter; leave it out."
    return f"{shortened(name)} holds the control character {code}; leave it out."


def flaw_of_class(name: str) -> str:
    """As `flaw`, for a class, which must also be short enough to be an answer."""
    if len(name) > LONGEST_ANSWER:
        return (
            f"{shortened(name)} has {len(name)} letters; at most {LONGEST_ANSWER} can be answered."
        )
    return flaw(name)


def shortened(name: str) -> str:
    """The beginning of `name`, quoted, as a message can show it."""
    return f"{name[:_SHOWN]!r} …" if len(name) > _SHOWN else repr(name)


def duration(seconds: float) -> str:
    """A span of work the way people say it."""
    minutes = seconds / 60
    if minutes < 90:
        return counted(max(1, round(minutes)), "minute")
    return f"{minutes / 60:,.1f} hours"
