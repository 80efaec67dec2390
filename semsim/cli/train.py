"""`semsim-studio train …`: train SemSim, judge it by what it has not seen, and study it."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from semsim.base.cli.options import taking
from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DataOption,
    DeviceOption,
    Json,
    TerminalBar,
    rows_of,
    say,
    show_told,
    text_table,
    told_errors,
)
from semsim.base.errors import SettingsError
from semsim.base.jobs.folders import go_on
from semsim.base.metric_spec import START
from semsim.base.registry import built, read_plugin
from semsim.base.storage.atomic import require_room
from semsim.base.words import counted, simulated_words, words_of_test
from semsim.cli.job import do
from semsim.datasets import DATASETS
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations import (
    STUDIES,
    LeaveOut,
    failures,
    judged_words,
    study_plan,
    study_table,
    summary,
)
from semsim.learning.ablations_run import (
    LONG,
    SHUFFLES,
    JudgedOrder,
    Material,
    Workplace,
    queue_ablation,
    queue_judged,
    read_materials,
)
from semsim.learning.advice import expectation
from semsim.learning.baselines import ABSENT, ALL, CHOICES, SHUFFLED, auc_words, verdict_of
from semsim.learning.card import NOT_STATED, card_paths, heads, learned_words, note_of, table_rows
from semsim.learning.default_checkpoint import doubt, promote
from semsim.learning.evaluation import BASELINES, auc_of, judged_of, scale_notes, scope_of
from semsim.learning.initial import absolute
from semsim.learning.pace import USUAL, pace_of, pace_words, preset_settings
from semsim.learning.pretrain import PretrainSettings, goodness_of_start, pretrain, save_start
from semsim.learning.settings import Order
from semsim.learning.splits import HoldOut, SplitCounts, count, parse_hold_out
from semsim.weights import CHECKPOINTS

app = typer.Typer(no_args_is_help=True, help="Train a SemSim and evaluate it.")

_Labels = Annotated[
    list[Path],
    typer.Option(help="Parquet file of labels, exported from a study. Repeatable."),
]
_Votes = Annotated[
    list[Path] | None,
    typer.Option(help="Parquet file of its votes; without, no ceiling. Repeatable."),
]
_Controls = Annotated[
    str,
    typer.Option(
        help=f"{' or '.join(CHOICES)}: start evaluates the initial weights, all also "
        f"trains on shuffled votes, {SHUFFLES} times; after {LONG // 60} minutes no further one "
        "begins."
    ),
]
_HoldOut = Annotated[
    str, typer.Option(help="original, or what is left out: architecture=convnet8 and the like.")
]
_Fraction = Annotated[
    float, typer.Option("--test-fraction", help="Share of the originals in the test.")
]
_Preset = Annotated[
    str, typer.Option("--train", help="Training, as triplet or triplet:epochs=5,backbone=lenet.")
]
_METRICS = ",".join(BASELINES)
_FAILED = ("value", "seed", "why")  # of a training of a study


def _material(labels: _Labels, votes: _Votes = None) -> Material:
    return read_materials(labels, votes or ())


def _place(
    metrics: Annotated[str, typer.Option(help="Other metrics, with commas between.")] = _METRICS,
    checkpoints: CheckpointsOption = CHECKPOINTS,
    data_dir: DataOption = DATA,
    device: DeviceOption = "auto",
) -> Workplace:
    return Workplace(
        checkpoints=checkpoints.resolve(),
        scores=(data_dir / "scores").resolve(),
        device=device,
        metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
    )


def _judged_by(
    hold_out: _HoldOut = "original",
    share: _Fraction = 0.25,
    split_seed: Annotated[int, typer.Option(help="Seed of the choice of test originals.")] = 0,
) -> HoldOut:
    return parse_hold_out(hold_out, share, split_seed)


class Called(NamedTuple):
    """Name of a training's checkpoint, whose votes it learns from, its licence and controls.

    Attributes:
        shuffles: Of the votes, where `controls` has them.
    """

    name: Annotated[str, typer.Option(help="Name of the checkpoint to make.")]
    study: Annotated[str, typer.Option(help="Whose votes they are, for people to read.")] = ""
    licence: Annotated[str, typer.Option(help="Licence on the card.")] = NOT_STATED
    controls: _Controls = ALL
    shuffles: Annotated[int, typer.Option(min=1, help="Of the votes; 19 can show p = .05.")] = (
        SHUFFLES
    )


def _settings(preset: _Preset = USUAL, controls: _Controls = ALL) -> tuple[TrainSettings, str]:
    return read_settings(preset), controls


class Varied(NamedTuple):
    """Variable of a study, its values, and the trainings of each."""

    what: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDIES)}.")]
    values: Annotated[
        str | None, typer.Option(help="Values to try, with commas; left out, the usual ones.")
    ] = None
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Trainings of each value.")] = 1


class LeftOut(NamedTuple):
    """Kind that is left out in turn, and the share of originals in the test."""

    kind: Annotated[
        str, typer.Argument(help="dataset, architecture, `strategy` (defence) or attack.")
    ] = "dataset"
    share: _Fraction = 0.25


def _kept(hold_out: _HoldOut = "original", share: _Fraction = 0.25) -> HoldOut:
    return parse_hold_out(hold_out, share)


def _jobs(place: Workplace) -> Path:
    return place.scores.parent / "jobs"


@app.command("run")
@taking(material=_material, called=Called, kept=_judged_by, place=_place)
def run_command(
    material: Material,
    called: Called,
    kept: HoldOut,
    preset: Annotated[
        str | None,
        typer.Option(
            "--train",
            help="Training, as triplet or triplet:epochs=5,backbone=lenet; left out, triplet with "
            "the largest ResNet that this machine trains in 10 minutes.",
        ),
    ] = None,
    *,
    place: Workplace,
    as_json: Json = False,
) -> None:
    """Train on one side of a split, evaluate on the other, write checkpoint and model card."""
    counts = count(material.labels, kept)
    n, pace = len(counts.training.usable), pace_of(place.device)
    settings = read_settings(preset) if preset else preset_settings(USUAL, n, pace)
    settings = replace(settings, device=place.device)
    name, study, licence, controls, shuffles = called
    order = Order(name=name, checkpoints=place.checkpoints, settings=settings, study=study)
    asked = JudgedOrder(
        order=order, hold_out=kept, licence=licence, controls=controls, shuffles=shuffles
    )
    say(counts_text(counts, kept))
    say(f"Preset: {preset or USUAL}. Network: {settings.backbone}. {pace_words(n, pace)}".rstrip())
    if controls == START:
        say(f"Control on shuffled votes: {ABSENT[SHUFFLED]}; see --controls.")
    do(go_on(queue_judged(asked, material, place, _jobs(place))), as_json=as_json)


@app.command("study")
@taking(varied=Varied, material=_material, kept=_kept, training=_settings, place=_place)
def study_command(
    varied: Varied,
    material: Material,
    kept: HoldOut,
    training: tuple[TrainSettings, str],
    *,
    place: Workplace,
    as_json: Json = False,
) -> None:
    """Vary one thing and evaluate each training: label budget, network, loss or margin."""
    (what, values, seeds), (settings, controls) = varied, training
    plan = study_plan(
        what,
        values,
        material.labels,
        settings=replace(settings, device=place.device),
        hold_out=kept,
        trainings=seeds,
    )
    plan = replace(plan, controls=controls)
    do(go_on(queue_ablation(plan, material, place, _jobs(place))), as_json=as_json)


@app.command("leave-out")
@taking(material=_material, training=_settings, left=LeftOut, place=_place)
def leave_out_command(
    material: Material,
    training: tuple[TrainSettings, str],
    left: LeftOut,
    seed: Annotated[
        int | None,
        typer.Option(help="Of trainings, and of test originals; without, that of --train."),
    ] = None,
    *,
    place: Workplace,
    as_json: Json = False,
) -> None:
    """Leave out each data set in turn, train on the others, evaluate on it: the paper's Table 1."""
    settings, controls = training
    settings = replace(settings, device=place.device)
    if seed is not None:
        settings = replace(settings, seed=seed)
    kind, share = left
    plan = LeaveOut(settings=settings, kind=kind, fraction=share, controls=controls)
    do(go_on(queue_ablation(plan, material, place, _jobs(place))), as_json=as_json)


