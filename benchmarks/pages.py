"""What a page costs and how steadily it stands: server CPU, bytes and layout shift, as medians.

python -m benchmarks.pages [--runs 5] [--data-dir FOLDER]

Each page is opened RUNS times in a fresh profile of a real browser, one after another, on a studio
with its built-in studies (or a copy of FOLDER). CPU is user and system time of the server and what
it started, until nothing more is computed; bytes are those that travelled; the layout shift is the
browser's own sum (cumulative layout shift). Heights are of the whole page at 1366 x 768. An action
is measured in the same way, on a page that stands, from the press until the server rests. The
second study has 14 models, as the files' targets say. At last, the seconds from the press on Start
to the first picture of a label page, with an empty cache, over a line of 1.6 Mbit/s and 150 ms.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
import psutil
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.measuring import ROOT, begin, cpu_of_all, held, judge, peak
from benchmarks.startup import answers, until
from semsim.base.storage.ports import reserved_port

STUDIO = (
    *("", "overview", "pictures", "items", "people", "results", "train", "compare"),
    *("reconstruct", "audit", "split", "federated", "new", "preview", "help", "nope"),
    *("pictures/scores", "results?tab=agreement"),
)
# Addresses of which only the studio knows the end: the page with a link to one, and its beginning.
LINKED = (
    ("overview?study={study}", "/join/"),
    ("pictures", "/studio/pictures/set/"),
    ("items", "/studio/items/"),
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
WINDOW: ViewportSize = {"width": 1366, "height": 768}
ANSWER = "compare?tab=answer"
SECOND = "Once more (simulated votes)"
SETS = ROOT / "data" / "demo" / "sets"
MODELS = 14  # of the second study
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 2e5, "uploadThroughput": 2e5}
FIRST_PICTURE = 3.0  # seconds over that line
REST = 1.5  # seconds in which the server computed next to nothing: it rests
STILL = 0.03  # CPU seconds of them that count as nothing
MOST_SHIFT = 0.05
MOST_HELD = 450  # MB in the server after every page was used
SHIFT = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: 'layout-shift', buffered: true });
"""


class Cost(NamedTuple):
    """CPU seconds of the server, kilobytes and requests that travelled, layout shift, height."""

    cpu: float
    kilobytes: float = 0.0
    requests: int = 0
    shift: float = 0.0
    height: int = 0


