"""Places of the Ensembler paper's results in the data folder of its reproduction."""

import json
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from benchmarks.claims import Claim
from benchmarks.finding import At, Find, Part, Read, Tables, ended, indexed, less, percent, spread
from benchmarks.finding import table as table_claim
from semsim.base.cli.terminal import rows_of
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState
from semsim.papers.ensembler import table_lines, table_rows
from semsim.papers.ensembler_sentences import (
    PAPER_ROWS,
    paper_scores,
    read_lines,
    sentence_summary,
)
from semsim.systems.split.plan import KIND, make_network, plan_of
from semsim.systems.split.summary import count_text

PAPER = "ensembler"
ATTACKS = ("adaptive", "adaptive-aligned")  # the published one, and the one that aligns
TITLES = {"none": "none", "single": "Single", "ensembler": "Ensembler"}
_ENSEMBLER, _NONE = "Ensembler, adaptive", "NONE"
_CUTS = ("1, 1", "2, 1", "2, 2", "4, 1", "4, 2")  # of Figure 2, that are spoken of
_SEEDS = "--defence-seed 0 --defence-seed 1 --defence-seed 2"
_BOTH = "--attack adaptive --attack adaptive-aligned"
_VGG16 = f"--dataset symbols --network vgg16:width=8,h=1,t=1 {_BOTH} {_SEEDS}"


def outcome_of(data: Path, name: str) -> tuple[dict, Path]:
    """Return what the newest finished experiment of this name found, and the file that has it.

    name: of its plan; a * stands for the preset.
    """
    for job in jobs.list_jobs(data / "jobs", KIND):
        if jobs.state(job) is JobState.DONE and fnmatchcase(plan_of(job).name, name):
            return jobs.result(job), job.folder / "result.json"
    raise LookupError(f"No finished experiment {name} lies in {data}.")


def _baselines(outcome: Mapping) -> pd.DataFrame:
    return pd.DataFrame([outcome["baselines"]], index=["guess"])


def read_table(data: Path, name: str, number: int) -> Read:
    """Return rows of a table of the paper: of the published attack, and aligned."""
    outcome, path = outcome_of(data, name)
    rows = pd.DataFrame(outcome["rows"])
    found = {}
    for row in table_rows(rows, number):
        for title, side in ((row["row"], "here"), (f"{row['row']}, aligned", "aligned")):
            if row[side] is not None:
                found[title] = row[side]
    systems = pd.DataFrame(list(found.values()), index=list(found))
    return Read({"rows": rows, "systems": systems, "guess": _baselines(outcome)}, ended(path))


def read_cuts(data: Path, name: str) -> Read:
    """Return rows of a figure of split points, named by both cuts."""
    outcome, path = outcome_of(data, name)
    found = pd.DataFrame(outcome["summary"])
    networks = [make_network(text) for text in found["network"]]
    cuts = [f"{network.h}, {network.t}" for network in networks]
    kinds = ["" if attack == ATTACKS[0] else ", aligned" for attack in found["attack"]]
    names = [f"{cut}{kind}" for cut, kind in zip(cuts, kinds, strict=True)]
    return Read({"cuts": indexed(found, names)}, ended(path))


def read_trainings(data: Path, *names: str) -> Read:
    """Return rows of attacks on each trained system, and what they get in all of a defence."""
    outcomes = [outcome_of(data, name) for name in names]
    rows = pd.concat([pd.DataFrame(one["rows"]) for one, _ in outcomes], ignore_index=True)
    rows["defence"] = rows["defence"].str.partition(":")[0].replace(TITLES)
    attacked = rows[rows["attack"].notna()]
    shares = attacked.groupby(["defence", "attack"], sort=False).agg(
        ssim=("ssim", "mean"), clearer=("clearer", "sum"), judged=("judged", "sum")
    )
    shares["share"] = shares["clearer"] / shares["judged"]
    each = attacked.groupby(["defence", "attack", "defence_seed"], sort=False)
    one_by_one = each["clearer"].sum() / each["judged"].sum()
    for end in ("min", "max"):
        shares[f"share_{end}"] = one_by_one.groupby(level=[0, 1], sort=False).agg(end)
    best = attacked.groupby(["defence", "attack"], sort=False)["ssim"].apply(
        lambda ssim: [*ssim.nlargest(2), float("nan")]
    )
    shares["best"], shares["second"] = best.str[0], best.str[1]
    shares = indexed(shares, [f"{d}, {a}" for d, a in shares.index])
    tables = {"rows": rows, "defences": shares, "guess": _baselines(outcomes[0][0])}
    return Read(tables, ended(*(path for _, path in outcomes)))


