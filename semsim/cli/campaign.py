"""`python -m semsim campaign …`: plan, run and watch a grid of targets and attacks."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.attacks.spec import with_preset
from semsim.campaign.orders import CampaignOrder, jobs_of, load, plan_of, queue_campaign
from semsim.campaign.plan import Campaign, campaign_from
from semsim.campaign.probe import Outlook, measure, outlook
from semsim.campaign.store import PieceStore
from semsim.campaign.vertical import VerticalRun, attack_vertical
from semsim.campaign.watch import campaigns, read_campaign
from semsim.cli.job import do
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, read_job
from semsim.sets.reader import read_set
from semsim.targets.train import read_training
from semsim.terminal import DATA, TerminalBar, told_errors

app = typer.Typer(no_args_is_help=True, help="A grid of targets and attacks, on many machines.")

_File = Annotated[
    Path | None, typer.Option(help="JSON file of a campaign; other options replace its values.")
]
_Name = Annotated[str | None, typer.Option(help="Name of the campaign.")]
_Dataset = Annotated[
    list[str] | None, typer.Option(help="Data set, as symbols:train_per_class=20. Repeatable.")
]
_Architecture = Annotated[
    list[str] | None, typer.Option(help="Target, as convnet8:activation=tanh. Repeatable.")
]
_Strategy = Annotated[
    list[str] | None, typer.Option(help="Training strategy, as ats:3-1-7. Repeatable.")
]
_Attack = Annotated[
    list[str] | None, typer.Option(help="Attack, as invgrad:fast,steps=200. Repeatable.")
]
_Preset = Annotated[
    str | None, typer.Option(help="Preset of the attacks that name none: paper, code or fast.")
]
_Images = Annotated[int | None, typer.Option(help="Test images of each data set to attack.")]
_ImageId = Annotated[list[str] | None, typer.Option(help="This image instead. Repeatable.")]
_Seeds = Annotated[list[int] | None, typer.Option(help="Seed of targets and attacks. Repeatable.")]
_Train = Annotated[str, typer.Option(help="Training of the targets, as epochs=2,lr=0.05.")]
_Together = Annotated[int | None, typer.Option(help="Images attacked at once, where possible.")]
_DataDir = Annotated[Path, typer.Option(help="Data folder.")]


@app.command("plan")
def plan_command(
    name: _Name = None,
    file: _File = None,
    dataset: _Dataset = None,
    architecture: _Architecture = None,
    strategy: _Strategy = None,
    attack: _Attack = None,
    preset: _Preset = None,
    images: _Images = None,
    image_id: _ImageId = None,
    seeds: _Seeds = None,
    train: _Train = "",
    together: _Together = None,
    data_dir: _DataDir = DATA,
    workers: Annotated[int, typer.Option(help="Processes to share the time among.")] = 1,
) -> None:
    """Say how many cells a campaign has, and what time and disk it takes, from a few steps."""
    with told_errors():
        campaign = _campaign(locals())
        plan = plan_of(campaign)
        with TerminalBar("Measuring") as bar:
            estimate = measure(plan, data_dir, load, bar)
        typer.echo(outlook_text(outlook(plan, data_dir, estimate), workers))


@app.command("run")
def run_command(
    name: _Name = None,
    file: _File = None,
    dataset: _Dataset = None,
    architecture: _Architecture = None,
    strategy: _Strategy = None,
    attack: _Attack = None,
    preset: _Preset = None,
    images: _Images = None,
    image_id: _ImageId = None,
    seeds: _Seeds = None,
    train: _Train = "",
    together: _Together = None,
    data_dir: _DataDir = DATA,
    scheduler: Annotated[str, typer.Option(help="Dask scheduler, as tcp://10.0.0.1:8786.")] = "",
    workers: Annotated[int, typer.Option(help="Processes on this machine; 0: one a core.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps, on each worker.")] = "auto",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what broke with a traceback.")
    ] = False,
    job: Annotated[Path | None, typer.Option(help="Job to resume, as `job` does.")] = None,
) -> None:
    """Train the targets and attack the images; Ctrl-C leaves it so that it can be resumed.

    The exit code is 0 where every image has a picture, 1 where some have, 3 where none has.
    """
    with told_errors():
        asked = _queued(locals()) if job is None else read_job(job)
        outcome = do(asked)
    raise typer.Exit(exit_code(outcome))


@app.command("vertical")
def vertical_command(
    name: Annotated[str, typer.Option(help="The set goes to <data>/runs/<name>.")],
    dataset: Annotated[str, typer.Option(help="Data set.")] = VerticalRun.dataset,
    attack: Annotated[str, typer.Option(help="As cafe:steps=500.")] = VerticalRun.attack,
    images: Annotated[int, typer.Option(help="Images that take part.")] = VerticalRun.images,
    batch: Annotated[int, typer.Option(help="Images a round.")] = VerticalRun.batch,
    rounds: Annotated[int, typer.Option(help="Rounds; 0: twice as many as images.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    data_dir: _DataDir = DATA,
) -> None:
    """Attack vertical federated learning, in which everybody holds a part of every image."""
    with told_errors():
        run = VerticalRun(
            name=name,
            dataset=dataset,
            attack=attack,
            images=images,
            batch=batch,
            rounds=rounds,
            seed=seed,
        )
        with TerminalBar(name) as bar:
            folder = attack_vertical(run, data_dir, bar)
        counts = read_set(folder).manifest["status"].eq("ok")
        typer.echo(f"{counts.sum()} ok / {(~counts).sum()} failed\n{folder}")


@app.command("status")
def status_command(
    name: Annotated[str | None, typer.Option(help="Campaign; all of them without it.")] = None,
    data_dir: _DataDir = DATA,
) -> None:
    """Say how far campaigns are."""
    with told_errors():
        names = campaigns(data_dir) if name is None else [name]
        for one in names:
            typer.echo(_status_text(data_dir, one))
        if not names:
            typer.echo(f"No campaign has begun below {data_dir}.")


def outlook_text(view: Outlook, workers: int) -> str:
    """What a plan takes, as lines of text."""
    lines = [
        f"{view.cells} images to attack, {view.cells_done} of them done",
        f"{view.targets} targets, {view.to_train} of them still to train",
    ]
    if view.seconds is not None:
        hours = f"{view.seconds / 3600:.1f} h" if view.seconds > 5400 else f"{view.seconds:.0f} s"
        lines.append(f"about {hours} of one core; divide by the number of workers ({workers})")
    return "\n".join([*lines, f"{view.disk / 1e6:.1f} MB of disk at most"])


def campaign_of(given: dict[str, Any]) -> Campaign:
    """The campaign that options mean, on top of the file where one is given."""
    base = Campaign(name="")
    if given["file"] is not None:
        base = campaign_from(jobs.read_json(given["file"]))
    lists = {
        "datasets": given["dataset"],
        "architectures": given["architecture"],
        "strategies": given["strategy"],
        "attacks": given["attack"],
        "image_ids": given["image_id"],
        "seeds": given["seeds"],
    }
    changes: dict[str, Any] = {key: tuple(values) for key, values in lists.items() if values}
    changes |= {k: given[k] for k in ("name", "images", "together") if given[k] is not None}
    if given["train"]:
        changes["train"] = read_training(given["train"], base.train)
    campaign = replace(base, **changes)
    return replace(campaign, attacks=tuple(with_preset(campaign.attacks, given["preset"])))


def _campaign(options: dict[str, Any]) -> Campaign:
    campaign = campaign_of(options)
    if not campaign.name:
        raise typer.BadParameter("give the campaign a name with --name")
    return campaign


def exit_code(outcome: dict[str, Any] | None) -> int:
    """0 where every image of a campaign has a picture, 1 where some have or it was stopped, 3."""
    if outcome is None:
        return 1
    if outcome["n_failed"] == 0 and not outcome["undone"]:
        return 0
    return 1 if outcome["n_ok"] else 3


def _queued(options: dict[str, Any]) -> Job:
    order = CampaignOrder(
        campaign=_campaign(options),
        data=options["data_dir"],
        scheduler=options["scheduler"],
        workers=options["workers"],
        device=options["device"],
        retry=options["retry_failed"],
    )
    return queue_campaign(order, order.data / "jobs")


def campaign_summary(outcome: dict[str, Any]) -> str:
    """What `run_plan` returned, as lines of text."""
    lines = [
        f"{outcome['n_ok']} ok / {outcome['n_failed']} failed "
        f"({outcome['computed']} computed now, {outcome['reused']} done before)",
        *outcome["sets"],
    ]
    if outcome["n_crashed"]:
        lines.append(
            f"{outcome['n_crashed']} broke with a traceback, which is in the sets' tables; "
            "--retry-failed tries them again."
        )
    for why, count in outcome["undone"].items():
        lines.append(f"{count} could not be computed and are tried again next time: {why}")
    return "\n".join(lines)


def _status_text(data: Path, name: str) -> str:
    plan = plan_of(read_campaign(data, name))
    store = PieceStore(data)
    keys = [cell.key for cell in plan.cells]
    left = set(store.missing(keys))
    failed = sum(not store.read_cell(key).ok for key in keys if key not in left)
    found = jobs_of(data / "jobs", name)
    state = jobs.state(found[0]).value if found else "never started as a job"
    done = len(keys) - len(left) - failed
    return f"{name}: {state}; {done} ok / {failed} failed / {len(left)} left of {len(keys)} images"
