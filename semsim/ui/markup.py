"""HTML of the pages from the templates in `html`, which escape whatever they are given."""

import base64
from pathlib import Path
from typing import Any

from semsim.reporting.writing import templates_in

_TEMPLATES = templates_in(Path(__file__).with_name("html"))


def pieces(template: str) -> Any:
    """The macros of a template, as functions of a page's values that return HTML."""
    return _TEMPLATES.get_template(template).module


def png_address(content: bytes) -> str:
    """An address that holds a PNG file."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
