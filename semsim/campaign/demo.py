"""The built-in studies: ordinary campaigns, and what judges and the jury see in their sets.

Everything is computed here from seeds; `semsim-studio demo build` does it again. Finished
trainings and attacks are kept in a work folder, so that an interrupted build goes on.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from semsim.campaign.demo_plan import JUDGES, DemoSettings, plans
from semsim.campaign.jury import train_jury, write_jury
from semsim.campaign.plan import Plan
from semsim.campaign.runner import HowToRun, run_plan
from semsim.device import pick_device
from semsim.errors import DataError
from semsim.grid.engine import Piece, make_files
from semsim.jobs.orders import to_record
from semsim.judges.apply import apply_judge
from semsim.judges.judge_job import USUAL, JudgeOrder, do_judge
from semsim.judges.shelf import judge_path
from semsim.kept.keys import key_of
from semsim.progress import Report, silent

if TYPE_CHECKING:
    from semsim.grid.machines import Client


def build_demo(
    out: Path, work: Path, settings: DemoSettings, client: "Client", *, report: Report = silent
) -> list[Path]:
    """Make the demo in `out`, keeping finished pieces in `work`; returns the set folders.

    client: of the cluster that trains and attacks, see `connect`. Raises `DataError` where an
    attack could not be computed; another build goes on from there.
    """
    settings = replace(settings, device=str(pick_device(settings.device)))
    judges = _train_judges(work, settings, report)
    jury = train_jury(work, settings.jury, workers=settings.workers, report=report)
    made: dict[str, list[Path]] = {}
    for kind, wanted in plans(settings).items():
        found = [one for each in wanted for one in _sets(each, work, settings, client, report)]
        shutil.rmtree(out / kind, ignore_errors=True)
        made[kind] = [shutil.copytree(one, out / kind / _plain(one.name)) for one in sorted(found)]
    apply_judge(judges["predictor"], made["sets"], report=report)
    write_jury(made["sets"], jury)
    shutil.copyfile(judges["recogniser"], out / "recogniser.safetensors")
    return [folder for folders in made.values() for folder in folders]


def _plain(name: str) -> str:
    """The name of a campaign's set without the digits that tell odd names apart; here none is."""
    return re.sub("-[0-9a-f]{6}(?=__)", "", name)


def _sets(
    plan: Plan, work: Path, settings: DemoSettings, client: "Client", report: Report
) -> list[Path]:
    """The finished sets of a campaign, in `work`."""
    how = HowToRun(device=settings.device)
    outcome = run_plan(plan, work, client, how, report)
    if outcome["undone"]:
        why = "; ".join(outcome["undone"])
        raise DataError(f"Not all of {plan.campaign.name} could be computed; build again. {why}")
    return [Path(folder) for folder in outcome["sets"]]


def _train_judges(work: Path, settings: DemoSettings, report: Report) -> dict[str, Path]:
    """The weights of both judges; those that are there are used again."""
    orders = {name: _judge_order(name, work, settings) for name in JUDGES}
    paths = {name: judge_path(name, order.checkpoints) for name, order in orders.items()}
    pieces = [
        Piece(key=str(paths[name]), work=_train_judge, asked=(order,), note=f"trained the {name}")
        for name, order in orders.items()
    ]
    make_files(pieces, settings.workers, report)
    return paths


def _judge_order(name: str, work: Path, settings: DemoSettings) -> JudgeOrder:
    """A judge as anybody trains one; each has another network, and other weights to begin with."""
    order = JudgeOrder(
        name=name,
        dataset=f"symbols:train_per_class={settings.judge_per_class}",
        architecture=JUDGES[name],
        train=replace(USUAL, epochs=settings.judge_epochs, seed=settings.seed),
        device=settings.device,
        data=Path(),
        checkpoints=Path(),
    )
    place = work / "judges" / key_of(to_record(order), 16)
    return replace(order, data=work, checkpoints=place)


def _train_judge(order: JudgeOrder, *, report: Report) -> None:
    torch.set_num_threads(1)
    do_judge(order, order.checkpoints, report)
