"""`semsim-studio datasets`: which data sets there are, and fetching those that must be."""

from pathlib import Path
from typing import Annotated

import typer

from semsim.base.cli.terminal import Json, list_text, show, told_errors
from semsim.base.errors import SettingsError
from semsim.base.registry import build
from semsim.datasets import DATASETS, OnDisk
from semsim.datasets.on_disk import ROOT

app = typer.Typer(no_args_is_help=True, help="Data sets: which there are, and how to get them.")

_Root = Annotated[Path, typer.Option(help="Folder of data sets.")]


@app.command("list")
def list_datasets(root: _Root = Path(ROOT), as_json: Json = False) -> None:
    """List each data set, its question for people, and whether its files are there."""
    rows = []
    for name, kind in DATASETS.items():
        made = build(DATASETS, name, _settings(name, root))
        rows.append([name, made.task, _state(made), kind.about])
    found = [dict(zip(("name", "task", "files", "about"), row, strict=True)) for row in rows]
    show({"datasets": found}, list_text(["name", "task", "files", "what it is"], rows), as_json)


@app.command("get")
def get_dataset(
    name: Annotated[str, typer.Argument(help="Name of the data set.")], root: _Root = Path(ROOT)
) -> None:
    """Fetch a data set from its authors, checksums verified; nothing where it is there already."""
    with told_errors():
        made = build(DATASETS, name, _settings(name, root))
        if not isinstance(made, OnDisk):
            raise SettingsError(f"The data set {name!r} needs no files from elsewhere.")
        if not made.present():
            made.download()
    typer.echo(made.folder)


def _settings(name: str, root: Path) -> dict[str, str]:
    # A folder of one's own has a root too, but none of these files.
    return {"root": str(root)} if hasattr(DATASETS[name], "download") else {}


def _state(made: object) -> str:
    if not isinstance(made, OnDisk):
        return "-"
    return "there" if made.present() else "missing"
