"""Every page by the rules of WCAG 2.2 AA that a machine can check, light and dark, wide, narrow."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from e2e.rules import LONG, LOOKS, broken_rules, put_on
from playwright.sync_api import Browser, BrowserContext, Page, expect
from studio import START_SECONDS, Studio, until

from annotation.store import Store
from annotation.study.builtin import ANNOTATORS, SIMULATED
from annotation.study.labelling import list_studies, progress

pytestmark = pytest.mark.e2e


class Sight(NamedTuple):
    """A page, the buttons pressed on it, and what must then be on it before it is judged."""

    address: str
    shows: str
    presses: tuple[str, ...] = ()


PEOPLE = f"/studio/people?study={SIMULATED}"
ONE = "Simulated 1"
# What Results and People show here is there only if the study has votes.
SIGHTS = (
    Sight("/studio/", "#study-coverage .js-plotly-plot"),
    Sight("/studio/people", "#people-table .st-empty"),
    Sight(PEOPLE, "#people-table .st-pick"),
    Sight(PEOPLE, "#person-head h2", (ONE,)),
    Sight(PEOPLE, "#person-effect table", (ONE, "Exclude…")),
    Sight(PEOPLE, "#person-erase-now", (ONE, "Erase…")),
    Sight("/studio/results", "#results-head .st-head"),
    Sight(f"/studio/results?study={SIMULATED}", "#results-rate-plot .js-plotly-plot"),
    Sight("/studio/reconstruct", "#rec-plan"),
    Sight("/studio/train", "#learn-stock"),
    Sight(f"/studio/compare?study={SIMULATED}", "#compare-images .js-plotly-plot"),
    Sight("/studio/audit", "#audit-table"),
    Sight("/studio/split", "#split-start"),
    Sight("/studio/federated", "#fed-start"),
    Sight("/signed-out", "h1"),
    Sight("/join", "form"),
    Sight("/label/", ".sl-pictures img"),
)


def demo_is_whole(store: Store) -> bool:
    """Whether the built-in studies are there, votes and all: made while the server serves."""
    counts = [progress(store, one.id) for one in list_studies(store) if one.spec.simulated]
    return any(sum(one.coverage[ANNOTATORS:]) == one.n_items for one in counts)


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("access")
    running = Studio(folder / "data", folder / "checkpoints")
    running.start()
    with Store(f"sqlite:///{running.data / 'studies.db'}") as store:
        until(lambda: demo_is_whole(store), START_SECONDS)
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


@pytest.fixture(
    scope="module", params=SIGHTS, ids=lambda sight: " ".join([sight.address, *sight.presses])
)
def page(
    request: pytest.FixtureRequest, context: BrowserContext, studio: Studio, token: str
) -> Iterator[Page]:
    """A page that is there; loading it takes longer than judging it, so all looks share it."""
    context.clear_cookies()
    sight: Sight = request.param
    behind_link = sight.address in ("/join", "/label/")
    with context.new_page() as opened:
        put_on(opened, next(iter(LOOKS)))
        opened.goto(studio.url + (f"/join/{token}" if behind_link else sight.address))
        if sight.address == "/label/":
            opened.get_by_label("Your name").fill("Ada")
            opened.get_by_role("button").first.click()
        for name in sight.presses:
            opened.get_by_role("button", name=name, exact=True).click()
        expect(opened.locator(sight.shows).first).to_be_visible(timeout=LONG)
        yield opened


@pytest.mark.parametrize("look", LOOKS)
def test_a_page_breaks_no_rule(page: Page, look: str) -> None:
    put_on(page, look)
    found = broken_rules(page)
    assert not found, "\n".join(found)
