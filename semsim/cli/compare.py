"""`python -m semsim compare` and `report`: which metric agrees with people, from a terminal.

Exit codes: 0 when the comparison was made, 2 when it could not be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow.parquet as pq
import typer
from pandas.api.types import union_categoricals

from semsim.analysis.result import Analysis, AnalysisSettings, Ceiling
from semsim.cli.options import taking
from semsim.comparison.compared import Scored, compared, origin_of
from semsim.comparison.foreign import directions_in, spec_of
from semsim.comparison.list_judges import weights_stated
from semsim.comparison.study_tables import StudyTables, imported_tables
from semsim.errors import DataError, SettingsError
from semsim.metrics import MetricSpec
from semsim.reporting.bundle import write_bundle
from semsim.reporting.canvas import DOUBLE, SINGLE
from semsim.reporting.methods import Origin, warnings
from semsim.reporting.notation import NONE, p_value, reason, with_interval_or_why
from semsim.reporting.report import report_html
from semsim.scores.scoring import BOOK_COLUMNS
from semsim.terminal import STDOUT, TerminalBar, check_folder, text_table
from semsim.weights import CHECKPOINTS

MOST_ROWS = 10_000_000  # of a table; so many scores take 1.6 GB
_CHUNK = 500_000  # rows of a CSV whose texts are held as such
_DEFAULTS = AnalysisSettings()
_TEXTS = (
    *("study", "dataset", "attack", "model", "metric", "image_id", "class_name", "annotator"),
    *("answer", "weights"),
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to compare: files, the human score, and the directions of foreign metrics."""

    votes: Path
    scores: Path | None
    labels: Path | None
    headline: str | None
    settings: AnalysisSettings
    higher: tuple[str, ...]
    lower: tuple[str, ...]
    checkpoints: Path
    unseen_by: str


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
        int, typer.Option(min=1, help="Resamples for intervals.")
    ] = _DEFAULTS.bootstraps,
    permutations: Annotated[
        int, typer.Option(min=1, help="Random permutations, where all of them are too many.")
    ] = _DEFAULTS.permutations,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all of them.")] = _DEFAULTS.seed,
    higher_leaks: Annotated[
        list[str] | None,
        typer.Option(help="A metric of your own whose higher values leak more; may be repeated."),
    ] = None,
    lower_leaks: Annotated[
        list[str] | None,
        typer.Option(help="A metric of your own whose lower values leak more; may be repeated."),
    ] = None,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder of weight files, where SemSims say what they learned from.")
    ] = CHECKPOINTS,
    unseen_by: Annotated[
        str, typer.Option(help="Name of a SemSim: only originals that it has not seen count.")
    ] = "",
) -> Request:
    """What is to be compared."""
    return Request(
        votes=votes,
        scores=scores,
        labels=labels,
        headline=headline,
        settings=AnalysisSettings(bootstraps=bootstraps, permutations=permutations, seed=seed),
        higher=tuple(higher_leaks or ()),
        lower=tuple(lower_leaks or ()),
        checkpoints=checkpoints,
        unseen_by=unseen_by,
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
) -> None:
    """Print how well each metric agrees with people; with --out write everything about it."""
    if out is not None:
        check_folder(out)
    analysis, origin = judge(request)
    typer.echo(agreement_text(analysis, origin))
    if out is not None:
        with TerminalBar(unit="figure") as bar:
            write_bundle(analysis, out, origin, overwrite=overwrite, width_mm=width, report=bar)
        typer.echo(f"Wrote {out}")


@taking(request=requested)
def report(
    request: Request,
    out: Annotated[Path, typer.Option(help="HTML file; - is stdout.")] = Path("report.html"),
) -> None:
    """Write one HTML file about the comparison, ready to go with a paper; it opens offline."""
    if out != STDOUT and out.suffix not in (".html", ".htm"):
        raise SettingsError(f"--out ends in .html, or is - for stdout; got {out.name!r}.")
    _write(out, report_html(*judge(request)))


def judge(request: Request) -> tuple[Analysis, Origin]:
    """Read the tables, gather and analyse; `SemsimError` says what does not fit."""
    study = _study(request)
    scores = _scores(request, study)
    specs = specs_of(scores, request.higher, request.lower)
    scored = Scored(table=scores, specs=specs, weights=weights_stated(scores))
    headline = request.headline or study.protocol or _DEFAULTS.headline
    settings = replace(request.settings, headline=headline)
    with TerminalBar(unit="step") as bar:
        analysis = compared(study, scored, settings, request.checkpoints, request.unseen_by, bar)
    return analysis, origin_of(study, analysis, scored.weights)


def specs_of(
    scores: pd.DataFrame, higher: Sequence[str] = (), lower: Sequence[str] = ()
) -> list[MetricSpec]:
    """The facts of every metric in a table of scores, in the order they come.

    higher, lower: names of metrics the product does not know, by the direction of leakage. Raises
    `SettingsError` where a direction is missing, given twice, or contradicts a known metric.
    """
    for column in ("metric", "image_id"):
        if column not in scores:
            raise DataError(f"The table of scores has no column {column}; it has {list(scores)}.")
    names = [str(name) for name in scores["metric"].dropna().unique()]
    absent = sorted({*higher, *lower} - set(names))
    if absent:
        raise SettingsError(
            f"No scores of {', '.join(absent)}, whose direction was given. The scores have: "
            f"{', '.join(names)}."
        )
    twice = sorted(set(higher) & set(lower))
    if twice:
        raise SettingsError(f"{', '.join(twice)} cannot leak more both ways; give one direction.")
    directions = directions_in(scores) | dict.fromkeys(higher, True) | dict.fromkeys(lower, False)
    found = {name: spec_of(name, scores, directions) for name in names}
    unknown = [name for name, spec in found.items() if spec is None]
    if unknown:
        raise SettingsError(
            f"The scores have metrics that are not known here: {', '.join(unknown)}. Say of each "
            "whether higher or lower values leak more: --higher-leaks NAME or --lower-leaks NAME."
        )
    return [spec for spec in found.values() if spec is not None]


