"""A vision-language model as an annotator: it is sent what an annotator sees, and votes as one.

Each draw is an annotator of its own. Its votes take the ways of people's: items are reserved, the
protocol's limits hold. What is no answer that the item offers is counted, and never made one.
"""

import io
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from PIL import Image

from annotation.domain import Annotator, Answer, Study, StudyStatus, TaskItem
from annotation.errors import StudyError
from annotation.images import Shelf, decode, find
from annotation.spec import Background, StudySpec, View
from annotation.store import Store, leases, model_calls, people, slots, voting
from annotation.store.leases import Claimer
from annotation.store.model_calls import Became, Spent
from annotation.study.endpoint import Endpoint, PassingError, Reply
from annotation.tasks.kind import NONE
from semsim.base.alike import alike
from semsim.base.registry import SettingFacts, check_settings, setting
from semsim.base.words import counted, words_for_seconds

SIDE = 512  # pixels that a picture's longer side is enlarged to, at most
_GAP, _SMALLER = 16, 8  # as on the labelling page: pixels between two, times smaller
_COLOURS = {Background.GREY: 128, Background.BLACK: 0, Background.WHITE: 255}
AT_ONCE = 8  # draws that ask at the same time, at most
BACKOFF = 1.0  # seconds before the second try, twice as long before each later one
TRIES = 6  # failures in a row of one question, after which a run ends
LONGEST_WAIT = 600.0  # seconds: who asks for more is asked again by another run
FIRST_TOKENS = 20_000  # that a question may take before any has been counted
_AMOUNT: SettingFacts = {"least": 0, "below": math.inf}
_MARKS = " \t\r\n\"'`*.“”‘’«»"  # around an answer
_FORM = "Answer with one line of the above, exactly as it is there, and nothing else."


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that all runs on a study may take; None is any amount.

    Raises `SettingsError` for an amount that cannot be, `StudyError` for money without prices.
    """

    calls: int | None = setting(None, "Most calls", "vlm: most calls, of all runs.", least=1)
    pictures: int | None = setting(None, "Most pictures", "vlm: most pictures asked.", least=1)
    money: float | None = setting(
        None, "Most money", "vlm: most that calls may cost, by the prices.", **_AMOUNT
    )
    price_in: float = setting(
        0.0, "Price of a million tokens read", "vlm: price of a million read.", **_AMOUNT
    )
    price_out: float = setting(
        0.0, "Price of a million tokens written", "vlm: price of a million written.", **_AMOUNT
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.money is not None and not (self.price_in > 0 or self.price_out > 0):
            raise StudyError(
                "A budget of money needs the prices of a million tokens: --price-in, --price-out."
            )

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """The price of so many tokens."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6

    def used_up(self, spent: Spent, tokens: int) -> str:
        """Return which part allows no further call, "" where all do.

        A call that has not been counted is taken for twice the dearest so far.

        Args:
            tokens: The most that a reply may have.
        """
        if self.calls is not None and spent.calls >= self.calls:
            return f"the budget of {counted(self.calls, 'call')} is used up"
        dearest = self.cost(2 * spent.most_in or FIRST_TOKENS, tokens)
        known = self.cost(spent.tokens_in, spent.tokens_out)
        if self.money is not None and known + (spent.silent + 1) * dearest > self.money:
            return f"the rest of the budget of {self.money:g} may not cover another call"
        return ""


@dataclass(frozen=True, kw_only=True)
class State:
    """State of a run.

    Attributes:
        wanted: Answers that its annotators are to give, with those of earlier runs.
        seconds: Since it began.
        before: Answers that were there then.
        held: Items that another run holds, once this one is over.
        ended: Why it ended before all was answered; "" while it goes on, or when it was.
    """

    spent: Spent
    wanted: int
    seconds: float = 0.0
    before: int = 0
    held: int = 0
    ended: str = ""

    @property
    def done(self) -> int:
        """Answers so far, those included that are no votes."""
        return self.spent.votes + self.spent.refused + self.spent.malformed

    @property
    def text(self) -> str:
        """Sentence on how far it is."""
        one = self.spent
        said = [
            f"{one.votes:,} of {counted(self.wanted, 'vote')}",
            f"{one.refused:,} refused",
            f"{one.malformed:,} malformed",
            counted(one.calls, "call"),
            f"{one.tokens_in:,} tokens read and {one.tokens_out:,} written",
        ]
        new = self.done - self.before
        if new and not self.ended and self.wanted > self.done:
            left = self.seconds / new * (self.wanted - self.done)
            said.append(f"about {words_for_seconds(left)} left")
        ends = f" Stopped: {self.ended}." if self.ended else ""
        if self.held:
            pictures = counted(self.held, "picture is", "pictures are")
            ends += f" {pictures} reserved by another run, or by one that was killed: run it again."
        return f"{', '.join(said)}.{ends}"


