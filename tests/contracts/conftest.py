"""What tests of every database share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from study_factory import DATABASES, fresh_database

from annotation.store import Store


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store that holds nothing, on each database."""
    with fresh_database(request.param, tmp_path) as url, Store(url) as opened:
        yield opened
