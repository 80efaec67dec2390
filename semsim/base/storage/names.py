"""Names that people give and folders and files get."""

import re
from pathlib import Path

from semsim.base.errors import SettingsError

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,79}")


def checked_name(name: str, what: str) -> str:
    """`name` itself; `SettingsError` where nothing on disk can be called so.

    Args:
        what: As "a job".
    """
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} cannot name {what}: use up to 80 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit."
        )
    return name


def free_name(runs: Path, stem: str, before: str = "") -> str:
    """Return `stem` with the first number whose folder below `runs`, after `before`, is free."""
    number = 1
    while (runs / f"{before}{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"
