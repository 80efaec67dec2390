"""The web application: routes, static files, and pages in one frame."""

import asyncio
import errno
import logging
import warnings
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from annotation.accounts.access import Who, account_name, required, user_name, who_may_enter
from annotation.images import Shelf
from annotation.study import imported, labelling
from annotation.texts import UNFIT
from annotation.ui import (
    STATIC,
    STATIC_URL,
    StudyContext,
    home,
    items_pages,
    new_pages,
    overview_pages,
    people,
    preview_pages,
    results,
)
from annotation.ui.theme import mount_settings
from annotation.web import account_api, frame, watching
from annotation.web.api import invalid, researcher_router, router
from annotation.web.guard import Guard, problem
from annotation.web.root_path import bare, rooted
from annotation.web.templates import trouble
from semsim.base.errors import DataError
from semsim.base.metric_spec import semsims
from semsim.base.pages_library import gr
from semsim.base.storage.places import DEMO
from semsim.base.storage.records import CASES, PEOPLE_ANSWER, read_record

log = logging.getLogger(__name__)
BROKEN = "Something broke in the studio itself. See the log of the studio."
SMALLEST_PACKED = 1000  # bytes; below, packing costs more than it saves


IDLE = 0.1  # seconds between two looks of Gradio's queue for work while nobody is there
PRESENT = 30.0  # seconds after the last request of a page for which somebody may still be there


