"""`semsim-studio import`: data published by others.

Exit codes: 0 when all of the source was imported, 1 when something was left out, 2 when nothing
could be done. With --dry-run the same, and nothing is written.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from semsim.base.cli.options import taking
from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DataOption,
    Json,
    TerminalBar,
    say,
    show,
    show_told,
    text_table,
    told_errors,
)
from semsim.base.errors import SettingsError
from semsim.base.progress import Report
from semsim.base.sets.imports import Places, places_of
from semsim.base.table_files import REMARKS
from semsim.comparison.own_scores import keep_own, read_own
from semsim.distractors.registry import check_classes, classes_of, find_judge
from semsim.importers import AUTO, IMPORTERS, Recognise, plan_import
from semsim.importers.import_folder import carry_out
from semsim.importers.import_job import ImportOrder, do_keep
from semsim.importers.import_plan import Importer, ImportPlan, slug
from semsim.importers.table import score_columns
from semsim.importers.uploads import folder_of
from semsim.weights import CHECKPOINTS

app = typer.Typer(
    no_args_is_help=True, help="Import data published by others: images, votes, labels, scores."
)

_Source = Annotated[Path, typer.Argument(help="File or folder to import.")]
_Name = Annotated[str | None, typer.Option(help="Name of the import; default: the source's.")]
_Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder to make, instead of <name> in imports, runs, pictures of --data-dir."
    ),
]
_Judge = Annotated[
    str,
    typer.Option(
        "--distractor-model",
        help="Distractor model that reads the images, see `distractors list`; none: random lists.",
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Keep what is shown without asking.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan; write nothing.")]


def _planned(
    kind: str, source: Path, name: str, settings: dict[str, Any], room: Path, as_json: bool
) -> ImportPlan:
    """Print what importing would do.

    Args:
        room: Where an archive is unpacked.
    """
    with TerminalBar(unit="step") as bar:
        plan = plan_import(kind, source, name, settings, bar, room)
    show_told(plan.parts(), plan.text(), as_json)
    return plan


def _carried_out(plan: ImportPlan, places: Places, judge: Path | None) -> None:
    with TerminalBar(unit="step") as bar:
        folders = carry_out(plan, places, bar)
    say("\n".join(f"Wrote {folder}" for folder in folders))
    if judge is None:
        return
    if not plan.found.sets:
        say("No reconstructions, nothing was judged.")
        return
    from semsim.distractors.apply import apply_judge  # torch, which takes seconds

    with TerminalBar(judge.stem) as bar:
        sets = [places.sets / found.folder for found in plan.found.sets]
        judged = apply_judge(judge, sets, report=bar)
    say("\n".join(one.said for one in judged))


def keep(order: ImportOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out the job that keeps an import, and let the requested distractor model read it."""
    return do_keep(order, folder, report, _judged)


def _judged(order: ImportOrder, sets: Sequence[Path], report: Report) -> None:
    from semsim.distractors.apply import judge_new  # torch, which takes seconds

    judge_new(find_judge(order.judge, order.checkpoints), sets, report=report)


def _judge_of(name: str, checkpoints: Path, plan: ImportPlan) -> Path | None:
    """The judge that is to read what will be imported; None where none is asked for.

    Raises `DataError` before anything is written where its classes are not those of a set.
    """
    if not name:
        return None
    path = find_judge(name, checkpoints)
    for found in plan.found.sets:
        check_classes(classes_of(path), name, found.classes, f"The set {found.model}")
    return path


def _checked(name: str) -> str:
    if slug(name) != name.replace(" ", "_") or not name[:1].isalnum():
        raise SettingsError(
            f"An import's name is that of a folder: letters, digits, spaces and . _ + - only, "
            f"the first a letter or digit; got {name!r}."
        )
    return name


class Destination(NamedTuple):
    """Source of an import, a file or folder, and its destination: a name, and folders."""

    source: _Source
    name: _Name = None
    out: _Out = None
    data_dir: DataOption = DATA

    @property
    def called(self) -> str:
        """Return the name of the import; `SettingsError` for one that no folder can have."""
        return _checked(slug(self.source.resolve().stem) if self.name is None else self.name)


def _reader(
    judge: _Judge = "", checkpoints: CheckpointsOption = CHECKPOINTS
) -> Callable[[ImportPlan], Path | None]:
    return partial(_judge_of, judge, checkpoints)


def _agreed(dry_run: _DryRun = False) -> Callable[[bool], bool]:
    return lambda on_stderr: not dry_run


def _asked_first(dry_run: _DryRun = False, yes: _Yes = False) -> Callable[[bool], bool]:
    return lambda err: not dry_run and (yes or typer.confirm("Keep this?", abort=True, err=err))


def _command(kind: str, importer: Importer | Recognise) -> Callable[..., None]:
    """The command of an importer: its options are the importer's settings. `AUTO` asks first."""

    def given(**settings: Any) -> dict[str, Any]:
        return {key: value for key, value in settings.items() if value is not None}

    own = [_parameter(one.name, _option(one, importer)) for one in fields(importer)]
    given.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    agreed = _asked_first if kind == AUTO else _agreed

    @taking(to=Destination, agreed=agreed, reader=_reader, settings=given)
    def command(
        to: Destination,
        agreed: Callable[[bool], bool],
        reader: Callable[[ImportPlan], Path | None],
        as_json: Json = False,
        *,
        settings: dict[str, Any],
    ) -> None:
        plan = _planned(kind, to.source, to.called, settings, folder_of(to.data_dir), as_json)
        judge = reader(plan)
        if agreed(as_json):
            _carried_out(plan, places_of(to.called, to.data_dir, to.out), judge)
        else:
            say("Dry run: nothing was written.")
        raise typer.Exit(0 if plan.complete else 1)

    return command


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _option(setting: Field, importer: Importer | Recognise) -> Any:
    """A setting as an option that is None unless given."""
    value = getattr(importer, setting.name)
    default = "" if value in (None, "") else f" Default: {value}."
    kind: Any = setting.type
    text = setting.metadata["text"]
    named = f"--{setting.metadata['option'] or setting.name.replace('_', '-')}"
    return Annotated[kind | None, typer.Option(named, help=text + default)]


def _help(kind: str, importer: Importer) -> str:
    like = next(name for name, one in IMPORTERS.items() if type(one) is type(importer))
    return (type(importer).__doc__ or "") if like == kind else f"{like} with its settings here."


@app.command("scores")
def own(
    file: Annotated[
        Path, typer.Argument(help="CSV or Parquet with the columns model, image_id and scores.")
    ],
    study: Annotated[str, typer.Option(help="Name of the study, as in its votes, or its id.")],
    scores: Annotated[
        str, typer.Option(help="Metrics and their columns, as name=column:lower or :higher.")
    ],
    data_dir: DataOption = DATA,
    as_json: Json = False,
) -> None:
    """Store scores of custom metrics for a study; compare and report mark them as custom."""
    with told_errors():
        found = read_own(file, score_columns(scores))
        kept = keep_own(data_dir, [study], found)
    for remark in found.attrs[REMARKS]:
        say(f"Note: {remark}")
    told = [[one.metric, f"{one.n:,}", one.leaks] for one in kept]
    rows = [vars(one) for one in kept]
    show({"scores": rows}, text_table(["metric", "scores", "leaks more"], told), as_json)


app.command(AUTO, help=Recognise.__doc__)(_command(AUTO, Recognise()))
for _kind, _importer in IMPORTERS.items():
    app.command(_kind, help=_help(_kind, _importer))(_command(_kind, _importer))
