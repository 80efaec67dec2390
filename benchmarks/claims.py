"""The numbers on the pages, from the files that commands write.

python -m benchmarks.claims [--make demo,published,map] [--check]

A command keeps its results by `keep` in benchmarks/results/NAME.json: values, intervals, n, the
command and its commit. A page shows one of them between two comments, which no reader sees:

    <!--=published released.psnr.rho .2f[]-->0.67 [0.16, 0.90]<!--/-->

NAME, KEY and how it is written: a number's format, `s` of a sentence, `table` of a whole table;
`[]` behind a format adds the interval in brackets, `to` shows only the interval. Without `--check`
the pages are written, with it the ones that differ are named and the exit code is 1. `--make` first
computes cheap results anew.

A file marked `measured` was not written by its command, which takes hours, or a machine that is not
here: it has the figures as they were read off, each with the commit that brought it to a page. Its
TABLE.run tells how TABLE was measured: when, on what, and how busy the machine was.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, code
from semsim.base.whole import write_json, write_text

RESULTS = ROOT / "benchmarks" / "results"
SHOWN = re.compile(r"<!--=(\S+) (\S+) ([^\s<>]+)-->(.*?)<!--/-->", re.DOTALL)
PAGES = ("README.md", "CONTRIBUTING.md", "data/demo/README.md", "benchmarks/README.md")


@dataclass(frozen=True)
class Claim:
    """A result.

    value: a number, a sentence, or the lines of a table. low, high: ends of its 95 % interval. n:
    how many units it rests on, and of which kind, such as "4 originals". commit: of one that was
    measured before its command kept it, the commit that brought it to a page.
    """

    value: float | str | list[str]
    low: float | None = None
    high: float | None = None
    n: str = ""
    commit: str = ""


def keep(name: str, command: str, claims: Mapping[str, Claim], folder: Path = RESULTS) -> None:
    """Write what a command found to `folder`/NAME.json; the same claims keep their commit."""
    values = {key: _known(one) for key, one in claims.items()}
    path = folder / f"{name}.json"
    if path.exists() and _read(path)["values"] == json.loads(json.dumps(values)):
        return
    write_json(path, {"command": command, "commit": code(), "values": values})


def pages() -> list[Path]:
    """Return every page that may show a result."""
    return [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str, folder: Path = RESULTS) -> str:
    """Return a page with each number as the files have it.

    Raises `LookupError` where a page names a result that no file has.
    """

    def put(found: re.Match[str]) -> str:
        name, key, form, _ = found.groups()
        return f"<!--={name} {key} {form}-->{_written(_claim(folder, name, key), form)}<!--/-->"

    return SHOWN.sub(put, text)


def kept(name: str, folder: Path = RESULTS) -> dict[str, Claim]:
    """Return the results of `folder`/NAME.json by their keys; none where there is no such file."""
    path = folder / f"{name}.json"
    values = _read(path)["values"] if path.exists() else {}
    return {key: Claim(**one) for key, one in values.items()}


def _known(claim: Claim) -> dict[str, Any]:
    return {name: one for name, one in asdict(claim).items() if one not in (None, "")}


def _claim(folder: Path, name: str, key: str) -> Claim:
    claims = kept(name, folder)
    if key not in claims:
        raise LookupError(f"{name}.json has no {key!r}; it has {', '.join(claims) or 'nothing'}.")
    return claims[key]


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def _written(claim: Claim, form: str) -> str:
    if isinstance(claim.value, list) != (form == "table"):
        raise LookupError(f"A page asks for {form!r} of {claim}.")
    if isinstance(claim.value, list):
        return "\n".join(["\n", *claim.value, "\n"])
    spec, how = re.fullmatch(r"(.*?)(\[\]|to)?", form).groups()  # type: ignore[union-attr]
    if how and (claim.low is None or claim.high is None):
        raise LookupError(f"A page asks for an interval, and {claim} has none.")
    value, low, high = (
        format(one, spec).replace("-", "−").replace("%", " %")
        if isinstance(one, (int, float))
        else str(one)
        for one in (claim.value, claim.low, claim.high)
    )
    ends = {"[]": f"{value} [{low}, {high}]", "to": f"{low} to {high}"}
    return ends.get(how, value)


def main() -> None:
    """Write the pages, or name those that differ from the results."""
    from benchmarks.cheap_claims import MAKERS

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--make", default="", help=f"of {', '.join(MAKERS)}, separated by commas")
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args()
    for name in filter(None, asked.make.split(",")):
        command, make = MAKERS[name]
        keep(name, command, make())
    other = []
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if (after := filled(before)) != before:
            other.append(path.relative_to(ROOT))
            if not asked.check:
                write_text(path, after)
    for one in other:
        print(one, "differs from the results." if asked.check else "was written.")
    sys.exit(bool(other) and asked.check)


if __name__ == "__main__":
    main()
