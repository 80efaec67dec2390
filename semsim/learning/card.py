"""The model card of a SemSim: where it comes from, what it was judged by, what it is not for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.errors import WeightsError
from semsim.kept.whole import write_json, write_text
from semsim.weights import sha256_of
from semsim.words import counted

FORMAT = "semsim-card/1"
NOT_STATED = "not stated"
HEADS = ("Metric", "ρ", "τ", "AUC pooled", "AUC within model", "AUC within original")
_SIMULATED = (
    "The votes were made by a program, not by people: this SemSim shows how the product works and "
    "says nothing about people."
)


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """What a card tells besides the evaluations.

    outcome: as `learn` returns it. split: how the test was held out, with the ids of its
    originals. data: what the labels are of, see `data_facts`. licence: of the data and so of the
    checkpoint, in the words of who trained it.
    """

    outcome: Mapping[str, Any]
    split: Mapping[str, Any]
    data: Mapping[str, Any]
    held_out: Mapping[str, Any]
    in_sample: Mapping[str, Any]
    licence: str = NOT_STATED


def card_paths(checkpoint: Path) -> tuple[Path, Path]:
    """Where the card of `checkpoint` lies: Markdown and JSON beside it."""
    stem = checkpoint.with_suffix("")
    return Path(f"{stem}.card.md"), Path(f"{stem}.card.json")


def data_facts(labels: pd.DataFrame, votes: pd.DataFrame | None) -> dict[str, Any]:
    """What the labels and votes are of: names and counts, no people and no paths."""
    names = {key: sorted(set(labels[key].astype(str))) for key in ("dataset", "attack", "model")}
    return {
        **{f"{key}s": values for key, values in names.items()},
        "n_reconstructions": len(labels),
        "n_votes": None if votes is None else len(votes),
        "n_annotators": None if votes is None else int(votes["annotator"].nunique()),
    }


def write_card(checkpoint: Path, facts: CardFacts) -> dict[str, Any]:
    """Write the card beside `checkpoint`, as Markdown and as JSON, and return it."""
    card = card_of(checkpoint, facts)
    markdown, record = card_paths(checkpoint)
    write_text(markdown, card_markdown(card))
    write_json(record, card)
    return card


def read_card(checkpoint: Path) -> dict[str, Any] | None:
    """The card beside `checkpoint`, or None where it has none; `WeightsError` for a broken one."""
    path = card_paths(checkpoint)[1]
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is not a model card ({error}).") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise WeightsError(f"{path} is not a model card of the format {FORMAT}.")
    return card


def card_of(checkpoint: Path, facts: CardFacts) -> dict[str, Any]:
    """The card as a record: of `outcome` all but paths and the machine's pace."""
    outcome = facts.outcome
    kept = ("name", "created", "simulated", "study", "n_originals", "n_triplets", "epochs")
    return {
        "format": FORMAT,
        **{key: outcome[key] for key in kept},
        "sha256": sha256_of(checkpoint),
        "licence": facts.licence,
        "data": dict(facts.data),
        "split": dict(facts.split),
        "settings": dict(outcome["settings"]),
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
    """The card for people to read."""
    split, data = card["split"], card["data"]
    votes = "no votes, only majorities" if data["n_votes"] is None else f"{data['n_votes']} votes"
    people = "" if data["n_annotators"] is None else f" of {data['n_annotators']} annotators"
    lines = [
        f"# SemSim {card['name']}",
        "",
        *([f"**Simulated votes.** {_SIMULATED}", ""] if card["simulated"] else []),
        "A distance between an original and a reconstruction; smaller means that people recognise "
        "more. It is made to compare reconstructions like those it was judged by, not to certify "
        "that an image is safe.",
        "",
        "## Made from",
        f"- Study: {card['study'] or 'not named'}; {votes}{people} on "
        f"{data['n_reconstructions']} reconstructions",
        f"- Data sets: {', '.join(data['datasets'])}; attacks: {', '.join(data['attacks'])}",
        f"- Models: {', '.join(data['models'])}",
        f"- Learned from {card['n_triplets']} triplets of {card['n_originals']} originals in "
        f"{card['epochs']} epochs",
        f"- Held out: {split['words']} ({split['hold_out']}, share {split['fraction']:g}, seed "
        f"{split['seed']}); {split['unused']} reconstructions on neither side",
        f"- Made {card['created']}; sha256 {card['sha256']}",
        f"- Licence: {card['licence']}",
        "",
        *_results("Held out", card["held_out"]),
        *_results("In sample (what it learned from; no measure of its worth)", card["in_sample"]),
        "## Warnings",
        *([f"- {warning}" for warning in card["warnings"]] or ["- none"]),
        "",
        "## Settings",
        *[f"- {name}: {value}" for name, value in card["settings"].items()],
        "",
        "## Versions",
        *[f"- {name} {version}" for name, version in card["versions"].items()],
    ]
    return "\n".join(lines) + "\n"


def _results(title: str, judged: Mapping[str, Any]) -> list[str]:
    return [
        f"## {title}",
        f"{counted(judged['n_images'], 'reconstruction')} of "
        f"{counted(judged['n_originals'], 'original')} by "
        f"{counted(judged['n_models'], 'model')}; 95 % intervals in brackets.",
        "",
        "| " + " | ".join(HEADS) + " |",
        "|" + "---|" * len(HEADS),
        *["| " + " | ".join(cells) + " |" for cells in table_rows(judged)],
        "",
        *[f"- {name} is left out: {why}" for name, why in judged["left_out"].items()],
        *[f"- {note}" for note in judged["notes"]],
        "",
    ]


def table_rows(judged: Mapping[str, Any]) -> list[list[str]]:
    """One row a metric, as text: the columns `HEADS`, with intervals."""
    return [
        [
            row["title"],
            *(_interval(row[k], row[f"{k}_low"], row[f"{k}_high"]) for k in ("rho", "tau")),
            *(_auc(row["auc"], s) for s in ("pooled", "within model", "within original")),
        ]
        for row in judged["metrics"]
    ]


def _auc(scopes: Mapping[str, Mapping[str, Any]], scope: str) -> str:
    found = scopes.get(scope)
    return "–" if found is None else _interval(found["auc"], found["low"], found["high"])


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if low is None or high is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"
