"""Results that take seconds to make anew: `python -m benchmarks.claims --make NAME,NAME`."""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import semsim
from annotation.store import Store
from annotation.study.builtin import SIMULATED, ensure_demo
from annotation.study.exports import export_labels
from annotation.study.labelling import list_studies
from benchmarks import coverage
from benchmarks.claims import Claim
from benchmarks.finding import table
from benchmarks.measuring import ROOT
from semsim.attacks import ATTACKS
from semsim.base.metric_spec import beside_votes
from semsim.base.stats.correlation import spearman_rows
from semsim.base.stats.intervals import error, left_out, share_ends, student
from semsim.base.storage.places import PROGRAM
from semsim.base.threat import LETTERS, ThreatModel
from semsim.base.words import listed
from semsim.datasets.digits import Digits
from semsim.datasets.faces import Faces
from semsim.defences.dp_sgd import epsilon
from semsim.learning.evaluation import scope_of
from semsim.metrics import METRICS, MetricSpec, find_metric
from semsim.papers import threats
from semsim.papers.everything import differences, tables, with_ranges
from semsim.papers.judged import Found
from semsim.reporting.writing import markdown
from semsim.sets.no_attack_baseline import Count, judged
from semsim.targets.chance import CLASSIFIER
from semsim.weights import read_facts

# Of the tables of a map those that docs/map.md shows.
ON_THE_PAGE = ("people-cnn4", "controls", "agreement", "differences", "reasons")
# Strategies that attack the clean original where it stands.
UNMOVED = ("none", "pruning", "noise", "dp-sgd")
EXACT = 0.5  # share of a cell's pictures above which most come back exactly
_JUDGED = 20  # pictures of each kind, of which the rule of the verdicts counts
# Not part of the project; docs/how-to/published.md says where it comes from.
PUBLISHED = ROOT.parent / "shared" / "data" / "semsim_cifar100_labels.csv"


def demo() -> dict[str, Claim]:
    """Return what the card of the shipped SemSim has: the AUC it goes by, and its comparisons."""
    card = json.loads((ROOT / "checkpoints/demo.card.json").read_text(encoding="utf-8"))
    held_out = card["held_out"]
    n, scope = f"{held_out['n_originals']} originals", scope_of(held_out)
    found = {
        f"auc.{_short(row['metric'])}": Claim(
            row["auc"][scope]["auc"], *_ends(row["auc"][scope]), n
        )
        for row in held_out["metrics"]
        if row["auc"]
    }
    for row in held_out["against"]:
        found[f"ahead.{_short(row['metric'])}"] = Claim(row["difference"], *_ends(row), n)
    shuffled = held_out["shuffled"]
    of = f"{shuffled['n']} shuffles"
    found["shuffled.n"] = Claim(shuffled["n"])
    found["shuffled.reach"] = Claim(shuffled["reach"], n=of)
    found["shuffled.p"] = Claim(shuffled["p"], n=of)
    return found


def demo_sets() -> dict[str, Claim]:
    """Return how many attacks of the built-in sets failed, and the targets that learned least."""
    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "data/demo/sets").glob("*/run.json"))
    ]
    attacks = _of_attacks(runs)
    rates, stages = {}, set()
    for run in runs:
        activation, strategy = run["model"].removeprefix("cnn4:activation=").split("/")[:2]
        rates[activation, strategy] = run["target"]["training"]["test_accuracy"]
        if (activation, strategy) == ("silu", "none"):
            stages.add(round(100 * run["target"]["accuracy"]))
    columns = [f"{name} at the end | best on the way" for name in ("SiLU", "ReLU")]
    lines = [f"| test pictures right, % | {' | '.join(columns)} |", "| --- " * 5 + "|"]
    for strategy in ("3-1-7", "43-18-18", "hybrid"):
        each = [rates[activation, strategy] for activation in ("silu", "relu")]
        cells = [f"{100 * one:.0f}" for rate in each for one in (rate[-1], max(rate))]
        lines.append(f"| `{strategy}` | {' | '.join(cells)} |")
    tested = f"{runs[0]['target']['n_test']} pictures"
    return {
        "attacks": Claim(attacks, n=f"{len(runs)} sets"),
        "failed": _failed(runs),
        "failed.prior": _failed([run for run in runs if "prior" in run["name"]]),
        "failed.silu": _failed([run for run in runs if "silu" in run["name"]]),
        "pictures": Claim(sum(run["n_ok"] for run in runs), n=f"{attacks} attacks"),
        **{f"stage.{i}": Claim(one, n=tested, unit="%") for i, one in enumerate(sorted(stages), 1)},
        "table": Claim(lines, n=tested),
    }


