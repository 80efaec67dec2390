"""python -m annotation: studies from the command line."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from annotation import formats
from annotation.cli import accounts as accounts_cli
from annotation.cli.terminal import (
    DATA,
    STDOUT,
    Commands,
    Database,
    DataDir,
    address,
    opened,
    told_errors,
)
from annotation.domain import USUAL_TASK, Annotator, HeadlineRule, Study, StudySpec, Task
from annotation.errors import NotFoundError
from annotation.formats import FORMATS, What
from annotation.store import Store, backup
from annotation.study import exports, settings
from annotation.study import labelling as study
from annotation.study import participants as people
from annotation.study.create import Examination, examine, keep_study
from annotation.votes.exclusion import Effect

app = typer.Typer(
    cls=Commands,
    help="The human study: create studies, follow them, take the votes out.",
    no_args_is_help=True,
    add_completion=False,
)

StudyName = Annotated[str, typer.Argument(help="Name or id of the study.")]
Out = Annotated[
    Path,
    typer.Option("--out", help="File, .csv, .jsonl or .parquet; - is stdout."),
]


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
    with opened(database, data_dir) as store:
        for one in study.list_studies(store):
            marks = " simulated" if one.spec.simulated else ""
            typer.echo(
                f"{one.id}  {one.name}  {one.task} {one.status}{marks}  {one.n_items} items  "
                f"link /join/{one.token}"
            )


def _setting(name: str) -> Any:
    return typer.Option(help=settings.HELP[name])


CREATE = """Create a study from reconstruction sets, or from a manifest.

A manifest has the columns model, dataset, attack, image_id, class_name,
original, reconstruction and, if known, attacked; the last three are paths
from its folder on."""


@app.command(help=f"{CREATE}\n\nSettings:\n\n{settings.table()}")
def create(
    name: Annotated[str, typer.Argument(help="What to call the study.")],
    sets: Annotated[
        list[Path] | None, typer.Option("--set", help="A reconstruction set; repeat it.")
    ] = None,
    manifests: Annotated[
        list[Path] | None,
        typer.Option("--manifest", help="A .csv, .jsonl or .parquet, a row a reconstruction."),
    ] = None,
    task: Annotated[Task, _setting("task")] = USUAL_TASK,
    votes_per_item: Annotated[int, _setting("votes_per_item")] = StudySpec.votes_per_item,
    list_size: Annotated[int, _setting("list_size")] = StudySpec.list_size,
    decoy_rate: Annotated[float, _setting("decoy_rate")] = StudySpec.decoy_rate,
    headline: Annotated[HeadlineRule, _setting("headline")] = StudySpec.headline,
    seed: Annotated[int, _setting("seed")] = StudySpec.seed,
    simulated: Annotated[bool, _setting("simulated")] = StudySpec.simulated,
    password: Annotated[str | None, _setting("password")] = StudySpec.password,
    setting: Annotated[
        list[str] | None, typer.Option("--setting", help="NAME=VALUE, listed above; repeat it.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="A .csv of known answers: model, image_id, answer.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made, and every problem.")
    ] = False,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    folders, files = sets or [], manifests or []
    with told_errors():
        flags = {
            "task": task,
            "votes_per_item": votes_per_item,
            "list_size": list_size,
            "decoy_rate": decoy_rate,
            "headline": headline,
            "seed": seed,
            "simulated": simulated,
            "password": password,
        }
        spec = StudySpec(name=name, **{**flags, **settings.parse(setting or ())})
        found = examine(spec, folders, files, gold=gold)
        if dry_run:
            _report(found)
            return
    with opened(database, data_dir, make=True) as store:
        made = keep_study(store, found, data_dir / "images")
        typer.echo(
            f"{made.id}  {made.n_items} items ({made.n_decoys} decoys), "
            f"{made.n_failed} failed attacks left out, link /join/{made.token}"
        )
        typer.echo(found.people_needed)


@app.command()
def amend(
    name: StudyName,
    setting: Annotated[list[str], typer.Option("--setting", help="NAME=VALUE; repeat it.")],
    why: Annotated[str, typer.Option(help="The reason, kept with the new version.")],
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Change settings of a study: a new version of its protocol, stamped on the votes to come."""
    with opened(database, data_dir) as store:
        found = study.amend(store, _find(store, name).id, settings.parse(setting), why)
        typer.echo(f"{found.name}: protocol version {found.version}, {found.protocol}")


