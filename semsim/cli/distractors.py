"""`semsim-studio distractors …`: train distractor models, and let them read sets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.options import taking
from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DataOption,
    DeviceOption,
    Json,
    TerminalBar,
    list_text,
    say,
    show,
    told_errors,
)
from semsim.base.jobs.folders import go_on
from semsim.cli.job import do
from semsim.distractors.apply import apply_judge
from semsim.distractors.judge_job import JudgeOrder, queue_judge
from semsim.distractors.registry import card_text, find_judge, judges, tested
from semsim.targets.train_settings import read_training
from semsim.weights import CHECKPOINTS

app = typer.Typer(
    no_args_is_help=True,
    help="Distractor models: classifiers that rank the wrong words of candidate lists.",
)


def _place(
    checkpoints: CheckpointsOption = CHECKPOINTS,
    data_dir: DataOption = DATA,
    device: DeviceOption = "auto",
) -> dict[str, Any]:
    return {"checkpoints": checkpoints, "data": data_dir, "device": device}


@app.command("train")
@taking(place=_place)
def train_command(
    dataset: Annotated[
        str, typer.Option(help="Data set whose training split it learns, as symbols:setting=…")
    ],
    name: Annotated[str, typer.Option(help="Name of the distractor model.")],
    architecture: Annotated[
        str, typer.Option(help="Network, as cnn-small:width=24.")
    ] = "cnn-small",
    train: Annotated[str, typer.Option(help="Training, as epochs=20,lr=0.05.")] = "",
    *,
    place: dict[str, Any],
) -> None:
    """Train a distractor model on clean and degraded images; repeated after Ctrl-C, it resumes."""
    training = read_training(train, JudgeOrder.train)
    order = JudgeOrder(
        name=name, dataset=dataset, architecture=architecture, train=training, **place
    )
    do(go_on(queue_judge(order, order.data / "jobs")))


@app.command("list")
def list_command(checkpoints: CheckpointsOption = CHECKPOINTS, as_json: Json = False) -> None:
    """List each distractor model, its training data and its accuracy."""
    with told_errors():
        rows = [_row(name, facts) for name, facts in judges(checkpoints).items()]
        if not rows:
            say(f"No distractor model in {checkpoints}. `distractors train` makes one.")
        heads = ["name", "dataset", "clean", "degraded"]
        found = [dict(zip(heads, row, strict=True)) for row in rows]
        show({"models": found}, list_text(heads, rows) if rows else "", as_json)


@app.command("apply")
def apply_command(
    judge: Annotated[str, typer.Option("--name", help="Name of the distractor model.")],
    sets: Annotated[
        list[Path], typer.Option("--set", help="A reconstruction set to read. Repeatable.")
    ],
    checkpoints: CheckpointsOption = CHECKPOINTS,
    device: DeviceOption = "auto",
) -> None:
    """Store the answers of a distractor model for sets in them: in all, or in none."""
    with told_errors(), TerminalBar(judge) as bar:
        found = apply_judge(find_judge(judge, checkpoints), sets, device=device, report=bar)
    for one in found:
        typer.echo(one.said)


def _row(name: str, facts: Mapping[str, Any]) -> list[str]:
    if not facts:
        return [name, "cannot be read", "-", "-"]
    return [name, facts["dataset"]["name"], tested(facts["clean"]), tested(facts["degraded"])]


told = card_text  # what a job says that is done
