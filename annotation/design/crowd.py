"""A study planned by simulating its crowd: people, days, money, and what votes are worth.

Time goes from event to event: a person arrives, answers the items at hand, stays or leaves. A
`Board` hands the items out: `Items` keeps them in memory, and a caller who checks whether that is
true puts a real store in its place. All people in it are simulated.
"""

import math
from dataclasses import dataclass, field, fields, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

import numpy as np
import pandas as pd

from annotation.design import quality
from annotation.design.assignment import AT_HAND, RECENTLY, share
from annotation.design.exposure import cells_in_order
from annotation.design.feasibility import JITTER, PACE, SECONDS_PER_VOTE
from annotation.domain import TrialKind
from annotation.errors import StudyError
from annotation.spec import USUAL_TASK, StudySpec
from semsim.base.stats.votes import majority

DAY = 86_400.0  # seconds
MOST_PEOPLE = 200_000  # that may come
ARRIVALS, WORK, BACK, GONE = range(4)
COLUMNS = ("figure", "catch_rate", "mean", "low", "high")
FIGURES = {  # and how they are written
    "people": ("people who take part", ",.0f"),
    "days": ("days", ",.1f"),
    "hours": ("hours paid", ",.0f"),
    "money": ("money", ",.0f"),
    "thrown": ("votes thrown away", ",.0f"),
    "caught": ("spammers caught", ".1%"),
    "wronged": ("others excluded", ".1%"),
    "wrong": ("wrong majority labels", ".2%"),
    "undecided": ("undecided labels", ".2%"),
}
_TIMES = (0.0, 0.5, 1.0, 2.0)  # the rate of catch trials
_QUANTILES = (0.05, 0.95)


