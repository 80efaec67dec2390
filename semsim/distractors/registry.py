"""Judges that there are, their files, `checkpoints/judges/<name>.safetensors`, and their cards."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, WeightsError
from semsim.base.storage.atomic import write_json, write_text
from semsim.base.storage.folders import shown
from semsim.base.storage.names import checked_name
from semsim.base.words import chance_in
from semsim.metrics.recogniser import JUDGES
from semsim.targets.chance import CLASSIFIER
from semsim.weights import read_facts, sha256_of

_NOT_FOR = (
    "It ranks the words of candidate lists, or scores images as a metric. One study needs two "
    "models for the two purposes. Its accuracy is no evidence about people."
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
            f"# Distractor model {card['name']}",
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


BUILT_IN = "recogniser"  # the classifier that comes along, which every evaluation has


def judge_path(name: str, checkpoints: Path) -> Path:
    """Return the path of the judge `name`, made or not; `SettingsError` for what names no file."""
    return Path(checkpoints) / JUDGES / f"{checked_name(name, 'a distractor model')}.safetensors"


def find_judge(name: str, checkpoints: Path) -> Path:
    """The file of a judge; `WeightsError` names those there are."""
    path = judge_path(name, checkpoints)
    if not path.is_file():
        known = ", ".join(judges(checkpoints)) or "none"
        raise WeightsError(
            f"No distractor model is called {name!r}. There are: {known}. "
            "`semsim-studio distractors train --dataset NAME --name J` makes one."
        )
    return path


def judges(checkpoints: Path) -> dict[str, dict[str, Any]]:
    """Return the facts of each judge, by name; empty for a file that cannot be read."""
    return {path.stem: _facts(path) for path in _files(checkpoints)}


def _files(checkpoints: Path) -> list[Path]:
    return shown(Path(checkpoints) / JUDGES, "*.safetensors")


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = read_facts(path, CLASSIFIER)["facts"]
    except WeightsError:
        return {}
    return facts if {"dataset", "clean", "degraded"} <= set(facts) else {}


def classes_of(path: Path) -> tuple[str, ...]:
    """Read the classes of the judge at `path`, without its weights; `WeightsError` for no judge."""
    return tuple(read_facts(path, CLASSIFIER)["classes"])


def check_classes(judge: Sequence[str], name: str, classes: Sequence[str], where: str) -> None:
    """Raise `DataError` unless the judge called `name` knows just `classes`, those of `where`."""
    strange = sorted({*classes} ^ {*judge})
    if strange:
        raise DataError(
            f"{where} has {len(classes)} classes, the distractor model {name} {len(judge)}; "
            f"{strange[0]!r} is known to one of them only. Train a model on the images' data set. "
            "Nothing was written."
        )
