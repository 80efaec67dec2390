"""Results of the papers, from the folders that their reproductions leave: no hand between.

python -m benchmarks.papers PART FOLDER [--make] [--images DIR] [--results NAME.json]

PART is a paper, or a table or a figure of Ensembler's, see `PARTS`. FOLDER is --out of
`semsim-studio reproduce PAPER`, with the preset's folder below it where there is one, and of
Ensembler --data-dir. --make runs the command first, which goes on where it ended; DIR has
train/<class> and test/<class> of CIFAR-10 where it needs pictures. Tables are read as data, never
as text.

Each paper has one table that says where its results lie. A row that is missing is named, and then
nothing is kept. benchmarks/results/PAPER.json has the results, NAME.json where it is given.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import papers_split
from benchmarks.claims import Claim
from benchmarks.finding import (
    At,
    Find,
    Part,
    Read,
    Tables,
    ended,
    indexed,
    less,
    over_rows,
    percent,
    row_of,
    spread,
    table,
)
from benchmarks.keeping import Finds
from benchmarks.measuring import ROOT
from semsim.base.cli.terminal import rows_of
from semsim.base.errors import SettingsError
from semsim.base.metric_spec import START
from semsim.base.storage.atomic import write_text
from semsim.base.storage.records import read_record
from semsim.learning.baselines import SHUFFLED
from semsim.learning.evaluation import auc_of, semsim_row
from semsim.papers import pbpfl
from semsim.papers.copa import SCALE, TABLE_2
from semsim.papers.deployed import _cell, _percent, _promise, _target
from semsim.papers.simulated_votes import CONTROL
from semsim.reporting.notation import interval, number
from semsim.systems.audit.advice import signed
from semsim.systems.federated.settings import ARMS, REFERENCE, RESCALED

# COPA: networks by what c(M) says of them, and the methods with their titles.
_HIDDEN = tuple(f"{kind} {variant}" for kind in ("tanh", "leaky-relu") for variant in (1, 2, 4))
_EXACT = ("tanh 3", "leaky-relu 3")
_METHODS = {
    "rgap": "R-GAP",
    "copa": "COPA",
    "copa denoised": "COPA, denoised",
    "copa-prior": "COPA-prior",
    "grey": "grey",
}
EXACT = 1e-12  # squared error up to which a picture counts as exact: the target of variant 3


def read_copa(folder: Path) -> Read:
    """Return c(M) by variant, and by network and method what came back."""
    rows = pd.read_parquet(folder / "rows.parquet")
    keys = ["activation", "variant", "method"]
    methods = rows.groupby(keys, sort=False).agg(
        psnr=("psnr", "mean"),
        sd=("psnr", "std"),
        mse=("mse", "max"),
        n=("mse", "count"),
        blew_up=("blew_up", "sum"),
    )
    methods = indexed(methods, [" ".join(map(str, key)) for key in methods.index])
    one = ["activation", "variant", "seed", "image_id"]
    wide = rows.pivot_table(index=one, columns="method", values="psnr", sort=False)
    lead = wide["copa-prior"] - wide[["rgap", "grey"]].max(axis=1)
    leads = lead.groupby(level=[0, 1], sort=False).agg(["mean", "std", "count"])
    leads["ahead"] = (lead > 0).groupby(level=[0, 1], sort=False).sum()
    leads = indexed(leads, [" ".join(map(str, key)) for key in leads.index])
    table_1 = pd.read_csv(folder / "table1.csv")
    tables = {
        "index": indexed(table_1, table_1["variant"].astype(str)),
        "methods": methods,
        "leads": leads,
    }
    return Read(tables, ended(folder / "rows.parquet"))


def copa_index(tables: Tables) -> Claim:
    """Return Table 1 with both conditions for the pull-back."""
    words = {True: "yes", False: "no"}
    return table(
        [
            "variant",
            "c(M)",
            "paper",
            "the layer widens (ours)",
            "its W has full rank (the paper's)",
        ],
        [
            [
                *(name, signed(row["value"]), signed(row["paper"])),
                *(words[bool(row[one])] for one in ("pull_back", "full_rank")),
            ]
            for name, row in tables["index"].to_dict("index").items()
        ],
    )


def copa_pictures(tables: Tables) -> Claim:
    """Return Table 2 in PSNR, and by how much COPA-prior leads the better of R-GAP and grey."""
    rows = []
    for network in tables["leads"].index:
        found = [row_of(tables, "methods", f"{network} {method}") for method in _METHODS]
        ahead = tables["leads"].loc[network]
        in_front = f"{ahead['ahead']:.0f} of {ahead['count']:.0f}"
        lead = f"{ahead['mean']:.1f} ± {ahead['std']:.1f}, {in_front}"
        if found[0]["mse"] <= EXACT:
            lead = "all exact"
        cells = [
            f"{row['psnr']:.{digits}f} ± {row['sd']:.{digits}f}"
            + (f", {row['blew_up']:.0f} blew up" if row["blew_up"] else "")
            for row in found
            for digits in [0 if row["psnr"] > 100 else 1]
        ]
        rows.append([network.replace(" ", ", variant "), *cells, lead])
    return table(["network", *_METHODS.values(), "lead of COPA-prior"], rows)


def copa_printed(_: Tables) -> Claim:
    """Return the paper's Table 2 in dB of pictures from 0 to 1."""
    methods = list(_METHODS.items())[:3]
    networks = dict.fromkeys((kind, variant) for kind, variant, _ in TABLE_2)
    return table(
        ["network", *(title for _, title in methods)],
        [
            [
                f"{kind}, variant {variant}",
                *(
                    ", ".join(f"{psnr - SCALE:.1f}" for _, psnr in TABLE_2[kind, variant, method])
                    for method, _ in methods
                ),
            ]
            for kind, variant in networks
        ],
    )


