"""Orders of trainings and studies from their jobs, also those that a previous version left."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from semsim.errors import JobError
from semsim.jobs.folders import ORDER_FILE, Job, read_json, read_order
from semsim.jobs.orders import from_record, options
from semsim.learning.ablations_run import StudyJob, TrainingJob
from semsim.learning.settings import TrainSettings


def training_order(job: Job) -> TrainingJob:
    """The order of a job; before, it was flat, or in the arguments of a job that had none."""
    if not job.argv:
        return read_order(job, TrainingJob)
    record = _record(job) if (job.folder / ORDER_FILE).exists() else _from_arguments(job)
    order = {name: record[name] for name in ("name", "study", "settings", "checkpoints")}
    asked = {"order": order, **{name: record[name] for name in ("hold_out", "licence")}}
    return from_record(TrainingJob, {"asked": asked, "place": _place(record)})


def study_order(job: Job) -> StudyJob:
    """The order of a job; before, it was flat."""
    if not job.argv:
        return read_order(job, StudyJob)
    record = _record(job)
    return from_record(StudyJob, {"plan": record["plan"], "place": _place(record)})


class _Named(dict[str, Any]):
    """What a job says; a name that is missing is told with the folder."""

    def __init__(self, job: Job, values: dict[str, Any]) -> None:
        super().__init__(values)
        self._folder = job.folder

    def __missing__(self, name: str) -> Any:
        raise JobError(f"{self._folder} cannot be resumed: it does not say its {name}. Start anew.")


def _record(job: Job) -> _Named:
    return _Named(job, read_json(job.folder / ORDER_FILE))


def _from_arguments(job: Job) -> _Named:
    """`learn --labels … --name …`, which spelt out every setting and judged nothing."""
    given = _Named(job, options(job.argv))
    checkpoints = given["checkpoints"]
    settings = {
        field.name: _read(field.default, given[name])
        for field in fields(TrainSettings)
        if (name := field.name.replace("_", "-")) in given
    }
    return _Named(
        job,
        {
            "name": given["name"],
            "study": given.get("study", ""),
            "checkpoints": checkpoints,
            "scores": str(Path(job.folder).parents[1] / "scores"),
            "device": given.get("device", "auto"),
            "metrics": [],
            "hold_out": None,
            "licence": "",
            "settings": settings,
        },
    )


def _place(record: _Named) -> dict[str, Any]:
    return {name: record[name] for name in ("checkpoints", "scores", "device", "metrics")}


def _read(default: Any, text: str) -> Any:
    """`text` as a value of the kind of `default`."""
    if isinstance(default, bool):
        return text == "true"
    if isinstance(default, tuple):
        return tuple(float(part) for part in text.split(",") if part)
    return type(default)(text)
