"""`python -m semsim demo`: make the built-in study anew."""

from pathlib import Path
from typing import Annotated

import typer

from semsim.campaign.demo import build_demo
from semsim.campaign.demo_plan import DemoSettings
from semsim.datasets.symbols import GLYPHS
from semsim.terminal import DATA, TerminalBar, told_errors

app = typer.Typer(no_args_is_help=True, help="The built-in study.")


@app.callback()
def demo() -> None:
    """The built-in study."""


@app.command("build")
def demo_build(
    out: Annotated[Path, typer.Option(help="Folder of the demo.")] = DATA / "demo",
    work: Annotated[Path, typer.Option(help="Keeps finished pieces of an interrupted build.")] = (
        DATA / "runs/demo"
    ),
    images: Annotated[
        int, typer.Option(help="Originals attacked on each target.", min=1, max=len(GLYPHS))
    ] = DemoSettings.images,
    steps: Annotated[int, typer.Option(help="Iterations of each attack.")] = DemoSettings.steps,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    together: Annotated[int, typer.Option(help="Images attacked at once.", min=1)] = (
        DemoSettings.together
    ),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = DemoSettings.device,
    workers: Annotated[int, typer.Option(help="Processes, also on one GPU.", min=1)] = 2,
) -> None:
    """Train two architectures under seven strategies, attack images of each, write data/demo."""
    settings = DemoSettings(
        images=images, steps=steps, seed=seed, together=together, device=device, workers=workers
    )
    with told_errors(), TerminalBar(unit="step") as bar:
        folders = build_demo(out, work, settings, report=bar)
    for folder in folders:
        typer.echo(folder)