@app.command()
def protocol(name: StudyName, data_dir: DataDir = DATA, database: Database = None) -> None:
    """List the versions of a study's protocol."""
    with opened(database, data_dir) as store:
        for one in study.protocol_versions(store, _find(store, name).id):
            changes = ", ".join(f"{key} = {getattr(one.spec, key)!s}" for key in one.changed)
            words = f"  {changes} ({one.why})" if changes else ""
            typer.echo(f"{one.version}  {one.at:%Y-%m-%d %H:%M} UTC  {one.sha256}{words}")


def _report(found: Examination) -> None:
    typer.echo(found.text())
    typer.echo("Dry run: nothing was written.")
    if found.problems:
        raise typer.Exit(1)


@app.command()
def simulate(
    name: StudyName,
    annotators: Annotated[int, typer.Option(help="How many simulated people.")] = 5,
    seed: Annotated[int, typer.Option(help="Decides who they are and what they answer.")] = 0,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Let simulated annotators answer a study that was created with --simulated."""
    with opened(database, data_dir) as store:
        found = _find(store, name)
        study.simulate(store, found.id, annotators, seed)
        typer.echo(f"{len(study.export_votes(store, found.id))} simulated votes in {found.name!r}")


@app.command()
def progress(name: StudyName, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Show how far a study is."""
    with opened(database, data_dir) as store:
        now = study.progress(store, _find(store, name).id)
        for votes, items in enumerate(now.coverage):
            typer.echo(f"{items:6d} of {now.n_items} items have {votes} votes")
        for row in now.annotators:
            rt = "" if row.median_rt_ms is None else f"  median {row.median_rt_ms:.0f} ms"
            marks = "  simulated" if row.simulated else ""
            typer.echo(f"{row.done:6d} votes by {row.name}{rt}{marks}")


FORMAT_LIST = "\n\n".join(
    f"{name}: {one.about} ({', '.join(one.writers)})" for name, one in FORMATS.items()
)


@app.command(help=f"Write a study to a file or a new folder.\n\nFormats:\n\n{FORMAT_LIST}")
def export(
    name: StudyName,
    out: Annotated[Path, typer.Option("--out", help="File or new folder; - is stdout.")],
    form: Annotated[
        str | None, typer.Option("--format", help="One of those above.  [default: by the ending]")
    ] = None,
    what: Annotated[
        What | None, typer.Option(help="Which table.  [default: the first the format has]")
    ] = None,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    with opened(database, data_dir) as store:
        data = exports.read_study(store, _find(store, name).id, data_dir / "images")
        if out == STDOUT:
            content, said = formats.content(data, form or "csv", what)
            typer.echo(content, nl=False)
            typer.echo(said, err=True)
        else:
            typer.echo(f"{formats.export(data, out, form, what)} in {out}")


@app.command()
def labels(name: StudyName, out: Out, data_dir: DataDir = DATA, database: Database = None) -> None:
    """Write the majority label of every reconstruction, one a row."""
    export(name, out, what=What.LABELS, data_dir=data_dir, database=database)


@app.command(name="backup")
def back_up(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write.  [default: a new one in <data-dir>/backups]"),
    ] = None,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Copy the database to a file, checked; people can go on labelling meanwhile."""
    with told_errors():
        source = backup.file_of(address(database, data_dir))
        if out is None:
            out = backup.back_up_into(source, data_dir / "backups", datetime.now(UTC))
        else:
            backup.back_up(source, out)
        typer.echo(f"{out} holds all of {source}")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Put a backup in the place of the database; stop the server first."""
    with told_errors():
        target = backup.file_of(address(database, data_dir))
        kept = backup.restore(file, target, datetime.now(UTC))
        typer.echo(f"{target} is as it was in {file}")
        if kept is not None:
            typer.echo(f"What it replaced is {kept}")


class _ListsByDefault(TyperGroup):
    """`annotators NAME` is short for `annotators list NAME`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["list", *args])


annotators = typer.Typer(
    cls=_ListsByDefault,
    help="The people of a study: list, pause, resume, exclude, include, erase them.",
    no_args_is_help=True,
)
app.add_typer(annotators, name="annotators")
app.add_typer(accounts_cli.app, name="accounts")
PersonName = Annotated[str, typer.Argument(help="Name of the annotator.")]


class Votes(StrEnum):
    """What becomes of the votes of somebody who is erased."""

    KEEP = "keep"
    REMOVE = "remove"


@annotators.command(name="list")
def list_annotators(name: StudyName, data_dir: DataDir = DATA, database: Database = None) -> None:
    """List everybody in a study."""
    with opened(database, data_dir) as store:
        for row in people.list_people(store, _find(store, name).id):
            marks = " simulated" if row.simulated else ""
            out = f" + {row.excluded} excluded" if row.excluded else ""
            failed = f"  failed {row.catch_failed} of {row.catch_answered} catch trials"
            warning = failed if row.warned else ""
            typer.echo(f"{row.name}  {row.status}{marks}  {row.done} votes{out}{warning}")


@annotators.command()
def pause(
    name: StudyName, person: PersonName, data_dir: DataDir = DATA, database: Database = None
) -> None:
    """Let somebody vote no more for now; their votes count."""
    _step(people.pause, name, person, data_dir, database)


@annotators.command()
def resume(
    name: StudyName, person: PersonName, data_dir: DataDir = DATA, database: Database = None
) -> None:
    """Let somebody who was paused go on."""
    _step(people.resume, name, person, data_dir, database)


@annotators.command()
def include(
    name: StudyName, person: PersonName, data_dir: DataDir = DATA, database: Database = None
) -> None:
    """Let somebody who was excluded go on; votes count again where there is room."""
    _step(people.include, name, person, data_dir, database)


@annotators.command(name="let-in")
def let_in(
    name: StudyName, person: PersonName, data_dir: DataDir = DATA, database: Database = None
) -> None:
    """Let somebody take part who failed the questions on the instructions."""
    _step(people.let_in, name, person, data_dir, database)


@annotators.command()
def exclude(
    name: StudyName,
    person: PersonName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would do to the result.")
    ] = False,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Let none of somebody's votes count and others fill their place; nothing is deleted."""
    with opened(database, data_dir) as store:
        study_id = _find(store, name).id
        effect = people.preview_exclusion(store, study_id, person, data_dir / "images")
        typer.echo(_in_words(effect))
        if dry_run:
            typer.echo("Dry run: nothing was changed.")
            return
    _step(people.exclude, name, person, data_dir, database)


def _in_words(effect: Effect) -> str:
    facts = [
        f"{effect.n_votes} counted votes of {effect.annotator}",
        f"{effect.n_short} items fall short of their votes",
        f"{effect.n_undecided} majority labels become undecided, {effect.n_flipped} the opposite",
        *(f"{one.model}: {_rate(one.before)} → {_rate(one.after)}" for one in effect.models),
        effect.ranking or "The ranking of the models stays as it is.",
    ]
    return "\n".join(facts)


def _rate(rate: float | None) -> str:
    return "no item decided" if rate is None else f"{rate:.1%} recognised"


@annotators.command()
def erase(
    name: StudyName,
    person: PersonName,
    votes: Annotated[Votes, typer.Option(help="What becomes of their votes.")],
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Take somebody's name out of the database for good; backups still hold it."""
    _step(people.erase, name, person, data_dir, database, keep_votes=votes is Votes.KEEP)


def _step(
    change: Callable[..., Annotator],
    name: str,
    person: str,
    data_dir: Path,
    database: str | None,
    **given: Any,
) -> None:
    with opened(database, data_dir) as store:
        done = change(store, _find(store, name).id, person, datetime.now(UTC), **given)
        typer.echo(f"{done.name} is {done.status}")
