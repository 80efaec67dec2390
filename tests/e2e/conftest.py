"""What browser tests share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page
from studio import Server, browser
from study_factory import CLASSES, write_set

from annotation.domain import Study
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from e2e.label_server import LabelServer
from e2e.science_server import ScienceServer

LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One headless Chromium for all browser tests of a worker.

    It ends with the tests of this folder: no event loop of another test can run beside it.
    """
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The page of the science that a file names in PAGE, or the human study on its SETS.

    SETS: how many images each set has, by its name. Other files have a server of their own.
    """
    data, named = tmp_path_factory.mktemp("data"), vars(request.module)
    for model, count in named.get("SETS", {}).items():
        labels = [CLASSES[i % len(CLASSES)] for i in range(count)]
        write_set(data / "sets" / model, model=model, labels=labels)
    running = ScienceServer(named["PAGE"], data) if "PAGE" in named else LabelServer(data)
    running.start()
    yield running
    running.kill()


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """The studies of the server of a file."""
    with Store(f"sqlite:///{server.data / 'studies.db'}") as opened:
        yield opened


@pytest.fixture
def new_study(store: Store, server: Server) -> Callable[..., Study]:
    """Make a study of symbols on one of the sets."""

    def make(task: Task = Task.RECOGNITION, of: str = "resnet20-4", **spec: object) -> Study:
        usual = {"name": "Symbols", "task": task, "list_size": 8, "min_rt_ms": 0}
        made = StudySpec(**usual | spec)  # type: ignore[arg-type]
        return create_study(store, made, [server.data / "sets" / of], server.data / "images")

    return make


@pytest.fixture(scope="module")
def laptop(chromium: Browser) -> Iterator[tuple[BrowserContext, CDPSession]]:
    """A window for all tests of a file, so that scripts are fetched once, and what empties it."""
    with chromium.new_context(viewport=LAPTOP) as opened:
        yield opened, opened.new_cdp_session(opened.new_page())


@pytest.fixture
def context(laptop: tuple[BrowserContext, CDPSession], server: Server) -> Iterator[BrowserContext]:
    """A laptop's window, signed in nowhere; of what tests before have left it has scripts alone."""
    opened, session = laptop
    before = opened.pages
    yield opened
    for one in opened.pages:
        if one not in before:
            one.close()
    opened.set_offline(False)
    opened.clear_permissions()
    opened.clear_cookies()
    left = {"origin": server.url, "storageTypes": "all"}
    session.send("Storage.clearDataForOrigin", left)


@pytest.fixture
def page(request: pytest.FixtureRequest, context: BrowserContext) -> Iterator[Page]:
    """A page at the file's START, below PAGE's the studio, else empty; no script may go wrong."""
    with _sound(request, context) as opened:
        yield opened


@pytest.fixture
def phone(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    """The same on a telephone."""
    with chromium.new_context(viewport=PHONE) as context, _sound(request, context) as opened:
        yield opened


@pytest.fixture
def own(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    """As `page`, in a window of its own whose clock a test may set."""
    with chromium.new_context(viewport=LAPTOP) as context, _sound(request, context) as opened:
        yield opened


@contextmanager
def _sound(request: pytest.FixtureRequest, context: BrowserContext) -> Iterator[Page]:
    named, errors, opened = vars(request.module), list[str](), context.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    if start := named.get("START", f"/studio/{named['PAGE']}" if "PAGE" in named else ""):
        opened.goto(request.getfixturevalue("server").url + start)
    yield opened
    assert errors == []
