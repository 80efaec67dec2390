"""Agreement of a trained SemSim with people, beside other metrics on exactly the same images."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from semsim.base.columns import AS_NAMED, IMAGE_KEY, ORIGINAL_ANSWER, SCORE_COLUMNS
from semsim.base.errors import DataError
from semsim.base.stats.analysis import Analysis, AnalysisSettings, analyse
from semsim.base.stats.evidence import GIVEN, Evidence, gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.roc import auc_differences, auc_table, scale_differs, scale_note, scopes_by
from semsim.base.stats.verdict import human_score
from semsim.base.table_files import check_columns
from semsim.base.words import counted
from semsim.learning.baselines import (
    ABSENT,
    NO_AUC,
    SHUFFLED,
    best_block,
    controls_of,
    difference_rows,
    distribution,
    shuffled_row,
)
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.metrics.provenance import MOVED, read_training
from semsim.metrics.scoring import ScoreBook, pair_sets_of_labels, score_sets

BASELINES = (
    *("mse", "psnr", "ssim", "lpips-alex", "lpips-squeeze"),
    *("fd:recogniser", "recogniser"),
)
HUMAN = "human"  # the "metric" that is one annotator against the others
_VERDICT = "verdict of the labels"  # the human score that is their column `recognisable`

Sample = Literal["held-out", "in-sample"]


@dataclass(frozen=True, kw_only=True)
class Judging:
    """With what a SemSim is compared, and where scores and weights are.

    Attributes:
        metrics: Names of the others.
        resources: Their weights and the device.
        scores: Folder in which scores are kept.
        analysis: Resamples and their seed.
    """

    resources: Resources
    scores: Path
    metrics: tuple[str, ...] = BASELINES
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)


def evaluate(
    checkpoint: Path,
    labels: pd.DataFrame,
    votes: pd.DataFrame | None,
    judging: Judging,
    *,
    sample: Sample,
    shuffles: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Judge the SemSim at `checkpoint`, its controls and the other metrics by `labels`.

    The verdict is what a SemSim learns, `recognisable` of the labels, by whatever rule they have
    it. The controls are what `controls_of` finds: the network with its initial weights, and the
    baseline that is calibrated to the same votes. Of the blocks of that baseline, each alone and
    without a fit, the best on these images stands beside them.

    Args:
        labels: See `divide`.
        votes: Of these and perhaps of other reconstructions, which are left out; of them is what
            people reach. None where there are none, and then there is no such ceiling.
        sample: "held-out", or "in-sample" for what the SemSim was trained on; written into the
            result, so that no reader takes one for the other.
        shuffles: What the same training reaches on these images from shuffled votes, of
            `train_shuffles`; none where it was not run.

    Returns:
        What `table_rows` and a model card read, ready for JSON: numbers that are undefined are
        None, with the reason.
    """
    own = find_metric(f"semsim:{checkpoint.stem}").spec
    found, lacking = controls_of(checkpoint)
    controls = {f"semsim:{path.stem}": control for control, path in found.items()}
    elsewhere = replace(judging.resources, checkpoints=checkpoint.parent)
    sets = pair_sets_of_labels(labels)
    mine = score_sets(sets, [own.name, *controls], elsewhere, judging.scores)
    theirs = score_sets(sets, judging.metrics, judging.resources, judging.scores)
    others = [find_metric(name).spec for name in (*controls, *judging.metrics)]
    training = read_training(checkpoint)
    from semsim.learning.calibration import block_scores  # brings torch, which no page needs

    blocks, alone = block_scores(labels, training.settings["input_size"])
    known = [book.scores for book in (mine, theirs) if not book.scores.empty]
    scores = pd.concat([*known, blocks])
    told = None if votes is None else _as_counted(votes)
    evidence = evidence_of(_with_verdict(labels), told, scores, [own, *others, *alone])
    settings = replace(judging.analysis, headline=_VERDICT)
    analysis = analyse(evidence, [own, *others], settings)
    scored = [spec for spec in analysis.specs if spec.name != own.name]
    differing = scale_differs(analysis.auc)
    scope = scopes_by(differing)[0]
    apart = auc_differences(own, [*scored, *alone], evidence, settings.headline, scope)
    against, block = best_block(difference_rows(apart, controls), alone)
    rows = metric_rows(analysis)
    if block is not None:
        rows[1 + len(controls) : 1 + len(controls)] = metric_rows(
            analyse(evidence, [block], settings)
        )
    shuffled = distribution(shuffles, rows[0]["auc"][scope]["auc"], scope)
    if shuffled is not None:
        rows.insert(1 + len(controls), shuffled_row(shuffled, rows[0]))
    elif sample == "held-out":
        lacking |= {SHUFFLED: _why_no_shuffles(shuffles)}
    return {
        "sample": sample,
        "simulated": evidence.simulated,
        **_sizes(analysis),
        "scale_differs": differing,
        "metrics": [*rows, _human_row(analysis)],
        "against": against,
        "shuffled": shuffled,
        "absent": lacking,
        "moved": training.results[MOVED] != 0,
        "left_out": _left_out([mine, theirs]),
        "notes": list(dict.fromkeys((*evidence.notes, *analysis.notes))),
    }


