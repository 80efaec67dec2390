"""`semsim-studio reproduce people`: every metric against people, on public judgements.

A source that is not here, or that shows people the originals themselves, has a line that says so.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DataOption,
    DeviceOption,
    Json,
    TerminalBar,
    rows_of,
    say,
    show_told,
    told_errors,
)
from semsim.base.columns import IMAGE_KEY
from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.sets.imports import Imported, places_of, read_import
from semsim.base.stats.analysis import Analysis, AnalysisSettings, analyse
from semsim.base.stats.ceiling import Ceiling, human_ceiling
from semsim.base.stats.evidence import Evidence, gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.resampling import resample
from semsim.base.stats.roc import POOLED, picture_agreement
from semsim.base.storage.places import DEMO, demo_sets
from semsim.base.words import counted
from semsim.comparison.built_in import scored
from semsim.device import pick_device
from semsim.importers.import_folder import carry_out
from semsim.learning.card import read_card
from semsim.learning.evaluation import human_auc
from semsim.learning.settings import Order, TrainSettings
from semsim.learning.splits import HoldOut, divide
from semsim.metrics import Resources
from semsim.metrics.scoring import ScoreBook, pair_sets_of_folders, specs_of
from semsim.people import SOURCES, Source
from semsim.reporting import writing
from semsim.reporting.notation import NONE, number, reason, with_interval
from semsim.reporting.tables import Cells, Table, table_of
from semsim.weights import CHECKPOINTS

HALVES = "people"  # in place of a metric: some people against the others
COLUMNS = (
    *("source", "metric", "title", "of", "n", "n_originals", "soft_accuracy", "band"),
    *("rho", "rho_low", "rho_high", "tau", "tau_low", "tau_high", "auc", "auc_low", "auc_high"),
    "why",
)
_ORDERED = ("soft_accuracy", "band")
_AUC = ("auc", "auc_low", "auc_high")
SHUFFLE = "semsim:shuffle-"  # begins the names of SemSims that learned from shuffled votes
SHUFFLES = 5  # trainings of half a minute each; the page has more
VOTED = DEMO / "labels.csv"  # what the votes of the demo come to, that the shipped SemSim learned
_SHIPPED = "demo"
_NOT_HERE = "not here: `semsim-studio people get {}`, or --from a folder with a copy"
_FEWEST_MODELS = 3  # with fewer, single pictures are ranked
_OVER_MODELS = {
    **{"rho": "rho", "rho_low": "rho_bw_low", "rho_high": "rho_bw_high"},
    **{"tau": "tau", "tau_low": "tau_score_low", "tau_high": "tau_score_high"},
}


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Places of a run.

    Attributes:
        copies: Folders in which sources are looked for.
        scores: Where scores of pictures are kept.
        resources: Weights and the device.
        shuffled: Where SemSims are trained on shuffled votes, or lie already.
        shuffles: Their number.
    """

    copies: tuple[Path, ...]
    scores: Path
    resources: Resources
    shuffled: Path | None = None
    shuffles: int = 0


def shuffled_semsims(place: Workshop, report: Report = silent) -> Path | None:
    """Train the shipped SemSim on shuffles of its votes, but for those that are there already.

    Returns:
        The folder of their checkpoints; None where none is wanted or the SemSim is not here.
    """
    from semsim.learning.train import learn  # with torch, and only a training needs it

    card = read_card(place.resources.checkpoints / f"{_SHIPPED}.safetensors")
    if card is None or place.shuffled is None or not place.shuffles:
        return None
    made = place.shuffled / card["sha256"][:8]
    asked, settings = card["split"], TrainSettings(**card["settings"])
    kept = HoldOut(kind=asked["hold_out"], fraction=asked["fraction"], seed=asked["seed"])
    rows = divide(_voted(), kept).train
    for seed in range(1, place.shuffles + 1):
        name = f"{SHUFFLE.removeprefix('semsim:')}{seed:02d}"
        order = Order(name=name, checkpoints=made, settings=replace(settings, shuffle=seed))
        if not order.checkpoint.exists():
            learn(order, rows, place.shuffled / name, report)
    return made


def _voted() -> pd.DataFrame:
    """Return the labels of the demo, with its pictures."""
    sets = pair_sets_of_folders(demo_sets().values())
    pictures = [
        one.pairs.assign(model=one.model, dataset=one.dataset, attack=one.attack) for one in sets
    ]
    key = ["model", "image_id"]
    found = pd.read_csv(VOTED).merge(pd.concat(pictures), on=key, validate="1:1")
    return found.assign(simulated=True).sort_values(key, ignore_index=True)


