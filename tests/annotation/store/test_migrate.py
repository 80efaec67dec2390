"""Migrations make the tables of the models, once, and refuse what they do not know."""

import re
import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, inspect, text
from sqlalchemy.exc import DBAPIError
from study_factory import DATABASES, empty_database

from annotation.store import Store
from annotation.store.engine import open_engine, writer
from annotation.store.migrate import SCRIPTS
from annotation.store.tables import EventRow, Table
from semsim.base.errors import StoreError


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


def test_of_tables_that_cannot_all_be_made_none_is(url):
    engine = open_engine(url)
    with writer(engine).begin() as connection:
        connection.execute(text("CREATE TABLE vote (id INTEGER)"))
    with pytest.raises(StoreError, match=r"vote.* already exists"):
        Store(url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["vote"]
    engine.dispose()


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
    " dataset, models, targets, judges, n_items, n_decoys, n_originals, n_failed, cells, protocol,"
    " version, created, \"by\") VALUES ('s', 's', 'pair', 'running', 't', 0, 1, '0', '{}', 'd',"
    " '[]', '{}', '[]', 0, 0, 0, 0, '[]', '', 1, '2026-01-01', '')"
)


def add_event(store):
    event = "INSERT INTO event (study_id, kind, at, data) VALUES ('s', 'made', '2026-01-01', '{}')"
    for statement in (STUDY, event):
        store.write(lambda tx, statement=statement: tx.execute(text(statement)))


def test_there_is_one_latest_version():
    assert len(ScriptDirectory(str(SCRIPTS)).get_heads()) == 1
