"""`python -m semsim …`: what the pages do, from a terminal."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from semsim.campaign.demo import DemoSettings, build_demo
from semsim.compare_cli import compare, report
from semsim.errors import SemsimError
from semsim.import_cli import app as importing
from semsim.learn_cli import learn_command
from semsim.progress import Progress
from semsim.score_cli import score, weights

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
demo = typer.Typer(no_args_is_help=True, help="The built-in study.")
app.add_typer(demo, name="demo")
app.add_typer(importing, name="import")
app.command("score")(score)
app.command("learn")(learn_command)
app.command("compare")(compare)
app.command("report")(report)
app.command("weights")(weights)


@demo.command("build")
def demo_build(
    out: Annotated[Path, typer.Option(help="Folder of the demo.")] = Path("data/demo"),
    work: Annotated[Path, typer.Option(help="Keeps finished pieces of an interrupted build.")] = (
        Path("data/runs/demo")
    ),
    images: Annotated[int, typer.Option(help="Originals attacked on each target.")] = 24,
    steps: Annotated[int, typer.Option(help="Iterations of each attack.")] = DemoSettings.steps,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
) -> None:
    """Train six targets on the symbols, attack test images of each, write data/demo."""
    settings = DemoSettings(images=images, steps=steps, seed=seed, workers=workers)
    with tqdm(total=1, unit="step", file=sys.stderr) as bar:

        def show(progress: Progress) -> None:
            bar.total = progress.total
            bar.set_postfix_str(progress.note)
            bar.update(progress.done - bar.n)

        try:
            folders = build_demo(out, work, settings, report=show)
        except SemsimError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from error
    for folder in folders:
        print(folder)
