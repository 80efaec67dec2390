"""A SemSim's controls: initial weights, calibrated baseline and its best block, shuffled votes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.metric_spec import CALIBRATED, CONTROLS, START, MetricSpec, is_block
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.roc import POOLED, WITHIN, auc_differences, scale_differs, scopes_by
from semsim.base.words import counted
from semsim.learning.settings import control_path
from semsim.metrics.provenance import Provenance, read_training
from semsim.reporting.notation import interval, reason
from semsim.weights import sha256_of

SHUFFLED = "shuffled"  # their name among controls, and of their row among metrics
SURE = 0.05  # p up to which the votes are said to have taught something
_TIE = 1e-9
ALL = "all"
CHOICES = (ALL, START)
CLASSIC = ("mse", "psnr", "ssim")
WHAT = {
    START: "its initial weights (the same network, not trained on votes)",
    CALIBRATED: "the calibrated baseline (pixels and structure, weighed by the same votes)",
    SHUFFLED: "the same training on shuffled votes",
}
ABSENT = {
    START: "its initial weights were not kept",
    CALIBRATED: "it was not kept",
    SHUFFLED: "not run, since it takes much longer",
}
_TAKEAWAY = {
    START: "No evidence that its ranking comes from these votes.",
    CALIBRATED: "No evidence that training a network is worth more than weighing pixels.",
    SHUFFLED: "No evidence that the votes taught it anything.",
}
_OF_BLOCKS = "Nothing shows that the votes taught more than one fixed distance has."
NO_AUC = "there is no AUC to compare"
_LEARNED_NOTHING = (
    "It learned nothing: its ranking is that of its initial weights. More votes, or more "
    "originals, may change that."
)


def check_controls(controls: str) -> str:
    """`controls` itself; `SettingsError` where it is none of `CHOICES`."""
    if controls not in CHOICES:
        raise SettingsError(f"controls must be one of {', '.join(CHOICES)}; got {controls!r}.")
    return controls


def controls_of(checkpoint: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """The controls beside a checkpoint by name, and why the others are not there.

    Only what belongs to this very checkpoint counts: a start by its hash, the baseline by that of
    the start and by when it was made.
    """
    own = read_training(checkpoint)
    paths = {control: control_path(checkpoint, control) for control in CONTROLS}
    found = {control: path for control, path in paths.items() if _belongs(own, path, control)}
    return found, {control: ABSENT[control] for control in CONTROLS if control not in found}


def _belongs(own: Provenance, path: Path, control: str) -> bool:
    if not path.is_file():
        return False
    if control == START:
        return own.start == sha256_of(path)
    try:
        other = read_training(path)
    except WeightsError:
        return False
    kept = (other.control, other.start, other.created)
    return kept == (control, own.start, own.created)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Verdict of a test on a SemSim.

    Attributes:
        sentences: For people.
        lost: To what, in words; may be empty. None where it could be compared with nothing that
            counts, so that the outcome is unknown.
    """

    sentences: tuple[str, ...]
    lost: tuple[str, ...] | None


