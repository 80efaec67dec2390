"""`semsim-studio reproduce semsim`: Tables 1 and 2 and the figures of the SemSim paper.

Its studies are ready for people: a file each, and the commands that use it. The human study knows
nothing of it; what goes between are files. `semsim-studio study create --file FILE` makes the study
of a file written here. Tables of votes are our |ρ| and |τ| beside the paper's.
"""

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer

from semsim.base.cli import terminal
from semsim.base.cli.terminal import say
from semsim.base.errors import DataError, SettingsError
from semsim.base.metric_spec import CONTROLS
from semsim.base.progress import Report, silent
from semsim.base.registry import read_plugin
from semsim.base.sets.reader import read_set
from semsim.base.stats.analysis import Analysis, analyse
from semsim.base.storage.atomic import write_json, write_text
from semsim.base.storage.pieces import key_of
from semsim.base.storage.places import PROGRAM
from semsim.base.words import simulated_words
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.plan import choose_images
from semsim.campaign.vertical import vertical_sets
from semsim.datasets import DATASETS
from semsim.device import cores
from semsim.learning.ablations import (
    STUDIES,
    AblationPlan,
    LeaveOut,
    default_values,
    failures,
    judged_words,
)
from semsim.learning.ablations_run import Material, Workplace, read_materials, run_ablation
from semsim.learning.baselines import ALL, SHUFFLED, auc_words, verdict_of
from semsim.learning.evaluation import (
    auc_of,
    evidence_of,
    judged_of,
    metric_rows,
    scale_notes,
    scope_of,
    semsim_row,
)
from semsim.learning.splits import HoldOut, divide
from semsim.metrics import find_metric
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.papers import engine
from semsim.papers.semsim_scales import (
    METRICS,
    PRINTED,
    SAID,
    VOTES_PER_IMAGE,
    StudiesScale,
    StudyPart,
    in_mixed_precision,
    plan_rows,
    plan_text,
    scale_of,
    works_of,
)
from semsim.papers.simulated_votes import (
    LIST_SIZE,
    SAYS_NOTHING,
    Jury,
    Voters,
    jury_of,
    simulated_people,
    simulated_votes,
)
from semsim.reporting.bundle import write_figure
from semsim.reporting.canvas import Drawn, marked_as_simulated
from semsim.reporting.figures import figure
from semsim.reporting.leak_map import study_figure
from semsim.reporting.notation import NONE, interval, number, reason
from semsim.weights import CHECKPOINTS

# The paper's metrics by the names of ours.
OURS = {"PSNR": "psnr", "MSE": "mse", "SSIM": "ssim", "LPIPS": "lpips-alex", "FID": "fid"}
_ENDS = {  # columns of an analysis, and ours
    **{"rho_bw_low": "rho_low", "rho_bw_high": "rho_high"},
    **{"tau_score_low": "tau_low", "tau_score_high": "tau_high"},
}
_RANKED = {"psnr": "figure5", "semsim": "figure6"}
_FIGURE_9B = "Caltech-101"  # which judges the second panel of Figure 9


class SemsimResults(NamedTuple):
    """Tables 1 and 2 and the figures' own, as text and as rows; `n_figures` were written."""

    text: str
    parts: dict[str, list[dict[str, Any]]]
    n_figures: int


