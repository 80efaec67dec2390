"""Jobs and downloads of Compare: scores, weights and reports; figures and tables."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from fastapi.responses import FileResponse, Response

from semsim.base.columns import MODEL_KEY
from semsim.base.errors import JobError, SemsimError, UnknownNameError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.storage.versions import product_version
from semsim.comparison.packed_job import PACK_JOB, PackOrder, pack_files
from semsim.lab.markup import rooted
from semsim.metrics.scoring import LABELS_FILE, PAIR_COLUMNS, SCORE_JOB, ScoreOrder
from semsim.people.get_job import PEOPLE_JOB, PeopleOrder
from semsim.reporting import canvas, figures, tables, writing
from semsim.reporting.export import png, svg
from semsim.ui import ScienceContext
from semsim.ui.answers import worded
from semsim.ui.compare_data import Comparison, ComparisonView, held
from semsim.weights import (
    WEIGHTS_JOB,
    WeightFile,
    WeightsOrder,
    locate,
    read_manifest,
    weight_file,
)

FOLDER = "/studio/compare-files"
_FIGURES: dict[str, tuple[str, Callable[[canvas.Drawn], str | bytes]]] = {
    "png": ("image/png", png),
    "svg": ("image/svg+xml", lambda figure: svg(figure, live=False)),
    "csv": ("text/csv", lambda figure: writing.csv(figure.frame)),
}
_TABLES: dict[str, tuple[str, Callable[[tables.Table], str]]] = {
    "csv": ("text/csv", lambda table: writing.csv(table.frame)),
    "tex": ("application/x-tex", writing.latex),
    "md": ("text/markdown", writing.markdown),
}
_starting = threading.Lock()  # two pages opened at once start one job
_SETTLED = {JobState.DONE, JobState.STOPPED, JobState.FAILED, JobState.LOST}


def scoring_job(context: ScienceContext, comparison: Comparison) -> Job | None:
    """The job that computes what is missing, started when none has tried it yet.

    The same work is not started twice: where it failed or was stopped, that job is returned for
    a person to resume, also where it had done a part. None where nothing is missing and nothing
    runs.
    """
    with _starting:
        known = [*_scorings(context, comparison.study.id)]
        missing = comparison.book.missing
        live = next((job for job in known if jobs.state(job) not in _SETTLED), None)
        if live is not None or not missing:
            return live
        for job in known:
            asked = {tuple(pair) for pair in _request(job)["missing"]}
            left = set(missing) < asked and jobs.state(job) is not JobState.DONE
            if left or set(missing) == asked:
                return job
        job = _create_scoring(context, comparison)
        jobs.start(job)
        return job


def start_download(context: ScienceContext, name: str) -> Job:
    """A running job that fetches the weight file `name`; the one there is, if any."""
    order = WeightsOrder(name=name, checkpoints=context.checkpoints.resolve())
    title = f"Fetching {weight_file(name, context.checkpoints).file}"
    return _started(context, WEIGHTS_JOB, title, order)


def start_people(context: ScienceContext, source: str) -> Job:
    """A running job that fetches a source of people's judgements; the one there is, if any."""
    order = PeopleOrder(name=source, data=context.data.resolve())
    return _started(context, PEOPLE_JOB, _fetching(source), order)


def _started(context: ScienceContext, kind: str, title: str, order: Any) -> Job:
    root = context.data / "jobs"
    with _starting:
        for job in jobs.live_jobs(root, kind):
            if job.title == title:
                return job
        job = jobs.create(root, kind=kind, title=title, order=order)
        jobs.start(job)
        return job


def newest_people(context: ScienceContext, source: str) -> Job | None:
    """The job that fetches a source, or fetched it last."""
    found = jobs.list_jobs(context.data / "jobs", PEOPLE_JOB)
    return next((job for job in found if job.title == _fetching(source)), None)


def _fetching(source: str) -> str:
    return f"Fetching the pictures of {source}"


def live_download(context: ScienceContext) -> Job | None:
    """A download that runs, else the newest where it went wrong."""
    job = jobs.foremost(context.data / "jobs", WEIGHTS_JOB)
    return None if job is None or jobs.state(job) is JobState.DONE else job


def missing_weights(context: ScienceContext) -> list[WeightFile]:
    """The weight files of the manifest that are not here, or are not what they should be."""
    return [
        entry
        for name, entry in read_manifest(context.checkpoints).items()
        if not _is_here(name, context)
    ]


def newest_scoring(context: ScienceContext, study_id: str) -> Job | None:
    """The job that scores a study, or scored it last."""
    return next(_scorings(context, study_id), None)


def _scorings(context: ScienceContext, study_id: str) -> Iterator[Job]:
    """The jobs that score a study, or scored it, the newest first; each is read when asked for."""
    found = jobs.list_jobs(context.data / "jobs", SCORE_JOB)
    return (job for job in found if _request(job).get("study") == study_id)


def _request(job: Job) -> dict[str, Any]:
    """Read what a job was asked to score; nothing where its folder does not say."""
    try:
        return jobs.read_json(job.folder / "request.json")
    except JobError:
        return {}


