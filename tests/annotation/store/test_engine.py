"""Databases are opened safely; what is lost in a race is tried again."""

import os
import sqlite3
import subprocess
import sys
import uuid
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from math import nan as NAN
from pathlib import Path

import pytest
from sqlalchemy import Text, make_url, select, text, type_coerce, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from study_factory import DATABASES, fresh_database

from annotation.errors import UnfitError
from annotation.store import Store
from annotation.store import engine as engines
from annotation.store.engine import ATTEMPTS, open_engine, run
from annotation.store.tables import SessionRow, StudyRow, VoteRow
from annotation.study.labelling import get_study, list_studies
from semsim.base.errors import StoreError


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "no database address"),
        ("mysql://host/db", "not supported"),
        ("postgresql://host/db", "not supported"),
        ("sqlite://", "needs a database file"),
        ("sqlite:///:memory:", "needs a database file"),
    ],
)
def test_addresses_that_cannot_be_used(url, message):
    with pytest.raises(StoreError, match=message):
        open_engine(url)


def test_a_server_that_does_not_answer():
    with pytest.raises(StoreError, match="cannot be used"):
        Store("postgresql+psycopg://nobody@127.0.0.1:1/none")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "studies.db").write_text("these are not the tables you are looking for" * 99)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(f"sqlite:///{tmp_path / 'studies.db'}")


def test_sqlite_survives_a_power_cut_and_checks_references(store):
    def pragma(name):
        return store.read(lambda tx: tx.scalar(text(f"PRAGMA {name}")))

    assert pragma("journal_mode") == "wal"
    assert pragma("synchronous") == 2  # FULL
    assert pragma("foreign_keys") == 1
    assert pragma("busy_timeout") == 30_000


def test_a_reader_sees_one_snapshot_while_others_write(store):
    def read(tx):
        before = tx.scalar(text("SELECT count(*) FROM marks"))
        store.write(lambda other: other.execute(text("INSERT INTO marks VALUES (1)")))
        return before, tx.scalar(text("SELECT count(*) FROM marks"))

    store.write(lambda tx: tx.execute(text("CREATE TABLE marks (n INTEGER)")))
    assert store.read(read) == (0, 0)
    assert store.read(lambda tx: tx.scalar(text("SELECT count(*) FROM marks"))) == 1


def test_an_error_leaves_nothing_behind(store):
    def fail(tx):
        tx.execute(text("INSERT INTO marks VALUES (1)"))
        raise ValueError

    store.write(lambda tx: tx.execute(text("CREATE TABLE marks (n INTEGER)")))
    with pytest.raises(ValueError):
        store.write(fail)
    assert store.read(lambda tx: tx.scalar(text("SELECT count(*) FROM marks"))) == 0


class LostRaceError(Exception):
    sqlstate = "40001"


def losing(times, error=LostRaceError):
    left = iter([True] * times + [False] * 99)

    def work(tx):
        if next(left):
            raise DBAPIError("UPDATE slot", {}, error())
        return "done"

    return work


def test_a_lost_race_is_run_again(store):
    assert store.write(losing(2)) == "done"


def test_only_lost_races_are_run_again(store):
    with pytest.raises(DBAPIError):
        store.write(losing(1, error=Exception))


def test_a_race_that_is_always_lost_ends(store):
    with pytest.raises(DBAPIError):
        run(store._writer, losing(ATTEMPTS), attempts=2)


def test_only_trouble_with_the_database_itself_becomes_a_store_error(store):
    store.write(lambda tx: tx.execute(text("CREATE TABLE marks (n INTEGER UNIQUE)")))
    store.write(lambda tx: tx.execute(text("INSERT INTO marks VALUES (1)")))
    with pytest.raises(IntegrityError):
        store.write(lambda tx: tx.execute(text("INSERT INTO marks VALUES (1)")))
    with pytest.raises(StoreError, match="could not do this"):
        store.write(lambda tx: tx.execute(text("INSERT INTO nowhere VALUES (1)")))


def end(store, pid):
    """Close the server's end of a connection, as a restart would."""
    with open_engine(store.url).connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})


