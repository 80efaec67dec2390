"""What the Compare page shows: votes and scores of a study, read once and analysed."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.analysis.evidence import MODEL_KEY, gather, model_key
from semsim.analysis.human import mean_response, verdict, vote_counts
from semsim.analysis.result import Analysis, AnalysisSettings
from semsim.analysis.run import analyse
from semsim.errors import DataError, WeightsError
from semsim.importers.import_folder import Imported, list_imports, read_import
from semsim.kept.versions import software_versions
from semsim.learning.card_promoted import promoted
from semsim.learning.controls import control_remarks
from semsim.learning.orders import checkpoint_path
from semsim.metrics import Metric, MetricSpec, Resources, all_metrics, find_metric
from semsim.metrics.provenance import control_in, original_keys, read_training
from semsim.reporting.figures import by_agreement
from semsim.reporting.methods import Origin
from semsim.reporting.notation import number
from semsim.scores.scoring import ScoreBook, pair_sets_of_labels, read_scores
from semsim.ui import ScienceContext, StudyChoice
from semsim.weights import sha256_of
from semsim.words import counted

REFERENCES = {
    "clean": "Clean original",
    "attacked": "Attacked image",
    "both": "Both, side by side",
}
_IMPORT = "import:"
_KEPT = 12  # comparisons in memory; one of 8,400 images takes some 20 MB
_reading = threading.Lock()  # two pages opened at once do the work once
_PATHS = ("original", "reconstruction")


@dataclass(frozen=True, kw_only=True)
class View:
    """How a study is looked at.

    rule: the human score models are ranked by.
    reference: what reconstructions are measured against, a key of `REFERENCES`.
    unseen_by: name of a SemSim: only originals that it has not learned from count; "" for all.
    """

    study: str
    rule: str = "majority"
    reference: str = "clean"
    unseen_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A study's votes beside its scores.

    labels: one row a reconstruction, as the study exports them.
    unavailable: metrics without their weights, with the reason.
    unseen: of each SemSim that learned from some of the study's originals and not from others, how
        many it has not seen. n_originals: how many there are, looked at or not.
    """

    study: StudyChoice
    view: View
    labels: pd.DataFrame
    book: ScoreBook
    specs: tuple[MetricSpec, ...]
    analysis: Analysis
    unavailable: tuple[tuple[MetricSpec, str], ...] = ()
    unseen: Mapping[str, int] = field(default_factory=dict)
    n_originals: int = 0

    @property
    def images(self) -> pd.DataFrame:
        """One row a reconstruction with n_votes, n_recognised, the mean `response` as its share.

        Of ratings also said, what people said of it in words, and side: above one half, they
        recognise it.
        """
        evidence = self.analysis.evidence
        n_recognised, n_votes = vote_counts(evidence.recognised)
        share = mean_response(evidence.response)
        table = evidence.images.assign(n_votes=n_votes, n_recognised=n_recognised, share=share)
        if evidence.ratings is None:
            return table
        means = zip(map(evidence.ratings.of, share), n_votes, strict=True)
        said = [f"mean of {counted(n, 'rating')} {number(mean)}" for mean, n in means]
        return table.assign(said=said, side=verdict(evidence, "majority"))

    @property
    def has_images(self) -> bool:
        """Whether the pictures themselves are at hand."""
        return set(_PATHS) <= set(self.analysis.evidence.images)

    @property
    def n_votes(self) -> int:
        return int((~np.isnan(self.analysis.evidence.recognised)).sum())

    @property
    def has_ranking(self) -> bool:
        """Whether any model has a human score."""
        return bool(self.analysis.models["human"].notna().any())

    def spec(self, name: str | None) -> MetricSpec | None:
        """The metric called `name` if it has scores, else the best that has, else None."""
        scored = {spec.name: spec for spec in self.analysis.specs}
        if name in scored:
            return scored[name]
        ranked = by_agreement(self.analysis)
        return ranked[0] if ranked else None


