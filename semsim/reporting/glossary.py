"""Meanings of terms that a student cannot know: one list for pages, report and documents."""

from collections.abc import Mapping
from functools import cache

from semsim.base.storage.places import toml_of
from semsim.base.words import jury_words


@cache
def glossary() -> Mapping[str, str]:
    """The meaning of every term, in a sentence or two."""
    return {**toml_of("semsim.reporting", "glossary.toml"), "simulated": jury_words()}
