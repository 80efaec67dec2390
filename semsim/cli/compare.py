"""`semsim-studio compare` and `report`: which metric agrees with people, from a terminal.

Exit codes: 0 when the comparison was made, 2 when it could not be.
"""

import gc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from semsim.base.cli.options import taking
from semsim.base.cli.terminal import (
    DATA,
    STDOUT,
    CheckpointsOption,
    DataOption,
    Json,
    TerminalBar,
    check_folder,
    say,
    show,
)
from semsim.base.columns import LEAKS
from semsim.base.stats.analysis import AnalysisSettings
from semsim.base.storage.places import resolved
from semsim.comparison.compared import Compared, check_report
from semsim.comparison.frames import HowToCompare, compared_frames, read_table, whole_study
from semsim.comparison.study_tables import imported_tables
from semsim.metrics.scoring import BOOK_COLUMNS
from semsim.reporting.canvas import DOUBLE, SINGLE
from semsim.reporting.report import report_html
from semsim.weights import CHECKPOINTS

_DEFAULTS = AnalysisSettings()


@dataclass(frozen=True, kw_only=True)
class Request:
    """Files to compare, and the settings of their comparison."""

    votes: Path
    scores: Path | None
    labels: Path | None
    how: HowToCompare


def requested(
    votes: Annotated[
        Path, typer.Argument(help="Votes (Parquet, CSV or Excel), or the folder of an import.")
    ],
    scores: Annotated[
        Path | None,
        typer.Argument(help="Scores, likewise; an import may have its own."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels: image files, and columns human:<name> of given labels."),
    ] = None,
    headline: Annotated[
        str | None,
        typer.Option(help="Human score to rank by; left out, the one the study's protocol fixed."),
    ] = None,
    bootstraps: Annotated[
        int, typer.Option(min=1, help="Resamples for ranges.")
    ] = _DEFAULTS.bootstraps,
    permutations: Annotated[
        int, typer.Option(min=1, help="Random permutations, where all of them are too many.")
    ] = _DEFAULTS.permutations,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all of them.")] = _DEFAULTS.seed,
    higher_leaks: Annotated[
        list[str] | None,
        typer.Option(help="A custom metric whose higher values leak more. Repeatable."),
    ] = None,
    lower_leaks: Annotated[
        list[str] | None,
        typer.Option(help="A custom metric whose lower values leak more. Repeatable."),
    ] = None,
    checkpoints: CheckpointsOption = CHECKPOINTS,
    unseen_by: Annotated[
        str,
        typer.Option(
            help="Name of a SemSim: only originals that it has not seen count; all for all; left "
            "out, those that no SemSim here has seen."
        ),
    ] = "",
    match_ids: Annotated[
        bool, typer.Option("--match-ids", help="Take 7 or 7.png for 007 where nothing else fits.")
    ] = False,
    data_dir: DataOption = DATA,
) -> Request:
    """Return the request that the options make."""
    return Request(
        votes=votes,
        scores=scores,
        labels=labels,
        how=HowToCompare(
            checkpoints=checkpoints,
            data=data_dir,
            settings=AnalysisSettings(bootstraps=bootstraps, permutations=permutations, seed=seed),
            headline=headline,
            higher=tuple(higher_leaks or ()),
            lower=tuple(lower_leaks or ()),
            unseen_by=unseen_by,
            match_ids=match_ids,
        ),
    )


@taking(request=requested)
def compare(
    request: Request,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write report, tables and figures into.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an older bundle in --out.")] = False,
    width: Annotated[
        float, typer.Option(min=SINGLE, help="Of figures, in mm: 89 is one column, 183 two.")
    ] = DOUBLE,
    as_json: Json = False,
) -> None:
    """Print how well each metric agrees with people; with --out write everything about it."""
    if out is not None:
        check_folder(out)
        gc.set_threshold(50_000, 20, 20)  # figures are many small objects, none of them garbage
    found = judge(request)
    evidence = found.analysis.evidence
    table = found.agreement.assign(simulated=evidence.simulated, voters=evidence.voters)
    beside = found.order.drop(columns=["title", "mark"])
    table = table.merge(beside, on="metric", suffixes=("", "_of_order"))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
    show({"metrics": rows}, str(found), as_json)
    if out is not None:
        with TerminalBar(unit="figure") as bar:
            found.write(out, overwrite=overwrite, width_mm=width, report=bar)
        say(f"Wrote {out}")


@taking(request=requested)
def report(
    request: Request,
    out: Annotated[Path, typer.Option(help="HTML file; - is stdout.")] = Path("report.html"),
) -> None:
    """Write one HTML file about the comparison, ready to go with a paper; it opens offline."""
    if out != STDOUT:
        check_report(out)
    found = judge(request)
    if out == STDOUT:
        typer.echo(report_html(found.analysis, found.origin))
    else:
        say(f"Wrote {found.report(out)}")


def judge(request: Request) -> Compared:
    """Read the tables, gather and analyse; raises `SemsimError` if they do not fit."""
    scores = None
    if request.scores is not None:
        scores = read_table(request.scores, (*BOOK_COLUMNS, LEAKS))
    labels = None if request.labels is None else read_table(request.labels)
    votes = resolved(request.votes)
    if votes.is_dir():
        found = imported_tables(votes)
        study = found if labels is None else replace(found, labels=labels)
    else:
        study = whole_study(read_table(votes), scores, labels)
    with TerminalBar(unit="step") as bar:
        return compared_frames(study, scores, request.how, bar)