def studies_of(context: ScienceContext) -> list[StudyChoice]:
    """Studies of the store, newest first, then imported ones."""
    return [*context.studies(), *_imported_choices(context.data / "imports")]


def find_study(context: ScienceContext, wanted: str | None) -> StudyChoice | None:
    """The study with this id or, as in links from a training, this name; else the first."""
    studies = studies_of(context)
    for study in studies:
        if wanted in (study.id, study.name):
            return study
    return studies[0] if studies else None


def view_of(
    context: ScienceContext,
    study_id: str,
    rule: str | None = None,
    reference: str | None = None,
    unseen_by: str | None = None,
) -> View:
    """The view of a study by its id, by the rule its protocol fixed unless another is given.

    unseen_by: None leaves it to the SemSim of the workspace: what it learned from is left out.
    Raises `DataError` for a study, or a reference, that there is not.
    """
    study = _exactly(context, study_id)
    if unseen_by is None:
        unseen_by = _usually_unseen_by(context, study)
    reference = reference or "clean"
    if reference not in REFERENCES:
        raise DataError(f"No reference is called {reference!r}. Known: {', '.join(REFERENCES)}.")
    return View(
        study=study_id, rule=rule or study.headline, reference=reference, unseen_by=unseen_by
    )


def fresh(context: ScienceContext, view: View) -> Comparison:
    """The comparison as votes and scores are now."""
    with _reading:
        found = read_comparison(context, _exactly(context, view.study), view)
        context.kept.pop(view, None)
        context.kept[view] = found
        while len(context.kept) > _KEPT:
            context.kept.pop(next(iter(context.kept)))
        return found


def held(context: ScienceContext, view: View) -> Comparison:
    """The comparison as it was last shown; read now if it never was."""
    found: Comparison | None = context.kept.get(view)
    return found or fresh(context, view)


def _exactly(context: ScienceContext, study_id: str) -> StudyChoice:
    for study in studies_of(context):
        if study.id == study_id:
            return study
    raise DataError("This study is gone. Load the page again.")


def read_comparison(context: ScienceContext, study: StudyChoice, view: View) -> Comparison:
    """The comparison of a study as far as scores are on disk.

    Raises `DataError` for a study that is gone, or tables that do not fit together.
    """
    resources = Resources(checkpoints=context.checkpoints)
    imported = _imported(context, study)
    votes = context.votes(study.id) if imported is None else imported.votes
    labels = _labels(context, study, imported)
    given = None if imported is None else imported.scores
    metrics = [] if labels is None or not set(_PATHS) <= set(labels) else _metrics(resources, view)
    refused = {m.spec.name: why for m in metrics if (why := _same_judge(m, study, resources))}
    dependent = [m.spec for m in metrics if m.spec.name in refused]
    metrics = [metric for metric in metrics if metric.spec.name not in refused]
    sets = pair_sets_of_labels(labels) if metrics and labels is not None else []
    book = read_scores(
        sets, [metric.spec.name for metric in metrics], resources, context.data / "scores"
    )
    specs = {metric.spec.name: metric.spec for metric in metrics}
    scores = book.scores
    if given is not None:
        absent = given[~given["metric"].isin(specs)]
        specs |= {name: find_metric(name).spec for name in dict.fromkeys(absent["metric"])}
        scores = pd.concat([scores, absent], ignore_index=True) if len(scores) else absent
    scored = tuple(specs[name] for name in dict.fromkeys(scores["metric"]))
    known = [name for name in map(_checkpoint_of, specs) if name]
    unseen = _unseen(labels, context.checkpoints, known)
    seen = _seen(context, view)
    evidence = gather(
        _without(seen, votes),
        _without(seen, scores),
        scored,
        labels=None if labels is None else _without(seen, labels),
        name=study.name,
    )
    analysis = analyse(evidence, scored, AnalysisSettings(headline=view.rule))
    n_originals = len(set(original_keys(evidence.images if labels is None else labels)))
    remarks = [
        *_left_out_remark(view, unseen, n_originals, analysis),
        *_training_remarks(analysis, study, context.checkpoints),
        *_metric_remarks(scored, book.facts),
    ]
    return Comparison(
        study=study,
        view=view,
        labels=evidence.images if labels is None else labels,
        book=book,
        specs=tuple(spec for name, spec in specs.items() if name not in book.unavailable),
        analysis=replace(analysis, notes=(*analysis.notes, *remarks)),
        unavailable=tuple(
            (spec, book.unavailable[name])
            for name, spec in specs.items()
            if name in book.unavailable
        )
        + tuple((spec, refused[spec.name]) for spec in dependent),
        unseen=unseen,
        n_originals=n_originals,
    )