def assumed(default: float, text: str, least: float, most: float, *, above: bool = False) -> Any:
    """A field of `Crowd`: what it is, and the values it can have, from `least`, or `above` it."""
    limits = {"text": text, "least": least, "most": most, "above": above}
    return field(default=default, metadata=limits)


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Assumptions on a study and on the people who come; raises `StudyError` by field."""

    items: int = assumed(100_000, "Pictures.", 1, 1_000_000)
    votes: int = assumed(5, "Votes that each picture needs (K).", 1, 25)
    models: int = assumed(14, "Target models, whose pictures a person takes in turn.", 1, 1000)
    arrivals: float = assumed(60.0, "People who come, a day.", 0, 100_000, above=True)
    each: float = assumed(200.0, "Pictures a person wants to judge, median.", 1, 100_000)
    spread: float = assumed(1.0, "Standard deviation of its logarithm.", 0, 3)
    seconds: float = assumed(SECONDS_PER_VOTE, "Seconds a vote takes, median.", 0, 3600, above=True)
    pace: float = assumed(PACE, "Standard deviation of its logarithm.", 0, 3)
    leaves: float = assumed(0.001, "Chance to leave for good after an answer.", 0, 1)
    spammers: float = assumed(0.1, "Share of people who answer anything.", 0, 0.95)
    accuracy: float = assumed(0.85, "Chance that another's vote is right.", 0.5, 1)
    recognisable: float = assumed(0.5, "Share of pictures that can be recognised.", 0, 1)
    listed: int = assumed(20, "Classes offered with a picture.", 2, 1000)
    catch_rate: float = assumed(0.05, "Catch trials per vote.", 0, 0.5)
    pause_after: int = assumed(2, "Failed catch trials after which somebody is excluded.", 0, 100)
    slips: float = assumed(0.02, "Chance that an honest person fails a catch trial.", 0, 1)
    lease: float = assumed(600.0, "Seconds that a picture stays reserved.", 1, 1e6)
    wage: float = assumed(12.0, "Pay an hour.", 0, 1e6)
    most_wrong: float = assumed(0.03, "Share of wrong labels that is good enough.", 0, 1)

    def __post_init__(self) -> None:
        wrong = [told for one in fields(self) if (told := self._flaw(one.name, one.metadata))]
        least = self.items * self.votes / max(self.each, 1)
        if not wrong and least > MOST_PEOPLE:
            wrong = [f"each: about {least:,.0f} people would have to come; expected more pictures"]
        if wrong:
            raise StudyError("; ".join(wrong) + ".")

    def _flaw(self, name: str, limits: Any) -> str:
        value, least, most = getattr(self, name), limits["least"], limits["most"]
        if least <= value <= most and not (limits["above"] and value == least):
            return ""
        from_where = (
            f"more than {least:g}, at most {most:g}"
            if limits["above"]
            else (f"{least:g} to {most:g}")
        )
        return f"{name}: expected {from_where}, got {value:g}"

    def spec_of(self, name: str, set_aside: int = 1) -> StudySpec:
        """The study, as far as its own rules decide what happens; simulated, as all votes are."""
        checked = self.catch_rate > 0
        return StudySpec(
            name=name,
            task=USUAL_TASK,
            votes_per_item=self.votes,
            set_aside=set_aside if checked else 0,
            catch_rate=self.catch_rate,
            catch_pause_after=self.pause_after if checked else 0,
            repeat_rate=0.0,
            lease_seconds=int(self.lease),
            simulated=True,
        )


@dataclass(kw_only=True)
class Person:
    """Person who came, in the order of `seat`.

    Attributes:
        stays: Answers after which they leave for good, infinite for none.
        says, paces, checks: Where what they answer, how long it takes and how catch trials end are
            drawn from, answer by answer: nothing of it depends on how many items they are given at
            once.
    """

    seat: int
    wants: int
    stays: float
    seconds: float
    spammer: bool
    says: np.random.Generator = field(repr=False)
    paces: np.random.Generator = field(repr=False)
    checks: np.random.Generator = field(repr=False)
    votes: int = 0
    failed: int = 0  # catch trials
    worked: float = 0.0  # seconds
    excluded: bool = False


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Items that a person is given at once.

    Attributes:
        items: (M,) as the board names them.
        truth: (M,) bool, whether each can be recognised.
        checks: Before which of them a catch trial comes, ascending.
    """

    items: np.ndarray
    truth: np.ndarray
    checks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Said:
    """Answers to a batch: the first `n` items are answered, (n,) bool `recognised`.

    Attributes:
        passed: Bool of each catch trial they came to.
    """

    batch: Batch
    n: int
    recognised: np.ndarray
    passed: tuple[bool, ...]


class Board(Protocol):
    """Hands items out and keeps the votes; times are seconds since the beginning."""

    def claim(self, who: Person, n: int, people: int, now: float) -> Batch:
        """Hand out up to `n` items to `who`, with `people` at work."""

    def keep(self, who: Person, said: Said, now: float) -> None:
        """Take the answers."""

    def give_back(self, who: Person, items: np.ndarray, now: float) -> None:
        """Take back items that `who` will not answer; their reservation is over."""

    def exclude(self, who: Person, now: float) -> int:
        """Let none of a person's votes count; return how many did."""

    def leave(self, who: Person) -> None:
        """Note that a person does not come back."""

    def done(self) -> bool:
        """Return whether every item has its votes."""

    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(I,) of each item how many votes recognised it, how many there are, and the truth."""


# ------------------------------------------------------------------ one study


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of one study.

    Attributes:
        people: Those who gave a vote, in the order in which they came.
        thrown: Votes of people who were excluded.
        wrong: Share of the decided majority labels.
    """

    people: tuple[Person, ...]
    days: float
    hours: float
    thrown: int
    wrong: float
    undecided: float

    @property
    def caught(self) -> float:
        """The share of spammers who were excluded; NaN without any."""
        return _share([one.excluded for one in self.people if one.spammer])

    @property
    def wronged(self) -> float:
        """The share of the others who were; NaN without any."""
        return _share([one.excluded for one in self.people if not one.spammer])


def _share(flags: list[bool]) -> float:
    return float(np.mean(flags)) if flags else float("nan")


