"""Backups are whole, restoring brings back exactly what was in them, and nothing is lost by it."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from helpers import until
from study_factory import answer_to, fresh_database, joined

from annotation.spec import Task
from annotation.store import Store, backup
from annotation.store.backup import (
    BackupSchedule,
    back_up,
    back_up_into,
    backups,
    file_of,
    restore,
    scheduled_backups,
)
from annotation.study.exports import export_labels, export_votes
from annotation.study.labelling import next_items, vote
from annotation.study.participant_flow import spec_of
from semsim.base.errors import StoreError

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAME = "studies-20260101T120000000000Z.db"


def label(store, annotator, n):
    """`n` votes, each with another answer as far as there are; returns their ids."""
    kind = spec_of(store, annotator).kind
    receipts = []
    for place, item in enumerate(next_items(store, annotator, "tab", n, NOW)):
        offered = kind.offered(item.candidates)
        answer = answer_to(item.item, offered[place % len(offered)])
        receipts.append(vote(store, annotator, answer, NOW))
    return [receipt.id for receipt in receipts]


def vote_ids(database):
    with closing(sqlite3.connect(database)) as connection:
        return {name for (name,) in connection.execute("SELECT id FROM vote")}


@pytest.fixture
def database(store):
    return file_of(store.url)


@pytest.fixture
def copy(tmp_path):
    return tmp_path / "copy.db"


# ------------------------------------------------------------------ there and back


@pytest.mark.parametrize("task", Task)
def test_a_restored_database_holds_exactly_the_votes_of_the_backup(
    store, make_study, images, database, copy, task
):
    study = make_study(task=task, votes_per_item=1)
    (anna,) = joined(store, study, "Anna")
    label(store, anna, 3)
    back_up(database, copy)
    tables = lambda store: [  # noqa: E731
        export_votes(store, study.id),
        export_labels(store, study.id, images),
    ]
    votes, labels = tables(store)
    assert votes["answer"].nunique() >= 2
    assert labels["recognisable"].notna().sum() == 3
    later = label(store, anna, 2)
    store.close()
    kept = restore(copy, database, NOW)
    with Store(store.url) as again:
        for found, before in zip(tables(again), (votes, labels), strict=True):
            pd.testing.assert_frame_equal(found, before)
        assert len(label(again, anna, 8)) == 5  # all that Anna had not answered in the backup
    assert vote_ids(kept) == {*votes["vote_id"], *later}
    assert kept.parent == database.parent


def test_a_backup_can_be_restored_where_nothing_was(store, study, anna, database, copy, tmp_path):
    ids = label(store, anna, 2)
    back_up(database, copy)
    there = tmp_path / "new" / "studies.db"
    assert restore(copy, there, NOW) is None
    assert vote_ids(there) == set(ids)
    assert [path.name for path in there.parent.iterdir()] == ["studies.db"]


def test_a_backup_made_while_people_vote_is_of_one_moment(store, study, anna, ben, database, copy):
    acknowledged = label(store, anna, 1)
    going_on = threading.Thread(target=lambda: [label(store, ben, 1) for _ in range(8)])
    going_on.start()
    made = [back_up(database, copy.with_name(f"{n}.db")) for n in range(3)]
    going_on.join()
    for path in made:
        with closing(sqlite3.connect(path)) as connection:
            events = connection.execute("SELECT vote_id FROM event WHERE kind = 'vote'").fetchall()
            done = connection.execute("SELECT count(*) FROM slot WHERE state = 'done'").fetchone()
        assert {name for (name,) in events} == vote_ids(path) >= set(acknowledged)
        assert done == (len(vote_ids(path)),)


def test_a_backup_that_is_restored_is_left_alone(store, study, anna, database, copy, tmp_path):
    label(store, anna, 1)
    back_up(database, copy)
    before = copy.read_bytes()
    restore(copy, tmp_path / "new.db", NOW)
    assert copy.read_bytes() == before
    assert vote_ids(tmp_path / "new.db") == vote_ids(copy)


def test_a_damaged_database_can_be_replaced(store, study, anna, database, copy):
    ids = label(store, anna, 2)
    back_up(database, copy)
    store.close()
    database.write_bytes(b"no database" * 1000)
    kept = restore(copy, database, NOW)
    assert kept.read_bytes().startswith(b"no database")
    assert vote_ids(database) == set(ids)


def test_what_a_database_that_is_gone_left_behind_gets_into_no_backup(
    store, study, anna, database, copy
):
    ids = label(store, anna, 1)
    back_up(database, copy)
    label(store, anna, 2)
    beside = {end: database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm")}
    left = {end: path.read_bytes() for end, path in beside.items()}
    store.close()
    database.unlink()
    for end, path in beside.items():
        path.write_bytes(left[end])
    assert restore(copy, database, NOW) is None
    assert not any(path.exists() for path in beside.values())
    assert vote_ids(database) == set(ids)
    kept = database.with_name("studies-replaced-20260101T120000000000Z.db-wal")
    assert kept.read_bytes() == left["-wal"]


# ------------------------------------------------------------------ what is refused


def test_a_database_in_use_is_not_replaced(store, study, anna, database, copy):
    back_up(database, copy)
    ids = label(store, anna, 2)
    with pytest.raises(StoreError, match="is in use"):
        restore(copy, database, NOW)
    assert len(label(store, anna, 1)) == 1
    assert vote_ids(database) > set(ids)
    assert list(database.parent.glob("*.part*")) == []


def foreign(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE vote (id TEXT)")


def newer(path):
    Store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def torn(path):
    Store(f"sqlite:///{path}").close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def scratched(path):
    """One page of an index overwritten, as by a bad disk."""
    Store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'ix_slot_free'"
        page = connection.execute(query).fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\x55" * size)


def orphaned(path):
    Store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection, connection:
        row = "'token', 'nobody', '2026-01-01'"
        connection.execute(
            f"INSERT INTO session (token_sha256, annotator_id, created) VALUES ({row})"
        )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (orphaned, "refer to others that are not there"),
        (lambda path: None, "There is no database"),
        (lambda path: path.write_text("hello" * 999), "no intact SQLite database"),
        (lambda path: path.write_bytes(b""), "lacks the tables"),
        (foreign, "lacks the tables alembic_version, event, slot, study"),
        (newer, "made by a newer one"),
        (torn, "no intact|damaged"),
        (scratched, "no intact|damaged"),
    ],
)
def test_what_is_no_intact_backup_replaces_nothing(spoil, message, study, database, copy):
    spoil(copy)
    before = set(database.parent.iterdir())
    with pytest.raises(StoreError, match=message):
        restore(copy, database, NOW)
    assert set(database.parent.iterdir()) == before


def test_a_backup_overwrites_nothing(store, study, database):
    with pytest.raises(StoreError, match="exists already"):
        back_up(database, database)


def test_a_database_that_does_not_exist_is_not_made_by_backing_it_up(tmp_path):
    with pytest.raises(StoreError, match="There is no database"):
        back_up(tmp_path / "none.db", tmp_path / "backups" / "copy.db")
    assert list(tmp_path.rglob("*.db")) == []


def test_a_damaged_database_makes_no_backup(store, tmp_path):
    scratched(tmp_path / "bad.db")
    with pytest.raises(StoreError, match="damaged"):
        back_up_into(tmp_path / "bad.db", tmp_path / "backups", NOW)
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(study, database, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="could not be written"):
        back_up_into(database, tmp_path / "file", NOW)


# ------------------------------------------------------------------ a folder of them


def test_only_the_newest_are_kept_and_nothing_else_is_touched(store, study, anna, database):
    folder = database.parent / "backups"
    (folder / "studies-mine.db").mkdir(parents=True)
    for minute in range(4):
        label(store, anna, 1)
        back_up_into(database, folder, NOW + timedelta(minutes=minute), keep=2)
    assert [path.name[16:21] for path in backups(folder)] == ["T1202", "T1203"]
    assert [len(vote_ids(path)) for path in backups(folder)] == [3, 4]
    assert (folder / "studies-mine.db").exists()


def test_a_backup_of_an_unchanged_database_replaces_the_last_one(store, study, anna, database):
    folder = database.parent / "backups"
    first = back_up_into(database, folder, NOW)
    assert first.name == NAME
    second = back_up_into(database, folder, NOW + timedelta(minutes=1))
    assert backups(folder) == [second]
    label(store, anna, 1)
    third = back_up_into(database, folder, NOW + timedelta(minutes=2))
    assert backups(folder) == [second, third]


# ------------------------------------------------------------------ while a server runs


def test_a_schedule_backs_up_after_so_many_votes_and_at_its_end(store, study, anna, database):
    folder = database.parent / "backups"
    schedule = BackupSchedule(store, folder, every_votes=3, look_seconds=0.01)
    schedule.start()
    label(store, anna, 3)
    until(lambda: len(backups(folder)) == 1)
    label(store, anna, 2)  # too few for another
    schedule.stop()
    assert [len(vote_ids(path)) for path in backups(folder)] == [3, 5]


@pytest.mark.parametrize(
    ("waited", "votes", "took", "due"),
    [
        (10, 499, 0.1, False),
        (10, 500, 0.1, True),
        (10, 500, 5.0, False),  # of a large study: the server is for those who answer
        (149, 5_000, 5.0, False),
        (150, 500, 5.0, True),
        (899, 499, 0.1, False),
        (900, 0, 60.0, True),
    ],
)
def test_votes_ask_for_no_backup_while_the_last_one_was_long(
    store, tmp_path, waited, votes, took, due
):
    assert BackupSchedule(store, tmp_path)._is_due(waited, votes, took) is due


def test_a_schedule_backs_up_after_some_time(store, study, anna, database):
    folder = database.parent / "backups"
    schedule = BackupSchedule(store, folder, every_seconds=0.05, look_seconds=0.01)
    schedule.start()
    until(lambda: len(backups(folder)) == 1)
    label(store, anna, 1)
    until(lambda: len(backups(folder)) == 2)
    schedule.stop()


def test_what_goes_wrong_is_logged_and_ends_nothing(store, study, anna, tmp_path, caplog):
    folder = tmp_path / "backups"
    folder.write_text("in the way")
    schedule = BackupSchedule(store, folder, every_votes=1, look_seconds=0.01)
    schedule.start()
    label(store, anna, 1)
    until(lambda: "No backup was made" in caplog.text)
    folder.unlink()
    label(store, anna, 1)
    until(lambda: len(backups(folder)) == 1)
    schedule.stop()


def test_postgresql_is_left_to_its_own_tools(tmp_path, caplog):
    with fresh_database("postgresql", tmp_path) as url, Store(url) as store:
        with scheduled_backups(store, tmp_path / "backups"):
            assert "pg_dump" in caplog.text
        with pytest.raises(StoreError, match="pg_dump"):
            file_of(url)
    assert not (tmp_path / "backups").exists()


SERVE = """
import sys
from pathlib import Path
import uvicorn
from annotation.store import Store
from annotation.store.backup import scheduled_backups

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        print("up", flush=True)
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

with Store(sys.argv[1]) as store, scheduled_backups(store, Path(sys.argv[2])):
    uvicorn.run(app, port=0, log_level="warning")
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 0)]
)
def test_a_server_that_is_told_to_stop_makes_a_last_backup(
    store, study, anna, database, number, status
):
    folder, ids = database.parent / "backups", label(store, anna, 2)
    store.close()
    command_line = [sys.executable, "-c", SERVE, store.url, str(folder)]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "up\n"
        back_up(database, folder.parent / "copy.db")
        with pytest.raises(StoreError, match="in use"):
            restore(folder.parent / "copy.db", database, NOW)
        os.kill(server.pid, number)
    assert server.returncode == status
    assert [vote_ids(path) for path in backups(folder)] == [set(ids)]


def test_ending_the_block_gives_the_signal_back(store, study, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with scheduled_backups(store, tmp_path / "backups"):
        assert signal.getsignal(signal.SIGTERM) is backup._end
    assert signal.getsignal(signal.SIGTERM) is before
