"""Data of the Compare page: votes and scores of a study, read once and analysed."""

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from semsim.base.columns import MODEL_KEY
from semsim.base.errors import DataError
from semsim.base.metric_spec import is_start
from semsim.base.plain_names import plain_name
from semsim.base.sets.imports import Listed, list_imports
from semsim.base.stats.analysis import Analysis, AnalysisSettings
from semsim.base.stats.evidence import model_key
from semsim.base.stats.verdict import recognised_by, response_by, verdict
from semsim.base.storage.folders import shown
from semsim.base.words import counted
from semsim.comparison.compared import Scored, compared
from semsim.comparison.metric_facts import directions_in, refused_judges, spec_of, weights_at_hand
from semsim.comparison.own_scores import joined
from semsim.comparison.seen_originals import uncounted
from semsim.comparison.study_tables import PICTURES, StudyTables, imported_tables
from semsim.metrics import Metric, MetricSpec, Resources, all_metrics, find_metric
from semsim.metrics.provenance import original_keys
from semsim.metrics.scoring import ScoreBook, pair_sets_of_labels, read_scores
from semsim.people import SOURCES
from semsim.reporting.figures import by_agreement
from semsim.reporting.methods import Origin
from semsim.reporting.notation import number
from semsim.ui import ScienceContext, StudyChoice

USUAL_REFERENCE = "clean"
REFERENCES = {
    USUAL_REFERENCE: "Clean original",
    "attacked": "Attacked image",
    "both": "Both, side by side",
}
_IMPORT = "import:"
_KEPT = 12  # comparisons in memory; one of 8,400 images takes some 20 MB
_reading = threading.Lock()  # two pages opened at once do the work once


@dataclass(frozen=True, kw_only=True)
class ComparisonView:
    """Choices by which a study is compared.

    Attributes:
        rule: The human score models are ranked by.
        reference: What reconstructions are measured against, a key of `REFERENCES`.
        unseen_by: Which originals count, as `semsim.comparison.compared.compared` says.
    """

    study: str
    rule: str = "majority"
    reference: str = USUAL_REFERENCE
    unseen_by: str = ""


