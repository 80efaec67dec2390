"""`python -m semsim learn`: train SemSim from a file of labels."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.jobs.folders import Job, read_job
from semsim.jobs.terminal import carry_out
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.initial import absolute
from semsim.learning.orders import Order, queue_training
from semsim.learning.session import STATE_FILE, learn
from semsim.progress import Report
from semsim.scores.scoring import read_labels
from semsim.terminal import DATA, told_errors
from semsim.weights import CHECKPOINTS


def learn_command(
    labels: Annotated[Path, typer.Option(help="Parquet file of labels, exported from a study.")],
    name: Annotated[str, typer.Option(help="Name of the checkpoint to make.")],
    checkpoints: Annotated[Path, typer.Option(help="Folder it goes to.")] = CHECKPOINTS,
    data_dir: Annotated[Path, typer.Option(help="Folder in which jobs are kept.")] = DATA,
    job: Annotated[Path | None, typer.Option(help="Job to carry out or to resume.")] = None,
    study: Annotated[str, typer.Option(help="Whose votes they are, for people to read.")] = "",
    preset: Annotated[
        str, typer.Option(help="Settings to begin with: small, pooled, paper, code.")
    ] = "small",
    backbone: Annotated[
        str | None, typer.Option(help="resnet50, resnet18, lenet, or another.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="What to start from: scratch, imagenet, or a file.")
    ] = None,
    small_stem: Annotated[bool | None, typer.Option(help="Stem for images of about 32×32.")] = None,
    input_size: Annotated[int | None, typer.Option(help="Pixels a side of the input.")] = None,
    normalize: Annotated[bool | None, typer.Option(help="Features of length one.")] = None,
    loss: Annotated[str | None, typer.Option(help="triplet, contrastive or pooled.")] = None,
    margin: Annotated[float | None, typer.Option(help="Margin of the loss.")] = None,
    ordering: Annotated[
        str | None, typer.Option(help="majority, or votes: shares of votes order and weight.")
    ] = None,
    mining: Annotated[str | None, typer.Option(help="random or semi-hard.")] = None,
    identity_weight: Annotated[
        float | None, typer.Option(help="Weight of originals staying near to themselves.")
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of SGD.")] = None,
    lr_drops: Annotated[
        str | None, typer.Option(help="Shares of the epochs after which it falls by ten: .5,.8")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Triplets a step.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs.")] = None,
    momentum: Annotated[float | None, typer.Option(help="Momentum of SGD.")] = None,
    nesterov: Annotated[bool | None, typer.Option(help="Nesterov's momentum.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Weight decay.")] = None,
    triplets_per_original: Annotated[
        int | None, typer.Option(help="Triplets drawn from each original in each epoch.")
    ] = None,
    batch_norm: Annotated[
        str | None, typer.Option(help="trained, or frozen at that of the starting weights.")
    ] = None,
    augmentation: Annotated[
        str | None, typer.Option(help="crop-flip, joint (an original's images alike) or none.")
    ] = None,
    validation_fraction: Annotated[
        float | None, typer.Option(help="Share of the originals held out.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without a better held-out AUC; 0 never stops.")
    ] = None,
    collapse_patience: Annotated[
        int | None, typer.Option(help="Collapsed epochs before it stops; 0 never stops.")
    ] = None,
    mixed_precision: Annotated[
        bool | None, typer.Option(help="The network in bfloat16, for GPUs.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
) -> None:
    """Train SemSim on what people said; Ctrl-C leaves it so that it can be resumed."""
    given = {
        "backbone": backbone,
        "weights": None if weights is None else absolute(weights),
        "small_stem": small_stem,
        "input_size": input_size,
        "normalize": normalize,
        "loss": loss,
        "margin": margin,
        "ordering": ordering,
        "mining": mining,
        "identity_weight": identity_weight,
        "lr": lr,
        "lr_drops": None if lr_drops is None else _shares(lr_drops),
        "batch_size": batch_size,
        "epochs": epochs,
        "momentum": momentum,
        "nesterov": nesterov,
        "weight_decay": weight_decay,
        "triplets_per_original": triplets_per_original,
        "batch_norm": batch_norm,
        "augmentation": augmentation,
        "validation_fraction": validation_fraction,
        "patience": patience,
        "collapse_patience": collapse_patience,
        "mixed_precision": mixed_precision,
        "seed": seed,
        "device": device,
    }
    with told_errors():
        order = Order(
            name=name,
            checkpoints=checkpoints.resolve(),
            settings=settings_from(preset, given),
            study=study,
        )
        table = read_labels(labels)
        asked = queue_training(order, table, data_dir / "jobs") if job is None else read_job(job)
        _carry_out(asked, lambda report: learn(order, table, asked.folder, report))


def settings_from(preset: str, given: dict[str, Any]) -> TrainSettings:
    """The settings of `preset` with those of `given` that are not None in their place."""
    changes = {key: value for key, value in given.items() if value is not None}
    return replace(PRESETS[preset], **changes)


def _carry_out(job: Job, work: Callable[[Report], dict[str, Any]]) -> None:
    outcome = carry_out(job, work)
    if outcome is None:
        return
    (job.folder / STATE_FILE).unlink(missing_ok=True)  # the result is written: nothing to resume
    if outcome["stopped"]:
        typer.echo(f"Stopped after epoch {outcome['epochs']}: {outcome['stopped']}")
    for warning in outcome["warnings"]:
        typer.echo(f"Warning: {warning}", err=True)
    typer.echo(_summary(outcome))


def _summary(outcome: dict[str, Any]) -> str:
    votes = "simulated votes" if outcome["simulated"] else "people's votes"
    lines = [
        f"Wrote {outcome['checkpoint']}",
        f"Trained on {votes}: {outcome['n_triplets']} triplets of {outcome['n_originals']} "
        f"originals, {outcome['epochs']} epochs.",
    ]
    accuracy = outcome["results"].get("validation_accuracy")
    if accuracy is not None:
        held_out = round(outcome["results"]["n_held_out"])
        lines.append(f"Right in {accuracy:.1%} of the triplets of {held_out} held-out originals.")
    return "\n".join(lines)


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected numbers with commas, such as .5,.8") from None
