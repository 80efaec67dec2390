"""Is what `semsim-studio plan crowd` says of a study what the real store does with such people?

python -m benchmarks.crowd --help

The same simulated annotators, by their seed, once with items in memory and once with a study in a
database, claim by claim and vote by vote, without HTTP. In both they want as many pictures, leave
after as many answers and fail the same catch trials; who meets which picture differs by chance.
With several seeds the mean difference of each figure has a 95% interval: one that does not hold 0
is a bias of the plan, no chance.
"""

import argparse
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import scipy
from sqlalchemy import select

from annotation.design.quality import Material, counted, quality_items
from annotation.design.study_plan import Original, Reconstruction, plan_study
from annotation.design.workload import Batch, Crowd, Items, Outcome, Person, Said, carried_out
from annotation.domain import Annotator, AnnotatorStatus, Answer, Study, VoteStatus
from annotation.store import Store, people, reports, studies
from annotation.store.tables import SlotRow, SourceRow, StimulusRow, TrialRow
from annotation.study import labelling, participants
from benchmarks.measuring import begin, judge

START = datetime(2026, 1, 1, tzinfo=UTC)
CLASSES = [f"class {number:02}" for number in range(20)]
NOBODY = "none"
TAB = "t"
WITHIN = 10.0  # per cent of the simulation that the store may take more or less of
SHORT = ("people", "days", "hours", "votes thrown away")  # figures that have this target