def _same_judge(metric: Metric, study: StudyChoice, resources: Resources) -> str:
    """Why a metric cannot judge a study whose lists its own network made; "" where it can."""
    if not study.judges:
        return ""
    with suppress(WeightsError):
        for path in metric.files(resources):
            if sha256_of(path) in study.judges:
                return (
                    f"{path.stem} ranked the words of this study's lists, so what people could "
                    "answer depends on it; a metric must not. Train another judge of the data set "
                    "(`python -m semsim judge train`) and compare that."
                )
    return ""


def _labels(
    context: ScienceContext, study: StudyChoice, imported: Imported | None
) -> pd.DataFrame | None:
    return context.labels(study.id) if imported is None else imported.labels


def _usually_unseen_by(context: ScienceContext, study: StudyChoice) -> str:
    """The SemSim of the workspace where it has seen some of the originals and not others, or ""."""
    own = promoted(context.checkpoints)
    with suppress(WeightsError):
        # Labels are read only where there is something to look for in them.
        if own and read_training(context.checkpoints / f"{own}.safetensors").originals:
            labels = _labels(context, study, _imported(context, study))
            return next(iter(_unseen(labels, context.checkpoints, [own])), "")
    return ""


def _checkpoint_of(metric: str) -> str:
    """The SemSim whose checkpoint a metric is of, by the metric's name; "" for another."""
    family, _, checkpoint = metric.partition("@")[0].partition(":")
    return checkpoint if family == "semsim" and not control_in(checkpoint) else ""


def _unseen(labels: pd.DataFrame | None, checkpoints: Path, names: Iterable[str]) -> dict[str, int]:
    """Of each SemSim that has seen some of the originals, and not others, how many it has not."""
    if labels is None:
        return {}
    keys, found = set(original_keys(labels)), {}
    for name in names:
        with suppress(WeightsError):  # what cannot be read has no number either
            left = keys - set(read_training(checkpoints / f"{name}.safetensors").originals)
            if 0 < len(left) < len(keys):
                found[name] = len(left)
    return found


def _seen(context: ScienceContext, view: View) -> set[str]:
    """Keys of the originals that the view leaves out."""
    if not view.unseen_by:
        return set()
    try:
        return set(read_training(checkpoint_path(context.checkpoints, view.unseen_by)).originals)
    except WeightsError as error:
        raise DataError(f"{error} Choose all originals.") from error


def _without(seen: set[str], table: pd.DataFrame) -> pd.DataFrame:
    """The rows that are not of these originals; scores of whole sets stay."""
    return table[~original_keys(table).isin(seen)] if seen else table


def _left_out_remark(
    view: View, unseen: Mapping[str, int], n_originals: int, analysis: Analysis
) -> list[str]:
    if not view.unseen_by:
        return []
    left = unseen.get(view.unseen_by, n_originals)
    sets = any(not spec.per_image for spec in analysis.specs)
    return [
        f"Only the {left} of {counted(n_originals, 'original')} count that SemSim "
        f"({view.unseen_by}) did not learn from, so that all metrics are judged on equal terms."
        + (" Metrics of sets have their values from all originals." if sets else "")
    ]