def agreement_of(
    checkpoint: Path, labels: pd.DataFrame, votes: pd.DataFrame | None, judging: Judging
) -> dict[str, Any]:
    """The row of `metric_rows` of the SemSim at `checkpoint` alone, as `evaluate` has it.

    For what is one of many: its scores are kept beside the checkpoint, its intervals are coarse.
    """
    own = find_metric(f"semsim:{checkpoint.stem}").spec
    place = replace(judging.resources, checkpoints=checkpoint.parent)
    sets = pair_sets_of_labels(labels)
    scores = score_sets(sets, [own.name], place, checkpoint.parent / "scores").scores
    told = None if votes is None else _as_counted(votes)
    evidence = evidence_of(_with_verdict(labels), told, scores, [own])
    settings = replace(judging.analysis, headline=_VERDICT, bootstraps=2, permutations=2)
    return metric_rows(analyse(evidence, [own], settings))[0]


def _why_no_shuffles(shuffles: Sequence[Mapping[str, Any]]) -> str:
    failed = [row["why"] for row in shuffles if "why" in row]
    if failed:
        return f"{counted(len(failed), 'shuffle')} failed. {failed[0]}".removesuffix(".")
    return NO_AUC if shuffles else ABSENT[SHUFFLED]


def _with_verdict(labels: pd.DataFrame) -> pd.DataFrame:
    verdict = labels["recognisable"].astype("boolean").astype("Float64")
    return labels.assign(**{f"{GIVEN}{_VERDICT}": verdict})


def _as_counted(votes: pd.DataFrame) -> pd.DataFrame:
    """Votes that recognise where their study says so: by names of originals, if that is its rule.

    Votes on what then has no name are left out.
    """
    if not {"headline", ORIGINAL_ANSWER} <= set(votes.columns):
        return votes
    by_name = votes["headline"] == AS_NAMED
    answer, name = (votes[column].astype(object) for column in ("answer", ORIGINAL_ANSWER))
    said = votes["recognised"].where(~by_name, answer == name)
    return votes.assign(recognised=said)[~by_name | name.notna()]


def evidence_of(
    labels: pd.DataFrame,
    votes: pd.DataFrame | None,
    scores: pd.DataFrame,
    specs: Sequence[MetricSpec],
) -> Evidence:
    """The evidence of the reconstructions in `labels` alone; without votes, of their majority."""
    if votes is None or votes.empty:
        nobody = pd.DataFrame(columns=[*IMAGE_KEY, "annotator", "answer", "recognised"])
        labels, votes = _with_verdict(labels), nobody
    else:
        check_columns(votes, IMAGE_KEY, "The table of votes", DataError)
        wanted = pd.MultiIndex.from_frame(labels[IMAGE_KEY].astype(str))
        given = pd.MultiIndex.from_frame(votes[IMAGE_KEY].astype(str))
        votes = votes[given.isin(wanted)]
    return gather(votes, scores, specs, labels=labels, name="test")


def check_judgeable(labels: pd.DataFrame, votes: pd.DataFrame | None) -> None:
    """Raise `DataError` where `evaluate` will, whatever is trained: studies that do not fit."""
    nothing = pd.DataFrame(columns=list(SCORE_COLUMNS))
    try:
        evidence_of(labels, votes, nothing, [])
    except DataError as error:
        raise DataError(f"These choices do not go together. {error}") from error


