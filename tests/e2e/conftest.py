"""What browser tests share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from studio import Server, browser

from annotation.store import Store


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One headless Chromium for the tests of a file."""
    with browser() as opened:
        yield opened


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """The studies of the server of a file."""
    with Store(f"sqlite:///{server.data / 'studies.db'}") as opened:
        yield opened
