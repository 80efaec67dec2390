"""Every page by the rules of WCAG 2.2 AA that a machine can check, light and dark, wide, narrow."""

import json
from collections.abc import Iterator

import pytest
from e2e.rules import LONG, broken_rules
from playwright.sync_api import Browser, BrowserContext, Page, expect
from studio import Studio

from annotation.store import Store
from annotation.study import list_studies

pytestmark = pytest.mark.e2e
# Address → what must be on it before it is judged.
PAGES = {
    "/studio/": "#study-coverage .js-plotly-plot",
    "/studio/people?study=Demo: symbols (simulated votes)": "#people-table, .st-empty",
    "/studio/results": ".st-study",
    "/studio/reconstruct": "#rec-plan",
    "/studio/train": "#learn-stock",
    "/studio/compare?study=Demo: symbols (simulated votes)": "#compare-images .js-plotly-plot",
    "/studio/audit": "#audit-table",
    "/studio/split": "#split-start",
    "/studio/federated": "#fed-start",
    "/join": "form",
    "/label/": ".sl-pictures img",
}
LOOKS = {"light": (1366, 768), "dark": (390, 844)}
# Gradio's pages have a class for it, the others follow the browser.
IS_DARK = """(window.gradio_config ? document.body.classList.contains("dark")
    : matchMedia("(prefers-color-scheme: dark)").matches)"""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("access")
    running = Studio(folder / "data", folder / "checkpoints")
    running.start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def token(studio: Studio) -> str:
    """The secret of the study for people."""
    with Store(f"sqlite:///{studio.data / 'studies.db'}") as store:
        return next(one.token for one in list_studies(store) if not one.spec.simulated)


@pytest.fixture(scope="module")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One for all pages: Gradio's files are fetched once."""
    with chromium.new_context(reduced_motion="reduce") as opened:
        opened.set_default_timeout(LONG)
        yield opened


@pytest.fixture(scope="module", params=PAGES)
def page(
    request: pytest.FixtureRequest, context: BrowserContext, studio: Studio, token: str
) -> Iterator[Page]:
    """A page that is there; loading it takes longer than judging it, so all looks share it."""
    context.clear_cookies()
    address = str(request.param)
    with context.new_page() as opened:
        put_on(opened, next(iter(LOOKS)))
        opened.goto(studio.url + (address if address.startswith("/studio/") else f"/join/{token}"))
        if address == "/label/":
            opened.get_by_label("Your name").fill("Ada")
            opened.get_by_role("button").first.click()
        expect(opened.locator(PAGES[address]).first).to_be_visible(timeout=LONG)
        yield opened


def put_on(page: Page, look: str) -> None:
    width, height = LOOKS[look]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=look)  # type: ignore[arg-type]


@pytest.mark.parametrize("look", LOOKS)
def test_a_page_breaks_no_rule(page: Page, look: str) -> None:
    put_on(page, look)
    page.wait_for_function(IS_DARK + f" === {json.dumps(look == 'dark')}")
    found = broken_rules(page)
    assert not found, "\n".join(found)