def asked_words(
    spec: StudySpec, item: TaskItem
) -> tuple[str, Mapping[str, tuple[str, str | None]]]:
    """Return the words that an annotator reads beside an item, and what each answer stands for.

    Returns:
        The words, then (answer, reason) by `alike` of the line that gives it.
    """
    say, kind = spec.wording, spec.kind
    lines = [say.class_name(name) for name in item.candidates]
    means = {alike(line): (name, None) for line, name in zip(lines, item.candidates, strict=True)}
    keys = say.keys(kind)
    found: dict[str, tuple[str, str | None]] = {alike(k.label): (k.answer, k.reason) for k in keys}
    bare = {alike(key.answer): (key.answer, None) for key in keys}
    bare |= {alike(say("label.none")): (NONE, None)} if kind.lists else {}
    about = spec.instructions or say(f"{kind.name}.about")
    none = [f"{say('label.none')} {say('label.none_why')}"] if kind.lists else []
    words = [
        "\n".join([about, *say.rules(kind)]),
        say(f"{kind.name}.question"),
        "\n".join([*lines, *none, *(key.label for key in keys)]),
        _FORM,
    ]
    return "\n\n".join(filter(None, words)), {**bare, **found, **means}


def as_shown(content: bytes, spec: StudySpec) -> bytes:
    """A picture as the study's view shows it, at most `SIDE` pixels long where it is enlarged."""
    image = Image.fromarray(decode(content))
    most = spec.image_scale or SIDE
    scale = max(1, min(most, SIDE // max(image.size)))
    how = Image.Resampling.NEAREST if spec.view is View.SQUARES else Image.Resampling.BICUBIC
    large = image.resize((image.width * scale, image.height * scale), how)
    if spec.view is not View.SMOOTH_AND_SMALL:
        return _png(large)
    times = max(1, round(scale / _SMALLER))
    small = image.resize((image.width * times, image.height * times), how)
    grey = (_COLOURS[spec.background],) * 3
    whole = Image.new("RGB", (large.width + _GAP + small.width, large.height), grey)
    whole.paste(large, (0, 0))
    whole.paste(small, (large.width + _GAP, 0))
    return _png(whole)


def _png(image: Image.Image) -> bytes:
    """`images.encode` packs a picture as small as can be, which takes many times longer."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def answer_in(
    text: str, offered: Mapping[str, tuple[str, str | None]]
) -> tuple[str, str | None] | None:
    """The answer and its reason that a reply gives; None where it is no line that was offered."""
    for one in (text, text.strip(_MARKS)):
        if alike(one) in offered:
            return offered[alike(one)]
    return None


@dataclass(kw_only=True)
class Run:
    """A run of one model over one study, until all is answered, a budget ends or it is stopped.

    Attributes:
        n_annotators: Draws.
        stop: Set by whoever cancels it.
        tell: Told its state after every answer.
    """

    store: Store
    study: Study
    images: Shelf
    endpoint: Endpoint
    n_annotators: int = 1
    budget: Budget = field(default_factory=Budget)
    stop: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[State], None] = lambda state: None
    _tab: str = field(init=False, default_factory=lambda: f"model {uuid.uuid4().hex}")
    _ended: str = field(init=False, default="")
    _before: int = field(init=False, default=0)
    _began: float = field(init=False, default_factory=time.monotonic)
    _quiet: float = field(init=False, default=0.0)  # until when nobody asks, as `time.monotonic`

    def __call__(self) -> State:
        """Answer all there is; raises `StudyError` where it cannot go on, all answers kept."""
        self.check()
        self._before = self.state().done
        with ThreadPoolExecutor(min(self.n_annotators, AT_ONCE)) as pool:
            draws = [pool.submit(self._draw, n) for n in range(1, self.n_annotators + 1)]
            try:
                wait(draws)
            except BaseException:  # a person interrupts it
                self.stop.set()
                raise
        for draw in draws:
            draw.result()
        state = self.state(over=True)
        why = self._ended or ("it was cancelled" if self.stop.is_set() else "")
        return replace(state, ended=why if state.done < state.wanted else "")

    def check(self) -> None:
        """Raise `StudyError` where the study is not one that this model answers, so often."""
        _refuse(self.study, self.endpoint.model, self.n_annotators)

    def state(self, *, over: bool = False) -> State:
        """The state it is in now."""
        now = datetime.now(UTC)

        def read(tx: Any) -> tuple[Spent, int]:
            held = model_calls.held_elsewhere(tx, self.study.id, self._tab, now)
            return model_calls.spent(tx, self.study.id), held if over else 0

        spent, held = self.store.read(read)
        most = self.study.n_items if self.budget.pictures is None else self.budget.pictures
        return State(
            spent=spent,
            wanted=min(most, self.study.n_items) * self.n_annotators,
            seconds=time.monotonic() - self._began,
            before=self._before,
            held=held,
        )

    def _draw(self, number: int) -> None:
        """Give all answers of one annotator; ends the other draws where it cannot go on."""
        name, now = f"{self.endpoint.model} {number}", datetime.now(UTC)
        annotator = self.store.write(
            lambda tx: people.annotator_named(tx, self.study.id, name, now, simulated=True)
        )
        try:
            failed = 0
            while (found := self._next(annotator)) is not None:
                failed = failed + 1 if self._fails(annotator, *found, failed) else 0
        except BaseException:
            self.stop.set()
            raise
        finally:
            self._release(annotator)

    def _next(self, annotator: Annotator) -> tuple[TaskItem, Claimer] | None:
        """The next item, on record as asked, and the protocol it is asked by; None at the end."""

        def take(tx: Any) -> tuple[TaskItem, Claimer] | None:
            model_calls.alone(tx, self.study.id)
            now = datetime.now(UTC)
            why = self.budget.used_up(model_calls.spent(tx, self.study.id), self.endpoint.tokens)
            if why:
                self._ended = why
                return None
            by = leases.claimer(tx, annotator, now)
            item = model_calls.next_item(tx, by, self._tab, now, self.budget.pictures)
            if item is None:
                return None
            model_calls.asked(tx, annotator, item.item, now)
            return item, by

        stopped = self.stop.wait(max(0.0, self._quiet - time.monotonic()))
        return None if stopped else self.store.write(take)

    def _fails(self, annotator: Annotator, item: TaskItem, by: Claimer, failed: int) -> bool:
        """Ask about an item and keep the answer; True where all draws wait to try again."""
        words, offered = asked_words(by.spec, item)
        try:
            reply = self.endpoint.ask(self._pictures(item, by.spec), words)
        except PassingError as error:
            if error.free:
                self._keep_failure(annotator, item)
            if failed + 1 >= TRIES or (error.wait or 0) > LONGEST_WAIT:
                raise StudyError(
                    f"The endpoint failed {counted(failed + 1, 'time')} in a row: {error}. Every "
                    "answer so far is kept; run it again later to go on."
                ) from None
            pause = BACKOFF * 2**failed if error.wait is None else error.wait
            self._quiet = max(self._quiet, time.monotonic() + pause)
            return True
        except StudyError:
            self._keep_failure(annotator, item)
            raise
        self._keep(by, item, reply, None if reply.text is None else answer_in(reply.text, offered))
        self.tell(self.state())
        return False

    def _pictures(self, item: TaskItem, spec: StudySpec) -> list[bytes]:
        digests = self.store.read(lambda tx: model_calls.pictures_of(tx, item.item))
        try:
            return [as_shown(find(one, self.images).read_bytes(), spec) for one in digests]
        except OSError as error:
            raise StudyError(
                f"A picture of study {self.study.name!r} cannot be read ({error.strerror}). See to "
                "the folder of images, then run it again."
            ) from error

    def _keep(
        self, by: Claimer, item: TaskItem, reply: Reply, said: tuple[str, str | None] | None
    ) -> None:
        """Store a vote, or that the reply was none."""
        became = Became.REFUSED if reply.text is None else Became.MALFORMED
        became = became if said is None else Became.VOTE
        now = datetime.now(UTC)

        def keep(tx: Any) -> None:
            who = slots.here(tx, by.annotator, now)
            if said is not None:
                answer, reason = said
                vote = Answer(
                    id=str(uuid.uuid4()),
                    item=item.item,
                    answer=answer,
                    reason=reason if answer == NONE else None,
                    views=(by.spec.view.value,),
                    tab=self._tab,
                    version=by.version,
                )
                voting.record(tx, who, vote, now)
            model_calls.replied(tx, who, item.item, now, became, reply.tokens)

        self.store.write(keep)

    def _keep_failure(self, annotator: Annotator, item: TaskItem) -> None:
        now = datetime.now(UTC)
        self.store.write(
            lambda tx: model_calls.replied(tx, annotator, item.item, now, Became.FAILED, (0, 0))
        )

    def _release(self, annotator: Annotator) -> None:
        """Give back what was not answered, for the next run."""
        now = datetime.now(UTC)

        def release(tx: Any) -> None:
            held = leases.claimer(tx, annotator, now).held
            mine = [item for item, one in held.items() if one.tab == self._tab]
            slots.release(tx, annotator, self._tab, mine, now)

        self.store.write(release)


def _refuse(study: Study, model: str, n_annotators: int) -> None:
    spec = study.spec
    if not spec.voter:
        who = "simulated annotators" if spec.simulated else "people"
        raise StudyError(
            f"Study {study.name!r} is answered by {who}. A model answers only a study that was "
            "made for it: create one on the same sets with --voter NAME."
        )
    if spec.voter != model:
        raise StudyError(
            f"Study {study.name!r} is answered by the model {spec.voter}; got {model}. Leave "
            "--voter out, or make a study for the other one."
        )
    if not 1 <= n_annotators <= spec.votes_per_item:
        raise StudyError(
            f"{n_annotators} draws are asked for; an item of study {study.name!r} takes "
            f"{counted(spec.votes_per_item, 'vote')}. Ask for 1 or more, and no more than that."
        )
    if study.status is not StudyStatus.RUNNING:
        raise StudyError(f"Study {study.name!r} is {study.status.value}. Start it first.")