def read_sentences(data: Path) -> Read:
    """Return rows of Table 4 by defence and attack, and what guesses get."""
    paths = sorted((data / "split").glob("ensembler-*-table4.json"))
    if not paths:
        raise LookupError(f"No Table 4 lies in {data}.")
    path = max(paths, key=lambda one: one.stat().st_mtime)
    outcome = json.loads(path.read_text(encoding="utf-8"))
    rows = sentence_summary(outcome["rows"])
    names = [f"{one['defence'].partition(':')[0]}, {one['attack']}" for one in rows_of(rows)]
    guesses = pd.DataFrame(outcome["guesses"]).T
    best = guesses.max().rename("best").to_frame().T
    return Read({"read": indexed(rows, names), "guesses": guesses, "best": best}, ended(path))


def paper_table(number: int) -> Find:
    """Return a table of the paper as the command writes it."""
    return lambda tables: Claim(table_lines(tables["rows"], number))


def cuts_table(tables: Tables) -> Claim:
    """Return a line a pair of cuts, each attack with its scores and its count."""
    found = dict(zip(tables["cuts"].index, rows_of(tables["cuts"]), strict=True))
    rows = []
    for cut in (name for name in found if not name.endswith("aligned")):
        cells = []
        for name in (cut, f"{cut}, aligned"):
            row = found[name]
            cells += [f"{row['ssim_mean']:.2f} ({row['psnr_mean']:.1f})", count_text(row)]
        rows.append([cut, *cells])
    head = "units of the client at the start (h), at the end (t)"
    scores = "SSIM (PSNR, dB)"
    return table_claim(
        [head, f"published attack: {scores}", "clearer", f"aligned attack: {scores}", "clearer"],
        rows,
    )


def trainings_table(tables: Tables, each: bool) -> Claim:
    """Return a line a trained system. each: every attack by itself, else mean ± deviation."""

    def told(values: Iterable[float], digits: int) -> str:
        if each:
            return ", ".join(f"{value:.{digits}f}" for value in values)
        return spread(values, digits)

    rows = []
    for (defence, seed), own in tables["rows"].groupby(["defence", "defence_seed"], sort=False):
        facts = own.iloc[0]
        cells = [f"{facts['accuracy']:.3f}{'' if facts['valid'] else ', invalid'}"]
        for attack in ATTACKS:
            runs = own[own["attack"] == attack]
            if runs.empty:
                cells += [""] * 4
                continue
            counted = runs[["clearer", "by_shapes", "judged"]].sum()
            cells += [told(runs["ssim"], 3), told(runs["psnr"], 1 if each else 2)]
            cells += [told(runs["shadow_accuracy"], 2), count_text(dict(counted))]
        rows.append([f"{defence}, {seed}", *cells])
    known = tables["guess"].loc["guess"]
    blank = [""] * 6
    grey, mean = (
        [f"{known[f'{who}_ssim']:.3f}", f"{known[f'{who}_psnr']:.2f}"] for who in ("grey", "mean")
    )
    rows += [["*a grey picture*", "", *grey, *blank], ["*the mean public one*", "", *mean, *blank]]
    columns = ["SSIM", "PSNR, dB", "shadow right", "clearer"]
    head = [f"{who} attack: {columns[0]}" for who in ("published", "aligned")]
    return table_claim(
        ["defence, training", "accuracy", head[0], *columns[1:], head[1], *columns[1:]], rows
    )


def sentences_table(tables: Tables) -> Claim:
    """Return Table 4 as the command writes it, with the paper's sentences by the same measures."""
    guesses = tables["guesses"]
    scores = [paper_scores(row) for row in PAPER_ROWS]
    theirs = [
        ", ".join(f"{one[name]:.2f}" for one in scores)
        for name in ("words_shadow", "words_client", "bleu_client")
    ]
    paper = ["*the paper's two sentences*", *["–"] * 5, theirs[0], theirs[1], "–", theirs[2]]
    known = dict(zip(map(str, guesses.index), rows_of(guesses), strict=True))
    return Claim(read_lines(rows_of(tables["read"]), known, paper))


def _system(rows: str | tuple[str, ...], column: str, of: Callable = min, **more: object) -> At:
    return At("systems", rows, column, of, **more)  # type: ignore[arg-type]


def _scores(key: str, row: str, counted: bool = False) -> dict[str, Find]:
    """Return SSIM, PSNR and perhaps the count of a row, as the keys a, b and c below `key`."""
    found: dict[str, Find] = {
        f"{key}.a": _system(row, "ssim_mean"),
        f"{key}.b": _system(row, "psnr_mean", unit="dB"),
    }
    return found | ({f"{key}.c": _clearer(row)} if counted else {})


def _clearer(rows: str, table: str = "systems") -> At:
    return At(table, rows, "clearer", n="judged", whole=True)


def _share(row: str, column: str = "share") -> At:
    return percent("defences", f"{row}, adaptive", column)