class BookKey(NamedTuple):
    """Key under which scores are kept."""

    study: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A study's votes beside its scores.

    Attributes:
        tables, scored: What it was made from.
        labels: One row a reconstruction, as the study exports them.
        unavailable: Metrics without their weights, with the reason.
        origin: Where the numbers come from, for the report.
        unseen: Of each SemSim that learned from some of the study's originals and not from others,
            how many it has not seen.
        n_held_out: How many no SemSim has seen where some have seen others, 0 where none does.
        n_originals: How many there are, looked at or not.
        version: Of the votes, scores and weights it was made from.
    """

    study: StudyChoice
    view: ComparisonView
    tables: StudyTables
    scored: Scored
    labels: pd.DataFrame
    book: ScoreBook
    specs: tuple[MetricSpec, ...]
    analysis: Analysis
    origin: Origin
    unavailable: tuple[tuple[MetricSpec, str], ...] = ()
    unseen: Mapping[str, int] = field(default_factory=dict)
    n_held_out: int = 0
    n_originals: int = 0
    version: str = ""

    @property
    def knows_attacked(self) -> bool:
        """True where any set records what was attacked, so that it can be a reference."""
        return "attacked" in self.labels and bool(self.labels["attacked"].fillna("").ne("").any())

    @property
    def images(self) -> pd.DataFrame:
        """One row a reconstruction with said, side and the mean response as its share.

        said: what people say of it, in words. side: above one half, they recognise it; NaN where
        it is unknown. Labels that came without votes speak for themselves.
        """
        evidence, rule = self.analysis.evidence, self.view.rule
        votes, share = evidence.recognised.counts, response_by(evidence, rule).means
        side = share
        if rule in evidence.given and not self.n_votes:
            side = evidence.given[rule]
            words = np.select(
                [side > 0.5, side < 0.5], ["recognised", "not recognised"], "undecided"
            ).tolist()
        elif evidence.ratings is not None:
            side = verdict(evidence, "majority")
            means = zip(map(evidence.ratings.of, share), votes, strict=True)
            words = [f"mean of {counted(n, 'rating')} {number(mean)}" for mean, n in means]
        else:
            yes = recognised_by(evidence, rule).totals
            words = [f"{int(k)} of {n}" for k, n in zip(yes, votes, strict=True)]
        unknown = np.where(votes > 0, "its original has no name", "no votes yet")
        said = np.where(np.isnan(side) & np.isnan(share), unknown, words)
        return evidence.images.assign(said=said, side=side, share=share)

    @property
    def has_images(self) -> bool:
        """True where the pictures themselves are at hand."""
        return set(PICTURES) <= set(self.analysis.evidence.images)

    @property
    def voters(self) -> str:
        """Name by which sentences call the voters."""
        return self.analysis.evidence.voters

    @property
    def n_votes(self) -> int:
        return len(self.analysis.evidence.recognised)

    @property
    def has_ranking(self) -> bool:
        """True where any model has a human score."""
        return bool(self.analysis.models["human"].notna().any())

    def spec(self, name: str | None) -> MetricSpec | None:
        """The metric called `name` if it has scores, else the best that may lead, else None."""
        scored = {spec.name: spec for spec in self.analysis.specs}
        if name in scored:
            return scored[name]
        ranked = by_agreement(self.analysis)
        leading = [one for one in ranked if not (one.mark or is_start(one.name))]
        return next(iter(leading or ranked), None)


def studies_of(context: ScienceContext) -> list[StudyChoice]:
    """Studies of the store, newest first, then imported ones."""
    return [*context.studies(), *_imported_choices(context)]


def find_study(context: ScienceContext, wanted: str | None) -> StudyChoice | None:
    """The study with this id or, as in links from a training, this name; else one of people.

    Own studies come before imported ones, programs' votes after those, and without any votes it is
    the newest.
    """
    studies = studies_of(context)
    voted = {*context.voted(), *(study.id for study in studies if is_import(study.id))}
    order = sorted(studies, key=lambda one: (one.simulated, is_import(one.id)))
    for name in (wanted, *(one.id for one in order if one.id in voted)):
        for study in studies:
            if name in (study.id, study.name):
                return study
    return studies[0] if studies else None


def opened(context: ScienceContext, asked: ComparisonView) -> Comparison:
    """The comparison of a study as votes and scores are now, all read once.

    Args:
        asked: Its rule "" for the one that the study's protocol fixed, its reference "" for the
            clean original.

    Raises:
        DataError: For a study, or a reference, that there is not, or tables that do not fit
            together.
    """
    study = _exactly(context, asked.study)
    view = _settled(asked, study)
    if view.reference not in REFERENCES:
        known = ", ".join(REFERENCES)
        raise DataError(f"No reference is called {view.reference!r}. Known: {known}.")
    with _reading:
        tables = joined(_collected(context, study), context.data, study.id)
        version = _version(context, tables)
        found = context.kept.pop(view, None)
        if found is None or (found.version, found.study) != (version, study):
            made = _read(context, study, tables, view, version)
            found = replace(made, version=version)
        context.kept[view] = found
        _forget(context.kept)
        return found


def _settled(asked: ComparisonView, study: StudyChoice) -> ComparisonView:
    reference = asked.reference or USUAL_REFERENCE
    return replace(asked, rule=asked.rule or study.headline, reference=reference)


def _forget(kept: dict[Any, Any]) -> None:
    """Leave the comparisons shown last, and the books they are read from."""
    views = [key for key in kept if isinstance(key, ComparisonView)]
    used = {BookKey(view.study, view.reference) for view in views[-_KEPT:]}
    books = [key for key in kept if isinstance(key, BookKey) and key not in used]
    for old in [*views[:-_KEPT], *books]:
        del kept[old]


def held(context: ScienceContext, asked: ComparisonView) -> Comparison:
    """The comparison as it was last shown; `opened` now if it never was."""
    shown = [
        one.study
        for view, one in [*context.kept.items()]
        if isinstance(view, ComparisonView) and view.study == asked.study
    ]
    found = context.kept.get(_settled(asked, shown[-1])) if shown else None
    return found or opened(context, asked)


def _exactly(context: ScienceContext, study_id: str) -> StudyChoice:
    for study in studies_of(context):
        if study.id == study_id:
            return study
    raise DataError("This study is gone. Load the page again.")


def _collected(context: ScienceContext, study: StudyChoice) -> StudyTables:
    if is_import(study.id):
        name = study.id.removeprefix(_IMPORT)
        return imported_tables(next(one for one in _imports(context) if one.name == name))
    return StudyTables(
        votes=context.votes(study.id),
        labels=context.labels(study.id),
        name=study.name,
        headline=study.headline,
    )


def _version(context: ScienceContext, tables: StudyTables) -> str:
    """Return a digest of a comparison's inputs besides its view: votes, labels, scores, weights."""
    digest = hashlib.sha256()
    for table in (tables.votes, tables.labels, tables.scores):
        if table is not None:
            rows = pd.util.hash_pandas_object(table.astype(str), index=False)
            digest.update(repr(list(table)).encode() + rows.to_numpy().tobytes())
    scores = context.data / "scores"
    if scores.is_dir():  # a score once written stays as it is, so a new one changes the folder
        digest.update(str(scores.stat().st_mtime_ns).encode())
    for path in shown(context.checkpoints):
        digest.update(f"{path.name} {path.stat().st_mtime_ns} {path.stat().st_size}".encode())
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class _Book:
    """Scores of a study against one reference, with their metrics and weights."""

    version: str
    metrics: Mapping[str, Metric]
    weights: Mapping[str, Mapping[str, str]]
    dependent: Mapping[str, str]
    book: ScoreBook


