"""The routes of the pages annotators go through: joining, the steps before the labelling, the end.

Like those in `annotation.web.api`, they reply only after the use case has returned.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

from anyio import CapacityLimiter, move_on_after, sleep, to_thread
from fastapi import Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.requests import ClientDisconnect

from annotation import errors
from annotation.accounts.attempts import Attempts, TooManyError, place_of
from annotation.design import flow, quality
from annotation.design.flow import AT_WORK, place
from annotation.design.workload import seconds_of
from annotation.domain import (
    SESSION_LASTS,
    Annotator,
    AnnotatorStatus,
    SignedIn,
    Step,
    Study,
    StudyStatus,
)
from annotation.store import Store
from annotation.study import labelling as study
from annotation.study import participant_flow as phases
from annotation.tasks.wording import PLAIN
from annotation.texts import UNFIT, is_fit
from annotation.web.guard import (
    ANNOTATOR_COOKIE,
    SIGNED_OUT,
    Cookie,
    framable,
    framers,
    keep,
    stranger,
)
from annotation.web.root_path import rooted
from annotation.web.templates import page

LABEL = "/label"
BEGIN = "/begin"  # the address of all pages before the labelling
DONE = "/done"
ME = "/me"  # in front of the secret of a personal link
MOST_JOINING = 2  # at a time
LONGEST_AT_THE_DOOR, LOOK_AGAIN = 5.0, 0.1  # seconds
_STOPPED = {AnnotatorStatus.PAUSED: "paused", AnnotatorStatus.EXCLUDED: "ended"}
_REFUSED = {TooManyError: 429, errors.NameTakenError: 409}  # others: 403

# Parameter of an address → whether it names the person. Prolific, Mechanical Turk, and others.
_PARAMETERS = {
    "PROLIFIC_PID": True,
    "STUDY_ID": False,
    "SESSION_ID": False,
    "workerId": True,
    "assignmentId": False,
    "hitId": False,
    "participant": True,
    "participantId": True,
}
# Of {{%ID%}}, ${ID}, [ID], (ID), <ID>, %ID%, &lt;ID&gt;: none of them is in an id.
_UNFILLED = re.compile(r"[{}\[\]()<>«»$%&;]")
_WHOSE = "your|the|insert|enter|prolific|mturk|turk|sona|worker|participant|subject|user"
# What stands for an id, letters and digits alone; "" where there are none. Also what people type
# to try a link: the second who does would be the first.
_NO_ID = re.compile(
    f"(({_WHOSE}|external|study|survey|session|assignment|hit|a)*(p?id|code)|notavailable"
    "|participant|undefined|unknown|null|none|nan|nil|na"
    "|test|testing|example|dummy|placeholder|todo|x{2,})?(here|notavailable)?"
)
LONGEST = 80  # characters of an id; services use about 30


class Recruit(NamedTuple):
    """Annotator sent by a service: the pseudonym it gave them, and all ids by parameter."""

    pseudonym: str
    ids: dict[str, str]


def placeholder_in(parameters: Mapping[str, str]) -> str:
    """Return the parameter, as "name=value", that a service did not fill in; "" for none.

    All who come by such a link would be one person.
    """
    for name in (name for name in _PARAMETERS if name in parameters):
        value = parameters[name].strip()
        bare = re.sub(r"[\W_]", "", value).casefold()
        if _UNFILLED.search(value) or _NO_ID.fullmatch(bare):
            return f"{name}={value}"
    return ""


def recruit_of(parameters: Mapping[str, str]) -> Recruit | None:
    """Return the recruit that these parameters of a service name; None where they name none.

    Anything else in the address, and ids of more than 80 characters, are left out.
    """
    ids = {
        name: parameters[name].strip()
        for name in _PARAMETERS
        if 0 < len(parameters.get(name, "").strip()) <= LONGEST
    }
    names = [value for name, value in ids.items() if _PARAMETERS[name]]
    return Recruit(names[0], ids) if names else None


def code_address(url: str, code: str) -> str:
    """Return the address after the end: `url` with {code} in it replaced by `code`."""
    return url.replace("{code}", quote(code, safe=""))


async def _fields(request: Request) -> dict[str, str]:
    """Return the texts a form sent, by field; each page has fields of its own.

    Raises `UnfitError` for a text that no database can hold, and `HTTPException` (400) for a body
    that broke off. Its client is gone and reads no answer.
    """
    try:
        sent = await request.form()
    except ClientDisconnect:
        raise HTTPException(400, "The request broke off.") from None
    form = {name: value for name, value in sent.items() if isinstance(value, str)}
    if not all(map(is_fit, (*form, *form.values()))):
        raise errors.UnfitError(f"{UNFIT} in every field.")
    return form


Fields = Annotated[dict[str, str], Depends(_fields)]


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The routes, over one store."""

    store: Store
    attempts: Attempts
    crowded: Callable[[], bool]  # whether people who are in wait for pictures
    door: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MOST_JOINING))
    # Who waits for a seat holds no thread and no connection, which answers then have.
    joining: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MOST_JOINING))

    def join_page(self, request: Request, token: str) -> Response:
        try:
            about = study.study_by_token(self.store, token)
        except errors.NotFoundError:
            return _no_such_study()
        if unfilled := placeholder_in(request.query_params):
            return _unfilled(about, unfilled)
        if site := stranger(request, about.spec.framed_by):
            return _framed_by(site, about)
        recruit = recruit_of(request.query_params)
        if recruit is not None:
            return _join_page(self.store, about, recruit)
        annotator = self._signed_in(request)
        here = annotator is not None and annotator.study_id == about.id
        name = annotator.name if annotator is not None and here else None
        return _join_page(self.store, about, signed_in_as=name)

    async def join(self, request: Request, token: str, form: Fields) -> Response:
        try:
            look = partial(study.invited, self.store, token)
            invited = await to_thread.run_sync(look, limiter=self.joining)
        except errors.NotFoundError:
            return _no_such_study()
        about, recruit = invited.study, recruit_of(form)
        if unfilled := placeholder_in(form):
            return _unfilled(about, unfilled)
        name = recruit.pseudonym if recruit else form.get("name", "")
        address = place_of(request.client.host if request.client else "")
        ids, password = recruit.ids if recruit else None, form.get("password") or None
        before = request.cookies.get(ANNOTATOR_COOKIE, "")

        def sign_in() -> SignedIn:
            if form.get("link"):
                signed_in = study.come_back(self.store, form["link"], about.id)
            else:
                signed_in = study.join(
                    self.store, invited, name, password, external=ids, session=before
                )
            # Whoever was signed in here before; nobody else must go on under their name.
            if before:
                study.sign_out(self.store, before)
            return signed_in

        turn = self.attempts.turn(f"{token}\n{address}") if about.protected else nullcontext()
        try:
            async with turn, self._let_through():
                signed_in = await to_thread.run_sync(sign_in, limiter=self.joining)
        except (errors.SignInError, errors.NameTakenError, TooManyError) as error:
            problem = about.spec.wording.told(error)
            taken = isinstance(error, errors.NameTakenError) or bool(form.get("link"))
            status = _REFUSED.get(type(error), 403)
            return _join_page(
                self.store, about, recruit, status, name=name, problem=problem, taken=taken
            )
        return _let_in(request, signed_in, about.spec.framed_by)

    @asynccontextmanager
    async def _let_through(self) -> AsyncIterator[None]:
        """One's turn to come in, in the order people came; those who are in go first."""
        async with self.door:
            with move_on_after(LONGEST_AT_THE_DOOR):
                while self.crowded():
                    await sleep(LOOK_AGAIN)
            yield

    def personal_page(self, request: Request, link: str) -> Response:
        """Sign in by a personal link; ask where another is signed in or a researcher made it.

        Votes by a researcher's link are left out from its use on, and programs that preview an
        address open it as well.
        """
        owner = study.whose_link(self.store, link)
        here = self._signed_in(request)
        asked = here is not None or study.is_of_researcher(self.store, link)
        if owner is None or not asked or (here is not None and owner.id == here.id):
            return self.personal(request, link)
        about = study.get_study(self.store, owner.study_id)
        say, address = about.spec.wording, rooted(link_of(link))
        other = "" if here is None else here.name
        return page("personal.html", say=say, address=address, name=owner.name, other=other)

    def personal(self, request: Request, link: str) -> Response:
        """Sign in by a personal link."""
        try:
            signed_in = study.come_back(self.store, link)
        except errors.SignInError as error:
            return _message(404, PLAIN("error.link_title"), str(error))
        study.sign_out(self.store, request.cookies.get(ANNOTATOR_COOKIE, ""))
        about = study.get_study(self.store, signed_in.annotator.study_id)
        return _let_in(request, signed_in, about.spec.framed_by)

    def sign_out(self, request: Request) -> Response:
        """Say how to come back, this once; nothing of theirs stays in this browser."""
        token = request.cookies.get(ANNOTATOR_COOKIE, "")
        annotator = study.who(self.store, token)
        if annotator is None:
            response: Response = RedirectResponse(rooted(SIGNED_OUT), 303)
        else:
            say = study.get_study(self.store, annotator.study_id).spec.wording
            link = link_of(study.new_link(self.store, annotator))
            study.sign_out(self.store, token)
            base = str(request.base_url).rstrip("/")
            response = page(
                "signed_out.html", say=say, name=annotator.name, link=base + link, site=""
            )
        response.delete_cookie(ANNOTATOR_COOKIE, path=rooted("/"))
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def had_signed_out(self) -> Response:
        """Redirect a reload of the page that said how to come back to `SIGNED_OUT`."""
        return RedirectResponse(rooted(SIGNED_OUT), 303)

    def signed_out(self, request: Request) -> Response:
        site = request.url.hostname
        return page("signed_out.html", say=PLAIN, link="", name="", site=site)

    def begin(self, request: Request) -> Response:
        """Return the page of the step an annotator is at, or a redirect to where they belong."""
        annotator = self._signed_in(request)
        if annotator is None:
            return RedirectResponse(rooted(SIGNED_OUT), 303)
        return self._page_of(phases.settle(self.store, annotator))

    def advance(self, request: Request, form: Fields) -> Response:
        """Take what the page of a step sent; the reply leads to the next page."""
        annotator = self._signed_in(request)
        if annotator is None:
            return RedirectResponse(rooted(SIGNED_OUT), 303)
        if form.get("who", study.key(annotator)) != study.key(annotator):
            return RedirectResponse(rooted(BEGIN), 303)  # somebody else has signed in since
        try:
            phases.advance(self.store, annotator, _step(form), form)
        except errors.AnswerError as error:
            problem = phases.spec_of(self.store, annotator).wording.told(error)
            return self._page_of(annotator, problem=problem, status=422)
        except errors.NotAllowedError:
            pass  # the page says why
        return RedirectResponse(rooted(BEGIN), 303)

    def done(self, request: Request) -> Response:
        """The last page, for those who are done or were told a code before."""
        annotator = self._signed_in(request)
        if annotator is None:
            return RedirectResponse(rooted(SIGNED_OUT), 303)
        about = study.get_study(self.store, annotator.study_id)
        code = phases.completion_code_of(self.store, about.id, annotator.name)
        if annotator.step is not Step.DONE and code is None:
            return RedirectResponse(rooted(_place_of(annotator)), 303)
        goes_to = code_address(about.spec.completion_url, code or "")
        excluded = annotator.status is AnnotatorStatus.EXCLUDED
        over = annotator.step is Step.DONE and not excluded
        why = "" if over else _why_stopped(annotator, about)
        return _step_page("thanks.html", about, code=code or "", goes_to=goes_to, why=why)

    def _page_of(self, annotator: Annotator, problem: str = "", status: int = 200) -> Response:
        about = study.get_study(self.store, annotator.study_id)
        step = annotator.step
        if step in AT_WORK or step is Step.DONE:
            return RedirectResponse(rooted(_place_of(annotator)), 303)
        stopped = _why_stopped(annotator, about)
        if stopped:
            return _step_page("stopped.html", about, why=stopped)
        asked = self._check(annotator, about) if step is Step.CHECK else {}
        whose = {"who": study.key(annotator), "problem": problem}
        return _step_page(f"{step}.html", about, step, status, **whose, **asked)

    def _check(self, annotator: Annotator, about: Study) -> dict[str, Any]:
        used, wrong = phases.attempts_used(self.store, annotator)
        questions = flow.questions(about.kind, about.spec.seed, annotator.id)
        in_words = [about.spec.wording.question(about.kind, one) for one in questions]
        reminders = [one.reminder for one in in_words if one.name in wrong]
        return {"used": used, "questions": in_words, "reminders": reminders}

    def _signed_in(self, request: Request) -> Annotator | None:
        return study.who(self.store, request.cookies.get(ANNOTATOR_COOKIE, ""))


