"""The HTTP interface: what the labelling widget asks, how people sign in, what can be downloaded.

Every route runs in a thread, and replies only after the use case has returned, that is, after the
commit. Few at a time hand out items, so that an answer never queues behind them.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field

from annotation import errors
from annotation.accounts.attempts import CLOCK, Attempts, Clock
from annotation.design.assignment import AT_HAND
from annotation.design.flow import AT_WORK, place
from annotation.domain import (
    Annotator,
    AnnotatorProgress,
    AnnotatorStatus,
    Answer,
    Step,
    StudyStatus,
    TaskItem,
)
from annotation.images import Shelf, here
from annotation.spec import MOST, View
from annotation.store import Store
from annotation.study import exports
from annotation.study import labelling as study
from annotation.study import participant_flow as phases
from annotation.study.activity import exported
from annotation.study.labelling import MOST_ITEMS
from annotation.texts import LONGEST_ANSWER, fit, fit_json
from annotation.web import downloads, label_page
from annotation.web.guard import (
    ANNOTATOR_COOKIE,
    SIGN_OUT,
    SIGNED_OUT,
    framable,
    is_same_origin,
    problem,
    why_foreign,
)
from annotation.web.page_api import BEGIN, DONE, LABEL, Pages, link_of
from annotation.web.root_path import rooted
from annotation.web.templates import STATIC
from semsim.base.errors import PictureError, SemsimError, SettingsError, StoreError

# What the browser is told about somebody who gets no items, whatever the study does.
_STOPPED = {
    AnnotatorStatus.PAUSED: "you-paused",
    AnnotatorStatus.EXCLUDED: "you-stopped",
    AnnotatorStatus.ERASED: "you-stopped",
}
STATUS_OF = {
    errors.SignInError: 401,
    errors.NameTakenError: 409,
    errors.NotAllowedError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.AnswerError: 422,
    errors.TooQuickError: 422,
    errors.StudyError: 422,
    errors.UnfitError: 422,
    PictureError: 422,
    SettingsError: 422,
    StoreError: 503,
}
MOST_DISPLAYED = 20  # things said of what a picture looked like
# Handing items out is most of the work, and answers go first. At a time so many who have nothing to
# answer, and one of those who want more in reserve; while others of these wait, nobody is given
# more than a reserve of some minutes.
MOST_CLAIMING = 2
RESERVE_AMONG_MANY = 2 * AT_HAND
MOST_WAITING = 4  # for pictures, before nobody else is let in
MOST_IN_TURN = 100  # from one address, with a password: a lecture that begins together
LONGEST_MS = 1e11  # three years; of much longer ones there is no mean


def _first_few(display: dict[str, Any]) -> dict[str, Any]:
    # What a picture looked like is for the record; too much of it is no reason to lose an answer.
    return dict(list(display.items())[:MOST_DISPLAYED])


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("Expected a time in the years 1 to 9999, also in UTC.") from None


Text = Annotated[str, Field(max_length=LONGEST_ANSWER), AfterValidator(fit)]
Tab = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(fit)]
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Display = Annotated[dict[str, Any], AfterValidator(_first_few), AfterValidator(fit_json)]


class VoteBody(BaseModel):
    """`Answer` as it travels; `item` and `answer` are checked by the use case.

    Attributes:
        version: The protocol under which the picture was shown; it is kept with the vote.
    """

    id: UUID
    item: Text
    answer: Text
    reason: Text | None = None
    rt_ms: Annotated[float, Field(ge=0, le=LONGEST_MS, allow_inf_nan=False)] | None = None
    client_ts: Moment | None = None
    display: Display = {}
    views: Annotated[list[View], Field(max_length=len(View))] = []
    tab: Tab
    version: Annotated[int, Field(ge=1, le=MOST)]


class UndoBody(BaseModel):
    """Vote to take back."""

    id: UUID


class HeartbeatBody(BaseModel):
    """Items that a tab of a browser still looks at."""

    tab: Tab
    items: Annotated[list[Text], Field(max_length=MOST_ITEMS)]


class Route(APIRoute):
    """Turns what goes wrong into {"error": message} with the status that fits."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except SemsimError as error:
                look = {"look_again": True} if isinstance(error, errors.TooQuickError) else {}
                # Which the page has in the words of its study.
                name, values = error.said if isinstance(error, errors.AnnotationError) else ("", {})
                told = {"text": name, "values": values} if name else {}
                return problem(STATUS_OF.get(type(error), 400), str(error), **look, **told)
            except RequestValidationError as error:
                return invalid(error)

        return handle_errors


def routes(
    *,
    get: Mapping[str, Callable[..., Any]],
    post: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    checked: Sequence[Any] = (),
) -> APIRouter:
    """The routes at these paths.

    Args:
        checked: What those that change something depend on.
    """
    made = APIRouter(route_class=Route, include_in_schema=False)
    for path, handler in get.items():
        made.add_api_route(path, handler, methods=["GET"], response_model=None)
    for path, handler in post.items():
        made.add_api_route(
            path, handler, methods=["POST"], dependencies=checked, response_model=None
        )
    return made