def _of_attacks(runs: Sequence[Mapping[str, Any]]) -> int:
    return sum(run["n_ok"] + run["n_failed"] for run in runs)


def _failed(runs: Sequence[Mapping[str, Any]]) -> Claim:
    return Claim(sum(run["n_failed"] for run in runs), n=f"{_of_attacks(runs)} attacks")


def demo_shipped() -> dict[str, Claim]:
    """Return how much of the demo is shipped, and what the shipped recogniser names rightly."""
    facts = read_facts(ROOT / "data/demo/recogniser.safetensors", CLASSIFIER)["facts"]
    demo = [
        one for one in (ROOT / "data/demo").rglob("*.*") if one.is_file() and one.suffix != ".md"
    ]
    learned = (ROOT / "checkpoints").glob("demo.*")
    return {
        "mb": _megabytes(demo),
        "mb-semsim": _megabytes(learned),
        **{
            f"recogniser.{name}": Claim(one["accuracy"], n=f"{one['n_test']} pictures")
            for name, one in facts.items()
            if name in ("clean", "degraded")
        },
    }


def demo_in(data: Path) -> None:
    """Put the built-in study and its pictures into a data folder."""
    sets = sorted((ROOT / "data/demo/sets").iterdir())
    with Store(f"sqlite:///{data / 'studies.db'}") as store:
        ensure_demo(store, sets, data / "images")


def demo_blind() -> dict[str, Claim]:
    """Return how often the jury of the built-in study agrees with one who looked blind."""
    demo = ROOT / "data/demo"
    with tempfile.TemporaryDirectory() as folder:
        demo_in(Path(folder))
        with Store(f"sqlite:///{folder}/studies.db") as store:
            (study,) = [one for one in list_studies(store) if one.name == SIMULATED]
            labels = export_labels(store, study.id, Path(folder) / "images")
    labels["set"] = labels["model"].str.replace("/", "__").str.replace(r"[:=]", "-", regex=True)
    looked = pd.read_csv(demo / "blind.csv", keep_default_na=False)
    both = looked.merge(labels, on=["set", "image_id"], validate="1:1")
    named, jury = both["answer"] == both["class_name"], both["recognisable"].astype(bool)
    n, same = len(both), named == jury
    original, units = pd.factorize(both["image_id"])[0], both["image_id"].nunique()
    found = _share_and_kappa(np.stack([same, named, jury]), left_out(units)[:, original])
    (share, kappa), (of_share, of_kappa) = found[0], error(found, units)
    low, high = share_ends(np.array(share), of_share, units)
    k_low, k_high = student(np.array(kappa), of_kappa, units)
    of = f"{n} pictures of {units} originals"
    return {
        "agree": Claim(int(same.sum()), n=of),
        "share": Claim(float(share), float(low), float(high), of),
        "kappa": Claim(float(kappa), float(k_low), float(k_high), of),
        "never": Claim(int((~jury).sum()), n=of),
    }


