"""Accuracy of a target on its test split, and whether it is more than guessing."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.special import bdtrc  # scipy.stats takes a second to import

from semsim.base.errors import WeightsError
from semsim.weights import read_facts

CLASSIFIER = "semsim-classifier/1"  # the format of what `semsim.targets.model.save_target` writes
LEVEL = 0.05  # p from which a share of right answers is no more than guessing would give


def chance_of(labels: Sequence[int], classes: int) -> float:
    """The share of `labels`, at least one, that is named right without a look, 0 to 1.

    By guessing among so many `classes`, or by always saying the commonest, whichever is more.
    """
    return max(1 / classes, max(Counter(labels).values()) / len(labels))


def is_chance(right: int, tested: int, chance: float) -> bool:
    """Return whether guessing at `chance` has as many right in more than one try of 20.

    One-sided binomial test of `right` of `tested` against `chance`, of `chance_of`, at `LEVEL`.
    """
    return bool(bdtrc(right - 1, tested, chance) > LEVEL)


def facts_of_test(accuracy: float, labels: Sequence[int], classes: int) -> dict[str, Any]:
    """Return the facts of a target's test: its share of right answers and the mark beside it.

    Args:
        accuracy: 0 to 1, of the images of the test split, whose `labels` are below `classes`.
    """
    chance, tested = chance_of(labels, classes), len(labels)
    return {
        "accuracy": accuracy,
        "n_test": tested,
        "n_classes": classes,
        "chance": chance,
        "at_chance": is_chance(round(accuracy * tested), tested, chance),
    }


def target_facts(path: Path) -> dict[str, object]:
    """Return the facts given to `semsim.targets.model.save_target` of the classifier at `path`.

    Raises `WeightsError` where the file is missing, broken or of another kind.
    """
    try:
        facts: dict[str, object] = read_facts(path, CLASSIFIER)["facts"]
    except WeightsError as error:
        raise WeightsError(f"{error} Delete it, and it is trained again.") from error
    return facts