def results(
    scale: StudiesScale, material: Material, place: Workplace, folder: Path, report: Report = silent
) -> SemsimResults:
    """Tables 1 and 2, tables.csv and the figures, which are written below `folder`.

    results.json has what else the text is made of: SemSims beside their controls (learned), the
    metrics on single pictures (pictures), and the studies of Figures 7 and 9 (studies).

    Args:
        material: Of all studies together.

    Raises:
        DataError: Where it is of no study of `scale`.
    """
    studies = {part.name: of_parts(material, part) for part in scale.parts}
    if not any(len(one.labels) for one in studies.values()):
        known = ", ".join(sorted(set(material.labels["dataset"].astype(str))))
        raise DataError(f"These votes are on {known}, which scale {scale.name} does not have.")
    work = folder / "trained" / _key(scale, material)
    judging = _Judging(scale, studies, material, place, work, report)
    learned = judging.learned()
    analyses = dict(judging.analyses(learned))
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
    pictures, varied = list[dict[str, Any]](), dict[str, list[dict[str, Any]]]()
    drawn: dict[str, Drawn] = {}
    if (first := analyses.get(scale.parts[0].name)) is not None:
        drawn, pictures = _figures(first), picture_rows(first)
        said.append(figures_text(pictures, _data(scale.parts[0]), first.evidence.simulated))
    for panel in _panels(scale):
        try:
            found = judging.varied(panel)
        except DataError as error:
            said.append(f"Figure {panel.figure} is not made: {error}")
            continue
        drawn[f"figure{panel.figure}"] = _of_study(panel, found)
        said.append(_study_text(panel, found, juries[panel.judged_by.name]))
        varied[panel.figure] = terminal.rows_of(study_frame(found["rows"]), figure=panel.figure)
    told = {"learned": learned, "pictures": pictures, "studies": varied}
    write_json(folder / "results.json", told)
    for name, one in drawn.items():
        write_figure(one, folder / "figures" / name)
    figures = [row for rows in varied.values() for row in rows]
    parts = {"tables": terminal.rows_of(table), "figures": figures}
    return SemsimResults("\n\n".join(said), parts, len(drawn))


class _Panel(NamedTuple):
    """A figure of a study of SemSim: what is varied, and the part whose data set judges."""

    figure: str
    what: str
    values: tuple[object, ...]
    judged_by: StudyPart


def _panels(scale: StudiesScale) -> Iterator[_Panel]:
    """The figures of a scale; Figure 9 once more on Caltech-101, where there is one."""
    own = {part.row: part for part in scale.of_table(1)}
    for what, values in scale.figures:
        figure = STUDIES[what].figure
        yield _Panel(figure, what, values, scale.parts[0])
        if what == "margin" and _FIGURE_9B in own:
            yield _Panel(f"{figure}B", what, values, own[_FIGURE_9B])


def _key(scale: StudiesScale, material: Material) -> str:
    """Of everything that a SemSim learns from: other votes or settings make other ones."""
    tables = [
        one.to_csv(index=False) for one in (material.labels, material.votes) if one is not None
    ]
    return key_of([*tables, scale.semsim], 16)


def blind_spots(studies: Mapping[str, Material], juries: Mapping[str, Jury | None]) -> list[str]:
    """Return what programs that voted cannot see, and a remedy; a line a study."""
    lines = []
    for name, jury in juries.items():
        seen = studies[name].labels["recognisable"].astype("boolean").fillna(False)
        if jury is not None and len(seen) and (jury.blind or not seen.any()):
            lines.append(engine.caption("semsim", "blind" if jury.blind else "unseen", name=name))
    return lines


def of_parts(material: Material, *parts: StudyPart) -> Material:
    """The rows of `material` that are of some studies, by their names."""

    def own(table: pd.DataFrame) -> pd.DataFrame:
        named = table["study"].astype(str).isin([part.name for part in parts])
        return table[named].reset_index(drop=True)

    votes = None if material.votes is None else own(material.votes)
    return Material(labels=own(material.labels), votes=votes)


def _data(part: StudyPart) -> str:
    return part.campaign.datasets[0].partition(":")[0]


class _Judging(NamedTuple):
    """The votes of a scale, by part, and how SemSims that learn of them are trained and judged."""

    scale: StudiesScale
    studies: Mapping[str, Material]
    material: Material
    place: Workplace
    folder: Path
    report: Report

    @property
    def every(self) -> Material:
        """All votes of Table 1."""
        return of_parts(self.material, *self.scale.of_table(1))

    def learned(self) -> list[dict[str, Any]]:
        """The SemSims that have not seen a data set, a row each, as `run_ablation` has them."""
        plan = LeaveOut(settings=self.scale.semsim, controls=ALL)
        folder = self.folder / "leave-out"
        try:
            found = run_ablation(plan, self.every, self.place, folder, self.report)
        except DataError:
            return []  # a single data set leaves none to learn from, and the tables say so
        return list(found["rows"])

    def analyses(self, learned: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Analysis]]:
        """Of every study with votes, beside a SemSim that has not seen its data set."""
        unseen = {one["left_out"]: Path(one["checkpoint"]) for one in learned if "why" not in one}
        for part in self.scale.parts:
            own = self.studies[part.name]
            if len(own.labels):
                beside = unseen.get(str(own.labels["dataset"].iloc[0]))
                yield part.name, analysis_of(part.name, own, beside, self.place, self.report)

    def varied(self, panel: _Panel) -> dict[str, Any]:
        """A study of Figure 7 or 9, judged by one data set; learned from the others."""
        judging, every = self.studies[panel.judged_by.name].labels["dataset"], self.every
        if judging.empty:
            raise DataError(f"there are no votes on {panel.judged_by.row}, which is its test set.")
        held, semsim = HoldOut(kind="dataset", value=str(judging.iloc[0])), self.scale.semsim
        train = divide(every.labels, held).train
        plan = AblationPlan(
            what=panel.what,
            values=panel.values or default_values(panel.what, train, semsim),
            settings=semsim,
            hold_out=held,
            controls=ALL,
        )
        folder = self.folder / f"figure{panel.figure}"
        found = run_ablation(plan, every, self.place, folder, self.report)
        failed = failures(found["rows"])
        if len(failed) == len(found["rows"]):
            raise DataError(" ".join(failed))
        return found