class Studio:
    """A studio in a process of its own, on a fresh data folder or a copy of one."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        options = ["--local", "--port", str(self.port), "--data-dir", str(folder)]
        command = [sys.executable, "app.py", *options, "--device", "cpu"]
        self.folder = folder
        self.process = psutil.Popen(command, cwd=ROOT)
        self.url = f"http://127.0.0.1:{self.port}"
        until(lambda: answers(self.port))
        self.rest()

    def cpu(self) -> float:
        """User and system seconds of the server and of all it started so far."""
        return cpu_of_all(self.process)

    def rest(self) -> None:
        """Wait until it computes nothing more."""
        before = self.cpu()
        while True:
            time.sleep(REST)
            now = self.cpu()
            if now - before < STILL + 0.1 * REST:  # an idle queue looks round all the time
                return
            before = now


@contextmanager
def studio(folder: Path | None) -> Iterator[Studio]:
    """A studio that rests, on a copy of `folder` or on nothing; it ends with the block."""
    with tempfile.TemporaryDirectory() as place, reserved_port() as port:
        data = Path(place) / "data"
        if folder is not None:
            shutil.copytree(folder, data)
        running = Studio(data, port)
        try:
            yield running
        finally:
            running.process.terminate()
            running.process.wait()


def measured(
    browser: Browser, server: Studio, address: str, act: Callable[[Page], None] | None = None
) -> Cost:
    """What it costs to open a page in a profile that has seen nothing yet, or to `act` on it."""
    context = browser.new_context(viewport=WINDOW)
    page, travelled = context.new_page(), list[float]()
    page.add_init_script(SHIFT)
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda told: travelled.append(told["encodedDataLength"]))
    before = server.cpu()
    page.goto(server.url + address)
    server.rest()
    if act is not None:
        travelled.clear()
        page.evaluate("window.shifted = 0")
        before = server.cpu()
        act(page)
        server.rest()
    cost = Cost(
        cpu=server.cpu() - before,
        kilobytes=sum(travelled) / 1000,
        requests=len(travelled),
        shift=page.evaluate("window.shifted"),
        height=page.evaluate("document.documentElement.scrollHeight"),
    )
    context.close()
    return cost


def linked(server: Studio, page: str, beginning: str) -> str:
    """The first address on a page of the studio that begins so."""
    found = re.search(rf'{re.escape(beginning)}[^"<>\s]+', text_of(server, page))
    if found is None:
        raise SystemExit(f"/studio/{page} leads to nothing below {beginning}.")
    return unescape(found[0])


def text_of(server: Studio, page: str) -> str:
    """A page of the studio as HTML."""
    answer = httpx.get(f"{server.url}/studio/{page}", headers={"accept": "text/html"}, timeout=60)
    return answer.text


def of_people(server: Studio) -> str:
    """The id of the built-in study that waits for people, once all of them are made."""
    until(lambda: "(simulated votes)" in text_of(server, "frame"))
    server.rest()
    return next(study for study, name in studies_of(server) if "simulated" not in name)


def studies_of(server: Studio) -> list[tuple[str, str]]:
    """Id and name of each study the frame offers."""
    return re.findall(r'<option value="([^"]+)"[^>]*>([^<]+)<', text_of(server, "frame"))


def pressed(selector: str, n: int = 0) -> Callable[[Page], None]:
    """Press the `n`-th thing that is like that."""
    return lambda page: page.locator(selector).nth(n).click()


def named(name: str) -> Callable[[Page], None]:
    """Press the button that is called so."""
    return lambda page: page.get_by_role("button", name=name).click()


def other(selector: str) -> Callable[[Page], None]:
    """Choose what stands second in a list."""

    def choose(page: Page) -> None:
        page.locator(selector).select_option(index=1)

    return choose


def compared(act: Callable[[Page], None]) -> Callable[[Page], None]:
    """Do it, and see that an answer stands afterwards: a page without scores would cost nothing."""

    def wait(page: Page) -> None:
        act(page)
        page.wait_for_load_state()
        page.locator("#cmp-forest tbody tr").first.wait_for()

    return wait


def another_study(page: Page) -> None:
    """From one study that has votes and scores to the other."""
    studies = page.locator("#st-study")
    voted = [one for one in studies.locator("option").all_inner_texts() if "simulated" in one]
    chosen = studies.evaluate("list => list.selectedOptions[0].text")
    studies.select_option(label=next(one for one in voted if one != chosen))
    page.wait_for_url("**study=**")


def second_study(folder: Path) -> None:
    """A smaller one like the built-in one with simulated votes: two can be compared."""
    sets = sorted(SETS.iterdir())[:MODELS]
    for command in (
        ["create", SECOND, "--simulated", *(f"--set={one}" for one in sets)],
        ["simulate", SECOND],
    ):
        asked = [sys.executable, "-m", "annotation", *command, "--data-dir", str(folder)]
        subprocess.run(asked, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def packed(what: str) -> Callable[[Page], None]:
    """Ask for a file of the second study and wait until it has come."""

    def ask(page: Page) -> None:
        with page.expect_download(timeout=300_000):
            page.locator(f"[data-act={what}]").click()

    return ask


def first_picture(browser: Browser, server: Studio, address: str) -> float:
    """Seconds from Start to the first picture of a label page over a slow line, nothing cached."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)
    page.goto(server.url + address)
    come_and_see(page)
    took = page.evaluate("performance.now()") / 1000  # since the page that Start led to was asked
    context.close()
    return took


def come_and_see(page: Page) -> None:
    """Take part in a study under a new name, until its first picture is shown."""
    page.get_by_label("Your name").fill(f"Visitor {time.monotonic_ns()}")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Go on").click()
    page.locator(".sl-pictures img").first.wait_for()


