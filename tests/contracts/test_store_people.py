"""Pausing, excluding and including people on every database, whatever else goes on meanwhile."""

import random
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from contracts import store_invariants
from contracts.store_invariants import check, rows_of
from helpers import at_once
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from study_factory import CLASSES, START, answer_all, answer_to, fresh_database, joined

from annotation.domain import StudyStatus
from annotation.errors import ConflictError, NotAllowedError, SignInError
from annotation.spec import Task
from annotation.store import Store
from annotation.store.tables import Table
from annotation.study import participants as people
from annotation.study.exports import export_votes
from annotation.study.labelling import join, next_items, progress, set_status, undo, vote, who

NAMES = ("Anna", "Ben", "Cleo", "Dora")
make_study = partial(store_invariants.make_study, task=Task.RECOGNITION)


def events_of(store, study):
    _, _, events = store.read(lambda tx: rows_of(tx, study))
    return events


def statuses(store, study, name):
    votes = export_votes(store, study.id)
    return Counter(votes.loc[votes["annotator"] == name, "status"])


# ------------------------------------------------------------------ one after the other


def test_an_excluded_persons_slots_are_filled_by_somebody_else_once(store):
    study = make_study(store, 4, votes_per_item=2)
    anna, ben, cleo, dora = joined(store, study, *NAMES)
    answer_all(store, anna)
    answer_all(store, ben)
    assert next_items(store, cleo, "tab", 9, START) == []
    people.exclude(store, study.id, "anna", START)
    assert progress(store, study.id).coverage == [0, 4, 0]
    assert statuses(store, study, "Anna") == {"excluded": 4}
    assert {r.status for r in answer_all(store, cleo)} == {"counted"}
    assert next_items(store, dora, "tab", 9, START) == []
    assert progress(store, study.id).coverage == [0, 0, 4]
    check(store, study)


def test_excluding_twice_is_excluding_once(store):
    study = make_study(store)
    (anna,) = joined(store, study, "Anna")
    answer_all(store, anna)
    for _ in range(2):
        people.exclude(store, study.id, "Anna", START)
    (event,) = (e for e in events_of(store, study) if e.kind == "annotator_status")
    assert event.data["after"] == "excluded"
    assert len(event.data["votes"]) == 3
    assert statuses(store, study, "Anna") == {"excluded": 3}


