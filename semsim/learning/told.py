"""The origin of a SemSim, in words for a card, a page and a terminal."""

from collections.abc import Mapping
from typing import Any

from semsim.base.words import counted
from semsim.learning.settings import IMAGENET, MIXED, SCRATCH
from semsim.metrics.provenance import N_PAIRS, WEIGHT_OF

_NETWORKS = {SCRATCH: "an untrained {} of seed {}", IMAGENET: "{} with the weights of ImageNet"}
_FROM_FILE = "{} with weights of a file"


def learned_words(made: Mapping[str, Any], results: Mapping[str, float]) -> str:
    """From how much a SemSim learned, and how.

    made: settings, n_originals, n_triplets and epochs, as a card and an outcome of `learn` have
    them. results: of its training.
    """
    of = counted(made["n_originals"], "original")
    if made["settings"]["loss"] != MIXED:
        epochs = counted(made["epochs"], "epoch")
        return f"Learned from {counted(made['n_triplets'], 'triplet')} of {of} in {epochs}"
    pairs = f"pair{'s' * (results[N_PAIRS] != 1)} of an original and a reconstruction"
    return (
        f"Fitted {len(weights_of(results))} weights on {results[N_PAIRS]:.0f} {pairs}, of {of}, by "
        f"logistic regression; its network, {_network(made['settings'])}, stays as it is"
    )


def weights_of(results: Mapping[str, float]) -> dict[str, float]:
    """Return each block's weight in a mixed SemSim by name, 1 being that before any vote."""
    return {
        name.removeprefix(WEIGHT_OF): value
        for name, value in results.items()
        if name.startswith(WEIGHT_OF)
    }


def weights_words(results: Mapping[str, float]) -> str:
    """Of what the mean squared distance of a mixed SemSim is made; "" of another.

    Blocks count alike before any vote, so that their shares are those of what they count.
    """
    found = weights_of(results)
    total = sum(found.values())
    if not total:
        return ""
    shares = ", ".join(
        f"{name} {value / total:.0%} (weight {value:.2f})" for name, value in found.items()
    )
    alike = f"before any vote each was {1 / len(found):.0%} (weight 1)"
    return f"Its mean squared distance is made of {shares}; {alike}"


def _network(settings: Mapping[str, Any]) -> str:
    words = _NETWORKS.get(settings["weights"], _FROM_FILE)
    named = {"lenet": "LeNet"}.get(settings["backbone"], settings["backbone"])
    return words.format(named, settings["seed"])
