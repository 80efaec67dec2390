"""`semsim-studio reproduce ensembler`: the Ensembler paper's tables and figures beside ours."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer

from semsim.base.cli.terminal import (
    DATA,
    DataOption,
    DeviceOption,
    Json,
    SchedulerOption,
    TerminalBar,
    say,
    show_told,
    told_errors,
)
from semsim.base.errors import SettingsError
from semsim.base.jobs.orders import changed
from semsim.base.jobs.terminal import carry_out
from semsim.base.registry import built, help_of
from semsim.base.storage.atomic import write_json, write_text
from semsim.datasets import DATASETS
from semsim.papers.engine import (
    DECLARED,
    PRINTED,
    PlanOption,
    Work,
    caption,
    is_here,
    markdown_line,
    of_preset,
    show_plan,
)
from semsim.papers.ensembler_sentences import (
    NUMBER,
    PLANS,
    SentencePlan,
    SentenceRun,
    run_sentences,
    sentence_parts,
    sentence_text,
)
from semsim.reporting.export import write_both
from semsim.systems.split import SPLIT_DEFENCES
from semsim.systems.split.defences import Ensembler
from semsim.systems.split.figures import Way, grid, pictures, write_cuts
from semsim.systems.split.networks import task_of
from semsim.systems.split.plan import (
    PRESETS,
    ShadowAttack,
    SplitPlace,
    SplitPlan,
    attacks_on,
    check,
    model_name,
    queue_split,
)
from semsim.systems.split.run import planned_sets, run_split, untrained
from semsim.systems.split.summary import (
    choices,
    cost_text,
    count_text,
    guess_lines,
    spread_text,
    summary,
    summary_text,
    verdict,
)
from semsim.weights import CHECKPOINTS


class PaperCell(NamedTuple):
    """Values of the paper in a row.

    Attributes:
        change: Of accuracy, in points; psnr in dB.
    """

    change: float
    ssim: float
    psnr: float


class PaperTable(NamedTuple):
    """A table of the paper; all are of ResNet-18 with ten bodies, cut at h=1 and t=1.

    Attributes:
        data: Its images.
        figure: The paper's of what came back.
        selected: P.
        sent: Shape of what the client sends.
        size: Pixels a side of an image.
        cells: By the names of `ROWS`.
    """

    data: str
    figure: int
    selected: int
    sent: str
    size: int
    cells: Mapping[str, PaperCell]


# A row without a cell in any table is ours: the paper has no such row.
_DECLARED, _PRINTED = DECLARED["ensembler"], PRINTED["ensembler"]
ROWS: Mapping[str, Way] = {name: Way(*cells) for name, cells in _DECLARED["rows"].items()}
TABLES: Mapping[int, PaperTable] = {
    number: PaperTable(
        **facts, cells={row: PaperCell(*one) for row, one in _PRINTED[facts["data"]].items()}
    )
    for number, facts in enumerate(_PRINTED["tables"], start=1)
}
FIGURES = (2, 3)


def plan_of_table(number: int, preset: str, vgg16: bool = False) -> SplitPlan:
    """Return the plan run beside a table; raises `SettingsError` for an unknown table or preset.

    Args:
        vgg16: Table 1 on a network from which the published attack gets pictures undefended.
    """
    plan = _known(number, TABLES, "table", preset)
    if vgg16 and number != 1:
        raise SettingsError(f"--vgg16 is of Table 1; got --paper-table {number}.")
    name = f"table{number}{'-vgg16' if vgg16 else ''}"
    changes = _DECLARED.get(name, {}).get(preset, {})
    return changed(plan, {"name": f"ensembler-{preset}-{name}", **changes})


def plan_of_figure(number: int, preset: str) -> SplitPlan:
    """Return the plan run for a figure of split points; raises `SettingsError` as for a table."""
    plan = _known(number, FIGURES, "figure", preset)
    sweep = _DECLARED[f"figure{number}"][preset]
    return replace(
        plan,
        name=f"ensembler-{preset}-figure{number}",
        dataset=sweep["dataset"],
        networks=tuple(grid(sweep["network"], sweep["h"], sweep["t"])),
        defences=("none",),
        attacks=("adaptive", "adaptive-aligned"),
        defence_seeds=plan.defence_seeds[:1],
        attack_seeds=plan.attack_seeds[:1],
        attack_invalid=True,
    )


def _known(number: int, numbers: Collection[int], option: str, preset: str) -> SplitPlan:
    plan = of_preset(PRESETS, preset)
    if number not in numbers:
        known = ", ".join(map(str, numbers)) + (", 4" if option == "table" else "")
        raise SettingsError(f"--paper-{option} is one of {known}; got {number}.")
    return plan


_BEHIND = "What comes back behind each defence"
_CUT_SIZE = 32  # pixels a side of images in figures of split points


def reproduce_ensembler(
    preset: Annotated[
        str, typer.Option(help="smoke: only shows that all runs. small: one core. paper: a GPU.")
    ] = "small",
    table: Annotated[
        int,
        typer.Option(
            "--paper-table",
            help="1: CIFAR-10. 2: CIFAR-100, nothing pooled. 3: CelebA-HQ, 64 px. 4: sentences.",
        ),
    ] = 1,
    figure: Annotated[
        int | None,
        typer.Option("--paper-figure", help="Instead of a table a figure of split points: 2 or 3."),
    ] = None,
    vgg16: Annotated[
        bool,
        typer.Option(
            "--vgg16",
            help="Table 1 on VGG16 cut after one unit, whose pictures the published attack gets "
            "where nothing defends them.",
        ),
    ] = False,
    images: Annotated[
        Path | None,
        typer.Option(
            "--image-dir", help="Folder of images, <class>/<image>, instead of the preset's."
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Pixels a side of those images, instead of the paper's.")
    ] = None,
    defence_seed: Annotated[
        list[int] | None, typer.Option(help="Seed of a defence's training. Repeatable.")
    ] = None,
    attack_seed: Annotated[
        list[int] | None, typer.Option(help="Seed of an attack. Repeatable.")
    ] = None,
    shadow_start: Annotated[str | None, typer.Option(help=help_of(ShadowAttack, "start"))] = None,
    data_dir: DataOption = DATA,
    device: DeviceOption = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes that train and attack.")] = 1,
    scheduler: SchedulerOption = "",
    planned: PlanOption = False,
    as_json: Json = False,
) -> None:
    """Ensembler, Tables 1 to 4: defences under the paper's attack and an aligned one, pictured.

    Writes <data-dir>/split/ensembler-<preset>-<table or figure> as PNG and SVG, Table 4 as text.
    With --scheduler all machines share the data folder, below the same path.
    """
    with told_errors():
        seeds = {"defence_seeds": defence_seed, "attack_seeds": attack_seed}
        given: dict[str, Any] = {name: some for name, some in seeds.items() if some}
        given |= {"shadow": {"start": shadow_start}} if shadow_start is not None else {}
        place = SplitPlace(data=data_dir, checkpoints=CHECKPOINTS, device=device)
        who = workers, scheduler
        if table == NUMBER and figure is None:
            if images is not None or size is not None or vgg16:
                raise SettingsError(
                    "Table 4 is of sentences; leave --image-dir, --size and --vgg16 out."
                )
            translated = changed(of_preset(PLANS, preset), given)
            if planned:
                works = sentence_works(translated, place)
                below = preset, lambda lower: sentence_works(PLANS[lower], place)
                show_plan("ensembler", works, as_json, below)
            else:
                _translation(translated, place, who, as_json)
            return
        plan = changed(_plan(preset, table, figure, vgg16, images, size), given)
        if planned:
            shape = table, figure, vgg16, None, None
            works = works_of(plan, data_dir)
            below = preset, lambda lower: works_of(_plan(lower, *shape), data_dir)
            show_plan("ensembler", works, as_json, below)
            return
        if images is None and not is_here(plan.dataset):
            raise SettingsError(
                f"The preset {preset} needs pictures: give their folder, with train/ and test/ "
                f"below it, as --image-dir, or put it at {built(DATASETS, plan.dataset).root}."
            )
        job = queue_split(plan, place, *who)
        outcome = carry_out(job, lambda report: run_split(plan, place, report, *who))
        if outcome is None:
            return
        folder = data_dir / "split"
        if figure is not None:
            found = outcome["summary"]
            show_told({"systems": found}, summary_text(pd.DataFrame(found)), as_json)
            written = write_cuts(outcome, folder, plan.name)
        else:
            rows = table_rows(pd.DataFrame(outcome["rows"]), table) if as_json else []
            show_told({"rows": rows}, report_text(outcome, table), as_json)
            drawn = pictures(outcome, ROWS, _BEHIND, TABLES[table].figure)  # as Figures 5 to 7
            written = [write_both(drawn, folder / f"{plan.name}.png")] if drawn else []
        for path in written:
            say(f"Wrote {path}")


def works_of(plan: SplitPlan, data: Path) -> list[Work]:
    """Return the trainings and attacks of an experiment, by network and defence.

    A system counts as trained once one of its reconstruction sets lies below `data`.
    """
    check(plan)
    sets, seeds, many = planned_sets(plan, data), plan.defence_seeds, len(plan.attack_seeds)
    found = []
    for network, defence in product(plan.networks, plan.defences):
        models = {model_name(network, defence, seed) for seed in seeds}
        own = [(model, folder) for model, _, folder in sets if model in models]
        there = [model for model, folder in own if folder.exists()]
        systems, attacks = (len(seeds), len(set(there))), (many * len(own), many * len(there))
        found += _works(network, defence, plan, systems, attacks)
    return found


def sentence_works(plan: SentencePlan, place: SplitPlace) -> list[Work]:
    """Return the trainings and attacks of Table 4, by defence."""
    run, found = SentenceRun(plan, place), []
    for defence in plan.defences:
        made = untrained(plan.network, defence, task_of(run.public))
        tools = [tool for arm in plan.attacks for tool in attacks_on(made, arm, plan.shadow)]
        each = product(plan.defence_seeds, tools, plan.attack_seeds)
        systems = [run.key(defence, seed) for seed in plan.defence_seeds]
        reads = [run.leak_key(defence, *one) for one in each]
        trained = len(systems) - len(run.store.systems.missing(systems))
        read = len(reads) - len(run.leaks.missing(reads))
        found += _works("Table 4", defence, plan, (len(systems), trained), (len(reads), read))
    return found


def _works(
    part: str,
    defence: str,
    plan: SplitPlan | SentencePlan,
    systems: tuple[int, int],
    attacks: tuple[int, int],
) -> list[Work]:
    """Return the rows of a defence, of so many systems and attacks, and so many that are done."""
    shield, shadow, epochs = built(SPLIT_DEFENCES, defence), plan.shadow, plan.train.epochs
    if isinstance(shield, Ensembler):  # its networks are trained apart, then together
        epochs = shield.bodies * epochs + plan.train.ensemble_epochs
    steps = attacks[0] * (shadow.epochs + shadow.decoder_epochs)
    return [
        Work(part, f"train {defence}", *systems, systems[0] * epochs),
        Work(part, f"attack {defence}", *attacks, steps),
    ]


def _translation(
    plan: SentencePlan, place: SplitPlace, who: tuple[int, str], as_json: bool
) -> None:
    """Print and write Table 4.

    Args:
        who: Workers and scheduler.
    """
    with TerminalBar(plan.name, unit="%") as bar:
        outcome = run_sentences(plan, place, bar, *who)
    text, path = sentence_text(outcome), place.data / "split" / f"{plan.name}.md"
    show_told(sentence_parts(outcome), text, as_json)
    write_text(path, f"{text}\n")
    write_json(path.with_suffix(".json"), outcome)
    say(f"Wrote {path}")


def report_text(outcome: Mapping[str, Any], number: int) -> str:
    """Table `number`, baselines, cost and verdict of an experiment, as Markdown."""
    rows, table, plan = pd.DataFrame(outcome["rows"]), TABLES[number], outcome["plan"]
    told = {**table._asdict(), "number": number, "here": plan["dataset"]}
    lines = [
        *table_lines(rows, number),
        "",
        caption("ensembler", "systems", **told, networks=", ".join(plan["networks"])),
        "",
        *guess_lines(outcome),
        *verdicts(rows),
        "",
        *map(cost_text, outcome["costs"]),
    ]
    return "\n".join(lines)


def table_rows(rows: pd.DataFrame, number: int) -> list[dict[str, Any]]:
    """Table `number`: the paper's cells, ours, and ours under the aligned attack.

    Args:
        rows: Columns `semsim.systems.split.summary.COLUMNS`. A row is there that the paper has or
            that was run.
    """
    table, cells = summary(rows), TABLES[number].cells
    found = [
        {
            "row": name,
            "paper": cells[name]._asdict() if name in cells else None,
            "here": _found(table, way),
            "aligned": _found(table, way._replace(attack=f"{way.attack}-aligned")),
        }
        for name, way in ROWS.items()
    ]
    return [row for row in found if row["paper"] or row["here"]]


def table_lines(rows: pd.DataFrame, number: int) -> list[str]:
    """`table_rows` as Markdown."""
    return [
        "| row | paper: change | SSIM | PSNR "
        "| here: change | n | SSIM | PSNR | clearer | aligned: SSIM | PSNR | clearer |",
        "| --- " * 12 + "|",
        *[_line(row) for row in table_rows(rows, number)],
    ]


def verdicts(rows: pd.DataFrame) -> list[str]:
    """Return the experiment's verdicts on the paper's claims, in words."""
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
    """Describe the gain of the aligned attack over the published one on `defence`."""
    chosen = choices(rows[rows["defence"] == defence])
    means = chosen.groupby("attack")[["ssim", "psnr"]].mean() if len(chosen) else pd.DataFrame()
    if not {"adaptive", "adaptive-aligned"} <= set(means.index):
        return "The aligned attack was not run beside the published one."
    gain = means.loc["adaptive-aligned"] - means.loc["adaptive"]
    return (
        f"Aligned to the statistics of what the client sends, the adaptive attack on {defence} "
        f"gains {gain['psnr']:+.2f} dB and {gain['ssim']:+.3f} SSIM over the published one."
    )


def _line(row: Mapping[str, Any]) -> str:
    paper, plain, aligned = row["paper"], row["here"], row["aligned"]
    cells = ["–"] * 3
    if paper is not None:
        cells = [f"{paper['change']:+.2f}", f"{paper['ssim']:.3f}", f"{paper['psnr']:.2f}"]
    ours = ["not run", "0", "–", "–", "–"]
    if plain is not None:
        change = f"{100 * plain['change']:+.2f}" + ("" if plain["valid"] else " (invalid)")
        ours = [change, str(plain["n"]), *_scores(plain)]
    stronger = ["–"] * 3 if aligned is None else _scores(aligned)
    return markdown_line([row["row"], *cells, *ours, *stronger])


def _scores(row: dict[Any, Any]) -> list[str]:
    return [spread_text(row, "ssim", 3), spread_text(row, "psnr", 2), count_text(row)]


def _found(table: pd.DataFrame, way: Way) -> dict[Any, Any] | None:
    """Return the row of a way, or that of a defence which was too poor to be attacked."""
    untried = None
    for row in table.to_dict("records"):
        name = str(row["defence"]).partition(":")[0]
        if (name, row["attack"], row["choice"]) == tuple(way):
            return row
        if untried is None and name == way.defence and row["n"] == 0 and not row["valid"]:
            untried = row
    return untried


def _plan(
    preset: str, table: int, figure: int | None, vgg16: bool, images: Path | None, size: int | None
) -> SplitPlan:
    if figure is None:
        plan = plan_of_table(table, preset, vgg16)
    elif vgg16:
        raise SettingsError("--vgg16 is of Table 1; leave it out of a figure.")
    else:
        plan = plan_of_figure(figure, preset)
    if images is not None:
        side = size or (TABLES[table].size if figure is None else _CUT_SIZE)
        return replace(plan, dataset=f"folder:root={images.resolve()},size={side}")
    if size is not None:
        raise SettingsError("--size is of the images of --image-dir; give their folder too.")
    return plan