@app.command("pretrain")
def pretrain_command(
    out: Annotated[Path, typer.Option(help="File of weights to write, .safetensors.")],
    dataset: Annotated[
        str, typer.Option(help="Data set whose training split it learns, as symbols:setting=…")
    ] = "symbols:train_per_class=120",
    settings: Annotated[
        str,
        typer.Option("--train", help="Training, as backbone=resnet50,epochs=30,seed=7."),
    ] = "",
    device: DeviceOption = "auto",
) -> None:
    """Train a classifier whose network SemSim can start from: --train pooled:weights=FILE.

    It sees the public training split alone, never an original of a study; of faces, changed
    copies of them. Run again after Ctrl-C, it goes on after the last finished epoch.
    """
    with told_errors():
        if out.suffix != ".safetensors":
            raise SettingsError(f"--out ends in .safetensors; got {out.name!r}.")
        asked = PretrainSettings(
            **read_plugin({"pretrain": PretrainSettings}, f"pretrain:{settings}").settings
        )
        source = read_plugin(DATASETS, dataset)
        data = built(DATASETS, source)
        kept = out.with_suffix(".training.pt")
        require_room(out.parent)
        with TerminalBar(unit="batch") as bar:
            model = pretrain(data("train"), asked, device=device, checkpoint=kept, report=bar)
        tested = goodness_of_start(model, data("test"))
        facts = {"dataset": source.name, "of": dict(source.settings), **tested}
        save_start(model, out, asked, facts)
        kept.unlink(missing_ok=True)
        say(f"Wrote {out}")
        typer.echo(f"Of the test images it names {words_of_test(tested)}.")
        if tested["at_chance"]:
            typer.echo("It has learned nothing to start from: try another lr, or more epochs.")


