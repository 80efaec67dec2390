"""In a small study nobody holds everything, and a page that closes gives back what it held."""

from datetime import UTC, datetime, timedelta

import pytest

from annotation.design import assignment
from annotation.domain import Answer, VoteStatus
from annotation.store import progress
from annotation.study import labelling as study

NOW = datetime.now(UTC)


@pytest.fixture
def study_of_eight(make_study):
    return make_study(votes_per_item=1)


@pytest.fixture
def people(store, study_of_eight):
    return [
        study.join(store, study_of_eight.token, name).annotator for name in ("Anna", "Ben", "Cem")
    ]


def share(store, person, n=20, left=8, now=NOW):
    people = store.read(lambda tx: progress.so_far(tx, person, now)).people
    return assignment.share(n, left, people)


def take(store, person, n, tab="tab", now=NOW):
    return [item.item for item in study.next_items(store, person, tab, n, now)]


def answer(store, person, item, number, now=NOW):
    return study.vote(
        store, person, Answer(id=f"{number:032x}", item=item, answer="none", tab="tab"), now
    )


def test_who_is_alone_may_hold_everything(store, people):
    anna, *_ = people
    assert share(store, anna) == 20
    take(store, anna, 3)
    assert share(store, anna) == 20


def test_with_others_at_work_each_may_hold_a_share_and_two(store, people):
    anna, ben, cem = people
    take(store, anna, 1)
    assert share(store, ben) == 4 + 2
    take(store, ben, 1)
    assert share(store, cem, left=7) == 3 + 2
    assert share(store, cem, n=2, left=7) == 2
    assert share(store, cem, left=1000) == 20


def test_what_is_held_for_when_the_network_goes_leaves_half_of_a_share(store, people):
    anna, ben, _ = people
    assert share(store, anna, n=200, left=24) == 20
    assert share(store, anna, n=200, left=100) == 50
    assert share(store, anna, n=200, left=1000) == 200
    take(store, anna, 1)
    assert share(store, ben, n=200, left=100) == 25
    assert share(store, ben, n=200, left=24) == 14


def test_items_whose_answers_are_under_way_do_not_use_up_the_share(store, people):
    anna, ben, _ = people
    take(store, anna, 1)
    assert study.ahead(store, ben, 8, NOW).n == 8 / 2 + 2
    assert study.ahead(store, ben, 8, NOW, unsent=3).n == 8 / 2 + 2 + 3
    assert study.ahead(store, anna, 8, NOW, unsent=1000).n == study.MOST_ITEMS


def test_who_was_not_seen_for_a_while_is_not_waited_for(store, people):
    anna, ben, _ = people
    take(store, anna, 1)
    assert share(store, ben, now=NOW + timedelta(minutes=4)) == 6
    assert share(store, ben, now=NOW + timedelta(minutes=6)) == 20


def test_what_a_closing_page_held_is_there_for_others(store, people):
    anna, ben, _ = people
    held = take(store, anna, 8)
    assert take(store, ben, 8) == []
    study.release(store, anna, "tab", held[1:], NOW)
    assert set(take(store, ben, 8)) == set(held[1:])


def test_a_page_that_loads_again_gets_back_what_nobody_took(store, people):
    anna, *_ = people
    held = take(store, anna, 5)
    study.release(store, anna, "tab", held, NOW)
    assert set(take(store, anna, 5)) == set(held)


def test_an_answer_that_was_on_its_way_counts(store, people):
    anna, *_ = people
    item = take(store, anna, 1)[0]
    study.release(store, anna, "tab", [item], NOW)
    assert answer(store, anna, item, 1).status is VoteStatus.COUNTED


def test_an_answer_stays_though_its_item_is_given_back(store, people):
    anna, ben, _ = people
    item = take(store, anna, 1)[0]
    answer(store, anna, item, 1)
    study.release(store, anna, "tab", [item], NOW)
    assert item not in take(store, ben, 8)


def test_nobody_gives_back_what_others_or_other_tabs_hold(store, people):
    anna, ben, _ = people
    held = take(store, anna, 8)
    study.release(store, ben, "tab", held, NOW)
    study.release(store, anna, "another tab", held, NOW)
    study.release(store, anna, "tab", ["no such item"], NOW)
    assert take(store, ben, 8) == []
