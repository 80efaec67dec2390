"""Number of people a study needs, their hours and their pay: bounds, and a simulated crowd.

`workload` answers before labelling begins, also for a `Crowd`. `plan` simulates people who come.
Time goes from event to event: a person arrives, answers the items at hand, stays or leaves. A
`Board` hands the items out: `Items` keeps them in memory, and a caller who checks whether that is
true puts a real store in its place. All people in it are simulated.
"""

import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

import numpy as np
import pandas as pd

from annotation.design import quality
from annotation.design.assignment import AT_HAND, RECENTLY, share
from annotation.design.candidates import learned
from annotation.design.exposure import cells_in_order
from annotation.design.study_plan import StudyPlan, list_key
from annotation.domain import StimulusKind, TrialKind
from annotation.errors import StudyError
from annotation.spec import USUAL_TASK, Lists, StudySpec
from annotation.texts import counted, duration
from semsim.base.registry import check_settings, setting
from semsim.base.stats.votes import majority

SECONDS_PER_VOTE = 3.0  # what a practised person takes, where nobody has answered yet; a median
# Standard deviations of the logarithm of seconds: of people's paces, and of one person's answers.
PACE, JITTER = 0.4, 0.5
# What many answers take on average, over what one usually takes: slow ones are slower by more.
MEAN_OVER_MEDIAN = math.exp((PACE**2 + JITTER**2) / 2)
SEEN = 0.25  # of the pictures, by somebody who learns from lists, without them
BETWEEN = 0.4  # seconds that an answer takes beyond looking, as the labelling page has it


@dataclass(frozen=True, kw_only=True)
class Load:
    """Load of a study: items that there are to look at.

    Attributes:
        n_items: Items that want votes.
        least, most: Of the original that has most of them, what it has at least and at most; one
            number as soon as the items are known.
        gold: Gold items of one original, at most.
    """

    n_items: int
    least: int
    most: int
    gold: int = 0


def load_of(plan: StudyPlan, *, drawn: bool = True) -> Load:
    """Compute the `Load` of a study.

    Args:
        drawn: Whether it is settled whose originals the decoys show.
    """
    items, n = Counter(item.image_id for item in plan.items), len(plan.items)
    if drawn:
        gold = Counter(item.image_id for item in plan.quality if item.kind is StimulusKind.GOLD)
        most = max(items.values())
        return Load(n_items=n, least=most, most=most, gold=max(gold.values(), default=0))
    decoys = any(item.kind is StimulusKind.DECOY for item in plan.items)
    most = len(plan.models) * (2 if decoys else 1) + plan.spec.label_originals
    return Load(n_items=n, least=min(most, _ceil(n, len(items))), most=most)


