"""`semsim-studio split …`: train, defend and attack networks cut between client and server."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from semsim.base.cli.options import changes_of, given, taking
from semsim.base.cli.terminal import DATA, CheckpointsOption, DataOption, DeviceOption, Json, say
from semsim.base.jobs.folders import go_on, read_job
from semsim.base.jobs.terminal import do
from semsim.systems import JOBS
from semsim.systems.split.figures import grid, write_cuts
from semsim.systems.split.plan import (
    KIND,
    PRESETS,
    ShadowAttack,
    SplitJob,
    SplitPlace,
    SplitPlan,
    SplitTrainSettings,
    plan_in,
    queue_split,
)
from semsim.systems.split.summary import answer_words, cost_text, guess_words, summary_text
from semsim.weights import CHECKPOINTS

app = typer.Typer(no_args_is_help=True, help="Split inference: defences and model inversion.")

_Change = Callable[..., SplitPlan]
_USUAL = "small"  # the preset where nothing is said


@taking(
    changes=changes_of(
        SplitPlan,
        name="name",
        dataset="dataset",
        attacks="attack",
        attack_seeds="attack_seed",
        images="images",
    ),
    train=changes_of(SplitTrainSettings, epochs="epochs"),
    shadow=changes_of(ShadowAttack, epochs="shadow_epochs", start="shadow_start"),
)
def changed(
    changes: dict[str, Any],
    train: dict[str, Any],
    shadow: dict[str, Any],
    preset: Annotated[
        str | None,
        typer.Option(help="smoke, small or paper, to begin with.", show_default=_USUAL),
    ] = None,
) -> _Change:
    """Return the change these options make to a plan, or else to the preset with usual values."""
    if preset is not None and preset not in PRESETS:
        raise typer.BadParameter(f"--preset is one of {', '.join(PRESETS)}")
    if "epochs" in shadow:  # one number for both of the attack's trainings
        shadow = {**shadow, "decoder_epochs": shadow["epochs"]}

    def change(base: SplitPlan | None = None, **usual: Any) -> SplitPlan:
        if base is not None and preset is not None:
            raise typer.BadParameter(
                "--preset is a plan to begin with, and a job or a file has one; leave it out, and "
                "give what is to change by its own option"
            )
        base = base or replace(PRESETS[preset or _USUAL], **usual)
        return replace(
            base,
            **changes,
            train=replace(base.train, **train),
            shadow=replace(base.shadow, **shadow),
        )

    return change


def placed(
    data_dir: DataOption = DATA,
    checkpoints: CheckpointsOption = CHECKPOINTS,
    device: DeviceOption = "auto",
) -> SplitPlace:
    """Return the place where an experiment is carried out."""
    return SplitPlace(data=data_dir, checkpoints=checkpoints, device=device)


_Workers = Annotated[int, typer.Option(min=1, help="Processes that train and attack.")]


@taking(
    change=changed,
    changes=changes_of(
        SplitPlan,
        networks="network",
        defences="defence",
        defence_seeds="defence_seed",
        metrics="metric",
    ),
    trained=changes_of(SplitTrainSettings, ensemble_epochs="ensemble_epochs"),
)
def changed_wholly(
    change: _Change,
    changes: dict[str, Any],
    trained: dict[str, Any],
    file: Annotated[Path | None, typer.Option(help="JSON file of a plan; others replace.")] = None,
    attack_invalid: Annotated[
        bool, typer.Option("--attack-invalid", help="Attack under-trained systems too.")
    ] = False,
) -> _Change:
    """Return the change that all options of `split run` make to a plan, or to that in a file."""

    def planned(base: SplitPlan | None = None) -> SplitPlan:
        made = change(base if file is None else plan_in(file, by_hand=True))
        invalid = attack_invalid or made.attack_invalid
        train = replace(made.train, **trained)
        return replace(made, **changes, train=train, attack_invalid=invalid)

    return planned


@app.command("run")
@taking(planned=changed_wholly, place=placed)
def run_command(
    ctx: typer.Context,
    planned: _Change,
    place: SplitPlace,
    workers: _Workers = 1,
    job: Annotated[
        Path | None, typer.Option(help="Job to resume, as `job` does, with these options.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train the systems, attack them, write sets; Ctrl-C leaves it so that it can be resumed."""
    asked = SplitJob(plan=planned(), place=place, workers=workers)
    if job is None:
        do(JOBS[KIND], go_on(queue_split(asked.plan, place, workers)), as_json=as_json)
        return

    def again(kept: SplitJob) -> SplitJob:
        there = replace(kept.place, **given(ctx, place, data="data_dir"))
        return replace(kept, plan=planned(kept.plan), place=there, **given(ctx, asked))

    do(JOBS[KIND], read_job(job), again, as_json)


def cut(
    network: Annotated[str, typer.Option(help="Network without its cuts.")] = "small",
    h: Annotated[list[int] | None, typer.Option(help="First cut. Repeatable.")] = None,
    t: Annotated[
        list[int] | None, typer.Option(help="Second cut, from the end. Repeatable.")
    ] = None,
) -> tuple[str, ...]:
    """Return a network under every pair of cuts."""
    return tuple(grid(network, h or [1, 2], t or [1]))


@app.command("study")
@taking(change=changed, place=placed, networks=cut)
def study_command(
    change: _Change,
    place: SplitPlace,
    networks: tuple[str, ...],
    workers: _Workers = 1,
    as_json: Json = False,
) -> None:
    """Compare cuts: attack the undefended network at every pair of split points (Fig. 2 and 3).

    Writes a figure for each attack, <data-dir>/split/<name>-<attack>.png and .svg.
    """
    plan = replace(
        change(name="cuts", attacks=("adaptive",)),
        networks=networks,
        defences=("none",),
        defence_seeds=(0,),
        attack_invalid=True,
    )
    outcome = do(JOBS[KIND], go_on(queue_split(plan, place, workers)), as_json=as_json)
    if outcome is not None:
        for path in write_cuts(outcome, place.data / "split", plan.name):
            say(f"Wrote {path}")


def outcome_text(outcome: dict[str, Any]) -> str:
    """Return the answer, the table, what comes without any feature, what defences cost."""
    costs = [cost_text(cost) for cost in outcome["costs"]]
    table = summary_text(pd.DataFrame(outcome["summary"]))
    lines = [*answer_words(outcome), "", table, "", guess_words(outcome["baselines"])]
    return "\n".join([*lines, *costs, *outcome["sets"]])


def outcome_parts(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of the table of an experiment, as a part of JSON."""
    return {"systems": outcome["summary"]}
