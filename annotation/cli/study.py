"""semsim-studio study list, create, export and so on: what is done to a whole study."""

from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from annotation import formats
from annotation.cli.console import (
    DATA,
    STDOUT,
    Database,
    DataDir,
    Images,
    Json,
    StudyName,
    counting,
    find_study,
    list_text,
    opened,
    options_of,
    pictures,
    say,
    seldom,
    show,
    text_table,
    told_errors,
)
from annotation.errors import AnnotationError, StudyError
from annotation.formats import FORMATS, What
from annotation.formats.card import one_line
from annotation.spec import SETTINGS, USUAL_TASK, StudySpec, Task, value_of
from annotation.study import activity as acts
from annotation.study import exports, labelling, protocols
from annotation.study import simulate as simulation
from annotation.study.create import examine, keep_study
from annotation.study.endpoint import ADDRESS, KEY, Endpoint, key_of
from annotation.study.study_file import StudyFile, paths_of, read_text, texts_listed
from annotation.study.vlm import Budget, Run
from annotation.texts import counted
from annotation.web.root_path import rooted
from semsim.base.cli.options import taking
from semsim.base.table_files import read_plain
from semsim.base.words import voters_words

Out = Annotated[
    Path,
    typer.Option("--out", help="File, .csv, .jsonl or .parquet; - is stdout."),
]


def studies(data_dir: DataDir = DATA, database: Database = None, as_json: Json = False) -> None:
    """List all studies."""
    with opened(database, data_dir) as store:
        found = labelling.list_studies(store)
    rows = [
        {
            "id": one.id,
            "name": one.name,
            "task": one.task,
            "status": one.status,
            "simulated": one.spec.simulated,
            "voter": one.spec.voters,
            "made_by": one.by,
            "items": one.n_items,
            "link": rooted(f"/join/{one.token}"),
        }
        for one in found
    ]
    facts = ("name", "task", "status", "items", "made_by", "link", "id")
    told = [[*(str(row[fact]) for fact in facts), voters_words(str(row["voter"]))] for row in rows]
    head = ["name", "task", "status", "items", "made by", "link", "id", "answered by"]
    show({"studies": rows}, list_text(head, told), as_json)


FLAGS = ("votes_per_item", "list_size", "decoy_rate", "headline", "seed", "simulated", "voter")
CREATE = """Create a study from reconstruction sets, from a manifest, or as a file says.

A manifest has the columns model, dataset, attack, image_id, class_name,
original, reconstruction and, if known, attacked; the last three are paths
from its folder on."""


@taking(flags=options_of(StudySpec, FLAGS))
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the study.")] = "",
    source: Annotated[
        Path | None,
        typer.Option("--file", "--from", help="A study's file, .yaml; other options replace."),
    ] = None,
    sets: Annotated[
        list[Path] | None, typer.Option("--set", help="A reconstruction set. Repeatable.")
    ] = None,
    manifests: Annotated[
        list[Path] | None,
        typer.Option(
            "--manifest", help="A .csv, .jsonl or .parquet, a row a reconstruction. Repeatable."
        ),
    ] = None,
    task: Annotated[Task, typer.Option(help=SETTINGS["task"].text)] = USUAL_TASK,
    flags: Any = None,
    setting: Annotated[
        list[str] | None, typer.Option("--setting", help="NAME=VALUE, listed above. Repeatable.")
    ] = None,
    password_file: Annotated[Path | None, typer.Option(help="File with the password only.")] = None,
    gold: Annotated[
        Path | None, typer.Option(help="A .csv of known answers: model, image_id, answer.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and every problem.")
    ] = False,
    data_dir: DataDir = DATA,
    database: Database = None,
    images: Images = "",
    as_json: Json = False,
) -> None:
    folders, files = sets or [], manifests or []
    with told_errors():
        flags = {"task": task, **flags}
        given = {one: flags[one] for one in flags if _is_given(context, one)} if source else flags
        given |= parse(setting or ()) | ({"name": name} if name else {})
        if password_file:
            given["password"] = read_plain(password_file, StudyError).strip()
        file = read_text(read_plain(source, StudyError)) if source else StudyFile(settings={})
        where = source.parent if source else Path()
        found = examine(
            file.spec(**{"task": task, **file.settings, **given}),
            [*folders, *paths_of(file.sets, where)],
            [*files, *paths_of(file.manifests, where)],
            gold=gold or file.answers,
            tell=counting("Reading reconstructions"),
        )
        if dry_run:
            show({"plan": found.rows()}, found.text(), as_json)
            say("Dry run: nothing was written.")
            raise typer.Exit(1 if found.problems else 0)
    with opened(database, data_dir, make=True) as store:
        made = keep_study(store, found, pictures(images, data_dir, write=True), say)
        alike = [one for one in labelling.list_studies(store) if one.name == made.name]
    if len(alike) > 1:
        alike_are = counted(len(alike), "study", "studies")
        say(f"{alike_are} are called {made.name!r} now: call each by its id.")
    link = rooted(f"/join/{made.token}")
    facts = {"id": made.id, "items": made.n_items, "decoys": made.n_decoys}
    facts |= {"failed": made.n_failed, "link": link}
    who = voters_words(made.spec.voters)
    answered = f"answered by {who}" if made.spec.simulated else f"link {link}"
    told = (
        f"{made.id}  {counted(made.n_items, 'item')} ({counted(made.n_decoys, 'decoy')}), "
        f"{counted(made.n_failed, 'failed attack')} left out, {answered}"
    )
    said = [found.people_needed, *found.notes]
    show({"study": {**facts, "notes": said}}, "\n".join([told, *said]), as_json)


