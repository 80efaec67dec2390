"""A study planned by a simulated crowd, and whether the real store does the same with it."""

from dataclasses import replace

import numpy as np
import pytest
from contracts import store_invariants as invariants
from scipy.stats import binom

from annotation.design import workload
from annotation.design.workload import FIGURES, Crowd, Items, carried_out, enough, newcomer, plan
from annotation.errors import StudyError
from benchmarks.crowd import Stored, both
from semsim.base.errors import SettingsError

SMALL = {"items": 400, "each": 40.0, "arrivals": 200.0}
HONEST = {"spammers": 0.0, "catch_rate": 0.0, "leaves": 0.0}


def run(seed=0, **assumed):
    crowd = Crowd(**{**SMALL, **assumed})
    board = Items(crowd, np.random.default_rng([seed, 2]))
    return carried_out(crowd, board, seed), board


@pytest.mark.parametrize(
    ("assumed", "words"),
    [
        ({"items": 0}, "items must be at least 1; got 0"),
        ({"arrivals": 0}, "arrivals must be above 0; got 0"),
        ({"spammers": 2.0}, "spammers must be at most 0.95; got 2.0"),
    ],
)
def test_what_no_crowd_can_be_is_refused(assumed, words):
    with pytest.raises(SettingsError, match=words):
        Crowd(**assumed)


def test_a_crowd_that_would_be_too_large_is_refused():
    with pytest.raises(StudyError, match="each: about 5,000,000 people would have to come"):
        Crowd(items=1_000_000, each=1)
    with pytest.raises(StudyError, match="runs: expected 1 or more"):
        plan(Crowd(**SMALL), runs=0)


def test_the_same_seed_is_the_same_study():
    one, other = (plan(Crowd(**SMALL), runs=2, seed=5) for _ in range(2))
    assert one.equals(other)
    assert not one.equals(plan(Crowd(**SMALL), runs=2, seed=6))
    assert list(one["figure"].unique()) == list(FIGURES)
    assert (one["low"] <= one["high"]).sum() == one["low"].notna().sum()


class Recorder(Items):
    """Remembers who was given what."""

    def __init__(self, *args):
        super().__init__(*args)
        self.given = []

    def claim(self, who, n, people, now):
        batch = super().claim(who, n, people, now)
        self.given += [(who.seat, int(item)) for item in batch.items]
        return batch


@pytest.mark.parametrize("votes", [1, 4, 5])
def test_every_picture_has_its_votes_of_as_many_people(votes):
    crowd = Crowd(**SMALL, votes=votes, leaves=0.05, spammers=0.3)
    board = Recorder(crowd, np.random.default_rng(0))
    done = carried_out(crowd, board, 0)
    yes, counted, _ = board.counts()
    assert (counted == votes).all()
    assert ((yes >= 0) & (yes <= votes)).all()
    assert len(set(board.given)) == len(board.given)  # nothing twice to a person
    assert sum(one.votes for one in done.people) == crowd.items * votes + done.thrown


def test_wrong_labels_are_those_of_a_majority_of_honest_people():
    """Three of five at least are wrong with the binomial probability."""
    done, _ = run(items=20_000, each=2000.0, accuracy=0.8, **HONEST)
    expected = binom.sf(2, 5, 0.2)
    assert done.wrong == pytest.approx(expected, abs=4 * np.sqrt(expected / 20_000))
    assert done.undecided == 0
    even, _ = run(items=20_000, each=2000.0, votes=4, accuracy=0.8, **HONEST)
    assert even.undecided == pytest.approx(binom.pmf(2, 4, 0.2), abs=0.01)


def test_people_come_at_their_rate_and_work_as_long_as_they_say():
    done, _ = run(items=4000, each=20.0, spread=0.5, pace=0.0, **HONEST)
    assert len(done.people) / done.days == pytest.approx(200, rel=0.1)
    votes = sum(one.votes for one in done.people)
    mean = 3.0 * np.exp(0.5**2 / 2)  # of a lognormal with a median of 3 s
    assert done.hours * 3600 / votes == pytest.approx(mean, rel=0.05)
    assert votes / len(done.people) == pytest.approx(20 * np.exp(0.5**2 / 2), rel=0.1)


def test_spammers_are_caught_and_nobody_else_who_makes_no_slip():
    done, _ = run(items=2000, each=200.0, spread=0.0, spammers=0.3, slips=0.0, catch_rate=0.1)
    assert done.caught > 0.8
    assert done.wronged == 0
    assert done.thrown == sum(one.votes for one in done.people if one.excluded) > 0
    without, _ = run(items=2000, each=200.0, spread=0.0, spammers=0.3, catch_rate=0.0)
    assert done.wrong < without.wrong
    assert without.thrown == 0


def test_a_study_from_which_everybody_is_excluded_comes_to_an_end(monkeypatch):
    monkeypatch.setattr(workload, "MOST_PEOPLE", 60)
    none_stay = Crowd(items=100, models=2, slips=1, pause_after=1, catch_rate=0.5)
    with pytest.raises(StudyError, match="After 60 people the study is not done: too many are"):
        carried_out(none_stay, Items(none_stay, np.random.default_rng(0)), 0)