def _lost(times: float = -100) -> At:
    """Return the points of accuracy that Ensembler loses; of 100, those that it gains."""
    return _system(_ENSEMBLER, "change", times=times)


def _of_systems(rows: Iterable[str]) -> dict[str, Find]:
    """Return shares of pictures above the no-attack baseline, in per cent, of Table 1 on VGG16."""
    keys = (18, 8, 9, 10, 12)
    return {f"published-attack.{key}": _rate(row) for key, row in zip(keys, rows, strict=True)}


def _rate(*rows: str, of: Callable = min) -> Find:
    def find(tables: Tables) -> Claim:
        rates = [
            _clearer(row)(tables).value / int(_clearer(row)(tables).n)  # type: ignore[operator]
            for row in rows
        ]
        return Claim(round(100 * of(rates)), unit="%")

    return find


TABLE_1: Mapping[str, Find] = {
    "table.1": paper_table(1),
    **_scores("published-attack.1", _ENSEMBLER, counted=True),
    **_scores("published-attack.2", _NONE, counted=True),
    "published-attack.3.a": At("guess", "guess", "mean_ssim"),
    "published-attack.3.b": At("guess", "guess", "mean_psnr", unit="dB"),
    **_scores("aligned.1", f"{_ENSEMBLER}, aligned"),
    **_scores("aligned.2", f"{_NONE}, aligned"),
    "aligned.3": less(
        _system(f"{_NONE}, aligned", "psnr_mean"),
        _system(f"{_ENSEMBLER}, aligned", "psnr_mean"),
        "dB",
    ),
    "aligned.4": less(
        _system(f"{_NONE}, aligned", "ssim_mean"), _system(f"{_ENSEMBLER}, aligned", "ssim_mean")
    ),
    "accuracy.1": _lost(),
}
TABLE_2: Mapping[str, Find] = {
    "table.2": paper_table(2),
    "published-attack.4": _clearer(_NONE),
    "published-attack.15": _clearer("Single"),
    "published-attack.16": _clearer(_ENSEMBLER),
    **_scores("aligned.5", f"{_ENSEMBLER}, aligned"),
    "aligned.5.c": _system(f"{_NONE}, aligned", "ssim_mean"),
    "aligned.5.d": _system(f"{_NONE}, aligned", "psnr_mean", unit="dB"),
    "aligned.6": less(
        _system(f"{_NONE}, aligned", "ssim_mean"), _system(f"{_ENSEMBLER}, aligned", "ssim_mean")
    ),
    "accuracy.2": _lost(),
}
TABLE_3: Mapping[str, Find] = {
    "table.9": paper_table(3),
    "cuts.6": percent("systems", _NONE, "accuracy"),
    "cuts.14": percent("systems", _ENSEMBLER, "accuracy"),
    "cuts.7": _system(_NONE, "ssim_mean"),
    "cuts.8": At("guess", "guess", "grey_ssim"),
    "cuts.9": _clearer(_NONE),
    "cuts.15": _clearer(_ENSEMBLER),
    "accuracy.3": _lost(100),
}
VGG16: Mapping[str, Find] = {
    "table.6": paper_table(1),
    **_of_systems((_NONE, "Shredder", "Single", "DR-single", _ENSEMBLER)),
    "published-attack.11.a": _rate("DR-ensemble (best SSIM)", "DR-ensemble (best PSNR)"),
    "published-attack.11.b": _rate("DR-ensemble (best SSIM)", "DR-ensemble (best PSNR)", of=max),
    "published-attack.13": _system(_ENSEMBLER, "ssim_mean"),
    "published-attack.14": _system("Single", "ssim_mean"),
    "accuracy.4": _lost(100),
}
FIGURE_2: Mapping[str, Find] = {
    "table.4": cuts_table,
    "cuts.1.a": At("cuts", _CUTS[0], "ssim_mean"),
    "cuts.1.b": At("cuts", _CUTS[0], "psnr_mean", unit="dB"),
    "cuts.2": _clearer(_CUTS[0], "cuts"),
    "cuts.10": _clearer(f"{_CUTS[0]}, aligned", "cuts"),
    **{
        f"cuts.{key}": At("cuts", tuple(f"{c}, aligned" for c in cuts), "clearer", of, whole=True)
        for key, cuts, of in (
            ("11.a", _CUTS[1:3], min),
            ("11.b", _CUTS[1:3], max),
            ("12", _CUTS[3:], max),
        )
    },
}
FIGURE_3: Mapping[str, Find] = {
    "table.3": cuts_table,
    "cuts.3": At("cuts", "1, 1, aligned", "ssim_mean"),
    "cuts.4": _clearer("1, 1, aligned", "cuts"),
    "cuts.5": At("cuts", "3, 2, aligned", "ssim_mean"),
    "cuts.13": _clearer("3, 2, aligned", "cuts"),
}
TRAININGS: Mapping[str, Find] = {
    "table.5": lambda tables: trainings_table(tables, each=False),
    "published-attack.5": _share("none"),
    "published-attack.6": _share("Single"),
    "published-attack.7": _share("Ensembler"),
    "published-attack.17.a": _share("Ensembler", "share_min"),
    "published-attack.17.b": _share("Ensembler", "share_max"),
}
_PUBLISHED = {who: At("defences", f"{title}, adaptive", "ssim") for who, title in TITLES.items()}
PHOTOGRAPHS: Mapping[str, Find] = {
    "table.7": lambda tables: trainings_table(tables, each=True),
    "photographs.1": _PUBLISHED["none"],
    "photographs.2": _PUBLISHED["ensembler"],
    "photographs.3": less(_PUBLISHED["none"], _PUBLISHED["ensembler"]),
    "photographs.4": _PUBLISHED["single"],
    "photographs.5": _clearer("Ensembler, adaptive", "defences"),
    "photographs.6.a": At("defences", "Ensembler, adaptive", "second"),
    "photographs.6.b": At("defences", "Ensembler, adaptive", "best"),
    "photographs.7": At("defences", "Ensembler, adaptive-aligned", "ssim"),
}
SENTENCES: Mapping[str, Find] = {
    "table-4-sentences": sentences_table,
    "sentences.1": percent("read", "none, adaptive", "words_mean"),
    "sentences.2": percent("read", "ensembler, adaptive", "words_mean"),
    "sentences.3": percent("best", "best", "words"),
    "sentences.4": percent("read", "none, counting", "words_mean"),
    "sentences.5": percent("read", "ensembler, counting", "words_mean"),
}


