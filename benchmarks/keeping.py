"""Findings of a benchmark: printed row by row as on its page, and kept in benchmarks/results."""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from benchmarks.claims import RESULTS, Claim, keep
from semsim.device import how_busy

Row = Callable[..., None]


def add_option(options: argparse.ArgumentParser) -> None:
    """Let a command say which file of results it writes; `make bench` says it of its plan."""
    options.add_argument("--results", default="", help="NAME.json in benchmarks/results; else none")


class Finds:
    """Results of one run, which their file has when the block ends; an error leaves those before.

    name: of the file in `folder`, of which other results stay as they are; "" keeps nothing.
    """

    def __init__(self, name: str, folder: Path = RESULTS) -> None:
        self.name, self.folder = name, folder
        self.claims: dict[str, Claim] = {}
        self.began, self.load = datetime.now(UTC), how_busy()

    def table(self, key: str, *columns: str) -> Row:
        """Print the head of a table, and return what adds and prints a row of it."""
        lines = [line(*columns), line(*["---"] * len(columns))]
        print("", *lines, sep="\n", flush=True)

        def row(*cells: object) -> None:
            lines.append(line(*cells))
            print(lines[-1], flush=True)
            self.claims[key] = Claim(list(lines), run=self.run)

        return row

    def figure(self, key: str, value: float, unit: str = "", n: str = "") -> None:
        """Print and keep one number."""
        print(f"{key}: {value:g} {unit}".rstrip(), flush=True)
        self.claims[key] = Claim(value, n=n, unit=unit, run=self.run)

    @property
    def run(self) -> str:
        """Return when it began, and beside what load."""
        return f"{self.began:%-d %B %Y, %H:%M} UTC, {self.load} before"

    def __enter__(self) -> "Finds":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.name and self.claims:
            keep(self.name, command(), self.claims, self.folder, part=True)


def command() -> str:
    """Return what was typed, without the file of results and this machine's folders."""
    words, given = [], iter(sys.argv[1:])
    for word in given:
        if word == "--results":
            next(given, None)
        else:
            words.append("FOLDER" if "/" in word else word)
    return " ".join(["python -m", f"benchmarks.{Path(sys.argv[0]).stem}", *words])


def line(*cells: object) -> str:
    """Return a line of a table in Markdown."""
    return "|" + "|".join(f" {cell} " if str(cell) else " " for cell in cells) + "|"