def test_votes_count_again_where_there_is_room_and_are_surplus_elsewhere(store):
    study = make_study(store, 4, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    answer_all(store, anna)
    people.exclude(store, study.id, "Anna", START)
    answer_all(store, ben, n=1)
    people.include(store, study.id, "Anna", START)
    assert statuses(store, study, "Anna") == {"counted": 3, "surplus": 1}
    assert progress(store, study.id).coverage == [0, 4]
    check(store, study)


def test_another_free_slot_of_the_item_is_room_as_well(store):
    study = make_study(store, 1, votes_per_item=2)
    anna, ben = joined(store, study, "Anna", "Ben")
    answer_all(store, anna)
    people.exclude(store, study.id, "Anna", START)
    answer_all(store, ben)
    people.include(store, study.id, "Anna", START)
    assert statuses(store, study, "Anna") == {"counted": 1}
    check(store, study)


def test_what_somebody_else_is_looking_at_is_not_taken_away_from_them(store):
    study = make_study(store, 1, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    answer_all(store, anna)
    people.exclude(store, study.id, "Anna", START)
    (item,) = next_items(store, ben, "tab", 1, START)
    people.include(store, study.id, "Anna", START)
    assert statuses(store, study, "Anna") == {"surplus": 1}
    assert vote(store, ben, answer_to(item.item), START).status == "counted"
    check(store, study)


def test_in_a_closed_study_slots_reopen_but_nobody_is_served(store):
    study = make_study(store, 2, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    answer_all(store, anna)
    set_status(store, study.id, StudyStatus.CLOSED)
    people.exclude(store, study.id, "Anna", START)
    assert progress(store, study.id).coverage == [2, 0]
    assert next_items(store, ben, "tab", 2, START) == []
    set_status(store, study.id, StudyStatus.RUNNING)
    assert len(next_items(store, ben, "tab", 2, START)) == 2


@pytest.mark.parametrize("stop", [people.pause, people.exclude])
def test_who_is_stopped_gets_no_item_and_may_not_vote_or_undo(store, stop):
    study = make_study(store, 4, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    (receipt,) = answer_all(store, anna, n=1)
    held = next_items(store, anna, "tab", 2, START)
    stop(store, study.id, "Anna", START)
    assert next_items(store, anna, "tab", 2, START) == []
    late = answer_to(held[0].item)
    with pytest.raises(NotAllowedError, match="your part in this study"):
        vote(store, anna, late, START)
    with pytest.raises(NotAllowedError, match="your part in this study"):
        undo(store, anna, receipt.id, START)
    assert {i.item for i in held} <= {i.item for i in next_items(store, ben, "tab", 9, START)}
    check(store, study)


def test_a_vote_known_already_is_confirmed_to_somebody_excluded_since(store):
    study = make_study(store)
    (anna,) = joined(store, study, "Anna")
    (item, *_) = next_items(store, anna, "tab", 3, START)
    answer = answer_to(item.item)
    vote(store, anna, answer, START)
    people.exclude(store, study.id, "Anna", START)
    assert vote(store, anna, answer, START).status == "excluded"


def test_a_refused_vote_can_be_sent_again_after_resuming(store):
    study = make_study(store)
    (anna,) = joined(store, study, "Anna")
    (item, *_) = next_items(store, anna, "tab", 3, START)
    people.pause(store, study.id, "Anna", START)
    answer = answer_to(item.item)
    with pytest.raises(NotAllowedError, match="send it again"):
        vote(store, anna, answer, START)
    people.resume(store, study.id, "Anna", START)
    assert vote(store, anna, answer, START).status == "counted"


def test_who_is_paused_keeps_their_counted_votes(store):
    study = make_study(store)
    (anna,) = joined(store, study, "Anna")
    answer_all(store, anna, n=2)
    people.pause(store, study.id, "Anna", START)
    assert statuses(store, study, "Anna") == {"counted": 2}
    people.resume(store, study.id, "Anna", START)
    assert len(next_items(store, anna, "tab", 9, START)) == 1


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (people.exclude, people.pause),
        (people.exclude, people.resume),
        (people.pause, people.include),
    ],
)
def test_steps_that_make_no_sense_are_refused(store, first, then):
    study = make_study(store)
    joined(store, study, "Anna")
    before = first(store, study.id, "Anna", START)
    with pytest.raises(ConflictError, match=r"Anna is (excluded|paused)"):
        then(store, study.id, "Anna", START)
    assert people.list_people(store, study.id)[0].status == before.status


# ------------------------------------------------------------------ erasing


def everything_in(store, study):
    """All rows of all tables as one text."""
    return store.read(
        lambda tx: str(
            [tx.execute(table.select()).all() for table in Table.metadata.tables.values()]
        )
    )


@pytest.mark.parametrize("keep_votes", [True, False])
def test_an_erased_name_is_nowhere_in_the_database(store, tmp_path, keep_votes):
    study = make_study(store, 40)
    first = join(store, study.token, NAME)
    signed_in = [first, join(store, study.token, NAME, session=first.session_token)]
    for other in range(30):  # pages are split, which leaves copies of rows behind
        join(store, study.token, f"other {other}")
    for receipt in answer_all(store, signed_in[0].annotator, n=30)[:3]:
        undo(store, signed_in[0].annotator, receipt.id, START)
    assert NAME in everything_in(store, study)
    erased = people.erase(store, study.id, NAME, START, keep_votes=keep_votes)
    assert erased.name.startswith("erased-")
    assert NAME.casefold() not in everything_in(store, study).casefold()
    if store.url.startswith("sqlite"):
        assert traces(tmp_path, NAME) == []
    assert [who(store, one.session_token) for one in signed_in] == [None, None]
    assert statuses(store, study, erased.name)["counted"] == (27 if keep_votes else 0)


def test_what_the_browser_of_an_erased_person_called_its_tab_goes_too(store, tmp_path):
    study = make_study(store, 6, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    tab = "quintessa's tab"
    held = next_items(store, anna, tab, 6, START)
    for item in held[:2]:
        vote(store, anna, answer_to(item.item, tab=tab), START)
    assert everything_in(store, study).count(tab) >= len(held)
    people.erase(store, study.id, "Anna", START, keep_votes=False)
    assert tab not in everything_in(store, study)
    if store.url.startswith("sqlite"):
        assert traces(tmp_path, tab) == []
    assert len(answer_all(store, ben)) == 6


NAME = "Quintessa Bogenschuetz"


def traces(folder, name):
    """The files of an SQLite database in which `name` can be found, in any letter case."""
    files = sorted(folder.glob("studies.db*"))
    assert files
    return [file.name for file in files if name.casefold().encode() in file.read_bytes().lower()]


def test_the_search_for_traces_finds_a_name_that_is_there(tmp_path):
    with fresh_database("sqlite", tmp_path) as url, Store(url) as store:
        join(store, make_study(store).token, NAME)
        assert traces(tmp_path, NAME)


def test_removed_votes_count_no_more_and_say_nothing(store):
    study = make_study(store, 4, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    answer_all(store, anna, answer=CLASSES[0], n=1)
    erased = people.erase(store, study.id, "Anna", START, keep_votes=False)
    (given,) = export_votes(store, study.id).to_dict("records")
    assert (given["answer"], given["status"], given["recognised"]) == ("", "excluded", False)
    mine = [one for one in events_of(store, study) if one.annotator_id == anna.id]
    assert [one.data for one in mine if one.kind in ("vote", "joined")] == [{}, {}]
    assert len(answer_all(store, ben)) == 4
    assert people.list_people(store, study.id)[0].name == erased.name
    with pytest.raises(ConflictError, match="is erased"):
        people.include(store, study.id, erased.name, START)


def test_kept_votes_can_be_removed_later_and_the_pseudonym_stays(store):
    study = make_study(store, 2)
    (anna,) = joined(store, study, "Anna")
    answer_all(store, anna)
    first = people.erase(store, study.id, "Anna", START, keep_votes=True)
    assert statuses(store, study, first.name) == {"counted": 2}
    again = people.erase(store, study.id, first.name, START, keep_votes=False)
    assert again == first
    assert statuses(store, study, first.name) == {"excluded": 2}


def test_nobody_takes_the_place_of_who_was_erased(store):
    study = make_study(store)
    (anna,) = joined(store, study, "Anna")
    erased = people.erase(store, study.id, "Anna", START, keep_votes=True)
    with pytest.raises(SignInError, match="another one"):
        join(store, study.token, erased.name)
    assert join(store, study.token, "Anna").annotator.id != anna.id
    with pytest.raises(NotAllowedError, match="erased"):
        vote(store, anna, answer_to("any"), START)


def test_what_others_said_cannot_be_blanked(store):
    study = make_study(store)
    joined(store, study, "Anna", "Ben")
    people.erase(store, study.id, "Anna", START, keep_votes=False)
    for change in ("data = '{}' WHERE kind = 'joined'", "kind = 'x' WHERE data = '{}'"):
        with pytest.raises(DBAPIError, match="only ever added"):
            store.write(lambda tx, change=change: tx.execute(text(f"UPDATE event SET {change}")))


# ------------------------------------------------------------------ at once


def test_excluding_while_everybody_votes(store):
    study = make_study(store, 16, votes_per_item=2)
    everybody = joined(store, study, *NAMES)
    receipts = []

    def label(person, seed):
        rng = random.Random(seed)
        for _ in range(30):
            for item in next_items(store, person, "tab", 3, datetime.now(UTC)):
                answer = answer_to(item.item, rng.choice(item.candidates))
                with suppress(ConflictError, NotAllowedError):
                    receipts.append(vote(store, person, answer, datetime.now(UTC)).id)

    def meddle(name):
        for change in (people.exclude, people.include, people.pause, people.resume) * 4:
            change(store, study.id, name, datetime.now(UTC))

    at_once(
        *[partial(label, person, n) for n, person in enumerate(everybody)],
        *[partial(meddle, name) for name in NAMES[:2]],
    )
    check(store, study, set(receipts))
    for person in everybody:  # leases of the last ones who were stopped have run out by now
        answer_all(store, person, now=datetime.now(UTC) + timedelta(hours=1))
    assert progress(store, study.id).coverage == [0, 0, 16]
    check(store, study, set(receipts))


def test_many_exclude_the_same_person_at_once(store):
    study = make_study(store, 5, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    answer_all(store, anna)
    at_once(*[lambda: people.exclude(store, study.id, "Anna", START)] * 6)
    kinds = [one.kind for one in events_of(store, study)]
    assert kinds.count("annotator_status") == 1
    assert len(answer_all(store, ben)) == 5
    check(store, study)
