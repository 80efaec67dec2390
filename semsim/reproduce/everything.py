"""`semsim-studio reproduce everything`: every attack against every defence, as one map."""

from pathlib import Path

from semsim.datasets import DATASETS
from semsim.device import pick_device
from semsim.metrics import Resources
from semsim.registry import read_plugin
from semsim.reporting import writing
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import leak_map
from semsim.reproduce.everything_plan import planned_map, scale_of, work_out
from semsim.reproduce.everything_table import Map, map_of, tables
from semsim.reproduce.judged import write_tables
from semsim.reproduce.plans import MadeOption, PlanOption, SizeOption, planned_rows
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

_DPI = 150  # of a picture that a page shows whole


def reproduce_everything(
    preset: SizeOption = "small",
    plan: PlanOption = False,
    out: MadeOption = DATA / "reproduce/everything",
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    device: DeviceOption = "auto",
    checkpoints: CheckpointsOption = CHECKPOINTS,
    as_json: Json = False,
) -> None:
    """Every attack against every defence, by simulated people and by each metric, as one map.

    All that is registered, on trained targets; what does not go together, and what failed, stands
    there with the reason. What was computed before is not again.
    """
    with told_errors():
        asked = scale_of(preset)
        data = out / asked.name
        if plan:
            works, text = planned_map(asked, data)
            show_told(planned_rows(works), text, as_json)
            return
        worked = work_out(asked)
        data.mkdir(parents=True, exist_ok=True)
        for line in (line for one in worked.refused for line in one.lines()):
            say(line)
        plans = {one.campaign.name: one for one in worked.plans}
        carried_out(plans, data, workers=workers, scheduler=scheduler, device=device)
        dataset = read_plugin(DATASETS, asked.dataset)
        jury, controls = simulated_people(
            dataset, asked.jury, asked.jury_epochs, worked.images, data, workers=workers
        )
        resources = Resources(checkpoints=checkpoints.resolve(), device=pick_device(device))
        with TerminalBar("Judging") as bar:
            found = map_of(worked, data, list(controls.values()), jury, resources, bar)
        text = write_map(found, len(worked.images), data)
        show_told(rows_of(found.cells), text, as_json)
        say(f"Wrote {data / 'map.md'}, map.csv, agreement.csv, map.png and map.svg.")


def write_map(found: Map, n: int, folder: Path) -> str:
    """Write the map below `folder` as tables and a figure; what map.md says.

    n: originals that were attacked in each cell.
    """
    drawn: Drawn = marked_as_simulated(leak_map(found.cells, found.agreement, found.specs, n))
    for ending in ("png", "svg"):
        write_picture(drawn, folder / f"map.{ending}", "--out", dpi=_DPI)
    frames = {"map": found.cells, "agreement": found.agreement}
    text = list(map(writing.markdown, tables(found)))
    return write_tables("map", frames, text, found.absent, folder)
