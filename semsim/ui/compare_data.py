"""What the Compare page shows, gathered once from labels and scores."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from semsim import jobs
from semsim.analysis.tables import (
    MODEL_KEY,
    agreement_table,
    metric_means,
    model_table,
)
from semsim.errors import SemsimError, WeightsError
from semsim.jobs import Job, JobState
from semsim.learning.model import read_training
from semsim.metrics import MetricSpec, Resources, all_metrics
from semsim.scoring import ScoreBook, pair_sets_of_labels, read_scores
from semsim.ui import ScienceContext, StudyChoice
from semsim.weights import WeightFile, locate, read_manifest, weight_file

SCORE_JOB = "score"
WEIGHTS_JOB = "weights"
_starting = threading.Lock()  # two pages opened at once start one job
_SETTLED = {JobState.DONE, JobState.STOPPED, JobState.FAILED, JobState.LOST}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A study's votes beside its scores.

    specs: of the metrics that have scores or are waiting for them, in the registry's order.
    unavailable: of the others, with the reason.
    models, means, agreement: as `semsim.analysis.tables` makes them.
    remarks: by metric, what a reader must know before believing its number.
    """

    study: StudyChoice
    labels: pd.DataFrame
    book: ScoreBook
    specs: tuple[MetricSpec, ...]
    unavailable: tuple[tuple[MetricSpec, str], ...]
    models: pd.DataFrame
    means: pd.DataFrame
    agreement: pd.DataFrame
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_votes(self) -> int:
        return int(self.labels["n_votes"].sum())

    @property
    def has_decisions(self) -> bool:
        """Whether a majority has formed on any reconstruction."""
        return bool(self.labels["recognisable"].notna().any())

    def spec(self, name: str | None) -> MetricSpec | None:
        """The metric called `name`, else the best of those with scores, else None."""
        by_name = {spec.name: spec for spec in self.specs}
        if name in by_name:
            return by_name[name]
        scored = [metric for metric in self.agreement["metric"] if metric in self.models]
        return by_name[scored[0]] if scored else None


def compare(
    study: StudyChoice, labels: pd.DataFrame, book: ScoreBook, specs: Sequence[MetricSpec]
) -> Comparison:
    """Tables of a study, from its labels and what is known of its scores."""
    present = tuple(spec for spec in specs if spec.name not in book.unavailable)
    models = model_table(labels, book.scores)
    return Comparison(
        study=study,
        labels=labels,
        book=book,
        specs=present,
        unavailable=tuple(
            (spec, book.unavailable[spec.name]) for spec in specs if spec.name in book.unavailable
        ),
        models=models,
        means=metric_means(labels, book.scores),
        agreement=agreement_table(models, present),
    )


def read_comparison(context: ScienceContext, study: StudyChoice) -> Comparison:
    """The comparison of a study as far as scores are on disk."""
    resources = Resources(checkpoints=context.checkpoints)
    labels = context.labels(study.id)
    metrics = all_metrics(resources)
    book = read_scores(
        pair_sets_of_labels(labels), list(metrics), resources, context.data / "scores"
    )
    found = compare(study, labels, book, [metric.spec for metric in metrics.values()])
    return replace(found, remarks=training_remarks(found, context.checkpoints))


def training_remarks(comparison: Comparison, checkpoints: Path) -> dict[str, str]:
    """Of each SemSim: whether programs voted for it, and whether it learned from this very study.

    A file that cannot be read has no remark; it has no number either.
    """
    remarks = {}
    for spec in comparison.specs:
        family, _, checkpoint = spec.name.partition(":")
        if family != "semsim":
            continue
        with suppress(WeightsError):
            training = read_training(checkpoints / f"{checkpoint}.safetensors")
            said = ["trained on simulated votes"] if training.simulated else []
            if training.study == comparison.study.name:
                said.append("in-sample: learned from this study")
            remarks[spec.name] = "; ".join(said)
    return remarks


