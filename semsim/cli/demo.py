"""`semsim-studio demo`: make the built-in study anew."""

from pathlib import Path
from typing import Annotated

import typer

from semsim.base.cli.terminal import DATA, TerminalBar, told_errors
from semsim.base.sets.reader import read_set
from semsim.base.storage.folders import shown
from semsim.base.storage.places import DEMO
from semsim.campaign.demo import DemoSettings, build_demo, train_jury, write_jury
from semsim.cli.options import settings_of, taking
from semsim.targets.simulated_annotators import JurySettings

app = typer.Typer(no_args_is_help=True, help="The built-in study.")


@app.callback()
def demo() -> None:
    """The built-in study."""


@app.command("jury")
def demo_jury(
    sets: Annotated[
        list[Path] | None,
        typer.Option("--set", help="A set of symbols; those of the demo without any. Repeatable."),
    ] = None,
    work: Annotated[Path, typer.Option(help="Keeps the trained jury.")] = DATA / "demo-build",
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
) -> None:
    """Train the five simulated annotators and write what each sees into the sets."""
    with told_errors():
        folders = sets or shown(DEMO / "sets")
        for folder in folders:  # before the jury trains for minutes
            read_set(folder)
        with TerminalBar(unit="juror") as bar:
            weights = train_jury(work, JurySettings(), workers=workers, report=bar)
        write_jury(folders, weights)
    typer.echo(f"jury.parquet is in {len(folders)} sets")


@app.command("build")
@taking(settings=settings_of(DemoSettings))
def demo_build(
    settings: DemoSettings,
    out: Annotated[Path, typer.Option(help="Folder of the demo.")] = DATA / "demo",
    work: Annotated[Path, typer.Option(help="Keeps finished pieces of an interrupted build.")] = (
        DATA / "demo-build"
    ),
) -> None:
    """Train and attack the targets of the demo's campaigns, train judges and jury, write it all."""
    from semsim.grid.machines import connect  # takes a second, and only a build needs it

    with TerminalBar() as bar, connect("", settings.workers) as client:
        folders = build_demo(out, work, settings, client, report=bar)
    for folder in folders:
        typer.echo(folder)