@app.command("counts")
@taking(kept=_judged_by)
def counts_command(labels: _Labels, kept: HoldOut, as_json: Json = False) -> None:
    """Print the contents and gaps of a training and its test; train nothing."""
    counts = count(read_materials(labels, ()).labels, kept)
    show_told({"counts": counts_row(counts)}, counts_text(counts, kept), as_json)


@app.command("promote")
def promote_command(
    name: Annotated[str, typer.Argument(help="Name of the checkpoint.")],
    checkpoints: CheckpointsOption = CHECKPOINTS,
    yes: Annotated[bool, typer.Option("--yes", help="Also where it lost, without asking.")] = False,
) -> None:
    """Make a checkpoint the SemSim of this workspace, the one Compare shows first.

    If it lost to MSE, PSNR, SSIM, its initial weights or the calibrated baseline by its card, or
    the card has no result, this asks for confirmation.
    """
    with told_errors():
        doubtful = doubt(checkpoints, name)
        if doubtful and not yes:
            asked = f"On what was held out, {name} {doubtful}. Use it all the same?"
            typer.confirm(asked, abort=True)
        typer.echo(f"{promote(checkpoints, name)} is the SemSim of this workspace.")


def read_settings(text: str) -> TrainSettings:
    """The settings in "triplet:epochs=5,backbone=lenet": those of a preset, some replaced."""
    name, _, rest = text.strip().partition(":")
    preset = PRESETS[name]
    changed = dict(read_plugin({"training": TrainSettings}, f"training:{rest}").settings)
    if "weights" in changed:
        changed["weights"] = absolute(changed["weights"])
    return replace(preset, **changed)


def counts_text(counts: SplitCounts, hold_out: HoldOut) -> str:
    """Return the contents and gaps of a split, and the prospects of a training on it, in lines."""
    training = counts.training
    lines = [
        f"Learns from {counted(training.n_triplets, 'triplet')} of "
        f"{counted(len(training.usable), 'original')}.",
        f"Judged by {hold_out.words}: {counts.recognisable} recognisable and "
        f"{counts.unrecognisable} unrecognisable reconstructions of "
        f"{counted(counts.n_test_originals, 'original')} by "
        f"{counted(counts.n_test_models, 'model')}; {counted(counts.unused, 'is', 'are')} on "
        "neither side.",
        expectation(counts),
        *(f"Missing: {what}." for what in counts.lacking),
    ]
    return "\n".join(line for line in lines if line)