class Drowsy:
    """A Gradio application whose queue looks for work seldom while no page asks for anything.

    Gradio's own pace is a thousand looks a second, which takes 3 to 5% of a core.
    """

    def __init__(self, app: gr.routes.App) -> None:
        self.app, self._queue = app, app.get_blocks()._queue
        self._usual = self._queue.sleep_when_free, self._queue.progress_update_sleep_when_free
        self._asking = 0
        self._rest: asyncio.TimerHandle | None = None
        self._look_every(IDLE, IDLE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._rest is not None:
            self._rest.cancel()
        self._asking += 1
        self._look_every(*self._usual)
        try:
            await self.app(scope, receive, send)
        finally:
            self._asking -= 1
            if not self._asking:
                later = asyncio.get_running_loop().call_later
                self._rest = later(PRESENT, self._look_every, IDLE, IDLE)

    def _look_every(self, work: float, progress: float) -> None:
        self._queue.sleep_when_free, self._queue.progress_update_sleep_when_free = work, progress


class Page(NamedTuple):
    """A page: its title, its address below the mount, its module, what its `render` is given.

    The one with the address "" stands at the mount itself.

    `module.render(context)` draws the page and returns what to run when it opens, as
    (function, outputs).
    """

    title: str
    address: str
    module: Any
    context: Any


def studio(
    context: StudyContext,
    options: Namespace,
    pages: Sequence[Page],
    *more: APIRouter,
    bar: frame.FrameContext,
) -> Guard:
    """The whole product: pages of studies, and what is handed in, as one guarded application.

    Args:
        context: Store, pictures and sets that the pages of studies work on.
        options: Of the server; `host`, `local` and `checkpoints` are used.
        pages: Those that Gradio draws, below /studio.
        more: Routes of plain pages and of files, for people with an account.
        bar: What the side bar shows; imports and accounts are put in here.
    """
    store = context.store
    who = who_may_enter(store, options.host, local=options.local)
    cases = partial(read_record, DEMO / "cases.json", CASES, DataError)
    people = partial(read_record, DEMO / "people/answer.json", PEOPLE_ANSWER, DataError)
    trained = partial(semsims, options.checkpoints)
    lab = home.Lab(cases=cases, people=people, semsims=trained, running=bar.running)
    routes = (home.router(context, lab), *study_routers(context, who), *more)
    imports = partial(imported.choices, context.imports)
    app = web_app(replace(bar, imports=imports, who=who), context.images, *routes)
    mount(app, "/studio", pages, who)
    return Guard(app, who, partial(labelling.who, store))


def web_app(bar: frame.FrameContext, images: Shelf, *more: APIRouter) -> FastAPI:
    """Return the app without Gradio pages: the widget's API, sign-in, downloads, static files.

    Args:
        bar: Store, side bar and accounts; without accounts every visitor may do everything.
        images: Pictures of studies.
        more: Routes of others for people with an account, which stand before the pages.
    """
    store, who = bar.store, bar.who
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    _answer_errors(app)
    latency = watching.Latency()
    app.add_middleware(frame.Framed)
    # With a CORS rule in front, Gradio's own stands down; its would let any site read answers.
    app.add_middleware(CORSMiddleware, allow_origins=[])
    app.add_middleware(GZipMiddleware, minimum_size=SMALLEST_PACKED, compresslevel=5)
    app.add_middleware(watching.Timed, latency=latency)
    app.include_router(watching.router(store, images, who, bar.running, latency))
    app.include_router(router(store, images))
    if who is not None:
        app.include_router(account_api.router(store))
    checked = [*([] if who is None else [Depends(required(who))]), Depends(frame.there(bar))]
    for routes in (frame.router(bar), researcher_router(store, images, account_name(who)), *more):
        app.include_router(routes, dependencies=checked)
    app.mount(STATIC_URL, StaticFiles(directory=STATIC))
    app.add_api_route("/favicon.ico", lambda: FileResponse(STATIC / "icon.svg"), methods=["GET"])
    app.add_api_route("/", lambda: RedirectResponse(rooted("/studio/")), methods=["GET"])
    return app


def study_routers(context: StudyContext, who: Who | None = None) -> tuple[APIRouter, ...]:
    """The pages about studies that Gradio does not draw; `who` tells whose a request is."""
    context = replace(context, account=account_name(who))
    pages = (new_pages, overview_pages, people, items_pages, preview_pages, results)
    return tuple(one.router(context) for one in pages)


def _answer_errors(app: Starlette) -> None:
    """Let an application answer what goes wrong as the studio does; a mounted one has its own."""
    # The usual answer repeats what came, which not every encoding can say.
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(UnicodeEncodeError, _unfit)
    app.add_exception_handler(OSError, _no_file)
    app.add_exception_handler(Exception, _broken)


async def _unfit(_: Request, __: Exception) -> JSONResponse:
    return problem(422, f"{UNFIT}.")


async def _not_ours(request: Request, error: Exception) -> JSONResponse:
    log.info("Gradio refused a request for %s.", type(error).__name__, exc_info=error)
    return problem(422, "No page asks for this. Load the page again.")


async def _no_file(_: Request, error: Exception) -> JSONResponse:
    if cast(OSError, error).errno != errno.ENAMETOOLONG:
        raise error
    return problem(404, "Not found.")


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    return invalid(cast(RequestValidationError, error))


async def _broken(request: Request, _: Exception) -> Response:
    """Return the response to an error that no other handler foresaw."""
    if "text/html" in request.headers.get("accept", ""):
        return trouble(bare(request.scope), 500, BROKEN)
    return problem(500, BROKEN)


def mount(app: FastAPI, path: str, pages: Sequence[Page], who: Who | None = None) -> None:
    """Mount `pages` at `path`.

    Args:
        who: Whose account a session belongs to, where the pages are only for people with one.
    """
    with gr.Blocks(title="SemSim Studio", analytics_enabled=False) as demo:
        for page in sorted(pages, key=lambda one: one.address != ""):
            if page.address:
                # As `demo.route`, after which Gradio would make an application page by page.
                demo.pages.append((page.address, page.title, True))
                demo.current_page = page.address
            for load, outputs in page.module.render(page.context):
                demo.load(load, None, outputs, queue=False, api_visibility="private")
    checked = None if who is None else user_name(who)
    with warnings.catch_warnings():
        # Said although server-side rendering is switched off already.
        warnings.filterwarnings("ignore", message="SSR mode is not supported")
        given = {"root_path": rooted(path), **mount_settings()}
        gr.mount_gradio_app(app, demo, path=path, auth_dependency=checked, **given)
    for route in app.routes:
        if isinstance(route, Mount) and isinstance(route.app, gr.routes.App):
            _answer_errors(route.app)
            for kind in (LookupError, TypeError, ValueError):  # as it looks up what was sent
                route.app.add_exception_handler(kind, _not_ours)
            route.app = Drowsy(route.app)
