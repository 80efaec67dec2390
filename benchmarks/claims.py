"""The numbers on the pages, from the files that commands write.

python -m benchmarks.claims [--make demo,published,map] [--check]

A command keeps its results by `keep` in benchmarks/results/NAME.json: values, intervals, n, the
command and its commit, or `ADDED` with the one that added them. A page shows one of them between
two comments, which no reader sees:

    <!--=published released.psnr.rho .2f[]-->0.67 [0.16, 0.90]<!--/-->

NAME, KEY and how it is written: a number's format, `table` of a whole table, `run` of when and on
what it was measured; `[]` behind a format adds the interval in brackets, `to` shows only the
interval, `of` adds the count that n begins with. `headlines all table` is the table of
`benchmarks.headlines`. Without `--check` the pages are written, with it the ones that differ are
named and the exit code is 1. `--make` first computes cheap results anew.

A file has no text but names: a value is a number, and a table has columns and rows, whose cell is a
number, a word, or a format with its numbers.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.measuring import ROOT, code
from semsim.base.storage.atomic import write_text
from semsim.reporting.not_run import NOT_RUN

RESULTS = ROOT / "benchmarks" / "results"
# Before a commit that added a result: that of its run is gone.
ADDED = "added by "
# Numbers of a cell, but those of names and of code.
NUMBERS = re.compile(
    r"`[^`]*`|(?<![\w.,])(?<!\w-)"
    r"((?:(?<![^\s(\[])[−+-])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?)(?!\w|[.,]\d)"
)
SHOWN = re.compile(r"<!--=(\S+) (\S+) ([^\s<>]+)-->(.*?)<!--/-->", re.DOTALL)
PAGES = (
    *("README.md", "CONTRIBUTING.md", "data/demo/README.md", "checkpoints/README.md"),
    *("benchmarks/README.md", "benchmarks/tables.md"),
)


@dataclass(frozen=True)
class Claim:
    """A result.

    value: a number, or the lines of a table in Markdown. low, high: ends of its 95 % interval. n:
    how many units it rests on, and of which kind, such as "4 originals". run: when and on what it
    was measured. command, commit: of one that another command or commit than the file's made.
    """

    value: float | list[str]
    low: float | None = None
    high: float | None = None
    n: str = ""
    unit: str = ""
    run: str = ""
    command: str = ""
    commit: str = ""


def keep(
    name: str,
    command: str,
    claims: Mapping[str, Claim],
    folder: Path = RESULTS,
    *,
    part: bool = False,
) -> None:
    """Write what a command found to `folder`/NAME.json; what is as before keeps its commit.

    part: other results of the file stay, as other commands make them.
    """
    path = folder / f"{name}.json"
    before: dict[str, Any] = {"command": command, "commit": "", "values": {}}
    if path.exists():
        before = _read(path)
    values = {key: _known(one) for key, one in claims.items()}
    if not part:
        if before["values"] != values:
            _write(path, {"command": command, "commit": code(), "values": values})
        return
    own = {"command": command, "commit": code()}
    for key, one in values.items():
        kept_so_far = before["values"].get(key, {})
        if {k: v for k, v in kept_so_far.items() if k not in own} != one:
            before["values"][key] = {**one, **own}
    _write(path, headed(before))


def headed(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file of results whose head is the command and commit of most of its values."""
    head = {name: whole[name] for name in ("command", "commit")}
    made = {
        key: {**one, **{name: one.get(name, of) for name, of in head.items()}}
        for key, one in whole["values"].items()
    }
    counts = Counter((one["command"], one["commit"]) for one in made.values())
    most = max(counts, key=lambda of: (counts[of], of == tuple(head.values())))
    found = dict(zip(head, most, strict=True))
    values = {
        key: {name: one[name] for name in one if one[name] != found.get(name)}
        for key, one in made.items()
    }
    return {**found, "values": values}


def pages() -> list[Path]:
    """Return every page that may show a result."""
    return [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str, folder: Path = RESULTS) -> str:
    """Return a page with each number as the files have it.

    Raises `LookupError` where a page names a result that no file has.
    """

    def put(found: re.Match[str]) -> str:
        name, key, form, _ = found.groups()
        if name == "headlines":
            from benchmarks.headlines import table  # made of this module

            shown = _as_table(table())
        elif form == "list":
            shown = _not_run(key)
        else:
            shown = written(_claim(folder, name, key), form)
        return f"<!--={name} {key} {form}-->{shown}<!--/-->"

    return SHOWN.sub(put, text)


def _not_run(paper: str) -> str:
    parts = [fill(one.said, 118, subsequent_indent="  ") for one in NOT_RUN[paper]]
    return "\n".join(["\n", *(f"- {one}" for one in parts), "\n"])


def kept(name: str, folder: Path = RESULTS) -> dict[str, Claim]:
    """Return the results of `folder`/NAME.json by their keys; none where there is no such file."""
    path = folder / f"{name}.json"
    values = _read(path)["values"] if path.exists() else {}
    return {key: _told(dict(one)) for key, one in values.items()}


def rows_of(table: Claim) -> list[list[str]]:
    """Return the cells of a table, row by row, without its head; none of a number."""
    return [_cells(line) for line in table.value[2:]] if isinstance(table.value, list) else []


