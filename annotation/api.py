"""The HTTP interface: what the labelling widget asks, how people sign in, what can be downloaded.

Every route is a plain function run in a thread, and replies only after the use case has returned,
that is, after the commit.
"""

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field

from annotation import downloads, errors, exports, signin, study
from annotation.attempts import Attempts
from annotation.domain import (
    Annotator,
    AnnotatorProgress,
    AnnotatorStatus,
    Answer,
    Study,
    StudyStatus,
    Task,
    TaskItem,
)
from annotation.guard import ANNOTATOR_COOKIE, COOKIE_SECONDS, SIGNED_OUT, is_same_origin
from annotation.store import Store

QUESTIONS = {
    Task.RECOGNITION: "What do you see in the picture?",
    Task.PAIR: "Do both pictures show the same subject?",
}
# What the browser is told about somebody who gets no items, whatever the study does.
_STOPPED = {
    AnnotatorStatus.PAUSED: "you-paused",
    AnnotatorStatus.EXCLUDED: "you-stopped",
    AnnotatorStatus.ERASED: "you-stopped",
}
STATUS_OF = {
    errors.SignInError: 401,
    errors.NotAllowedError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.AnswerError: 422,
    errors.StudyError: 422,
    errors.StoreError: 503,
}
Text = Annotated[str, Field(max_length=200)]
Tab = Annotated[str, Field(min_length=1, max_length=64)]


class VoteBody(BaseModel):
    """`Answer` as it travels; `item` and `answer` are checked by the use case."""

    id: UUID
    item: Text
    answer: Text
    reason: Text | None = None
    rt_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    client_ts: AwareDatetime | None = None
    display: Annotated[dict[str, Any], Field(max_length=20)] = {}
    tab: Tab


class UndoBody(BaseModel):
    """Which vote to take back."""

    id: UUID


class HeartbeatBody(BaseModel):
    """What a browser is still looking at."""

    tab: Tab
    items: Annotated[list[Text], Field(max_length=100)]


