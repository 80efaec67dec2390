"""What browser tests share."""

from collections.abc import Iterator

import pytest
from e2e.science_server import ScienceServer
from playwright.sync_api import Browser, BrowserContext, Page
from studio import Server, browser

from annotation.store import Store


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One headless Chromium for the tests of a file."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The page of the science that a file names in PAGE; other files have a server of their own."""
    running = ScienceServer(request.module.PAGE, tmp_path_factory.mktemp(request.module.PAGE))
    running.start()
    yield running
    running.kill()


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """The studies of the server of a file."""
    with Store(f"sqlite:///{server.data / 'studies.db'}") as opened:
        yield opened


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A laptop's window, signed in nowhere."""
    opened = chromium.new_context(viewport={"width": 1366, "height": 768})
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """An empty page; what goes wrong in its scripts fails the test."""
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    assert errors == []
