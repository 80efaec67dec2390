"""What a page costs and how steadily it stands: server CPU, bytes and layout shift, as medians.

python -m benchmarks.pages [--runs 5] [--data-dir FOLDER]

Each page is opened RUNS times in a fresh profile of a real browser, one after another, on a studio
with its built-in studies (or a copy of FOLDER). CPU is user and system time of the server and what
it started, until nothing more is computed; bytes are those that travelled; the layout shift is the
browser's own sum (cumulative layout shift). Heights are of the whole page at 1366 x 768. An action
is measured from the press until the server rests.
"""

import argparse
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.startup import ROOT, answers, until

PAGES = (
    *("", "overview", "pictures", "items", "people", "results", "train", "compare"),
    *("reconstruct", "audit", "split", "federated", "new", "help", "nope"),
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
WINDOW = {"width": 1366, "height": 768}
REST = 1.5  # seconds in which the server computed next to nothing: it rests
STILL = 0.03  # CPU seconds of them that count as nothing
MOST_SHIFT = 0.05
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

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ["--local", "--port", str(self.port), "--data-dir", str(folder)]
        command = [sys.executable, "app.py", *options, "--device", "cpu"]
        self.process = psutil.Popen(command, cwd=ROOT)
        until(lambda: answers(self.port))
        self.rest()

    def cpu(self) -> float:
        """User and system seconds of the server and of all it started so far."""
        total = 0.0
        for one in (self.process, *self.process.children(recursive=True)):
            try:
                spent = one.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += spent.user + spent.system
        mine = self.process.cpu_times()
        return total + mine.children_user + mine.children_system

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
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        if folder is not None:
            shutil.copytree(folder, data)
        running = Studio(data)
        try:
            yield running
        finally:
            running.process.terminate()
            running.process.wait()


def opened(browser: Browser, server: Studio, address: str) -> Cost:
    """What it costs to open a page in a profile that has seen nothing yet."""
    context = browser.new_context(viewport=WINDOW)
    page, travelled = context.new_page(), list[float]()
    page.add_init_script(SHIFT)
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda told: travelled.append(told["encodedDataLength"]))
    before = server.cpu()
    page.goto(f"http://127.0.0.1:{server.port}/studio/{address}")
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


def acted(browser: Browser, server: Studio, address: str, act: Callable[[Page], None]) -> Cost:
    """What the server computes from an action on a page that stands until it rests again."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/studio/{address}")
    server.rest()
    before = server.cpu()
    act(page)
    server.rest()
    cost = Cost(cpu=server.cpu() - before)
    context.close()
    return cost


def pressed(selector: str, n: int = 0) -> Callable[[Page], None]:
    """Press the `n`-th thing that is like that."""
    return lambda page: page.locator(selector).nth(n).click()


def other(selector: str) -> Callable[[Page], None]:
    """Choose what stands second in a list."""

    def choose(page: Page) -> None:
        page.locator(selector).select_option(index=1)

    return choose


# What a person does most on a page: what it is, the page, how it is done, seconds it may take.
ACTIONS: tuple[tuple[str, str, Callable[[Page], None], float | None], ...] = (
    ("Compare: another metric", "compare", pressed("#cmp-forest a", 1), 0.3),
    ("Compare: another score of people", "compare", other("#cmp-rule"), 1.0),
    ("Compare: another study", "compare", other("#st-study"), 1.5),
    ("Compare: the tab How solid", "compare", pressed("#cmp-tab-solid"), None),
    ("Compare: the tab Disagreements", "compare", pressed("#cmp-tab-disagreements"), None),
    ("Results: the tab Agreement", "results", pressed("a[href*='tab=agreement']"), None),
    ("Results: the tab Signal detection", "results", pressed("a[href*='tab=detection']"), None),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="how often each is opened")
    parser.add_argument("--data-dir", type=Path, help="measure on a copy of this folder")
    parser.add_argument("--pages", help="only these, with commas")
    asked = parser.parse_args()
    pages = PAGES if asked.pages is None else tuple(asked.pages.split(","))
    load = os.getloadavg()[0]
    with studio(asked.data_dir) as server, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        print("| page | CPU s | kB | requests | layout shift | height at 1366 |")
        print("| --- | --- | --- | --- | --- | --- |")
        for address in pages:
            costs = [opened(browser, server, address) for _ in range(asked.runs)]
            middle = Cost(*(median(values) for values in zip(*costs, strict=True)))
            told = "met" if middle.shift <= MOST_SHIFT else "**missed**"
            print(
                f"| /studio/{address} | {middle.cpu:.2f} | {middle.kilobytes:.0f} | "
                f"{middle.requests:.0f} | {middle.shift:.3f}: {told} | {middle.height:.0f} |",
                flush=True,
            )
        print("\n| action | CPU s | target |\n| --- | --- | --- |")
        for name, address, act, most in ACTIONS:
            spent = median(acted(browser, server, address, act).cpu for _ in range(asked.runs))
            told = "" if most is None else f"≤ {most:g}: {'met' if spent <= most else '**missed**'}"
            print(f"| {name} | {spent:.2f} | {told} |", flush=True)
        browser.close()
    print(f"\nLoad before: {load:.1f}, after: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