def _write(path: Path, whole: Mapping[str, Any]) -> None:
    """Write a file of results: a line each result and each row of a table."""
    lines = []
    for key, one in whole["values"].items():
        line = json.dumps(one, ensure_ascii=False)
        for row in one.get("rows", ()):
            row_line = json.dumps(row, ensure_ascii=False)
            line = line.replace(row_line, f"\n   {row_line}", 1)
        lines.append(f"  {json.dumps(key)}: {line}".replace(", \n", ",\n"))
    head = {name: one for name, one in whole.items() if name != "values"}
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    write_text(path, f'{text},\n "values": {{\n' + ",\n".join(lines) + "\n }\n}\n")


def _known(claim: Claim) -> dict[str, Any]:
    told = asdict(claim).items()
    known = {name: one for name, one in told if not (one is None or one == "")}
    if isinstance(claim.value, list):
        head, rule, *rows = map(_cells, claim.value)
        table = {"columns": head, "rows": [[row[0], *map(_parted, row[1:])] for row in rows]}
        right = {"right": True} if rule[-1].endswith(":") else {}
        known = {**table, **right, **{k: v for k, v in known.items() if k != "value"}}
    else:
        known = {"value": claim.value, **known}
    return json.loads(json.dumps(known))  # type: ignore[no-any-return]


def _told(one: dict[str, Any]) -> Claim:
    if "rows" not in one:
        return Claim(**one)
    head, right = one.pop("columns"), one.pop("right", False)
    rule = [":--" if right else "---", *["--:" if right else "---"] * (len(head) - 1)]
    lines = [head, rule, *([_joined(cell) for cell in row] for row in one.pop("rows"))]
    return Claim(
        ["|" + "|".join(f" {c} " if c else " " for c in row) + "|" for row in lines], **one
    )


def _cells(line: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def _parted(text: str) -> float | str | list[Any]:
    """Return a cell as a number, as words, or as a format with its numbers."""
    form, numbers, end = "", [], 0
    for found in NUMBERS.finditer(text):
        number, spec = figure(found[1] or "")
        if not spec:
            continue
        form += _literal(text[end : found.start()]) + f"{{:{spec}}}"
        end = found.end()
        numbers.append(number)
    if not numbers:
        return text
    if len(numbers) == 1 and str(numbers[0]).replace("-", "−") == text:
        return numbers[0]
    return [form + _literal(text[end:]), *numbers]


def figure(text: str) -> tuple[float, str]:
    """Return a number as it is written and its format; no format where none gives it again."""
    found = re.fullmatch(r"([−+-]?)([\d,]+)(?:\.(\d+))?(e[-+]?\d+)?", text)
    if found is None:
        return 0, ""
    sign, whole, decimals, power = found.groups()
    plain = text.replace("−", "-").replace(",", "")
    number = float(plain) if decimals or power else int(plain)
    kind = f".{len(decimals or '')}{'e' if power else 'f'}" if decimals or power else "d"
    spec = f"{'+' * (sign == '+')}{',' * (',' in whole)}{kind}"
    same = _shown(number, spec) in (text, text.replace("-", "−"))
    return number, spec if same else ""


def _joined(cell: float | str | list[Any]) -> str:
    if isinstance(cell, list):
        form, *numbers = cell
        specs = iter(numbers)
        return re.sub(
            r"\{:(.*?)\}|\{\{|\}\}",
            lambda found: found[0][0] if found[1] is None else _shown(next(specs), found[1]),
            form,
        )
    return cell if isinstance(cell, str) else str(cell).replace("-", "−")


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _shown(number: float, spec: str) -> str:
    text = format(number, spec)
    return re.sub("^-", "−", text)


def _claim(folder: Path, name: str, key: str) -> Claim:
    claims = kept(name, folder)
    if key not in claims:
        raise LookupError(f"{name}.json has no {key!r}; it has {', '.join(claims) or 'nothing'}.")
    return claims[key]


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def command_of(name: str, key: str, folder: Path = RESULTS) -> str:
    """Return the command that makes a result."""
    whole = _read(folder / f"{name}.json")
    return str(whole["values"][key].get("command", whole["command"]))


def _as_table(lines: list[str]) -> str:
    return "\n".join(["\n", *lines, "\n"])


def written(claim: Claim, form: str) -> str:
    """Return a result as a page asks for it; `LookupError` where it has not what is asked for."""
    if form == "run" and claim.run:
        return claim.run
    if isinstance(claim.value, list) != (form == "table") or form == "run":
        raise LookupError(f"A page asks for {form!r} of {claim}.")
    if isinstance(claim.value, list):
        return _as_table(claim.value)
    spec, how = re.fullmatch(r"(.*?)(\[\]|to|of)?", form).groups()  # type: ignore[union-attr]
    value = _shown(claim.value, spec)
    if how == "of":
        return f"{value} of {claim.n.split()[0]}"
    if how is None:
        return value
    if claim.low is None or claim.high is None:
        raise LookupError(f"A page asks for an interval, and {claim} has none.")
    low, high = _shown(claim.low, spec), _shown(claim.high, spec)
    return f"{value} [{low}, {high}]" if how == "[]" else f"{low} to {high}"


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
