"""The model card of a SemSim: where it comes from, what it was judged by, what it is not for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from semsim.base.columns import TARGET_COLUMNS
from semsim.base.errors import WeightsError
from semsim.base.stats.roc import scale_note, scopes_by
from semsim.base.storage.atomic import write_text
from semsim.base.storage.places import files_of
from semsim.base.storage.records import read_record, write_record
from semsim.base.words import all_in_markdown, counted, in_markdown
from semsim.learning.baselines import WHAT, verdict_of
from semsim.learning.settings import IMAGENET, SCRATCH, acting
from semsim.metrics.provenance import N_PAIRS, WEIGHT_OF
from semsim.reporting.notation import target_text
from semsim.weights import sha256_of

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

FORMAT = "semsim-card/1"
NOT_STATED = "not stated"
_TEMPLATE = files_of("semsim.learning") / "card.md.jinja"
_NETWORKS = {SCRATCH: "an untrained {} of seed {}", IMAGENET: "{} with the weights of ImageNet"}
_FROM_FILE = "{} with weights of a file"
_HUB_METRICS = ("spearmanr", "kendalltau", "roc_auc", "roc_auc", "roc_auc")  # of `heads`
_HUB_LICENCES = (
    *("apache-2.0", "mit", "bsd-3-clause", "gpl-3.0", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0"),
    *("cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odbl"),
)


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """Facts of a card, and the evaluations beside them.

    Attributes:
        outcome: As `learn` returns it.
        split: How the test was held out, with the ids of its originals.
        data: What the labels are of, see `data_facts`.
        licence: Of the data and so of the checkpoint, in the words of who trained it.
    """

    outcome: Mapping[str, Any]
    split: Mapping[str, Any]
    data: Mapping[str, Any]
    held_out: Mapping[str, Any]
    in_sample: Mapping[str, Any]
    licence: str = NOT_STATED


def card_paths(checkpoint: Path) -> tuple[Path, Path]:
    """Return the paths of the card of `checkpoint`: Markdown and JSON beside it."""
    stem = checkpoint.with_suffix("")
    return Path(f"{stem}.card.md"), Path(f"{stem}.card.json")


def data_facts(labels: pd.DataFrame, votes: pd.DataFrame | None) -> dict[str, Any]:
    """Describe the labels and votes by names and counts, without people and paths.

    targets: how good each model was at its own task, in words, where labels have `TARGET_COLUMNS`.
    """
    names = {key: sorted(set(labels[key].astype(str))) for key in ("dataset", "attack", "model")}
    return {
        **{f"{key}s": values for key, values in names.items()},
        "targets": {
            str(row["model"]): target_text(row)
            for _, row in labels.drop_duplicates("model").iterrows()
            if TARGET_COLUMNS[0] in row and pd.notna(row[TARGET_COLUMNS[0]])
        },
        "n_reconstructions": len(labels),
        "n_votes": None if votes is None else len(votes),
        "n_annotators": None if votes is None else int(votes["annotator"].nunique()),
    }


def write_card(checkpoint: Path, facts: CardFacts) -> dict[str, Any]:
    """Write the card beside `checkpoint`, as Markdown and as JSON, and return it."""
    card = card_of(checkpoint, facts)
    markdown, record = card_paths(checkpoint)
    write_text(markdown, card_markdown(card))
    write_record(record, FORMAT, card)
    return card


def read_card(checkpoint: Path) -> dict[str, Any] | None:
    """The card beside `checkpoint`, or None where it has none; `WeightsError` for a broken one."""
    path = card_paths(checkpoint)[1]
    return read_record(path, FORMAT, WeightsError) if path.exists() else None


def card_of(checkpoint: Path, facts: CardFacts) -> dict[str, Any]:
    """The card as a record: of `outcome` all but paths and the machine's pace."""
    outcome = facts.outcome
    kept = ("name", "created", "simulated", "study", "n_originals", "n_triplets", "epochs")
    return {
        **{key: outcome[key] for key in kept},
        "sha256": sha256_of(checkpoint),
        "licence": facts.licence,
        "data": dict(facts.data),
        "split": dict(facts.split),
        "settings": acting(outcome["settings"]),
        "training": dict(outcome["results"]),
        "warnings": list(outcome["warnings"]),
        "versions": dict(outcome["versions"]),
        "held_out": without_paths(facts.held_out),
        "in_sample": without_paths(facts.in_sample),
    }


