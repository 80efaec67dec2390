"""The card of a judge: what it was trained on, and how good it is, clean and degraded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semsim.base.storage.atomic import write_json, write_text
from semsim.base.words import chance_in
from semsim.weights import sha256_of

_NOT_FOR = (
    "It ranks the words of candidate lists, or judges pictures as a metric; the two of one study "
    "must be two judges. What it recognises says nothing of what people do."
)


def write_card(checkpoint: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write the card beside `checkpoint`, as Markdown and as JSON, and return it."""
    card = {**facts, "sha256": sha256_of(checkpoint)}
    stem = checkpoint.with_suffix("")
    write_text(Path(f"{stem}.card.md"), card_text(card) + "\n")
    write_json(Path(f"{stem}.card.json"), card)
    return card


def card_text(card: Mapping[str, Any]) -> str:
    """The card for people to read, in Markdown."""
    dataset, train = card["dataset"], card["train"]
    return "\n".join(
        [
            f"# Judge {card['name']}",
            "",
            f"- Data set: {dataset['name']} ({card['n_train']} training images, "
            f"{card['clean']['n_classes']} classes)",
            f"- Network: {card['architecture']['name']}, {train['epochs']} epochs, "
            f"seed {train['seed']}",
            f"- Test pictures as they are: {tested(card['clean'])}",
            f"- Test pictures as attacks leave them: {tested(card['degraded'])}",
            f"- Weights (SHA-256): {card['sha256']}",
            "",
            _NOT_FOR,
        ]
    )


def tested(facts: Mapping[str, Any]) -> str:
    """Such as "91.2% right (chance is 5.0%)", marked where it is no more than guessing."""
    mark = "; no better than guessing" if facts["at_chance"] else ""
    chance, note = chance_in(facts)
    return f"{facts['accuracy']:.1%} right (chance is {chance:.1%}{note}{mark})"
