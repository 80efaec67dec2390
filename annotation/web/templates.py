"""HTML from the templates in this room and in `ui`; every text they are given is escaped.

As in JSX, a line break beside a tag or a value is nothing, and any other one is a space.
"""

import re
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from starlette.responses import HTMLResponse

from annotation.accounts.access import way_in
from annotation.web.root_path import rooted
from semsim.base.plain_names import name_html
from semsim.base.storage.places import files_of

_HALF = files_of("annotation")
STATIC = _HALF / "ui/static"  # served at STATIC_URL
STATIC_URL = "/static/annotation"
_BESIDE = re.compile(r"(?<=[>}])\s*\n\s*|\s*\n\s*(?=[<{])")


class _Lines(Extension):
    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"\s*\n\s*", " ", _BESIDE.sub("", source.strip()))


_TEMPLATES = Environment(
    loader=FileSystemLoader([_HALF / "web/html", _HALF / "ui/html"]),
    autoescape=True,
    undefined=StrictUndefined,
    extensions=[_Lines],
)
_TEMPLATES.globals.update(rooted=rooted, way_in=way_in, for_others="", name_of=name_html)


def reached_at(address: str) -> None:
    """Show `address` where a page advises how others reach this server; "" is nowhere."""
    _TEMPLATES.globals["for_others"] = address


def fill(template: str, **values: Any) -> str:
    """The HTML of a template, which must be given every value that it asks for."""
    return _TEMPLATES.get_template(template).render(values)


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """The same as a response."""
    return HTMLResponse(fill(template, **values), status)


def trouble(path: str, status: int, text: str, *, again: bool = True) -> HTMLResponse:
    """A page that says what went wrong with `path`; with the studio around it where it is one.

    Args:
        again: Whether to offer the same address once more.
    """
    if path.split("/")[1:2] in (["studio"], ["admin"], ["account"]):
        return page("trouble.html", status, text=text, again=again)
    return page("message.html", status, title="That did not work", text=text)