def _methods(
    networks: Iterable[str],
    method: str,
    of: Callable[[Sequence[float]], float] = min,
    column: str = "psnr",
    **more: Any,
) -> At:
    rows = tuple(f"{one} {method}" for one in networks)
    return At("methods", rows, column, of, n="n", units="attacks", **more)


def _range(found: Sequence[float]) -> float:
    return max(found) - min(found)


def _gain(of: Callable[[Iterable[float]], float], whole: bool) -> Find:
    """Return the least or the most that denoising gains on variants 1 and 2."""

    def find(tables: Tables) -> Claim:
        gains = [
            less(_methods([one], "copa denoised"), _methods([one], "copa"))(tables)
            for one in _HIDDEN
            if not one.endswith("4")
        ]
        found = of([float(one.value) for one in gains])  # type: ignore[arg-type]
        n = over_rows(gains[0].n, len(gains))
        return Claim(round(found) if whole else found, n=n, unit="dB")

    return find


COPA: Mapping[str, Find] = {
    "hidden": copa_index,
    "pictures": copa_pictures,
    "start": copa_printed,
    "exact.1": _methods(_EXACT, "copa", max, "mse"),
    "exact.2": _methods(_EXACT, "copa", sum, "n", whole=True),
    "rgap.1.a": _methods(["leaky-relu 1"], "rgap", whole=True),
    "rgap.1.b": _methods(["leaky-relu 2"], "rgap", whole=True, unit="dB"),
    "rgap.2.a": _methods(_HIDDEN, "copa"),
    "rgap.2.b": _methods(_HIDDEN, "copa", max),
    "rgap.2.c": _methods(["tanh 1"], "grey", unit="dB"),
    "rgap.3": _methods(
        ["leaky-relu 1", "leaky-relu 2"], "copa", statistics.fmean, whole=True, unit="dB"
    ),
    "variants.1": _methods(_HIDDEN[:3], "copa", _range),
    "variants.2": _methods(_HIDDEN[3:], "copa", _range, unit="dB"),
    "denoised.1.a": _gain(min, whole=False),
    "denoised.1.b": _gain(max, whole=False),
    "denoised.2": _methods(_EXACT, "copa denoised", whole=True, unit="dB"),
    "copa-prior.1.a": _methods(_HIDDEN, "copa-prior", whole=True),
    "copa-prior.1.b": _methods(_HIDDEN, "copa-prior", max, whole=True, unit="dB"),
}