def test_nobody_without_spammers_is_a_share_of_them():
    table = plan(Crowd(**SMALL, **HONEST), runs=1).set_index("figure")
    assert table.loc["caught", ["mean", "low", "high"]].isna().all()


def test_the_plan_says_which_quality_control_is_enough():
    crowd = Crowd(**SMALL, spammers=0.4, catch_rate=0.1, accuracy=0.95)
    table = plan(crowd, runs=2)
    rates = table["catch_rate"].unique()
    assert list(rates) == [0, 0.05, 0.1, 0.2]
    wrong = table[table["figure"] == "wrong"].set_index("catch_rate")["mean"]
    assert wrong[0.2] < wrong[0]
    assert enough(table, wrong[0.1]) in (0.05, 0.1)
    assert enough(table, 1.0) == 0
    assert enough(table, -1.0) is None
    capped = plan(replace(crowd, catch_rate=0.4), runs=1)
    assert list(capped["catch_rate"].unique()) == [0, 0.2, 0.4, 0.5]


@pytest.mark.parametrize("seed", range(3))
def test_the_real_store_does_the_same_with_the_same_people(store, seed):
    """All that differs is who meets which picture, and what is left for the last ones."""
    crowd = Crowd(
        items=150,
        votes=3,
        each=20.0,
        spread=0.5,  # nobody wants so many that there are none left for them
        arrivals=300.0,
        spammers=0.3,
        leaves=0.02,
        catch_rate=0.2,
    )
    planned, real = both(store, crowd, seed)
    most = max(len(planned.people), len(real.people))
    assert abs(len(planned.people) - len(real.people)) <= max(2, 0.1 * most)
    did = [
        {
            one.seat: (one.votes, one.failed, one.excluded, round(one.worked, 6))
            for one in done.people
        }
        for done in (planned, real)
    ]
    last = max(0.7 * most, 10)
    early = [{seat: told for seat, told in one.items() if seat < last} for one in did]
    assert early[0] == early[1]
    assert any(excluded for *_, excluded, _ in early[0].values())
    assert real.thrown == pytest.approx(planned.thrown, abs=15)


def test_what_somebody_does_depends_on_no_batch():
    """The same answers, times and catch trials, however many items come at once."""
    crowd = Crowd(leaves=0.02, spammers=0.5, catch_rate=0.2, models=1, items=400)

    class Smaller(Items):
        def claim(self, who, n, people, now):
            return super().claim(who, min(n, 3), people, now)

    boards = [kind(crowd, np.random.default_rng(0)) for kind in (Items, Smaller)]
    done = [carried_out(crowd, board, 3).people[:8] for board in boards]
    told = [
        [(one.votes, one.failed, one.excluded, round(one.worked, 6)) for one in people]
        for people in done
    ]
    assert told[0] == told[1]
    assert len({votes for votes, *_ in told[0]}) > 4


def test_a_reservation_that_ran_out_goes_before_what_others_have_begun():
    crowd = Crowd(items=100, votes=3, models=1, **HONEST)
    board = Items(crowd, np.random.default_rng(0))
    people = [newcomer(crowd, 0, seat) for seat in range(3)]
    first = board.claim(people[0], 20, 1, 0.0)
    board.give_back(people[0], first.items[:5], 0.0)
    then = board.claim(people[1], 7, 1, 1.0)
    assert set(then.items[:5].tolist()) == set(first.items[:5].tolist())
    assert set(then.items[5:].tolist()) <= set(first.items[5:].tolist())


def test_people_begin_with_different_models_and_take_them_in_turn():
    crowd = Crowd(items=80, models=4, **HONEST)
    board = Items(crowd, np.random.default_rng(0))
    cells = []
    for seat in range(4):
        given = board.claim(newcomer(crowd, 0, seat), 20, 1, 0.0).items
        cells.append(set((given // 20).tolist()))
    assert cells == [{0}, {3}, {2}, {1}]


def test_the_store_keeps_every_vote_of_a_simulated_crowd(store):
    crowd = Crowd(items=60, votes=3, each=15.0, spammers=0.3, leaves=0.05, catch_rate=0.2)
    board = Stored(store, crowd, 1)
    done = carried_out(crowd, board, 1)
    invariants.check(store, board.study, set(board.receipts))
    _, counted, _ = board.counts()
    assert (counted == 3).all()
    assert sum(board.counted.values()) == 180
    assert any(one.excluded for one in done.people)


def test_who_ends_where_is_the_same_where_nothing_is_left_to_chance(store):
    """Everybody gives what they came for, but those at the end, who find less to do."""
    crowd = Crowd(items=100, votes=3, each=15.0, arrivals=300.0, **HONEST)
    planned, real = both(store, crowd, 4)
    votes = [[one.votes for one in done.people] for done in (planned, real)]
    least = min(map(len, votes)) - 3
    assert least >= 10
    assert votes[0][:least] == votes[1][:least]
    assert abs(len(votes[0]) - len(votes[1])) <= 2