def carried_out(crowd: Crowd, board: Board, seed: int) -> Outcome:
    """Simulate the study with all who come until `board` is done. The same seed: the same people.

    Raises `StudyError` where so many are excluded that it would hardly ever be.
    """
    run = _Run(crowd, board, seed)
    while not board.done():
        run.step()
    yes, counted, truth = board.counts()
    label = majority(yes, counted, crowd.votes)
    decided = ~np.isnan(label)
    right = label[decided] == truth[decided]
    people = tuple(one for one in run.people if one.worked)
    return Outcome(
        people=people,
        days=run.now / DAY,
        hours=sum(one.worked for one in people) / 3600,
        thrown=run.thrown,
        wrong=1 - float(right.mean()) if len(right) else float("nan"),
        undecided=1 - float(decided.mean()),
    )


class _Run:
    """A study under way: what will happen when, and who is there."""

    def __init__(self, crowd: Crowd, board: Board, seed: int) -> None:
        self._crowd, self._board, self._seed = crowd, board, seed
        self._gaps = np.random.default_rng([seed, 0])
        self._agenda: list[tuple[float, int, int, Any]] = []
        self._number, self._here = count(), 0
        self.now, self.thrown = 0.0, 0
        self.people: list[Person] = []
        self._plan(0.0, ARRIVALS, None)

    def _plan(self, when: float, what: int, of: Any) -> None:
        heappush(self._agenda, (when, next(self._number), what, of))

    def step(self) -> None:
        """The next thing that happens."""
        self.now, _, what, of = heappop(self._agenda)
        if what == ARRIVALS:
            gap = self._gaps.exponential(DAY / self._crowd.arrivals)
            self._plan(self.now + gap, ARRIVALS, None)
            self._here += 1
            if len(self.people) == MOST_PEOPLE:
                raise StudyError(
                    f"After {MOST_PEOPLE:,} people the study is not done: too many are excluded. "
                    "Expected fewer spammers, slips or catch trials, or a later exclusion."
                )
            who = newcomer(self._crowd, self._seed, len(self.people))
            self.people.append(who)
            self._claim(who)
        elif what == WORK:
            self._worked(*of)
        elif what == GONE:
            self._here -= 1
        else:
            who, items = of
            self._board.give_back(who, items, self.now)

    def _claim(self, who: Person) -> None:
        n = min(AT_HAND, who.wants - who.votes)
        batch = self._board.claim(who, n, self._here, self.now) if n > 0 else None
        if batch is None or not (len(batch.items) or batch.checks):
            self._left(who)
            return
        said, ends, seconds = _answers(self._crowd, who, batch)
        self._plan(self.now + seconds, WORK, (who, said, ends, seconds, self.now))

    def _worked(self, who: Person, said: Said, ends: bool, seconds: float, since: float) -> None:
        self._board.keep(who, said, self.now)
        who.votes += said.n
        who.worked += seconds
        rest = said.batch.items[said.n :]
        if who.excluded:
            self.thrown += self._board.exclude(who, self.now)
            self._board.give_back(who, rest, self.now)
        elif len(rest):  # left without a word
            self._plan(max(self.now, since + self._crowd.lease), BACK, (who, rest))
        if ends:
            self._left(who)
        else:
            self._claim(who)

    def _left(self, who: Person) -> None:
        self._board.leave(who)
        if who.worked and not who.excluded:  # the product takes them for there for a while
            self._plan(self.now + RECENTLY.total_seconds(), GONE, None)
        else:
            self._here -= 1


def newcomer(crowd: Crowd, seed: int, seat: int) -> Person:
    """Whoever comes after `seat` others; the same seed and seat: the same person."""
    rng = np.random.default_rng([seed, 1, seat])
    wants, pace = rng.lognormal(np.log(crowd.each), crowd.spread), rng.lognormal(0, crowd.pace)
    spammer = bool(rng.random() < crowd.spammers)
    stays = float(rng.geometric(crowd.leaves)) if crowd.leaves else math.inf
    says, paces, checks = rng.spawn(3)
    return Person(
        seat=seat,
        wants=max(1, round(wants)),
        stays=stays,
        seconds=crowd.seconds * pace * (_HASTE if spammer else 1),
        spammer=spammer,
        says=says,
        paces=paces,
        checks=checks,
    )


