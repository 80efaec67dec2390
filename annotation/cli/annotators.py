"""semsim-studio study annotators: the people of a study."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from annotation.cli.console import (
    DATA,
    Database,
    DataDir,
    Json,
    StudyName,
    find_study,
    list_text,
    opened,
    say,
    show,
)
from annotation.domain import Annotator
from annotation.study import participants as people
from annotation.texts import counted
from annotation.votes.exclusion import Effect
from annotation.web.root_path import rooted


class _ListsByDefault(TyperGroup):
    """`annotators NAME` is short for `annotators list NAME`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["list", *args])


app = typer.Typer(
    name="annotators",
    cls=_ListsByDefault,
    help="The people of a study: list, pause, resume, exclude, include, erase, link them.",
    no_args_is_help=True,
    add_completion=False,
)
PersonName = Annotated[str, typer.Argument(help="Name of the annotator.")]


class Votes(StrEnum):
    """Fate of the votes of an annotator who is erased."""

    KEEP = "keep"
    REMOVE = "remove"


@app.command(name="list")
def list_annotators(
    name: StudyName, data_dir: DataDir = DATA, database: Database = None, as_json: Json = False
) -> None:
    """List the annotators of a study."""
    with opened(database, data_dir) as store:
        found = people.list_people(store, find_study(store, name).id)
    told = []
    for row in found:
        kind, warned = "simulated" if row.simulated else "", ", warned" if row.warned else ""
        counts = [str(row.done), str(row.excluded)]
        catch = f"{row.catch_failed} of {row.catch_answered}{warned}"
        told.append([row.name, row.status, kind, *counts, catch, row.link_by or ""])
    head = ["annotator", "status", "", "votes", "excluded", "failed catch trials", "link by"]
    facts = (
        *("name", "status", "simulated", "done", "excluded", "link_by"),
        *("catch_failed", "catch_answered"),
    )
    rows = [{fact: getattr(row, fact) for fact in facts} for row in found]
    show({"annotators": rows}, list_text(head, told), as_json)


def _stepping(change: Callable[..., Annotator]) -> Callable[..., None]:
    def command(
        name: StudyName, person: PersonName, data_dir: DataDir = DATA, database: Database = None
    ) -> None:
        _step(change, name, person, data_dir, database)

    return command


for _name, _change, _help in (
    ("pause", people.pause, "Pause an annotator; their votes still count."),
    ("resume", people.resume, "Resume a paused annotator."),
    (
        "include",
        people.include,
        "Include an excluded annotator again; votes count again on items without all votes.",
    ),
    (
        "let-in",
        people.let_in,
        "Let an annotator take part who failed the questions on the instructions.",
    ),
):
    app.command(name=_name, help=_help)(_stepping(_change))


@app.command()
def link(
    name: StudyName, person: PersonName, data_dir: DataDir = DATA, database: Database = None
) -> None:
    """Make a new personal link for an annotator; send it to no one else."""
    with opened(database, data_dir) as store:
        secret = people.new_link(store, find_study(store, name).id, person, datetime.now(UTC))
        typer.echo(rooted(f"/me/{secret}"))


@app.command()
def exclude(
    name: StudyName,
    person: PersonName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the effect on the result.")
    ] = False,
    data_dir: DataDir = DATA,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Exclude an annotator's votes; others fill their place and nothing is deleted."""
    with opened(database, data_dir) as store:
        study_id = find_study(store, name).id
        effect = people.preview_exclusion(store, study_id, person, data_dir / "images")
        facts = {**asdict(effect), "ranking": effect.ranking}
        show({"effect": facts}, _in_words(effect), as_json)
        if dry_run:
            say("Dry run: nothing was changed.")
            return
        done = people.exclude(store, study_id, person, datetime.now(UTC))
        (say if as_json else typer.echo)(f"{done.name} is {done.status}")


def _in_words(effect: Effect) -> str:
    facts = [
        f"{counted(effect.n_votes, 'counted vote')} of {effect.annotator}",
        f"{counted(effect.n_short, 'item')} would no longer have all votes",
        f"{counted(effect.n_undecided, 'majority label')} would become undecided, "
        f"{effect.n_flipped:,} the opposite",
        *(f"{one.model}: {_rate(one.before)} → {_rate(one.after)}" for one in effect.models),
        effect.ranking or "The ranking of the models stays as it is.",
    ]
    return "\n".join(facts)


def _rate(rate: float | None) -> str:
    return "no item decided" if rate is None else f"{rate:.1%} recognised"


@app.command()
def erase(
    name: StudyName,
    person: PersonName,
    votes: Annotated[Votes, typer.Option("--their-votes", help="Keep or remove them.")],
    yes: Annotated[bool, typer.Option("--yes", help="Erase without asking.")] = False,
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Remove a person's name from the database for good; backups and jobs on its votes keep it."""

    def change(*asked: Any) -> Annotator:
        if not yes:
            what = f"Erase {person} for good and {votes} the votes?"
            typer.confirm(what, abort=True, err=True)
        return people.erase(*asked, keep_votes=votes is Votes.KEEP)

    _step(change, name, person, data_dir, database)


def _step(
    change: Callable[..., Annotator],
    name: str,
    person: str,
    data_dir: Path,
    database: str | None,
) -> None:
    with opened(database, data_dir) as store:
        done = change(store, find_study(store, name).id, person, datetime.now(UTC))
        typer.echo(f"{done.name} is {done.status}")
