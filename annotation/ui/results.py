"""The Results page: what the votes of the study in hand say, and how sure that is."""

from typing import Any

from fastapi import APIRouter, Request, Response

from annotation.errors import NotFoundError
from annotation.study import imported
from annotation.ui import StudyContext, results_tabs, results_view
from annotation.ui.results_data import ResultsCache
from annotation.web.api import routes
from annotation.web.templates import page
from semsim.base.errors import SemsimError

PAGE = "/studio/results"


def router(context: StudyContext) -> APIRouter:
    """The page, one tab of it at a time, and its tables.

    Nothing is computed by itself: results are looked at when the page or a table is asked for, and
    computed only if something has happened in the study since.
    """
    cache = ResultsCache(context.store, context.imports)

    def show(request: Request, tab: str = "share") -> Response:
        tab = tab if tab in results_tabs.TABS else "share"
        chosen, imports = request.query_params.get("study", ""), imported.choices(context.imports)
        if not chosen.startswith(imported.PREFIX):
            chosen = context.in_hand(request) or next(iter(imports), "")
        if not chosen:
            return _page(study=None, tab=tab)
        try:
            results = cache.get(chosen)
        except SemsimError as error:
            return _page(study=None, tab=tab, problem=str(error))
        others = {key: one for key, one in imports.items() if key != chosen}
        lead, body = results_tabs.shown(results, tab)
        told = {"facts": results_view.facts(results), "lead": lead, "body": body}
        files = list(results_view.tables(results)) if results.n_votes else []
        return _page(study=results.study, tab=tab, files=files, imports=others, **told)

    def table(study_id: str, name: str) -> Response:
        found = results_view.tables(cache.get(study_id))
        if name not in found:
            raise NotFoundError(f"There is no table {name!r}. Known: {', '.join(found)}.")
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return Response(results_view.csv(found[name]), media_type="text/csv", headers=headers)

    return routes(get={PAGE: show, PAGE + "/{study_id}/{name}.csv": table})


def _page(**values: Any) -> Response:
    usual = dict.fromkeys(("problem", "facts", "lead", "body", "files", "imports"), "")
    tabs = [(key, tab.title) for key, tab in results_tabs.TABS.items()]
    return page("results.html", tabs=tabs, **{**usual, **values})