_HASTE = 0.4  # of an honest person's time, as nothing is looked at


def _answers(crowd: Crowd, who: Person, batch: Batch) -> tuple[Said, bool, float]:
    """Draw a person's answers to a batch, whether they leave then, and the seconds it takes."""
    left = who.stays - who.votes
    n, ends = (int(left), True) if left <= len(batch.items) else (len(batch.items), False)
    passed: list[bool] = []
    for place in batch.checks:
        if ends and place >= n:
            break
        passed.append(_passes(crowd, who))
        who.failed += not passed[-1]
        if crowd.pause_after and who.failed >= crowd.pause_after:
            n, ends, who.excluded = place, True, True
            break
    truth = batch.truth[:n]
    right, guessed = (who.says.random((n, 2)) < (crowd.accuracy, 1 / (crowd.listed + 1))).T
    times = who.seconds * who.paces.lognormal(0, JITTER, n + len(passed))
    recognised = guessed if who.spammer else truth == right
    said = Said(batch=batch, n=n, recognised=recognised, passed=tuple(passed))
    return said, ends, float(times.sum())


def _passes(crowd: Crowd, who: Person) -> bool:
    """Draw whether a person gives a catch trial's known answer: a class of the list, or none."""
    if who.spammer:
        return bool(who.checks.integers(crowd.listed + 1) == 0)
    return bool(who.checks.random() >= crowd.slips)


# ------------------------------------------------------------------ many of them


def plan(crowd: Crowd, runs: int, seed: int = 0) -> pd.DataFrame:
    """Simulate the study without quality control, with it, and with half and twice as much.

    Columns `COLUMNS`: means over `runs` simulated studies, with the range that holds 90 % of them.
    Raises `StudyError` for no run.
    """
    if runs < 1:
        raise StudyError(f"runs: expected 1 or more, got {runs}.")
    most = Crowd.__dataclass_fields__["catch_rate"].metadata["most"]
    rates = sorted({min(crowd.catch_rate * times, most) for times in _TIMES})
    rows = [
        {"figure": name, "catch_rate": rate, "value": value}
        for rate in rates
        for run in range(runs)
        for name, value in _figures(replace(crowd, catch_rate=rate), seed + run).items()
    ]
    values = pd.DataFrame(rows).groupby(["figure", "catch_rate"], sort=False)["value"]
    table = values.agg(
        mean="mean",
        low=lambda one: one.quantile(_QUANTILES[0]),
        high=lambda one: one.quantile(_QUANTILES[1]),
    )
    return table.reset_index()[list(COLUMNS)]


def enough(table: pd.DataFrame, most_wrong: float) -> float | None:
    """The least rate of catch trials that leaves at most such a share of wrong labels, if any."""
    wrong = table[table["figure"] == "wrong"]
    good = wrong.loc[wrong["mean"] <= most_wrong, "catch_rate"]
    return float(good.min()) if len(good) else None


def _figures(crowd: Crowd, seed: int) -> dict[str, float]:
    done = carried_out(crowd, Items(crowd, np.random.default_rng([seed, 2])), seed)
    known = {"people": len(done.people), "money": done.hours * crowd.wage}
    return {name: known[name] if name in known else getattr(done, name) for name in FIGURES}


