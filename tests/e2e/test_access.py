"""Every page by the rules of WCAG 2.2 AA that a machine can check, light and dark, wide, narrow.

So is what opens on it: menus, dialogs, explained words, the drawer; and nothing jumps meanwhile.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from e2e.rules import LONG, LOOKS, MOST_SHIFT, SHIFT, broken_rules, put_on
from playwright.sync_api import Browser, BrowserContext, Page, expect
from studio import START_SECONDS, Studio, until

from annotation.domain import Study
from annotation.store import Store
from annotation.study.builtin import ANNOTATORS, SIMULATED
from annotation.study.builtin import PEOPLE as FOR_PEOPLE
from annotation.study.labelling import list_studies, progress

pytestmark = pytest.mark.e2e


def pressed(*selectors: str) -> Callable[[Page], None]:
    """Press one after another, each as soon as it is there."""

    def press(page: Page) -> None:
        for selector in selectors:
            page.locator(selector).first.click()

    return press


def named(*names: str) -> Callable[[Page], None]:
    """Press the buttons or links with these names."""

    def press(page: Page) -> None:
        for name in names:
            button = page.get_by_role("button", name=name, exact=True)
            button.or_(page.get_by_role("link", name=name, exact=True)).click()

    return press


def scores_once_wrong(page: Page) -> None:
    """A table that lacks a column, then one that has it, whose direction is not said at once."""
    for text in ("model,size\na,1\n", "model,image_id,mine\na,0,0.5\n"):
        before = page.url
        page.locator("[data-input=files]").set_input_files(
            {"name": "own.csv", "mimeType": "text/csv", "buffer": text.encode()}
        )
        page.wait_for_url(lambda url, old=before: "upload=" in url and url != old)
    page.get_by_role("button", name="Keep these scores").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Direction of mine").select_option("lower")
    expect(page.get_by_role("alert")).to_have_count(0)


class Sight(NamedTuple):
    """A page, what is opened on it, and what must then be on it before it is judged."""

    address: str
    shows: str
    opens: Callable[[Page], None] | None = None
    state: str = ""


PEOPLE = "/studio/people?study={study}"
RESULTS = "/studio/results?study={study}"
ONE = "Simulated 1"
# What Results and People show here is there only if the study has votes.
MENU = ".ov-menu:last-of-type summary"
SIGHTS = (
    Sight("/studio/", ".st-steps"),
    Sight("/studio/overview", ".ov-bars"),
    Sight("/studio/overview", "details[open] [download]", pressed(".ov-menu summary"), "Export"),
    Sight("/studio/overview", "[data-act=delete]", pressed(MENU), "More"),
    Sight("/studio/overview", "#rename[open]", pressed(MENU, "[data-act=rename]"), "Rename"),
    Sight("/studio/overview", "#st-asked", pressed(MENU, "[data-act=delete]"), "Delete"),
    Sight("/studio/new", ".nw-set"),
    *(
        Sight(
            f"/studio/new#{step}",
            f"[data-of={shows}]",
            pressed(f"section:not([hidden]) summary:has-text('{title}')"),
            title,
        )
        for step, title, shows in (
            ("pictures", "Which of them", "seed"),
            ("question", "Answers", "headline"),
            ("question", "Words", "texts"),
            ("people", "Are they looking?", "practice"),
            ("people", "Before and after", "consent"),
        )
    ),
    Sight("/studio/pictures", ".pic-sets img"),
    Sight("/studio/pictures", ".pic-pairs img", pressed(".pic-name"), "a set"),
    Sight("/studio/pictures", ".pic-many img", pressed(".pic-name", ".pic-pairs a"), "a class"),
    Sight("/studio/pictures/scores", "[data-scores]", scores_once_wrong, "mended"),
    Sight("/studio/preview?study={study}", ".sl-pictures img"),
    Sight("/studio/items?study={study}", ".it-table"),
    Sight("/studio/items?study={study}", ".it-one img", pressed(".it-table a"), "one"),
    Sight(PEOPLE, "#people-table .st-pick"),
    Sight(PEOPLE, "#person-head h2", named(ONE), ONE),
    Sight(PEOPLE, "#person-effect table", named(ONE, "Exclude…"), "Exclude"),
    Sight(PEOPLE, "#person-erase", named(ONE, "Erase…"), "Erase"),
    Sight(RESULTS + "&tab=share", ".rs-pictures img"),
    Sight(RESULTS + "&tab=agreement", ".rs-heat"),
    Sight(RESULTS + "&tab=agreement", ".st-bubble", pressed(".st-more"), "a word"),
    Sight(RESULTS + "&tab=share", ".rs-files li a", pressed(".rs-files summary"), "tables"),
    Sight(RESULTS + "&tab=people", ".st-table"),
    Sight(RESULTS + "&tab=checks", ".rs-columns"),
    Sight(RESULTS + "&tab=detection", ".st-empty"),
    Sight("/studio/reconstruct", "#rec-plan"),
    Sight("/studio/train", "#learn-stock"),
    Sight("/studio/compare?study={study}&tab=answer", "#cmp-forest"),
    Sight("/studio/compare?study={study}&tab=answer", ".st-bubble", pressed(".st-more"), "a word"),
    Sight(
        "/studio/compare?study={study}&tab=disagreements&metric=mse",
        "#cmp-pair[open] table",
        pressed(".cmp-look"),
        "a pair",
    ),
    Sight("/studio/audit", "#audit-table"),
    Sight("/studio/split", "#split-start"),
    Sight("/studio/federated", "#fed-start"),
    Sight("/signed-out", "h1"),
    Sight("/join", "form"),
    Sight("/label", ".sl-pictures img"),
    Sight("/label", ".sl-change[open]", pressed(".sl-help-open", ".sl-change summary"), "help"),
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
def studies(studio: Studio) -> list[Study]:
    with Store(f"sqlite:///{studio.data / 'studies.db'}") as store:
        return list_studies(store)


@pytest.fixture(scope="module")
def token(studies: list[Study]) -> str:
    """The secret of the study for people."""
    return next(one.token for one in studies if one.name == FOR_PEOPLE)


@pytest.fixture(scope="module")
def demo(studies: list[Study]) -> str:
    """The id of the study that has votes."""
    return next(one.id for one in studies if one.name == SIMULATED)


@pytest.fixture(scope="module")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One for all pages: Gradio's files are fetched once."""
    with chromium.new_context(reduced_motion="reduce") as opened:
        opened.set_default_timeout(LONG)
        opened.add_init_script(SHIFT)
        yield opened