def connection_of(tx):
    return tx.scalar(text("SELECT pg_backend_pid()"))


@pytest.fixture
def postgres(tmp_path):
    with fresh_database("postgresql", tmp_path) as url, Store(url) as opened:
        yield opened


def test_a_restarted_server_is_not_noticed(postgres):
    postgres.write(lambda tx: tx.execute(text("CREATE TABLE marks (n INTEGER)")))
    end(postgres, postgres.read(connection_of))
    postgres.write(lambda tx: tx.execute(text("INSERT INTO marks VALUES (1)")))
    end(postgres, postgres.read(connection_of))
    assert postgres.read(lambda tx: tx.scalar(text("SELECT count(*) FROM marks"))) == 1


@pytest.fixture
def crowded(tmp_path):
    """A store whose PostgreSQL lets it have one connection, and who holds that one."""
    with fresh_database("postgresql", tmp_path) as url:
        role = f"few{uuid.uuid4().hex}"
        with open_engine(url).connect() as owner:
            owner = owner.execution_options(isolation_level="AUTOCOMMIT")
            schema = owner.scalar(text("SELECT current_schema()"))
            owner.execute(text(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1"))
            try:
                owner.execute(text(f'GRANT ALL ON SCHEMA "{schema}" TO {role}'))
                own = make_url(url).set(username=role)
                engine = open_engine(own.render_as_string(hide_password=False))
                yield engine, engine.connect()
                engine.dispose()
            finally:
                owner.execute(text(f"DROP OWNED BY {role}"))
                owner.execute(text(f"DROP ROLE {role}"))


def test_who_is_refused_a_connection_asks_again(crowded, monkeypatch):
    """A browser does not: without one of its scripts a page stays empty."""
    engine, holder = crowded
    waits = []
    monkeypatch.setattr(engines.time, "sleep", lambda s: waits.append(s) or holder.close())
    assert run(engine, lambda tx: tx.scalar(text("SELECT 1"))) == 1
    assert len(waits) == 1


def test_a_database_that_takes_no_connection_at_all_is_told(crowded, monkeypatch):
    engine, holder = crowded
    monkeypatch.setattr(engines.time, "sleep", lambda s: None)
    with pytest.raises(StoreError, match="too many connections"):
        run(engine, lambda tx: tx.scalar(text("SELECT 1")))
    holder.close()


def test_a_commit_that_broke_off_is_not_carried_out_again(postgres):
    tries = []

    def cut_off(tx):
        tries.append(1)
        end(postgres, connection_of(tx))

    with pytest.raises(StoreError, match="could not do this"):
        postgres.write(cut_off)
    assert tries == [1]


READ_ONLY = """
import os, sys, threading, uuid
from pathlib import Path
from sqlalchemy import text
from contracts.store_invariants import START, make_study
from annotation.domain import Answer, Task
from annotation.store import Store
from annotation.study.labelling import join, next_items, progress, vote
from semsim.base.errors import StoreError

folder = Path(sys.argv[1])
store = Store(f"sqlite:///{folder / 'studies.db'}")
study = make_study(store, 40, Task.RECOGNITION, votes_per_item=1)
anna = join(store, study.token, "Anna").annotator
items = [item.item for item in next_items(store, anna, "tab", 40, START)]
told = {}

def answer(item):
    try:
        vote(store, anna, Answer(id=str(uuid.uuid4()), item=item, answer="none"), START)
    except StoreError as error:
        told[item] = str(error)

files = [folder / name for name in os.listdir(folder)]
for file in files:
    file.chmod(0o444)

def vote_together(tx):
    tx.execute(text("SELECT 1"))  # somebody else is at it, so that new connections are opened
    threads = [threading.Thread(target=answer, args=(item,)) for item in items[:8]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

store.read(vote_together)
refused = dict(told)
for file in files:
    file.chmod(0o644)
for item in [*refused, *items[8:]]:
    told.pop(item, None)
    answer(item)
print(len(refused), sorted(set(refused.values())))
print("afterwards", sorted(set(told.values())), progress(store, study.id).coverage)
"""


@pytest.mark.skipif(os.name == "nt", reason="rights of files are another matter there")
def test_a_data_folder_that_was_read_only_for_a_while_is_written_again(tmp_path):
    command = [sys.executable, "-c", READ_ONLY, str(tmp_path)]
    if os.geteuid() == 0:  # whom no file's rights would stop
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *command]
    tests = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(tests), str(tests.parent)])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    during, afterwards = done.stdout.splitlines()
    assert afterwards == "afterwards [] [0, 40]"
    assert "cannot be written at this moment" in during


