"""A store in a new SQLite file, and small studies in it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from study_factory import fresh_database, small_study

from annotation.domain import Study
from annotation.store import Store, passwords
from annotation.study.labelling import join


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """SQLite, or the database that a test names by indirect parameters."""
    with fresh_database(getattr(request, "param", "sqlite"), tmp_path) as url, Store(url) as opened:
        yield opened


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return tmp_path / "images"


@pytest.fixture
def make_study(store: Store, tmp_path: Path) -> Callable[..., Study]:
    """`small_study` in this store; its images are `images`."""
    return partial(small_study, store, tmp_path)


@pytest.fixture
def study(make_study):
    return make_study(votes_per_item=2)


@pytest.fixture
def anna(store, study):
    return join(store, study.token, "Anna").annotator


@pytest.fixture
def ben(store, study):
    return join(store, study.token, "Ben").annotator


@pytest.fixture(autouse=True, scope="package")
def _cheap_passwords() -> Iterator[None]:
    """Passwords are kept as always, but cost nothing to check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "COST", 2)
        yield