def judged_by_people(
    names: Sequence[str], place: Workshop, report: Report = silent
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Judge every metric on every source.

    Args:
        names: Of `SOURCES`.
        place: Where all is.
        report: Told how many pictures are scored.

    Returns:
        A row a source and metric, columns `COLUMNS`, and why metrics have no row, by name.

    Raises:
        UnknownNameError: For another source.
        DataError: Where a copy of a source cannot be read.
    """
    rows: list[dict[str, Any]] = []
    absent: dict[str, str] = {}
    for name in names:
        source = SOURCES[name]
        folder = source.found_in(*place.copies)
        if folder is None:
            rows.append({"source": name, "why": _NOT_HERE.format(name)})
            continue
        found, lacking = _of_source(source, folder, place, report)
        rows += [{"source": name, **row} for row in found]
        absent |= lacking
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS)), absent


def _of_source(
    source: Source, folder: Path, place: Workshop, report: Report
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    with tempfile.TemporaryDirectory() as made:
        places = places_of(source.name, Path(made))
        carry_out(source.plan(folder), places)
        study = read_import(places.tables)
        book = _scored(source, study, place, report)
    specs = specs_of(book.scores)
    known = {spec.name for spec in specs}
    absent = {name: why for name, why in book.reasons.items() if name not in known}
    tables: dict[str, Any] = {"labels": study.labels, "people": study.people, "name": source.name}
    evidence = gather(study.votes, book.scores, specs, **tables)
    headline = "majority" if len(study.votes) else str(study.record["headline"])
    if not specs:
        layout = layout_of(evidence.images)
        ceiling = human_ceiling(evidence.response, layout, resample(layout, 1, 1, seed=0))
        return [_people_row(source, evidence, ceiling)], absent
    own = [spec for spec in specs if not spec.name.startswith(SHUFFLE)]
    settings = AnalysisSettings(headline=headline)
    analysis = analyse(evidence, own, settings)
    rows = _metric_rows(analysis)
    if shuffled := [spec for spec in specs if spec not in own]:
        rows.append(_shuffled_row(analyse(evidence, shuffled, settings)))
    return [*rows, _people_row(source, evidence, analysis.ceiling)], absent


def _scored(source: Source, study: Imported, place: Workshop, report: Report) -> ScoreBook:
    """Return scores of all metrics that need no missing file."""
    given = study.scores
    if given is None and source.compares and "reconstruction" in study.labels:
        also = shuffled_semsims(place, report)
        return scored(study.labels, place.resources, place.scores, report, also)
    # Without a picture there are no others.
    scores = pd.DataFrame(columns=[*IMAGE_KEY, "metric", "value"]) if given is None else given
    return ScoreBook(scores=scores, made={}, unavailable={}, refused={}, missing=())


def _metric_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a row a metric, the best first; of few models, ρ and τ are of single pictures."""
    over_models = len(analysis.models) >= _FEWEST_MODELS
    table = analysis.agreement.rename(columns={two: one for one, two in _OVER_MODELS.items()})
    if not over_models:
        headline = analysis.settings.headline
        table = picture_agreement(analysis.evidence, analysis.specs, headline)
    agreement = table.set_index("metric")
    auc = analysis.auc[analysis.auc["scope"] == POOLED].set_index("metric")
    rows = []
    for order in analysis.order.to_dict("records"):
        name, shown = order["metric"], ("metric", "title", "n_originals")
        row = {key: order[key] for key in (*shown, *(_ORDERED if over_models else ()))}
        if name in agreement.index:
            own = agreement.loc[name]
            row |= {key: own[key] for key in ("n", *_OVER_MODELS)}
            why = reason(own["undefined"]) or reason(own.get("rho_note"))
            row |= {"of": "models" if over_models else "pictures", "why": why}
        if name in auc.index:
            row |= dict(zip(_AUC, auc.loc[name, ["auc", "low", "high"]], strict=True))
        rows.append(row)
    return rows


def _shuffled_row(analysis: Analysis) -> dict[str, Any]:
    """Return one row of all SemSims of shuffled votes: means, and lowest and highest as ends."""
    own, order = analysis.agreement, analysis.order
    row: dict[str, Any] = {
        "metric": SHUFFLE.rstrip("-"),
        "title": f"SemSim, {counted(len(own), 'shuffle')} of the votes: mean [lowest, highest]",
        **{"of": "models", "n": int(own["n"].max()), "n_originals": order["n_originals"].max()},
        **{"soft_accuracy": float(order["soft_accuracy"].mean())},
    }
    for name in ("rho", "tau"):
        ends = own[name].min(), own[name].max()
        row |= {name: own[name].mean(), f"{name}_low": ends[0], f"{name}_high": ends[1]}
    return row


def _people_row(source: Source, evidence: Evidence, ceiling: Ceiling) -> dict[str, Any]:
    """Return how well people predict each other: halves by models, one person by pictures."""
    auc = human_auc(evidence).get(POOLED, {})
    return {
        **{"metric": HALVES, "title": "People: some against the others", "of": "models"},
        **{key: getattr(ceiling, key) for key in _OVER_MODELS},
        **dict(zip(_AUC, (auc.get(key) for key in ("auc", "low", "high")), strict=True)),
        **{"n": ceiling.n_models or np.nan, "why": _why(source, ceiling)},
    }


def _why(source: Source, ceiling: Ceiling) -> str:
    words = [] if source.compares else [source.note]
    words += [f"ρ {ceiling.rho_note}."] if ceiling.rho_note else []
    return " ".join([*words, *([f"No ceiling: {ceiling.undefined}."] if ceiling.undefined else [])])


def people_table(rows: pd.DataFrame) -> Table:
    """Return the rows of `judged_by_people` as a table to read."""

    def shown(row: pd.Series, name: str) -> str:
        return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])

    cells: Cells = {
        "source": lambda row: str(row["source"]),
        "metric": lambda row: NONE if pd.isna(row["title"]) else str(row["title"]),
        "ranked": lambda row: NONE if pd.isna(row["n"]) else f"{row['n']:,.0f} {row['of']}",
        "soft pairwise accuracy": lambda row: number(row["soft_accuracy"]),
        "band": lambda row: NONE if not row["band"] > 0 else f"{row['band']:.0f}",
        "ρ": lambda row: shown(row, "rho"),
        "τ": lambda row: shown(row, "tau"),
        "AUC": lambda row: shown(row, "auc"),
        "why not": lambda row: reason(row["why"]) or "",
    }
    return table_of(
        *(rows, cells),
        name="people",
        title="Do metrics agree with people?",
        caption=(
            "Positive agrees. In brackets the 95% interval over models, of AUC over originals. "
            "Metrics of one band do not differ significantly here. The row of people is the "
            "ceiling: some of them against the others."
        ),
    )


