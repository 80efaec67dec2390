"""Names in Markdown, where they are shown as they are."""

from typing import Any

_SIGNS = {letter: f"\\{letter}" for letter in "\\|*_`[]<>#"}


def in_markdown(text: str) -> str:
    """`text` without line breaks, in which nothing is markup or HTML."""
    return "".join(_SIGNS.get(letter, letter) for letter in " ".join(text.split()))


def all_in_markdown(value: Any) -> Any:
    """`value`, made of JSON, with every text as `in_markdown` has it; keys too."""
    if isinstance(value, str):
        return in_markdown(value)
    if isinstance(value, dict):
        return {all_in_markdown(key): all_in_markdown(one) for key, one in value.items()}
    return [all_in_markdown(one) for one in value] if isinstance(value, list | tuple) else value