def _figures(analysis: Analysis) -> dict[str, Drawn]:
    """Figures 3, 5 and 6 of the first data set."""
    drawn = {"figure3-matrix": figure(analysis, "matrix")}
    for spec in analysis.specs:
        title = "semsim" if spec.name.startswith("semsim:") else spec.name
        drawn[f"figure3-{title}"] = figure(analysis, "scatter", spec.name)
        if title in _RANKED:
            drawn[_RANKED[title]] = figure(analysis, "ranked", spec.name)
    return drawn


def _of_study(panel: _Panel, found: Mapping[str, Any]) -> Drawn:
    kind, frame = STUDIES[panel.what], study_frame(found["rows"])
    own = [name for name in frame.columns if not name.startswith("SemSim AUC")]
    made = study_figure(frame[own], kind.title, kind.axis, panel.figure)
    return marked_as_simulated(made) if found["simulated"] else made


def _study_text(panel: _Panel, found: Mapping[str, Any], jury: Jury | None) -> str:
    kind, frame = STUDIES[panel.what], study_frame(found["rows"])
    asked = {"figure": panel.figure, "title": kind.title, "judged_by": panel.judged_by.row}
    head = [engine.caption("semsim", "study", **asked, said=SAID[panel.what])]
    head += simulated_words(found["simulated"])
    head += [f"There {jury.words}"] if jury is not None else []
    rows = [[v if isinstance(v, str) else number(v, 3) for v in row] for row in frame.to_numpy()]
    table = terminal.text_table([kind.axis, *frame.columns[1:]], rows)
    return "\n".join([*head, table, *failures(found["rows"])])


def analysis_of(
    name: str,
    material: Material,
    checkpoint: Path | None,
    place: Workplace,
    report: Report = silent,
) -> Analysis:
    """Analyse how well every metric agrees with the votes of one study, called `name`.

    Args:
        checkpoint: Of the SemSim beside them; None where there is none.
    """
    judging = place.judging()
    sets, names = pair_sets_of_labels(material.labels), list(judging.metrics)
    books = [score_sets(sets, names, judging.resources, judging.scores, report)]
    if checkpoint is not None:
        own, elsewhere = f"semsim:{checkpoint.stem}", checkpoint.parent
        resources = replace(judging.resources, checkpoints=elsewhere)
        books.append(score_sets(sets, [own], resources, judging.scores, report))
        names.append(own)
    specs = [find_metric(one).spec for one in names]
    scores = pd.concat([book.scores for book in books if not book.scores.empty])
    evidence = evidence_of(material.labels, material.votes, scores, specs)
    return analyse(replace(evidence, name=name), specs, judging.analysis)