# What a person does most on a page: what it is, the page, how it is done, seconds it may take.
ACTIONS: tuple[tuple[str, str, Callable[[Page], None], float | None], ...] = (
    ("Compare: another metric", ANSWER, compared(pressed("#cmp-forest a", 1)), 0.3),
    ("Compare: another score of people", ANSWER, compared(other("#cmp-rule")), 1.0),
    ("Compare: another study", ANSWER, compared(another_study), 1.5),
    ("Compare: the tab How solid", ANSWER, pressed("#cmp-tab-solid"), None),
    ("Compare: the tab Disagreements", ANSWER, pressed("#cmp-tab-disagreements"), None),
    ("Results: the tab Agreement", "results", pressed("a[href*='tab=agreement']"), None),
    ("Results: the tab Signal detection", "results", pressed("a[href*='tab=detection']"), None),
    ("Preview: an answer by a key", "preview", lambda page: page.keyboard.press("1"), None),
    ("Pictures: a set is opened", "pictures", pressed("a[href*='/studio/pictures/set/']"), None),
    ("Reconstruct: the card of the demo's grid", "reconstruct", named("The demo's grid"), None),
    ("New study: to its second step", "new", named("2 Question"), None),
    ("Label: from the link to the first picture", "/join/", come_and_see, None),
)

FILES = (("report", 8.0), ("everything", 20.0))  # CPU seconds they may take


def row(name: str, costs: Sequence[Cost], *ends: str) -> str:
    """A line of a table: the medians of `costs`, after `name` and before `ends`."""
    middle = Cost(*(median(values) for values in zip(*costs, strict=True)))
    shift = f"{middle.shift:.3f}, {judge(middle.shift, most=MOST_SHIFT)}"
    facts = (f"{middle.cpu:.2f}", f"{middle.kilobytes:.0f}", f"{middle.requests:.0f}", shift)
    return f"| {' | '.join((name, *facts, *ends))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="how often each is opened")
    parser.add_argument("--data-dir", type=Path, help="measure on a copy of this folder")
    parser.add_argument("--pages", help="only these, with commas")
    asked = parser.parse_args()
    begin()
    with studio(asked.data_dir) as server, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        study = of_people(server)
        second_study(server.folder)
        for one, name in studies_of(server):
            if "simulated" in name:  # scores are computed once, and are nobody's action here
                measured(browser, server, f"/studio/{ANSWER}&study={one}")
        ends = {
            beginning: linked(server, page.format(study=study), beginning)
            for page, beginning in LINKED
        }
        pages = [f"/studio/{page}" for page in STUDIO] + list(ends.values())
        if asked.pages is not None:
            pages = [f"/studio/{page}" for page in asked.pages.split(",")]
        print("| page | CPU s | kB | requests | layout shift | height at 1366 |")
        print("| --- | --- | --- | --- | --- | --- |")
        for address in pages:
            costs = [measured(browser, server, address) for _ in range(asked.runs)]
            names = (told for told, address_ in ends.items() if address_ == address)
            name = next((f"{told}…" for told in names), address)
            print(row(name, costs, f"{median(cost.height for cost in costs):.0f}"), flush=True)
        print("\n| action | CPU s | kB | requests | layout shift | target |")
        print("| --- | --- | --- | --- | --- | --- |")
        for name, page, act, most in ACTIONS:
            address = ends.get(page, f"/studio/{page}")
            costs = [measured(browser, server, address, act) for _ in range(asked.runs)]
            spent = median(cost.cpu for cost in costs)
            print(row(name, costs, judge(spent, most=most, unit="s")), flush=True)
        smaller = next(study for study, name in studies_of(server) if name == SECOND)
        address = f"/studio/compare?study={smaller}&tab=files"
        measured(browser, server, address)
        for what, most in FILES:
            cost = measured(browser, server, address, packed(what))
            name = f"Compare: {what}, {MODELS} models, all metrics, once"
            print(row(name, [cost], judge(cost.cpu, most=most, unit="s")), flush=True)
        took = [first_picture(browser, server, ends["/join/"]) for _ in range(asked.runs)]
        told = judge(median(took), most=FIRST_PICTURE, unit="s")
        print(f"\nFirst picture over 1.6 Mbit/s and 150 ms: {median(took):.2f} s, {told}")
        now, most = held(server.process.pid), peak(server.process.pid)
        told = judge(now * 2**20 / 1e6, most=MOST_HELD, unit="MB")
        print(f"The server holds {now:.0f} MiB after all of this, {told}; {most:.0f} MiB at most")
        browser.close()


if __name__ == "__main__":
    main()
