"""The page Pictures: bring one's own, see the plan, keep it; browse and delete what is there.

A plain page and its routes. Files come in pieces (`semsim.importers.uploads`); looking at them and
keeping them are jobs, so both outlive the page.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Depends
from fastapi.responses import FileResponse, HTMLResponse, Response

from semsim.base.errors import DataError, JobError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.importers import archives, uploads
from semsim.importers.class_names import check_classes
from semsim.importers.import_job import (
    KEEP,
    LOOK,
    ImportOrder,
    checked_words,
    order_of,
    plan_of,
    queue_keep,
    queue_look,
    strip_path,
)
from semsim.lab.markup import rooted
from semsim.ui import ScienceContext, own_scores, pictures_data, pictures_view
from semsim.ui.answers import KEPT, GoneError, said
from semsim.ui.pictures_data import Wanted

HOME = "/studio/pictures"
TITLE = "Pictures"
_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z._-]+")
Text = Annotated[str, Body(embed=True)]


def router(context: ScienceContext) -> APIRouter:
    """The page and everything it asks for."""
    routes = APIRouter(include_in_schema=False)
    for sweep in (uploads.sweep, archives.sweep):
        sweep(uploads.folder_of(context.data))
    for add in (_add_pages, _add_pictures, _add_uploads, _add_plan, _add_sets):
        add(routes, context)
    own_scores.add_routes(routes, context)
    return routes


def _shown(context: ScienceContext, body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(context.framed(TITLE, body), status)


def _page(context: ScienceContext, make: Callable[[], str]) -> HTMLResponse:
    try:
        return _shown(context, make())
    except SemsimError as error:
        return _shown(context, pictures_view.HTML.trouble(str(error)), 404)


def _add_pages(routes: APIRouter, context: ScienceContext) -> None:
    @routes.get(HOME)
    def home(
        wanted: Annotated[Wanted, Depends()],
        page: int = 1,
        kept: str = "",
        task: str = "",
        anew: bool = False,
    ) -> HTMLResponse:
        waiting = [(job, order_of(job)) for job in _waiting(_root(context))]
        sending = [
            one
            for one in uploads.uploads(uploads.folder_of(context.data))
            if not uploads.is_held(one)
        ]
        return _page(
            context,
            lambda: pictures_view.home(context, wanted, page, waiting, (kept, task, anew), sending),
        )

    @routes.get(HOME + "/plan/{job_id}")
    def plan(job_id: str) -> HTMLResponse:
        return _page(context, lambda: pictures_view.plan(context, _job(context, job_id)))

    @routes.get(HOME + "/set/{key}")
    def one_set(key: str, name: str = "", page: int = 1) -> HTMLResponse:
        return _page(context, lambda: pictures_view.one_set(context, key, name, page))

    @routes.get(HOME + "/class")
    def one_class(dataset: str, name: str, page: int = 1) -> HTMLResponse:
        return _page(context, lambda: pictures_view.one_class(context, dataset, name, page))


def _add_pictures(routes: APIRouter, context: ScienceContext) -> None:
    @routes.get(HOME + "/strip/{key}.png", response_model=None)
    @said
    def strip(key: str) -> Response:
        found = pictures_data.strip_of(pictures_data.find_shelved(context, key))
        return Response(found, media_type="image/png", headers=KEPT)

    @routes.get(HOME + "/image/{key}/{row}/{kind}.png", response_model=None)
    @said
    def picture(key: str, row: int, kind: str) -> Response:
        one = pictures_data.find_shelved(context, key)
        path = pictures_data.picture_file(one, row, kind)
        return FileResponse(path, media_type="image/png", headers=KEPT)

    @routes.get(HOME + "/looked/{job_id}/{place}.png", response_model=None)
    @said
    def looked(job_id: str, place: int) -> Response:
        path = strip_path(_job(context, job_id).folder, place)
        if not path.is_file():
            raise GoneError("This plan shows no such set.")
        return FileResponse(path, media_type="image/png", headers=KEPT)


def _add_uploads(routes: APIRouter, context: ScienceContext) -> None:
    root = uploads.folder_of(context.data)

    @routes.post(HOME + "/uploads", response_model=None)
    @said
    def begin(name: Text, size: Annotated[int, Body()], key: Text = "") -> dict[str, Any]:
        one = uploads.begin(root, name, size, key)
        return {"id": one.id, "have": one.have}

    @routes.put(HOME + "/uploads/{upload_id}", response_model=None)
    @said
    def piece(
        upload_id: str,
        at: int,
        content: Annotated[bytes, Body(media_type="application/octet-stream")],
    ) -> dict[str, Any]:
        return {"have": uploads.append(root, upload_id, at, content).have}

    @routes.get(HOME + "/uploads/{upload_id}", response_model=None)
    @said
    def state(upload_id: str) -> dict[str, Any]:
        one = uploads.find(root, upload_id)
        return {"have": one.have, "size": one.size}

    @routes.delete(HOME + "/uploads/{upload_id}", response_model=None)
    @said
    def cancel(upload_id: str) -> dict[str, Any]:
        uploads.remove(root, upload_id)
        return {}


def _add_plan(routes: APIRouter, context: ScienceContext) -> None:
    @routes.post(HOME + "/look", response_model=None)
    @said
    def look(upload: Text, again: Text = "", adds: Text = "") -> dict[str, str]:
        """Draw the look at what was dropped.

        Args:
            again: The look that the upload adds something to.
            adds: What, a key of `ADDED`.
        """
        job = queue_look(_order(context, upload, again, adds), _root(context))
        jobs.start(job)
        return {"job": job.id}

    @routes.post(HOME + "/keep", response_model=None)
    @said
    def keep(
        look: Text,
        name: Text,
        judge: Text = "",
        task: Text = "",
        dataset: Text = "",
        attack: Text = "",
        words: Annotated[dict[str, str] | None, Body()] = None,
    ) -> dict[str, str]:
        job = _job(context, look, LOOK)
        _refuse_kept(job, _root(context))
        plan = plan_of(job)
        given = checked_words(plan, words or {}, task)
        if judge:
            pictures_data.check_judge(context, judge, plan)
        asked = replace(
            order_of(job),
            look=job.folder,
            plan=plan["sha256"],
            name=name.strip(),
            judge=judge,
            task=task,
            dataset=dataset.strip(),
            attack=attack.strip(),
            words=given,
        )
        made = queue_keep(asked, _root(context))
        jobs.start(made)
        return {"job": made.id}

    @routes.post(HOME + "/discard", response_model=None)
    @said
    def discard(look: Text) -> dict[str, str]:
        job = _job(context, look, LOOK)
        _refuse_kept(job, _root(context))
        jobs.request_stop(job)
        for one in order_of(job).uploads:
            uploads.remove(uploads.folder_of(context.data), one)
        return {}

    @routes.get(HOME + "/jobs/{job_id}", response_model=None)
    @said
    def watch(job_id: str) -> dict[str, Any]:
        return _watched(_job(context, job_id))

    @routes.post(HOME + "/jobs/{job_id}/stop", response_model=None)
    @said
    def stop(job_id: str) -> dict[str, Any]:
        job = _job(context, job_id)
        jobs.request_stop(job)
        return _watched(job)

    @routes.post(HOME + "/jobs/{job_id}/resume", response_model=None)
    @said
    def resume(job_id: str) -> dict[str, Any]:
        job = _job(context, job_id)
        if not pictures_view.has_files(job):
            raise GoneError("The files are not here any more; choose them again.")
        jobs.resume(job)
        return _watched(job)


def _add_sets(routes: APIRouter, context: ScienceContext) -> None:
    @routes.post(HOME + "/delete", response_model=None)
    @said
    def delete(key: Text, typed: Text) -> dict[str, str]:
        return {"deleted": pictures_data.delete(context, key, typed)}

    @routes.post(HOME + "/delete-brought", response_model=None)
    @said
    def delete_brought(holds: Text, key: Text, typed: Text) -> dict[str, str]:
        return {"deleted": pictures_data.delete_brought(context, holds, key, typed)}


def _root(context: ScienceContext) -> Path:
    return context.data / "jobs"


def _job(context: ScienceContext, job_id: str, *kinds: str) -> Job:
    """A job of this page, of any kind if none is named; `JobError` for another."""
    try:
        job = jobs.open_job(_root(context), job_id)
    except JobError as error:
        raise GoneError("There is no such import here, or no longer.") from error
    if job.kind not in (kinds or (LOOK, KEEP)):
        raise JobError(f"{job.title!r} is no {'look at an upload' if kinds else 'import'}.")
    return job


def _waiting(root: Path) -> list[Job]:
    """Return jobs that keep pictures, and the last look at each upload a user may still keep."""
    keeping = _being_kept(root)
    looks = {
        order_of(job).uploads[:1]: job
        for job in jobs.list_jobs(root, LOOK)[::-1]
        if pictures_view.has_files(job) and not keeping & {*order_of(job).uploads}
    }
    return [*jobs.live_jobs(root, KEEP), *looks.values()]


def _being_kept(root: Path) -> set[str]:
    """The uploads that a job under way works on."""
    return {one for job in jobs.live_jobs(root, KEEP) for one in order_of(job).uploads}


def _refuse_kept(look: Job, root: Path) -> None:
    if _being_kept(root) & {*order_of(look).uploads}:
        raise DataError("This is being stored already. All pictures shows the progress.")
    pictures_view.check_files(look)


def _watched(job: Job) -> dict[str, Any]:
    state = jobs.state(job)
    done = jobs.result(job) if state is JobState.DONE and job.kind == KEEP else {}
    asked = {name: done[name] for name in ("kept", "task") if done.get(name)}
    asked |= {"anew": "1"} if done.get("anew") else {}
    return {
        "state": state.value,
        "live": state in jobs.LIVE,
        "html": pictures_view.status(job),
        "to": rooted(f"{HOME}?{urlencode(asked)}") if asked else "",
    }


def _order(context: ScienceContext, upload: str, again: str, adds: str) -> ImportOrder:
    """Return the order to look at an upload, or to repeat a look with the upload beside it."""
    one = uploads.find(uploads.folder_of(context.data), upload)
    if not one.whole:
        raise DataError(f"{one.name} is not whole yet: {one.have:,} of {one.size:,} bytes came.")
    if again:
        if adds not in pictures_view.ADDED:
            raise DataError("State whether these are originals or classes.")
        before = order_of(_job(context, again))
        # The first tells looks at the same source.
        both = replace(before, uploads=(*before.uploads, one.id))
        if adds == "originals":
            return replace(both, originals=one.file)
        try:
            check_classes(one.file)
        except DataError:
            uploads.remove(uploads.folder_of(context.data), one.id)
            raise
        return replace(both, classes=one.file)
    return ImportOrder(
        data=context.data,
        device=context.device,
        checkpoints=context.checkpoints,
        source=one.file,
        name=_NOT_IN_NAMES.sub("-", Path(one.name).stem).strip("-._")[:60] or "pictures",
        uploads=(one.id,),
    )
