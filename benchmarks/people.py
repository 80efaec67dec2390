"""Every metric against people, on public judgements, beside SemSims of shuffled votes.

python -m benchmarks.people --from FOLDER [--shuffles 20] [--compare] [--results people]
python -m benchmarks.people --wanted --results people

FOLDER has copies of the sources, as `semsim-studio people get` fetches them. The shipped SemSim is
trained anew on as many shuffles of its votes as its card has; each judges the same pictures.
`--compare` measures `semsim-studio compare --out` alone, on the votes of the SemSim paper and five
metrics, of which three are its PSNR with noise. `--wanted` judges the kept numbers once more.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.claims import Claim, kept
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import ROOT, begin, judge
from semsim.base.sets.imports import places_of, read_import
from semsim.device import pick_device
from semsim.importers.import_folder import carry_out
from semsim.metrics import Resources
from semsim.papers.people import Workshop, judged_by_people, people_table
from semsim.people import SOURCES
from semsim.weights import CHECKPOINTS

STATISTICS = ("soft_accuracy", "rho", "tau", "auc")
# Measured outside the project, on the same files; an earlier SemSim in place of the shipped one.
WANTED = {
    "recurrent.psnr.rho": 0.500,
    "recurrent.mse.rho": 0.491,
    "recurrent.ssim.rho": 0.268,
    "recurrent.semsim:demo.rho": 0.324,
    "recurrent.semsim:demo.start.rho": 0.324,
    "recurrent.semsim:shuffle.rho": 0.462,
    "recurrent.people.rho": 0.91,
    "semsim-votes.psnr.soft_accuracy": 0.755,
    "semsim-votes.mse.soft_accuracy": 0.750,
}
_WORDS = {
    **{"rho": "ρ", "soft_accuracy": "soft pairwise accuracy", "people": "halves of the people"},
    **{"psnr": "PSNR", "mse": "MSE", "ssim": "SSIM", "semsim:shuffle": "SemSim, shuffled votes"},
    **{"semsim:demo": "SemSim", "semsim:demo.start": "SemSim, initial weights"},
}
_NOISY = ("ssim", "ms-ssim", "lpips-alex")
_REPEATS = 5
_PACE = ("-c", "sum(i * i for i in range(10**7))")  # how fast the machine is, by itself
MOST_SECONDS = 8.0  # of a CPU


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


def add_wanted(finds: Finds, known: Mapping[str, Claim]) -> None:
    """Print and keep each number that was measured outside beside today's."""
    row = finds.table("wanted", "source", "metric", "statistic", "measured", "wanted")
    for key, wanted in WANTED.items():
        source, _, rest = key.partition(".")
        metric, _, statistic = rest.rpartition(".")
        digits = 2 if metric == "people" else 3
        found = float(known[key].value)  # type: ignore[arg-type]
        met = "met" if round(found, digits) == wanted else "**missed**"
        told = _WORDS[metric], _WORDS[statistic]
        row(source, *told, f"{found:.3f}", f"{wanted:.{digits}f}: {met}")


def time_compare(copies: Path, work: Path, finds: Finds) -> None:
    """Measure `compare --out` on the paper's votes, in CPU seconds; the median of some runs."""
    source, places = SOURCES["semsim-votes"], places_of("paper", work)
    carry_out(source.plan(copies), places)
    study, rng = read_import(places.tables), np.random.default_rng(0)
    scores = pd.DataFrame(study.scores)
    psnr = scores[scores["metric"] == "psnr"]
    noisy = [
        psnr.assign(metric=name, value=psnr["value"] + rng.normal(0, 3, len(psnr)))
        for name in _NOISY
    ]
    five = work / "scores.parquet"
    pd.concat([scores, *noisy]).to_parquet(five)
    words = [str(ROOT / "app.py"), "compare", str(places.tables), str(five), "--out"]
    each = [(_spent([*words, str(work / f"{i}")]), _spent(_PACE)) for i in range(_REPEATS)]
    n, (seconds, pace) = f"{len(study.votes):,} votes, 5 metrics", np.median(each, axis=0)
    row = finds.table("compare", "`compare --out`", "runs", "CPU s", "wanted", "10⁷ squares, CPU s")
    judged = judge(seconds, most=MOST_SECONDS, unit="CPU s")
    row(n, _REPEATS, f"{seconds:.1f}", judged, f"{pace:.2f}")
    own = Claim(float(seconds), n=n, unit="CPU s", run=finds.run)
    finds.claims["compare.cpu"] = own
    finds.claims["compare.pace"] = replace(own, value=float(pace), n=f"{_REPEATS} runs")


def _spent(words: Sequence[str]) -> float:
    """Return the CPU seconds of a Python program."""
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    """Print and keep the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="copies", type=Path, default=Path(), help="public copies")
    parser.add_argument("--shuffles", type=int, default=20, help="of the votes; 0: none")
    parser.add_argument("--compare", action="store_true", help="measure what `compare` costs")
    parser.add_argument("--wanted", action="store_true", help="test what is kept")
    add_option(parser)
    asked = parser.parse_args()
    begin()
    with Finds(asked.results) as finds, tempfile.TemporaryDirectory() as name:
        work = Path(name)
        if asked.compare:
            time_compare(asked.copies, work, finds)
            return
        if asked.wanted:
            add_wanted(finds, kept(asked.results))
            return
        place = Workshop(
            copies=(asked.copies,),
            scores=work / "scores",
            resources=Resources(checkpoints=CHECKPOINTS, device=pick_device("cpu")),
            shuffled=work / "shuffled",
            shuffles=asked.shuffles,
        )
        rows, absent = judged_by_people(list(SOURCES), place)
        cells = people_table(rows).cells[rows["rho"].notna()]
        shown = cells.assign(source=cells["source"] + ", " + cells["ranked"])
        shown = shown.drop(columns=["ranked", "why not"])
        row = finds.table("table", *map(str, shown.columns))
        for line in shown.itertuples(index=False):
            row(*line)
        finds.claims |= claims_of(rows, finds.run)
        add_wanted(finds, finds.claims)
        for metric, why in absent.items():
            print(f"{metric} has no row: {why}")


if __name__ == "__main__":
    main()