class _Route(APIRoute):
    """Turns what goes wrong into {"error": message} with the status that fits."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except errors.AnnotationError as error:
                return JSONResponse({"error": str(error)}, STATUS_OF.get(type(error), 400))
            except RequestValidationError as error:
                return JSONResponse({"error": _what_is_invalid(error)}, 422)

        return handle_errors


def _what_is_invalid(error: RequestValidationError) -> str:
    # The first place is "body" or "query", which tells nobody anything.
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc'][1:]) or 'the request'}: {one['msg']}"
        for one in error.errors()
    )


def _require_same_origin(request: Request) -> None:
    if not is_same_origin(request.headers):
        raise errors.NotAllowedError("This request comes from another site.")


def router(store: Store, images: Path) -> APIRouter:
    """The routes for annotators. `images` is where studies keep their images."""
    api = _Annotators(store=store)
    routes = APIRouter(route_class=_Route, include_in_schema=False)
    for path, get in (
        ("/api/study", api.study),
        ("/api/next", api.next),
        ("/api/image/{token}", api.image),
        ("/join/{token}", api.join_page),
        (SIGNED_OUT, api.signed_out),
    ):
        routes.add_api_route(path, get, methods=["GET"])
    for path, post in (
        ("/api/vote", api.vote),
        ("/api/undo", api.undo),
        ("/api/heartbeat", api.heartbeat),
        ("/join/{token}", api.join),
        ("/sign-out", api.sign_out),
    ):
        routes.add_api_route(
            path, post, methods=["POST"], dependencies=[Depends(_require_same_origin)]
        )
    return routes


def researcher_router(store: Store, images: Path) -> APIRouter:
    """Downloads below /studio; who may have them is decided in front of it (`guard.Guard`)."""
    routes = APIRouter(route_class=_Route, include_in_schema=False)

    def download(study_id: str, file: Annotated[str, AfterValidator(downloads.known)]) -> Response:
        return downloads.response(exports.read_study(store, study_id, images), file)

    routes.add_api_route("/studio/download/{study_id}/{file}", download, methods=["GET"])
    return routes


@dataclass(frozen=True, kw_only=True)
class _Annotators:
    """The routes for annotators, over one store."""

    store: Store
    attempts: Attempts = field(default_factory=Attempts)

    def study(self, request: Request) -> dict[str, Any]:
        annotator = self._signed_in(request)
        about = study.get_study(self.store, annotator.study_id)
        return {
            "key": _key(annotator),
            "name": about.name,
            "task": about.task.value,
            "question": QUESTIONS[about.task],
            "image_scale": about.spec.image_scale,
            "annotator": annotator.name,
            "sign_in": f"/join/{about.token}",
            "progress": _progress(study.progress_of(self.store, annotator)),
        }

    def next(
        self, request: Request, tab: Tab, n: Annotated[int, Query(ge=1, le=100)] = 10
    ) -> dict[str, Any]:
        annotator = self._signed_in(request)
        items = study.next_items(self.store, annotator, tab, n, _now())
        progress = study.progress_of(self.store, annotator)
        state = "ready" if items else self._why_nothing(annotator, progress)
        return {
            "items": [_item(item) for item in items],
            "state": state,
            "progress": _progress(progress),
        }

    def vote(self, request: Request, body: VoteBody) -> dict[str, Any]:
        annotator = self._signed_in(request)
        answer = Answer(**{**body.model_dump(), "id": str(body.id)})
        receipt = study.vote(self.store, annotator, answer, _now())
        return {"id": receipt.id, "status": receipt.status.value}

    def undo(self, request: Request, body: UndoBody) -> dict[str, Any]:
        annotator = self._signed_in(request)
        item = study.undo(self.store, annotator, str(body.id), _now())
        return {"id": str(body.id), "item": _item(item)}

    def heartbeat(self, request: Request, body: HeartbeatBody) -> dict[str, Any]:
        annotator = self._signed_in(request)
        study.heartbeat(self.store, annotator, body.tab, body.items, _now())
        return {"ok": True}

    def image(self, request: Request, token: str) -> Response:
        annotator = self._signed_in(request)
        content = study.image_path(self.store, annotator, token).read_bytes()
        # Sent as mere bytes: a file's time and name would tell pictures of one model apart.
        headers = {
            "Cache-Control": "private, max-age=86400, immutable",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(content, media_type="image/png", headers=headers)

    def join_page(self, request: Request, token: str) -> Response:
        about = self._joined(token)
        if about is None:
            return _no_such_study()
        annotator = study.who(self.store, request.cookies.get(ANNOTATOR_COOKIE, ""))
        here = annotator is not None and annotator.study_id == about.id
        name = annotator.name if annotator is not None and here else None
        return _html(signin.sign_in_page(about, signed_in_as=name))

    def join(
        self,
        request: Request,
        token: str,
        name: Annotated[str, Form()] = "",
        password: Annotated[str, Form()] = "",
    ) -> Response:
        about = self._joined(token)
        if about is None:
            return _no_such_study()
        caller, now = request.client.host if request.client else "", time.monotonic()
        if about.protected and self.attempts.exhausted(caller, now):
            problem = "Too many wrong passwords. Wait a minute, then try again."
            return _html(signin.sign_in_page(about, name=name, problem=problem), 429)
        try:
            signed_in = study.join(self.store, token, name, password or None)
        except errors.SignInError as error:
            self.attempts.fail(caller, now)
            return _html(signin.sign_in_page(about, name=name, problem=str(error)), 403)
        response = RedirectResponse("/label", 303)
        response.set_cookie(
            ANNOTATOR_COOKIE,
            signed_in.session_token,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return response

    def sign_out(self, request: Request) -> Response:
        study.sign_out(self.store, request.cookies.get(ANNOTATOR_COOKIE, ""))
        response = RedirectResponse(SIGNED_OUT, 303)
        response.delete_cookie(ANNOTATOR_COOKIE)
        return response

    def signed_out(self) -> Response:
        text = (
            "To label pictures, open the link of your study. The researcher who asked you has it."
        )
        return _html(signin.message_page("You are signed out", text))

    def _joined(self, token: str) -> Study | None:
        try:
            return study.study_by_token(self.store, token)
        except errors.NotFoundError:
            return None

    def _why_nothing(self, annotator: Annotator, progress: AnnotatorProgress) -> str:
        """What the page should say where there is no item to show."""
        if annotator.status is not AnnotatorStatus.ACTIVE:
            return _STOPPED[annotator.status]
        about = study.get_study(self.store, annotator.study_id)
        if about.status is not StudyStatus.RUNNING:
            return about.status.value
        if progress.left:
            return "waiting"
        if progress.done >= about.n_items:
            return "finished"
        # More items lack votes than this person has answered, so others hold some they could have.
        lacking = sum(study.progress(self.store, about.id).coverage[:-1])
        return "waiting" if lacking > progress.done else "finished"

    def _signed_in(self, request: Request) -> Annotator:
        annotator = study.who(self.store, request.cookies.get(ANNOTATOR_COOKIE, ""))
        if annotator is None:
            raise errors.SignInError("You are not signed in. Open the link of your study.")
        # A page left open must not send one person's answers under the name of another who has
        # signed in on the same computer since.
        meant = request.headers.get("x-annotator")
        if meant is not None and meant != _key(annotator):
            raise errors.SignInError(
                f"Somebody else has signed in here ({annotator.name}). Open the link of your study."
            )
        return annotator


def _now() -> datetime:
    return datetime.now(UTC)


def _key(annotator: Annotator) -> str:
    return f"{annotator.study_id}:{annotator.id}"


def _item(item: TaskItem) -> dict[str, Any]:
    return {
        "item": item.item,
        "images": [f"/api/image/{token}" for token in item.images],
        "candidates": list(item.candidates),
        "lease_until": item.lease_until.isoformat(),
    }


def _progress(progress: AnnotatorProgress) -> dict[str, Any]:
    return {
        "done": progress.done,
        "left": progress.left,
        "total": progress.total,
        "median_rt_ms": progress.median_rt_ms,
    }


def _html(page: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})


def _no_such_study() -> HTMLResponse:
    text = "This link leads to no study. Ask the researcher who gave it to you for a new one."
    return _html(signin.message_page("No such study", text), 404)
