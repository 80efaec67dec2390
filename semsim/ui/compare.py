"""The page Compare: does a metric rank models as people do?

Plain HTML. A choice asks for the part that depends on it (`static/compare.js`), and an address
holds all choices, so that it can be kept, sent, and opened without the script.
"""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from semsim.base.errors import SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.storage.places import files_of
from semsim.ui import ScienceContext, compare_solid, compare_tabs, compare_view
from semsim.ui.answers import said
from semsim.ui.compare_data import (
    REFERENCES,
    USUAL_REFERENCE,
    Comparison,
    find_study,
    held,
    is_import,
    opened,
    source_of,
)
from semsim.ui.compare_files import (
    make_files,
    missing_weights,
    newest_scoring,
    scoring_job,
    start_download,
    start_people,
)
from semsim.ui.compare_view import HTML, PAGE, TABS, Asked, asked_in

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

    def framed(request: Request) -> Response:
        first = "" if context.chosen(request) else _first(context, request)
        if first:
            return RedirectResponse("?" + urlencode({**request.query_params, "study": first}))
        drawn = HTML.page(body(context, _of_request(context, request)))
        return HTMLResponse(context.framed(TITLE, drawn))

    def part(request: Request, name: str) -> HTMLResponse:
        return HTMLResponse(_part(context, _of_request(context, request), name))

    @said
    def act(request: Request, name: str, job: str = "", weights: str = "") -> HTMLResponse:
        return HTMLResponse(_done(context, _of_request(context, request), name, job, weights))

    def script() -> FileResponse:
        return FileResponse(_SCRIPT, headers={"Cache-Control": "no-cache"})

    routes.get(PAGE)(framed)
    routes.get(PAGE + "/compare.js")(script)
    routes.get(PAGE + "/part/{name}")(part)
    routes.post(PAGE + "/act/{name}", response_model=None)(act)
    return routes


def body(context: ScienceContext, asked: Asked) -> str:
    """Return everything below the heading, from the present votes and scores.

    Starts the job that scores the study where scores are missing and no job has tried yet.
    """
    study = find_study(context, asked.study)
    if study is None:
        return HTML.no_study()
    try:
        comparison, asked, why = _possible(context, study.id, asked)
        job = scoring_job(context, comparison)
    except SemsimError as error:
        return HTML.trouble(str(error))
    status = why + compare_view.scoring(job)
    if not comparison.n_votes and not comparison.has_ranking:
        return HTML.no_votes(comparison.study.name, status)
    shown, asked = _answered(context, comparison, asked)
    if not shown.analysis.specs:
        return compare_view.head(comparison) + compare_view.no_scores(comparison, job)
    names = (REFERENCES[one.view.reference] for one in (comparison, shown))
    old = "" if shown is comparison else HTML.old_answer(*names)
    drawn = panel(context, shown, asked)
    return compare_view.head(comparison) + status + old + HTML.panel_place(drawn)


def panel(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The tabs, and what the chosen one shows."""
    tab = asked.tab if asked.tab in TABS else "answer"
    return HTML.tabs(asked, tab, TABS.items()) + _PANELS[tab](context, comparison, asked)


def _possible(
    context: ScienceContext, study_id: str, asked: Asked
) -> tuple[Comparison, Asked, str]:
    """Return the comparison asked for, or that by the clean original with the reason for it."""
    found = opened(context, asked.view(study_id))
    if found.view.reference == USUAL_REFERENCE or found.knows_attacked:
        return found, asked, ""
    asked = replace(asked, reference=USUAL_REFERENCE)
    return opened(context, asked.view(study_id)), asked, compare_view.not_recorded()


def _answered(
    context: ScienceContext, comparison: Comparison, asked: Asked
) -> tuple[Comparison, Asked]:
    """The comparison; until it is scored against its reference, the one by the clean original."""
    if comparison.analysis.specs or comparison.view.reference == USUAL_REFERENCE:
        return comparison, asked
    clean = held(context, replace(comparison.view, reference=USUAL_REFERENCE))
    found = clean if clean.analysis.specs else comparison
    return found, replace(asked, reference=found.view.reference)


def _first(context: ScienceContext, request: Request) -> str:
    """Return the id of the import that the page opens with where no study is chosen; else ""."""
    study = None if request.query_params.get("study") else find_study(context, None)
    return study.id if study is not None and is_import(study.id) else ""


def _of_request(context: ScienceContext, request: Request) -> Asked:
    asked = asked_in(request.query_params)
    return asked if asked.study else replace(asked, study=context.in_hand(request))


def _part(context: ScienceContext, asked: Asked, name: str) -> str:
    if name == "body":
        return body(context, asked)
    study = find_study(context, asked.study)
    if study is None:
        return HTML.no_study()
    if name == "scoring":
        return compare_view.scoring(newest_scoring(context, study.id))
    if name == "weights":
        return compare_view.weights(context, missing_weights(context))
    if name == "people":
        return compare_tabs.no_pictures(context, asked)
    try:
        comparison, asked = _held(context, study.id, asked)
        if name in _PARTS:
            return _PARTS[name](context, comparison, asked)
        return panel(context, comparison, asked)
    except SemsimError as error:
        return HTML.trouble(str(error))


def _held(context: ScienceContext, study: str, asked: Asked) -> tuple[Comparison, Asked]:
    """Return the comparison that the page shows of a study, and the choices behind it."""
    return _answered(context, held(context, asked.view(study)), asked)


def _done(context: ScienceContext, asked: Asked, name: str, job_id: str, weights: str) -> str:
    """Start, stop or resume the work called `name`, and return the HTML of its state."""
    if name == "weights":
        start_download(context, weights)
        return compare_view.weights(context, missing_weights(context))
    if name == "people" and (source := source_of(asked.study)):
        start_people(context, source)
        return compare_tabs.no_pictures(context, asked)
    if name in ("report", "everything"):
        comparison, asked = _held(context, asked.study, asked)
        make_files(context, comparison, name)
        return compare_tabs.made(context, comparison, asked)
    job = jobs.open_job(context.data / "jobs", job_id)
    (jobs.request_stop if name == "stop" else jobs.resume)(job)
    return compare_view.scoring(job)