@pytest.fixture(
    scope="module", params=SIGHTS, ids=lambda sight: f"{sight.address} {sight.state}".strip()
)
def page(
    request: pytest.FixtureRequest, context: BrowserContext, studio: Studio, token: str, demo: str
) -> Iterator[Page]:
    """A page that is there; loading it takes longer than judging it, so all looks share it."""
    context.clear_cookies()
    sight: Sight = request.param
    address = sight.address.format(study=demo)
    behind_link = address in ("/join", "/label")
    with context.new_page() as opened:
        put_on(opened, next(iter(LOOKS)))
        opened.goto(studio.url + (f"/join/{token}" if behind_link else address))
        if address == "/label":
            opened.get_by_label("Your name").fill(f"Ada {sight.state}")  # a name is taken once
            opened.get_by_role("button").first.click()
        if sight.opens is not None:
            sight.opens(opened)
        expect(opened.locator(sight.shows).first).to_be_visible(timeout=LONG)
        opened.evaluate("window.shiftedAtFirst = window.shifted")
        yield opened


@pytest.mark.parametrize("look", LOOKS)
def test_a_page_breaks_no_rule(page: Page, look: str) -> None:
    put_on(page, look)
    found = broken_rules(page)
    assert not found, "\n".join(found)


def test_nothing_jumps_while_a_page_loads(page: Page) -> None:
    assert page.evaluate("window.shiftedAtFirst") <= MOST_SHIFT


def test_an_answer_is_no_higher_than_a_screen_and_a_half(page: Page) -> None:
    put_on(page, next(iter(LOOKS)))
    if "tab=" in page.url and page.locator("details[open]").count() == 0:
        assert (
            page.evaluate("document.documentElement.scrollHeight")
            <= 1.5 * page.viewport_size["height"]
        )
