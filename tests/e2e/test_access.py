"""Every page by the rules of WCAG 2.2 AA that a machine can check, and as it fits.

So is what opens on it: menus, dialogs, explained words, the drawer; and nothing jumps meanwhile.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest
from made_campaign import finished_campaign
from made_demo import demo_in
from made_federated import finished_comparison
from made_judged import finished_training
from made_pictures import fill, looked_at, packed
from made_splits import finished_sweep
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect
from studio import Server, Studio

from annotation.store import Store
from annotation.study.builtin import PEOPLE as FOR_PEOPLE
from annotation.study.builtin import SIMULATED
from annotation.study.labelling import list_studies
from e2e.empty_server import EmptyServer
from e2e.rules import (
    JUDGED,
    LOOKS,
    MOST_SHIFT,
    SHIFT,
    USUAL,
    Look,
    broken_rules,
    put_on,
    sticking_out,
)

pytestmark = pytest.mark.e2e
Does = Callable[[Page], None]
# The head is the first line of a page, below the space that the style file has above it.
HEAD = """() => {
    const space = getComputedStyle(document.documentElement).getPropertyValue("--st-space-5");
    const head = document.querySelector("main h1").getBoundingClientRect();
    return head.top + scrollY - parseFloat(space);
}"""
SHIFT_ANEW = """() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => {
    window.shifted = 0;
    go();
})))"""


def pressed(*selectors: str) -> Does:
    """Press one after another, each as soon as it is there."""

    def press(page: Page) -> None:
        for selector in selectors:
            page.locator(selector).first.click()

    return press


def named(*names: str) -> Does:
    """Press the buttons, links or tabs with these names."""

    def press(page: Page) -> None:
        for name in names:
            kinds = (page.get_by_role(kind, name=name, exact=True) for kind in ("link", "tab"))
            button = page.get_by_role("button", name=name, exact=True)
            for kind in kinds:
                button = button.or_(kind)
            button.click()

    return press


def unfolded(*selectors: str) -> Does:
    """Press one after another, then open whatever can be opened on the page."""

    def unfold(page: Page) -> None:
        pressed(*selectors)(page)
        page.evaluate(
            "document.querySelectorAll('main details').forEach((one) => { one.open = true })"
        )

    return unfold


def chosen(label: str, value: str) -> Does:
    """Choose from the list that is labelled so."""

    def choose(page: Page) -> None:
        page.get_by_label(label, exact=True).select_option(value)

    return choose


def attacked(page: Page) -> None:
    """The examples, through the network that is the quickest to attack."""
    page.locator("#audit-variant input").click()
    page.get_by_role("option", name="CNN3 variant 3").click()
    expect(page.locator("#audit-verdict")).not_to_contain_text("c(M) = −2,266.5")
    page.evaluate(SHIFT_ANEW)  # another network has another table
    unfolded("#audit-attack")(page)


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


class Step(NamedTuple):
    """A state of a page that is judged, and what is done for it."""

    shows: str
    does: Does = lambda page: None
    name: str = ""


class Walk(NamedTuple):
    """A page and what is done on it; it is loaded once. server: the fixture that serves it."""

    address: str
    steps: tuple[Step, ...]
    server: str = "studio"

    @property
    def name(self) -> str:
        """What a test of it is called."""
        return f"{self.server} {self.address}"


def walk(address: str, *steps: Step, server: str = "studio") -> Walk:
    """A page judged after each of the steps, of which every one goes on from those before."""
    return Walk(address, steps, server)


def plain(address: str, shows: str) -> Walk:
    """A page as it is loaded."""
    return walk(address, Step(shows))


def nothing(address: str, shows: str = ".st-empty") -> Walk:
    """A page of the product in which there is nothing yet."""
    return walk(address, Step(shows), server="empty")


PEOPLE = "/studio/people?study={study}"
RESULTS = "/studio/results?study={study}"
ONE = "Simulated 1"
RUNNING, RESULTS_TAB = (
    f"#{{}}-tabs [role=tab]:has-text('{name}')" for name in ("Running", "Results")
)
# What Results and People show here is there only if the study has votes.
MENU = ".ov-menu:last-of-type summary"


def lab(name: str, address: str, result: str) -> Walk:
    """A page of the attack lab: all that can be chosen, and what a job that is done has left."""
    opener, form = ".lab-plan [data-open]", f"#{name}-form"
    return walk(
        address,
        Step(f"#{name}-plan"),
        Step(f"{form} .lab-plugin", unfolded(f"{form} {opener}"), "Plan, unfolded"),
        Step(f"#{name}-sets td", pressed(RUNNING.format(name)), "Running"),
        Step(result, unfolded(RESULTS_TAB.format(name)), "Results"),
    )


WALKS = (
    plain("/studio/", ".st-steps"),
    walk(
        "/studio/overview",
        Step(".ov-bars"),
        Step("#amend", pressed(".ov-protocol > summary", "summary:has-text('Target')"), "Protocol"),
        Step("#given select", chosen("Change a setting", "view"), "a setting"),
        Step("details[open] [download]", pressed(".ov-menu summary"), "Export"),
        Step("[data-act=delete]", pressed(MENU), "More"),
        Step("#rename[open]", pressed("[data-act=rename]"), "Rename"),
        Step("#st-asked", pressed("#rename [type=button]", MENU, "[data-act=delete]"), "Delete"),
    ),
    walk(
        "/studio/new",
        Step(".nw-set"),
        *(
            Step(
                f"[data-of={shows}]",
                pressed(f"[data-go={step}]", f"section:not([hidden]) summary:has-text('{title}')"),
                title,
            )
            for step, title, shows in (
                ("pictures", "Selection", "seed"),
                ("question", "Answers", "headline"),
                ("question", "Words", "texts"),
                ("people", "Attention checks", "practice"),
                ("people", "Consent and completion", "consent"),
            )
        ),
        Step("[data-said=review] p", pressed("[data-go=review]"), "Review"),
    ),
    walk(
        "/studio/pictures",
        Step(".pic-sets img"),
        Step(".pic-pairs img", pressed(".pic-name"), "a set"),
        Step(".pic-many img", pressed(".pic-pairs a"), "a class"),
    ),
    walk(
        "/studio/pictures?own=own",
        Step("[data-delete]", pressed(".pic-name"), "an own set"),
        Step("#st-asked", pressed("[data-delete]"), "Delete"),
    ),
    walk(
        "/studio/pictures/plan/{plan}",
        Step(".pic-found img"),
        Step("#st-asked", pressed("[data-discard]"), "Discard"),
    ),
    plain("/studio/pictures/plan/{refused}", "[data-adds=originals]"),
    walk(
        "/studio/pictures/scores",
        Step("[data-drop]"),
        Step("[data-scores]", scores_once_wrong, "mended"),
    ),
    plain("/studio/preview?study={study}", ".sl-pictures img"),
    walk(
        "/studio/items?study={study}",
        Step(".it-table"),
        Step(".it-one img", pressed(".it-table a"), "one"),
    ),
    walk(
        PEOPLE,
        Step("#people-table .st-pick"),
        Step("#person-head h2", named(ONE), ONE),
        Step("#person-effect table", named("Exclude…"), "Exclude"),
        Step("#person-erase", named("Cancel", "Erase…"), "Erase"),
        Step("#st-asked", named("Erase for good…"), "Erase for good"),
    ),
    walk(
        RESULTS,
        Step(".rs-pictures img"),
        Step(".rs-files li a", pressed(".rs-files summary"), "tables"),
        Step(".rs-heat", pressed(".rs-tabs a:has-text('Agreement')"), "Agreement"),
        Step(".st-bubble", pressed(".st-more"), "a word"),
        Step("[data-tab=people] .st-table", pressed(".rs-tabs a:has-text('People')"), "People"),
        Step("[data-tab=checks] .rs-columns", pressed(".rs-tabs a:has-text('Checks')"), "Checks"),
        Step(
            "[data-tab=detection] .st-empty",
            pressed(".rs-tabs a:has-text('Signal detection')"),
            "Signal detection",
        ),
    ),
    lab("rec", "/studio/reconstruct", "#rec-grid td img"),
    lab("split", "/studio/split", "#split-grid td img"),
    lab("fed", "/studio/federated", "#fed-grid td img"),
    walk(
        "/studio/audit",
        Step("#audit-table"),
        Step("#audit-example img", attacked, "attacked"),
    ),
    walk(
        "/studio/train",
        Step("#learn-stock .prose > *"),
        Step("#learn-curves svg", named("One training"), "One training"),
        Step("#learn-result details[open] td", unfolded(), "One training, unfolded"),
        Step("#learn-trainings td", named("Running and done"), "Running and done"),
        Step("#study-start", named("What it depends on"), "What it depends on"),
    ),
    walk(
        "/studio/compare?study={study}&tab=answer",
        Step("#cmp-forest"),
        Step(".st-bubble", pressed(".st-more"), "a word"),
        Step("#cmp-grid figure", pressed("#cmp-tab-disagreements"), "Disagreements"),
        Step("#cmp-pair[open] table", pressed(".cmp-look"), "a pair"),
        Step(
            "#cmp-pictures",
            pressed("#cmp-pair button:has-text('Close')", "#cmp-tab-metric"),
            "One metric",
        ),
        Step("#cmp-drawn .cmp-ranks", pressed("#cmp-way-ranks"), "Ranks"),
        Step("#cmp-way-images[aria-current]", pressed("#cmp-way-images"), "Single images"),
        Step("#cmp-drawn .cmp-line", pressed("#cmp-way-originals"), "Originals"),
        Step("#cmp-solid-rules[aria-current]", pressed("#cmp-tab-solid"), "How solid"),
        Step("#cmp-made", pressed("#cmp-tab-files"), "Files"),
        Step(".cmp-reasons", pressed("summary:has-text('Metrics without')"), "why not"),
    ),
    plain("/studio/help", ".st-words"),
    plain("/studio/nope", "h1"),
    plain("/signed-out", "h1"),
    plain("/join", "form"),
    walk(
        "/label",
        Step(".sl-pictures img"),
        Step(".sl-change[open]", pressed(".sl-help-open", ".sl-change summary"), "help"),
    ),
    nothing("/studio/", ".st-steps"),
    nothing("/studio/overview"),
    nothing("/studio/new"),
    nothing("/studio/pictures"),
    nothing("/studio/pictures/scores"),
    nothing("/studio/items"),
    nothing("/studio/people"),
    nothing("/studio/results"),
    nothing("/studio/compare"),
    nothing("/studio/train"),
    walk(  # Split and Federated draw the same there
        "/studio/reconstruct",
        *(
            Step(f"#rec-{part} .st-empty", pressed(tab.format("rec")), part)
            for part, tab in (("strip", RUNNING), ("verdict", RESULTS_TAB))
        ),
        server="empty",
    ),
)


class Begun(NamedTuple):
    """A server, and what addresses name of what is in it."""

    server: Server
    names: dict[str, str]
    token: str = ""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    """The product with its built-in studies, what jobs of each kind have left, and two imports."""
    folder = tmp_path_factory.mktemp("access")
    demo_in(folder / "data")
    running = Studio(folder / "data", folder / "checkpoints", has_jobs=True)
    running.start()
    for finished in (finished_campaign, finished_sweep, finished_comparison):
        finished(running.data)
    finished_training(folder / "judged", running.data)
    whole, bare = fill(folder / "mine"), fill(folder / "bare")
    shutil.rmtree(bare / "originals")
    plan, refused = (looked_at(packed(one), running.data)[1] for one in (whole, bare))
    with Store(f"sqlite:///{running.data / 'studies.db'}") as store:
        studies = {one.name: one for one in list_studies(store)}
    names = {"study": studies[SIMULATED].id, "plan": plan, "refused": refused}
    yield Begun(running, names, studies[FOR_PEOPLE].token)
    running.kill()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    running = EmptyServer(tmp_path_factory.mktemp("empty"))
    running.start()
    yield Begun(running, {})
    running.kill()


@pytest.fixture(scope="module")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One for all pages: Gradio's files are fetched once."""
    with chromium.new_context() as opened:
        opened.add_init_script(SHIFT)
        yield opened


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A window of whoever comes for the first time."""
    context.clear_cookies()
    opened = context.new_page()
    yield opened
    opened.close()


def begin(page: Page, begun: Begun, address: str) -> None:
    """Load a page as most see it."""
    put_on(page, USUAL)
    behind_link = address in ("/join", "/label")
    page.goto(begun.server.url + (f"/join/{begun.token}" if behind_link else address))
    if address == "/label":
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button").first.click()
        page.get_by_role("button", name="Go on").click()


def misplaced(page: Page) -> Iterator[str]:
    """What is not where it was or should be, as most see a page."""
    if (shifted := page.evaluate("window.shifted")) > MOST_SHIFT:
        yield f"jumped by {shifted} of {MOST_SHIFT}"
    if "tab=" in page.url and page.locator("details[open]").count() == 0:
        height = page.evaluate("document.documentElement.scrollHeight")
        if height > 1.5 * USUAL.height:
            yield f"an answer is {height} pixels high, more than a screen and a half"
    if page.locator("#studio-frame").count() and abs(off := page.evaluate(HEAD)) > 1:
        yield f"the head of the page is {off} pixels from where all are"


def broken(page: Page, looks: Sequence[Look]) -> Iterator[str]:
    """Find what a page breaks in any of the looks; it is in the usual one before."""
    yield from misplaced(page)
    for look in looks:
        put_on(page, look)
        found = [*sticking_out(page), *(broken_rules(page) if look in JUDGED else [])]
        yield from (f"{look.width} {look.colours}: {told}" for told in found)


@pytest.mark.parametrize("walked", WALKS, ids=lambda walked: walked.name)
def test_a_page_stands_still_fits_and_breaks_no_rule(
    page: Page, walked: Walk, request: pytest.FixtureRequest
) -> None:
    begun: Begun = request.getfixturevalue(walked.server)
    begin(page, begun, walked.address.format(**begun.names))
    found = []
    for number, step in enumerate(walked.steps):
        if number:
            put_on(page, USUAL)
            page.evaluate(SHIFT_ANEW)  # what moved as the window grew moved for that
        try:
            step.does(page)
            expect(page.locator(step.shows).first).to_be_visible()
        except (AssertionError, Error) as error:
            found.append(f"{step.name or 'loaded'}: {error}")
            break
        looks = JUDGED if number else LOOKS  # what opens on a page has more room in a wide one
        found += [f"{step.name or 'loaded'}: {told}" for told in broken(page, looks)]
    assert not found, "\n".join(found)


def test_what_has_changed_is_judged_again(page: Page) -> None:
    """Only what stands as it stood is passed over: a pale word, a dark ground and a new button."""
    text = '<section id="a"><p>Read</p></section><p id="b" hidden style="color:#bbb">pale</p>'
    page.set_content(f'<html lang="en"><title>A</title><main><h1>A</h1>{text}</main></html>')
    assert broken_rules(page) == []
    for change, rule in (
        ("document.querySelector('#b').hidden = false", "color-contrast"),
        ("document.querySelector('#a').style.background = '#333'", "color-contrast"),
        ("document.querySelector('#a').append(document.createElement('button'))", "button-name"),
    ):
        before = page.evaluate("document.querySelector('main').innerHTML")
        page.evaluate(change)
        assert rule in " ".join(broken_rules(page))
        page.evaluate("(was) => { document.querySelector('main').innerHTML = was }", before)
        assert broken_rules(page) == []