_PHOTOGRAPHS = {
    "name": "photographs",
    "dataset": "folder:root={images}",
    "networks": ["vgg16:width=8,h=1,t=1"],
    "defences": ["none", "single", "ensembler:bodies=4,selected=2"],
    "attacks": ["adaptive", "adaptive-aligned"],
    "train": {
        **{"epochs": 20, "ensemble_epochs": 40, "batch_size": 128, "lr": 0.004},
        "ensemble_lr": 0.02,
    },
    "shadow": {
        **{"epochs": 15, "decoder_epochs": 10, "lr": 0.004, "batch_size": 128},
        "start": "identity",
    },
    "defence_seeds": [0, 1, 2],
    "attack_seeds": [0, 1, 2],
    "images": 48,
}


def _part(words: str, read: Callable[[Path], Read], where: Mapping[str, Find]) -> Part:
    makes = (f"reproduce ensembler --preset small {words} --data-dir {{folder}}",)
    return Part(paper=PAPER, makes=makes, read=read, where=where)


def _table(number: int, name: str, words: str, where: Mapping[str, Find]) -> Part:
    return _part(words, lambda folder: read_table(folder, f"ensembler-*-{name}", number), where)


def _figure(number: int, where: Mapping[str, Find]) -> Part:
    name = f"ensembler-*-figure{number}"
    return _part(f"--paper-figure {number}", lambda folder: read_cuts(folder, name), where)


PARTS: Mapping[str, Part] = {
    "ensembler-table-1": _table(1, "table1", f"{_SEEDS} --defence-seed 3", TABLE_1),
    "ensembler-table-2": _table(2, "table2", f"--paper-table 2 {_SEEDS} --defence-seed 3", TABLE_2),
    "ensembler-table-3": _table(3, "table3", "--paper-table 3", TABLE_3),
    "ensembler-table-4": _part("--paper-table 4", read_sentences, SENTENCES),
    "ensembler-figure-2": _figure(2, FIGURE_2),
    "ensembler-figure-3": _figure(3, FIGURE_3),
    "ensembler-vgg16": _table(1, "table1-vgg16", "--vgg16 --defence-seed 0", VGG16),
    "ensembler-trainings": Part(
        paper=PAPER,
        makes=(
            f"split run --name none --defence none --epochs 58 {_VGG16} --data-dir {{folder}}",
            "split run --name vgg --defence single --defence ensembler:bodies=4,selected=2 "
            f"{_VGG16} --data-dir {{folder}}",
        ),
        read=lambda folder: read_trainings(folder, "none", "vgg"),
        where=TRAININGS,
    ),
    "ensembler-photographs": Part(
        paper=PAPER,
        makes=("split run --file {folder}/photographs.json --data-dir {folder}",),
        read=lambda folder: read_trainings(folder, "photographs"),
        where=PHOTOGRAPHS,
        orders={"photographs.json": json.dumps(_PHOTOGRAPHS, indent=1)},
    ),
}