def counts_row(counts: SplitCounts) -> dict[str, Any]:
    """Return the numbers of `counts_text`, and the gaps."""
    row = {name: value for name, value in vars(counts).items() if name != "training"}
    training = counts.training
    return {"n_triplets": training.n_triplets, "n_originals": len(training.usable), **row}


def judged_text(outcome: dict[str, Any]) -> str:
    """Return the findings of a training as text."""
    checkpoint = Path(outcome["checkpoint"])
    votes = "simulated votes" if outcome["simulated"] else "people's votes"
    stopped = outcome["stopped"]
    lines = [
        f"Trained on {votes}. {learned_words(outcome, outcome['results'])}.",
        *([f"Stopped after epoch {outcome['epochs']}: {stopped}"] if stopped else []),
        *_judged_lines(outcome),
        *(f"Warning: {warning}" for warning in outcome["warnings"]),
        f"Checkpoint: {checkpoint}",
    ]
    card = card_paths(checkpoint)[0]
    return "\n".join(lines) + (f" and {card.name}" if card.exists() else "")


def judged_parts(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return one row per metric, held out and in sample."""
    return {name: outcome[name]["metrics"] for name in ("held_out", "in_sample")}


def _judged_lines(outcome: dict[str, Any]) -> list[str]:
    held_out, learned = outcome["held_out"], outcome["in_sample"]
    return [
        f"Held out: {outcome['split']['words']}, {held_out['n_images']} images.",
        text_table(heads(held_out), table_rows(held_out)),
        *filter(None, [note_of(held_out)]),
        *verdict_of(held_out).sentences,
        "In sample (no measure of its worth):",
        text_table(heads(learned), [row for row in table_rows(learned) if "SemSim" in row[0]]),
        *filter(None, [note_of(learned)]),
        *(f"{name} is left out: {why}" for name, why in held_out["left_out"].items()),
    ]


def study_text(outcome: dict[str, Any]) -> str:
    """Return the findings of a study as text: a line a value, over all seeds."""
    kind = STUDIES[outcome["what"]]
    title = f"{kind.title} (Fig. {kind.figure}), image-level AUC on held-out images, mean of seeds"
    simulated = simulated_words(outcome["simulated"])
    said = [text_table(*study_table(outcome)), *scale_notes(outcome["rows"])]
    return "\n".join([title, *simulated, *said, *failures(outcome["rows"])])


def study_parts(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of `study_text`, and the reason of each failed training."""
    failed = [{key: row[key] for key in _FAILED} for row in outcome["rows"] if "why" in row]
    return {"values": rows_of(summary(outcome["rows"])), "failures": failed}


def left_out_text(outcome: dict[str, Any]) -> str:
    """Return the findings of leaving out one by one as text: a line a value, SemSim and the rest.

    ρ and τ are over models, signed: above 0 agrees with people. AUC is over images.
    """
    parts, rows = left_out_parts(outcome), []
    gaps = [f"Without {row['left_out']}: {row['why']}" for row in parts["failures"]]
    for row in parts["metrics"]:
        numbers = (row["rho"], row["tau"], row["auc"])
        texts = ["–" if number is None else f"{number:.3f}" for number in numbers]
        rows.append([row["left_out"], row["title"], str(row["n_models"]), *texts])
    simulated = simulated_words(outcome["simulated"])
    auc = auc_words(scope_of(*judged_of(outcome["rows"])))
    head = [f"{outcome['kind']} left out", "metric", "models", "ρ", "τ", auc]
    said = [text_table(head, rows), *scale_notes(outcome["rows"])]
    return "\n".join([*simulated, *said, *judged_words(outcome["rows"]), *gaps])


def left_out_parts(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of `left_out_text`, and the reason of each group that stayed."""
    found: list[dict[str, Any]] = []
    stayed: list[dict[str, Any]] = []
    scope = scope_of(*judged_of(outcome["rows"]))
    for row in outcome["rows"]:
        if "why" in row:
            stayed.append({"left_out": row["left_out"], "why": row["why"]})
            continue
        judged = row["held_out"]
        for one in judged["metrics"]:
            facts = {key: one[key] for key in ("metric", "title", "n_models", "rho", "tau")}
            auc = auc_of(judged, one["metric"], scope)
            found.append({"left_out": row["left_out"], **facts, "auc": auc})
    return {"metrics": found, "failures": stayed}
