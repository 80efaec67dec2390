"""Renaming and deleting a study, on both databases."""

import json
from datetime import UTC, datetime
from functools import partial
from threading import Thread

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DatabaseError
from study_factory import DATABASES, answer_all, joined

from annotation.errors import NotFoundError, StudyError
from annotation.store import Store, studies
from annotation.store.tables import EventRow, StudyRow, Table
from annotation.study import labelling, protocols
from annotation.study.exports import export_votes
from annotation.study.labelling import get_study, join, list_studies, study_by_token, who
from semsim.base.errors import StoreError

both = pytest.mark.parametrize("store", DATABASES, indirect=True)


def latest(store):
    """The last event."""
    query = select(EventRow).order_by(EventRow.id.desc())
    return store.read(lambda tx: tx.scalars(query).first())


def counts(store):
    """How many rows each table of the studies has."""
    tables = [one for one in Table.metadata.sorted_tables if "account" not in one.name]
    return {
        one.name: store.read(lambda tx, one=one: tx.scalar(select(func.count()).select_from(one)))
        for one in tables
    }


@both
def test_a_study_is_renamed_and_its_protocol_stays(store, make_study):
    study = make_study(name="Before")
    named = labelling.rename(store.by("eva"), study.id, "  After   all ")
    assert (named.name, named.spec.name, named.protocol) == ("After all",) * 2 + (study.protocol,)
    assert export_votes(store, study.id).empty
    event = store.read(
        lambda tx: tx.scalars(select(EventRow).order_by(EventRow.id.desc())).first().data
    )
    assert event == {"before": "Before", "after": "After all", "by": "eva"}
    (first,) = protocols.protocol_versions(store, study.id)
    assert first.spec.name == "Before"
    assert protocols.amend(store, study.id, {"title": "T"}, "why").name == "After all"
    versions = protocols.protocol_versions(store, study.id)
    assert [version.changed for version in versions] == [(), ("title",)]


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_name_given_while_settings_change_takes_none_of_them_back(store, study):
    """SQLite lets nobody else write meanwhile."""
    renaming = Thread(target=labelling.rename, args=(store, study.id, "After"))
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")

    def change(tx):
        with_title = partial(protocols.amended, changes={"title": "T"})
        studies.amend(tx, study.id, with_title, "why", datetime.now(UTC))
        tx.flush()
        renaming.start()
        while not store.read(lambda other: other.scalar(waiting)):
            assert renaming.is_alive()

    store.write(change)
    renaming.join()
    found = get_study(store, study.id)
    assert (found.name, found.spec.title, found.version) == ("After", "T", 2)


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "x" * 201])
def test_a_name_no_study_can_have_is_refused(store, study, name):
    with pytest.raises(StudyError):
        labelling.rename(store, study.id, name)
    assert get_study(store, study.id).name == study.name


@both
def test_all_of_a_study_goes_but_the_event_that_says_so(store, make_study, tmp_path):
    kept = make_study(name="Kept", votes_per_item=2)
    answer_all(store, *joined(store, kept, "Ben"))
    before = counts(store)
    gone = make_study(name="Gone", votes_per_item=2, repeat_rate=0.5, repeat_lag=1)
    session = join(store, gone.token, "Anna")
    answer_all(store, session.annotator)
    labelling.delete(store.by("eva"), gone.id, "Gone", tmp_path / "backups")
    after = counts(store)
    assert after == {**before, "study": before["study"] + 1, "event": before["event"] + 1}
    assert [one.id for one in list_studies(store)] == [kept.id]
    for lost in (lambda: get_study(store, gone.id), lambda: study_by_token(store, gone.token)):
        with pytest.raises(NotFoundError):
            lost()
    assert who(store, session.session_token) is None
    event = latest(store)
    told = event.data
    assert (event.kind, told["name"], told["by"]) == ("study_deleted", "Gone", "eva")
    assert told["votes"] > 0
    row = store.read(lambda tx: tx.get(StudyRow, gone.id))
    assert "Gone" not in json.dumps([row.name, row.spec])


def test_a_name_is_typed_as_a_page_shows_it(store, make_study, tmp_path):
    study = make_study(name="Two  spaces\tand a tab ")
    labelling.delete(store, study.id, "Two spaces and a tab", tmp_path)
    assert list_studies(store) == []


def test_the_backup_has_what_was_deleted(store, study, anna, tmp_path):
    answer_all(store, anna)
    made = labelling.delete(store, study.id, f" {study.name} ", tmp_path / "backups")
    assert made is not None
    with Store(f"sqlite:///{made}") as before:
        assert len(export_votes(before, study.id)) == 8


def test_a_study_is_deleted_also_where_the_files_cannot_be_cleaned(
    store, study, tmp_path, monkeypatch
):
    def busy(self):
        raise StoreError("Traces may be left.")

    monkeypatch.setattr(Store, "scrub", busy)
    with pytest.raises(StoreError, match=r"The study is deleted\. Traces may be left\."):
        labelling.delete(store, study.id, study.name, tmp_path / "backups")
    assert list_studies(store) == []


def test_the_name_has_to_be_typed(store, study, tmp_path):
    with pytest.raises(StudyError, match="type its name"):
        labelling.delete(store, study.id, "another", tmp_path / "backups")
    assert get_study(store, study.id).id == study.id
    assert not (tmp_path / "backups").exists()


@both
def test_events_of_a_study_that_is_there_cannot_be_deleted(store, study):
    with pytest.raises(DatabaseError, match="only ever added"):
        store.write(lambda tx: tx.execute(text("DELETE FROM event")))
