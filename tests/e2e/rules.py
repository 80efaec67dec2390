"""What a page breaks of the rules of WCAG 2.2 AA that a machine can check, and what sticks out.

axe-core does the checking: https://github.com/dequelabs/axe-core.
"""

from typing import Literal, NamedTuple

from axe_playwright_python.sync_playwright import Axe
from helpers import limit, until
from playwright.sync_api import Page, ViewportSize, expect

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


class Look(NamedTuple):
    """How somebody sees a page: pixels of the window, and colours."""

    width: int
    height: int
    colours: Literal["light", "dark"]


# Each width and each of the colours: what is laid out does not depend on colours.
LOOKS = (Look(1366, 768, "light"), Look(2560, 1440, "dark"), Look(390, 844, "dark"))
# Those in which the rules are asked for. What is wide is what is usual, with more room.
JUDGED = USUAL, TELEPHONE = LOOKS[0], LOOKS[2]
TIMES = 3
MOST_SHIFT = 0.05
# The browser's own sum of what moved by itself on a page (cumulative layout shift). What moves
# within two seconds of a press answers it: as many workers as cores delay what takes 50 ms alone.
SHIFT = f"""
window.shifted = 0;
window.pressedAt = -Infinity;
addEventListener('pointerdown', (event) => {{ window.pressedAt = event.timeStamp; }}, true);
new PerformanceObserver((list) => {{
  for (const one of list.getEntries())
    if (!one.hadRecentInput && one.startTime - window.pressedAt > {1000 * limit(2)})
      window.shifted += one.value;
}}).observe({{ type: 'layout-shift', buffered: true }});
"""
# Gradio's pages have a class for it, the others follow the browser.
ASKS_DARK = 'matchMedia("(prefers-color-scheme: dark)").matches'
IS_DARK = f"""(window.gradio_config ? document.body.classList.contains("dark")
    : {ASKS_DARK})"""
