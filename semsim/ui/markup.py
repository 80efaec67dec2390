"""HTML of the pages from the templates in `html`, which escape whatever they are given."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from semsim.kept.places import files_of
from semsim.reporting.writing import templates_in
from semsim.words import agreeing, counted


def rooted(address: str) -> str:
    """An address on this server, such as "/studio/", as a browser has to ask for it.

    A web server in front may show this one below a path, which app.py has put into the environment.
    """
    return os.environ.get("SEMSIM_ROOT_PATH", "") + address


_TEMPLATES = templates_in(files_of("semsim.ui") / "html")
_TEMPLATES.globals |= {"agreeing": agreeing, "counted": counted, "rooted": rooted}


def pieces(template: str) -> Any:
    """The macros of a template, as functions of a page's values that return HTML."""
    return _TEMPLATES.get_template(template).module


def joined(parts: Iterable[str]) -> str:
    """HTML one after another; what is not HTML yet becomes text. `"".join` would end in text."""
    return Markup("").join(parts)


def study_address(folders: Iterable[str | Path]) -> str:
    """The page New study with these reconstruction sets chosen."""
    return rooted(f"/studio/new?{urlencode([('set', str(folder)) for folder in folders])}")