def semsim_row(evaluation: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of the SemSim that was judged."""
    return next(row for row in evaluation["metrics"] if row["metric"].startswith("semsim:"))


def scope_of(*evaluations: Mapping[str, Any]) -> str:
    """Return the scope of AUC that all of these go by, as `scopes_by` has it."""
    return scopes_by([title for one in evaluations for title in one["scale_differs"]])[0]


def judged_of(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what was held out of each training of a table, without those that failed."""
    return [row["held_out"] for row in rows if "why" not in row]


def scale_notes(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return why such a table goes by the AUC within originals, nothing where it does not."""
    titles = (title for one in judged_of(rows) for title in one["scale_differs"])
    return list(filter(None, [scale_note(list(dict.fromkeys(titles)))]))


def auc_of(evaluation: Mapping[str, Any], metric: str, scope: str = "") -> float | None:
    """Return the AUC of a metric by name, "semsim" for the SemSim; None where it has none.

    Args:
        scope: "" for the one that the evaluation goes by.
    """
    rows = [r for r in evaluation["metrics"] if r["metric"] == metric]
    row = semsim_row(evaluation) if metric == "semsim" else (rows[0] if rows else None)
    if row is None or not row["auc"]:
        return None
    found: float | None = row["auc"][scope or scope_of(evaluation)]["auc"]
    return found


def _sizes(analysis: Analysis) -> dict[str, Any]:
    images, models = analysis.evidence.images, analysis.models
    return {
        "n_images": len(images),
        "n_decided": int(models["n_decided"].sum()),
        "n_originals": len(images[["dataset", "image_id"]].drop_duplicates()),
        "n_models": len(models),
        "n_annotators": len(analysis.evidence.annotators),
    }


def metric_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """One row a metric: ρ and τ over models with intervals, AUC over images with intervals."""
    by_name = {row["metric"]: row for row in analysis.agreement.to_dict("records")}
    rows = []
    for spec in analysis.specs:
        found = by_name[spec.name]
        own = analysis.auc[analysis.auc["metric"] == spec.name]
        rows.append(
            {
                **{"metric": spec.name, "title": spec.title, "n_models": int(found["n"])},
                **{"rho": _number(found["rho"]), "tau": _number(found["tau"])},
                "rho_low": _number(found["rho_bw_low"]),
                "rho_high": _number(found["rho_bw_high"]),
                "tau_low": _number(found["tau_score_low"]),
                "tau_high": _number(found["tau_score_high"]),
                "undefined": _reason(found["undefined"]),
                "auc": _auc_of_scopes(own),
            }
        )
    return rows


def _auc_of_scopes(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {
        row["scope"]: {
            **{key: _number(row[key]) for key in ("auc", "low", "high")},
            **{key: int(row[key]) for key in ("n_positive", "n_negative", "n_groups")},
            "undefined": _reason(row["undefined"]),
        }
        for row in rows.to_dict("records")
    }


def _human_row(analysis: Analysis) -> dict[str, Any]:
    """Return the agreement that people reach on these images.

    It is of rankings by some annotators with rankings by the others, and, image by image, of one
    annotator with the majority of the others.
    """
    ceiling = analysis.ceiling
    return {
        **{"metric": HUMAN, "title": "People (ceiling)", "n_models": len(analysis.models)},
        **{"rho": _number(ceiling.rho), "tau": _number(ceiling.tau)},
        **{"rho_low": _number(ceiling.rho_low), "rho_high": _number(ceiling.rho_high)},
        **{"tau_low": _number(ceiling.tau_low), "tau_high": _number(ceiling.tau_high)},
        "undefined": ceiling.undefined,
        "auc": human_auc(analysis.evidence),
    }


def human_auc(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """AUC of one annotator's answers for the majority of the others', mean over annotators.

    By scope, as of a metric; empty below three annotators. An answer is yes or no, which ties
    often, so a graded metric can lie above it. `low` and `high` are the means of the intervals;
    None where an annotator has an AUC and no interval.
    """
    if len(evidence.annotators) < 3:
        return {}
    layout = layout_of(evidence.images)
    tables = []
    for one in range(len(evidence.annotators)):
        alone = _of_annotators(evidence, [one])
        rest = [a for a in range(len(evidence.annotators)) if a != one]
        verdict = human_score(_of_annotators(evidence, rest), "mean-response")
        tables.append(auc_table([_ONE_PERSON], alone, verdict, layout))
    every = pd.concat(tables)
    means = every.groupby("scope", sort=False)[["auc", "low", "high"]].mean()
    bare = every["auc"].notna() & every["low"].isna()  # the others' intervals are not theirs
    means.loc[means.index.isin(every.loc[bare, "scope"]), ["low", "high"]] = np.nan
    sizes = every.groupby("scope", sort=False)[["n_positive", "n_negative", "n_groups"]].median()
    table = means.join(sizes).reset_index()
    why = "no images of both kinds"
    table["undefined"] = np.where(table["auc"].isna(), why, "")
    return _auc_of_scopes(table)


_ONE_PERSON = MetricSpec(
    name=HUMAN, title="One annotator", higher_means_more_leakage=True, per_image=True
)


def _of_annotators(evidence: Evidence, chosen: list[int]) -> Evidence:
    """The evidence of the annotators with these numbers, which they keep."""
    own = np.isin(np.arange(len(evidence.annotators)), chosen)
    answers = evidence.recognised.by(own)
    return replace(
        evidence,
        recognised=answers,
        none=evidence.none.by(own),
        votes_per_item=len(chosen),
        given={},
        scores={HUMAN: answers.means},  # of one annotator, who votes once on an image
        set_scores={},
        ratings=None,  # whether one says yes is what is judged
        as_named=None,
    )


def _left_out(books: Sequence[ScoreBook]) -> dict[str, str]:
    """Metrics that judged nothing, with the reason; one that refused a set only says so."""
    reasons = {name: why for book in books for name, why in book.unavailable.items()}
    for book in books:
        for (title, name), why in book.refused.items():
            reasons.setdefault(name, f"{title}: {why}")
    return reasons


def _number(value: float | None) -> float | None:
    """For JSON, which has no NaN and no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def _reason(value: Any) -> str | None:
    """A reason out of a table, which may hold NaN where there is none."""
    return value if isinstance(value, str) and value else None
