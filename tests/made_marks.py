"""Finds metrics of the simulated voters' kind in texts, with the mark and without."""

import re

from semsim.base.metric_spec import VOTERS_KIND

PLAIN = ("Recognised by a classifier", "Fréchet distance (recogniser)")
_SHOWN = re.compile("|".join(map(re.escape, PLAIN)))
_MARK = re.compile(rf"\s*\\*\[{VOTERS_KIND}")
_AFTER = 40  # characters that name the place


def unmarked(text: str) -> list[str]:
    """Return each place that shows such a metric without its mark, as it begins."""
    plain = text.replace("\\u00e9", "é")
    places = [one for one in _SHOWN.finditer(plain) if not _MARK.match(plain, one.end())]
    return [plain[one.start() : one.end() + _AFTER].split("\n")[0] for one in places]


def marked(text: str) -> bool:
    """Return whether a text shows one with its mark."""
    return bool(re.search(rf"(?:{_SHOWN.pattern}){_MARK.pattern}", text.replace("\\u00e9", "é")))
