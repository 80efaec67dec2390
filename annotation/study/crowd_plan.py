"""What a study takes, by simulating it many times: people, days, money, and wrong labels."""

from dataclasses import replace

import numpy as np
import pandas as pd

from annotation.design import quality
from annotation.design.assignment import share
from annotation.design.exposure import cells_in_order
from annotation.domain import TrialKind
from annotation.errors import StudyError
from annotation.spec import StudySpec
from annotation.study.crowd import Batch, Crowd, Person, Said, carried_out

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


def plan(crowd: Crowd, runs: int, seed: int = 0) -> pd.DataFrame:
    """What the study takes without quality control, with it, and with half and twice as much.

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
    each to K people, none of them twice. A slot that somebody had is never free again: what comes
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
    """Before which of the next `n` items the product shows somebody a catch trial."""
    kind = TrialKind.CATCH
    due = [quality.due(spec, kind, who.seat, votes) for votes in (who.votes, who.votes + n)]
    places = (quality.place(spec, kind, who.seat, ordinal) for ordinal in range(*due))
    return tuple(place - who.votes for place in places)
