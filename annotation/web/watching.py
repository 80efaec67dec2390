"""Health and load of the server, for programs that watch it.

`/health` answers every caller: 200, or 503 with what is wrong, and whether connections were closed.
`/metrics` counts in Prometheus' text format, for administrators and whoever knows the token, see
https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

import os
import secrets
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotation.accounts.access import ACCOUNT_COOKIE, Who
from annotation.domain import Role
from annotation.images import Shelf, answers, here
from annotation.store import Store, migrate, reports
from annotation.web.api import routes
from annotation.web.connections import DOOR
from annotation.web.guard import problem
from annotation.web.root_path import bare
from semsim.base.errors import SemsimError
from semsim.base.storage.atomic import free_bytes

TOKEN = "SEMSIM_METRICS_TOKEN"  # the environment variable; on a command line all could read it
LEAST_FREE = 200 * 1024**2  # bytes; a study's pictures and votes need far less in a day
SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # upper ends of the histogram
PROBED = ("database", "migrations", "pictures", "disk")
PARTS = ("api", "join", "label", "static", "studio")  # of addresses; all others are one
TEXT = "text/plain; version=0.0.4; charset=utf-8"
NOT_FOR_YOU = (
    "This is for administrators: sign in as one, or send the token that the server was started "
    f"with ({TOKEN}) as Authorization: Bearer …"
)


class Latency:
    """Seconds from a request to the beginning of its answer, counted by part of the address."""

    def __init__(self) -> None:
        self.counts = {part: [0] * (len(SECONDS) + 1) for part in (*PARTS, "other")}
        self.sums = dict.fromkeys(self.counts, 0.0)

    def add(self, path: str, seconds: float) -> None:
        """Count an answer."""
        part = path.split("/")[1] if path.split("/")[1] in PARTS else "other"
        self.counts[part][bisect_left(SECONDS, seconds)] += 1
        self.sums[part] += seconds


class Timed:
    """ASGI: tells `latency` how long each answer took to begin; event streams pass as they are."""

    def __init__(self, app: ASGIApp, latency: Latency) -> None:
        self._app, self._latency = app, latency

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, path = time.perf_counter(), bare(scope)

        async def timing(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._latency.add(path, time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, timing)


def router(
    store: Store, images: Shelf, who: Who | None, running: Callable[[], list[Any]], latency: Latency
) -> APIRouter:
    """`/health` and `/metrics`; `who` and `running` are as for `annotation.ui.mount.web_app`."""

    def health() -> Response:
        wrong = dict(_problems(store, images))
        told = {what: wrong.get(what, "ok") for what in PROBED}
        # No failing of the server: anybody could bring it about.
        told["connections"] = DOOR.told()
        answer = {"status": "failing" if wrong else "ok", **told}
        return JSONResponse(answer, 503 if wrong else 200, {"Cache-Control": "no-store"})

    def metrics(request: Request) -> Response:
        if not _may_watch(request, who):
            return problem(403, NOT_FOR_YOU)
        try:
            lines = [*_of_store(store), *_of_jobs(len(running())), *_of_latency(latency)]
        except SemsimError as error:
            return PlainTextResponse(str(error), 503)
        return Response("\n".join([*lines, ""]), headers={"Content-Type": TEXT})

    return routes(get={"/health": health, "/metrics": metrics})


def _problems(store: Store, images: Shelf) -> Iterator[tuple[str, str]]:
    try:
        if not store.read(migrate.is_current):
            yield "migrations", "the tables are of another version than this program"
    except SemsimError:
        yield "database", "does not answer"
        yield "migrations", "not known"
    try:
        if not answers(images):
            yield "pictures", "the studio keeps none there any more"
    except SemsimError:
        yield "pictures", "do not answer"
    try:
        free = free_bytes(here(images).parent)
    except OSError:
        yield "disk", "cannot be read"
        return
    if free < LEAST_FREE:
        yield "disk", f"{free // 1024**2} MiB are free; {LEAST_FREE // 1024**2} are needed"


def _may_watch(request: Request, who: Who | None) -> bool:
    """Return whether a request may read `/metrics`.

    Without accounts every caller may, since only this machine reaches the server.
    """
    if who is None:
        return True
    token = os.environ.get(TOKEN, "")
    said = request.headers.get("authorization", "").encode()
    if token and secrets.compare_digest(said, f"Bearer {token}".encode()):
        return True
    account = who(request.cookies.get(ACCOUNT_COOKIE, ""))
    return account is not None and account.role is Role.ADMINISTRATOR


def _of_store(store: Store) -> Iterator[str]:
    votes, claims = store.read(reports.counts)
    yield from _head("semsim_votes", "gauge", "Votes in the database, by status.")
    yield from (f'semsim_votes{{status="{one}"}} {n}' for one, n in sorted(votes.items()))
    yield from _head("semsim_claims", "gauge", "Pictures handed out and not answered yet.")
    yield f"semsim_claims {claims}"
    yield from _head("semsim_connections", "gauge", "Connections to this process.")
    yield f"semsim_connections {DOOR.open.total()}"


def _of_jobs(n: int) -> Iterator[str]:
    yield from _head("semsim_jobs", "gauge", "Jobs that wait or run.")
    yield f"semsim_jobs {n}"


def _of_latency(latency: Latency) -> Iterator[str]:
    name = "semsim_response_seconds"
    yield from _head(name, "histogram", "Seconds until an answer of this process begins.")
    for part, of_part in latency.counts.items():
        so_far = 0
        for end, n in zip((*SECONDS, "+Inf"), of_part, strict=True):
            so_far += n
            yield f'{name}_bucket{{part="{part}",le="{end}"}} {so_far}'
        yield f'{name}_sum{{part="{part}"}} {latency.sums[part]:.6f}'
        yield f'{name}_count{{part="{part}"}} {so_far}'


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"
