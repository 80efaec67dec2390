"""python -m annotation: studies from the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from annotation import exports, study
from annotation.domain import HeadlineRule, Study, StudySpec, Task
from annotation.errors import AnnotationError, NotFoundError
from annotation.store import Store

app = typer.Typer(
    help="The human study: create studies, follow them, take the votes out.",
    no_args_is_help=True,
    add_completion=False,
)

StudyName = Annotated[str, typer.Argument(help="Name or id of the study.")]
Out = Annotated[Path, typer.Option("--out", help="File to write, .csv or .parquet.")]
DataDir = Annotated[Path, typer.Option("--data-dir", help="Folder of studies and their images.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="sqlite:///FILE or postgresql+psycopg://…  [default: <data-dir>/studies.db]",
    ),
]
DATA = Path("data")


@contextmanager
def _opened(database: str | None, data_dir: Path) -> Iterator[Store]:
    try:
        with Store(database or f"sqlite:///{data_dir / 'studies.db'}") as store:
            yield store
    except AnnotationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def _find(store: Store, name: str) -> Study:
    found = [s for s in study.list_studies(store) if name in (s.id, s.name)]
    if len(found) != 1:
        known = ", ".join(f"{s.name!r} ({s.id})" for s in found or study.list_studies(store))
        problem = "Several studies are" if found else "No study is"
        raise NotFoundError(f"{problem} called {name!r}. Use an id of: {known or '(no studies)'}.")
    return found[0]


@app.command()
def studies(data_dir: DataDir = DATA, database: Database = None) -> None:
    """List all studies."""
    with _opened(database, data_dir) as store:
        for one in study.list_studies(store):
            marks = " simulated" if one.spec.simulated else ""
            typer.echo(
                f"{one.id}  {one.name}  {one.task} {one.status}{marks}  {one.n_items} items  "
                f"link /join/{one.token}"
            )


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What to call the study.")],
    sets: Annotated[list[Path], typer.Option("--set", help="A reconstruction set; repeat it.")],
    task: Annotated[Task, typer.Option(help="What people are asked.")] = Task.RECOGNITION,
    votes_per_item: Annotated[int, typer.Option(help="People who judge each item.")] = 5,
    list_size: Annotated[int, typer.Option(help="Recognition: classes offered.")] = 20,
    decoy_rate: Annotated[float, typer.Option(help="Pair: decoys per matched item.")] = 0.0,
    headline: Annotated[
        HeadlineRule, typer.Option(help="Human score that metrics are judged by.")
    ] = HeadlineRule.MAJORITY,
    seed: Annotated[int, typer.Option(help="Decides lists, decoys and orders.")] = 0,
    simulated: Annotated[bool, typer.Option(help="For simulated annotators only.")] = False,
    password: Annotated[str | None, typer.Option(help="Asked for when people join.")] = None,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Create a study from reconstruction sets."""
    with _opened(database, data_dir) as store:
        spec = StudySpec(
            name=name,
            task=task,
            votes_per_item=votes_per_item,
            list_size=list_size,
            decoy_rate=decoy_rate,
            headline=headline,
            seed=seed,
            simulated=simulated,
            password=password,
        )
        made = study.create_study(store, spec, sets, data_dir / "images")
        typer.echo(
            f"{made.id}  {made.n_items} items ({made.n_decoys} decoys), "
            f"{made.n_failed} failed attacks left out, link /join/{made.token}"
        )


@app.command()
def simulate(
    name: StudyName,
    annotators: Annotated[int, typer.Option(help="How many simulated people.")] = 5,
    seed: Annotated[int, typer.Option(help="Decides who they are and what they answer.")] = 0,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Let simulated annotators answer a study that was created with --simulated."""
    with _opened(database, data_dir) as store:
        found = _find(store, name)
        study.simulate(store, found.id, annotators, seed)
        typer.echo(f"{len(study.export_votes(store, found.id))} simulated votes in {found.name!r}")


@app.command()
def progress(name: StudyName, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Show how far a study is."""
    with _opened(database, data_dir) as store:
        now = study.progress(store, _find(store, name).id)
        for votes, items in enumerate(now.coverage):
            typer.echo(f"{items:6d} of {now.n_items} items have {votes} votes")
        for row in now.annotators:
            rt = "" if row.median_rt_ms is None else f"  median {row.median_rt_ms:.0f} ms"
            marks = "  simulated" if row.simulated else ""
            typer.echo(f"{row.done:6d} votes by {row.name}{rt}{marks}")


@app.command()
def export(name: StudyName, out: Out, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Write every vote of a study, one a row."""
    with _opened(database, data_dir) as store:
        table = study.export_votes(store, _find(store, name).id)
        exports.write_table(table, out)
        typer.echo(f"{len(table)} votes in {out}")


@app.command()
def labels(name: StudyName, out: Out, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Write the majority label of every reconstruction, one a row."""
    with _opened(database, data_dir) as store:
        table = study.export_labels(store, _find(store, name).id, data_dir / "images")
        exports.write_table(table, out)
        typer.echo(f"{len(table)} reconstructions in {out}")