# Deployed: metrics that its tables show, with their titles.
_SHOWN = {
    "psnr": "PSNR",
    "ssim": "SSIM",
    "ssim-registered": "SSIM, registered",
    "recogniser": "recogniser",
    "semsim:demo": "SemSim (demo)",
}
_STEPS = ("step", "few", "many", "momentum", "step-long", "norm-step", "norm-few")
_SMALLER = ("smaller-step", "smaller-few")
_NOISED = ("clip", "noise-0.003", "noise-0.01")
_OVER = (
    *("ssim", "ssim-registered", "ssim-uniform", "semsim:demo", "recogniser"),
    *("psnr-registered", "psnr", "mse"),
)


def read_deployed(folder: Path) -> Read:
    """Return the rows, how metrics rank the pictures of each, and how they rank all sets."""
    rows, within, over = (
        pd.read_csv(folder / f"{one}.csv", dtype={"clearer": str})
        for one in ("rows", "within", "over")
    )
    control = rows["row"] == CONTROL
    rows = indexed(rows, rows["title"].where(control, rows["row"]))
    counts = [[float(n) for n in one.split(", ") if n] for one in rows["clearer"].fillna("")]
    rows["clearer_first"] = [one[0] if one else np.nan for one in counts]
    rows["clearer_last"] = [one[-1] if one else np.nan for one in counts]
    rows["clearer_all"] = list(map(sum, counts))
    rows["n_each"] = rows["n_attacked"] / rows["n_sets"]
    tables = {
        "rows": rows,
        "within": indexed(within, within["row"] + ", " + within["metric"]),
        "over": indexed(over, over["metric"]),
    }
    return Read(tables, ended(folder / "rows.csv"))


def deployed_rows(tables: Tables) -> Claim:
    """Return what comes back in each way to share, and of the controls."""
    metrics = [name for name in _SHOWN if name != "ssim-registered"]
    rows = []
    for row in rows_of(tables["rows"]):
        control = row["row"] == CONTROL
        told = [_target(row), _promise(row), _percent(row["people"])]
        clearer = "–" if control else str(row["clearer"])
        title = f"*{row['title']}*" if control else row["title"]
        rows.append([title, *told, clearer, *(number(row[one], 2) for one in metrics)])
    head = [
        "row",
        "target right",
        "ε at δ",
        "people",
        "above the no-attack baseline, of either target",
    ]
    return table([*head, *(_SHOWN[one] for one in metrics)], rows)


def deployed_within(tables: Tables) -> Claim:
    """Return how each metric ranks the pictures of a row as the simulated annotators do."""
    titles = tables["within"].drop_duplicates("row").set_index("row")["row_title"]
    return table(
        ["row", *_SHOWN.values()],
        [
            [title, *(_cell(row_of(tables, "within", f"{row}, {one}"), "rho") for one in _SHOWN)]
            for row, title in titles.items()
        ],
    )


def _ranks(
    rows: Iterable[str], metrics: Iterable[str], of: Callable[[Sequence[float]], float]
) -> At:
    metrics = list(metrics)
    return At("within", tuple(f"{row}, {one}" for row in rows for one in metrics), "rho", of)


def _cleared(rows: str | tuple[str, ...], which: str, of: Callable = max, n: str = "n_each") -> At:
    return At("rows", rows, f"clearer_{which}", of, n=n, whole=True)