def _create_scoring(context: ScienceContext, comparison: Comparison) -> Job:
    wanted = [*MODEL_KEY, *PAIR_COLUMNS]
    columns = [name for name in wanted if name in comparison.labels]  # attacked may be absent
    names = dict.fromkeys(name for _, name in comparison.book.missing)
    return jobs.create(
        context.data / "jobs",
        kind=SCORE_JOB,
        title=f"Scoring {comparison.study.name}",
        order=ScoreOrder(
            metrics=tuple(names),
            scores=(context.data / "scores").resolve(),
            checkpoints=context.checkpoints.resolve(),
            device=context.device,
        ),
        files={
            LABELS_FILE: comparison.labels[columns],
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


def make_files(context: ScienceContext, comparison: Comparison, what: str) -> Job:
    """A job that writes the report, or everything, of a comparison; the one there is, if any."""
    with _starting:
        job = made_job(context, comparison, what)
        if job is not None and jobs.state(job) in {*jobs.LIVE, JobState.DONE}:
            return job
        found, view = comparison.tables, comparison.view
        order = PackOrder(
            what=what,
            study=comparison.study.name,
            protocol=found.protocol or comparison.study.headline,
            importer=found.importer,
            rule=view.rule,
            unseen_by=view.unseen_by,
            checkpoints=context.checkpoints.resolve(),
            remarks=found.remarks,
        )
        job = jobs.create(
            context.data / "jobs",
            kind=PACK_JOB,
            title=f"{'Report' if what == 'report' else 'Everything'} of {comparison.study.name}",
            order=order,
            files={
                **pack_files(found, comparison.scored),
                "request.json": _packed(comparison, what),
            },
        )
        jobs.start(job)
        return job


def made_job(context: ScienceContext, comparison: Comparison, what: str) -> Job | None:
    """The newest job that writes, or wrote, `what` of this very comparison."""
    asked = _packed(comparison, what)
    found = jobs.list_jobs(context.data / "jobs", PACK_JOB)
    return next((job for job in found if _request(job) == asked), None)


def made_file(job: Job) -> str:
    """The name of the file that a job of `make_files` has left, or ""."""
    if jobs.state(job) is not JobState.DONE:
        return ""
    name = str(jobs.result(job)["file"])
    return name if (job.folder / name).is_file() else ""


def _packed(comparison: Comparison, what: str) -> dict[str, object]:
    return {
        "what": what,
        **asdict(comparison.view),
        "version": comparison.version,
        "made_with": {"semsim": product_version(), **comparison.origin.versions},
    }


def address(
    view: ComparisonView,
    name: str,
    ending: str,
    metric: str | None = None,
    studies: Sequence[str] = (),
) -> str:
    """Return the address of a file: a figure or table by its name."""
    asked = [("study", one) for one in studies or [view.study]]
    asked += [("reference", view.reference)]
    # Each of several studies keeps its own.
    asked += [] if studies else [("rule", view.rule), ("unseen_by", view.unseen_by)]
    asked += [("metric", metric)] if metric else []
    return rooted(f"{FOLDER}/{name}.{ending}?{urlencode(asked)}")


def made_address(job: str, name: str) -> str:
    """Return the address of a file that a job has made."""
    return rooted(f"{FOLDER}/made/{job}/{name}")


def _view(rule: str = "", reference: str = "", unseen_by: str = "") -> ComparisonView:
    """Return what an address chooses, for any study."""
    return ComparisonView(study="", rule=rule, reference=reference, unseen_by=unseen_by)


def router(context: ScienceContext) -> APIRouter:
    """The routes below `FOLDER`; what cannot be made is answered as text that says why."""
    routes = APIRouter()

    @routes.get(FOLDER + "/{name}.{ending}")
    @worded
    def file(
        name: str,
        ending: str,
        study: Annotated[list[str], Query()],
        view: Annotated[ComparisonView, Depends(_view)],
        metric: str | None = None,
    ) -> Response:
        found = [held(context, replace(view, study=one)) for one in study]
        kind, content = _content(found, name, ending, metric)
        stem = f"{name}-{canvas.safe_name(metric)}" if metric else name
        shown = f'attachment; filename="{stem}.{ending}"'
        return Response(content, media_type=kind, headers={"Content-Disposition": shown})

    @routes.get(FOLDER + "/made/{job}/{name}")
    @worded
    def made(job: str, name: str) -> Response:
        found = jobs.open_job(context.data / "jobs", job)
        if made_file(found) != name:
            raise JobError(f"There is no {name}. Ask for it on Compare.")
        return FileResponse(found.folder / name, filename=name)

    return routes


def _content(
    comparisons: Sequence[Comparison], name: str, ending: str, metric: str | None
) -> tuple[str, str | bytes]:
    first = comparisons[0]
    if name in figures.NAMES and ending in _FIGURES:
        kind, figure_as = _FIGURES[ending]
        return kind, figure_as(figures.figure(first.analysis, name, metric))
    if ending in _TABLES:
        kind, table_as = _TABLES[ending]
        made = tables.table1([one.analysis for one in comparisons]) if name == "table1" else None
        return kind, table_as(made or tables.table(first.analysis, name))
    raise UnknownNameError(f"There is no {name}.{ending}.")
