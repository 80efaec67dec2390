"""`semsim-studio people`: public judgements of people, fetched and brought into the studio."""

from pathlib import Path
from typing import Annotated

import typer

from semsim.base.cli.terminal import (
    DATA,
    DataOption,
    Json,
    TerminalBar,
    list_text,
    say,
    show,
    show_told,
    told_errors,
)
from semsim.base.errors import DataError
from semsim.base.sets.imports import places_of
from semsim.importers.import_folder import carry_out
from semsim.people import SOURCES
from semsim.people.get_job import fetched

app = typer.Typer(no_args_is_help=True, help="Public judgements of people, as studies to compare.")


@app.command("list")
def list_sources(data_dir: DataOption = DATA, as_json: Json = False) -> None:
    """List each source, the task of its people, its licence and size, and whether it is here."""
    rows = [
        {
            **{"name": name, "state": _state(name, data_dir), "about": one.about},
            **{"licence": one.licence, "address": one.address, "cite": one.citation},
            **{"megabytes": one.megabytes or None, "tables": dict(one.tables)},
        }
        for name, one in SOURCES.items()
    ]
    head = ["name", "state", "licence", "MB, at most", "what it is"]
    shown = ("name", "state", "licence", "megabytes", "about")
    lines = [[str(row[key] or "–") for key in shown] for row in rows]
    show({"sources": rows}, list_text(head, lines), as_json)


@app.command("get")
def get_source(
    name: Annotated[str, typer.Argument(help="Name of the source, see `people list`.")],
    copy: Annotated[
        Path | None, typer.Option("--from", help="Folder with a copy; nothing is fetched.")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept-licence", "--accept-license", help="Accept a licence that is asked for."
        ),
    ] = False,
    data_dir: DataOption = DATA,
    as_json: Json = False,
) -> None:
    """Fetch a source, and write its reconstruction sets and its table of votes or of shares."""
    with told_errors():
        source = SOURCES[name]
        places = places_of(name, data_dir)
        if places.taken:
            raise DataError(f"{name} is here already; remove {places.tables} and {places.sets}.")
        say(f"{name}: {source.licence}. {source.address}".rstrip())
        if source.non_commercial and not accept:
            typer.confirm(
                "It is for non-commercial use alone. Do you accept?", abort=True, err=True
            )
        if copy is None:
            with TerminalBar(source.name, unit="B") as bar:
                copy = fetched(source, data_dir, bar)
        with TerminalBar(unit="picture") as bar:
            plan = source.plan(copy, bar)
        show_told(plan.parts(), plan.text(), as_json)
        with TerminalBar(unit="step") as bar:
            folders = carry_out(plan, places, bar)
    say("\n".join(f"Wrote {one}" for one in folders))


def _state(name: str, data: Path) -> str:
    return "here" if places_of(name, data).tables.is_dir() else "-"