def verdict_of(judged: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a result of `evaluate`: on the best classic metric and each control.

    A SemSim loses to what tells the same images apart as well or better. Where it is ahead and the
    95% interval of the difference reaches 0 it has not beaten it, and is said to be ahead only.
    One that still has its initial weights has learned nothing, and nothing else is said of it.
    """
    rows = {row["metric"]: row for row in judged["against"] if row["difference"] is not None}
    counting = [row for name, row in rows.items() if name in CLASSIC or row["control"]]
    lost = tuple(row["title"] for row in counting if row["difference"] <= 0) if counting else None
    if not judged["moved"]:
        return Verdict(sentences=(_LEARNED_NOTHING,), lost=lost)
    sentences, auc = [], auc_words(scopes_by(judged["scale_differs"])[0])
    classic = [rows[name] for name in CLASSIC if name in rows]
    if classic:
        best = max(classic, key=lambda row: row["other_auc"])
        sentences.append(_of_classic(best, len(classic), judged))
    else:
        sentences.append("It could not be compared with MSE, PSNR or SSIM on these images.")
    for control in CONTROLS:
        row = next((r for name, r in rows.items() if r["control"] == control), None)
        why = judged["absent"].get(control, NO_AUC)
        sentences.append(_of_control(control, row) if row else _uncompared(control, why))
    sentences += [
        _beside(row, f"{row['title'][0].lower()}{row['title'][1:]}", _OF_BLOCKS)
        for name, row in rows.items()
        if is_block(name)
    ]
    sentences.append(_of_shuffles(judged, auc))
    return Verdict(sentences=tuple(sentences), lost=lost)


def _of_shuffles(judged: Mapping[str, Any], auc: str) -> str:
    """Return how many shuffles reach it, with the p of a permutation test."""
    found = judged["shuffled"]
    if found is None:
        return _uncompared(SHUFFLED, judged["absent"].get(SHUFFLED, NO_AUC))
    n, p, reach = found["n"], found["p"], found["reach"]
    least = ", the least that so many can show" if not reach and p > SURE else ""
    failed = f"; {found['failed']} more failed" if found["failed"] else ""
    spread = f"mean {found['mean']:.2f}, {found['low']:.2f} to {found['high']:.2f}"
    counts = f"{reach or 'none'} of {n} {'reaches' if reach < 2 else 'reach'} its {auc}"
    told = f"{counts} ({counted(n, 'shuffle')}, p = {p:.2g}{least}; {spread}{failed})."
    if p <= SURE:
        return f"It beats {WHAT[SHUFFLED]}: {told}"
    if least:
        return f"It is ahead of {WHAT[SHUFFLED]}, which chance could do: {told}"
    return f"It does not beat {WHAT[SHUFFLED]}: {told} {_TAKEAWAY[SHUFFLED]}"


def _of_classic(row: Mapping[str, Any], n: int, judged: Mapping[str, Any]) -> str:
    among = ", the best of MSE, PSNR and SSIM here," if n > 1 else ""
    kinds = ("held-out original", "held-out originals")
    if judged["sample"] != "held-out":
        kinds = ("original it learned from", "originals it learned from")
    said = beaten(row, row["title"] + among, f" on {counted(row['n_originals'], *kinds)}")
    return f"{said[0].upper()}{said[1:]}."


def _uncompared(control: str, why: str) -> str:
    return f"Not compared with {WHAT[control]}: {why}."


def _of_control(control: str, row: Mapping[str, Any]) -> str:
    return _beside(row, WHAT[control], _TAKEAWAY[control])


def _beside(row: Mapping[str, Any], what: str, takeaway: str) -> str:
    if surely(row):
        return f"It {beaten(row, what)}."
    return f"It does not beat {what}: {beaten(row, 'it')}. {takeaway}"


def best_block(
    rows: Sequence[Mapping[str, Any]], blocks: Sequence[MetricSpec]
) -> tuple[list[dict[str, Any]], MetricSpec | None]:
    """Return `rows`, of `difference_rows`, with the best of `blocks` alone, and that block.

    Its title names how many it was picked among. None where no block has an AUC.
    """
    kept = [dict(row) for row in rows if not is_block(row["metric"])]
    found = [row for row in rows if is_block(row["metric"]) and row["other_auc"] is not None]
    if not found:
        return kept, None
    best = max(found, key=lambda row: row["other_auc"])
    (spec,) = [one for one in blocks if one.name == best["metric"]]
    among = f"best of {len(found)} blocks, picked on these images, which flatters it"
    titled = replace(spec, title=f"{spec.title} ({among})")
    return [*kept, {**best, "title": titled.title}], titled


def distribution(
    rows: Sequence[Mapping[str, Any]], own: float | None, scope: str = POOLED
) -> dict[str, Any] | None:
    """Return what shuffles reach beside `own`, the training's AUC; ready for JSON.

    Args:
        rows: Of `train_shuffles`.
        scope: Of AUC, see `scopes_by`. p: of a permutation test, (1 + those that reach `own`) / (1
            + all). None where none of them, or the training, has an AUC.
    """
    judged = [row for row in rows if "why" not in row]
    aucs = [row["auc"][scope] for row in judged]
    if own is None or not aucs or None in aucs:
        return None
    reach = sum(auc >= own - _TIE for auc in aucs)
    return {
        **{"n": len(aucs), "failed": len(rows) - len(aucs), "reach": reach},
        "p": (1 + reach) / (1 + len(aucs)),
        **{"mean": float(np.mean(aucs)), "low": min(aucs), "high": max(aucs)},
        "each": [{key: row[key] for key in ("rho", "tau", "auc")} for row in judged],
    }


def shuffled_row(found: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """A `distribution` as a row among `metric_rows`: means, and lowest and highest as the ends.

    Args:
        like: The row of the training itself.
    """
    each = found["each"]
    numbers = {key: _spread([row[key] for row in each]) for key in ("rho", "tau")}
    return {
        "metric": SHUFFLED,
        "title": f"{counted(len(each), 'shuffle')} of the votes: mean [lowest, highest]",
        **{"n_models": like["n_models"], "undefined": like["undefined"]},
        **{key: ends[0] for key, ends in numbers.items()},
        **{f"{key}_low": ends[1] for key, ends in numbers.items()},
        **{f"{key}_high": ends[2] for key, ends in numbers.items()},
        "auc": {
            scope: {
                **own,
                **dict(zip(("auc", "low", "high"), _spread(_of(each, scope)), strict=True)),
            }
            for scope, own in like["auc"].items()
        },
    }


def _of(each: Sequence[Mapping[str, Any]], scope: str) -> list[float | None]:
    return [row["auc"].get(scope) for row in each]


def _spread(values: Sequence[float | None]) -> tuple[float | None, float | None, float | None]:
    """Mean, lowest and highest of those that are known."""
    known = [value for value in values if value is not None]
    return (float(np.mean(known)), min(known), max(known)) if known else (None, None, None)


def difference_rows(table: pd.DataFrame, controls: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of `auc_differences` ready for JSON, with None where a number is undefined.

    Args:
        controls: Names of metrics that are controls, to which of `CONTROLS`; "" in the others'
            rows.
    """
    numbers = ("auc", "other_auc", "difference", "low", "high")
    return [
        {
            **{name: row[name] for name in ("metric", "title", "scope")},
            "control": controls.get(row["metric"], ""),
            **{name: None if pd.isna(row[name]) else float(row[name]) for name in numbers},
            "n_originals": int(row["n_originals"]),
            **{name: reason(row[name]) for name in ("interval_undefined", "undefined")},
        }
        for row in table.to_dict("records")
    ]


def control_remarks(own: MetricSpec, analysis: Analysis, checkpoint: Path) -> list[str]:
    """Return what to say of a SemSim beside its controls on any images, by AUC.

    A start that was not kept, or has no scores yet, is said; the calibrated baseline has a row of
    its own. Shuffles are its card's, no single one stands here.
    """
    base, _, reference = own.name.partition("@")
    behind = f"@{reference}" if reference else ""
    names = {f"{base}.{control}{behind}": control for control in CONTROLS}
    scored = [spec for spec in analysis.specs if spec.name in names]
    scope = scopes_by(scale_differs(analysis.auc))[0]
    table = auc_differences(own, scored, analysis.evidence, analysis.settings.headline, scope)
    rows = {row["control"]: row for row in difference_rows(table, names)}
    absent = controls_of(checkpoint)[1]
    said = []
    for control in CONTROLS:
        row = rows.get(control)
        if row is not None and row["difference"] is not None:
            said.append(_of_control(control, row))
        elif control == START:
            lacks = NO_AUC if row else "it has no scores here yet"
            said.append(_uncompared(control, absent.get(control, lacks)))
    return said


def surely(row: Mapping[str, Any]) -> bool:
    """Return whether the interval of a difference lies above 0."""
    return row["low"] is not None and row["low"] > 0


def beaten(row: Mapping[str, Any], than: str, where: str = "") -> str:
    """Return a difference of AUC in words that claim no more than its interval supports."""
    d = row["difference"]
    if round(d, 2) == 0 and not surely(row):
        return f"no better than {than}{where}"
    amount = f"{abs(d):.2f}" if round(d, 2) else "less than 0.01"
    amount += f" in {auc_words(row['scope'])}"
    if row["low"] is None:
        amount += f" ({row['interval_undefined']})"
    else:
        low, high = row["low"], row["high"]
        amount += f" {interval(*((-high, -low) if d < 0 else (low, high)))}"
    amount += where
    if row["low"] is not None and (surely(row) or row["high"] < 0):
        return f"{'beats' if d > 0 else 'worse than'} {than} by {amount}"
    return f"{'ahead of' if d > 0 else 'behind'} {than} by {amount}, which chance could do"


def auc_words(scope: str) -> str:
    """Return what the AUC that a table goes by is called."""
    return "AUC within originals" if scope == WITHIN else "AUC"