def invalid(error: RequestValidationError) -> JSONResponse:
    """Return the response to a request that its route refuses; it repeats nothing of it."""
    return problem(422, _what_is_invalid(error))


def _what_is_invalid(error: RequestValidationError) -> str:
    # The first place is "body" or "query", which tells nobody anything.
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc'][1:]) or 'the request'}: {one['msg']}"
        for one in error.errors()
    )


async def require_same_origin(request: Request) -> None:  # async, as it needs no thread
    if not is_same_origin(request.headers):
        raise errors.NotAllowedError(why_foreign(request.headers))


def router(store: Store, images: Shelf, clock: Clock = CLOCK) -> APIRouter:
    """The routes for annotators. `images` is where studies keep their images."""
    api = _Annotators(store=store, images=images)
    attempts = Attempts(store, "join", crowd=MOST_IN_TURN, clock=clock)
    pages = Pages(store=store, attempts=attempts, crowded=api.is_behind)
    return routes(
        get={
            "/api/study": api.study,
            "/api/next": api.next,
            "/api/image/{token}": api.image,
            LABEL: api.page,
            f"{LABEL}/worker.js": api.worker,
            "/join/{token}": pages.join_page,
            "/me/{link}": pages.personal_page,
            SIGNED_OUT: pages.signed_out,
            SIGN_OUT: pages.had_signed_out,
            BEGIN: pages.begin,
            DONE: pages.done,
        },
        post={
            "/api/vote": api.vote,
            "/api/undo": api.undo,
            "/api/heartbeat": api.heartbeat,
            "/api/release": api.release,
            "/api/link": api.link,
            "/me/{link}": pages.personal,
            "/join/{token}": pages.join,
            SIGN_OUT: pages.sign_out,
            BEGIN: pages.advance,
        },
        checked=[Depends(require_same_origin)],
    )


def researcher_router(
    store: Store, images: Shelf, account: Callable[[Any], str | None] = lambda request: None
) -> APIRouter:
    """Downloads below /studio; who may have them is decided in front of it (`guard.Guard`).

    Args:
        account: Whose name a request carries, for the record of what was taken.
    """

    def download(
        request: Request, study_id: str, file: Annotated[str, AfterValidator(downloads.known)]
    ) -> Response:
        found = images if downloads.shows(file) else here(images)
        answer = downloads.response(exports.read_study(store, study_id, found), file)
        exported(store.by(account(request)), study_id, file)
        return answer

    return routes(get={"/studio/download/{study_id}/{file}": download})