def seconds_of(votes: float, usual_ms: float | None = None) -> float:
    """The seconds that `votes` answers take where one usually takes `usual_ms`, if known."""
    each = SECONDS_PER_VOTE if usual_ms is None else usual_ms / 1000 + BETWEEN
    return votes * each * MEAN_OVER_MEDIAN


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Number of people a study needs, and effects of having as many as there will be.

    Attributes:
        annotators_needed: With fewer, items lack votes whoever does what.
        annotators_enough: With so many who each label all they get, every item has its votes,
            whoever comes when; None where no number is sure to be enough.
        views_each: How often people meet the same original if all do the same amount.
        risk: What may follow, in words.
        hours: Of work, of all people together.
        work: The votes and the time they take, in words.
    """

    annotators_needed: int
    annotators_enough: int | None
    views_each: int
    risk: str
    hours: float
    work: str

    @property
    def people(self) -> str:
        """Number of people needed, in words."""
        needed = f"{self.annotators_needed:,} annotator{'s' * (self.annotators_needed != 1)} needed"
        if self.annotators_enough is None:
            return f"At least {needed}"
        if self.annotators_enough == self.annotators_needed:
            return needed
        return f"{needed}, {self.annotators_enough:,} to be sure"


def workload(
    spec: StudySpec,
    load: Load,
    n_annotators: int | None = None,
    *,
    usual_ms: float | None = None,
    n_gold: int = 0,
) -> Workload:
    """Compute the `Workload` of a study.

    Args:
        n_annotators: How many will come; None are as many as are enough.
        usual_ms: The median time of an answer so far; None before any.
        n_gold: How many gold items there are.
    """
    needed, enough = _needed(spec, load), _enough(spec, load)
    people = max(1, (enough or needed) if n_annotators is None else n_annotators)
    limits = (load.most, spec.max_views, spec.items_per_person)
    most_views = min(n for n in limits if n is not None)
    views = min(most_views, _ceil(spec.votes_per_item * load.least, people))
    carry_over = _carry_over(spec, views, most_views)
    seconds = seconds_of(1, usual_ms) / MEAN_OVER_MEDIAN
    votes = load.n_items * spec.votes_per_item
    more = round(people * quality.expected(spec, votes / people, n_gold))
    needs = seconds_of(votes + more, usual_ms)
    besides = f" and about {counted(more, 'answer')} that never count" if more else ""
    return Workload(
        annotators_needed=needed,
        annotators_enough=enough,
        views_each=views,
        risk=" ".join([*_shortage(spec, people, needed, enough), carry_over]),
        hours=needs / 3600,
        work=f"{counted(load.n_items, 'item')} × {counted(spec.votes_per_item, 'vote')} = "
        f"{counted(votes, 'vote')}{besides}: about {duration(needs)} in all, "
        f"{duration(needs / people)} for each of {counted(people, 'person', 'people')}. "
        f"That is {seconds:.2g} seconds per vote, "
        f"the median{'' if usual_ms is None else ' of the studies of this task so far'}, "
        f"plus {MEAN_OVER_MEDIAN - 1:.0%} for slow answers.",
    )


def told_by_lists(plan: StudyPlan) -> list[str]:
    """Return a sentence on what lists tell where originals are met again; [] where none are."""
    spec, views = plan.spec, Counter[str]()
    items = [one for one in plan.items if list_key(spec, one) in plan.candidates]
    random.Random(spec.seed).shuffle(items)
    course = []
    for one in items[: spec.items_per_person]:
        views[one.image_id] += 1
        if spec.max_views is None or views[one.image_id] <= spec.max_views:
            course.append(plan.candidates[list_key(spec, one)])
    if max(views.values(), default=0) < 2 or spec.max_views == 1:
        return []
    lists, answers = ([getattr(one, of) for one in course] for of in ("classes", "true_class"))
    shared = spec.lists is Lists.ORIGINAL
    return [
        f"A person who recognises {SEEN:.0%} of the pictures and learns from each list names "
        f"{learned(lists, answers, SEEN):.0%}; without learning from lists "
        f"{SEEN + (1 - SEEN) / len(lists[0]):.0%}."
        + " All pictures of an original share one list. One list per item, or fewer views of an "
        "original, reveals less." * shared
    ]


def _needed(spec: StudySpec, load: Load) -> int:
    """The votes wanted, on one original and in all, over what one person may give of them."""
    k = spec.votes_per_item
    of_original = _ceil(k * load.least, spec.max_views) if spec.max_views else k
    of_all = _ceil(k * load.n_items, spec.items_per_person) if spec.items_per_person else k
    return max(k, of_original, of_all)


def _enough(spec: StudySpec, load: Load) -> int | None:
    """One more than can be there while an item lacks a vote.

    Whoever has not had such an item has used up their views of its original, or answered all that
    was asked of them. Both take votes from the other items, and those have only so many to give.
    """
    k = spec.votes_per_item + spec.extra_vote
    quota = spec.items_per_person or load.n_items
    views = load.most if spec.max_views is None else spec.max_views - load.gold
    if views < 1:
        return None
    out_of_views = k * (load.most - 1) // views if views < min(load.most, quota) else 0
    left = k * (load.n_items - 1) - out_of_views * views
    out_of_quota = left // quota if quota < load.n_items else 0
    return k + out_of_views + out_of_quota


def _shortage(spec: StudySpec, people: int, needed: int, enough: int | None) -> list[str]:
    """Describe what to expect of the number of votes; empty where all is well."""
    k = spec.votes_per_item
    if people < k:
        return [
            f"With fewer than {k} people no item gets all its votes: nobody votes on an item twice."
        ]
    limits = []
    if spec.max_views is not None:
        limits.append(f"see an original more than {_times(spec.max_views)}")
    if spec.items_per_person is not None:
        limits.append(f"label more than {counted(spec.items_per_person, 'item')}")
    why = f"nobody may {' or '.join(limits)}"
    if people < needed:
        return [f"Items will lack votes: {why}. Invite more people, or allow more."]
    if enough is None:
        return [f"Items may lack votes, as gold items are views as well and {why}."]
    if people < enough:
        return [f"Items may lack votes, depending on who labels what first: {why}."]
    return []


def _carry_over(spec: StudySpec, views: int, most_views: int) -> str:
    if most_views == 1:
        if spec.decoy_rate:
            return (
                "Nobody meets an original twice, but a decoy shows a reconstruction of another "
                "original, which the same person may meet too."
            )
        but = " except in blind repeats" if spec.repeat_rate else ""
        return f"Nobody meets an original twice{but}, so there is no carry-over."
    how_often = _times(views) if views == most_views else f"about {_times(views)}"
    at_most = "" if views == most_views else f", at most {_times(most_views)}"
    return (
        f"Each person meets the same original {how_often}{at_most}. An earlier view helps the next "
        "(carry-over), so later views look more recognisable. Results shows by how much."
    )


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _ceil(n: int, parts: int) -> int:
    return -(-n // parts)


# ------------------------------------------------------------------ a simulated crowd

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


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Assumptions on a study and on the people who come."""

    items: int = setting(100_000, "Pictures", least=1, most=1_000_000)
    votes: int = setting(5, "Votes that each picture needs (K)", least=1, most=25)
    models: int = setting(14, "Target models; each person takes them in turn", least=1, most=1000)
    arrivals: float = setting(60.0, "People who come, a day", above=0, most=100_000)
    each: float = setting(200.0, "Pictures per person, median", least=1, most=100_000)
    spread: float = setting(1.0, "Standard deviation of its logarithm", least=0, most=3)
    seconds: float = setting(SECONDS_PER_VOTE, "Seconds a vote takes, median", above=0, most=3600)
    pace: float = setting(PACE, "Standard deviation of its logarithm", least=0, most=3)
    leaves: float = setting(0.001, "Chance to leave for good after an answer", least=0, most=1)
    spammers: float = setting(0.1, "Share of people who answer anything", least=0, most=0.95)
    accuracy: float = setting(0.85, "Chance that another's vote is right", least=0.5, most=1)
    recognisable: float = setting(0.5, "Share of pictures that can be recognised", least=0, most=1)
    listed: int = setting(20, "Classes offered with a picture", least=2, most=1000)
    catch_rate: float = setting(0.05, "Catch trials per vote", least=0, most=0.5)
    pause_after: int = setting(
        2, "Failed catch trials after which somebody is excluded", least=0, most=100
    )
    slips: float = setting(
        0.02, "Chance that an honest person fails a catch trial", least=0, most=1
    )
    lease: float = setting(600.0, "Seconds that a picture stays reserved", least=60, most=1e6)
    wage: float = setting(12.0, "Pay an hour", least=0, most=1e6)
    most_wrong: float = setting(0.03, "Share of wrong labels that is good enough", least=0, most=1)

    def __post_init__(self) -> None:
        check_settings(self)
        if (least := self._least()) > MOST_PEOPLE:
            raise StudyError(
                f"each: about {least:,} people would have to come; expected more pictures."
            )

    def _least(self) -> int:
        """Return how many people it takes where each judges what most want to."""
        spec = replace(self.spec_of("crowd"), items_per_person=round(self.each))
        load = Load(n_items=self.items, least=self.models, most=self.models)
        return workload(spec, load).annotators_needed

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

    Columns `COLUMNS`: means over `runs` simulated studies, with the range that holds 90% of them.
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
    schedule = quality.schedule(TrialKind.CATCH, who.seat, (spec, 0))
    due = range(*(schedule.due(votes) for votes in (who.votes, who.votes + n)))
    return tuple(schedule.place(ordinal) - who.votes for ordinal in due)
