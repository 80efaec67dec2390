"""`semsim-studio campaign …`: plan, run and watch a grid of targets and attacks."""

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.attacks.as_text import with_preset
from semsim.base.cli.options import changes_of, given, settings_of, taking
from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DataOption,
    DeviceOption,
    Json,
    SchedulerOption,
    TerminalBar,
    WorkersOption,
    list_text,
    say,
    show,
    told_errors,
)
from semsim.base.errors import SemsimError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import go_on, read_job
from semsim.base.sets.reader import read_set
from semsim.base.words import counted
from semsim.campaign.campaign_job import (
    CampaignOrder,
    jobs_of,
    load,
    look_in,
    plan_of,
    queue_campaign,
)
from semsim.campaign.forecast import Outlook, measure, outlook
from semsim.campaign.plan import Campaign, has_own
from semsim.campaign.store import PieceStore
from semsim.campaign.vertical import VerticalRun, attack_vertical
from semsim.campaign.watch import campaign_in, campaigns, read_campaign
from semsim.cli.job import do
from semsim.datasets.on_disk import ROOT
from semsim.targets.train_settings import read_training
from semsim.weights import CHECKPOINTS

NO_JUDGE = (
    "No distractor model has read these images, so their studies draw the wrong words of candidate "
    "lists at random; `semsim-studio distractors apply --name M --set SET` makes one read them."
)
_UNNAMED = Campaign(name="")
app = typer.Typer(no_args_is_help=True, help="A grid of targets and attacks, on many machines.")

_Change = Callable[[Campaign], Campaign]


@taking(
    changes=changes_of(
        Campaign,
        name="name",
        datasets="dataset",
        architectures="architecture",
        strategies="strategy",
        attacks="attack",
        shares="share",
        images="images",
        image_ids="image_id",
        seeds="seed",
        trainings="train_variant",
        together="together",
        threat="threat",
    )
)
def changed(
    changes: dict[str, Any],
    file: Annotated[
        Path | None,
        typer.Option(help="JSON file of a campaign; other options replace its values."),
    ] = None,
    attack_preset: Annotated[
        str | None,
        typer.Option(help="Preset of the attacks that name none: paper, code or fast."),
    ] = None,
    train: Annotated[str, typer.Option(help="Training of the targets, as epochs=2,lr=0.05.")] = "",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--own-network",
            help="Target of your own, as package.module:Class. Class(num_classes=…, "
            "image_size=(height, width)) makes a torch.nn.Module from normalised images "
            "(N, 3, height, width) to logits (N, num_classes). Repeatable.",
        ),
    ] = None,
) -> _Change:
    """Return the change these options make to a campaign; with a file, to that in the file."""
    look_in(Path.cwd())
    if model:
        from semsim.targets.own import own_network  # with torch

        own = tuple(map(own_network, model))
        changes = {**changes, "architectures": (*changes.get("architectures", ()), *own)}

    def change(base: Campaign) -> Campaign:
        if file is not None:
            base = campaign_in(file, by_hand=True)
            if base.train.seed != _UNNAMED.train.seed:
                raise SettingsError(
                    f"{file}: a training has no seed of its own here; leave it out of train and "
                    "give seeds."
                )
        made = replace(base, **changes, train=read_training(train, base.train, "--seed"))
        if not made.name:
            raise typer.BadParameter("give the campaign a name with --name")
        return replace(
            made,
            attacks=tuple(with_preset(made.attacks, attack_preset)),
            datasets=tuple(map(_from_anywhere, made.datasets)),
        )

    return change


def _from_anywhere(dataset: str) -> str:
    """The text of a data set with its folder as a whole path: others read it from elsewhere."""

    def whole(found: re.Match[str]) -> str:
        root = found["root"].rstrip()
        kept = root == ROOT or Path(root).is_absolute()
        return found[0] if kept else f"{found[1]}{Path(root).resolve()}"

    return re.sub(r"((?<=[:,])\s*root\s*=\s*)(?P<root>[^,]+)", whole, dataset)


@app.command("plan")
@taking(change=changed)
def plan_command(
    change: _Change,
    data_dir: DataOption = DATA,
    workers: Annotated[int, typer.Option(min=1, help="Processes to share the time among.")] = 1,
    as_json: Json = False,
) -> None:
    """Count the cells of a campaign and estimate its time and disk from a few steps."""
    plan = plan_of(change(_UNNAMED))
    with TerminalBar("Measuring") as bar:
        estimate = measure(plan, data_dir, load, bar)
    view = outlook(plan, data_dir, estimate)
    show({"plan": asdict(view)}, outlook_text(view, workers), as_json)


def machines(
    scheduler: SchedulerOption = "",
    workers: WorkersOption = 0,
    device: DeviceOption = "auto",
) -> dict[str, Any]:
    """Return the fields of an order that name its machines."""
    return {"scheduler": scheduler, "workers": workers, "device": device}


@taking(on=machines)
def ordered(
    on: dict[str, Any],
    data_dir: DataOption = DATA,
    judge: Annotated[
        str,
        typer.Option(
            "--distractor-model",
            help="Distractor model that reads the images at the end, see `distractors list`.",
        ),
    ] = "",
    checkpoints: CheckpointsOption = CHECKPOINTS,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what broke with a traceback.")
    ] = False,
) -> CampaignOrder:
    """Return the order that the options make, of a campaign that is still to be named."""
    return CampaignOrder(
        campaign=_UNNAMED,
        data=data_dir,
        judge=judge,
        checkpoints=checkpoints,
        retry=retry_failed,
        **on,
    )


