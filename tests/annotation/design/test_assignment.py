"""Orders are permutations, unrelated between annotators; a slot goes to whom it may."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_factory import rank

from annotation.design.assignment import PRIME, Slot, order_of, salts, slot_for, wants_another
from annotation.domain import SlotState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(minutes=1), NOW - timedelta(minutes=1)


def order(seed: int, annotator: str, n: int = 500) -> list[int]:
    own = order_of(seed, annotator)
    salt = salts(seed, n)
    return sorted(range(n), key=lambda item: rank(own, salt[item]))


def test_the_same_person_and_seed_give_the_same_order():
    assert order(3, "anna") == order(3, "anna")


@pytest.mark.parametrize(("seed", "name"), [(3, "ben"), (4, "anna")])
def test_another_person_or_seed_gives_an_unrelated_order(seed, name):
    n = 500
    place = {item: index for index, item in enumerate(order(3, "anna", n))}
    other = {item: index for index, item in enumerate(order(seed, name, n))}
    centre = (n - 1) / 2
    products = [(place[item] - centre) * (other[item] - centre) for item in range(n)]
    correlation = sum(products) / n / ((n**2 - 1) / 12)
    assert abs(correlation) < 0.2  # 4.5 standard errors of 1/sqrt(500)


@given(st.integers(), st.text(max_size=20), st.integers(1, PRIME - 1), st.integers(1, PRIME - 1))
def test_different_items_never_share_a_rank(seed, name, a, b):
    own = order_of(seed, name)
    assert (rank(own, a) == rank(own, b)) == (a == b)
    assert 0 <= rank(own, a) < PRIME
    assert own.factor * a + own.offset < 2**63  # the databases compute it in 64 bits


def test_salts_are_different():
    assert len(set(salts(0, 10_000))) == 10_000


def slot(k: int, state: str, annotator: str | None = None, until: datetime | None = None) -> Slot:
    return Slot(id=k, k=k, state=SlotState(state), annotator=annotator, lease_until=until)


@pytest.mark.parametrize(
    ("slots", "taken"),
    [
        ([], None),
        ([slot(1, "free"), slot(0, "free")], 0),
        ([slot(0, "done", "ben"), slot(1, "free")], 1),
        ([slot(0, "leased", "ben", EARLIER), slot(1, "free")], 1),
        ([slot(0, "leased", "ben", EARLIER), slot(1, "leased", "cleo", LATER)], 0),
        ([slot(0, "leased", "ben", LATER), slot(1, "done", "cleo")], None),
        ([slot(0, "leased", "ben", LATER), slot(1, "leased", "anna", EARLIER)], 1),
        ([slot(0, "done", "anna"), slot(1, "free")], None),
    ],
    ids=[
        "none", "lowest free", "free", "free before expired", "expired", "full", "own, even late",
        "never twice",
    ],
)  # fmt: skip
def test_slot_for(slots, taken):
    got = slot_for(slots, "anna", NOW)
    assert (got.k if got else None) == taken


def test_of_expired_slots_the_longest_expired_is_taken():
    slots = [slot(0, "leased", "ben", EARLIER), slot(1, "leased", "cleo", EARLIER - timedelta(1))]
    assert slot_for(slots, "anna", NOW).k == 1


@pytest.mark.parametrize(
    ("n_recognised", "n_votes", "k", "wanted"),
    [(3, 5, 5, True), (2, 5, 5, True), (4, 5, 5, False), (2, 4, 5, False), (3, 6, 5, False),
     (1, 1, 1, False), (2, 3, 3, True)],
)  # fmt: skip
def test_one_more_vote_is_wanted_where_k_votes_are_split(n_recognised, n_votes, k, wanted):
    assert wants_another(n_recognised, n_votes, k) is wanted
