"""From evidence and settings to everything that a comparison of metrics with people shows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec, beside_votes, is_start
from semsim.base.progress import Progress, Report, silent
from semsim.base.stats.agreement import (
    agreement_table,
    backbone_table,
    check_metric_name,
    difference_table,
    disagreement_table,
    matrix_table,
    model_table,
    rule_table,
    stability_table,
)
from semsim.base.stats.ceiling import NO_VOTES, Ceiling, ceiling_of_shares, human_ceiling
from semsim.base.stats.correlation import FEW_MODELS
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout, layout_of
from semsim.base.stats.measures import Measure, People, metric_measure, people_measure
from semsim.base.stats.pairwise_accuracy import ordering_tables
from semsim.base.stats.resampling import Resamples, resample
from semsim.base.stats.roc import auc_table
from semsim.base.stats.verdict import judged, response_by, title_of, verdict
from semsim.base.words import agreeing, counted


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """Settings that decide the numbers besides the data; the same ones give the same numbers.

    Attributes:
        headline: The human score models are ranked by, see `semsim.base.stats.verdict.RULES`.
        bootstraps, permutations: How many resamples and, where an exact test is too long, shuffles.
    """

    headline: str = "majority"
    bootstraps: int = 1000
    permutations: int = 9999
    seed: int = 0


DEFAULTS = AnalysisSettings()


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Everything Compare, the report and the command line show of one study.

    Attributes:
        specs: The metrics that have scores, in the order they were given.
        matrix: Spearman's ρ over models, people and metrics by people and metrics, each oriented so
            that more means more leakage; index and columns are titles.
        notes: What a reader must be told before any number. The other tables have the columns named
            above, numbers being NaN where undefined says why.
    """

    evidence: Evidence
    settings: AnalysisSettings
    specs: tuple[MetricSpec, ...]
    models: pd.DataFrame
    agreement: pd.DataFrame
    ceiling: Ceiling
    backbones: pd.DataFrame
    differences: pd.DataFrame
    order: pd.DataFrame
    leads: pd.DataFrame
    auc: pd.DataFrame
    rules: pd.DataFrame
    stability: pd.DataFrame
    disagreement: pd.DataFrame
    matrix: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def candidates(self) -> pd.DataFrame:
        """The rows of the agreement of metrics that may lead: no start of a SemSim, no mark."""
        names, marked = self.agreement["metric"], self.agreement["mark"].ne("")
        return self.agreement[~marked & ~names.map(is_start).astype(bool)]

    def of_candidates(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table, with the column metric, that are of `candidates`."""
        return table[table["metric"].isin(self.candidates["metric"])]

    @property
    def score_title(self) -> str:
        """Title of the human score that models are ranked by."""
        return title_of(self.evidence, self.settings.headline)

    @property
    def label_words(self) -> str:
        """Meaning of the binary label of an image, as a clause."""
        if self.evidence.ratings is not None and self.settings.headline == "mean-rating":
            return (
                "whether its mean rating is at or above the threshold; undecided ones are left out"
            )
        return (
            f"whether '{self.score_title}' is above one half; exactly one half is undecided and "
            "left out"
        )


def analyse(
    evidence: Evidence,
    specs: Iterable[MetricSpec],
    settings: AnalysisSettings = DEFAULTS,
    report: Report = silent,
) -> Analysis:
    """Judge every metric that has scores by how well it agrees with people.

    Args:
        specs: In the order the tables shall have; those without scores are left out. Their marks,
            and those of `beside_votes`, stand in every table. The same evidence and settings give
            the same numbers, and no metric's numbers depend on which others there are, but for
            p_holm, which corrects for their number.

    Raises:
        UnknownNameError: For a headline that is no human score of this study.
        SettingsError: As `check_metric_name`.
    """
    known = {*evidence.scores, *evidence.set_scores}
    scored = beside_votes((spec for spec in specs if spec.name in known), evidence.simulated)
    for spec in scored:
        check_metric_name(spec.name)
    sides = verdict(evidence, settings.headline)
    response = response_by(evidence, settings.headline)
    layout = layout_of(evidence.images)
    labels, backbones = layout.models["label"].tolist(), layout.models["backbone"].tolist()
    drawn = resample(layout, settings.bootstraps, settings.permutations, settings.seed)
    said = People.of(evidence, settings.headline, layout)
    human, people = said.scores, people_measure(said, layout, drawn)
    metrics = [metric_measure(spec, evidence, human, layout, drawn) for spec in scored]
    stages: dict[str, Callable[[], Any]] = {
        "models": lambda: model_table(people, metrics, human, layout),
        "agreement": lambda: agreement_table(people, metrics, labels, drawn),
        "ceiling": lambda: _ceiling(evidence, settings.headline, layout, drawn),
        "backbones": lambda: backbone_table(people, metrics, backbones),
        "differences": lambda: difference_table(people, metrics),
        "pairs of models": lambda: ordering_tables(scored, evidence, said, layout, drawn),
        "auc": lambda: auc_table(scored, evidence, sides, layout, said.no_pictures),
        "rules": lambda: rule_table(scored, evidence, layout),
        "stability": lambda: stability_table([people, *metrics], layout),
        "disagreement": lambda: disagreement_table(scored, evidence, response.means),
        "matrix": lambda: matrix_table([people, *metrics]),
    }
    found = {}
    for done, (name, work) in enumerate(stages.items()):
        report(Progress(done, len(stages), name))
        found[name] = work()
    report(Progress(len(stages), len(stages)))
    found["order"], found["leads"] = found.pop("pairs of models")
    notes = notes_of(evidence, settings, layout, metrics, found["agreement"])
    return Analysis(evidence=evidence, settings=settings, specs=scored, notes=notes, **found)


def _ceiling(evidence: Evidence, rule: str, layout: Layout, drawn: Resamples) -> Ceiling:
    if evidence.people is not None:
        return ceiling_of_shares(evidence.people, layout, drawn)
    if rule in evidence.given and not evidence.has_votes:
        return Ceiling(undefined=NO_VOTES)
    return human_ceiling(response_by(evidence, rule), layout, drawn)


def notes_of(
    evidence: Evidence,
    settings: AnalysisSettings,
    layout: Layout,
    metrics: list[Measure],
    agreement: pd.DataFrame,
) -> tuple[str, ...]:
    """Plain sentences, the gravest first."""
    notes = [
        *_of_votes(evidence, settings),
        *_of_models(layout),
        *_of_metrics(metrics),
        *_of_intervals(agreement),
        *_of_resamples(agreement, settings),
        *evidence.notes,
    ]
    return tuple(notes)


def _of_votes(evidence: Evidence, settings: AnalysisSettings) -> list[str]:
    notes = []
    score, title = judged(evidence, settings.headline), title_of(evidence, settings.headline)
    undecided = int(np.isnan(score.values).sum())
    if score.undefined:
        notes.append(f"The human score '{title}' is undefined: {score.undefined}.")
    elif undecided:
        notes.append(
            f"{undecided} of {counted(len(score.values), 'image')} "
            f"{agreeing(undecided, 'is', 'are')} undecided under the rule '{title}' "
            "and left out."
        )
    half = int((verdict(evidence, settings.headline) == 0.5).sum())
    if half:
        halves = counted(half, "image has", "images have")
        notes.append(f"{halves} a human score of exactly one half, which AUC leaves out.")
    return notes


def _of_models(layout: Layout) -> list[str]:
    notes = []
    n, known = layout.n_models, layout.models["backbone"]
    backbones = 0 if known.eq("").any() else known.nunique()
    if n < FEW_MODELS:
        notes.append(
            f"Only {counted(n, 'model')}: with fewer than {FEW_MODELS} a rank correlation can "
            "hardly tell metrics apart. Look at the intervals, and at the AUC of images."
        )
    for key, what in (("dataset", "data sets"), ("attack", "attacks")):
        several = layout.models[key].nunique()
        if several > 1:
            notes.append(
                f"Models of {several} {what} are ranked together: a metric also gains or loses by "
                f"how it ranks the {what}."
            )
    if 0 < backbones < n:
        notes.append(
            f"The {n} models have {counted(backbones, 'backbone')} between them and are not "
            "independent: intervals over models are narrower than they should be."
        )
    return notes


def _of_metrics(metrics: list[Measure]) -> list[str]:
    notes = [
        f"{metric.title}: {counted(n, 'infinite score is', 'infinite scores are')} counted and "
        "kept out of the means, ranking first or last among images. A model that has some may leak "
        "more, or less, than the mean of its other images says."
        for metric in metrics
        if (n := int(metric.n_inf[np.isfinite(metric.means)].sum()))
    ]
    fixed = [metric.title for metric in metrics if not metric.of_images]
    if fixed:
        notes.append(
            f"{', '.join(fixed)}: one value a set of images, so the cluster bootstrap holds it "
            "fixed and resamples people only."
        )
    return notes


def _of_intervals(agreement: pd.DataFrame) -> list[str]:
    return [
        f"ρ of {', '.join(of_note['title'])}, {note}."
        for note, of_note in agreement.groupby("rho_note", sort=False)
    ]


def _of_resamples(agreement: pd.DataFrame, settings: AnalysisSettings) -> list[str]:
    notes = []
    for kind, what in (("models", "models"), ("images", "originals")):
        # Mostly every metric loses the same resamples: those that drew too few models.
        left_out = agreement[f"left_out_{kind}"].to_numpy(dtype=float)
        for count in np.unique(left_out[left_out > 0]):
            titles = agreement.loc[left_out == count, "title"]
            who = "All metrics" if len(titles) == len(agreement) else ", ".join(titles)
            notes.append(
                f"{who}: {int(count)} of {counted(settings.bootstraps, 'resample')} of {what} gave "
                f"no ranking and {agreeing(int(count), 'is', 'are')} left out of what is said of "
                "them."
            )
    return notes
