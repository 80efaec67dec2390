"""What the terms mean that a student cannot know: one list for pages, report and documents."""

import tomllib
from collections.abc import Mapping
from functools import cache

from semsim.base.places import files_of


@cache
def glossary() -> Mapping[str, str]:
    """The meaning of every term, in a sentence or two."""
    return dict(tomllib.loads((files_of("semsim.reporting") / "glossary.toml").read_text("utf-8")))
