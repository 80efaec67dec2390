"""Migrations make the tables of the models, once, and refuse what they do not know."""

import re
import threading

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from study_factory import DATABASES, empty_database

from annotation.errors import StoreError
from annotation.store import Store
from annotation.store.engine import open_engine, writer
from annotation.store.migrate import SCRIPTS, _config
from annotation.store.tables import (
    AnnotatorRow,
    EventRow,
    SlotRow,
    StimulusRow,
    StudyRow,
    Table,
    VoteRow,
)


@pytest.fixture(params=DATABASES)
def url(request, tmp_path):
    with empty_database(request.param, tmp_path) as address:
        yield address


def test_migrations_lead_to_the_models(url):
    with Store(url) as store, store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Table.metadata) == []
        found = set(inspect(connection).get_table_names())
    assert found == {*Table.metadata.tables, "alembic_version"}


def test_constraints_and_partial_indices_are_migrated_too(url):
    """`compare_metadata` does not look at these."""
    with Store(url) as store, store._engine.connect() as connection:
        for name, table in Table.metadata.tables.items():
            found = {c["name"] for c in inspect(connection).get_check_constraints(name)}
            wanted = {c.name for c in table.constraints if isinstance(c, CheckConstraint)}
            assert found == wanted
        indices = {i["name"]: i for i in inspect(connection).get_indexes("vote")}
        dialect = connection.dialect.name
    for name in ("uq_vote_counted_slot", "uq_vote_counted_annotator"):
        assert indices[name]["unique"]
        assert "counted" in str(indices[name]["dialect_options"][f"{dialect}_where"])


def test_opening_again_changes_nothing(url):
    Store(url).close()
    with Store(url) as store:
        rows = store.read(lambda tx: tx.execute(text("SELECT * FROM alembic_version")).all())
    assert len(rows) == 1


@pytest.mark.parametrize("loss", ["DROP TABLE alembic_version", "DELETE FROM alembic_version"])
def test_a_database_that_lost_its_version_says_what_to_do(url, loss):
    with Store(url) as store:
        store.write(lambda tx: tx.execute(text(loss)))
    with pytest.raises(StoreError, match="Restore a backup") as told:
        Store(url)
    engine = open_engine(url)
    with writer(engine).begin() as connection:
        for statement in re.findall(r"(?:CREATE|INSERT)[^;]+", str(told.value)):
            connection.execute(text(statement))
    engine.dispose()
    Store(url).close()


def test_many_may_open_an_empty_database_at_once(url):
    failures = []

    def open_it():
        try:
            Store(url).close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_database_of_the_first_version_is_upgraded_with_what_is_in_it(url):
    engine = open_engine(url)
    with writer(engine).begin() as connection:
        command.upgrade(_config(connection), "0001")
        for statement in (STUDY, SOURCE, ITEM):
            connection.execute(text(statement))
    engine.dispose()
    with Store(url) as store:
        (row,) = store.read(lambda tx: tx.query(StimulusRow).all())
        assert (row.sha256, row.attacked_sha256) == ("r", None)


def test_people_and_votes_of_the_second_version_are_kept(url):
    engine = open_engine(url)
    with writer(engine).begin() as connection:
        command.upgrade(_config(connection), "0002")
        for statement in (STUDY, SOURCE, ITEM, *ANSWERED):
            connection.execute(text(statement))
    engine.dispose()
    with Store(url) as store:
        (person,) = store.read(lambda tx: tx.query(AnnotatorRow).all())
        (vote,) = store.read(lambda tx: tx.query(VoteRow).all())
        (event,) = store.read(lambda tx: tx.query(EventRow).all())
        assert (person.name, person.status) == ("Anna", "active")
        assert (vote.answer, vote.status, event.vote_id) == ("same", "counted", "v")
        store.write(lambda tx: tx.execute(text("UPDATE vote SET status = 'excluded'")))
        with pytest.raises(IntegrityError, match="ck_vote_status"):
            store.write(lambda tx: tx.execute(text("UPDATE vote SET status = 'x'")))
        with pytest.raises(IntegrityError):  # references are watched again
            store.write(lambda tx: tx.execute(text("DELETE FROM annotator")))


def test_studies_made_before_have_one_cell_and_their_old_order(url):
    engine = open_engine(url)
    with writer(engine).begin() as connection:
        command.upgrade(_config(connection), "0003")
        for statement in (STUDY, SOURCE, ITEM, *ANSWERED):
            connection.execute(text(statement))
    engine.dispose()
    with Store(url) as store:
        study = store.read(lambda tx: tx.query(StudyRow).one())
        slot = store.read(lambda tx: tx.query(SlotRow).one())
        assert study.cells == [study.n_items]
        assert study.spec == {"balanced": False, "repeat_rate": 0.0}
        assert (slot.cell, slot.source_id, slot.given) == (0, "o", 0)