_NAMED = ("psnr", "ssim", "semsim:demo")
DEPLOYED: Mapping[str, Find] = {
    "table.1": deployed_rows,
    "table.2": deployed_within,
    "gradient.1": percent("rows", "gradient", "people"),
    "gradient.2": percent("rows", "norm-gradient", "people"),
    "gradient.3.a": _ranks(("gradient", "norm-gradient"), _NAMED, min),
    "gradient.3.b": _ranks(("gradient", "norm-gradient"), _NAMED, max),
    "steps.1.a": percent("rows", _STEPS, "people"),
    "steps.1.b": percent("rows", _STEPS, "people", max),
    "two-pictures.1": percent("rows", _SMALLER, "people", max),
    "two-pictures.2": _cleared(_SMALLER, "first"),
    "two-pictures.3": percent("rows", _SMALLER[0], "accuracy_low"),
    "two-pictures.4.a": _ranks(_SMALLER, _SHOWN, min),
    "two-pictures.4.b": _ranks(_SMALLER, _SHOWN, max),
    "two-pictures.5.a": _cleared(_SMALLER[0], "last"),
    "two-pictures.5.b": _cleared(_SMALLER[1], "last"),
    **{
        f"dp-sgd.1.{end}": percent("rows", row, "people")
        for end, row in zip("abc", _NOISED, strict=True)
    },
    "dp-sgd.2.a": _cleared(_NOISED, "all", min, "n_attacked"),
    "dp-sgd.2.b": _cleared(_NOISED, "all", max, "n_attacked"),
    "dp-sgd.3.a": _ranks(_NOISED, _NAMED[1:], min),
    "dp-sgd.3.b": _ranks(_NOISED, _NAMED[1:], max),
    "noise-tenth.1.a": percent("rows", "noise-0.1", "people"),
    "noise-tenth.1.b": _cleared("noise-0.1", "all", n="n_attacked"),
    "noise-tenth.2.a": percent("rows", "noise-0.1", "accuracy_low"),
    "noise-tenth.2.b": percent("rows", "noise-0.1", "accuracy_high"),
    "noise-tenth.3": At("rows", "noise-0.1", "epsilon", whole=True),
    "noise-1.1": percent("rows", "noise-1.0", "accuracy_high"),
    "noise-1.2": At("rows", "noise-1.0", "epsilon"),
    **{
        f"over-sets.{name}": At("over", name, "rho", ends=("rho_bw_low", "rho_bw_high"))
        for name in _OVER
    },
}


