"""The page Compare: does a metric rank models as people do?

Plain HTML. A choice asks for the part that depends on it (`static/compare.js`), and an address
holds all choices, so that it can be kept, sent, and opened without the script.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pandas as pd
from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from semsim.base.errors import SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.pairwise_accuracy import LEVEL
from semsim.base.stats.roc import WITHIN, scale_differs, scale_note, scopes_by
from semsim.base.stats.verdict import title_of
from semsim.base.storage.places import files_of
from semsim.base.words import counted, listed
from semsim.reporting import tables
from semsim.reporting.notation import interval, number, p_value, reason
from semsim.reporting.svg import Mark, axis_of, line
from semsim.reporting.writing import html
from semsim.ui import ScienceContext, compare_tabs, compare_view
from semsim.ui.answers import said
from semsim.ui.compare_data import (
    REFERENCES,
    USUAL_REFERENCE,
    Comparison,
    ComparisonView,
    find_study,
    held,
    is_import,
    opened,
    source_of,
    studies_of,
)
from semsim.ui.compare_files import (
    make_files,
    missing_weights,
    newest_scoring,
    scoring_job,
    start_download,
    start_people,
)
from semsim.ui.compare_view import HTML, PAGE, TABS, Asked, asked_in, not_recorded

_SLACK = 1e-9  # between values of ρ that are one but for rounding


def solid(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The questions, and what is known of the chosen one."""
    shown = asked.shown if asked.shown in _VIEWS else "rules"
    questions = [(name, title) for name, (title, _) in _VIEWS.items()]
    drawn = _VIEWS[shown][1](context, comparison, asked)
    return HTML.solid(asked, questions, shown, drawn)