def cells(
    table: int, row: str, data: str, analysis: Analysis | None, jury: Jury | None = None
) -> pd.DataFrame:
    """A row of the paper's table as a line a metric.

    Columns: table, row, data (what stands in for it), metric, models, rho, tau, both absolute and
    NaN where there is none, `_ENDS`, their 95% intervals over models with the sign they have
    (above 0 agrees), paper_rho, paper_tau, simulated, why, of what is missing, and jury_originals,
    jury_grey, jury_mean of `jury`, who voted.
    """
    shares = jury or Jury(*[math.nan] * 3)
    facts = {"table": table, "row": row, "data": data}
    voted = {f"jury_{name}": share for name, share in shares._asdict().items()}
    voted["simulated"] = analysis is not None and analysis.evidence.simulated
    lines = []
    for place, metric in enumerate(METRICS):
        paper = {f"paper_{one}": PRINTED[table, row, one][place] for one in ("rho", "tau")}
        lines.append({**facts, "metric": metric, **_found(metric, analysis), **paper, **voted})
    return pd.DataFrame(lines)


def _found(metric: str, analysis: Analysis | None) -> dict[str, Any]:
    nothing = {"models": 0, **dict.fromkeys(("rho", "tau", *_ENDS.values()), math.nan)}
    if analysis is None:
        return {**nothing, "why": "not run"}
    table = analysis.agreement
    mine = table["metric"].str.startswith("semsim:")
    rows = table[mine] if metric == "SemSim" else table[table["metric"] == OURS[metric]]
    if rows.empty:
        learned = "no SemSim could be trained" if metric == "SemSim" else "not scored"
        return {**nothing, "why": learned}
    one = rows.iloc[0]
    sizes = {"models": int(one["n"]), "rho": one["abs_rho"], "tau": one["abs_tau"]}
    ends = {ours: one[theirs] for theirs, ours in _ENDS.items()}
    return {**sizes, **ends, "why": reason(one["undefined"]) or reason(one["rho_note"]) or ""}


def table_text(number: int, table: pd.DataFrame) -> str:
    """Table 1 or 2 for a terminal: ours with the paper's in brackets, and 95% intervals.

    Below it, who voted where these were programs, and why cells are missing.
    """
    own = table[table["table"] == number]
    lines: list[list[str]] = []
    voted: list[str] = []
    gaps: list[str] = []
    for (row, data), part in own.groupby(["row", "data"], sort=False):
        facts = [str(row), str(data), str(part["models"].max())]
        for sign, column in (("ρ", "rho"), ("τ", "tau")):
            found = zip(part[column], part[f"paper_{column}"], strict=True)
            texts = [f"{'–' if a != a else f'{a:.4f}'} ({b:.4f})" for a, b in found]
            ends = zip(part[f"{column}_low"], part[f"{column}_high"], strict=True)
            lines.append([*facts, f"|{sign}|", *texts])
            lines.append(["", "", "", f"{sign}, 95%", *(interval(*both) for both in ends)])
        jury = Jury(*(float(part[f"jury_{name}"].iloc[0]) for name in Jury._fields))
        voted += [] if math.isnan(jury.originals) else [f"{row}: {jury.words}"]
        missing = part[part["why"] != ""].groupby("why")["metric"].agg(", ".join)
        gaps += [f"{row}: {metrics}: {why}." for why, metrics in missing.items()]
    said = [SAYS_NOTHING] if own["simulated"].any() else []
    shown = terminal.text_table(["paper's row", "here", "models", "", *METRICS], lines)
    head = engine.caption("semsim", "agreement", number=number)
    variants = engine.caption("semsim", "variants")
    return "\n".join([head, *said, shown, variants, *voted, *gaps])