def without_paths(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """An evaluation whose reasons do not say where files were looked for on this machine."""
    reasons = {name: why.split(";")[0] for name, why in evaluation["left_out"].items()}
    return {**evaluation, "left_out": reasons}


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card for people to read, after the front matter that a model hub reads."""
    from huggingface_hub import ModelCard, ModelCardData  # an HTTP client comes along: slow

    front = ModelCardData(
        **_licence(card["licence"]),
        library_name="semsim",
        tags=["image-similarity", "privacy", *(["simulated-votes"] if card["simulated"] else [])],
        datasets=card["data"]["datasets"],
        metrics=list(dict.fromkeys(_HUB_METRICS)),
        model_name=card["name"],
        eval_results=_eval_results(card) or None,
    )
    tools: dict[str, Any] = {
        **{"heads": heads, "rows": table_rows, "note": note_of, "counted": counted},
        "verdict": verdict_of(card["held_out"]).sentences,
        "learned": in_markdown(learned_words(card, card["training"])),
        "weighed": weights_words(card["training"]),
    }
    names = {key: all_in_markdown(card[key]) for key in ("study", "warnings")}
    data = {key: all_in_markdown(one) for key, one in card["data"].items()}
    shown = {**card, **names, "data": data}
    return str(ModelCard.from_template(front, template_path=str(_TEMPLATE), **tools, **shown))


def _licence(words: str) -> dict[str, Any]:
    """The licence as a hub has it: one it does not know is "other", in the words given."""
    if words == NOT_STATED:
        return {"license": "unknown"}
    known = words.lower() in _HUB_LICENCES
    return {"license": words.lower()} if known else {"license": "other", "license_name": words}


def _eval_results(card: Mapping[str, Any]) -> "list[EvalResult]":
    """Return the held-out results of the SemSim itself, with 95% intervals."""
    from huggingface_hub import EvalResult

    data = " + ".join(card["data"]["datasets"])
    judged = card["held_out"]
    own = next(r for r in judged["metrics"] if r["metric"].startswith("semsim:"))
    return [
        EvalResult(
            task_type="image-similarity",
            dataset_type=data,
            dataset_name=data,
            dataset_split="held-out",
            metric_type=kind,
            metric_name=head,
            metric_value=value,
            metric_args={"level": 0.95, "low": low, "high": high},
        )
        for kind, head, (value, low, high) in zip(
            _HUB_METRICS, heads(judged)[1:], _measured(judged, own), strict=True
        )
        if value is not None
    ]


def heads(judged: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the heads of an evaluation's table, the AUC that it goes by before the others."""
    return "Metric", "ρ", "τ", *(f"AUC {scope}" for scope in scopes_by(judged["scale_differs"]))


def note_of(judged: Mapping[str, Any]) -> str:
    """Return why a table goes by the AUC within originals, "" where it does not."""
    return scale_note(judged["scale_differs"])


def table_rows(judged: Mapping[str, Any]) -> list[list[str]]:
    """One row a metric, as text: the columns `heads`, with intervals.

    A control that was not run has a row, too, which says so.
    """
    rows = [
        [row["title"], *(_interval(*found) for found in _measured(judged, row))]
        for row in judged["metrics"]
    ]
    absent = judged["absent"]
    blank = [""] * (len(heads(judged)) - 2)
    return rows + [
        [WHAT[name].capitalize(), why.split(",")[0], *blank] for name, why in absent.items()
    ]


def _measured(
    judged: Mapping[str, Any], row: Mapping[str, Any]
) -> list[tuple[float | None, float | None, float | None]]:
    """Value and ends of the interval under each of `heads` but the first."""
    aucs = [row["auc"].get(scope, {}) for scope in scopes_by(judged["scale_differs"])]
    return [
        *((row[key], row[f"{key}_low"], row[f"{key}_high"]) for key in ("rho", "tau")),
        *((found.get("auc"), found.get("low"), found.get("high")) for found in aucs),
    ]


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if low is None or high is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def learned_words(made: Mapping[str, Any], results: Mapping[str, float]) -> str:
    """From how much a SemSim learned, and how.

    Args:
        made: Settings, n_originals, n_triplets and epochs, as a card and an outcome of `learn` have
            them.
        results: Of its training.
    """
    settings, of = made["settings"], counted(made["n_originals"], "original")
    began = f"{_network(settings)}, learned by the {settings['loss']} loss"
    triplets, epochs = counted(made["n_triplets"], "triplet"), counted(made["epochs"], "epoch")
    return f"{began[0].upper()}{began[1:]} from {triplets} of {of} in {epochs}"


def weights_of(results: Mapping[str, float]) -> dict[str, float]:
    """Return each block's weight in the calibrated baseline by name, 1 where all count alike."""
    return {
        name.removeprefix(WEIGHT_OF): value
        for name, value in results.items()
        if name.startswith(WEIGHT_OF)
    }


def weights_words(results: Mapping[str, float]) -> str:
    """Of what the mean squared distance of the calibrated baseline is made; "" without one."""
    found = weights_of(results)
    total = sum(found.values())
    if not total:
        return ""
    shares = ", ".join(
        f"{name} {value / total:.0%} (weight {value:.2f})" for name, value in found.items()
    )
    return (
        f"The calibrated baseline: {len(found)} weights, fitted to "
        f"{results[N_PAIRS]:.0f} pairs of the same originals by logistic regression; {shares}"
    )


def _network(settings: Mapping[str, Any]) -> str:
    words = _NETWORKS.get(settings["weights"], _FROM_FILE)
    named = {"lenet": "LeNet"}.get(settings["backbone"], settings["backbone"])
    return words.format(named, settings["seed"])
