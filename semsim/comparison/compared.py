"""Votes and scores of one study, gathered, analysed and told: the one way to a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError, SettingsError, WeightsError
from semsim.base.metric_spec import checkpoint_of
from semsim.base.progress import Report, silent
from semsim.base.stats.analysis import Analysis, AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.storage.versions import software_versions
from semsim.base.words import counted
from semsim.comparison.metric_facts import Weights, custom_remarks, refused_judges, unknown_judges
from semsim.comparison.seen_originals import (
    ALL,
    exposed,
    held_out_remark,
    left_out_remark,
    namesakes_words,
    seen_by,
    seen_by_each,
    uncounted,
    without,
)
from semsim.comparison.study_tables import StudyTables
from semsim.learning.baselines import control_remarks
from semsim.metrics import MetricSpec
from semsim.metrics.learned import SeenOriginals, learned_by
from semsim.metrics.provenance import Provenance, original_keys, read_training
from semsim.reporting.agreement_text import agreement_text
from semsim.reporting.bundle import write_bundle
from semsim.reporting.canvas import DOUBLE, Drawn
from semsim.reporting.figures import figures
from semsim.reporting.methods import Origin
from semsim.reporting.notation import number
from semsim.reporting.report import report_html

_UNKNOWN = "not known which of these originals it learned from"


def training_remarks(analysis: Analysis, checkpoints: Path) -> list[str]:
    """Say of each SemSim who voted for it, which originals it saw, if it beats its initial weights.

    Of one whose file is missing or cannot be read, as where scores came with the data, say that
    it is not known.
    """
    remarks = []
    images = analysis.evidence.images
    for spec in analysis.specs:
        checkpoint = checkpoint_of(spec.name)
        if not checkpoint:
            continue
        path = checkpoints / f"{checkpoint}.safetensors"
        try:
            said = _origin_of(read_training(path), images)
        except WeightsError:
            remarks.append(f"{spec.title}: {_UNKNOWN}, as no checkpoint here has it.")
            continue
        beside = control_remarks(spec, analysis, path)
        remarks += [f"{spec.title}: {'; '.join(said)}."] if said else []
        remarks += [f"{spec.title}: {words}" for words in beside]
    return remarks


def _origin_of(training: Provenance, images: pd.DataFrame) -> list[str]:
    """Return remarks on who voted for a SemSim, and on which of these originals it has seen."""
    said = ["trained on simulated votes"] if training.simulated else []
    found = learned_by(training).among(images)
    if found.seen:
        originals = counted(len(found.told), "original")
        by_name = ", going by their names" if found.seen & found.by_name else ""
        said.append(f"in-sample: it learned from {len(found.seen)} of these {originals}{by_name}")
    elif found.unknown:
        said.append(_UNKNOWN)
    return [*said, *namesakes_words(found)]


def metric_remarks(specs: Sequence[MetricSpec], facts: pd.DataFrame | None) -> list[str]:
    """Return the metrics' notes on themselves, and the standard errors of those of sets.

    Args:
        facts: As of a `ScoreBook`; None where scores came without them.
    """
    if facts is None:
        return []
    remarks = []
    for spec in specs:
        own = facts[facts["metric"] == spec.name]
        remarks += [f"{spec.title}: {note}" for note in own["notes"].drop_duplicates() if note]
        if own["standard_error"].notna().any():
            largest = number(own["standard_error"].max())
            remarks.append(f"{spec.title}: standard error of a model's value up to {largest}.")
    return remarks


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores to compare, columns `semsim.base.columns.SCORE_COLUMNS`.

    Attributes:
        specs: Of their metrics, in the order tables shall have.
        weights: Of each metric of which it is known, the SHA-256 of its files.
        facts: As of a `ScoreBook`, where there is one.
        awaited: Names of metrics whose scores are still to come: what SemSims learned from is left
            out already.
    """

    table: pd.DataFrame
    specs: Sequence[MetricSpec]
    weights: Weights
    facts: pd.DataFrame | None = None
    awaited: tuple[str, ...] = ()

    def refusing(self, names: Sequence[str]) -> "Scored":
        """The same without the metrics `names`."""
        if not names:
            return self
        specs = [spec for spec in self.specs if spec.name not in names]
        return replace(self, specs=specs, table=self.table[~self.table["metric"].isin(names)])


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Agreement of each metric with people, and the origin of the numbers.

    As text it is what `semsim-studio compare` prints.

    Attributes:
        seen: By SemSim, what it learned from of the study's originals, where that is known.

    >>> import pandas as pd, semsim
    >>> rows = [(m, i, who) for m in "abcd" for i in range(3) for who in ("Ann", "Bob")]
    >>> votes = pd.DataFrame(rows, columns=["model", "image_id", "annotator"])
    >>> votes = votes.assign(recognised=votes["image_id"] < votes["model"].map("dcba".index))
    >>> scores = votes[["model", "image_id"]].drop_duplicates()
    >>> scores = scores.assign(psnr=scores["model"].map({"a": 30.0, "b": 24, "c": 22, "d": 9}))
    >>> found = semsim.compare(votes, scores)
    >>> found.figures()[0].title != ""
    True
    """

    analysis: Analysis
    origin: Origin
    seen: Mapping[str, SeenOriginals] = field(default_factory=dict)

    def __str__(self) -> str:
        return agreement_text(self.analysis, self.origin)

    @property
    def agreement(self) -> pd.DataFrame:
        """One row a metric, columns `semsim.base.stats.agreement.AGREEMENT_COLUMNS`."""
        return self.analysis.agreement

    @property
    def order(self) -> pd.DataFrame:
        """One row a metric, the best first: how it orders these models; `ORDER_COLUMNS`.

        See `semsim.base.stats.pairwise_accuracy`.
        """
        return self.analysis.order

    @property
    def leads(self) -> pd.DataFrame:
        """One row a pair of metrics: whether one orders these models better; `LEAD_COLUMNS`."""
        return self.analysis.leads

    def figures(self) -> tuple[Drawn, ...]:
        """Those of the study, then metric by metric, the best agreeing first.

        Each has a title, a caption, its numbers as `frame`, and `draw(width_mm)`, which makes a
        matplotlib figure.
        """
        return figures(self.analysis)

    def report(self, path: Path | str) -> Path:
        """Write one HTML file with everything, which opens offline; returns its path.

        Raises `SettingsError` where the path ends otherwise than .html or .htm, `DataError` where
        it cannot be written.
        """
        place = check_report(Path(path))
        text = report_html(self.analysis, self.origin)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        except OSError as error:
            raise DataError(f"{place} cannot be written ({error}). Choose another file.") from error
        return place

    def write(
        self,
        folder: Path | str,
        *,
        overwrite: bool = False,
        width_mm: float = DOUBLE,
        report: Report = silent,
    ) -> Path:
        """Write report, tables and figures into a folder, as `semsim.reporting.bundle` says."""
        how: dict[str, Any] = {"overwrite": overwrite, "width_mm": width_mm, "report": report}
        return write_bundle(self.analysis, Path(folder), self.origin, **how)


def check_report(path: Path) -> Path:
    """`path`, if a report can be called so; raises `SettingsError` otherwise."""
    if path.suffix not in (".html", ".htm"):
        raise SettingsError(f"The report is a file that ends in .html; got {path.name!r}.")
    return path


def compared(
    study: StudyTables,
    scored: Scored,
    settings: AnalysisSettings,
    checkpoints: Path,
    unseen_by: str = "",
    report: Report = silent,
) -> Compared:
    """Judge every metric by how well it agrees with people; its notes say what must be known.

    A metric whose network ranked the words of the study's lists is left out, and a note says why.
    One that learned from the originals that count, or is of the kind of the simulated voters, has a
    mark, which its title says wherever it stands, and leads nothing.

    Args:
        checkpoints: Where SemSims say what they learned from.
        unseen_by: "" for the originals that no SemSim with scores has seen, where there are any;
            the name of a SemSim for those that it has not seen; `ALL`.

    Raises:
        SemsimError: Where tables do not fit.
    """
    titles = {spec.name: spec.title for spec in scored.specs}
    refused = refused_judges(scored.weights, study.judges)
    kept = scored.refusing([name for name in refused if name in titles])
    names = (*map(str, kept.table["metric"].unique()), *kept.awaited)
    seen = seen_by_each(checkpoints, names, study.listed)
    by_one = seen_by(checkpoints, "" if unseen_by == ALL else unseen_by, study.listed, seen)
    held_out = frozenset[str]() if unseen_by else uncounted(seen)
    left_out = held_out if by_one is None else by_one.seen | by_one.unknown
    evidence = gather(
        without(left_out, study.votes),
        without(left_out, kept.table),
        kept.specs,
        labels=None if study.labels is None else without(left_out, study.labels),
        people=study.people,
        name=study.name,
    )
    counting = set(original_keys(evidence.images))
    specs = [one.marked(exposed(one, seen, counting)) for one in kept.specs]
    analysis = analyse(evidence, specs, settings, report)
    notes = [
        *(f"{titles[name]} is left out: {why}" for name, why in refused.items() if name in titles),
        *unknown_judges(analysis.specs, scored.weights, study.judges),
        *held_out_remark(held_out, len(set(original_keys(study.listed))), analysis),
        *left_out_remark(unseen_by, by_one, analysis),
        *training_remarks(analysis, checkpoints),
        *metric_remarks(analysis.specs, scored.facts),
        *custom_remarks(analysis.specs),
        *study.remarks,
    ]
    noted = replace(analysis, notes=(*analysis.notes, *notes))
    return Compared(analysis=noted, origin=_origin(study, noted, scored.weights), seen=seen)


def _origin(study: StudyTables, analysis: Analysis, weights: Weights) -> Origin:
    used = [weights.get(spec.name, {}) for spec in analysis.specs]
    return Origin(
        protocol=study.protocol,
        collection=study.collection,
        weights={file: sha for files in used for file, sha in files.items()},
        versions=software_versions(),
    )