@app.command("run")
@taking(change=changed, order=ordered)
def run_command(
    ctx: typer.Context,
    change: _Change,
    order: CampaignOrder,
    job: Annotated[
        Path | None, typer.Option(help="Job to resume, as `job` does, with these options.")
    ] = None,
) -> None:
    """Train the targets and attack the images; Ctrl-C leaves it so that it can be resumed.

    The exit code is 0 where every image has a picture, 1 where some have, 3 where none has.
    """
    if job is None:
        campaign = change(order.campaign)
        imports = Path.cwd() if has_own(campaign) else None
        order = replace(order, campaign=campaign, imports=imports)
        outcome = do(go_on(queue_campaign(order, order.data / "jobs")))
    else:
        typed = given(ctx, order, data="data_dir", retry="retry_failed")
        outcome = do(
            read_job(job), lambda kept: replace(kept, campaign=change(kept.campaign), **typed)
        )
    raise typer.Exit(exit_code(outcome))


_VERTICAL = settings_of(VerticalRun, called={"batch": "batch-size"})


@app.command("vertical")
@taking(run=_VERTICAL)
def vertical_command(run: VerticalRun, data_dir: DataOption = DATA) -> None:
    """Attack vertical federated learning, in which everybody holds a part of every image."""
    with TerminalBar(run.name) as bar:
        folder = attack_vertical(run, data_dir, bar)
    ok = read_set(folder).manifest["status"].eq("ok")
    typer.echo(f"{ok.sum()} ok / {(~ok).sum()} failed\n{folder}")
    raise typer.Exit(exit_code({"n_ok": ok.sum(), "n_failed": (~ok).sum(), "undone": {}}))


_STATUS = ("name", "state", "ok", "failed", "left", "images")


@app.command("status")
def status_command(
    name: Annotated[str | None, typer.Option(help="Campaign; all of them without it.")] = None,
    data_dir: DataOption = DATA,
    as_json: Json = False,
) -> None:
    """Show the progress of campaigns."""
    look_in(Path.cwd())
    with told_errors():
        names = campaigns(data_dir) if name is None else [name]
        rows = [_status(data_dir, one, alone=name is not None) for one in names]
    lines = [["–" if one is None else str(one) for one in row.values()] for row in rows]
    show({"campaigns": rows}, list_text(_STATUS, lines) if rows else "", as_json)
    if not rows:
        say(f"No campaign has begun below {data_dir}.")


def outlook_text(view: Outlook, workers: int) -> str:
    """Return what a plan takes, as lines of text."""
    lines = [
        f"{counted(view.cells, 'image')} to attack, {view.cells_done:,} of them done",
        f"{counted(view.targets, 'target')}, {view.to_train:,} of them still to train",
    ]
    if view.seconds is not None:
        hours = f"{view.seconds / 3600:.1f} h" if view.seconds > 5400 else f"{view.seconds:.0f} s"
        lines.append(f"about {hours} of one core; divide by the number of workers ({workers})")
    return "\n".join([*lines, f"{view.disk / 1e6:.1f} MB of disk at most"])


def exit_code(outcome: dict[str, Any] | None) -> int:
    """0 where every image of a campaign has a picture, 1 where some have or it was stopped, 3."""
    if outcome is None:
        return 1
    if outcome["n_failed"] == 0 and not outcome["undone"]:
        return 0
    return 1 if outcome["n_ok"] else 3


def campaign_summary(outcome: dict[str, Any]) -> str:
    """Return what `run_plan` returned, as lines of text."""
    lines = [
        f"{outcome['n_ok']} ok / {outcome['n_failed']} failed "
        f"({outcome['computed']} computed now, {outcome['reused']} done before)",
        *map(_set_line, outcome["sets"]),
    ]
    lines += outcome.get("judged", ())
    if not outcome.get("judge") and outcome["sets"]:
        lines.append(NO_JUDGE)
    if outcome["n_crashed"]:
        lines.append(
            f"{outcome['n_crashed']} broke with a traceback, which is in the sets' tables; "
            "--retry-failed tries them again."
        )
    for why, count in outcome["undone"].items():
        lines.append(f"{count} could not be computed and are tried again next time: {why}")
    return "\n".join(lines)


def _set_line(folder: str) -> str:
    found = read_set(Path(folder))
    return f"{folder}  target {found.target_words}  attacker {found.attacker_words}"


def _status(data: Path, name: str, *, alone: bool) -> dict[str, Any]:
    """Return the progress of a campaign.

    Args:
        alone: It alone is asked for, so its error is raised.
    """
    try:
        plan = plan_of(read_campaign(data, name))
    except SemsimError as error:
        if alone:
            raise
        return dict(zip(_STATUS, (name, f"unknown: {error}", *[None] * 4), strict=True))
    store = PieceStore(data)
    keys = [cell.key for cell in plan.cells]
    left = set(store.cells.missing(keys))
    failed = sum(not store.cells.read(key).result.ok for key in keys if key not in left)
    found = jobs_of(data / "jobs", name)
    state = jobs.state(found[0]).value if found else "never started as a job"
    done = len(keys) - len(left) - failed
    return dict(zip(_STATUS, (name, state, done, failed, len(left), len(keys)), strict=True))