def read_pbpfl(folder: Path) -> Read:
    """Return trainings, costs and messages of a client, what leaks, and what data say alone."""
    preset = read_record(folder / "preset.json", pbpfl.FORMAT, SettingsError)
    trained = []
    for path in sorted(folder.glob("*-seed*.json")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            data = path.stem.partition(f"-{cell['network']}-k")[0]
            trained.append({"data": data, **cell})
    costs = json.loads((folder / "costs.json").read_text(encoding="utf-8"))
    told = [costs[name] for name in ("FedAvg", "PBPFL", pbpfl.AGAIN)]
    plain, masked, again = (one["seconds"] for one in told)
    figures = {
        "PBPFL": pbpfl.cost_figures(plain, masked),
        "FedAvg again": pbpfl.cost_figures(plain, again),
        "paper": pbpfl.cost_figures(*map(pbpfl.TABLE_5.get, ("FedAvg", "PBPFL"))),  # type: ignore[arg-type]
    }
    sent = {
        way: told[1]["traffic"][f"numbers_{way}"] / told[0]["traffic"][f"numbers_{way}"]
        for way in ("down", "up")
    }
    leaks = [
        {"where": f"{one['network']}, {_state(one['round'])}", **score}
        for one in json.loads((folder / "leak.json").read_text(encoding="utf-8"))["found"]
        for score in one["scores"]
    ]
    leak, cells = pd.DataFrame(leaks), pd.DataFrame(trained)
    known = {name: preset[name] for name in ("table", "valued", "images") if preset[name]}
    gaps = cells[cells["scheme"] == "PBPFL"]["gap"].dropna()
    moves = cells[cells["scheme"] == "FedAvg-MSE"]["moved"].dropna()
    worst = {"gap": gaps.max(), "n_gap": len(gaps), "moved": moves.min(), "n_moved": len(moves)}
    tables = {
        "trainings": cells,
        "costs": pd.DataFrame(figures, index=list(pbpfl._COSTS)),
        "sent": pd.DataFrame([{**sent, "n": 1}], index=["ratio"]),
        "leak": indexed(leak, leak["where"] + ", " + leak["arm"]),
        "ends": pd.DataFrame([worst], index=["worst"]),
        "data": pd.DataFrame(list(known.values()), index=list(known), columns=["name"]),
        "commonest": pd.DataFrame(
            [{"share": pbpfl.commonest_share(preset["images"])}], index=["images"]
        ),
        "classes": indexed(*_classes(cells, preset["images"])),
    }
    return Read(tables, ended(folder / "leak.json"))


def _state(number: int) -> str:
    return "untrained" if number == 1 else "trained"


def _stem(data: str) -> str:
    return data.partition(":")[0]


def _classes(cells: pd.DataFrame, images: str) -> tuple[pd.DataFrame, list[str]]:
    """Return mean accuracies by scheme and number of clients, and their names."""
    own = cells[(cells["data"] == _stem(images)) & cells["accuracy"].notna()]
    found = own.groupby(["scheme", "clients"], sort=False)["accuracy"].mean().to_frame()
    return found, [f"{scheme}, {clients}" for scheme, clients in found.index]


def _by_clients(own: pd.DataFrame, column: str, digits: int, times: float = 1) -> list[str]:
    return [
        spread(times * own[own["clients"] == clients][column], digits) for clients in pbpfl.CLIENTS
    ]


def _heads() -> list[str]:
    return [f"K={clients}" for clients in pbpfl.CLIENTS]


def pbpfl_errors(tables: Tables) -> Claim:
    """Return Table 2: squared errors of PBPFL, and the paper's of both schemes."""
    rows = []
    for name, paper in (("table", "bank marketing"), ("valued", "retina images")):
        if name not in tables["data"].index:
            continue
        data = str(tables["data"].loc[name, "name"])
        cells = tables["trainings"]
        own = cells[(cells["data"] == _stem(data)) & (cells["scheme"] == "PBPFL")]
        printed = pbpfl.TABLE_2[paper]
        for network, part in own.groupby("network", sort=False):
            theirs = [
                " / ".join(f"{one:.3f}" for one in printed.get((str(network), scheme), ()))
                for scheme in ("FedAvg-MSE", "PBPFL")
            ]
            mean = f"{pbpfl.mean_error(data):.3f}"
            what = [_stem(data), network, *_by_clients(part, "squared_error", 3), mean]
            rows.append([*what, *theirs, paper])
    head = ["data", "network", *_heads(), "training mean for all"]
    return table([*head, "paper, FedAvg", "paper, PBPFL", "of"], rows)


def pbpfl_accuracies(tables: Tables) -> Claim:
    """Return Table 4: accuracies in per cent, and the paper's."""
    cells, data = tables["trainings"], str(row_of(tables, "data", "images")["name"])
    own = cells[(cells["data"] == _stem(data)) & cells["accuracy"].notna()]
    rows = []
    for (network, scheme), part in own.groupby(["network", "scheme"], sort=False):
        printed = pbpfl.TABLE_4.get((str(network), str(scheme)), ())
        told = " / ".join(f"{one:.2f}" for one in printed)
        rows.append([network, scheme, *_by_clients(part, "accuracy", 1, 100), told])
    return table(["network", "scheme", *_heads(), "paper (skin images)"], rows)


def pbpfl_costs(tables: Tables) -> Claim:
    """Return Table 5 as ratios, beside FedAvg against itself."""
    costs = tables["costs"]
    rows = [
        [name, *(f"{round(value, 2) + 0.0:.2f}" for value in values)]
        for name, *values in costs.itertuples()
    ]
    return table(["", *costs.columns], rows)


def pbpfl_leaks(tables: Tables) -> Claim:
    """Return SSIM, PSNR and counts of each party, by network and training."""
    leak = tables["leak"]
    where = list(dict.fromkeys(leak["where"]))
    rows = []
    for arm in dict.fromkeys(leak["arm"]):
        own = leak[leak["arm"] == arm].set_index("where")
        rows.append([ARMS[arm].title, *(_leaked(own, one) for one in where)])
    return table(["who looks, and how", *where], rows)


def _leaked(own: pd.DataFrame, where: str) -> str:
    if where not in own.index:
        return "begins with a convolution"
    row = own.loc[where]
    loud = "exact" if np.isinf(row["psnr"]) else f"{row['psnr']:.1f}"
    shapes = f" ({row['by_shapes']})" if row["by_shapes"] else ""
    return f"{row['ssim']:.2f} ({loud}), {row['clearer']}{shapes}"


_LFP, _LBP, _, _MU, _PP, _LONGER = pbpfl._COSTS
_RATIOS = (_LFP, _LBP, _MU)


def _seen(arm: str, where: str | tuple[str, ...], column: str, of: Callable = min) -> At:
    places = (where,) if isinstance(where, str) else where
    names = tuple(f"{one}, {arm}" for one in places)
    return At("leak", names, column, of, n="images", units="pictures", whole=column != "ssim")


_LENET, _MLP = "lenet, untrained", "mlp-3, untrained"
_ZERO_SUM = "server-zero-sum"
PBPFL: Mapping[str, Find] = {
    "table.1": pbpfl_errors,
    "table.2": pbpfl_accuracies,
    "table.3": pbpfl_costs,
    "table.5": pbpfl_leaks,
    "training.4.a": At("classes", "FedAvg-MSE, 1", "accuracy", times=100),
    "training.4.b": At("classes", "FedAvg-CE, 1", "accuracy", times=100, unit="%"),
    "seconds.1.a": At("costs", _LFP, "PBPFL"),
    "seconds.1.b": At("costs", _LBP, "PBPFL"),
    "seconds.1.c": At("costs", _MU, "PBPFL"),
    "seconds.2.a": At("costs", _RATIOS, "FedAvg again"),
    "seconds.2.b": At("costs", _RATIOS, "FedAvg again", max),
    "seconds.3": At("costs", _LONGER, "PBPFL"),
    "seconds.4": At("costs", _PP, "PBPFL"),
    "extra-terms.1": _seen(REFERENCE, _LENET, "ssim"),
    "extra-terms.2": _seen(REFERENCE, _MLP, "ssim"),
    "extra-terms.3.a": _seen(REFERENCE, _LENET, "clearer"),
    "extra-terms.3.b": _seen(REFERENCE, _MLP, "clearer"),
    "extra-terms.4.a": _seen(RESCALED, _LENET, "ssim"),
    "extra-terms.4.b": _seen(RESCALED, _MLP, "ssim"),
    "extra-terms.5.a": _seen(_ZERO_SUM, (_LENET, "lenet, trained", _MLP), "clearer"),
    "extra-terms.5.b": _seen(_ZERO_SUM, (_LENET, "lenet, trained", _MLP), "clearer", max),
    "extra-terms.6": _seen(_ZERO_SUM, "mlp-3, trained", "clearer"),
    "commonest": At("commonest", "images", "share", times=100),
}
# What holds at any size, from the smallest preset.
PBPFL_SMOKE: Mapping[str, Find] = {
    "training.1": At("ends", "worst", "gap", n="n_gap", units="trainings"),
    "training.2": At("ends", "worst", "moved", n="n_moved", units="trainings"),
    "sent.1.a": At("sent", "ratio", "down", n="n", units="round of each scheme"),
    "sent.1.b": At("sent", "ratio", "up", n="n", units="round of each scheme"),
    "uplink": _seen("uplink-closed-form", _MLP, "ssim"),
}

# SemSim: the metrics that its tables show, and the data sets that stand in for the paper's.
_METRICS = ("PSNR", "MSE", "SSIM", "SemSim")
_DATA = {"a": "symbols", "b": "digits", "c": "faces"}
_SCALE_OF = {"a": "CIFAR-100", "b": "Caltech-101", "c": "CelebA"}
_MORE = {"d": "DLG", "e": "GradAttack", "f": "CAFE"}


def read_semsim(folder: Path) -> Read:
    """Return Tables 1 and 2, votes, SemSims beside their controls, and the figures' numbers."""
    cells = pd.read_csv(folder / "tables.csv", keep_default_na=False, na_values=[""])
    told = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    rows = cells.drop_duplicates("row").set_index("row")
    votes = pd.concat(map(pd.read_parquet, sorted((folder / "simulated").glob("*[!s].parquet"))))
    made = votes[votes["kind"] == "reconstruction"].groupby("study")["recognised"].mean()
    by_name = {str(name).lower(): share for name, share in made.items()}
    rows["reconstructions"] = [
        next((share for name, share in by_name.items() if name.endswith(f"-{row.lower()}")), np.nan)
        for row in rows.index
    ]
    best = cells[cells["rho"].notna()].sort_values("rho").groupby("row")["metric"].last()
    learned = [_learned(one) for one in told["learned"] if "why" not in one]
    studies = [
        {"figure": figure, **row, "auc": next(v for k, v in row.items() if "AUC" in k)}
        for figure, own in told["studies"].items()
        for row in own
    ]
    study = pd.DataFrame(studies)
    pictures = pd.DataFrame(told["pictures"])
    pictures["order"] = [(one or {}).get("auc", np.nan) for one in pictures["ordered"]]
    titles = ["SemSim" if one.startswith("SemSim") else one for one in pictures["title"]]
    counted = {
        "best": int((best == "SemSim").sum()),
        "rows": len(rows),
        "ahead": sum(one["worse"] < 0 for one in learned),
        "learned": len(learned),
    }
    tables = {
        "cells": indexed(cells, cells["row"] + ", " + cells["metric"]),
        "rows": rows,
        "learned": indexed(pd.DataFrame(learned), [str(one["left_out"]) for one in learned]),
        "pictures": indexed(pictures, titles),
        "studies": indexed(study, study["figure"] + ", " + study["value"].astype(str)),
        "counted": pd.DataFrame([counted], index=["all"]),
    }
    return Read(tables, ended(folder / "results.json"))


def _learned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one SemSim beside its controls; worse: the AUC of its initial weights less its own."""
    judged = row["held_out"]
    own = semsim_row(judged)["metric"]
    named = {one["metric"]: one for one in judged["metrics"]}
    found: dict[str, Any] = {"left_out": row["left_out"]}
    for title, name in {"own": own, "start": f"{own}.{START}", "shuffled": SHUFFLED}.items():
        if name in named:
            numbers = (named[name]["rho"], named[name]["tau"], auc_of(judged, name))
            sizes = [np.nan if one is None else abs(one) for one in numbers]
            found |= dict(
                zip((f"{title}_{one}" for one in ("rho", "tau", "auc")), sizes, strict=True)
            )
    start = next((one for one in judged["against"] if one["control"] == START), None)
    ends = [np.nan if start is None else start[one] for one in ("difference", "low", "high")]
    difference, low, high = (np.nan if one is None else one for one in ends)
    found |= {"worse": -difference, "worse_low": -high, "worse_high": -low}
    return {**found, "votes": found["own_auc"] - found.get("shuffled_auc", np.nan)}


def semsim_cells(column: str, with_data: bool) -> Find:
    """Return a statistic of each row of Tables 1 and 2, its interval, and the paper's cell."""

    def find(tables: Tables) -> Claim:
        rows = []
        for name, row in tables["rows"].iterrows():
            cells = [row_of(tables, "cells", f"{name}, {metric}") for metric in _METRICS]
            told = [
                f"{number(one[column], 2)} {interval(one[f'{column}_low'], one[f'{column}_high'])} "
                f"/ {one[f'paper_{column}']:.2f}"
                for one in cells
            ]
            data = [row["data"]] if with_data else []
            rows.append([f"{row['table']}: {name}", *data, *told])
        return table(["row", *(["data"] if with_data else []), *_METRICS], rows)

    return find


def semsim_learned(tables: Tables) -> Claim:
    """Return every SemSim beside its initial weights and what shuffled votes teach."""
    rows = [
        [
            name,
            *(
                ", ".join(number(row.get(f"{who}_{one}", np.nan), 2) for one in _SIGNS)
                for who in ("own", "start", "shuffled")
            ),
        ]
        for name, row in tables["learned"].to_dict("index").items()
    ]
    return table(["not seen", "SemSim: ρ, τ, AUC", "initial weights", "on shuffled votes"], rows)


def semsim_pictures(tables: Tables) -> Claim:
    """Return how metrics agree with people, with each other, and within originals."""
    rows = []
    for name, row in tables["pictures"].to_dict("index").items():
        ends = f"{number(row['least'], 2)} to {number(row['most'], 2)}"
        order = row["ordered"] or {}
        shown = f"{number(row['order'], 2)} {interval(order.get('low'), order.get('high'))}"
        rows.append([name, number(abs(row["rho"]), 2), ends, shown])
    return table(
        ["metric", "ρ with people", "with the other metrics", "ordered as people say"], rows
    )


def semsim_studies(tables: Tables) -> Claim:
    """Return |ρ|, |τ| and AUC of the trainings of Figures 7 and 9, a line a training."""
    rows = [
        [
            row["figure"],
            row["value"],
            *(number(row[one], 2) for one in ("SemSim |ρ|", "SemSim |τ|", "auc")),
        ]
        for row in tables["studies"].to_dict("records")
    ]
    return table(["figure", "value", "ρ", "τ", "AUC"], rows)


_SIGNS = ("rho", "tau", "auc")
_PIXELS = ("PSNR", "MSE", "SSIM", "SemSim")
SEMSIM: Mapping[str, Find] = {
    "at-small-with-simulated-votes.1": semsim_cells("rho", with_data=True),
    "at-small-with-simulated-votes.2": semsim_cells("tau", with_data=False),
    "at-small-with-simulated-votes.3": semsim_learned,
    "at-small-with-simulated-votes.4": semsim_pictures,
    "at-small-with-simulated-votes.5": semsim_studies,
    **{
        f"recognised.originals.{end}": percent("rows", row, "jury_originals")
        for end, row in _SCALE_OF.items()
    },
    **{
        f"recognised.reconstructions.{end}": percent("rows", row, "reconstructions")
        for end, row in {**_SCALE_OF, **_MORE}.items()
    },
    **{
        f"worse.start.{end}": At("learned", name, "worse", ends=("worse_low", "worse_high"))
        for end, name in zip("abc", ("digits", "faces", "symbols"), strict=True)
    },
    "ahead.shuffled": At("learned", "symbols", "votes"),
    "best.1": At("counted", "all", "best", n="rows", whole=True),
    "best.2": At("counted", "all", "ahead", n="learned", whole=True),
    "backbones.1": At("studies", "7B, lenet", "SemSim |ρ|"),
    "backbones.2": At("studies", "7B, resnet18", "SemSim |ρ|"),
    "metrics.1.a": At("pictures", _PIXELS, "least"),
    "metrics.1.b": At("pictures", _PIXELS, "most", max),
    "metrics.2.a": At("pictures", _PIXELS, "rho", lambda found: min(map(abs, found))),
    "metrics.2.b": At("pictures", _PIXELS, "rho", lambda found: max(map(abs, found))),
    "metrics.3": At("pictures", "PSNR", "order"),
    "metrics.4": At("pictures", "SemSim", "order"),
}

PARTS: Mapping[str, Part] = {
    "copa": Part(
        paper="copa",
        makes=("reproduce copa --image-dir {images}/test --count 16 --seeds 3 --out {folder}",),
        read=read_copa,
        where=COPA,
    ),
    "deployed": Part(
        paper="deployed",
        makes=("reproduce deployed --workers 1 --out {folder}",),
        read=lambda folder: read_deployed(folder / "small"),
        where=DEPLOYED,
    ),
    "pbpfl": Part(
        paper="pbpfl",
        makes=("reproduce pbpfl --out {folder}",),
        read=lambda folder: read_pbpfl(folder / "small"),
        where=PBPFL,
    ),
    "pbpfl-smoke": Part(
        paper="pbpfl",
        makes=("reproduce pbpfl --preset smoke --out {folder}",),
        read=lambda folder: read_pbpfl(folder / "smoke"),
        where=PBPFL_SMOKE,
    ),
    "semsim": Part(
        paper="semsim",
        makes=("reproduce semsim --votes simulated --workers 1 --device cpu --out {folder}",),
        read=lambda folder: read_semsim(folder / "small"),
        where=SEMSIM,
    ),
    **papers_split.PARTS,
}


def make(part: Part, folder: Path, images: str) -> None:
    """Run the reproduction of a part, which goes on where it ended."""
    for name, order in part.orders.items():
        write_text(folder / name, order.replace("{images}", str(Path(images).resolve())))
    for words in part.makes:
        typed = shlex.split(words.format(folder=folder, images=images))
        subprocess.run([sys.executable, str(ROOT / "app.py"), *typed], check=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("part", choices=PARTS)
    options.add_argument("folder", type=Path, help="of the finished run")
    options.add_argument("--make", action="store_true", help="run the reproduction first")
    options.add_argument("--images", default="", help="CIFAR-10's, for what needs pictures")
    options.add_argument("--results", help="NAME.json in benchmarks/results; else the paper's")
    given = options.parse_args()
    part = PARTS[given.part]
    if given.make:
        make(part, given.folder, given.images)
    try:
        tables, made = part.read(given.folder)
        found = part.found(tables)
    except (LookupError, OSError) as error:
        options.error(str(error))
    with Finds(given.results or part.paper) as finds:
        for key, claim in found.items():
            finds.claims[key] = replace(claim, run=made)
            print(key, *(claim.value if isinstance(claim.value, list) else [claim.value]), sep="\n")


if __name__ == "__main__":
    main()