def learned_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Every SemSim of Table 1 beside its controls, by the data set that it has not seen.

    Args:
        rows: Of `run_ablation`; of those with `why` the reason stands there.
    """
    lines: list[list[str]] = []
    said: list[str] = []
    scope = scope_of(*judged_of(rows))
    for row in rows:
        left_out = str(row["left_out"])
        if "why" in row:
            said.append(f"{left_out}: {row['why']}")
            continue
        judged = row["held_out"]
        own = semsim_row(judged)["metric"]
        named = {one["metric"]: one for one in judged["metrics"]}
        titles = {own: "SemSim", **{f"{own}.{one}": what for one, what in CONTROLS.items()}}
        titles |= {SHUFFLED: "on shuffled votes, mean"}
        for name, title in titles.items():
            if name in named:
                sizes = [_size(named[name][sign]) for sign in ("rho", "tau")]
                found = [*sizes, _size(auc_of(judged, name, scope))]
                lines.append([left_out, title, *(number(one, 2) for one in found)])
        said.append(" ".join([f"{left_out}:", *verdict_of(judged).sentences]))
    head = "SemSim beside its controls, on the data set that it has not seen."
    marks = [SAYS_NOTHING] if any(row.get("held_out", {}).get("simulated") for row in rows) else []
    header = ["not seen", "network", "|ρ|", "|τ|", auc_words(scope)]
    table = [terminal.text_table(header, lines), *scale_notes(rows)] if lines else []
    return "\n".join([head, *marks, *table, *judged_words(rows), *said])


_PICTURES: engine.Columns = {
    "metric": lambda row: row["title"],
    "ρ with people": lambda row: number(row["rho"], 2),
    "with metrics, from": lambda row: number(row["least"], 2),
    "to": lambda row: number(row["most"], 2),
    "ordered": lambda row: number(row["ordered"].get("auc", math.nan), 2),
    "95%": lambda row: interval(row["ordered"].get("low"), row["ordered"].get("high")),
    "originals": lambda row: str(row["ordered"].get("n_groups", NONE)),
}


def figures_text(rows: Sequence[Mapping[str, Any]], data: str, simulated: bool) -> str:
    """Return Figures 3, 5 and 6 as numbers of every metric; Figures 5 and 6 of single pictures.

    Args:
        rows: Of `picture_rows`.
        data: What stands in for the paper's first data set.
    """
    marks = [SAYS_NOTHING] if simulated else []
    head, said = engine.caption("semsim", "pictures", data=data), f"The paper: {SAID['pictures']}"
    return "\n".join([head, *marks, engine.text_of(_PICTURES, rows), said])


def picture_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return Figures 3, 5 and 6 as rows: a metric's ρ with people, and its order within originals.

    least, most: of its agreement with the other metrics, NaN where there is none. ordered: its AUC
    within originals; empty where no original has both kinds.
    """
    between, found = analysis.matrix.astype(float).to_dict(), []
    for row in metric_rows(analysis):
        others = [one.title for one in analysis.specs if one.title != row["title"]]
        alike = [near for one in others if not math.isnan(near := between[row["title"]][one])]
        least, most = (min(alike), max(alike)) if alike else (math.nan, math.nan)
        facts = {"title": row["title"], "rho": row["rho"], "least": least, "most": most}
        found.append({**facts, "ordered": row["auc"].get("within original") or {}})
    return found