# Gradio pales whatever a timer asks for anew, and fades it in again.
STILL = """() => {
    if (window.still) return;
    window.still = true;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("* { transition: none !important } .pending { opacity: 1 !important }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""


# Told: what makes a page wider than its window, words beyond its edge to which nobody can scroll,
# words that lie over those beside them, and captions whose end is beyond the edge of what they can
# be scrolled in.
STICKS_OUT = """() => {
    const told = [], root = document.documentElement;
    const box = (one) => one.getBoundingClientRect();
    const tell = (what, one) => told.push(`${what}: ${one.outerHTML.slice(0, 120)}`);
    const around = (one, ...kinds) => {
        for (let at = one.parentElement; at && at !== document.body; at = at.parentElement)
            if (kinds.includes(getComputedStyle(at).overflowX)) return at;
    };
    if (root.scrollWidth > innerWidth) {
        tell(`${root.scrollWidth} pixels wide in a window of ${innerWidth}`, document.body);
        for (const one of document.body.querySelectorAll("*"))
            if (box(one).right > innerWidth && !around(one, "auto", "scroll", "hidden", "clip"))
                tell("beyond the edge", one);
    }
    const words = document.createRange();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const one = texts.currentNode.parentElement;
        words.selectNodeContents(texts.currentNode);
        if (box(words).right <= innerWidth + 1 || !one.checkVisibility()) continue;
        if (getComputedStyle(one).visibility == "hidden") continue;
        if (one.closest(".visually-hidden, [aria-hidden=true]")) continue;
        if (!around(texts.currentNode, "auto", "scroll")) tell("words beyond the edge", one);
    }
    // Where the words inside lie as far as they are seen, without those that lie above others.
    const kept = new Map(), hidden = ".visually-hidden, [aria-hidden=true]";
    const lines = (one) => {
        if (!kept.has(one)) kept.set(one, found(one));
        return kept.get(one);
    };
    const found = (one) => {
        if (one.matches(hidden)) return [];
        const { position, overflowX } = getComputedStyle(one);
        if (["absolute", "fixed", "sticky"].includes(position)) return [];
        const all = [...one.children].flatMap(lines), seen = one.checkVisibility();
        for (const node of seen ? one.childNodes : []) {
            if (node.nodeType !== Node.TEXT_NODE) continue;
            words.selectNodeContents(node);
            for (const { left, right, top, bottom } of words.getClientRects())
                all.push({ left, right: Math.min(right, innerWidth), top, bottom });
        }
        if (overflowX === "visible") return all;
        const edge = box(one).right;
        return all.map((line) => ({ ...line, right: Math.min(line.right, edge) }));
    };
    const shared = (one, next) =>
        Math.min(one.right, next.right) - Math.max(one.left, next.left) > 2 &&
        Math.min(one.bottom, next.bottom) - Math.max(one.top, next.top) > 4;
    for (const row of document.body.querySelectorAll("*")) {
        if (getComputedStyle(row).display !== "flex" || !row.checkVisibility()) continue;
        if (row.closest(hidden)) continue;
        const shown = [...row.children].filter((one) => one.checkVisibility());
        const said = shown.map(lines);
        for (let n = 1; n < said.length; n += 1)
            if (said[n - 1].some((one) => said[n].some((next) => shared(one, next))))
                tell("words over words", row);
    }
    for (const one of document.querySelectorAll("caption")) {
        const holder = around(one, "auto", "scroll");
        words.selectNodeContents(one);
        const end = holder ? box(holder).right : innerWidth;
        if (box(words).right > end + 1) tell("cut off", one);
    }
    return told;
}"""
# What has been judged on this page in a look and stands as it stood is not judged again there: the
# same elements in the same place of their parent, as large, in the same colours and on them.
_VIOLATIONS = """async ([part, options, look]) => {
    window.known ??= new Map();
    window.judged ??= {};
    const judged = window.judged[look] ??= new Set(), states = new Map(), same = [];
    const state = (one, around, behind) => {
        const box = one.getBoundingClientRect(), style = getComputedStyle(one);
        const { backgroundColor, backgroundImage, opacity } = style;
        const ground = `${behind} ${backgroundColor} ${backgroundImage} ${opacity}`;
        const words = [...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
        const marks = [...one.attributes].map(({ name, value }) => `${name}="${value}"`);
        const told = [
            one.tagName, ...marks, ...words.map((node) => node.data),
            box.left - around.left, box.top - around.top, box.width, box.height,
            ground, style.color, style.visibility,
            ...[...one.children].map((inner) => state(inner, box, ground)),
            one.shadowRoot || one.matches("iframe") ? Math.random() : "",
        ].join("|");
        if (!window.known.has(told)) window.known.set(told, window.known.size);
        states.set(one, window.known.get(told));
        return states.get(one);
    };
    const root = document.querySelector(part);
    const skip = (one) => {
        if (judged.has(states.get(one))) same.push(one);
        else for (const inner of one.children) skip(inner);
    };
    state(root, root.getBoundingClientRect(), "");
    for (const inner of root.children) skip(inner);
    const { violations } = await axe.run({ include: [part], exclude: same }, options);
    if (!violations.length) for (const one of states.values()) judged.add(one);
    return violations.flatMap((one) =>
        one.nodes.map((node) => [
            `${one.id} ${node.target}`,
            `${one.id} (${one.impact}): ${node.target} ${node.html.slice(0, 160)}`,
        ]));
}"""


def put_on(page: Page, look: Look) -> None:
    """Give the window of a page the size and the colours of a look."""
    size: ViewportSize = {"width": look.width, "height": look.height}
    dark = look.colours == "dark"
    if page.viewport_size != size:  # what it has already is laid out once more if it is given again
        page.set_viewport_size(size)
    if page.evaluate(ASKS_DARK) != dark:
        page.emulate_media(color_scheme=look.colours)
    until(lambda: page.evaluate(IS_DARK) == dark)


def broken_in_any_look(page: Page, part: str = "html") -> list[str]:
    """What `broken_rules` finds as most see a page and on a dark telephone; it is loaded once."""
    found = []
    for look in (USUAL, TELEPHONE):
        put_on(page, look)
        found += [f"{look.colours}: {told}" for told in broken_rules(page, part)]
    return found


def sticking_out(page: Page) -> list[str]:
    """What of a page is wider than what holds it, in words; what is only being laid out is not."""
    found = list(page.evaluate(STICKS_OUT))
    for _ in range(TIMES):
        if not found:
            break
        page.wait_for_timeout(500)
        found = list(page.evaluate(STICKS_OUT))
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
    waiting = page.locator(".pending, .generating, .loading, [aria-busy=true]")
    expect(waiting).to_have_count(0)
    has_axe, dark = page.evaluate(f"['axe' in window, {IS_DARK}]")
    if not has_axe:
        page.evaluate(Axe().axe_script)
    options = {"runOnly": list(RULES), "resultTypes": ["violations"]}
    look = str([page.viewport_size, dark])
    return dict(page.evaluate(_VIOLATIONS, [part, options, look]))