def reproduce_people(
    copies: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Folder with copies of sources. Repeatable."),
    ] = None,
    sources: Annotated[str, typer.Option(help="Some sources, with commas; all by default.")] = "",
    shuffles: Annotated[
        int, typer.Option(min=0, help="SemSims to train on shuffled votes, as a control.")
    ] = SHUFFLES,
    out: Annotated[Path, typer.Option(help="Folder for people.md and people.csv.")] = (
        DATA / "reproduce/people"
    ),
    data_dir: DataOption = DATA,
    checkpoints: CheckpointsOption = CHECKPOINTS,
    device: DeviceOption = "auto",
    as_json: Json = False,
) -> None:
    """Judge every metric against people, on public judgements, as one table."""
    with told_errors():
        names = [one.strip() for one in sources.split(",") if one.strip()] or list(SOURCES)
        for folder in copies or ():
            if not folder.is_dir():
                raise DataError(f"There is no folder {folder}; --from names one with copies.")
        place = Workshop(
            copies=(*(copies or ()), data_dir / "people"),
            scores=out / "scores",
            resources=Resources(checkpoints=checkpoints, device=pick_device(device)),
            shuffled=out / "shuffled",
            shuffles=shuffles,
        )
        with TerminalBar("Judging", unit="picture") as bar:
            rows, absent = judged_by_people(names, place, bar)
        text = _written(rows, absent, out)
        show_told({"metrics": rows_of(rows)}, text, as_json)
    say(f"Wrote {out / 'people.md'} and people.csv.")


def _written(rows: pd.DataFrame, absent: Mapping[str, str], out: Path) -> str:
    out.mkdir(parents=True, exist_ok=True)
    missing = [f"{name} has no row: {why}" for name, why in absent.items()]
    cited = [f"{name}: {one.licence}. {one.citation}." for name, one in SOURCES.items()]
    text = "\n".join([writing.markdown(people_table(rows)), *missing, "", *cited])
    (out / "people.md").write_text(f"{text}\n", encoding="utf-8")
    (out / "people.csv").write_text(writing.csv(rows), encoding="utf-8")
    return text
