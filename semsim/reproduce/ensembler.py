"""`python -m semsim reproduce ensembler`: Table 1 of the Ensembler paper, on data at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer

from semsim.datasets.folder import Folder
from semsim.errors import SettingsError
from semsim.jobs.terminal import carry_out
from semsim.split.plan import PRESETS, SplitPlace, SplitPlan, make_dataset
from semsim.split.run import run_split
from semsim.split.split_job import queue_split
from semsim.split.summary import choices, cost_text, spread_text, summary, verdict
from semsim.terminal import DATA, Json, show_told, told_errors
from semsim.weights import CHECKPOINTS


class Cell(NamedTuple):
    """A row of the paper's Table 1. change: of accuracy, in points; psnr in dB."""

    row: str
    defence: str
    attack: str
    choice: str
    change: float
    ssim: float
    psnr: float


# CIFAR-10, ResNet-18, N = 10, P = 4.
TABLE_1: tuple[Cell, ...] = (
    Cell("NONE", "none", "adaptive", "", 0.0, 0.4363, 12.2678),
    Cell("Shredder", "shredder", "adaptive", "", -5.68, 0.5359, 10.4033),
    Cell("Single", "single", "adaptive", "", 2.15, 0.3921, 7.5266),
    Cell("DR-single", "dr-single", "adaptive", "", 2.70, 0.3453, 6.6674),
    Cell("DR-ensemble (best SSIM)", "dr-ensemble", "one-body", "best SSIM", 1.42, 0.373, 7.3493),
    Cell("DR-ensemble (best PSNR)", "dr-ensemble", "one-body", "best PSNR", 1.42, 0.3232, 7.9598),
    Cell("Ensembler, adaptive", "ensembler", "adaptive", "", -2.13, 0.0555, 5.981),
    Cell("Ensembler, N=1 (best SSIM)", "ensembler", "one-body", "best SSIM", -2.13, 0.2889, 4.865),
    Cell("Ensembler, N=1 (best PSNR)", "ensembler", "one-body", "best PSNR", -2.13, 0.2221, 5.5348),
)
# Rows of ours that the paper does not have.
_OURS = (
    ("Ensembler, N=1 (attacker's choice)", "ensembler", "one-body", "attacker's choice"),
    ("Ensembler, N=1 (mean of N)", "ensembler", "one-body", "mean of N"),
    ("Ensembler, oracle that knows P", "ensembler", "oracle", ""),
)


def reproduce_ensembler(
    preset: Annotated[str, typer.Option(help="small: an hour of one core. paper: a GPU.")] = (
        "small"
    ),
    images: Annotated[
        Path | None, typer.Option(help="Folder of images, <class>/<image>, instead of the digits.")
    ] = None,
    size: Annotated[int, typer.Option(help="Pixels a side of those images.")] = 32,
    defence_seed: Annotated[
        list[int] | None, typer.Option(help="Seed of a defence's training. Repeatable.")
    ] = None,
    attack_seed: Annotated[
        list[int] | None, typer.Option(help="Seed of an attack. Repeatable.")
    ] = None,
    data_dir: Annotated[Path, typer.Option(help="Data folder.")] = DATA,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes that train and attack.")] = 1,
    as_json: Json = False,
) -> None:
    """Ensembler, Table 1: every defence under the paper's attack and under an aligned one."""
    with told_errors():
        plan = _plan(preset, images, size)
        seeds = {"defence_seeds": defence_seed, "attack_seeds": attack_seed}
        given: dict[str, Any] = {name: tuple(v) for name, v in seeds.items() if v}
        place = SplitPlace(data=data_dir, checkpoints=CHECKPOINTS, device=device)
        plan = replace(plan, **given)
        job = queue_split(plan, place, workers)
        outcome = carry_out(job, lambda report: run_split(plan, place, report, workers))
    if outcome is not None:
        rows = table_rows(pd.DataFrame(outcome["rows"])) if as_json else []
        show_told(rows, report_text(outcome), as_json)


def report_text(outcome: Mapping[str, Any]) -> str:
    """Table, baselines, cost and verdict of an experiment, as Markdown."""
    rows = pd.DataFrame(outcome["rows"])
    known = outcome["baselines"]
    lines = [
        *table_lines(rows, TABLE_1),
        "",
        "The paper: CIFAR-10, ResNet-18, N=10, P=4, one run. Here: mean ± standard deviation over "
        "defence and attack seeds. Best SSIM and best PSNR are chosen by the originals, which no "
        "attacker can do; the attacker's choice is the body whose shadow classifies best.",
        f"Without any feature: grey image SSIM {known['grey_ssim']:.3f}, PSNR "
        f"{known['grey_psnr']:.2f} dB; mean public image SSIM {known['mean_ssim']:.3f}, PSNR "
        f"{known['mean_psnr']:.2f} dB.",
        "",
        *verdicts(rows),
        "",
        *[cost_text(cost) for cost in outcome["costs"]],
    ]
    return "\n".join(lines)


