"""`semsim-studio baseline-check`: images on which attacks beat the no-attack baseline."""

from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.terminal import Json, show, text_table, told_errors
from semsim.base.errors import DataError
from semsim.base.sets.reader import read_set, set_folders
from semsim.sets.no_attack_baseline import BASELINE, Count, judged_set
from semsim.sets.recognition import CLEARER

_HEAD = ["set", "attacker", CLEARER, "nearer", "by shapes", "most are clearer"]


def baseline_check(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Sets, or folders that hold some.")
    ],
    as_json: Json = False,
) -> None:
    """Count the images of reconstruction sets on which attacks beat the no-attack baseline."""
    with told_errors():
        found = set_folders(folders)
        if not found:
            raise DataError(f"There is no reconstruction set below {', '.join(map(str, folders))}.")
        rows = [_row(folder) for folder in found]
    table = text_table(_HEAD, [_cells(row) for row in rows])
    show(
        {"sets": rows},
        f"{table}\nA picture is above {BASELINE} in either of two ways.",
        as_json,
    )


def _row(folder: Path) -> dict[str, Any]:
    found = read_set(folder)
    shown = judged_set(found)
    count = Count.of(shown)
    ways = {name: sum(getattr(one, name) for one in shown) for name in ("nearer", "told_apart")}
    counts = {"pictures": count.over, "clearer": count.clearer, **ways}
    about = {"set": found.name, "folder": str(folder), "attacker": found.attacker_words}
    return {**about, **counts, "comes_back": count.comes_back}


def _cells(row: dict[str, Any]) -> list[str]:
    ways = [f"{row[name]}" for name in ("nearer", "told_apart")]
    whole = f"{row['clearer']} of {row['pictures']}"
    return [row["set"], row["attacker"] or "–", whole, *ways, "yes" if row["comes_back"] else "no"]