def _step(form: Fields) -> Step:
    try:
        return Step(form.get("step", ""))
    except ValueError:
        raise errors.AnswerError.of("out_of_date") from None


def _place_of(annotator: Annotator) -> str:
    """Return the address of the page where an annotator goes on."""
    if annotator.step in AT_WORK:
        return LABEL
    return DONE if annotator.step is Step.DONE else BEGIN


def _why_stopped(annotator: Annotator, about: Study) -> str:
    """Return the name of the text on why an annotator cannot go on; "" where they can."""
    if annotator.status is not AnnotatorStatus.ACTIVE:
        return _STOPPED.get(annotator.status, "")
    closed = about.status is StudyStatus.CLOSED and annotator.step is not Step.FAILED
    return "closed" if closed else ""


def link_of(secret: str) -> str:
    """The address of a personal link on this server."""
    return f"{ME}/{secret}"


def _let_in(request: Request, signed_in: SignedIn, sites: str) -> Response:
    response = RedirectResponse(rooted(_place_of(signed_in.annotator)), 303)
    lasts = int(SESSION_LASTS.total_seconds())
    keep(response, request, Cookie(ANNOTATOR_COOKIE, signed_in.session_token, lasts), sites)
    return response


def _unfilled(about: Study, unfilled: str) -> Response:
    say = about.spec.wording
    return _message(400, say("error.unfilled_title"), say("error.unfilled", what=unfilled))