def _table() -> str:
    """All settings with their defaults, one a line."""
    lines = []
    for one in list(SETTINGS.values())[1:]:
        told = isinstance(one.usual, (bool, int, float, str)) and one.usual != ""
        lines.append(f"{one.name}: {one.text}{f' (default {one.usual})' if told else ''}")
    return "\n\n".join(lines)


create.__doc__ = f"{CREATE}\n\nSettings:\n\n{_table()}"


def parse(pairs: Iterable[str]) -> dict[str, Any]:
    """Settings given as NAME=VALUE; an empty value is None where a setting may be that.

    Raises `StudyError` for what is no pair, a name there is not, or a value of another type.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise StudyError(f"A setting is given as NAME=VALUE; got {pair!r}.")
        if name.strip() == "password":
            raise StudyError("Others can read a command line: put it in a file, --password-file.")
        found[name.strip()] = value_of(name.strip(), text.strip())
    return found


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def texts() -> None:
    """List every text that annotators read, as a study's file has them.

    Replace what you like, in any language.
    """
    typer.echo(texts_listed(), nl=False)


def amend(
    name: StudyName,
    setting: Annotated[list[str], typer.Option("--setting", help="NAME=VALUE. Repeatable.")],
    why: Annotated[str, typer.Option(help="The reason, kept with the new version.")],
    data_dir: DataDir = DATA,
    database: Database = None,
) -> None:
    """Change settings of a study: a new version of its protocol, stamped on the votes to come."""
    with opened(database, data_dir) as store:
        found = protocols.amend(store, find_study(store, name).id, parse(setting), why)
        typer.echo(f"{found.name}: protocol version {found.version}, {found.protocol}")


def versions(
    name: StudyName, data_dir: DataDir = DATA, database: Database = None, as_json: Json = False
) -> None:
    """List the versions of a study's protocol and the accuracy of no-image baselines."""
    with opened(database, data_dir) as store:
        study = find_study(store, name)
        found = protocols.protocol_versions(store, study.id)
        lists = exports.facts_of_lists(store, study.id)
    rows, told = [], []
    for one in found:
        changes = {key: str(getattr(one.spec, key)) for key in one.changed}
        facts = {"version": one.version, "at": one.at.isoformat(), "sha256": one.sha256}
        rows.append({**facts, "changes": changes, "why": one.why})
        words = ", ".join(f"{key} = {value}" for key, value in changes.items())
        told.append([str(one.version), _moment(one.at), words, one.why, one.sha256])
    table = text_table(["version", "since", "changes", "why", "sha256"], told)
    drawn = {**asdict(lists), "said": lists.said} if lists else None
    text = "\n".join([table, *(["", *lists.said] if lists else [])])
    show({"versions": rows, "lists": drawn}, text, as_json)


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def activity(
    name: Annotated[str, typer.Argument(help="A study's name or id; left out, all.")] = "",
    data_dir: DataDir = DATA,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """List who did what to a study, or to all of them, the latest first."""
    with opened(database, data_dir) as store:
        found = acts.activity(store, find_study(store, name).id if name else None)
    told = [[_moment(one.at), one.study, one.by or "–", one.what] for one in found]
    rows = [{**asdict(one), "at": one.at.isoformat()} for one in found]
    show({"activity": rows}, text_table(["at", "study", "by", "what"], told), as_json)


BUDGET = tuple(one.name for one in fields(Budget))


class With(StrEnum):
    """Maker of the answers of a simulated study."""

    JURY = "jury"
    VLM = "vlm"


@taking(budget=options_of(Budget, BUDGET))
def simulate(
    name: StudyName,
    annotators: Annotated[
        int | None,
        typer.Option(
            min=1, help="Simulated annotators, or draws of the model.  [default: 5; of a model 1]"
        ),
    ] = None,
    who: Annotated[
        With, typer.Option("--with", help="Simulated annotators of the sets, or a model.")
    ] = With.JURY,
    base_url: Annotated[
        str, typer.Option(envvar=ADDRESS, help="vlm: such as http://127.0.0.1:8000/v1.")
    ] = "",
    voter: Annotated[str, typer.Option(help="vlm: its name.  [default: the study's]")] = "",
    key_file: Annotated[
        Path | None, typer.Option(help=f"vlm: file of the key.  [default: variable {KEY}]")
    ] = None,
    budget: Any = None,
    data_dir: DataDir = DATA,
    database: Database = None,
    images: Images = "",
) -> None:
    """Let simulated annotators, or a vision-language model, answer a study made for them."""
    with opened(database, data_dir) as store:
        found = find_study(store, name)
        if who is With.JURY:
            simulation.simulate(store, found.id, annotators or 5)
            votes = len(exports.export_votes(store, found.id))
            typer.echo(f"{votes} simulated votes in {found.name!r}")
            return
        run = Run(
            store=store,
            study=found,
            images=pictures(images, data_dir),
            endpoint=Endpoint(
                address=base_url, model=voter or found.spec.voter, key=key_of(key_file)
            ),
            n_annotators=annotators or 1,
            budget=Budget(**budget),
            tell=seldom(lambda state: f"{found.spec.voter}: {state.text}"),
        )
        try:
            typer.echo(f"{found.name}, answered by {found.spec.voter}: {run().text}")
        except KeyboardInterrupt:
            say("Stopped. Every answer so far is kept; the same command goes on.")
            raise typer.Exit(130) from None


def progress(
    name: StudyName, data_dir: DataDir = DATA, database: Database = None, as_json: Json = False
) -> None:
    """Show how far a study is."""
    with opened(database, data_dir) as store:
        study = find_study(store, name)
        now = labelling.progress(store, study.id)
    done, wanted = sum(v * n for v, n in enumerate(now.coverage)), study.spec.votes_per_item
    total = {"name": study.name, "votes": done, "votes_wanted": wanted * now.n_items}
    items = [{"votes": v, "items": n} for v, n in enumerate(now.coverage)]
    lines = []
    for one in now.annotators:
        pace = "–" if one.median_rt_ms is None else f"{one.median_rt_ms:.0f}"
        lines.append([one.name, str(one.done), pace, "simulated" if one.simulated else ""])
    told = [
        f"{study.name}: {done:,} of {total['votes_wanted']:,} votes",
        text_table(["votes", "items"], [[str(one["votes"]), str(one["items"])] for one in items]),
        text_table(["annotator", "votes", "median ms", ""], lines),
    ]
    people = [asdict(one) for one in now.annotators]
    show({"study": total, "items": items, "annotators": people}, "\n\n".join(told), as_json)


FORMAT_LIST = "\n\n".join(
    f"{name}: {one.about} ({', '.join(one.writers)})" for name, one in FORMATS.items()
)


def export(
    name: StudyName,
    out: Annotated[Path, typer.Option("--out", help="File or new folder; - is stdout.")],
    form: Annotated[
        str | None, typer.Option("--format", help="One of those above.  [default: by the ending]")
    ] = None,
    what: Annotated[
        What | None, typer.Option(help="Which table.  [default: the first the format has]")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            "--license",
            help="Of images and votes, such as cc-by-4.0; the card of hf has it.",
        ),
    ] = None,
    data_dir: DataDir = DATA,
    database: Database = None,
    images: Images = "",
) -> None:
    with opened(database, data_dir) as store:
        study = find_study(store, name)
        wanted = form or ("csv" if out == STDOUT else formats.format_for(out))
        shows = formats.needs_pictures(wanted, what)  # else they are neither asked for nor fetched
        lie = pictures(images, data_dir) if shows else data_dir / "images"
        data = exports.read_study(store, study.id, lie)
        if licence is not None:
            if form != "hf":
                raise AnnotationError("--licence goes on a card, which only --format hf has.")
            data = replace(data, licence=one_line(licence))
        if out == STDOUT:
            content, said = formats.content(data, wanted, what)
            typer.echo(content, nl=False)
            say(said)
        else:
            typer.echo(f"{formats.export(data, out, wanted, what)} in {out}")
        acts.exported(store, study.id, wanted)


export.__doc__ = f"Write a study to a file or a new folder.\n\nFormats:\n\n{FORMAT_LIST}"


def labels(
    name: StudyName,
    out: Out,
    data_dir: DataDir = DATA,
    database: Database = None,
    images: Images = "",
) -> None:
    """Write the majority label of every reconstruction, one a row."""
    export(name, out, what=What.LABELS, data_dir=data_dir, database=database, images=images)
