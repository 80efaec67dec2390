"""What a page breaks of the rules of WCAG 2.2 AA that a machine can check.

axe-core does the checking: https://github.com/dequelabs/axe-core.
"""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from studio import until

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
LOOKS = {"light": (1366, 768), "dark": (390, 844)}
TIMES = 3
LONG = 120_000  # milliseconds: two busy cores
MOST_SHIFT = 0.05
# The browser's own sum of what moved by itself on a page (cumulative layout shift).
SHIFT = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: 'layout-shift', buffered: true });
"""
# Gradio's pages have a class for it, the others follow the browser.
IS_DARK = """(window.gradio_config ? document.body.classList.contains("dark")
    : matchMedia("(prefers-color-scheme: dark)").matches)"""
# Gradio pales whatever a timer asks for anew, and fades it in again.
STILL = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("* { transition: none !important } .pending { opacity: 1 !important }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""


def put_on(page: Page, look: str) -> None:
    """Give the window of a page the size and the colours of a look."""
    width, height = LOOKS[look]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=look)  # type: ignore[arg-type]
    until(lambda: page.evaluate(IS_DARK) == (look == "dark"))


def broken_in_any_look(page: Page, part: str = "html") -> list[str]:
    """What `broken_rules` finds in each of `LOOKS`; the page is loaded once."""
    found = []
    for look in LOOKS:
        put_on(page, look)
        found += [f"{look}: {told}" for told in broken_rules(page, part)]
    return found


def broken_rules(page: Page, part: str = "html") -> list[str]:
    """Each rule broken in `part` of a page (a CSS selector) and where, each of some times.

    What is broken stays broken; what was only changing while it was looked at does not.
    """
    page.evaluate(STILL)
    found = _judge(page, part)
    for _ in range(TIMES - 1):
        if not found:
            break
        again = _judge(page, part)
        found = {place: told for place, told in found.items() if place in again}
    return list(found.values())


def _judge(page: Page, part: str) -> dict[str, str]:
    """Rule and place → the same in words."""
    waiting = page.locator(".pending, .generating, .loading")
    expect(waiting).to_have_count(0, timeout=LONG)
    options = {"runOnly": list(RULES), "resultTypes": ["violations"]}
    broken = Axe().run(page, context=part, options=options).response["violations"]
    return {
        f"{one['id']} {node['target']}": (
            f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        )
        for one in broken
        for node in one["nodes"]
    }