def _book(
    context: ScienceContext, tables: StudyTables, view: ComparisonView, version: str
) -> _Book:
    key = BookKey(view.study, view.reference)
    found: _Book | None = context.kept.pop(key, None)
    if found is None or found.version != version:
        resources = Resources(checkpoints=context.checkpoints)
        metrics = _metrics(resources, view) if tables.has_pictures else {}
        weights = weights_at_hand(metrics, resources)
        dependent = refused_judges(weights, tables.judges)
        wanted = [name for name in metrics if name not in dependent]
        sets = [] if tables.labels is None or not wanted else pair_sets_of_labels(tables.labels)
        book = read_scores(sets, wanted, resources, context.data / "scores")
        found = _Book(
            version=version, metrics=metrics, weights=weights, dependent=dependent, book=book
        )
    context.kept[key] = found
    return found


def _read(
    context: ScienceContext,
    study: StudyChoice,
    tables: StudyTables,
    view: ComparisonView,
    version: str,
) -> Comparison:
    """The comparison of a study as far as scores are on disk.

    A metric of which the scores of some models are still missing does not count yet.
    """
    known = _book(context, tables, view, version)
    book, dependent = known.book, known.dependent
    scores, specs = _with_given(book.scores, known.metrics, tables.scores)
    resources = Resources(checkpoints=context.checkpoints)
    weights = {**known.weights, **weights_at_hand(set(specs) - set(known.weights), resources)}
    names = dict.fromkeys([*scores["metric"], *dependent])
    partial = {name for _, name in book.missing}
    scored = Scored(
        table=scores,
        specs=[specs[name] for name in names],
        weights=weights,
        facts=book.facts,
        awaited=tuple(sorted(partial)),
    ).refusing([name for name in names if name in partial])
    settings = AnalysisSettings(headline=view.rule)
    made = compared(tables, scored, settings, context.checkpoints, view.unseen_by)
    offered = {name: spec for name, spec in specs.items() if name not in dependent}
    n_originals = len(set(original_keys(tables.listed)))
    return Comparison(
        study=study,
        view=view,
        tables=tables,
        scored=scored,
        labels=made.analysis.evidence.images if tables.labels is None else tables.labels,
        book=book,
        specs=tuple(spec for name, spec in offered.items() if name not in book.unavailable),
        analysis=made.analysis,
        origin=made.origin,
        unavailable=tuple((specs[name], why) for name, why in book.unavailable.items()),
        unseen={
            name: len(one.unseen) for name, one in made.seen.items() if one.seen and one.unseen
        },
        n_held_out=n_originals - len(left_out) if (left_out := uncounted(made.seen)) else 0,
        n_originals=n_originals,
    )


def _with_given(
    scores: pd.DataFrame, metrics: Mapping[str, Metric], given: pd.DataFrame | None
) -> tuple[pd.DataFrame, dict[str, MetricSpec]]:
    """Our own scores and, of the other metrics, those that came with an import; all their facts.

    Raises `DataError` for a custom metric whose direction the import does not name.
    """
    specs = {name: metric.spec for name, metric in metrics.items()}
    if given is None:
        return scores, specs
    absent = given[~given["metric"].isin(specs)]
    for name in dict.fromkeys(absent["metric"]):
        found = spec_of(name, absent, directions_in(absent))
        if found is None:
            raise DataError(
                f"It is not known whether higher or lower {name} leaks more. Import anew."
            )
        specs[name] = found
    return (pd.concat([scores, absent], ignore_index=True) if len(scores) else absent), specs


def is_import(study_id: str) -> bool:
    """Return whether the id is of votes from elsewhere, and of no study of this workspace."""
    return study_id.startswith(_IMPORT)


def source_of(study_id: str) -> str:
    """Return the name of the source of people's judgements that an import is of, or ""."""
    name = study_id.removeprefix(_IMPORT)
    return name if is_import(study_id) and name in SOURCES else ""


def model_choices(analysis: Analysis) -> list[tuple[str, str]]:
    """(name, key) of every model."""
    rows = (row for _, row in analysis.models.iterrows())
    return [(plain_name(row["label"]), model_key(row)) for row in rows]


def rows_of_model(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows of a table that belong to the model `key`."""
    chosen = pd.Series(True, index=table.index)
    for column, value in zip(MODEL_KEY, key.split("\n"), strict=True):
        chosen &= table[column].astype(str) == value
    return table[chosen]


def _imports(context: ScienceContext) -> Mapping[Path, Listed]:
    """Return the imports, those that came with the product last."""
    return list_imports(context.data / "imports", *(one / "people" for one in context.built_in))


def _imported_choices(context: ScienceContext) -> list[StudyChoice]:
    return [
        StudyChoice(
            id=_IMPORT + folder.name,
            name=found.name,
            simulated=bool(found.record.get("simulated")),  # nothing is known of a broken one
            headline=str(found.record["headline"]),
        )
        for folder, found in _imports(context).items()
    ]


def _metrics(resources: Resources, view: ComparisonView) -> dict[str, Metric]:
    """Every metric there is by name, against the reference image that was chosen.

    The recogniser looks at reconstructions alone.
    """
    plain = all_metrics(resources)
    names = [f"{name}@attacked" for name in plain if not name.startswith("recogniser")]
    attacked = {name: find_metric(name) for name in names}
    choice = {"clean": plain, "attacked": attacked, "both": {**plain, **attacked}}
    return choice[view.reference]
