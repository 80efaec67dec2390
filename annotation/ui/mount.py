"""The web application: routes, static files, and pages with a navigation bar."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr
from fastapi import APIRouter, Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

from annotation.accounts.access import ACCOUNT_COOKIE, Who, required, user_name
from annotation.store import Store
from annotation.ui import STATIC, STATIC_URL, people, results, studies
from annotation.ui.theme import mount_settings
from annotation.web import account_api
from annotation.web.api import researcher_router, router
from annotation.web.templates import fill

# Title, address and module of the pages about studies, in the order of the navigation bar.
PAGES = (
    ("Studies", "studies", studies),
    ("People", "people", people),
    ("Results", "results", results),
)


class Page(NamedTuple):
    """A page: its title, its address below the mount, its module, what its `render` is given.

    `module.render(context)` draws the page and returns what to run when it opens, as
    (function, outputs).
    """

    title: str
    address: str
    module: Any
    context: Any


def web_app(store: Store, images: Path, *more: APIRouter, who: Who | None) -> FastAPI:
    """Everything but the Gradio pages: what the widget talks to, sign-in, downloads, static files.

    more: routes of others for people with an account, which stand before the pages.
    who: whose account a session belongs to; None lets everybody have everything.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # With a CORS rule in front, Gradio's own stands down; its would let any site read answers.
    app.add_middleware(CORSMiddleware, allow_origins=[])
    app.include_router(router(store, images))
    if who is not None:
        app.include_router(account_api.router(store))
    checked = [] if who is None else [Depends(required(who))]
    for routes in (researcher_router(store, images), *more):
        app.include_router(routes, dependencies=checked)
    app.mount(STATIC_URL, StaticFiles(directory=STATIC))
    app.add_api_route("/favicon.ico", lambda: FileResponse(STATIC / "icon.svg"), methods=["GET"])
    app.add_api_route("/", lambda: RedirectResponse("/studio/"), methods=["GET"])
    return app


def mount(app: FastAPI, path: str, pages: Sequence[Page], who: Who | None = None) -> None:
    """Mount `pages` at `path`, the first one as the main page.

    who: whose account a session belongs to, where the pages are only for people with one.
    """
    with gr.Blocks(title="SemSim Studio", analytics_enabled=False) as demo:
        _draw(demo, pages[0], pages, who)
        for page in pages[1:]:
            # As `demo.route`, after which Gradio would make an application page by page.
            demo.pages.append((page.address, page.title, True))
            demo.current_page = page.address
            _draw(demo, page, pages, who)
    checked = None if who is None else user_name(who)
    with warnings.catch_warnings():
        # Said although server-side rendering is switched off already.
        warnings.filterwarnings("ignore", message="SSR mode is not supported")
        gr.mount_gradio_app(app, demo, path=path, auth_dependency=checked, **mount_settings())


def _draw(demo: gr.Blocks, page: Page, pages: Sequence[Page], who: Who | None) -> None:
    if len(pages) > 1:
        gr.Navbar(main_page_name=pages[0].title)  # repeated on every page, or it says "Home"
    for load, outputs in page.module.render(page.context):
        demo.load(load, None, outputs, queue=False, api_visibility="private")
    if who is not None:
        bar = gr.HTML(head=f'<link rel="stylesheet" href="{STATIC_URL}/accounts.css">')
        demo.load(_bar(who), None, bar, queue=False, api_visibility="private")


def _bar(who: Who) -> Callable[[gr.Request], str]:
    def bar(request: gr.Request) -> str:
        account = who(request.cookies.get(ACCOUNT_COOKIE, ""))
        return "" if account is None else fill("account_bar.html", account=account)

    return bar
