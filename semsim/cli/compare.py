"""`semsim-studio compare` and `report`: which metric agrees with people, from a terminal.

Exit codes: 0 when the comparison was made, 2 when it could not be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from pandas.api.types import is_string_dtype, union_categoricals

from semsim.analysis.evidence import LEAKS
from semsim.analysis.result import AnalysisSettings
from semsim.base.places import resolved
from semsim.base.spreadsheet import restored
from semsim.cli.options import taking
from semsim.comparison.compared import Compared, check_report
from semsim.comparison.frames import HowToCompare, compared_frames, whole_study
from semsim.comparison.study_tables import StudyTables, imported_tables
from semsim.errors import DataError
from semsim.kept.extras import parquet
from semsim.kept.table_size import check_size
from semsim.reporting.canvas import DOUBLE, SINGLE
from semsim.reporting.report import report_html
from semsim.scores.scoring import BOOK_COLUMNS
from semsim.terminal import DATA, STDOUT, Json, TerminalBar, check_folder, say, show
from semsim.weights import CHECKPOINTS

MOST_ROWS = 10_000_000  # of a table; so many scores take 1.6 GB
_FEWER = (
    "More would take more than 1.6 GB of memory. Keep the scores of images that people judged, or "
    "compare fewer metrics at a time."
)
_CHUNK = 500_000  # rows of a CSV whose texts are held as such
_DEFAULTS = AnalysisSettings()
_TEXTS = (
    *("study", "dataset", "attack", "model", "metric", "image_id", "class_name", "annotator"),
    *("answer", "weights", LEAKS),
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to compare: files, and how."""

    votes: Path
    scores: Path | None
    labels: Path | None
    how: HowToCompare


def requested(
    votes: Annotated[
        Path, typer.Argument(help="Votes (Parquet or CSV), or the folder of an import.")
    ],
    scores: Annotated[
        Path | None, typer.Argument(help="Scores (Parquet or CSV); an import may have its own.")
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
        typer.Option(help="A metric of your own whose higher values leak more. Repeatable."),
    ] = None,
    lower_leaks: Annotated[
        list[str] | None,
        typer.Option(help="A metric of your own whose lower values leak more. Repeatable."),
    ] = None,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder of weight files, where SemSims say what they learned from.")
    ] = CHECKPOINTS,
    unseen_by: Annotated[
        str,
        typer.Option(
            help="Name of a SemSim: only originals that it has not seen count; all for all; left "
            "out, those that no SemSim here has seen."
        ),
    ] = "",
    data_dir: Annotated[
        Path, typer.Option(help="Folder of the studio's data, where scores of your own are kept.")
    ] = DATA,
) -> Request:
    """What is to be compared."""
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
    found = judge(request)
    table = found.agreement.assign(simulated=found.analysis.evidence.simulated)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
    show(rows, str(found), as_json)
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
    """Read the tables, gather and analyse; `SemsimError` says what does not fit."""
    scores = None
    if request.scores is not None:
        scores = read_table(request.scores, (*BOOK_COLUMNS, LEAKS), where="metric")
    study = _study(request, scores)
    with TerminalBar(unit="step") as bar:
        return compared_frames(study, scores, request.how, bar)


def _study(request: Request, scores: pd.DataFrame | None) -> StudyTables:
    labels = None if request.labels is None else read_table(request.labels)
    if not request.votes.is_dir():
        return whole_study(read_table(request.votes), scores, labels)
    found = imported_tables(request.votes)
    return found if labels is None else replace(found, labels=labels)


def read_table(
    path: Path, columns: Sequence[str] | None = None, where: str | None = None
) -> pd.DataFrame:
    """A table of Parquet or CSV; ids and names stay texts.

    columns: those wanted, of which the table may lack some; texts among them come as categories,
    which take a tenth of the memory. None for all. where: a column without which it is all of them
    after all. Raises `DataError` where it is not readable or has more than `MOST_ROWS` rows.
    """
    path = resolved(path)
    try:
        if path.suffix not in _READERS:
            raise DataError(f"{path} should be a table ending in .parquet or .csv.")
        names, read = _READERS[path.suffix]
        table = read(path, columns if where is None or where in names(path) else None)
    except (OSError, ValueError) as error:  # parsing errors of pandas and pyarrow are ValueErrors
        raise DataError(f"{path} is not a readable table ({error}).") from error
    check_size(path, len(table), MOST_ROWS, "rows", _FEWER)
    return table


def _restored(table: pd.DataFrame) -> pd.DataFrame:
    """Texts without the apostrophes that keep spreadsheets from running them."""
    texts = [name for name in table if name in _TEXTS and is_string_dtype(table[name])]
    return table.assign(**{name: table[name].map(restored, na_action="ignore") for name in texts})


def _names_in_csv(path: Path) -> list[str]:
    return [str(name) for name in pd.read_csv(path, nrows=0)]


def _read_csv(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    # Only an empty cell is missing: a model may be called "None" and an image "007".
    told: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "nrows": MOST_ROWS + 1}
    told["dtype"] = dict.fromkeys(_TEXTS, str)
    if columns is None:
        return _restored(pd.read_csv(path, **told))
    with pd.read_csv(path, usecols=lambda name: name in columns, chunksize=_CHUNK, **told) as read:
        # A chunk after the other: read as categories, "007" among the names would become a 7.
        parts = [
            _restored(part).astype(dict.fromkeys({*part} & {*_TEXTS}, "category")) for part in read
        ]
    return pd.DataFrame(
        {
            name: union_categoricals([part[name] for part in parts])
            if name in _TEXTS
            else pd.concat([part[name] for part in parts], ignore_index=True)
            for name in parts[0]
        }
    )


def _names_in_parquet(path: Path) -> list[str]:
    return list(parquet().read_schema(path).names)


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    pq = parquet()
    with pq.ParquetFile(path) as file:
        check_size(path, file.metadata.num_rows, MOST_ROWS, "rows", _FEWER)
    if columns is None:
        return pd.read_parquet(path)
    wanted = [name for name in columns if name in _names_in_parquet(path)]
    return pq.read_table(path, columns=wanted, read_dictionary=[*_TEXTS]).to_pandas(
        ignore_metadata=True, self_destruct=True
    )


_READERS = {
    ".parquet": (_names_in_parquet, _read_parquet),
    ".csv": (_names_in_csv, _read_csv),
}
