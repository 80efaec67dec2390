"""What votes say: the SemSim paper's tables beside ours, and its figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.errors import DataError
from semsim.learning.ablations import STUDIES, StudyPlan, default_values
from semsim.learning.ablations_run import Material, Workplace, run_study
from semsim.learning.controls import ALL
from semsim.learning.leave_out import LeaveOut, leave_each_out
from semsim.learning.splits import HoldOut, divide
from semsim.progress import Report, silent
from semsim.reporting import writing
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.export import write_both
from semsim.reporting.figures import figure
from semsim.reporting.study_figure import study_figure
from semsim.reproduce.semsim_paper import SAID
from semsim.reproduce.semsim_scales import Part, Scale
from semsim.reproduce.semsim_tables import analysis_of, cells, study_frame, table_text
from semsim.terminal import rows_of, text_table

_FIGURE_3, _FIGURE_5, _FIGURE_6 = "figure3", "figure5", "figure6"


class Results(NamedTuple):
    """Tables 1 and 2 and the figures' own, as text and as rows; `n_figures` were written."""

    text: str
    rows: list[dict[str, Any]]
    n_figures: int


def results(
    scale: Scale, material: Material, place: Workplace, folder: Path, report: Report = silent
) -> Results:
    """Tables 1 and 2, tables.csv and the figures, which are written below `folder`.

    material: of all studies together. Raises `DataError` where it is of no study of `scale`.
    """
    studies = {part.name: of_part(material, part) for part in scale.parts}
    if not any(len(one.labels) for one in studies.values()):
        known = ", ".join(sorted(set(material.labels["dataset"].astype(str))))
        raise DataError(f"These votes are on {known}, which scale {scale.name} does not have.")
    learned = _learned(scale, studies, place, folder, report)
    analyses = dict(_analyses(scale, studies, learned, place, report))
    table = pd.concat(
        [cells(part.table, part.row, _data(part), analyses.get(part.name)) for part in scale.parts]
    )
    table.to_csv(folder / "tables.csv", index=False)
    said = [table_text(number, table) for number in (1, 2) if (table["table"] == number).any()]
    first = scale.parts[0].name
    drawn = _figures(analyses[first]) if first in analyses else {}
    lines: list[str] = []
    rows = rows_of(table)
    for what, values in scale.figures:
        try:
            found = _varied(scale, what, values, studies, place, folder, report)
        except DataError as error:
            lines.append(f"Figure {STUDIES[what].figure} is not made: {error}")
            continue
        drawn[f"figure{STUDIES[what].figure}"] = _of_study(what, found)
        lines.append(_study_text(what, found))
        rows += rows_of(study_frame(found["rows"]), figure=STUDIES[what].figure)
    simulated = any(one.evidence.simulated for one in analyses.values())
    written = _write(drawn, folder / "figures", simulated)
    return Results("\n\n".join([*said, *lines]), rows, len(written))


def of_part(material: Material, part: Part) -> Material:
    """The rows of `material` that are of one study, by data set and attack."""
    labels = material.labels[_of(material.labels, part)]
    votes = None if material.votes is None else material.votes[_of(material.votes, part)]
    return Material(labels=labels, votes=votes)


def _of(table: pd.DataFrame, part: Part) -> pd.Series:
    """Whether each row is of the part: a study of its name, or of what that is about."""
    return table["study"].astype(str) == part.name


def _data(part: Part) -> str:
    return part.campaign.datasets[0].partition(":")[0]


def _learned(
    scale: Scale,
    studies: Mapping[str, Material],
    place: Workplace,
    folder: Path,
    report: Report,
) -> dict[str, Path]:
    """The checkpoint of the SemSim that has not seen a data set, by the data set's name."""
    every = _joined([studies[part.name] for part in scale.of_table(1)])
    try:
        found = leave_each_out(
            LeaveOut(controls=ALL), scale.semsim, every, place, folder / "leave-out", report
        )
    except DataError:
        return {}  # a single data set leaves none to learn from, and the tables say so
    rows: Sequence[Mapping[str, Any]] = found["rows"]
    return {row["left_out"]: Path(row["checkpoint"]) for row in rows if "why" not in row}


def _analyses(
    scale: Scale,
    studies: Mapping[str, Material],
    learned: Mapping[str, Path],
    place: Workplace,
    report: Report,
) -> Iterator[tuple[str, Analysis]]:
    """Of every study with votes, beside a SemSim that has not seen its data set."""
    for part in scale.parts:
        own = studies[part.name]
        if len(own.labels):
            unseen = learned.get(str(own.labels["dataset"].iloc[0]))
            yield part.name, analysis_of(part.name, own, unseen, place, report)


def _joined(studies: Sequence[Material]) -> Material:
    tables = [one.votes for one in studies if one.votes is not None]
    return Material(
        labels=pd.concat([one.labels for one in studies], ignore_index=True),
        votes=pd.concat(tables, ignore_index=True) if tables else None,
    )


def _figures(analysis: Analysis) -> dict[str, Drawn]:
    """Figures 3, 5 and 6 of the first data set."""
    drawn = {f"{_FIGURE_3}-matrix": figure(analysis, "matrix")}
    for spec in analysis.specs:
        own = spec.name.startswith("semsim:")
        title = "semsim" if own else spec.name
        drawn[f"{_FIGURE_3}-{title}"] = figure(analysis, "scatter", spec.name)
        if spec.name == "psnr":
            drawn[_FIGURE_5] = figure(analysis, "ranked", spec.name)
        if own:
            drawn[_FIGURE_6] = figure(analysis, "ranked", spec.name)
    return drawn


def _varied(
    scale: Scale,
    what: str,
    values: tuple[object, ...],
    studies: Mapping[str, Material],
    place: Workplace,
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    """A study of Figure 7 or 9, judged by the first data set; learned from the others."""
    every = _joined([studies[part.name] for part in scale.of_table(1)])
    held = HoldOut(
        kind="dataset", value=str(studies[scale.parts[0].name].labels["dataset"].iloc[0])
    )
    train = divide(every.labels, held).train
    plan = StudyPlan(
        what=what,
        values=values or default_values(what, train),
        settings=scale.semsim,
        hold_out=held,
        controls=ALL,
    )
    return run_study(plan, every, place, folder / what, report)


def _of_study(what: str, found: Mapping[str, Any]) -> Drawn:
    kind, frame = STUDIES[what], study_frame(found["rows"])
    own = [name for name in frame.columns if name != "SemSim AUC"]
    return study_figure(frame[own], kind.title, kind.axis, kind.figure)


def _study_text(what: str, found: Mapping[str, Any]) -> str:
    kind, frame = STUDIES[what], study_frame(found["rows"])
    rows = [[str(v) if isinstance(v, str) else f"{v:.3f}" for v in row] for row in frame.to_numpy()]
    head = [f"Figure {kind.figure}. {kind.title}. The paper: {SAID[what]}"]
    head += ["Simulated votes: this says nothing about people."] if found["simulated"] else []
    return "\n".join([*head, text_table([kind.axis, *frame.columns[1:]], rows)])


def _write(drawn: Mapping[str, Drawn], folder: Path, simulated: bool) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, one in drawn.items():
        named = replace(one, name=name)
        shown = marked_as_simulated(named) if simulated else named
        written.append(write_both(shown, folder / f"{name}.png"))
        (folder / f"{name}.csv").write_text(writing.csv(one.frame), encoding="utf-8")
    return written
