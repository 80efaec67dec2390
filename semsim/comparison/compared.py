"""Votes and scores of one study, gathered, analysed and told: the one way to a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from semsim.analysis.evidence import gather
from semsim.analysis.result import Analysis, AnalysisSettings
from semsim.analysis.run import analyse
from semsim.comparison import list_judges
from semsim.comparison.foreign import foreign_remarks
from semsim.comparison.list_judges import Weights
from semsim.comparison.remarks import metric_remarks, training_remarks
from semsim.comparison.seen_originals import left_out_remark, seen_by, without
from semsim.comparison.study_tables import StudyTables
from semsim.kept.versions import software_versions
from semsim.metrics import MetricSpec
from semsim.progress import Report, silent
from semsim.reporting.methods import Origin


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores to compare, columns `semsim.analysis.evidence.SCORE_COLUMNS`.

    specs: of their metrics, in the order tables shall have. weights: of each metric of which it is
    known, the SHA-256 of its files. facts: as of a `ScoreBook`, where there is one.
    """

    table: pd.DataFrame
    specs: Sequence[MetricSpec]
    weights: Weights
    facts: pd.DataFrame | None = None

    def refusing(self, names: Sequence[str]) -> "Scored":
        """The same without the metrics `names`."""
        if not names:
            return self
        specs = [spec for spec in self.specs if spec.name not in names]
        return replace(self, specs=specs, table=self.table[~self.table["metric"].isin(names)])


def compared(
    study: StudyTables,
    scored: Scored,
    settings: AnalysisSettings,
    checkpoints: Path,
    unseen_by: str = "",
    report: Report = silent,
) -> Analysis:
    """Judge every metric by how well it agrees with people; its notes say what must be known.

    A metric whose network ranked the words of the study's lists is left out, and a note says why.
    checkpoints: where SemSims say what they learned from. unseen_by: of which only the originals
    count that it has not seen; "" for all. Raises `SemsimError` where tables do not fit.
    """
    titles = {spec.name: spec.title for spec in scored.specs}
    refused = list_judges.refused(scored.weights, study.judges)
    kept = scored.refusing([name for name in refused if name in titles])
    seen = seen_by(checkpoints, unseen_by)
    evidence = gather(
        without(seen, study.votes),
        without(seen, kept.table),
        kept.specs,
        labels=None if study.labels is None else without(seen, study.labels),
        name=study.name,
    )
    analysis = analyse(evidence, kept.specs, settings, report)
    notes = [
        *(f"{titles[name]} is left out: {why}" for name, why in refused.items() if name in titles),
        *list_judges.unknown(analysis.specs, scored.weights, study.judges),
        *left_out_remark(unseen_by, seen, study.listed, analysis),
        *training_remarks(analysis, evidence.name, checkpoints),
        *metric_remarks(analysis.specs, scored.facts),
        *foreign_remarks(analysis.specs),
    ]
    return replace(analysis, notes=(*analysis.notes, *notes))


def origin_of(study: StudyTables, analysis: Analysis, weights: Weights) -> Origin:
    """Where the numbers of a comparison come from, for its report; `weights` as of `Scored`."""
    used = [weights.get(spec.name, {}) for spec in analysis.specs]
    return Origin(
        protocol=study.protocol,
        collection=study.collection,
        weights={file: sha for files in used for file, sha in files.items()},
        versions=software_versions(),
    )
