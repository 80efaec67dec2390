"""Data of a study for the labelling page, and the page itself: one custom element.

The page is small on purpose: no library, what it needs of the study in itself, its scripts named in
its head so that a browser fetches them all at once.
"""

import re
from dataclasses import asdict
from functools import cache
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from starlette.responses import HTMLResponse

from annotation.spec import StudySpec
from annotation.tasks.kind import NONE
from annotation.web import templates
from annotation.web.root_path import rooted
from annotation.web.templates import STATIC, STATIC_URL

_IMPORTED = re.compile(r'from "\./([\w.]+)"')
_SECTIONS = ("label", "error", "copy")


def shown(spec: StudySpec, version: int = 1) -> dict[str, Any]:
    """All that the element goes by, but for who is signed in."""
    say, kind = spec.wording, spec.kind
    return {
        "version": version,
        "name": spec.shown_title,
        "task": spec.task.value,
        "question": say(f"{kind.name}.question"),
        "about": spec.instructions or say(f"{kind.name}.about"),
        "rules": say.rules(kind),
        "keys": [asdict(key) for key in say.keys(kind)],
        "none": NONE,
        "lists": kind.lists,
        "beside": kind.beside,
        "first_ms": kind.first_ms,
        "min_rt_ms": spec.min_rt_ms,
        "image_scale": spec.image_scale,
        "view": spec.view.value,
        "background": spec.background.value,
        "classes": dict(spec.class_names),
        "texts": say.section(*_SECTIONS),
        "lang": say("page.lang"),
        "dir": say("page.dir"),
    }


def page(about: dict[str, Any]) -> HTMLResponse:
    """The page, which is told what `/api/study` would tell."""
    return templates.page(
        "label.html",
        title=about["name"],
        lang=about["lang"],
        dir=about["dir"],
        static=rooted(STATIC_URL),
        scripts=scripts(),
        about=htmlsafe_json_dumps(about),
    )


@cache
def scripts() -> tuple[str, ...]:
    """The names of all scripts that the page loads, the first one first."""
    found = ["labeller.js"]
    for name in found:
        text = (STATIC / name).read_text(encoding="utf-8")
        found += [one for one in _IMPORTED.findall(text) if one not in found]
    return tuple(found)
