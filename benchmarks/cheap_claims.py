"""Results that take seconds to make anew: `python -m benchmarks.claims --make NAME,NAME`."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import semsim
from benchmarks.claims import Claim
from benchmarks.measuring import ROOT
from semsim.base.places import PROGRAM
from semsim.metrics import METRICS, MetricSpec, find_metric
from semsim.reproduce.map_differences import differences

# Not part of the project; docs/how-to/published.md says where it comes from.
PUBLISHED = ROOT.parent / "shared" / "data" / "semsim_cifar100_labels.csv"


def demo() -> dict[str, Claim]:
    """Return what the card of the shipped SemSim has: AUC and ρ, and what it is compared with."""
    card = json.loads((ROOT / "checkpoints/demo.card.json").read_text(encoding="utf-8"))
    held_out = card["held_out"]
    n = f"{held_out['n_originals']} originals"
    found = {
        f"auc.{_short(row['metric'])}": Claim(
            row["auc"]["pooled"]["auc"], *_ends(row["auc"]["pooled"]), n
        )
        for row in held_out["metrics"]
        if row["auc"]
    }
    for row in held_out["against"]:
        found[f"ahead.{_short(row['metric'])}"] = Claim(row["difference"], *_ends(row), n)
    return found


def published() -> dict[str, Claim]:
    """Return the correlations of Table 1 from the published votes, and the human ceiling."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "paper"
        words = ("import", "semsim-cifar100", str(PUBLISHED), "--out", str(place))
        subprocess.run([sys.executable, str(ROOT / "app.py"), *words], check=True)
        votes, scores, labels = (
            pd.read_parquet(place / f"{name}.parquet") for name in ("votes", "scores", "labels")
        )
    for rule in ("released", "majority"):
        analysis = semsim.compare(votes, scores, labels, headline=rule).analysis
        for row in analysis.agreement.to_dict("records"):
            n, key = f"{row['n']} models", f"{rule}.{row['metric']}"
            rho, tau = ((row[f"{one}_low"], row[f"{one}_high"]) for one in ("rho_bw", "tau_score"))
            found[f"{key}.rho"] = Claim(row["abs_rho"], *rho, n)
            found[f"{key}.tau"] = Claim(row["abs_tau"], *tau, n)
        people = analysis.ceiling
    found["ceiling.rho"] = Claim(
        float(people.rho or "nan"), people.rho_low, people.rho_high, f"{people.n_models} models"
    )
    return found


def map_() -> dict[str, Claim]:
    """Return each metric's ρ over the cells of docs/map.csv, and how far the best is ahead."""
    found = {}
    for row in pd.read_csv(ROOT / "docs/map-agreement.csv").to_dict("records"):
        over_cells, over_originals = (
            (row[f"rho_{one}_low"], row[f"rho_{one}_high"]) for one in ("bw", "images")
        )
        found[f"rho.{row['metric']}"] = Claim(row["rho"], *over_cells, f"{row['n']} cells")
        found[f"originals.{row['metric']}"] = Claim(row["rho"], *over_originals, "12 originals")
    for row in differences(*cells_of_the_map()).to_dict("records"):
        found[f"ahead.{row['other']}"] = Claim(row["difference"], *_ends(row), "112 cells")
    return found


def cells_of_the_map() -> tuple[pd.DataFrame, tuple[MetricSpec, ...]]:
    """Return docs/map.csv, and the metrics that it has a column of."""
    cells = pd.read_csv(ROOT / "docs/map.csv", keep_default_na=False, na_values=[""])
    names = [name for name in cells if name in METRICS or ":" in str(name)]
    cells["why"] = cells["why"].fillna("")
    return cells, tuple(find_metric(str(name)).spec for name in names)


MAKERS: Mapping[str, tuple[str, Callable[[], dict[str, Claim]]]] = {
    "demo": ("make demo", demo),
    "published": (f"{PROGRAM} compare data/imports/paper --headline RULE", published),
    "map": (f"{PROGRAM} reproduce everything", map_),
}


def _ends(row: Mapping[Any, Any]) -> tuple[float, float]:
    return row["low"], row["high"]


def _short(metric: str) -> str:
    return metric.removeprefix("semsim:")
