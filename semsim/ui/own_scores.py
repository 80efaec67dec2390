"""Scores of custom metrics for the study in hand: a table is read, columns chosen, kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from fastapi import APIRouter, Body, Request
from fastapi.responses import HTMLResponse

from semsim.base.columns import ScoreColumn
from semsim.base.errors import DataError, SemsimError
from semsim.base.table_files import ENDINGS, REMARKS, read_texts
from semsim.base.words import counted
from semsim.comparison.own_scores import fitted, keep_own, kept_of, read_own, remove_own
from semsim.importers import uploads
from semsim.lab.markup import pieces
from semsim.ui import ScienceContext, StudyChoice
from semsim.ui.answers import said

HOME = "/studio/pictures/scores"
KINDS = (*ENDINGS, ".txt")
MOST = 20 * 1000**2  # bytes of a table that the server reads while somebody waits
_KEYS = ("dataset", "attack", "model", "image_id", "class_name")
_HTML = pieces("own_scores.html", "semsim.ui")
Text = Annotated[str, Body(embed=True)]


def page(context: ScienceContext, request: Request, upload: str) -> HTMLResponse:
    """Return the page: scores of the study in hand, a place for more, columns of an upload."""
    study = _study(context, context.in_hand(request))
    problem, columns, name = "", [], ""
    try:
        if upload:
            one = _table(context, upload)
            columns, name = _columns(one.file), one.name
    except SemsimError as error:
        problem = str(error)
    kept = [] if study is None else kept_of(context.data, _names(study))
    body = _HTML.page(study, kept, sorted(KINDS), upload, name, columns, problem)
    return HTMLResponse(context.framed("Scores of custom metrics", body))


def keep(
    context: ScienceContext, study_id: str, upload: str, chosen: Mapping[str, Mapping[str, str]]
) -> str:
    """Keep columns of an upload for a study; says what was kept.

    Raises `SemsimError`.

    Args:
        chosen: By the name of a metric, its column and the way it leaks.
    """
    study = _study(context, study_id)
    if study is None:
        raise DataError("This study is gone. Load the page again.")
    one = _table(context, upload)
    columns = {
        metric.strip(): ScoreColumn(name=of.get("column", ""), leaks=of.get("leaks", ""))
        for metric, of in chosen.items()
    }
    found = read_own(one.file, columns)
    labels = context.labels(study.id)
    fitting, _ = fitted(found, labels)
    if fitting.empty:
        raise DataError(_none_fits(found, labels, study))
    keep_own(context.data, _names(study), found)
    uploads.remove(uploads.folder_of(context.data), one.id)
    n = len(fitting[["model", "image_id"]].drop_duplicates())
    metrics = counted(len(columns), "metric")
    told = f"{metrics} kept: {n:,} of {counted(len(labels), 'picture')} have scores."
    return " ".join([told, *found.attrs[REMARKS]])


def _none_fits(found: pd.DataFrame, labels: pd.DataFrame, study: StudyChoice) -> str:
    mine, known = found.iloc[0], labels.iloc[0]
    return (
        f"None of the scores is of a picture of {study.name}. The table has, for example, image "
        f"{mine['image_id']} of {mine['model']}; the study has image {known['image_id']} of "
        f"{known['model']}."
    )


def add_routes(routes: APIRouter, context: ScienceContext) -> None:
    """The page and what it asks for."""

    @routes.get(HOME)
    def shown(request: Request, upload: str = "") -> HTMLResponse:
        return page(context, request, upload)

    @routes.post(HOME + "/keep", response_model=None)
    @said
    def kept(
        study: Text, upload: Text, metrics: Annotated[dict[str, dict[str, str]], Body(embed=True)]
    ) -> dict[str, str]:
        return {"said": keep(context, study, upload, metrics)}

    @routes.post(HOME + "/remove", response_model=None)
    @said
    def removed(study: Text, metric: Text) -> dict[str, str]:
        one = _study(context, study)
        remove_own(context.data, [study] if one is None else _names(one), metric)
        return {"said": f"{metric} is removed."}


def _study(context: ScienceContext, study_id: str) -> StudyChoice | None:
    return next((one for one in context.studies() if one.id == study_id), None)


def _names(study: StudyChoice) -> list[str]:
    return [study.id, study.name]


def _table(context: ScienceContext, upload: str) -> uploads.Upload:
    one = uploads.find(uploads.folder_of(context.data), upload)
    if not one.whole:
        raise DataError(f"{one.name} is not whole. Choose it again.")
    if one.size > MOST:
        raise DataError(
            f"{one.name} is larger than {MOST / 1e6:.0f} MB, more than this page reads. Leave out "
            "columns that are no scores, or type: semsim-studio import scores FILE"
        )
    return one


def _columns(path: Path) -> list[dict[str, Any]]:
    """The columns of a table that may be scores: those that hold numbers, and what they hold."""
    table = read_texts(path, DataError)
    table.columns("model", "image_id")
    found = []
    for name in table.cells:
        values = pd.to_numeric(table.cells[name], errors="coerce").dropna()
        if name in _KEYS or values.empty:
            continue
        n = int(table.cells[name].notna().sum())
        span = f"{values.min():.4g} to {values.max():.4g}"
        found.append({"name": name, "n": n, "span": span})
    if not found:
        raise DataError(f"{path.name} has no column of numbers except model and image_id.")
    return found
