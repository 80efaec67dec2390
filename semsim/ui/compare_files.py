"""Downloads of the Compare page: each figure and table in every form, and what jobs have made."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, Response

from semsim.errors import JobError, UnknownNameError
from semsim.jobs import folders as jobs
from semsim.reporting import canvas, figures, tables, writing
from semsim.reporting.export import png, svg
from semsim.ui import ScienceContext
from semsim.ui.answers import worded
from semsim.ui.compare_data import Comparison, View, held
from semsim.ui.compare_jobs import made_file
from semsim.ui.markup import rooted

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


def address(
    view: View, name: str, ending: str, metric: str | None = None, studies: Sequence[str] = ()
) -> str:
    """Where a file is: a figure or table by its name."""
    asked = [("study", one) for one in studies or [view.study]]
    asked += [("reference", view.reference)]
    # Each of several studies keeps its own.
    asked += [] if studies else [("rule", view.rule), ("unseen_by", view.unseen_by)]
    asked += [("metric", metric)] if metric else []
    return rooted(f"{FOLDER}/{name}.{ending}?{urlencode(asked)}")


def made_address(job: str, name: str) -> str:
    """Where the file is that a job has made."""
    return rooted(f"{FOLDER}/made/{job}/{name}")


def router(context: ScienceContext) -> APIRouter:
    """The routes below `FOLDER`; what cannot be made is answered as text that says why."""
    routes = APIRouter()

    @routes.get(FOLDER + "/{name}.{ending}")
    @worded
    def file(
        name: str,
        ending: str,
        study: Annotated[list[str], Query()],
        rule: str = "",
        reference: str = "",
        unseen_by: str = "",
        metric: str | None = None,
    ) -> Response:
        view = View(study="", rule=rule, reference=reference, unseen_by=unseen_by)
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