def _share_and_kappa(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, 2): the share on which two agree and Cohen's κ, when pictures count as `weights` says.

    Args:
        rows: (3, n) bool: both agree, the one recognises, the other does.
        weights: (B, n).
    """
    same, first, second = (weights @ rows.T / weights.sum(axis=1, keepdims=True)).T
    by_chance = first * second + (1 - first) * (1 - second)
    return np.stack([same, (same - by_chance) / (1 - by_chance)], axis=1)


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
    cells, specs = cells_of_the_map()
    judged = Found(cells, pd.read_csv(ROOT / "docs/map-agreement.csv"), specs, {})
    found = {
        f"rho.{row['metric']}": Claim(row["rho"], *_ends(row), f"{row['n']} cells")
        for row in with_ranges(judged).to_dict("records")
    }
    for one in tables(judged):
        if one.name in ON_THE_PAGE:
            lines = [line for line in markdown(one).splitlines() if line.startswith("|")]
            found[f"table.{one.name}"] = Claim(lines)
    found |= _of_cells(cells)
    for row in differences(cells, specs).to_dict("records"):
        found[f"ahead.{row['other']}"] = Claim(row["difference"], *_ends(row), "112 cells")
    return found


def _of_cells(cells: pd.DataFrame) -> dict[str, Claim]:
    """Return each cell's share of votes and PSNR, least and most of groups, and the controls'."""
    attacked = cells[cells["status"] != "control"]
    groups = {
        "dp-sgd": attacked[attacked["strategy"] == "dp-sgd"],
        "algebra": attacked[attacked["attack"].isin(["rgap", "copa"])],
        "dlg": attacked[attacked["attack"].isin(["dlg", "idlg"])],
    }
    named = {"grey": "a grey picture", "original": "the original itself"}
    rows = {f"{row['strategy']}.{row['attack']}": row for row in attacked.to_dict("records")}
    rows |= {
        f"control.{name}": cells[cells["attack"] == attack].iloc[0].to_dict()
        for name, attack in named.items()
    }
    found = {}
    for key, row in rows.items():
        found[f"votes.{key}"] = Claim(row["people"], n=f"{row['n_ok']} pictures")
        if key != "control.original":  # of which PSNR is endless
            found[f"psnr.{key}"] = Claim(row["psnr"], n=f"{row['n_ok']} pictures")
        if row["status"] != "control":
            found[f"right.{row['strategy']}"] = Claim(row["target_accuracy"], n="470 pictures")
    for name, group in groups.items():
        for short, column in (("votes", "people"), ("psnr", "psnr")):
            values = group[column]
            found[f"{short}.least.{name}"] = Claim(values.min(), n=f"{len(group)} cells")
            found[f"{short}.most.{name}"] = Claim(values.max(), n=f"{len(group)} cells")
    spent = float(groups["dp-sgd"]["target_epsilon"].iloc[0])
    return {**found, "epsilon.dp-sgd": Claim(spent, n="1 training"), **_whole_map(attacked)}


def _whole_map(attacked: pd.DataFrame) -> dict[str, Claim]:
    """Return how many cells there are, pictures that failed, and ρ where no picture is moved."""
    found = {"cells": Claim(len(attacked))}
    for name in ("dlg", "idlg"):
        of = attacked[attacked["attack"] == name]
        pictures, cells = int(of["n_attacked"].sum()), f"{len(of)} cells"
        found[f"attacked.{name}"] = Claim(pictures, n=cells)
        failed = int((of["n_attacked"] - of["n_ok"]).sum())
        found[f"failed.{name}"] = Claim(failed, n=f"{pictures} pictures")
    unmoved = attacked[attacked["strategy"].isin(UNMOVED)]
    for name in ("ssim", "ssim-registered"):
        rho = float(spearman_rows(*(unmoved[[one]].T.to_numpy() for one in ("people", name)))[0])
        found[f"rho.unmoved.{name}"] = Claim(rho, n=f"{len(unmoved)} cells")
    return found


def clearer() -> dict[str, Claim]:
    """Return of how many pictures the rule of the verdicts finds more than a guess, by kind."""
    rng, counts = np.random.default_rng(0), defaultdict[str, list[int]](list)
    for dataset in (Faces(), Digits()):
        pictures = dataset("test").images.permute(0, 2, 3, 1).numpy() * 255.0
        own, others = pictures[:_JUDGED], pictures[_JUDGED : 2 * _JUDGED]
        kinds = {
            "nothing": [rng.uniform(0, 255, own.shape), others, 255 - others, _relief(others)],
            "negative": [255 - own],
            "noise": [own + rng.normal(0, 80, own.shape)],
            "relief": [_relief(own)],
        }
        for kind, made in kinds.items():
            counts[kind] += [Count.of(judged(list(one), list(own))).clearer for one in made]
    ends = {"least": min, "most": max}
    return {
        f"{kind}.{end}": Claim(of(counted), n=f"{_JUDGED} pictures")
        for kind, counted in counts.items()
        for end, of in ends.items()
    }


def _relief(pictures: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return pictures (N, H, W, C) less themselves one pixel away, in grey."""
    edges = pictures - np.roll(pictures, (1, 1), axis=(1, 2))
    return np.repeat(edges.mean(axis=3, keepdims=True), 3, axis=3)


