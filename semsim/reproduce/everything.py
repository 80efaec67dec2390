"""`python -m semsim reproduce everything`: every attack against every defence, as one map."""

from pathlib import Path

from semsim.campaign.campaign_job import load
from semsim.datasets import DATASETS
from semsim.device import cores, pick_device
from semsim.metrics import Resources
from semsim.registry import read_plugin
from semsim.reporting import writing
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import leak_map
from semsim.reproduce.everything_plan import cost_rows, cost_text, scale_of, work_out
from semsim.reproduce.everything_table import Map, map_of, tables, write_controls, write_tables
from semsim.reproduce.plans import (
    CheckpointsOption,
    DeviceOption,
    MadeOption,
    PlanOption,
    SchedulerOption,
    SizeOption,
    WorkersOption,
    with_not_run,
)
from semsim.reproduce.semsim import carried_out
from semsim.reproduce.simulated_votes import data_set_jury
from semsim.reproduce.stand_in import source_of
from semsim.terminal import DATA, Json, TerminalBar, rows_of, say, show_told, told_errors
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
        source = source_of(asked.dataset, plan)
        worked = work_out(asked, source.load)
        data = out / asked.name
        data.mkdir(parents=True, exist_ok=True)
        if plan:
            with TerminalBar("Measuring") as bar:
                rows = cost_rows(worked, data, bar, source.load)
            told = [cost_text(rows, worked), *source.notes]
            show_told(rows, with_not_run("everything", *told), as_json)
            return
        for line in (line for one in worked.refused for line in one.lines()):
            say(line)
        plans = {one.campaign.name: one for one in worked.plans}
        carried_out(plans, data, workers=workers, scheduler=scheduler, device=device)
        with TerminalBar("Simulated people") as bar:
            epochs, processes = asked.jury_epochs, workers or cores()
            jury = data_set_jury(asked.jury, epochs, data, workers=processes, report=bar)
        train = load(read_plugin(DATASETS, asked.dataset), "train")
        controls = write_controls(worked.images, train, data / "controls")
        resources = Resources(checkpoints=checkpoints.resolve(), device=pick_device(device))
        with TerminalBar("Judging") as bar:
            found = map_of(worked, data, controls, jury, resources, bar)
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