@dataclass(frozen=True, kw_only=True)
class _Annotators:
    """The routes for annotators, over one store and the images of its studies."""

    store: Store
    images: Shelf
    claiming: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MOST_CLAIMING))
    reserving: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))

    def is_behind(self) -> bool:
        """Return whether more than `MOST_WAITING` annotators wait in a line for pictures."""
        lines = self.claiming.statistics(), self.reserving.statistics()
        return any(line.tasks_waiting > MOST_WAITING for line in lines)

    def study(self, request: Request) -> dict[str, Any]:
        return self._about(self._signed_in(request))

    def _about(self, annotator: Annotator) -> dict[str, Any]:
        about = study.get_study(self.store, annotator.study_id)
        return {
            **label_page.shown(about.spec, about.version),
            "key": study.key(annotator),
            "annotator": annotator.name,
            "sign_in": rooted(f"/join/{about.token}"),
            "step": annotator.step.value,
            "place": place(about.spec, annotator.step),
            "progress": self._progress(annotator, study.progress_of(self.store, annotator)),
        }

    def page(self, request: Request) -> Response:
        """The labelling page, for who is at work; others are led to where they belong."""
        annotator = study.who(self.store, request.cookies.get(ANNOTATOR_COOKIE, ""))
        if annotator is None:
            return RedirectResponse(rooted(SIGNED_OUT), 303)
        if annotator.step not in (*AT_WORK, Step.DONE):
            return RedirectResponse(rooted(BEGIN), 303)
        sites = study.get_study(self.store, annotator.study_id).spec.framed_by
        return framable(label_page.page(self._about(annotator)), sites)

    def worker(self) -> Response:
        """The script that shows the page without a network; it may do so for /label only."""
        headers = {"Service-Worker-Allowed": rooted(LABEL), "Cache-Control": "no-cache"}
        return FileResponse(STATIC / "worker.js", headers=headers)

    def link(self, request: Request) -> dict[str, Any]:
        """One more personal link, told this once."""
        link = link_of(study.new_link(self.store, self._signed_in(request)))
        return {"link": rooted(link)}

    async def next(
        self,
        request: Request,
        tab: Tab,
        n: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 10,
        unsent: Annotated[int, Query(ge=0, le=MOST_ITEMS)] = 0,
    ) -> Response:
        limiter = self.claiming if n <= AT_HAND else self.reserving
        if limiter is self.reserving and limiter.statistics().tasks_waiting:
            n = min(n, RESERVE_AMONG_MANY)
        # In its thread also put into JSON: two hundred items would hold up everybody's answers.
        tell = lambda: JSONResponse(self._next(request, tab, n, unsent))  # noqa: E731
        return await to_thread.run_sync(tell, limiter=limiter)

    def _next(self, request: Request, tab: str, n: int, unsent: int) -> dict[str, Any]:
        now = _now()
        ahead = study.ahead(self.store, _caller(request), n, now, unsent)
        takes_part = ahead.annotator.status is AnnotatorStatus.ACTIVE
        if ahead.annotator.step is Step.DONE and takes_part and ahead.progress.left:
            again = phases.settle(self.store, ahead.annotator, ahead.progress)
            ahead = study.ahead(self.store, again, n, now, unsent)
        annotator, progress = ahead.annotator, ahead.progress
        if annotator.step not in (*AT_WORK, Step.DONE):
            nothing = {"items": [], "state": "elsewhere", "version": ahead.version}
            return {**nothing, "progress": _progress(progress)}
        items = study.next_items(self.store, annotator, tab, ahead.n, now, ahead.wanted)
        state = "ready" if items else self._why_nothing(annotator, progress)
        reply = {
            "items": [_item(item) for item in items],
            "state": state,
            "version": ahead.version,
            "progress": self._progress(annotator, progress),
        }
        done = takes_part and annotator.step is Step.MAIN and progress.over
        # Whoever has answered all is done, whatever has become of the study.
        if state in ("finished", "elsewhere") or (done and not items):
            annotator = phases.settle(self.store, annotator, progress)
        return reply if items else {**reply, **self._code(annotator)}

    def release(self, request: Request, body: HeartbeatBody) -> dict[str, Any]:
        annotator = self._signed_in(request)
        study.release(self.store, annotator, body.tab, body.items, _now())
        return {"ok": True}

    def _progress(self, annotator: Annotator, progress: AnnotatorProgress) -> dict[str, Any]:
        """Of the practice while it lasts, else of the study."""
        if annotator.step is not Step.PRACTICE:
            return _progress(progress)
        done, total = phases.practice_progress(self.store, annotator)
        return {**_progress(progress), "done": done, "left": total - done, "total": total}

    def _code(self, annotator: Annotator) -> dict[str, Any]:
        """Return the completion code of an annotator who is or has been done, else nothing."""
        code = phases.completion_code_of(self.store, annotator.study_id, annotator.name)
        return {"code": code, "done_page": rooted(DONE)} if code else {}

    def vote(self, request: Request, body: VoteBody) -> dict[str, Any]:
        answer = Answer(**{**body.model_dump(), "id": str(body.id)})
        receipt = study.vote(self.store, _caller(request), answer, _now())
        told = {"id": receipt.id, "status": receipt.status.value}
        return told if receipt.feedback is None else {**told, "feedback": receipt.feedback}

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
        content = study.image_path(self.store, annotator, token, self.images).read_bytes()
        # Sent as mere bytes: a file's time and name would tell pictures of one model apart.
        headers = {
            "Cache-Control": "private, max-age=86400, immutable",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(content, media_type="image/png", headers=headers)

    def _why_nothing(self, annotator: Annotator, progress: AnnotatorProgress) -> str:
        """Return the name of the reason why there is no item to show; changes nothing."""
        if annotator.status is not AnnotatorStatus.ACTIVE:
            return _STOPPED[annotator.status]
        about = study.get_study(self.store, annotator.study_id)
        if about.status is not StudyStatus.RUNNING:
            return about.status.value
        if annotator.step is Step.PRACTICE:
            step = phases.belongs(self.store, annotator, progress)
            return "waiting" if step is Step.PRACTICE else "elsewhere"
        return "finished" if progress.over else "waiting"

    def _signed_in(self, request: Request) -> Annotator:
        return study.signed_in(self.store, _caller(request))


def _now() -> datetime:
    return datetime.now(UTC)


def _caller(request: Request) -> study.Caller:
    token = request.cookies.get(ANNOTATOR_COOKIE, "")
    return study.Caller(token=token, page=request.headers.get("x-annotator"))


def _item(item: TaskItem) -> dict[str, Any]:
    told = {
        "item": item.item,
        "images": [rooted(f"/api/image/{token}") for token in item.images],
        "candidates": list(item.candidates),
        "lease_until": item.lease_until.isoformat(),
    }
    return {**told, "practice": True} if item.practice else told


def _progress(progress: AnnotatorProgress) -> dict[str, Any]:
    return {
        "done": progress.done + progress.trials_done,
        "left": progress.left + progress.trials_left,
        "total": progress.total + progress.trials_done + progress.trials_left,
        "median_rt_ms": progress.median_rt_ms,
    }