def test_few_connections_to_a_file_stay_open(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'studies.db'}")
    with ExitStack() as stack:
        for _ in range(30):  # at once; each has a cache of its own while it is open
            stack.enter_context(engine.connect()).scalar(text("SELECT 1"))
    assert 1 <= engine.pool.checkedin() <= 8
    engine.dispose()


@pytest.mark.parametrize("kind", DATABASES)
@pytest.mark.parametrize("value", ["\ud800", datetime(2026, 1, 1)], ids=["surrogate", "no zone"])
def test_what_no_database_can_hold_is_said_to_be_so(kind, value, tmp_path):
    column = SessionRow.created if isinstance(value, datetime) else SessionRow.token_sha256
    with fresh_database(kind, tmp_path) as url, Store(url) as store:
        with pytest.raises(UnfitError, match="cannot hold"):
            store.read(lambda tx: tx.scalar(select(SessionRow).where(column == value)))
        assert store.read(lambda tx: tx.scalar(select(SessionRow))) is None


@pytest.mark.parametrize(
    "value", ["a\0b", "\0", "\ud800"], ids=["zero inside", "zero", "surrogate"]
)
def test_what_postgresql_cannot_hold_is_said_to_be_so(value, tmp_path):
    with fresh_database("postgresql", tmp_path) as url, Store(url) as store:
        with pytest.raises(UnfitError, match="cannot hold"):
            store.read(lambda tx: tx.scalar(select(StudyRow).where(StudyRow.token == value)))
        with pytest.raises(UnfitError, match="cannot hold"):
            store.read(lambda tx: tx.scalar(select(VoteRow).where(VoteRow.display == {"a": value})))
        with pytest.raises(UnfitError, match="cannot hold"):
            store.read(lambda tx: tx.scalar(select(VoteRow).where(VoteRow.display == {"a": NAN})))


@pytest.mark.parametrize("damage", ["{", "[]", "null", "7", '{"name": "x"}', '{"nam": "x"}'])
def test_settings_that_somebody_damaged_are_named(damage, store, study):
    def spoil(tx):
        tx.execute(update(StudyRow).values(spec=type_coerce(damage, Text)))

    store.write(spoil)
    for look in (list_studies, partial(get_study, study_id=study.id)):
        with pytest.raises(StoreError, match="restore a backup"):
            look(store)


def test_files_that_cannot_be_cleaned_now_are_said_to_be_cleaned_later_or_by_hand(
    store, monkeypatch
):
    def read_all_the_time(opened):
        raise sqlite3.OperationalError("somebody was reading all the time")

    monkeypatch.setattr(engines, "_scrub_sqlite", read_all_the_time)
    with pytest.raises(StoreError, match=r"somebody was reading.*`sqlite3 \S+\.db VACUUM`"):
        store.scrub()


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_new_studys_slots_are_marked_as_seen_by_all_before_anybody_comes(store, make_study):
    make_study()

    def marked(tx):
        return tx.execute(
            text(
                "SELECT relname FROM pg_stat_user_tables WHERE last_vacuum IS NOT NULL "
                "AND schemaname = current_schema()"
            )
        ).all()

    # How much that marks depends on who reads meanwhile: other tests have the same database.
    assert {name for (name,) in store.read(marked)} == {"stimulus", "slot"}


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_study_is_made_where_the_database_refuses_to_mark_it(
    store, make_study, monkeypatch, caplog
):
    monkeypatch.setattr(engines, "_SETTLE", "VACUUM nothing_of_that_name")
    study = make_study()
    assert get_study(store, study.id).id == study.id
    assert "nothing_of_that_name" in caplog.text
