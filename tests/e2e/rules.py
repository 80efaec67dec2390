"""What a page breaks of the rules of WCAG 2.2 AA that a machine can check.

axe-core does the checking: https://github.com/dequelabs/axe-core.
"""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
LOOKS = 3
LONG = 120_000  # milliseconds: two busy cores
# Gradio pales whatever a timer asks for anew, and fades it in again.
STILL = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("* { transition: none !important } .pending { opacity: 1 !important }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""


def broken_rules(page: Page, part: str = "html") -> list[str]:
    """Each rule broken in `part` of a page (a CSS selector) and where, on each of some looks.

    What is broken stays broken; what was only changing while it was looked at does not.
    """
    page.evaluate(STILL)
    found = _look(page, part)
    for _ in range(LOOKS - 1):
        if not found:
            break
        again = _look(page, part)
        found = {place: told for place, told in found.items() if place in again}
    return list(found.values())


def _look(page: Page, part: str) -> dict[str, str]:
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
