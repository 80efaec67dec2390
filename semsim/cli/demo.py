"""`semsim-studio demo`: make the built-in study anew."""

from pathlib import Path
from typing import Annotated

import typer

from semsim.base.cli.options import settings_of, taking
from semsim.base.cli.terminal import DATA, CheckpointsOption, TerminalBar, say, told_errors
from semsim.base.errors import DataError
from semsim.base.sets.reader import read_set
from semsim.base.storage.folders import shown
from semsim.base.storage.places import DEMO
from semsim.campaign.demo import DemoSettings, build_demo, train_jury, write_jury
from semsim.importers.import_plan import ImportPlan
from semsim.metrics import Resources
from semsim.people import SOURCES
from semsim.reporting.canvas import DOUBLE
from semsim.reporting.export import write_picture
from semsim.targets.simulated_annotators import JurySettings
from semsim.weights import CHECKPOINTS

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
    work: Annotated[Path, typer.Option(help="Folder of the trained networks.")] = DATA
    / "demo-build",
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
) -> None:
    """Train the five simulated annotators and write what each sees into the sets."""
    with told_errors():
        folders = sets or shown(DEMO / "sets")
        for folder in folders:  # before the jury trains for minutes
            read_set(folder)
        with TerminalBar(unit="network") as bar:
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
    """Build the demo: targets, attacks, distractor models and simulated annotators."""
    from semsim.grid.machines import connect  # takes a second, and only a build needs it

    with TerminalBar() as bar, connect("", settings.workers) as client:
        folders = build_demo(out, work, settings, client, report=bar)
    for folder in folders:
        typer.echo(folder)


@app.command("people")
def demo_people(
    copies: Annotated[
        list[Path], typer.Option("--from", help="Folder with copies of the sources. Repeatable.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the studies.")] = DEMO / "people",
    picture: Annotated[
        Path | None, typer.Option(help="Figure of the first study's answer, .png or .svg.")
    ] = None,
    work: Annotated[Path, typer.Option(help="Keeps scores.")] = DATA / "demo-build",
    checkpoints: CheckpointsOption = CHECKPOINTS,
) -> None:
    """Make the studies of people that come with the product: their numbers and our scores."""
    from semsim.comparison.built_in import of_models, with_scores, write_built_in

    resources = Resources(checkpoints=checkpoints)
    with told_errors():
        plans: dict[str, ImportPlan] = {}
        for name in _OF_PEOPLE:
            place = SOURCES[name].found_in(*copies)
            if place is None:
                raise DataError(f"No folder of --from holds a copy of {name}.")
            plans[name] = SOURCES[name].plan(place)
        with TerminalBar("Scoring", unit="picture") as bar:
            shares = with_scores(plans[_OF_PEOPLE[0]], resources, work / "scores", bar)
        models = of_models(plans[_OF_PEOPLE[1]], "majority")
        found = write_built_in(
            list(zip(_OF_PEOPLE, (shares, models), strict=True)), out, checkpoints
        )
        if picture is not None:
            write_picture(found.figures()[0], picture, "--picture", dpi=150, width_mm=DOUBLE)
    say(f"Wrote {out}")


# Sources of the studies of people that come with the product, the first of shares.
_OF_PEOPLE = ("recurrent", "semsim-votes")
