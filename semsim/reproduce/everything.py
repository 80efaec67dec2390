"""`python -m semsim reproduce everything`: every attack against every defence, as one map."""

from pathlib import Path
from typing import Annotated

import typer

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
from semsim.reproduce.everything_table import METRICS, Map, map_of, tables, write_controls
from semsim.reproduce.semsim import carried_out
from semsim.reproduce.simulated_votes import data_set_jury
from semsim.terminal import DATA, Json, TerminalBar, rows_of, say, show_told, told_errors
from semsim.weights import CHECKPOINTS

_DPI = 150  # of a picture that a page shows whole


def reproduce_everything(
    preset: Annotated[
        str, typer.Option(help="smoke, small (built-in symbols) or paper (a GPU, CIFAR-100).")
    ] = "small",
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what it takes on this machine; compute nothing.")
    ] = False,
    work: Annotated[
        Path, typer.Option(help="Folder for all that is made; a run goes on there.")
    ] = (DATA / "reproduce/everything"),
    workers: Annotated[int, typer.Option(help="Processes here; 0: one a core.")] = 0,
    scheduler: Annotated[str, typer.Option(help="Dask scheduler, as tcp://10.0.0.1:8786.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    checkpoints: Annotated[Path, typer.Option(help="Folder of weights.")] = CHECKPOINTS,
    as_json: Json = False,
) -> None:
    """Every attack against every defence, by simulated people and by each metric, as one map.

    All that is registered, on trained targets; what does not go together, and what failed, stands
    there with the reason. What was computed before is not again.
    """
    with told_errors():
        asked = scale_of(preset)
        worked = work_out(asked)
        data = work / asked.name
        data.mkdir(parents=True, exist_ok=True)
        if plan:
            with TerminalBar("Measuring") as bar:
                rows = cost_rows(worked, data, bar)
            show_told(rows, cost_text(rows, worked), as_json)
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
    for name, frame in (("map", found.cells), ("agreement", found.agreement)):
        (folder / f"{name}.csv").write_text(writing.csv(frame), encoding="utf-8")
    drawn: Drawn = marked_as_simulated(leak_map(found.cells, found.agreement, found.specs, n))
    for ending in ("png", "svg"):
        write_picture(drawn, folder / f"map.{ending}", "--work", dpi=_DPI)
    absent = [
        f"{name} has no column: {found.absent[name]}" for name in METRICS if name in found.absent
    ]
    text = "\n".join([*(writing.markdown(one) for one in tables(found)), *absent])
    (folder / "map.md").write_text(text + "\n", encoding="utf-8")
    return text
