"""The page Compare: does a metric rank models as people do?

Plain HTML. A choice asks for the part that depends on it (`static/compare.js`), and an address
holds all choices, so that it can be kept, sent, and opened without the script.
"""

from collections.abc import Callable

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse

from semsim.errors import SemsimError
from semsim.jobs import folders as jobs
from semsim.kept.places import files_of
from semsim.ui import ScienceContext, compare_solid, compare_tabs, compare_view
from semsim.ui.compare_asked import PAGE, TABS, Asked, asked_in, first_tab
from semsim.ui.compare_data import Comparison, find_study, held, opened
from semsim.ui.compare_jobs import (
    make_files,
    missing_weights,
    newest_scoring,
    scoring_job,
    start_download,
)

TITLE = "Compare"
_SCRIPT = files_of("semsim.ui") / "static/compare.js"
_PANELS: dict[str, Callable[[ScienceContext, Comparison, Asked], str]] = {
    "answer": compare_tabs.answer,
    "disagreements": compare_tabs.disagreements,
    "metric": compare_tabs.one_metric,
    "solid": compare_solid.solid,
    "files": compare_tabs.files,
}
# What is asked for alone, of a comparison that is on the page already.
_PARTS: dict[str, Callable[[ScienceContext, Comparison, Asked], str]] = {
    "side": compare_tabs.side,
    "grid": compare_tabs.grid,
    "pictures": compare_tabs.pictures,
    "pair": compare_tabs.pair,
    "made": compare_tabs.made,
}


def router(context: ScienceContext) -> APIRouter:
    """The page, its parts, its script, and what it lets run."""
    routes = APIRouter(include_in_schema=False)

    def framed(request: Request) -> HTMLResponse:
        asked = _of_request(context, request)
        return HTMLResponse(context.framed(TITLE, compare_view.page(body(context, asked))))

    def part(request: Request, name: str) -> HTMLResponse:
        return HTMLResponse(_part(context, _of_request(context, request), name))

    def act(request: Request, name: str, job: str = "", weights: str = "") -> HTMLResponse:
        asked = _of_request(context, request)
        try:
            return HTMLResponse(_done(context, asked, name, job, weights))
        except SemsimError as error:
            return HTMLResponse(compare_view.trouble(str(error)))

    def script() -> FileResponse:
        return FileResponse(_SCRIPT, headers={"Cache-Control": "no-cache"})

    routes.get(PAGE)(framed)
    routes.get(PAGE + "/compare.js")(script)
    routes.get(PAGE + "/part/{name}")(part)
    routes.post(PAGE + "/act/{name}")(act)
    return routes


def body(context: ScienceContext, asked: Asked) -> str:
    """Everything below the heading, as votes and scores are now.

    Starts the job that scores the study where scores are missing and nobody has tried yet.
    """
    study = find_study(context, asked.study)
    if study is None:
        return compare_view.no_study()
    try:
        comparison = opened(context, study.id, asked.rule, asked.reference, asked.unseen_by)
        job = scoring_job(context, comparison)
    except SemsimError as error:
        return compare_view.trouble(str(error))
    status = compare_view.scoring(job)
    if not comparison.n_votes:
        return compare_view.no_votes(comparison, status)
    if not comparison.analysis.specs:
        return compare_view.head(comparison) + compare_view.no_scores(comparison, job)
    return (
        compare_view.head(comparison)
        + status
        + compare_view.panel_place(panel(context, comparison, asked))
    )


def panel(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The tabs, and what the chosen one shows."""
    tab = asked.tab if asked.tab in TABS else first_tab(comparison)
    return compare_view.tabs(asked, tab) + _PANELS[tab](context, comparison, asked)


def _of_request(context: ScienceContext, request: Request) -> Asked:
    asked = asked_in(request.query_params)
    return asked if asked.study else Asked(**{**vars(asked), "study": context.in_hand(request)})


def _part(context: ScienceContext, asked: Asked, name: str) -> str:
    if name == "body":
        return body(context, asked)
    study = find_study(context, asked.study)
    if study is None:
        return compare_view.no_study()
    if name == "scoring":
        return compare_view.scoring(newest_scoring(context, study.id))
    if name == "weights":
        return compare_view.weights(context, missing_weights(context))
    try:
        comparison = held(context, study.id, asked.rule, asked.reference, asked.unseen_by)
        drawn = panel if name == "panel" else _PARTS.get(name, panel)
        return drawn(context, comparison, asked)
    except SemsimError as error:
        return compare_view.trouble(str(error))


def _done(context: ScienceContext, asked: Asked, name: str, job_id: str, weights: str) -> str:
    """What is shown after something was asked to run or to stop."""
    if name == "weights":
        start_download(context, weights)
        return compare_view.weights(context, missing_weights(context))
    if name in ("report", "everything"):
        comparison = held(context, asked.study, asked.rule, asked.reference, asked.unseen_by)
        make_files(context, comparison, name)
        return compare_tabs.made(context, comparison, asked)
    job = jobs.open_job(context.data / "jobs", job_id)
    (jobs.request_stop if name == "stop" else jobs.resume)(job)
    return compare_view.scoring(job)
