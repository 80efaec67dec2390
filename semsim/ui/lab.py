"""Parts shared by the four pages of the attack lab: a form of plain HTML, and its routes."""

import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from markupsafe import Markup

from semsim.base.errors import SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.pages_library import gr
from semsim.base.sets.imports import list_pictures
from semsim.base.storage.places import files_of
from semsim.datasets import DATASETS
from semsim.datasets.fetch_job import KIND, FetchOrder, fetchable, queue_fetch
from semsim.distractors.model_card import tested
from semsim.distractors.registry import judges
from semsim.reporting.not_run import NOT_RUN, SECTIONS
from semsim.ui import ScienceContext, plain_words
from semsim.ui.answers import worded
from semsim.ui.markup import pieces, rooted
from semsim.ui.pictures_data import pictures_words
from semsim.ui.settings_form import plugin_settings

FOLDER = "/studio/lab-files"
_OWN = "folder:root="  # begins the item of pictures of one's own
_SCRIPT = files_of("semsim.ui") / "html/lab.js"
_HTML = pieces("lab.html")
_LISTED = (
    plain_words.PICTURES,
    plain_words.ARCHITECTURES,
    plain_words.ATTACK_CHOICES,
    plain_words.SHARE_CHOICES,
    plain_words.SPLIT_NETWORK_CHOICES,
    plain_words.SPLIT_DEFENCE_CHOICES,
    plain_words.LEAK_ATTACKS,
)


def head(title: str, words: str) -> gr.HTML:
    """The head of a page, and what it is for in a sentence; a word in [[ ]] is explained."""
    value = f"<h1>{title}</h1><p>{said(words)}</p>"
    return gr.HTML(value, elem_classes="lab-head", apply_default_css=False, padding=False)


def said(words: str) -> Markup:
    """A sentence of ours as HTML; a word in [[ ]] is explained."""
    return Markup(re.sub(r"\[\[(.+?)\]\]", r'<span data-term="\1">\1</span>', words))


def words(*terms: str) -> None:
    """A line with words of the glossary, below fields of Gradio, whose names hold no button."""
    if terms:
        gr.HTML(str(_HTML.words(terms)), apply_default_css=False, padding=False)


def not_run(*names: str) -> None:
    """The foot of a page: what of its papers was not run here, folded. names: of reproductions."""
    papers = [(SECTIONS[name], [one.said for one in NOT_RUN[name]]) for name in names]
    value = str(_HTML.not_run(papers))
    gr.HTML(value, elem_classes="lab-foot", apply_default_css=False, padding=False)


def reading() -> str:
    """Return the HTML that holds the place of a part until the server has looked."""
    return str(_HTML.reading())


def bound(elem_id: str, value: str) -> gr.HTML:
    """HTML that the script of the forms listens on."""
    return gr.HTML(
        value,
        elem_id=elem_id,
        elem_classes="lab-form",
        apply_default_css=False,
        padding=False,
        js_on_load=f"import('{rooted(FOLDER)}/lab.js').then((lab) => lab.bind(element))",
    )


def absent() -> dict[str, str]:
    """Return, by name, why data sets cannot be chosen: their files are not on this machine."""
    return {name: why for name, why in reasons().items() if why}


def reasons() -> dict[str, str]:
    """Return why each data set that has to be fetched cannot be chosen; "" where it can."""
    return {
        name: "" if one.present() else f"Not on this machine ({_size(one)})."
        for name, one in fetchable().items()
    }


def _size(data: Any) -> str:
    return str(type(data).about).rpartition(", ")[2]


def router(context: ScienceContext) -> APIRouter:
    """The script of the forms, the settings of plug-ins, and the fetching of data sets."""
    routes = APIRouter(prefix=FOLDER)
    root = context.data / "jobs"

    @routes.get("/lab.js")
    def script() -> Response:
        return FileResponse(_SCRIPT, headers={"Cache-Control": "no-cache"})

    @routes.get("/now")
    def now() -> Response:
        known = {"absent": absent(), "judges": judge_choices(context.checkpoints)}
        return JSONResponse({**known, "own": own_pictures(context.data)})

    @routes.get("/settings")
    @worded
    def settings(list: str, item: str, preset: str = "") -> Response:
        found = plugin_settings(list, item, preset)
        return HTMLResponse(str(_HTML.plugin(list, item, title_of(item), found)))

    @routes.get("/fetch/{name}")
    def fetching(name: str) -> Response:
        return JSONResponse(_told(name, root))

    @routes.post("/fetch/{name}")
    def fetch(name: str) -> Response:
        try:
            job = queue_fetch(FetchOrder(name=name), root)
        except SemsimError as error:
            return JSONResponse({"there": False, "live": False, "words": str(error)})
        if jobs.state(job) is jobs.JobState.QUEUED:
            jobs.start(job)
        return JSONResponse(_told(name, root))

    return routes


def judge_choices(checkpoints: Path) -> list[tuple[str, str]]:
    """No judge first, then each with what it is of and how good it is on spoilt pictures."""
    known = {name: facts for name, facts in judges(checkpoints).items() if facts}
    return [
        ("", "None: random lists"),
        *((name, f"{name}: {one['dataset']['name']}, {tested(one['degraded'])}")
          for name, one in known.items()),
    ]  # fmt: skip


def own_pictures(data: Path) -> list[tuple[str, str, str]]:
    """Pictures that were brought in to be attacked: their item in a form, their name, a line."""
    return [
        (f"{_OWN}{folder.resolve()}", one.name, f"{pictures_words(one)}.")
        for folder, one in list_pictures(data).items()
        if one.problem is None
    ]


def title_of(item: str) -> str:
    """Return the title by which a form calls a choice."""
    known = {choice.item: choice.title for choices in _LISTED for choice in choices}
    return known.get(item) or (Path(item).name if item.startswith(_OWN) else item)


def _told(name: str, root: Path) -> dict[str, Any]:
    if name in DATASETS and name not in absent():
        return {"there": True, "live": False, "words": ""}
    found = [
        job for job in jobs.list_jobs(root, KIND) if jobs.read_order(job, FetchOrder).name == name
    ]
    if not found:
        return {"there": False, "live": False, "words": "It is not being fetched."}
    job = found[0]
    if jobs.state(job) in jobs.LIVE:
        return {"there": False, "live": True, "words": "Being fetched; this page may be left."}
    why = jobs.error_text(job).split("\n\n", 1)[0] or "The fetching was stopped."
    return {"there": False, "live": False, "words": why}
