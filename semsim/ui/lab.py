"""Parts shared by the pages of the attack lab, and the routes that their forms ask."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response

from semsim.base.errors import SemsimError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.pages_library import BARE, gr
from semsim.base.sets.imports import list_pictures
from semsim.base.storage.places import files_of
from semsim.datasets import DATASETS
from semsim.datasets.fetch_job import KIND, FetchOrder, queue_fetch
from semsim.lab.choices import absent, judge_choices
from semsim.lab.markup import pieces, rooted, said
from semsim.lab.page import FOLDER, ItemList, LabPage
from semsim.lab.settings_form import plugin_settings
from semsim.reporting.not_run import NOT_RUN, SECTIONS
from semsim.ui import ScienceContext
from semsim.ui.answers import GoneError, worded
from semsim.ui.pictures_data import pictures_words

_OWN = "folder:root="  # begins the item of pictures of one's own
_SCRIPT = files_of("semsim.lab") / "html/lab.js"
_HTML = pieces("lab.html")


def head(title: str, words: str) -> gr.HTML:
    """The head of a page, and what it is for in a sentence; a word in [[ ]] is explained."""
    value = f"<h1>{title}</h1><p>{said(words)}</p>"
    return gr.HTML(value, elem_classes="lab-head", **BARE)


def words(*terms: str) -> None:
    """A line with words of the glossary, below fields of Gradio, whose names hold no button."""
    if terms:
        gr.HTML(str(_HTML.words(terms)), **BARE)


def not_run(*names: str) -> None:
    """The foot of a page: what of its papers was not run here, folded.

    Args:
        names: Of reproductions.
    """
    papers = [(SECTIONS[name], [one.said for one in NOT_RUN[name]]) for name in names]
    value = str(_HTML.not_run(papers))
    gr.HTML(value, elem_classes="lab-foot", **BARE)


def reading() -> str:
    """Return the HTML that holds the place of a part until the server has looked."""
    return str(_HTML.reading())


def bound(elem_id: str, value: str) -> gr.HTML:
    """HTML that the script of the forms listens on."""
    return gr.HTML(
        value,
        elem_id=elem_id,
        elem_classes="lab-form",
        **BARE,
        js_on_load=f"import('{rooted(FOLDER)}/lab.js').then((lab) => lab.bind(element))",
    )


def router(context: ScienceContext, pages: Sequence[LabPage[Any]]) -> APIRouter:
    """The script of the forms and what it asks for: settings, parts as they are now, data sets."""
    routes = APIRouter(prefix=FOLDER)
    root, drawn = context.data / "jobs", drawn_anew(pages)

    @routes.get("/lab.js")
    def script() -> Response:
        return FileResponse(_SCRIPT, headers={"Cache-Control": "no-cache"})

    @routes.get("/now")
    def now() -> Response:
        known = {"absent": absent(), "judges": judge_choices(context.checkpoints)}
        names = {page.form.name: page.form.free_name(context.data) for page in pages}
        return JSONResponse({**known, "own": own_pictures(context.data), "names": names})

    @routes.get("/drawn/{name}")
    @worded
    def drawn_now(name: str) -> Response:
        if name not in drawn:
            raise GoneError("No such part.")
        return HTMLResponse(drawn[name]())

    @routes.get("/settings")
    @worded
    def settings(list: str, item: str, preset: str = "") -> Response:
        lists = lists_of(pages, list)
        found = plugin_settings(lists[0].plugins, item, preset)
        return HTMLResponse(str(_HTML.plugin(list, item, title_of(lists, item), found)))

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


def own_pictures(data: Path) -> list[tuple[str, str, str]]:
    """Pictures that were brought in to be attacked: their item in a form, their name, a line."""
    return [
        (f"{_OWN}{folder.resolve()}", one.name, f"{pictures_words(one)}.")
        for folder, one in list_pictures(data).items()
        if one.problem is None
    ]


def drawn_anew(pages: Iterable[LabPage[Any]]) -> dict[str, Callable[[], str]]:
    """Return by name what draws the parts that forms ask for once they are loaded."""
    found: dict[str, Callable[[], str]] = {}
    for page in pages:
        found[page.form.name] = partial(page.form.cards_html, page.data)
        found |= page.drawn_anew
    return found


def lists_of(pages: Iterable[LabPage[Any]], name: str) -> list[ItemList]:
    """Return the lists of this name whose items have settings; `SettingsError` without one."""
    named = [page.form.lists[name] for page in pages if name in page.form.lists]
    if found := [one for one in named if one.plugins]:
        return found
    raise SettingsError(f"There is no list {name!r}.")


def title_of(lists: Iterable[ItemList], item: str) -> str:
    """Return the title by which a form calls a choice."""
    known = {choice.item: choice.title for one in lists for choice in one.choices}
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
