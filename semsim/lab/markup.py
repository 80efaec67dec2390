"""HTML of the pages from the templates in `html`, which escape whatever they are given."""

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from markupsafe import Markup

from semsim.base.errors import SemsimError
from semsim.base.plain_names import name_html
from semsim.base.storage.places import files_of
from semsim.base.words import agreeing, counted
from semsim.reporting.writing import templates_in
from semsim.sets.recognition import CLEARER


def rooted(address: str) -> str:
    """An address on this server, such as "/studio/", as a browser has to ask for it.

    A web server in front may show this one below a path, which app.py has put into the environment.
    """
    return os.environ.get("SEMSIM_ROOT_PATH", "") + address


# What a head of a table or a list is called → the word of the glossary that explains it.
_TERMS = {
    **dict.fromkeys(("Accuracy", "Target on its test"), "target model"),
    **{CLEARER: "no-attack baseline", "Candidate lists": "distractor model"},
    **{"Attacker": "attacker", "of initial weights": "initial weights"},
    **{"Held out": "held out", "of shuffled votes": "shuffled votes"},
}
# The same where what it is called begins so.
_BEGINNINGS = {
    **{"ρ": "rho", "difference of ρ": "rho", "τ": "tau", "c(M)": "c(M)"},
    "difference of soft pairwise accuracy": "soft pairwise accuracy",
    **{name: name for name in ("AUC", "PSNR", "SSIM", "LPIPS", "FID", "SemSim")},
}

WORDS = frozenset((*_TERMS.values(), *_BEGINNINGS.values()))


def term_of(called: str) -> str:
    """The word of the glossary that explains what is `called` so; "" where none has to."""
    beginnings = _BEGINNINGS.items()
    found = (term for text, term in beginnings if re.match(rf"{re.escape(text)}(?!\w)", called))
    return _TERMS.get(called) or next(found, "")


def _explained(called: object) -> str:
    """The attribute that makes the frame explain an element which is `called` so."""
    term = term_of(str(called))
    return Markup(' data-term="{}"').format(term) if term else ""


_OWN = "semsim.lab"


@cache
def _templates(package: str) -> Environment:
    """Templates in the folder `html` of a package, and those in `html` beside this module."""
    found = templates_in(*(files_of(one) / "html" for one in (package, _OWN)))
    found.globals |= {"agreeing": agreeing, "counted": counted, "rooted": rooted}
    found.globals |= {"explained": _explained, "name_of": name_html}
    return found


def pieces(template: str, package: str = _OWN) -> Any:
    """The macros of a template of a package, as functions of a page's values that return HTML."""
    return _templates(package).get_template(template).module


def said(words: str) -> Markup:
    """A sentence of ours as HTML; a word in [[ ]] is explained."""
    return Markup(re.sub(r"\[\[(.+?)\]\]", r'<span data-term="\1">\1</span>', words))


def alert_html(error: SemsimError) -> str:
    """Return an error as HTML.

    An event that is not queued has no toast, and would mark every component it draws.
    """
    return str(pieces("parts.html").trouble(str(error), "alert"))


def joined(parts: Iterable[str]) -> str:
    """HTML one after another; what is not HTML yet becomes text. `"".join` would end in text."""
    return Markup("").join(parts)


def study_address(folders: Iterable[str | Path]) -> str:
    """The page New study with these reconstruction sets chosen."""
    return rooted(f"/studio/new?{urlencode([('set', str(folder)) for folder in folders])}")