def epsilons() -> dict[str, Claim]:
    """Return ε of one noised gradient by itself at δ = 10⁻⁵, by its noise."""
    noises = (1, 0.1, 0.01)
    return {f"noise-{noise}": Claim(epsilon(noise, 1, 1, 1e-5), n="1 step") for noise in noises}


def cells_of_the_map() -> tuple[pd.DataFrame, tuple[MetricSpec, ...]]:
    """Return docs/map.csv, and the metrics that it has a column of."""
    cells = pd.read_csv(ROOT / "docs/map.csv", keep_default_na=False, na_values=[""])
    names = [name for name in cells if name in METRICS or ":" in str(name)]
    cells["why"] = cells["why"].fillna("")
    return cells, beside_votes((find_metric(str(name)).spec for name in names), simulated=True)


def threats_() -> dict[str, Claim]:
    """Return the tables of who can see what, of docs/threats.csv, and the letters of attackers."""
    cells = cells_of_threats()
    made = Found(cells, pd.DataFrame(), (), {})
    found = {
        f"table.{one.name}": Claim([x for x in markdown(one).splitlines() if x.startswith("|")])
        for one in threats.tables(made)
    }
    rows = [
        [
            *(letter, name, listed(ThreatModel().lacks(known) or ["nothing more"])),
            ", ".join(f"`{one}`" for one in ATTACKS if ATTACKS.needs(one).threat.letter == letter),
        ]
        for letter, (name, known) in LETTERS.items()
    ]
    found["table.letters"] = table(["letter", "attacker", "has", "attacks here"], rows)
    own = cells[cells["originals"].notna() & cells["n_attacked"].notna()]
    for attack, exact in own[own["exact"] > EXACT].groupby("attack"):
        largest = exact[exact["batch"] == exact["batch"].max()]
        attacked = f"{largest['n_attacked'].sum():.0f} pictures"
        found[f"exact.{attack}"] = Claim(int(exact["batch"].max()), n=attacked)
    for key, changed in (("changed", True), ("honest", False)):
        warns, models = threats.warnings(own, changed)
        found[f"warned.{key}"] = Claim(warns, n=f"{models} models")
    sizes = {key: Claim(int(own[key].max())) for key in ("originals", "seeds")}
    return {**found, **sizes, "cells": Claim(len(own))}


def cells_of_threats() -> pd.DataFrame:
    """Return docs/threats.csv."""
    cells = pd.read_csv(ROOT / "docs/threats.csv", keep_default_na=False, na_values=[""])
    words = ["why", "noticed", "network", "state", "strategy", "attacker"]
    return cells.assign(**cells[words].fillna(""))


MAKERS: Mapping[str, tuple[str, Callable[[], dict[str, Claim]]]] = {
    "demo": ("make demo", demo),
    "demo-blind": ("make demo", demo_blind),
    "demo-sets": ("make demo", demo_sets),
    "demo-shipped": ("make demo", demo_shipped),
    "published": (f"{PROGRAM} compare data/imports/paper --headline RULE", published),
    "coverage": (coverage.COMMAND, coverage.table),
    "map": (f"{PROGRAM} reproduce everything", map_),
    "threats": (f"{PROGRAM} reproduce threats --preset smoke", threats_),
    "clearer": ("python -m benchmarks.claims --make clearer", clearer),
    "epsilon": ("semsim.defences.dp_sgd.epsilon(noise, rate=1, steps=1, delta=1e-5)", epsilons),
}


def _ends(row: Mapping[Any, Any]) -> tuple[float, float]:
    return row["low"], row["high"]


def _megabytes(files: Iterable[Path]) -> Claim:
    sizes = [one.stat().st_size for one in files]
    return Claim(round(sum(sizes) / 1e6, 2), n=f"{len(sizes)} files", unit="MB")


def _short(metric: str) -> str:
    return metric.removeprefix("semsim:")
