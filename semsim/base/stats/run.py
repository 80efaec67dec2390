"""From evidence to everything a comparison shows."""

from collections.abc import Callable, Iterable
from typing import Any

from semsim.base.metric_spec import MetricSpec, beside_votes
from semsim.base.progress import Progress, Report, silent
from semsim.base.stats.agreement import agreement_table
from semsim.base.stats.ceiling import human_ceiling
from semsim.base.stats.differences import difference_table
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.human import human_score, response_by, verdict
from semsim.base.stats.measures import metric_measure, people_measure
from semsim.base.stats.model_tables import (
    backbone_table,
    matrix_table,
    model_table,
    rule_table,
)
from semsim.base.stats.notes import notes_of
from semsim.base.stats.ranks import disagreement_table, stability_table
from semsim.base.stats.resampling import resample
from semsim.base.stats.result import Analysis, AnalysisSettings, check_metric_name
from semsim.base.stats.roc import auc_table

DEFAULTS = AnalysisSettings()


def analyse(
    evidence: Evidence,
    specs: Iterable[MetricSpec],
    settings: AnalysisSettings = DEFAULTS,
    report: Report = silent,
) -> Analysis:
    """Judge every metric that has scores by how well it agrees with people.

    specs: in the order the tables shall have; those without scores are left out. Their marks, and
    those of `beside_votes`, stand in every table. The same evidence
    and settings give the same numbers, and no metric's numbers depend on which others there are,
    but for p_holm, which corrects for their number. Raises `UnknownNameError` for a headline that
    is no human score of this study, `SettingsError` as `check_metric_name`.
    """
    known = {*evidence.scores, *evidence.set_scores}
    scored = beside_votes((spec for spec in specs if spec.name in known), evidence.simulated)
    for spec in scored:
        check_metric_name(spec.name)
    human, sides = (of(evidence, settings.headline) for of in (human_score, verdict))
    response = response_by(evidence, settings.headline)
    layout = layout_of(evidence.images)
    labels, backbones = layout.models["label"].tolist(), layout.models["backbone"].tolist()
    drawn = resample(layout, settings.bootstraps, settings.permutations, settings.seed)
    people = people_measure(human, layout, drawn)
    metrics = [metric_measure(spec, evidence, human, layout, drawn) for spec in scored]
    stages: dict[str, Callable[[], Any]] = {
        "models": lambda: model_table(people, metrics, human, layout),
        "agreement": lambda: agreement_table(people, metrics, labels, drawn),
        "ceiling": lambda: human_ceiling(response, layout, drawn),
        "backbones": lambda: backbone_table(people, metrics, backbones),
        "differences": lambda: difference_table(people, metrics),
        "auc": lambda: auc_table(scored, evidence, sides, layout),
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
    notes = notes_of(evidence, settings, layout, metrics, found["agreement"])
    return Analysis(evidence=evidence, settings=settings, specs=scored, notes=notes, **found)