def table_rows(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `table_lines`: the paper's cells, ours, and ours under the aligned attack.

    rows: columns `semsim.split.summary.COLUMNS`.
    """
    table = summary(rows)
    named: list[tuple[str, dict[str, float] | None, tuple[str, str, str]]] = [
        (
            cell.row,
            {"change": cell.change, "ssim": cell.ssim, "psnr": cell.psnr},
            (cell.defence, cell.attack, cell.choice),
        )
        for cell in TABLE_1
    ]
    named += [(row, None, (defence, attack, choice)) for row, defence, attack, choice in _OURS]
    return [
        {
            "row": row,
            "paper": paper,
            "here": _found(table, key),
            "aligned": _found(table, (key[0], f"{key[1]}-aligned", key[2])),
        }
        for row, paper, key in named
    ]


def table_lines(rows: pd.DataFrame, cells: Sequence[Cell]) -> list[str]:
    """The paper's rows with ours beside them, then rows that only we have, as Markdown.

    rows: columns `semsim.split.summary.COLUMNS`.
    """
    lines = [
        "| row | paper: change | SSIM | PSNR "
        "| here: change | n | SSIM | PSNR | aligned: SSIM | PSNR |",
        "| --- " * 10 + "|",
    ]
    table = summary(rows)
    for cell in cells:
        paper = [f"{cell.change:+.2f}", f"{cell.ssim:.3f}", f"{cell.psnr:.2f}"]
        lines.append(_line(cell.row, paper, table, (cell.defence, cell.attack, cell.choice)))
    lines += [_line(row, ["–"] * 3, table, (d, a, c)) for row, d, a, c in _OURS]
    return lines


def verdicts(rows: pd.DataFrame) -> list[str]:
    """What the experiment says about the paper's claims, in words."""
    names = list(dict.fromkeys(rows["defence"]))
    ensembler = next((name for name in names if name.startswith("ensembler")), None)
    if ensembler is None:
        return ["Ensembler was not among the defences."]
    lines = [
        verdict(rows, ensembler, other, attack)
        for attack in ("adaptive", "adaptive-aligned")
        for other in ("none", "single")
    ]
    invalid = rows[~rows["valid"].astype(bool)].drop_duplicates(["defence", "defence_seed"])
    told = [
        f"Invalid: {row['defence']}, seed {row['defence_seed']}, is {-100 * row['change']:.1f} "
        "points below the undefended accuracy."
        for row in invalid.to_dict("records")
    ]
    return [*lines, _alignment(rows, ensembler), *told]


def _alignment(rows: pd.DataFrame, defence: str) -> str:
    """What the aligned attack gains over the published one on `defence`."""
    chosen = choices(rows[rows["defence"] == defence])
    means = chosen.groupby("attack")[["ssim", "psnr"]].mean() if len(chosen) else pd.DataFrame()
    if not {"adaptive", "adaptive-aligned"} <= set(means.index):
        return "The aligned attack was not run beside the published one."
    gain = means.loc["adaptive-aligned"] - means.loc["adaptive"]
    return (
        f"Aligned to the statistics of what the client sends, the adaptive attack on {defence} "
        f"gains {gain['psnr']:+.2f} dB and {gain['ssim']:+.3f} SSIM over the published one."
    )


def _line(row: str, paper: Sequence[str], table: pd.DataFrame, key: tuple[str, str, str]) -> str:
    plain = _found(table, key)
    aligned = _found(table, (key[0], f"{key[1]}-aligned", key[2]))
    ours = ["not run", "0", "–", "–"]
    if plain is not None:
        change = f"{100 * plain['change']:+.2f}" + ("" if plain["valid"] else " (invalid)")
        ours = [
            change,
            str(plain["n"]),
            spread_text(plain, "ssim", 3),
            spread_text(plain, "psnr", 2),
        ]
    stronger = ["–", "–"]
    if aligned is not None:
        stronger = [spread_text(aligned, "ssim", 3), spread_text(aligned, "psnr", 2)]
    return f"| {' | '.join([row, *paper, *ours, *stronger])} |"


def _found(table: pd.DataFrame, key: tuple[str, str, str]) -> dict[Any, Any] | None:
    defence, attack, choice = key
    names = table["defence"].str.partition(":")[0]
    mine = table[(names == defence) & (table["attack"] == attack) & (table["choice"] == choice)]
    if mine.empty:
        mine = table[(names == defence) & (table["n"] == 0) & ~table["valid"].astype(bool)]
    return None if mine.empty else dict(mine.iloc[0])


def _plan(preset: str, images: Path | None, size: int) -> SplitPlan:
    if preset not in PRESETS:
        raise SettingsError(f"preset is one of {', '.join(PRESETS)}; got {preset!r}.")
    plan = replace(PRESETS[preset], name=f"ensembler-{preset}")
    if images is None:
        folder = make_dataset(plan.dataset)
        if isinstance(folder, Folder) and not Path(folder.root).is_dir():
            raise SettingsError(
                f"The preset {preset} needs pictures: give their folder, with train/ and test/ "
                f"below it, as --images, or put it at {folder.root}."
            )
        return plan
    return replace(plan, dataset=f"folder:root={images},size={size}")
