"""What votes say: the SemSim paper's tables beside ours, and its figures."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.errors import DataError
from semsim.kept.keys import key_of
from semsim.learning.ablations import STUDIES, StudyPlan, default_values, failures
from semsim.learning.ablations_run import Material, Workplace, run_study
from semsim.learning.controls import ALL
from semsim.learning.leave_out import LeaveOut, leave_each_out
from semsim.learning.splits import HoldOut, divide
from semsim.progress import Report, silent
from semsim.reporting import writing
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.export import write_both
from semsim.reporting.figures import figure
from semsim.reporting.notation import number
from semsim.reporting.study_figure import study_figure
from semsim.reproduce.semsim_paper import SAID
from semsim.reproduce.semsim_scales import Part, Scale
from semsim.reproduce.semsim_tables import (
    analysis_of,
    cells,
    figures_text,
    learned_text,
    study_frame,
    table_text,
)
from semsim.reproduce.simulated_votes import Jury, jury_of
from semsim.terminal import rows_of, text_table

_FIGURE_3, _FIGURE_5, _FIGURE_6 = "figure3", "figure5", "figure6"
_FIGURE_9B = "Caltech-101"  # which judges the second panel of Figure 9


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
    work = folder / "trained" / _key(scale, material)
    learned = _learned(scale, studies, place, work, report)
    analyses = dict(_analyses(scale, studies, learned, place, report))
    juries = {name: jury_of(one.votes) for name, one in studies.items()}
    table = pd.concat(
        [
            cells(part.table, part.row, _data(part), analyses.get(part.name), juries[part.name])
            for part in scale.parts
        ]
    )
    table.to_csv(folder / "tables.csv", index=False)
    said = [table_text(number, table) for number in (1, 2) if (table["table"] == number).any()]
    said += [learned_text(learned)] if learned else []
    said += blind_spots(studies, juries)
    first = scale.parts[0].name
    drawn = _figures(analyses[first]) if first in analyses else {}
    said += [figures_text(analyses[first], _data(scale.parts[0]))] if first in analyses else []
    lines: list[str] = []
    rows = rows_of(table)
    for panel in _panels(scale):
        try:
            found = _varied(scale, panel, studies, place, work, report)
        except DataError as error:
            lines.append(f"Figure {panel.figure} is not made: {error}")
            continue
        drawn[f"figure{panel.figure}"] = _of_study(panel, found)
        lines.append(_study_text(panel, found, juries[panel.judged_by.name]))
        rows += rows_of(study_frame(found["rows"]), figure=panel.figure)
    written = _write(drawn, folder / "figures")
    return Results("\n\n".join([*said, *lines]), rows, len(written))


class _Panel(NamedTuple):
    """A figure of a study of SemSim: what is varied, and the part whose data set judges."""

    figure: str
    what: str
    values: tuple[object, ...]
    judged_by: Part


def _panels(scale: Scale) -> Iterator[_Panel]:
    """The figures of a scale; Figure 9 once more on Caltech-101, where there is one."""
    own = {part.row: part for part in scale.of_table(1)}
    for what, values in scale.figures:
        figure = STUDIES[what].figure
        yield _Panel(figure, what, values, scale.parts[0])
        if what == "margin" and _FIGURE_9B in own:
            yield _Panel(f"{figure}B", what, values, own[_FIGURE_9B])


def _key(scale: Scale, material: Material) -> str:
    """Of everything that a SemSim learns from: other votes or settings make other ones."""
    tables = [
        one.to_csv(index=False) for one in (material.labels, material.votes) if one is not None
    ]
    return key_of([*tables, scale.semsim], 16)


def blind_spots(studies: Mapping[str, Material], juries: Mapping[str, Jury | None]) -> list[str]:
    """What programs that voted cannot see, and what to do about it; a line a study."""
    lines = []
    for name, jury in juries.items():
        seen = studies[name].labels["recognisable"].astype("boolean").fillna(False)
        if jury is None or not len(seen):
            continue
        if jury.blind:
            lines.append(
                f"{name}: the programs that voted recognise nothing, so that what they say of "
                "reconstructions says nothing. Let them learn longer: --jury-epochs."
            )
        elif not seen.any():
            lines.append(
                f"{name}: the programs that voted recognise originals and not one reconstruction; "
                "no metric can be ranked and no SemSim learns here. Take a larger --preset, whose "
                "attacks get more back."
            )
    return lines


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
) -> list[dict[str, Any]]:
    """The SemSims that have not seen a data set, a row each, as `leave_each_out` has them."""
    every = _joined([studies[part.name] for part in scale.of_table(1)])
    try:
        found = leave_each_out(
            LeaveOut(controls=ALL), scale.semsim, every, place, folder / "leave-out", report
        )
    except DataError:
        return []  # a single data set leaves none to learn from, and the tables say so
    return list(found["rows"])


def _analyses(
    scale: Scale,
    studies: Mapping[str, Material],
    learned: Sequence[Mapping[str, Any]],
    place: Workplace,
    report: Report,
) -> Iterator[tuple[str, Analysis]]:
    """Of every study with votes, beside a SemSim that has not seen its data set."""
    unseen_by = {one["left_out"]: Path(one["checkpoint"]) for one in learned if "why" not in one}
    for part in scale.parts:
        own = studies[part.name]
        if len(own.labels):
            unseen = unseen_by.get(str(own.labels["dataset"].iloc[0]))
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
    panel: _Panel,
    studies: Mapping[str, Material],
    place: Workplace,
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    """A study of Figure 7 or 9, judged by one data set; learned from the others."""
    every = _joined([studies[part.name] for part in scale.of_table(1)])
    judging = studies[panel.judged_by.name].labels["dataset"]
    if judging.empty:
        raise DataError(f"there are no votes on {panel.judged_by.row}, which judges it.")
    held = HoldOut(kind="dataset", value=str(judging.iloc[0]))
    train = divide(every.labels, held).train
    plan = StudyPlan(
        what=panel.what,
        values=panel.values or default_values(panel.what, train, scale.semsim),
        settings=scale.semsim,
        hold_out=held,
        controls=ALL,
    )
    found = run_study(plan, every, place, folder / f"figure{panel.figure}", report)
    failed = failures(found["rows"])
    if len(failed) == len(found["rows"]):
        raise DataError(" ".join(failed))
    return found


def _of_study(panel: _Panel, found: Mapping[str, Any]) -> Drawn:
    kind, frame = STUDIES[panel.what], study_frame(found["rows"])
    own = [name for name in frame.columns if name != "SemSim AUC"]
    made = study_figure(frame[own], kind.title, kind.axis, panel.figure)
    return marked_as_simulated(made) if found["simulated"] else made


def _study_text(panel: _Panel, found: Mapping[str, Any], jury: Jury | None) -> str:
    kind, frame = STUDIES[panel.what], study_frame(found["rows"])
    rows = [[v if isinstance(v, str) else number(v, 3) for v in row] for row in frame.to_numpy()]
    judged = f"Judged by what stands in for {panel.judged_by.row}."
    head = [f"Figure {panel.figure}. {kind.title}. {judged} The paper: {SAID[panel.what]}"]
    head += ["Simulated votes: this says nothing about people."] if found["simulated"] else []
    head += [f"There {jury.words}"] if jury is not None else []
    table = text_table([kind.axis, *frame.columns[1:]], rows)
    return "\n".join([*head, table, *failures(found["rows"])])


def _write(drawn: Mapping[str, Drawn], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, one in drawn.items():
        written.append(write_both(one, folder / f"{name}.png"))
        (folder / f"{name}.csv").write_text(writing.csv(one.frame), encoding="utf-8")
    return written
