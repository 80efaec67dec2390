"""Every page by the rules of WCAG 2.2 AA that a machine can check, light and dark, wide, narrow."""

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


@pytest.fixture(scope="module", params=LOOKS)
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def context(chromium: Browser, look: str) -> Iterator[BrowserContext]:
    """One for all pages of a look: Gradio's files are fetched once."""
    width, height = LOOKS[look]
    with chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=look, reduced_motion="reduce"
    ) as opened:
        opened.set_default_timeout(LONG)
        yield opened


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    context.clear_cookies()
    with context.new_page() as opened:
        yield opened


@pytest.mark.parametrize("address", PAGES)
def test_a_page_breaks_no_rule(page: Page, studio: Studio, token: str, address: str) -> None:
    page.goto(studio.url + (address if address.startswith("/studio/") else f"/join/{token}"))
    if address == "/label/":
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button").first.click()
    expect(page.locator(PAGES[address]).first).to_be_visible(timeout=LONG)
    found = broken_rules(page)
    assert not found, "\n".join(found)
