"""Annotators are told apart by name within a study; sessions by a secret."""

from datetime import UTC, datetime

import pytest

from annotation.errors import NotFoundError
from annotation.store import people, studies
from annotation.store.tables import AnnotatorRow, EventRow

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def study(make_study):
    return make_study()


def named(store, study, name):
    return store.write(lambda tx: people.annotator_named(tx, study.id, name, NOW))


def test_letter_case_does_not_make_another_person(store, study):
    assert named(store, study, "Straße") == named(store, study, "STRASSE")
    assert named(store, study, "Strasse B") != named(store, study, "Strasse")


def test_joining_is_told_once(store, study):
    for _ in range(2):
        anna = named(store, study, "Anna")
    (event,) = store.read(lambda tx: tx.query(EventRow).filter_by(kind="joined").all())
    assert (event.annotator_id, event.data["name"]) == (anna.id, "Anna")


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_nobody_joins_a_study_that_is_deleted_meanwhile(store, study):
    """SQLite lets nobody else write meanwhile."""

    def come(tx):
        people.arriving(tx, study.id, "Anna")
        store.write(lambda other: studies.delete_study(other, study.id, NOW))
        people.seated(tx, people.added(tx, study.id, "Anna", study.spec, NOW))

    with pytest.raises(NotFoundError, match="no study"):
        store.write(come)
    assert store.read(lambda tx: tx.query(AnnotatorRow).count()) == 0


def test_every_session_has_a_secret_of_its_own(store, study):
    anna = named(store, study, "Anna")
    now = datetime.now(UTC)
    one, two = (store.write(lambda tx: people.open_session(tx, anna, now)) for _ in range(2))
    assert one.session_token != two.session_token
    store.write(lambda tx: people.close_session(tx, one.session_token))
    owners = [
        store.read(lambda tx, s=signed_in: people.session_owner(tx, s.session_token))
        for signed_in in (one, two)
    ]
    assert owners == [None, anna]
    assert one.session_token not in repr(one)
