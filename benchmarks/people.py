"""Every metric against people, on public judgements, beside SemSims of shuffled votes.

python -m benchmarks.people --from FOLDER [--shuffles 20] [--results people]

FOLDER has copies of the sources, as `semsim-studio people get` fetches them. The shipped SemSim is
trained anew on as many shuffles of its votes as its card has; each judges the same pictures.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.store import Store
from annotation.study.builtin import SIMULATED
from annotation.study.exports import export_labels
from annotation.study.labelling import list_studies
from benchmarks.cheap_claims import demo_in
from benchmarks.claims import Claim
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin
from semsim.base.progress import silent
from semsim.device import pick_device
from semsim.learning.card import read_card
from semsim.learning.settings import Order, TrainSettings
from semsim.learning.splits import HoldOut, divide
from semsim.learning.train import learn
from semsim.learning.triplets import typed
from semsim.metrics import Resources
from semsim.papers.people import SHUFFLE, Workshop, judged_by_people, people_table
from semsim.people import SOURCES
from semsim.weights import CHECKPOINTS

STATISTICS = ("soft_accuracy", "rho", "tau", "auc")


def train_shuffles(n: int, folder: Path) -> Path:
    """Train the shipped SemSim on `n` shuffles of its votes; return the folder of checkpoints."""
    card = read_card(CHECKPOINTS / "demo.safetensors")
    if card is None:
        raise SystemExit("The shipped SemSim has no card, so nothing says how it was trained.")
    made = folder / "checkpoints"
    made.mkdir(parents=True)
    demo_in(folder)
    with Store(f"sqlite:///{folder / 'studies.db'}") as store:
        (study,) = [one for one in list_studies(store) if one.name == SIMULATED]
        labels = export_labels(store, study.id, folder / "images")
    asked = card["split"]
    hold_out = HoldOut(kind=asked["hold_out"], fraction=asked["fraction"], seed=asked["seed"])
    rows = divide(typed(labels), hold_out).train
    settings = TrainSettings(**card["settings"])
    for number in range(1, n + 1):
        name = f"{SHUFFLE.partition(':')[2]}{number:02d}"
        order = Order(name=name, checkpoints=made, settings=replace(settings, shuffle=number))
        learn(order, rows, folder / name, silent)
    return made


def claims_of(rows: pd.DataFrame, run: str) -> dict[str, Claim]:
    """Return each number of the table by source, metric and statistic."""
    found: dict[str, Claim] = {}
    for row in rows.dropna(subset=["metric"]).to_dict("records"):
        for name in STATISTICS:
            if pd.notna(row[name]):
                ends = (_end(row, f"{name}_low"), _end(row, f"{name}_high"))
                n = "" if pd.isna(row["n"]) else f"{row['n']:.0f} {row['of']}"
                key = f"{row['source']}.{row['metric']}.{name}"
                found[key] = Claim(float(row[name]), *ends, n, run=run)
    return found


def _end(row: Mapping[Any, Any], name: str) -> float | None:
    return None if pd.isna(row.get(name)) else float(row[name])


def main() -> None:
    """Print and keep the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="copies", type=Path, required=True, help="public copies")
    parser.add_argument("--shuffles", type=int, default=20, help="of the votes; 0: none")
    add_option(parser)
    asked = parser.parse_args()
    begin()
    with Finds(asked.results) as finds, tempfile.TemporaryDirectory() as name:
        work = Path(name)
        place = Workshop(
            copies=(asked.copies,),
            scores=work / "scores",
            resources=Resources(checkpoints=CHECKPOINTS, device=pick_device("cpu")),
            shuffled=train_shuffles(asked.shuffles, work / "demo") if asked.shuffles else None,
        )
        rows, absent = judged_by_people(list(SOURCES), place)
        cells = people_table(rows).cells[rows["rho"].notna()]
        shown = cells.assign(source=cells["source"] + ", " + cells["ranked"])
        shown = shown.drop(columns=["ranked", "why not"])
        row = finds.table("table", *map(str, shown.columns))
        for line in shown.itertuples(index=False):
            row(*line)
        finds.claims |= claims_of(rows, finds.run)
        for metric, why in absent.items():
            print(f"{metric} has no row: {why}")


if __name__ == "__main__":
    main()
