"""Names that come out of files: what a study could not keep, show or take as an answer."""

import re

LONGEST_ANSWER = 200  # letters of what a browser may answer
_SHOWN = 40  # letters of a name in a message
_UNUSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def flaw(name: str) -> str:
    """Why `name` can name nothing in a study, naming it; empty where it can.

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
