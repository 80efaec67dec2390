"""The rule by which two words are the same: of classes, answers, models, pictures and people.

Systems compose letters differently (ü is one code point or two), and people type blanks and large
letters as they like. Whoever compares words that come from outside asks here.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Set

from semsim.base.errors import DataError

NONE = "none"  # the answer "I do not see any of these"
# Marks that do not print: where a word may break, which way it runs, which form a sign has.
_UNSEEN = dict.fromkeys(
    map(ord, "\u00ad\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufe0e\ufe0f\ufeff")
)


def written(text: str) -> str:
    """Return `text` composed (NFC), with one kind of blank, none around it and no unseen mark."""
    return unicodedata.normalize("NFC", " ".join(text.translate(_UNSEEN).split()))


def alike(text: str) -> str:
    """Return what two texts have in common exactly where people read them as one word.

    >>> alike("BA\\u0308R\\u00a0 ") == alike("b\\u00e4r")
    True
    """
    folded = written(text).casefold().replace("i\u0307", "i")  # of İ
    return unicodedata.normalize("NFC", folded)


def firsts(names: Iterable[str]) -> dict[str, str]:
    """Return each name with the first of those that are the same word, as it is `written`."""
    found: dict[str, str] = {}
    return {name: found.setdefault(alike(name), written(name)) for name in names}


def called(words: Iterable[str], names: Iterable[str]) -> str:
    """Return the first of `names` that is the same word as one of `words`; "" for none."""
    taken = {alike(word) for word in words}
    return next((name for name in names if alike(name) in taken), "")


def class_names(names: Iterable[str], *none: str) -> dict[str, str]:
    """The class that each name means, which may be written otherwise (`alike`).

    Args:
        none: Other words for the answer "none".

    Raises:
        DataError: For a class that is called so.
    """
    found = firsts(names)
    if name := called([NONE, *none], found):
        raise DataError(
            f"A class is called {name!r}, as the answer that means none of these: rename the class."
        )
    return found


def partners(wanted: Iterable[str], known: Set[str] | Mapping[str, object]) -> dict[str, str]:
    """Return for each of `wanted` which of `known` it means: itself, or the only same word.

    What several could mean, or what stands for itself already, is left out.
    """
    names = list(dict.fromkeys(wanted))
    found = {name: name for name in names if name in known}
    free: dict[str, list[str]] = {}
    for name in known:
        if name not in found:
            free.setdefault(alike(name), []).append(name)
    asking: dict[str, list[str]] = {}
    for name in names:
        if name not in found:
            asking.setdefault(alike(name), []).append(name)
    pairs = ((one, free.get(word, ())) for word, one in asking.items())
    return found | {one[0]: two[0] for one, two in pairs if len(one) == len(two) == 1}
