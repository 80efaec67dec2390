"""Every page by the rules of WCAG 2.2 AA that a machine can check, light and dark, wide and narrow.

axe-core does the checking: https://github.com/dequelabs/axe-core.
"""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from studio import Studio, browser

from annotation.store import Store
from annotation.study import list_studies

pytestmark = pytest.mark.e2e
LONG = 120_000  # milliseconds: two busy cores
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
# Address → what must be on it before it is judged.
PAGES = {
    "/studio/": "#study-coverage .js-plotly-plot",
    "/studio/people?study=Demo: symbols (simulated votes)": "#people-table, .st-empty",
    "/studio/results": ".st-study",
    "/studio/train": "#learn-stock",
    "/studio/compare?study=Demo: symbols (simulated votes)": "#compare-images .js-plotly-plot",
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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module", params=LOOKS)
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(chromium: Browser, look: str) -> Iterator[Page]:
    width, height = LOOKS[look]
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=look, reduced_motion="reduce"
    )
    opened = context.new_page()
    opened.set_default_timeout(LONG)
    yield opened
    context.close()


@pytest.mark.parametrize("address", PAGES)
def test_a_page_breaks_no_rule(page: Page, studio: Studio, token: str, address: str) -> None:
    page.goto(studio.url + (address if address.startswith("/studio/") else f"/join/{token}"))
    if address == "/label/":
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button").first.click()
    expect(page.locator(PAGES[address]).first).to_be_visible(timeout=LONG)
    # Gradio pales what is about to change, and stands in for what is still to come.
    expect(page.locator(".pending, .generating, .loading")).to_have_count(0, timeout=LONG)
    found = told(page)
    assert not found, "\n".join(found)


def told(page: Page) -> list[str]:
    """Each broken rule with where it is broken."""
    options = {"runOnly": list(RULES), "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        for one in found
        for node in one["nodes"]
    ]