class Items:
    """A board in memory.

    Items are handed out as the product does, cell by cell of the Latin square in a person's order:
    first those with a reservation that has run out, then those others have begun, then fresh ones,
    each to K people, none of them twice. A slot that a person had is never free again: what comes
    back, from those who left or were excluded, is a reservation that has run out.
    """

    def __init__(self, crowd: Crowd, rng: np.random.Generator) -> None:
        self._k, self._spec, self._rng = crowd.votes, crowd.spec_of("crowd"), rng
        self._truth = rng.random(crowd.items) < crowd.recognisable
        self._taken, self._had, self._counted, self._yes = np.zeros(
            (4, crowd.items), dtype=np.int16
        )
        self._mine: dict[int, np.ndarray] = {}
        self._given: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        # Items lie cell by cell. In each, before the first all are taken, and from the fresh one on
        # nobody has had any.
        self._ends = np.arange(crowd.models + 1) * crowd.items // crowd.models
        self._first, self._fresh = self._ends[:-1].copy(), self._ends[:-1].copy()
        self._missing = crowd.items * crowd.votes

    def claim(self, who: Person, n: int, people: int, now: float) -> Batch:
        """As `Board`."""
        mine = self._mine.setdefault(who.seat, np.zeros(len(self._truth), dtype=bool))
        left = int(np.count_nonzero((self._taken < self._k) & ~mine))
        n, given = share(n, left, people), [np.arange(0)]
        for cell in cells_in_order(who.seat, len(self._first), originals=False):
            given.append(self._hand_out(cell, mine, n))
            n -= len(given[-1])
            if not n:
                break
        items = np.concatenate(given)
        checks = _checks(self._spec, who, len(items))
        return Batch(items=items, truth=self._truth[items], checks=checks)

    def _hand_out(self, cell: int, mine: np.ndarray, n: int) -> np.ndarray:
        """Up to `n` items of a cell for whom those of `mine` are over; they are theirs now."""
        first, fresh = self._first[cell], self._fresh[cell]
        begun = (self._taken[first:fresh] < self._k) & ~mine[first:fresh]
        roomy = self._rng.permutation(np.flatnonzero(begun) + first)
        run_out = self._had[roomy] > self._taken[roomy]
        roomy = np.concatenate([roomy[run_out], roomy[~run_out]])[:n]
        new = np.arange(fresh, min(fresh + n - len(roomy), self._ends[cell + 1]))
        self._fresh[cell] += len(new)
        items = np.concatenate([roomy, new])
        mine[items] = True
        self._taken[items] += 1
        self._had[items] = np.minimum(self._had[items] + 1, self._k)  # free slots go first
        still = np.flatnonzero(self._taken[first : self._fresh[cell]] < self._k)
        self._first[cell] = first + still[0] if len(still) else self._fresh[cell]
        return items

    def keep(self, who: Person, said: Said, now: float) -> None:
        """As `Board`."""
        items = said.batch.items[: said.n]
        self._counted[items] += 1
        self._yes[items] += said.recognised
        self._missing -= said.n
        self._given.setdefault(who.seat, []).append((items, said.recognised))

    def give_back(self, who: Person, items: np.ndarray, now: float) -> None:
        """As `Board`."""
        self._taken[items] -= 1
        cells = np.searchsorted(self._ends, items, side="right") - 1
        np.minimum.at(self._first, cells, items)

    def exclude(self, who: Person, now: float) -> int:
        """As `Board`."""
        n = 0
        for items, recognised in self._given.pop(who.seat, []):
            self._counted[items] -= 1
            self._yes[items] -= recognised
            self._missing += len(items)
            self.give_back(who, items, now)
            n += len(items)
        return n

    def leave(self, who: Person) -> None:
        """As `Board`; what they must not be given again need not be known any more."""
        self._mine.pop(who.seat, None)

    def done(self) -> bool:
        """As `Board`."""
        return self._missing == 0

    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `Board`."""
        return self._yes, self._counted, self._truth


def _checks(spec: StudySpec, who: Person, n: int) -> tuple[int, ...]:
    """Return before which of the next `n` items the product shows a person a catch trial."""
    kind = TrialKind.CATCH
    due = [quality.due(spec, kind, who.seat, votes) for votes in (who.votes, who.votes + n)]
    places = (quality.place(spec, kind, who.seat, ordinal) for ordinal in range(*due))
    return tuple(place - who.votes for place in places)