def _rules(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """ρ of every metric under each way to sum people up."""
    analysis = comparison.analysis
    table = analysis.rules.pivot(index="metric", columns="rule", values="rho")
    rules = [str(rule) for rule in dict.fromkeys(analysis.rules["rule"])]
    table = table.reindex(index=list(analysis.agreement["metric"]), columns=rules)
    names = {rule: title_of(analysis.evidence, rule) for rule in rules}
    said = same_best(
        {names[rule]: table[rule] for rule in rules}, _titles(comparison), "rule", _behind(analysis)
    )
    return _numbers(table.rename(columns=names), comparison, said, names[comparison.view.rule])


def _reference(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """ρ of every metric against the clean original and against what the attacker saw."""
    if not comparison.knows_attacked:
        return not_recorded()
    columns: dict[str, pd.Series] = {}
    for reference in ("clean", "attacked"):
        try:
            # As it was shown; worked out here where it never was.
            found = held(context, replace(comparison.view, reference=reference))
        except SemsimError as error:
            return HTML.note(str(error))
        rho = found.analysis.agreement.set_index("metric")["rho"]
        columns[reference] = rho.rename(lambda name: name.removesuffix("@attacked"))
        if rho.empty:
            return HTML.no_reference(asked, REFERENCES[reference], reference)
    table = pd.DataFrame(columns).sort_values("clean", ascending=False)
    names = {name: REFERENCES[name] for name in columns}
    said = same_best(
        {names[one]: table[one] for one in names},
        _titles(comparison),
        "reference",
        _behind(comparison.analysis),
    )
    return _numbers(
        table.rename(columns=names), comparison, said, names.get(comparison.view.reference)
    )


def _influence(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """ρ when one model, or every model of one architecture, is left out."""
    analysis = comparison.analysis
    table = analysis.agreement.dropna(subset=["loo_rho_min"])
    if table.empty:
        return HTML.note("To leave one model out takes at least four that are ranked.")
    left = analysis.backbones.pivot(index="metric", columns="left_out", values="rho")
    axis = _tight(table["loo_rho_min"].min(), table["loo_rho_max"].max())
    rows = []
    for _, row in table.iterrows():
        mark = Mark(value=row["rho"], low=row["loo_rho_min"], high=row["loo_rho_max"])
        without = [number(left.loc[row["metric"]][name], 2) for name in left] if len(left) else []
        ends = f"{number(row['loo_rho_min'], 2)} to {number(row['loo_rho_max'], 2)}"
        rows.append(
            [
                row["title"],
                (line([mark], axis), number(row["rho"], 2)),
                ends,
                str(row["loo_model_min"]),
                *without,
            ]
        )
    heads = ["Metric", _axis_words(axis), "one left out", "least without"]
    heads += [f"without {name}" for name in left]
    return HTML.numbers(without_one(_first_set(analysis, table)), heads, rows)


def without_one(row: pd.Series) -> str:
    """Return a sentence on the ranking by a metric when one model is left out.

    Args:
        row: Of the table of agreement, of a metric that has a range there.
    """
    low, high = (number(row[f"loo_rho_{end}"], 2) for end in ("min", "max"))
    hangs_on = reason(row["loo_undefined"])
    if hangs_on is not None:
        return (
            f"Without {hangs_on} there is no ranking to compare {row['title']} with, since all "
            f"other models have one value; without another one ρ is {low} to {high}."
        )
    told = f"Leave out any one model, and ρ of {row['title']} stays between {low} and {high}"
    if row["loo_rho_min"] < row["rho"] - _SLACK:
        return f"{told}; it is least without {row['loo_model_min']}."
    return f"{told}: no model carries it."


def _first_set(analysis: Analysis, table: pd.DataFrame) -> pd.Series:
    """The row of the candidate that agrees best; of another only where there is no candidate."""
    own = analysis.of_candidates(table)
    return (table if own.empty else own).iloc[0]


def _behind(analysis: Analysis) -> frozenset[str]:
    """Names of the metrics that lead nothing, against any reference."""
    leading = analysis.agreement["metric"].isin(analysis.candidates["metric"])
    names = analysis.agreement["metric"][~leading]
    return frozenset(str(name).partition("@")[0] for name in names)


def _differences(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The chosen metric against each other one: on these models, and on models of their kind."""
    analysis, spec = comparison.analysis, comparison.spec(asked.metric)
    if spec is None:
        return HTML.note("No metric has scores yet.")
    return _on_these(analysis, spec) + _on_others(analysis, spec)


def _against(table: pd.DataFrame, spec: MetricSpec) -> Iterator[tuple[pd.Series, str, int]]:
    """Yield the rows of pairs with `spec`, the other metric's title, and 1, or -1 if it is b."""
    for _, row in table.iterrows():
        if spec.name in (row["metric_a"], row["metric_b"]):
            first = row["metric_a"] == spec.name
            yield row, str(row["title_b" if first else "title_a"]), 1 if first else -1


def _on_these(analysis: Analysis, spec: MetricSpec) -> str:
    own = list(_against(analysis.leads, spec))
    rows = [
        [
            title,
            reason(row["undefined"]) or number(sign * row["difference"], 2),
            *(p_value(row[name]) for name in ("p", "p_holm", "p_models")),
        ]
        for row, title, sign in own
    ]
    sure = sum(row["p_holm"] < LEVEL for row, *_ in own)
    others = counted(len(own), "other metric")
    said = (
        f"On these models {spec.title} differs from {sure} of {others} in how it orders pairs of "
        "them (swaps of scores, original by original; p after Holm below 0.05)."
    )
    heads = ["difference of soft pairwise accuracy", "p", "p after Holm", "p over models"]
    return HTML.numbers(said, [f"{spec.title} against", *heads], rows)


def _on_others(analysis: Analysis, spec: MetricSpec) -> str:
    own, rows = list(_against(analysis.differences, spec)), []
    for row, title, sign in own:
        ends = sorted([sign * row["low"], sign * row["high"]])
        why = reason(row["undefined"]) or reason(row["interval_undefined"])
        rows.append(
            [
                *(title, number(sign * row["difference"], 2), why or interval(ends[0], ends[1])),
                *(p_value(row["p"]), p_value(row["p_holm"])),
            ]
        )
    sure = sum(row["p_holm"] < LEVEL for row, *_ in own)
    others = counted(len(own), "other metric")
    said = (
        f"On other models of this kind {spec.title} differs from {sure} of {others} (ρ over "
        "models; p after Holm below 0.05)."
    )
    heads = [f"{spec.title} against", "difference of ρ", "95%", "p", "p after Holm"]
    return HTML.numbers(said, heads, rows)


def _images(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """Return HTML of how well metrics tell single pictures apart, by AUC."""
    table = comparison.analysis.auc
    scopes = scopes_by(scale_differs(table))
    by = table[table["scope"] == scopes[0]].sort_values("auc", ascending=False)
    if by["auc"].isna().all():
        why = [reason(why) for why in table["undefined"] if reason(why)]
        return HTML.note(why[0] if why else "No metric gives a value to a single picture.")
    by_scope = table.pivot(index="metric", columns="scope", values="auc")
    axis = (0.0, 1.0) if (by[["auc", "low"]] < 0.5).any(axis=None) else (0.5, 1.0)
    rows = [
        [
            row["title"],
            (line([Mark(value=row["auc"], low=row["low"], high=row["high"])], axis), ""),
            *(number(by_scope.loc[row["metric"]][scope], 2) for scope in scopes),
        ]
        for _, row in by.iterrows()
    ]
    best = _first_set(comparison.analysis, by)
    said = (
        f"Of two pictures{' of one original' if scopes[0] == WITHIN else ''}, one recognised and "
        f"one not, {best['title']} ranks the recognised one higher in {best['auc']:.0%} of pairs; "
        f"a coin does in 50%. {scale_note(scale_differs(table))}"
    )
    return HTML.numbers(said.strip(), ["Metric", _axis_words(axis, "AUC"), *scopes], rows)


def _matrix(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """Return HTML of the matrix of agreement between the rankings of metrics."""
    matrix = comparison.analysis.matrix
    values = matrix.to_numpy()
    shades = np.nan_to_num(np.clip((values - 0.5) / 0.5, 0, 1) * 100).round().astype(int)
    cells = [
        [(number(value, 2), int(shade)) for value, shade in zip(*row, strict=True)]
        for row in zip(values, shades, strict=True)
    ]
    lines = list(zip(matrix.index, cells, strict=True))
    return HTML.matrix(list(matrix.columns), lines)


def _several(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The paper's Table 1 of the chosen studies, each under the rule its protocol fixed."""
    studies = studies_of(context)
    known = [study.id for study in studies]
    wanted = [one for one in asked.several.split() if one in known] or [comparison.study.id]
    view = ComparisonView(study="", rule="", reference=comparison.view.reference)
    found = [opened(context, replace(view, study=study)) for study in wanted]
    bare = [one.study.name for one in found if not one.analysis.specs]
    ranked = [one.analysis for one in found if one.analysis.specs]
    table = html(tables.table1(ranked)) if ranked else ""
    options = [(study.id, study.label, study.id in wanted) for study in studies]
    return HTML.several(asked, options, table, bare, comparison.study.id)


_VIEWS: dict[str, tuple[str, Callable[[ScienceContext, Comparison, Asked], str]]] = {
    "rules": ("People's rule", _rules),
    "reference": ("Reference image", _reference),
    "influence": ("One left out", _influence),
    "differences": ("Metric against metric", _differences),
    "images": ("Single pictures", _images),
    "matrix": ("Alike metrics", _matrix),
    "several": ("Several studies", _several),
}


def _numbers(table: pd.DataFrame, comparison: Comparison, said: str, marked: str | None) -> str:
    """A column a choice, a row a metric: a mark and its number."""
    titles = _titles(comparison)
    axis = axis_of(table.to_numpy().ravel().tolist())
    rows: list[list[str | tuple[str, str]]] = []
    for name, *values in table.itertuples():
        drawn = [(line([Mark(value=float(rho))], axis), number(float(rho), 2)) for rho in values]
        rows.append([titles.get(str(name), str(name)), *drawn])
    columns = [str(column) for column in table]
    at = columns.index(marked) + 1 if marked in columns else None
    return HTML.numbers(said, ["ρ of each metric", *columns], rows, at)


def same_best(
    columns: dict[str, pd.Series], titles: dict[str, str], what: str, behind: Collection[str] = ()
) -> str:
    """Return whether the same metric agrees best in every column, in a sentence.

    Args:
        columns: Ρ of each metric, by its name, under each choice.
        titles: Of metrics.
        what: Is chosen.
        behind: Names, without the reference, of those that lead nothing.
    """
    best: dict[str, list[str]] = {}
    for name, rho in columns.items():
        ranked = rho[[str(one).partition("@")[0] not in behind for one in rho.index]].dropna()
        leading = ranked.index[ranked >= ranked.max() - _SLACK]
        best[name] = [titles.get(str(metric), str(metric)) for metric in leading]
    known = {name: titles for name, titles in best.items() if titles}
    if not known:
        return "No metric can be ranked yet."
    first, *others = known.values()
    always = [title for title in first if all(title in other for other in others)]
    if always:
        agree = "agrees" if len(always) == 1 else "agree"
        said = f"Whichever {what} is chosen, {listed(always)} {agree} best."
    else:
        told = "; ".join(f"{name}: {listed(titles)}" for name, titles in known.items())
        said = f"The best metric depends on the {what}. {told}."
    unranked = [name for name in best if name not in known]
    return f"{said} Nothing can be ranked by {listed(unranked)}." if unranked else said


def _titles(comparison: Comparison) -> dict[str, str]:
    return {spec.name: spec.title for spec in comparison.analysis.specs}


def _tight(low: float, high: float) -> tuple[float, float]:
    """A range around both in steps of a tenth."""
    return math.floor(10 * low) / 10, math.ceil(10 * high) / 10


def _axis_words(axis: tuple[float, float], name: str = "ρ") -> str:
    return f"{name}, {axis[0]:g} to {axis[1]:g}".replace("-", "−")


TITLE = "Compare"
_SCRIPT = files_of("semsim.ui") / "static/compare.js"
_PANELS: dict[str, Callable[[ScienceContext, Comparison, Asked], str]] = {
    "answer": compare_tabs.answer,
    "disagreements": compare_tabs.disagreements,
    "metric": compare_tabs.one_metric,
    "solid": solid,
    "files": compare_tabs.files,
}
# What is asked for alone, of a comparison that is on the page already.
_PARTS: dict[str, Callable[[ScienceContext, Comparison, Asked], str]] = {
    "side": compare_tabs.side,
    "grid": compare_tabs.grid,
    "pictures": compare_tabs.pictures,
    "pair": compare_tabs.pair,
    "made": compare_tabs.made,
}


def router(context: ScienceContext) -> APIRouter:
    """The page, its parts, its script, and what it lets run."""
    routes = APIRouter(include_in_schema=False)

    def framed(request: Request) -> Response:
        first = "" if context.chosen(request) else _first(context, request)
        if first:
            return RedirectResponse("?" + urlencode({**request.query_params, "study": first}))
        drawn = HTML.page(body(context, _of_request(context, request)))
        return HTMLResponse(context.framed(TITLE, drawn))

    def part(request: Request, name: str) -> HTMLResponse:
        return HTMLResponse(_part(context, _of_request(context, request), name))

    @said
    def act(request: Request, name: str, job: str = "", weights: str = "") -> HTMLResponse:
        return HTMLResponse(_done(context, _of_request(context, request), name, job, weights))

    def script() -> FileResponse:
        return FileResponse(_SCRIPT, headers={"Cache-Control": "no-cache"})

    routes.get(PAGE)(framed)
    routes.get(PAGE + "/compare.js")(script)
    routes.get(PAGE + "/part/{name}")(part)
    routes.post(PAGE + "/act/{name}", response_model=None)(act)
    return routes


def body(context: ScienceContext, asked: Asked) -> str:
    """Return everything below the heading, from the present votes and scores.

    Starts the job that scores the study where scores are missing and no job has tried yet.
    """
    study = find_study(context, asked.study)
    if study is None:
        return HTML.no_study()
    try:
        comparison, asked, why = _possible(context, study.id, asked)
        job = scoring_job(context, comparison)
    except SemsimError as error:
        return HTML.trouble(str(error))
    status = why + compare_view.scoring(job)
    if not comparison.n_votes and not comparison.has_ranking:
        return HTML.no_votes(comparison.study.name, status)
    shown, asked = _answered(context, comparison, asked)
    if not shown.analysis.specs:
        return compare_view.head(comparison) + compare_view.no_scores(comparison, job)
    names = (REFERENCES[one.view.reference] for one in (comparison, shown))
    old = "" if shown is comparison else HTML.old_answer(*names)
    drawn = panel(context, shown, asked)
    return compare_view.head(comparison) + status + old + HTML.panel_place(drawn)


def panel(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The tabs, and what the chosen one shows."""
    tab = asked.tab if asked.tab in TABS else "answer"
    return HTML.tabs(asked, tab, TABS.items()) + _PANELS[tab](context, comparison, asked)


def _possible(
    context: ScienceContext, study_id: str, asked: Asked
) -> tuple[Comparison, Asked, str]:
    """Return the comparison asked for, or that by the clean original with the reason for it."""
    found = opened(context, asked.view(study_id))
    if found.view.reference == USUAL_REFERENCE or found.knows_attacked:
        return found, asked, ""
    asked = replace(asked, reference=USUAL_REFERENCE)
    return opened(context, asked.view(study_id)), asked, compare_view.not_recorded()


def _answered(
    context: ScienceContext, comparison: Comparison, asked: Asked
) -> tuple[Comparison, Asked]:
    """The comparison; until it is scored against its reference, the one by the clean original."""
    if comparison.analysis.specs or comparison.view.reference == USUAL_REFERENCE:
        return comparison, asked
    clean = held(context, replace(comparison.view, reference=USUAL_REFERENCE))
    found = clean if clean.analysis.specs else comparison
    return found, replace(asked, reference=found.view.reference)


def _first(context: ScienceContext, request: Request) -> str:
    """Return the id of the import that the page opens with where no study is chosen; else ""."""
    study = None if request.query_params.get("study") else find_study(context, None)
    return study.id if study is not None and is_import(study.id) else ""


def _of_request(context: ScienceContext, request: Request) -> Asked:
    asked = asked_in(request.query_params)
    return asked if asked.study else replace(asked, study=context.in_hand(request))


def _part(context: ScienceContext, asked: Asked, name: str) -> str:
    if name == "body":
        return body(context, asked)
    study = find_study(context, asked.study)
    if study is None:
        return HTML.no_study()
    if name == "scoring":
        return compare_view.scoring(newest_scoring(context, study.id))
    if name == "weights":
        return compare_view.weights(context, missing_weights(context))
    if name == "people":
        return compare_tabs.no_pictures(context, asked)
    try:
        comparison, asked = _held(context, study.id, asked)
        if name in _PARTS:
            return _PARTS[name](context, comparison, asked)
        return panel(context, comparison, asked)
    except SemsimError as error:
        return HTML.trouble(str(error))


def _held(context: ScienceContext, study: str, asked: Asked) -> tuple[Comparison, Asked]:
    """Return the comparison that the page shows of a study, and the choices behind it."""
    return _answered(context, held(context, asked.view(study)), asked)


def _done(context: ScienceContext, asked: Asked, name: str, job_id: str, weights: str) -> str:
    """Start, stop or resume the work called `name`, and return the HTML of its state."""
    if name == "weights":
        start_download(context, weights)
        return compare_view.weights(context, missing_weights(context))
    if name == "people" and (source := source_of(asked.study)):
        start_people(context, source)
        return compare_tabs.no_pictures(context, asked)
    if name in ("report", "everything"):
        comparison, asked = _held(context, asked.study, asked)
        make_files(context, comparison, name)
        return compare_tabs.made(context, comparison, asked)
    job = jobs.open_job(context.data / "jobs", job_id)
    (jobs.request_stop if name == "stop" else jobs.resume)(job)
    return compare_view.scoring(job)