def _framed_by(site: str, about: Study) -> Response:
    """Return the page that another site's frame shows in place of the study."""
    say, sites = about.spec.wording, framers(about.spec.framed_by) or "–"
    text = say("error.framed", site=site, sites=sites)
    return framable(_message(403, say("error.framed_title"), text), "*")


def _work(store: Store, about: Study) -> dict[str, int]:
    """The items that one person gets at most, and the minutes they take."""
    n = study.most_each(store, about)
    n += round(quality.expected(about.spec, n, n))
    seconds = seconds_of(n, study.own_rt_ms(store, about.id))
    return {"n": n, "minutes": max(1, round(seconds / 60))}


def _join_page(
    store: Store, about: Study, recruit: Recruit | None = None, status: int = 200, **values: Any
) -> Response:
    given = {"signed_in_as": None, "name": "", "problem": "", "taken": False, **values}
    say = about.spec.wording
    work = _work(store, about) if about.status is not StudyStatus.CLOSED else {}
    shown = page("join.html", status, study=about, say=say, recruit=recruit, work=work, **given)
    return framable(shown, about.spec.framed_by)


def _step_page(
    template: str, about: Study, step: Step | None = None, status: int = 200, **values: Any
) -> Response:
    """A page of the study, with the place of `step` on the way."""
    where = place(about.spec, step) if step else None
    say = about.spec.wording
    shown = page(template, status, study=about, say=say, where=where, step=step, **values)
    return framable(shown, about.spec.framed_by)


def _no_such_study() -> Response:
    return _message(404, PLAIN("error.no_study_title"), PLAIN("error.no_study"))


def _message(status: int, title: str, text: str) -> Response:
    return page("message.html", status, title=title, text=text)