class Stored:
    """A board that is a real study. Its people are marked as simulated."""

    def __init__(self, store: Store, crowd: Crowd, seed: int) -> None:
        self._store, self._missing = store, crowd.items * crowd.votes
        self.study = made_study(store, crowd)
        rng = np.random.default_rng([seed, 2])
        self._shown = _items_of(store, self.study)
        order = rng.permutation(len(self._shown))
        recognisable = rng.random(len(self._shown)) < crowd.recognisable
        self._truth = dict(zip(sorted(self._shown), recognisable[order].tolist(), strict=True))
        self._who: dict[int, Annotator] = {}
        self._trials: dict[str, str] = {}  # and what is known of each
        self._given: dict[int, list[str]] = {}
        self.counted: dict[int, int] = {}
        self.receipts: list[str] = []

    def claim(self, who: Person, n: int, people: int, now: float) -> Batch:
        """As `Board`; how many are at work the store knows itself."""
        me, when = self._annotator(who, now), _at(now)
        ahead = labelling.ahead(self._store, me, n, when)
        given = labelling.next_items(self._store, me, TAB, ahead.n, when, ahead.wanted)
        names = [one.item for one in given]
        self._given[who.seat] = names
        self._look_up([name for name in names if name not in self._shown])
        items = [name for name in names if name in self._shown]
        before = (names[: names.index(name)] for name in names if name not in self._shown)
        return Batch(
            items=np.array(items, dtype=object),
            truth=np.array([self._truth[item] for item in items], dtype=bool),
            checks=tuple(sum(name in self._shown for name in some) for some in before),
        )

    def keep(self, who: Person, said: Said, now: float) -> None:
        """As `Board`."""
        recognised, passed = iter(said.recognised), iter(said.passed)
        for name in self._given[who.seat]:
            if name in self._shown:
                told = next(recognised, None)
                answer = self._shown[name] if told else NOBODY
            else:
                told = next(passed, None)
                known = self._trials[name]
                answer = known if told else next(one for one in CLASSES if one != known)
            if told is None:
                break
            self._vote(who, name, answer, now)

    def _vote(self, who: Person, item: str, answer: str, now: float) -> None:
        sent = Answer(id=str(uuid.uuid4()), item=item, answer=answer, tab=TAB)
        receipt = labelling.vote(self._store, self._who[who.seat], sent, _at(now))
        self.receipts.append(receipt.id)
        if item in self._shown and receipt.status is VoteStatus.COUNTED:
            self._missing -= 1
            self.counted[who.seat] = self.counted.get(who.seat, 0) + 1

    def give_back(self, who: Person, items: np.ndarray, now: float) -> None:
        """The store does so by itself: a reservation ends by the time."""

    def exclude(self, who: Person, now: float) -> int:
        """As `Board`; raises `RuntimeError` unless the product has paused them by itself."""
        name, n = self._who[who.seat].name, self.counted.pop(who.seat, 0)
        _, listed = self._store.read(lambda tx: people.arriving(tx, self.study.id, name))
        if listed is None or listed.status is not AnnotatorStatus.PAUSED:
            raise RuntimeError(f"{name} failed {who.failed} catch trials and was not paused.")
        participants.exclude(self._store, self.study.id, name, _at(now))
        self._missing += n
        return n

    def leave(self, who: Person) -> None:
        """As `Board`; the reservation of what they were not shown ends by the time as well."""

    def done(self) -> bool:
        """As `Board`."""
        return self._missing == 0

    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `Board`; raises `RuntimeError` where an item has two votes of one person."""
        rows = self._store.read(lambda tx: reports.vote_rows(tx, self.study))
        counted_rows = [row for row in rows if row["status"] == "counted"]
        pairs = {(row["item"], row["annotator"]) for row in counted_rows}
        if len(pairs) < len(counted_rows):
            raise RuntimeError("Somebody has two votes on one item.")
        place = {item: number for number, item in enumerate(sorted(self._shown))}
        where = np.array([place[row["item"]] for row in counted_rows])
        yes = np.array([row["recognised"] for row in counted_rows], dtype=int)
        truth = np.array([self._truth[item] for item in sorted(self._shown)])
        return np.bincount(where, yes), np.bincount(where), truth

    def _annotator(self, who: Person, now: float) -> Annotator:
        if who.seat not in self._who:
            name = f"person {who.seat}"
            self._who[who.seat] = self._store.write(
                lambda tx: people.annotator_named(tx, self.study.id, name, _at(now), simulated=True)
            )
        return self._who[who.seat]

    def _look_up(self, trials: list[str]) -> None:
        query = select(TrialRow.id, StimulusRow.expected).join(
            StimulusRow, StimulusRow.id == TrialRow.stimulus_id
        )
        if trials:
            found = self._store.read(lambda tx: tx.execute(query.where(TrialRow.id.in_(trials))))
            self._trials |= {trial: known for trial, known in found if known is not None}


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _items_of(store: Store, study: Study) -> dict[str, str]:
    """The true class of each item that wants votes."""
    query = (
        select(StimulusRow.id, SourceRow.class_name)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(StimulusRow.study_id == study.id, StimulusRow.id.in_(select(SlotRow.stimulus_id)))
    )
    return dict(store.read(lambda tx: tx.execute(query).all()))


def made_study(store: Store, crowd: Crowd) -> Study:
    """The study of `crowd` without image files, with two originals set aside for catch trials."""
    aside = ["aside 0", "aside 1"] if crowd.catch_rate else []
    ids = [*(f"{i:06}" for i in range(-(-crowd.items // crowd.models))), *aside]
    originals = [
        Original(image_id=one, class_name=CLASSES[i % len(CLASSES)], sha256="0" * 64)
        for i, one in enumerate(ids)
    ]
    made = [
        Reconstruction(
            image_id=one.image_id,
            class_name=one.class_name,
            model=f"model {number}",
            attack="invgrad",
            sha256="1" * 64,
            error=0.5,
        )
        for one in originals
        for number in range(crowd.models)
    ]
    kept_out = [one for one in made if one.image_id in aside]
    material = Material(
        originals=originals,
        reconstructions=[*made[: crowd.items], *kept_out],
        aside=aside,
        noise=dict.fromkeys(aside, "2" * 64),
        gold=(),
    )
    spec = crowd.spec_of(uuid.uuid4().hex, set_aside=len(aside))
    plan = plan_study(
        spec,
        dataset="made",
        classes=CLASSES,
        originals=originals,
        reconstructions=counted(material),
        n_failed=0,
        quality=quality_items(spec, material),
    )
    return store.write(lambda tx: studies.add_study(tx, plan, START))


def both(store: Store, crowd: Crowd, seed: int) -> tuple[Outcome, Outcome]:
    """What becomes of the study in memory, and in the store."""
    simulated = carried_out(crowd, Items(crowd, np.random.default_rng([seed, 2])), seed)
    return simulated, carried_out(crowd, Stored(store, crowd, seed), seed)


def figures(done: Outcome) -> dict[str, float]:
    """What is compared, by its name."""
    return {
        "people": len(done.people),
        "days": done.days,
        "hours": done.hours,
        "votes thrown away": done.thrown,
        "wrong labels, %": 100 * done.wrong,
        "spammers caught, %": 100 * done.caught,
    }


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval of the mean of (S,) differences, one a seed; NaN below two seeds."""
    known = differences[np.isfinite(differences)]
    if len(known) < 2:
        return float("nan"), float("nan")
    error = known.std(ddof=1) / np.sqrt(len(known))
    half = float(scipy.stats.t.ppf(0.975, len(known) - 1) * error)
    return float(known.mean()) - half, float(known.mean()) + half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Raw)
    parser.add_argument("--items", type=int, default=500, help="pictures of the study")
    parser.add_argument("--each", type=float, default=50.0, help="pictures somebody wants, median")
    parser.add_argument("--seed", type=int, default=0, help="the first; each decides who comes")
    parser.add_argument("--seeds", type=int, default=10, help="studies, each of another seed")
    parser.add_argument("--database", help="SQLAlchemy URL; default: an SQLite file made for it")
    options = parser.parse_args()
    begin()
    crowd = Crowd(items=options.items, each=options.each)
    pairs = []
    with tempfile.TemporaryDirectory() as name:
        url = options.database or f"sqlite:///{Path(name) / 'studies.db'}"
        print(f"{crowd.items:,} pictures × {crowd.votes} votes, {url.split(':')[0]}")
        with Store(url) as store:
            for seed in range(options.seed, options.seed + options.seeds):
                start = time.perf_counter()
                pairs.append([figures(one) for one in both(store, crowd, seed)])
                said = (
                    f"{what} {pairs[-1][0][what]:.4g} {pairs[-1][1][what]:.4g}" for what in SHORT
                )
                took = time.perf_counter() - start
                print(f"  seed {seed}: {', '.join(said)}; {took:.0f} s", flush=True)
    print(f"  {'':22}{'planned':>12}{'store':>12}{'difference':>12}  95% interval")
    for what in pairs[0][0]:
        both_sides = np.array([[side[what] for side in pair] for pair in pairs])
        means, differences = np.nanmean(both_sides, axis=0), np.diff(both_sides)[:, 0]
        low, high = interval(differences)
        off = 100 * abs(means[1] - means[0]) / max(means[0], 1e-9)
        told = judge(off, most=WITHIN, unit="%") if what in SHORT else ""
        seen = "" if np.isnan(low) else "chance" if low <= 0 <= high else "bias"
        print(
            f"  {what:22}{means[0]:12,.2f}{means[1]:12,.2f}{means[1] - means[0]:12,.2f}"
            f"  [{low:,.2f}, {high:,.2f}] {seen}"
            f"   {off:.1f}% off  {told}"
        )


class Raw(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Help with the text as it stands above and the defaults of the options."""


if __name__ == "__main__":
    main()
