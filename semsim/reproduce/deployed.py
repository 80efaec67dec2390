"""`semsim-studio reproduce deployed`: updates, batch norm and DP-SGD, and who agrees there."""

from pathlib import Path

from semsim.datasets import DATASETS
from semsim.device import pick_device
from semsim.metrics import Resources
from semsim.registry import read_plugin
from semsim.reporting import writing
from semsim.reproduce.deployed_plan import plans_of, rows_text, scale_of, works_of
from semsim.reproduce.deployed_table import Deployed, deployed_of, tables
from semsim.reproduce.judged import write_tables
from semsim.reproduce.plans import (
    BELOW,
    CAMPAIGN_STEPS,
    MadeOption,
    PlanOption,
    SizeOption,
    planned_rows,
    planned_text,
)
from semsim.reproduce.semsim import carried_out
from semsim.reproduce.simulated_people import simulated_people
from semsim.terminal import (
    DATA,
    CheckpointsOption,
    DeviceOption,
    Json,
    SchedulerOption,
    TerminalBar,
    WorkersOption,
    rows_of,
    say,
    show_told,
    told_errors,
)
from semsim.weights import CHECKPOINTS


def reproduce_deployed(
    preset: SizeOption = "small",
    plan: PlanOption = False,
    out: MadeOption = DATA / "reproduce/deployed",
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    device: DeviceOption = "auto",
    checkpoints: CheckpointsOption = CHECKPOINTS,
    as_json: Json = False,
) -> None:
    """Attack what is deployed, and say which metric still agrees with simulated people there.

    Updates after local steps, with momentum, batch norm in training, clipped and noised gradients:
    a row each beside the plain gradient. What was computed before is not again.
    """
    with told_errors():
        asked = scale_of(preset)
        folder = out / asked.name
        if plan:
            works, lower = works_of(asked, folder), BELOW.get(preset)
            below = works_of(scale_of(lower), folder, known=False) if lower else ()
            said = planned_text("deployed", works, CAMPAIGN_STEPS, preset, below)
            show_told(planned_rows(works), f"{rows_text(asked)}\n{said}", as_json)
            return
        plans = plans_of(asked)
        folder.mkdir(parents=True, exist_ok=True)
        carried_out(plans, folder, workers=workers, scheduler=scheduler, device=device)
        dataset = read_plugin(DATASETS, asked.dataset)
        images = next(iter(plans.values())).images[asked.dataset]
        jury, controls = simulated_people(
            dataset, dataset, asked.jury_epochs, images, folder, workers=workers
        )
        resources = Resources(checkpoints=checkpoints.resolve(), device=pick_device(device))
        with TerminalBar("Judging") as bar:
            made = list(controls.values())
            found = deployed_of(asked, plans, folder, made, jury, resources, bar)
        text = write_deployed(found, folder)
        show_told(rows_of(found.rows), text, as_json)
        say(f"Wrote {folder / 'deployed.md'}, rows.csv, within.csv and over.csv.")


def write_deployed(found: Deployed, folder: Path) -> str:
    """Write the tables below `folder`; what deployed.md says."""
    frames = {"rows": found.rows, "within": found.within, "over": found.over}
    text = [found.jury.text(), "", *map(writing.markdown, tables(found))]
    return write_tables("deployed", frames, text, found.absent, folder)
