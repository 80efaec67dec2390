"""The studies of people that come with the product: numbers, no pictures.

<folder>/<name>/import.json, …   an import of people's shares, with scores and no pictures
<folder>/answer.json             the answer of the first one, for the start page
"""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.columns import ARCHITECTURE, MODEL_KEY
from semsim.base.errors import DataError
from semsim.base.metric_spec import semsims
from semsim.base.progress import Report, silent
from semsim.base.sets.imports import PATHS, Places, places_of, read_import
from semsim.base.stats.agreement import best_first
from semsim.base.stats.analysis import Analysis, AnalysisSettings
from semsim.base.stats.evidence import GIVEN, GIVEN_ERROR, gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.measures import PEOPLE, People, metric_measure, people_measure
from semsim.base.stats.resampling import resample
from semsim.base.storage.records import PEOPLE_ANSWER, write_record
from semsim.comparison.compared import Compared, Scored, compared
from semsim.comparison.study_tables import imported_tables
from semsim.importers.human_tables import labels_found
from semsim.importers.import_folder import carry_out
from semsim.importers.import_plan import HumanTables, ImportPlan
from semsim.metrics import Resources, all_metrics
from semsim.metrics.scoring import ScoreBook, pair_sets_of_labels, score_sets, specs_of
from semsim.reporting.answer import answer_of

ANSWER = "answer.json"


def scored(
    labels: pd.DataFrame,
    resources: Resources,
    scores: Path,
    report: Report = silent,
    also: Path | None = None,
) -> ScoreBook:
    """Return the scores of every metric on the pictures of an import.

    Args:
        labels: Of the import, with paths of pictures.
        resources: Weights and the device; a metric that lacks a file is left out.
        scores: Folder where scores of pictures are kept.
        report: Told how many pictures are scored.
        also: Folder of further SemSims; None for none.
    """
    sets = pair_sets_of_labels(labels)
    book = score_sets(sets, list(all_metrics(resources).values()), resources, scores, report)
    if also is None:
        return book
    more = [f"semsim:{name}" for name in semsims(also)]
    return book.beside(score_sets(sets, more, replace(resources, checkpoints=also), scores, report))


def with_scores(
    plan: ImportPlan, resources: Resources, scores: Path, report: Report = silent
) -> ImportPlan:
    """Return the plan of an import with every metric's scores, as of `scored`, for its pictures."""
    with tempfile.TemporaryDirectory() as made:
        places = places_of(plan.name, Path(made))
        carry_out(plan, places)
        labels = read_import(places.tables).labels
        book = scored(labels, resources, scores, report)
    bare = labels.drop(columns=[one for one in PATHS if one in labels])
    tables = replace(_tables(plan), labels=bare, scores=book.scores)
    return replace(plan, found=replace(plan.found, sets=(), tables=tables))


def of_models(plan: ImportPlan, rule: str) -> ImportPlan:
    """Return the plan of an import with shares and mean scores of models in place of votes.

    Args:
        plan: With votes, and scores of pictures.
        rule: The human score whose mean is a model's share, of `semsim.base.stats.verdict.RULES`.
    """
    tables = _tables(plan)
    given = pd.DataFrame(tables.scores)
    specs = specs_of(given)
    evidence = gather(tables.votes, given, specs, labels=tables.labels)
    layout = layout_of(evidence.images)
    drawn = resample(layout, 1, 1, seed=0)
    said = People.of(evidence, rule, layout)
    people = people_measure(said, layout, drawn)
    key = layout.models[MODEL_KEY].assign(image_id="all")
    rows = key.assign(class_name="")
    rows[GIVEN + PEOPLE], rows[GIVEN_ERROR + PEOPLE] = people.means, people.errors
    rows[ARCHITECTURE] = layout.models["backbone"]
    scores = [
        key.assign(
            metric=spec.name,
            value=metric_measure(spec, evidence, said.scores, layout, drawn).means,
        )
        for spec in specs
    ]
    found = labels_found(rows, pd.concat(scores), name=plan.name, headline=PEOPLE)
    return replace(plan, found=replace(found, notes=(*plan.found.notes, *found.notes)))


def write_built_in(
    plans: Sequence[tuple[str, ImportPlan]], folder: Path, checkpoints: Path
) -> Compared:
    """Write the studies and the answer of the first, and return its comparison.

    Args:
        plans: Of each study its folder's name and its import, whose name is its title.
        folder: Where they go; must not hold them yet.
        checkpoints: Where SemSims state what they learned from.
    """
    for name, plan in plans:
        carry_out(plan, Places(tables=folder / name, sets=folder / name, pictures=folder / name))
    first, plan = plans[0]
    study = imported_tables(folder / first)
    scores = pd.DataFrame(study.scores)
    table = Scored(table=scores, specs=specs_of(scores), weights={})
    found = compared(study, table, AnalysisSettings(headline=str(study.headline)), checkpoints)
    cite = " ".join(one for one in plan.found.notes if one.startswith("Cite "))
    told = {"title": plan.name, "study": first, "cite": cite, **answer_told(found.analysis)}
    write_record(folder / ANSWER, PEOPLE_ANSWER, told)
    return found


def answer_told(analysis: Analysis) -> dict[str, Any]:
    """Return the answer of a comparison ready for JSON: sentences, a row a metric, the ceiling."""
    rows = best_first(analysis.candidates).dropna(subset=["rho"])
    ends = ["title", "rho", "rho_bw_low", "rho_bw_high"]
    ceiling, answer = analysis.ceiling, answer_of(analysis)
    return {
        "lead": answer.text,
        "models": len(analysis.models),
        "people": ceiling.n_annotators,
        "rows": [
            dict(zip(("title", "rho", "low", "high"), one, strict=True))
            for one in rows[ends].itertuples(index=False, name=None)
        ],
        "ceiling": {"rho": ceiling.rho, "low": ceiling.rho_low, "high": ceiling.rho_high},
    }


def _tables(plan: ImportPlan) -> HumanTables:
    if plan.found.tables is None:
        raise DataError(f"{plan.name} holds no votes and no shares.")
    return plan.found.tables