def study_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Tabulate a study, a row a value: |ρ| and |τ| of SemSim, |τ| of the others, its AUC.

    Args:
        rows: Of `run_ablation`; means over the seeds that were trained, NaN where nothing is
            defined.
    """
    found: list[dict[str, Any]] = []
    scope = scope_of(*judged_of(rows))
    for row in rows:
        line: dict[str, Any] = {"value": str(row["value"])}
        if "why" not in row:
            judged = row["held_out"]
            named, own = {one["metric"]: one for one in judged["metrics"]}, semsim_row(judged)
            line |= {"SemSim |ρ|": _size(own["rho"]), "SemSim |τ|": _size(own["tau"])}
            line[f"SemSim {auc_words(scope)}"] = _size(auc_of(judged, "semsim", scope))
            others = {metric: name for metric, name in OURS.items() if name in named}
            line |= {f"{one} |τ|": _size(named[name]["tau"]) for one, name in others.items()}
        found.append(line)
    return pd.DataFrame(found).groupby("value", sort=False).mean().reset_index()


def _size(value: float | None) -> float:
    return math.nan if value is None else abs(value)


SIMULATED = "simulated"
LABELS = "-labels.parquet"  # ends the name of a study's labels, beside its votes
# Of pairs that show two originals, to one that does not, the paper names no rate.
_ASKED: dict[str, dict[str, Any]] = {
    "recognition": {"list_size": LIST_SIZE},
    "pair": {"decoy_rate": 0.5},
}


def reproduce_semsim(
    preset: Annotated[
        str, typer.Option(help="smoke, small (built-in data) or paper (a GPU, see --plan).")
    ] = "small",
    images: Annotated[
        Path | None,
        typer.Option(
            "--image-dir",
            help="Folder <class>/<image>, as CIFAR-100's, in place of the first data.",
        ),
    ] = None,
    votes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Table of a study's votes, its labels beside it. simulated: by programs, "
            "for a dry run. Repeatable.",
        ),
    ] = None,
    jury_epochs: Annotated[
        int,
        typer.Option(
            min=0, help="How long those programs learn, in tenths of the usual; 0: the preset's."
        ),
    ] = 0,
    mixed_precision: Annotated[
        bool,
        typer.Option(
            "--mixed-precision", help="bfloat16 in trainings and attacks, for a GPU; checked."
        ),
    ] = False,
    plan: engine.PlanOption = False,
    workers: terminal.WorkersOption = 0,
    scheduler: terminal.SchedulerOption = "",
    device: terminal.DeviceOption = "auto",
    data_dir: terminal.DataOption = terminal.DATA,
    checkpoints: terminal.CheckpointsOption = CHECKPOINTS,
    out: Annotated[Path, typer.Option(help="Folder for studies, tables and figures.")] = (
        terminal.DATA / "reproduce/semsim"
    ),
    as_json: terminal.Json = False,
) -> None:
    """Reconstructions of 14 targets on each data set, studies of them, and what votes on them say.

    Without --votes it ends with studies for people; with them it prints Tables 1 and 2 beside the
    paper's cells and writes Figures 3, 5, 6, 7 and 9. What was computed before is not again.
    """
    with terminal.told_errors():
        asked, given = scale_of(preset, images), list(votes or ())
        asked = in_mixed_precision(asked) if mixed_precision else asked
        folder, planned = out / asked.name, {"studies": plan_rows(asked)}
        (terminal.say if as_json else typer.echo)(plan_text(asked))
        if plan:

            def below(lower: str) -> list[engine.Work]:
                return works_of(scale_of(lower), data_dir, known=False)

            works = works_of(asked, data_dir)
            engine.show_plan("semsim", works, as_json, (preset, below), also=planned)
            return
        check_votes(given, jury_epochs)
        folder.mkdir(parents=True, exist_ok=True)
        machines = engine.Machines(workers, scheduler, device, checkpoints)
        sets = reconstructions(asked, data_dir, machines)
        studies = write_studies(asked, sets, folder / "studies")
        if not given:
            again = ["--data-dir", str(data_dir), "--out", str(out)]
            again += ["--image-dir", str(images)] if images else []
            again += ["--mixed-precision"] if mixed_precision else []
            said = next_steps(asked, studies, folder, data_dir, again)
            terminal.show_told(planned, said, as_json)
            return
        if given == [SIMULATED]:
            longer = replace(asked, jury_epochs=jury_epochs or asked.jury_epochs)
            given = [
                str(simulated_part(part, longer, sets[part.name], folder, workers))
                for part in longer.parts
            ]
        place = Workplace(
            checkpoints=checkpoints.resolve(),
            scores=(data_dir / "scores").resolve(),
            device=device,
            metrics=tuple(OURS.values()),
        )
        with terminal.TerminalBar("Judging") as bar:
            tables = [Path(one) for one in given]
            material = read_materials([labels_beside(one) for one in tables], tables)
            found = results(asked, material, place, folder, bar)
        terminal.show_told(found.parts, found.text, as_json)
        say(f"Wrote {folder / 'tables.csv'} and {found.n_figures} figures.")


def check_votes(given: Sequence[str], jury_epochs: int = 0) -> None:
    """`SettingsError` for --votes that cannot be, before anything is computed.

    Args:
        jury_epochs: Not 0 where programs are to vote that learn so long.
    """
    if jury_epochs and list(given) != [SIMULATED]:
        raise SettingsError("--jury-epochs is for simulated annotators: --votes simulated.")
    if SIMULATED in given and len(given) > 1:
        raise SettingsError("--votes is either simulated or the tables of people's votes.")
    for one in given:
        if one != SIMULATED:
            labels_beside(Path(one))


def labels_beside(votes: Path) -> Path:
    """The labels of the study whose votes are given; `DataError` where one of both is missing."""
    path = votes.with_name(f"{votes.stem}{LABELS}")
    for one, what in ((votes, "votes"), (path, "labels")):
        if not one.is_file():
            raise DataError(
                f"No {what} at {one}. Export both, `export STUDY --out NAME.parquet` and `labels "
                f"STUDY --out NAME{LABELS}` of `semsim-studio study`, into one folder."
            )
    return path


def reconstructions(
    scale: StudiesScale, data: Path, machines: engine.Machines
) -> dict[str, list[Path]]:
    """The reconstruction sets of every part, by its name; what is done is not computed again.

    Raises `DataError` where some images could not be attacked, or data sets are not there.
    """
    plans = {part.name: plan_of(part.campaign) for part in scale.parts if not part.vertical}
    made = engine.carried_out(plans, data, machines)
    workers = machines.workers or cores()
    for part in scale.parts:
        if part.vertical:
            with terminal.TerminalBar(part.name) as bar:
                made[part.name] = vertical_sets(
                    part.vertical, data, bar, workers=workers, scheduler=machines.scheduler
                )
    return {name: with_pictures(sets, name) for name, sets in made.items()}


def with_pictures(sets: Sequence[Path], name: str) -> list[Path]:
    """The sets of a study in which an attack got any picture back; the others are named.

    Raises `DataError` where none did.
    """
    found = {one: not read_set(one).pairs.empty for one in sets}
    for one in (folder.name for folder, there in found.items() if not there):
        say(f"{name}: the attack on {one} failed on every image; it is in no study.")
    if not any(found.values()):
        raise DataError(f"Every attack of {name} failed, so there is nothing to ask people about.")
    return [one for one, there in found.items() if there]


def write_studies(
    scale: StudiesScale, sets: Mapping[str, Sequence[Path]], folder: Path
) -> list[Path]:
    """A file a part, as the paper asked: five votes a picture, 20 words or a pair, as YAML.

    Its lists and decoys are drawn by the study itself.
    """
    made = []
    for part in scale.parts:
        settings: dict[str, Any] = {"name": part.name, "task": part.task, **_ASKED[part.task]}
        settings |= {"votes_per_item": VOTES_PER_IMAGE, "repeat_rate": 0.0}
        lines = [f"{name}: {json.dumps(value)}" for name, value in settings.items()]
        lines += ["sets:", *(f"  - {json.dumps(str(one.resolve()))}" for one in sets[part.name])]
        made.append(folder / f"{part.name}.yaml")
        write_text(made[-1], "\n".join(lines) + "\n")
    return made


def next_steps(
    scale: StudiesScale, studies: Sequence[Path], folder: Path, data: Path, again: Sequence[str]
) -> str:
    """The commands that make the studies, export what people said, and go on from there.

    Args:
        again: Options of this command that must be given once more.
    """
    make, take, given = [], [], []
    below = shlex.join(["--data-dir", str(data)])
    for part, study in zip(scale.parts, studies, strict=True):
        votes = folder / "votes" / f"{part.name}.parquet"
        labels = votes.with_name(f"{votes.stem}{LABELS}")
        file, *out = (shlex.quote(str(path)) for path in (study, votes, labels))
        make.append(f"{PROGRAM} study create --file {file} {below}")
        take.append(f"{PROGRAM} study export {part.name} --out {out[0]} {below}")
        take.append(f"{PROGRAM} study labels {part.name} --out {out[1]} {below}")
        given.append(f"--votes {out[0]}")
    return "\n".join(
        [
            f"{len(studies)} studies are ready for people, {VOTES_PER_IMAGE} votes a picture:",
            *make,
            "When they have voted:",
            *take,
            f"{PROGRAM} reproduce semsim --preset {scale.name} {shlex.join(again)} "
            f"{' '.join(given)}",
            "A dry run without people: the same with --votes simulated.",
        ]
    )


def simulated_part(
    part: StudyPart, scale: StudiesScale, sets: Sequence[Path], folder: Path, workers: int
) -> Path:
    """Return the votes of programs on a part, a table below `folder`; its labels lie beside it."""
    (text,) = part.campaign.datasets
    dataset, learned = (
        read_plugin(DATASETS, one) for one in (text, scale.jury_data.get(text, text))
    )
    images = choose_images(load(dataset, "test"), part.campaign)
    voters = Voters(dataset, learned, scale.jury_epochs, images)
    jury, controls = simulated_people(voters, folder, workers, part.name)
    found = simulated_votes(part.name, part.task, sets, jury, controls)
    path = folder / "simulated" / f"{part.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    found.labels.to_parquet(path.with_name(f"{path.stem}{LABELS}"), index=False)
    if found.votes is not None:
        found.votes.to_parquet(path, index=False)
    return path