def test_items_that_others_have_begun_are_marked_on_their_last_slot(url):
    states = (["free"] * 3, ["done", "free", "free"], ["leased", "free"], ["done"] * 2, ["free"])
    slots = []
    for n, of_item in enumerate(states):
        for k, state in enumerate(of_item):
            who = "NULL" if state == "free" else f"'p{k}'"
            until = "'2026-01-01'" if state == "leased" else "NULL"
            here = f"{10 * n + k}, 's', 'i{n}', {k}, {n + 1}, '{state}', {who}, {until}, ''"
            slots.append(f"({here})")
    engine = open_engine(url)
    with writer(engine).begin() as connection:
        command.upgrade(_config(connection), "0013")
        for statement in (STUDY, SOURCE):
            connection.execute(text(statement))
        for n in range(5):
            item = ITEM.replace("'i'", f"'i{n}'").replace("'t'", f"'t{n}'")
            connection.execute(text(item))
        for n in range(2):
            connection.execute(text(PERSON.format(n=n)))
        connection.execute(text(SLOTS + ", ".join(slots)))
    engine.dispose()
    with Store(url) as store:
        rows = store.read(lambda tx: tx.query(SlotRow).filter_by(begun=1).all())
        assert {(row.stimulus_id, row.k) for row in rows} == {("i1", 2), ("i2", 1)}


def test_a_database_with_broken_references_is_left_as_it_was(tmp_path):
    with empty_database("sqlite", tmp_path) as url:
        engine = open_engine(url)
        with writer(engine).begin() as connection:
            command.upgrade(_config(connection), "0002")
        connection = engine.raw_connection()
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(ITEM)
        connection.close()
        engine.dispose()
        with pytest.raises(StoreError, match="stimulus refers to one of"):
            Store(url)
        with open_engine(url).connect() as after:
            version = after.execute(text("SELECT version_num FROM alembic_version")).scalar()
        assert version == "0002"


def test_a_newer_database_is_refused(url):
    with Store(url) as store:
        store.write(lambda tx: tx.execute(text("UPDATE alembic_version SET version_num = '99'")))
    with pytest.raises(StoreError, match="newer"):
        Store(url)


def test_events_are_only_ever_added(url, tmp_path):
    with Store(url) as store:
        add_event(store)
        for change in ("UPDATE event SET kind = 'x'", "DELETE FROM event"):
            with pytest.raises(DBAPIError, match="only ever added"):
                store.write(lambda tx, change=change: tx.execute(text(change)))
        assert store.read(lambda tx: tx.query(EventRow).count()) == 1


STUDY = (
    "INSERT INTO study (id, name, task, status, token, seed, votes_per_item, simulated, spec,"
    " dataset, models, images, n_items, n_decoys, n_failed, protocol, created) VALUES"
    " ('s', 's', 'pair', 'running', 't', 0, 1, '0', '{}', 'd', '[]', '', 0, 0, 0, '',"
    " '2026-01-01')"
)
SOURCE = (
    "INSERT INTO source (id, study_id, image_id, class_name, sha256) VALUES"
    " ('o', 's', '0', 'cat', 'o')"
)
ITEM = (
    "INSERT INTO stimulus (id, study_id, source_id, kind, model, attack, shown_image_id,"
    " shown_class, sha256, token) VALUES"
    " ('i', 's', 'o', 'reconstruction', 'm', 'a', '0', 'cat', 'r', 't')"
)


PERSON = (
    "INSERT INTO annotator (id, study_id, name, name_key, simulated, status, seat, created,"
    " last_seen) VALUES ('p{n}', 's', 'p{n}', 'p{n}', '0', 'active', {n}, '2026-01-01',"
    " '2026-01-01')"
)
SLOTS = (
    "INSERT INTO slot (id, study_id, stimulus_id, k, salt, state, annotator_id, lease_until, tab)"
    " VALUES "
)
ANSWERED = (
    "INSERT INTO annotator (id, study_id, name, name_key, simulated, created, last_seen) VALUES"
    " ('p', 's', 'Anna', 'anna', '0', '2026-01-01', '2026-01-01')",
    "INSERT INTO slot (id, study_id, stimulus_id, k, salt, state, annotator_id, tab) VALUES"
    " (1, 's', 'i', 0, 1, 'done', 'p', '')",
    "INSERT INTO vote (id, study_id, stimulus_id, slot_id, annotator_id, answer, recognised,"
    " server_ts, display, tab, status) VALUES"
    " ('v', 's', 'i', 1, 'p', 'same', '1', '2026-01-01', '{}', '', 'counted')",
    "INSERT INTO event (study_id, kind, annotator_id, stimulus_id, vote_id, at, data) VALUES"
    " ('s', 'vote', 'p', 'i', 'v', '2026-01-01', '{}')",
)


def add_event(store):
    event = "INSERT INTO event (study_id, kind, at, data) VALUES ('s', 'made', '2026-01-01', '{}')"
    for statement in (STUDY, event):
        store.write(lambda tx, statement=statement: tx.execute(text(statement)))


def test_there_is_one_latest_version():
    assert len(ScriptDirectory(str(SCRIPTS)).get_heads()) == 1