def _training_remarks(analysis: Analysis, study: StudyChoice, checkpoints: Path) -> list[str]:
    """Of each SemSim: whether programs voted for it, whether it learned from this very study, and
    whether it beats its own start on these images.

    A file that cannot be read has no remark; it has no number either.
    """
    remarks = []
    keys = set(original_keys(analysis.evidence.images))
    for spec in analysis.specs:
        checkpoint = _checkpoint_of(spec.name)
        if not checkpoint:
            continue
        with suppress(WeightsError):
            path = checkpoints / f"{checkpoint}.safetensors"
            training = read_training(path)
            said = ["trained on simulated votes"] if training.simulated else []
            seen = len(keys.intersection(training.originals))
            if seen:
                originals = counted(len(keys), "original")
                said.append(f"in-sample: it learned from {seen} of these {originals}")
            elif training.study == study.name and not training.originals:
                said.append("in-sample: it learned from this study")
            remarks += [f"{spec.title}: {'; '.join(said)}."] if said else []
            beside = control_remarks(
                spec, analysis.specs, analysis.evidence, analysis.settings, path
            )
            remarks += [f"{spec.title}: {words}" for words in beside]
    return remarks


def _metric_remarks(specs: Sequence[MetricSpec], facts: pd.DataFrame) -> list[str]:
    """What metrics say of themselves, and how sure those of sets are of their values."""
    remarks = []
    for spec in specs:
        own = facts[facts["metric"] == spec.name]
        remarks += [f"{spec.title}: {note}" for note in own["notes"].drop_duplicates() if note]
        if own["standard_error"].notna().any():
            largest = number(own["standard_error"].max())
            remarks.append(f"{spec.title}: standard error of a model's value up to {largest}.")
    return remarks


def origin(context: ScienceContext, comparison: Comparison) -> Origin:
    """Where the numbers of a comparison come from, for its report."""
    resources = Resources(checkpoints=context.checkpoints)
    weights: dict[str, str] = {}
    for spec in comparison.analysis.specs:
        with suppress(WeightsError):  # an imported score may be of weights that are not here
            weights |= {p.name: sha256_of(p) for p in find_metric(spec.name).files(resources)}
    study = comparison.study
    own = not study.id.startswith(_IMPORT)
    return Origin(
        protocol=study.headline,
        collection=context.collection(study.id) if own else "",
        weights=weights,
        versions=software_versions(),
    )


def image_choices(images: pd.DataFrame) -> list[tuple[str, str]]:
    """(what the list shows, dataset and id) of every original of a study, in order."""
    keys = ["dataset", "image_id", "class_name"]
    originals = images[keys].astype(str).drop_duplicates().sort_values(keys)
    return [
        (f"{image_id} · {class_name}", f"{dataset}\n{image_id}")
        for dataset, image_id, class_name in originals.to_numpy()
    ]


def model_choices(analysis: Analysis) -> list[tuple[str, str]]:
    """(name, key) of every model."""
    return [(row["label"], model_key(row)) for _, row in analysis.models.iterrows()]


def rows_of_model(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows of a table that belong to the model `key`."""
    chosen = pd.Series(True, index=table.index)
    for column, value in zip(MODEL_KEY, key.split("\n"), strict=True):
        chosen &= table[column].astype(str) == value
    return table[chosen]


def _imported_choices(root: Path) -> list[StudyChoice]:
    return [
        StudyChoice(_IMPORT + folder.name, found.name, False, str(found.record["headline"]))
        for folder, found in list_imports(root).items()
    ]


def _imported(context: ScienceContext, study: StudyChoice) -> Imported | None:
    if not study.id.startswith(_IMPORT):
        return None
    return read_import(context.data / "imports" / study.id.removeprefix(_IMPORT))


def _metrics(resources: Resources, view: View) -> list[Metric]:
    """Every metric there is, against the reference image that was chosen.

    The recogniser looks at reconstructions alone.
    """
    plain = all_metrics(resources)
    attacked = [
        find_metric(f"{name}@attacked") for name in plain if not name.startswith("recogniser")
    ]
    choice = {
        "clean": [*plain.values()],
        "attacked": attacked,
        "both": [*plain.values(), *attacked],
    }
    return choice[view.reference]
