"""Titles of the choices on the pages of the attack lab, and a line on each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.storage.places import toml_of
from semsim.datasets.fetch_job import fetchable
from semsim.distractors.registry import judges, tested


@dataclass(frozen=True, kw_only=True)
class FormChoice:
    """One thing to choose.

    Attributes:
        item: How programs call it.
        usual: For most people, not behind More.
    """

    item: str
    title: str
    line: str
    usual: bool = True


def choices_in(package: str) -> dict[str, tuple[FormChoice, ...]]:
    """Return the lists in the file `choices.toml` of a package by name, the usual items first."""
    return {
        name: tuple(
            FormChoice(item=item, title=words[0], line=words[1], usual=known is table)
            for known in (table, table.get("more", {}))
            for item, words in known.items()
            if item != "more"
        )
        for name, table in toml_of(package, "choices.toml").items()
    }


CHOICES = choices_in("semsim.base")
DATASETS = "semsim.datasets:DATASETS"  # whose settings a list of data sets shows
PRESETS = (
    ("fast", "Fast, for a first look"),
    ("paper", "As published"),
    ("code", "As the authors' code"),
)


def absent() -> dict[str, str]:
    """Return, by name, why data sets cannot be chosen: their files are not on this machine."""
    return {name: why for name, why in reasons().items() if why}


def reasons() -> dict[str, str]:
    """Return why each data set that has to be fetched cannot be chosen; "" where it can."""
    return {
        name: "" if one.present() else f"Not on this machine ({_size(one)})."
        for name, one in fetchable().items()
    }


def _size(data: Any) -> str:
    return str(type(data).about).rpartition(", ")[2]


def judge_choices(checkpoints: Path) -> list[tuple[str, str]]:
    """No distractor model first, then each with its data and its accuracy on spoilt pictures."""
    known = {name: facts for name, facts in judges(checkpoints).items() if facts}
    words = {
        name: f"{one['dataset']['name']}, {tested(one['degraded'])}" for name, one in known.items()
    }
    return [("", "None: random lists"), *((name, f"{name}: {of}") for name, of in words.items())]
