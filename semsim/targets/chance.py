"""How good a target is on its test split, and whether that is more than guessing."""

import json
from pathlib import Path
from typing import Any

import scipy

from semsim.weights import tensor_facts

LEVEL = 0.05  # p from which a share of right answers is no more than guessing would give


def is_chance(right: int, tested: int, classes: int) -> bool:
    """Whether somebody who guesses among `classes` has as many right in one try of 20 or more.

    One-sided binomial test of `right` of `tested` against 1/classes, at `LEVEL`.
    """
    found = scipy.stats.binomtest(right, tested, 1 / classes, alternative="greater")
    return bool(found.pvalue > LEVEL)


def facts_of_test(accuracy: float, tested: int, classes: int) -> dict[str, Any]:
    """What is kept of a target's test: its share of right answers and the mark beside it.

    accuracy: 0 to 1, of `tested` images of the test split, each of one of `classes`.
    """
    return {
        "accuracy": accuracy,
        "n_test": tested,
        "n_classes": classes,
        "at_chance": is_chance(round(accuracy * tested), tested, classes),
    }


def target_facts(path: Path) -> dict[str, object]:
    """What `semsim.targets.model.save_target` was told about the classifier at `path`."""
    facts: dict[str, object] = json.loads(tensor_facts(path)["config"])["facts"]
    return facts