def agreement_text(analysis: Analysis, origin: Origin) -> str:
    """What a terminal shows: notes, the agreement of every metric, and the human ceiling."""
    ordered = analysis.agreement.sort_values("rho", ascending=False, kind="stable")
    rows = [_agreement_line(row) for _, row in ordered.iterrows()]
    header = ["metric", "n", "|ρ|", "|τ|", "ρ [95 %]", "p", "τ [95 %]", "p", ""]
    ceiling = analysis.ceiling
    limit = (
        f"undefined: {ceiling.undefined}"
        if ceiling.undefined is not None
        else f"ρ {_limit(ceiling, ceiling.rho, ceiling.rho_low, ceiling.rho_high)}, "
        f"τ {_limit(ceiling, ceiling.tau, ceiling.tau_low, ceiling.tau_high)}"
    )
    return "\n".join(
        [
            *(f"Note: {note}" for note in warnings(analysis, origin)),
            f"Agreement with people in {analysis.evidence.name}, human score "
            f"'{analysis.settings.headline}':",
            text_table(header, rows),
            f"Human ceiling: {limit}",
            "Signed values agree with people where positive. Intervals: 95 % over models, of ρ "
            "after Bonett and Wright, of τ by its score; of the ceiling that of one split.",
        ]
    )


def _agreement_line(row: pd.Series) -> list[str]:
    why = reason(row["undefined"])
    if why is not None:
        return [row["title"], str(row["n"]), *[NONE] * 6, f"undefined: {why}"]
    why_none = row["interval_undefined"]
    return [
        *(row["title"], str(row["n"])),
        *(f"{row['abs_rho']:.4f}", f"{row['abs_tau']:.4f}"),
        with_interval_or_why(row["rho"], row["rho_bw_low"], row["rho_bw_high"], why_none),
        p_value(row["p_rho"]),
        with_interval_or_why(row["tau"], row["tau_score_low"], row["tau_score_high"], why_none),
        p_value(row["p_tau"]),
        str(row["p_kind"]),
    ]


def _limit(ceiling: Ceiling, *values: float | None) -> str:
    value, low, high = (float("nan") if one is None else one for one in values)
    return with_interval_or_why(value, low, high, ceiling.interval_undefined)


def _study(request: Request) -> StudyTables:
    labels = None if request.labels is None else read_table(request.labels)
    if not request.votes.is_dir():
        return StudyTables(votes=read_table(request.votes), labels=labels)
    found = imported_tables(request.votes)
    return found if labels is None else replace(found, labels=labels)


def _scores(request: Request, study: StudyTables) -> pd.DataFrame:
    if request.scores is not None:
        return read_table(request.scores, BOOK_COLUMNS)
    if study.scores is not None:
        return study.scores
    if request.votes.is_dir():
        raise SettingsError(f"{request.votes} came without scores; give a table of them after it.")
    raise SettingsError("Give a table of scores after the votes: VOTES SCORES.")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A table of Parquet or CSV; ids and names stay texts.

    columns: those wanted, of which the table may lack some; texts among them come as categories,
    which take a tenth of the memory. None for all. Raises `DataError` where it is not readable or
    has more than `MOST_ROWS` rows.
    """
    try:
        if path.suffix == ".parquet":
            table = _read_parquet(path, columns)
        elif path.suffix == ".csv":
            table = _read_csv(path, columns)
        else:
            raise DataError(f"{path} should be a table ending in .parquet or .csv.")
    except (OSError, ValueError) as error:  # parsing errors of pandas and pyarrow are ValueErrors
        raise DataError(f"{path} is not a readable table ({error}).") from error
    if len(table) > MOST_ROWS:
        raise DataError(_too_long(path))
    return table


def _read_csv(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    # Only an empty cell is missing: a model may be called "None" and an image "007".
    told: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "nrows": MOST_ROWS + 1}
    told["dtype"] = dict.fromkeys(_TEXTS, str)
    if columns is None:
        return pd.read_csv(path, **told)
    with pd.read_csv(path, usecols=lambda name: name in columns, chunksize=_CHUNK, **told) as read:
        # A chunk after the other: read as categories, "007" among the names would become a 7.
        parts = [part.astype(dict.fromkeys({*part} & {*_TEXTS}, "category")) for part in read]
    return pd.DataFrame(
        {
            name: union_categoricals([part[name] for part in parts])
            if name in _TEXTS
            else pd.concat([part[name] for part in parts], ignore_index=True)
            for name in parts[0]
        }
    )


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    with pq.ParquetFile(path) as file:
        if file.metadata.num_rows > MOST_ROWS:
            raise DataError(_too_long(path))
        there = file.schema_arrow.names
    if columns is None:
        return pd.read_parquet(path)
    wanted = [name for name in columns if name in there]
    return pq.read_table(path, columns=wanted, read_dictionary=[*_TEXTS]).to_pandas(
        ignore_metadata=True, self_destruct=True
    )


def _too_long(path: Path) -> str:
    return (
        f"{path} has more than {MOST_ROWS:,} rows, which would take more than 1.6 GB of memory. "
        "Keep the scores of images that people judged, or compare fewer metrics at a time."
    )


def _write(path: Path, text: str) -> None:
    if path == STDOUT:
        typer.echo(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(f"Wrote {path}")
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error}). Choose another --out.") from error
