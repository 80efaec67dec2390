"""Only one at a time gets past the lock, and transactions go on meanwhile."""

import threading

import pytest
from sqlalchemy import text
from study_factory import DATABASES, fresh_database

from annotation.store import Store, engine
from semsim.base.errors import StoreError


@pytest.fixture(params=DATABASES)
def stores(request, tmp_path):
    """Two servers' doors to one database."""
    with fresh_database(request.param, tmp_path) as url, Store(url) as one, Store(url) as other:
        yield one, other


def test_the_second_waits_until_the_first_is_done(stores):
    told, waiting = [], threading.Event()

    def second():
        waiting.set()
        with stores[1].alone():
            told.append("second")

    thread = threading.Thread(target=second)
    with stores[0].alone():
        thread.start()
        waiting.wait()
        for store in stores:  # the lock holds up nobody who works
            store.write(lambda tx: tx.execute(text("DELETE FROM session")))
        told.append("first")
    thread.join()
    assert told == ["first", "second"]


def test_an_error_gives_the_lock_back(stores):
    with pytest.raises(KeyError), stores[0].alone():
        raise KeyError
    with stores[1].alone():
        pass


def test_who_waits_for_ever_is_told(stores, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 1)
    with (
        stores[0].alone(),
        pytest.raises(StoreError, match="not finished to start"),
        stores[1].alone(),
    ):
        pytest.fail("let in")
