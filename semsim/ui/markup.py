"""HTML of the pages from the templates in `html`, which escape whatever they are given."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from semsim.reporting.writing import templates_in
from semsim.words import agreeing, counted

_TEMPLATES = templates_in(Path(__file__).with_name("html"))
_TEMPLATES.globals |= {"agreeing": agreeing, "counted": counted}


def pieces(template: str) -> Any:
    """The macros of a template, as functions of a page's values that return HTML."""
    return _TEMPLATES.get_template(template).module


def joined(parts: Iterable[str]) -> str:
    """HTML one after another; what is not HTML yet becomes text. `"".join` would end in text."""
    return Markup("").join(parts)


def png_address(content: bytes) -> str:
    """An address that holds a PNG file."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