def scoring_job(context: ScienceContext, comparison: Comparison) -> Job | None:
    """The job that computes what is missing, started when none has tried it yet.

    The same work is not started twice: where it failed or was stopped, that job is returned for
    a person to resume. None where nothing is missing and nothing runs.
    """
    with _starting:
        job = _newest_job(context, comparison.study.id)
        missing = [list(pair) for pair in comparison.book.missing]
        if job is not None and jobs.state(job) not in _SETTLED:
            return job
        if not missing:
            return None
        if job is not None and _request(job)["missing"] == missing:
            return job
        job = _create_scoring(context, comparison)
        jobs.start(job)
        return job


def start_download(context: ScienceContext, name: str) -> Job:
    """A running job that fetches the weight file `name`."""
    entry = weight_file(name, context.checkpoints)
    job = jobs.create(
        context.data / "jobs",
        kind=WEIGHTS_JOB,
        title=f"Fetching {entry.file}",
        argv=["weights", name, "--download", "--checkpoints", str(context.checkpoints)],
    )
    jobs.start(job)
    return job


def live_download(context: ScienceContext) -> Job | None:
    """The newest download, while it runs or where it went wrong."""
    newest = jobs.list_jobs(context.data / "jobs", WEIGHTS_JOB)[:1]
    return newest[0] if newest and jobs.state(newest[0]) is not JobState.DONE else None


def missing_weights(context: ScienceContext) -> list[WeightFile]:
    """The weight files of the manifest that are not here, or are not what they should be."""
    return [
        entry
        for name, entry in read_manifest(context.checkpoints).items()
        if not _is_here(name, context)
    ]


def image_choices(labels: pd.DataFrame) -> list[tuple[str, str]]:
    """(what the list shows, dataset and id) of every original of a study, in order."""
    keys = ["dataset", "image_id", "class_name"]
    originals = labels[keys].astype(str).drop_duplicates().sort_values(keys)
    return [
        (f"{image_id} · {class_name}", f"{dataset}\n{image_id}")
        for dataset, image_id, class_name in originals.to_numpy()
    ]


def model_name(row: pd.Series, models: pd.DataFrame) -> str:
    """A model's name, with data set and attack only where the study has several."""
    several = [key for key in ("dataset", "attack") if models[key].nunique() > 1]
    return " · ".join([str(row["model"]), *(str(row[key]) for key in several)])


def model_choices(models: pd.DataFrame) -> list[tuple[str, str]]:
    """(name, key) of every model."""
    return [(model_name(row, models), model_key(row)) for _, row in models.iterrows()]


def model_key(row: pd.Series) -> str:
    """One string for a model, which a page can carry about."""
    return "\n".join(str(row[key]) for key in MODEL_KEY)


def rows_of_model(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows of a table that belong to the model `key`."""
    wanted = dict(zip(MODEL_KEY, key.split("\n"), strict=True))
    chosen = pd.Series(True, index=table.index)
    for column, value in wanted.items():
        chosen &= table[column].astype(str) == value
    return table[chosen]


def _newest_job(context: ScienceContext, study_id: str) -> Job | None:
    for job in jobs.list_jobs(context.data / "jobs", SCORE_JOB):
        if _request(job)["study"] == study_id:
            return job
    return None


def _request(job: Job) -> dict[str, object]:
    return jobs.read_json(job.folder / "request.json")


def _create_scoring(context: ScienceContext, comparison: Comparison) -> Job:
    columns = ["dataset", "attack", "model", "image_id", "class_name", "original", "reconstruction"]
    names = dict.fromkeys(name for _, name in comparison.book.missing)
    return jobs.create(
        context.data / "jobs",
        kind=SCORE_JOB,
        title=f"Scoring {comparison.study.name}",
        argv=[
            *("score", "--labels", "{job}/labels.parquet", "--metrics", ",".join(names)),
            *("--scores", str(context.data / "scores")),
            *("--checkpoints", str(context.checkpoints), "--device", context.device),
        ],
        files={
            "labels.parquet": comparison.labels[columns],
            "request.json": {
                "study": comparison.study.id,
                "missing": [list(pair) for pair in comparison.book.missing],
            },
        },
    )


def _is_here(name: str, context: ScienceContext) -> bool:
    try:
        locate(name, context.checkpoints)
    except SemsimError:
        return False
    return True
