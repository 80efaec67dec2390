"""The answer of a federated comparison: what is recognised, then the statistic."""

from collections.abc import Mapping, Sequence
from typing import Any

from semsim.federated.arms import PARTIES, REFERENCE, RESCALED
from semsim.federated.summary import count_of, likeness, strength
from semsim.sets.recognition import STATISTIC, recognised_words
from semsim.words import listed

# Of a verdict, what it means for the party.
_STANDING = {
    **dict.fromkeys(("identical", "as much"), "sees"),
    "less": "less",
    **dict.fromkeys(("little", "nothing"), "kept"),
    **dict.fromkeys(("unclear", "too weak", "failed", "reference"), "open"),
}
_SAID = {
    "kept": "Masks keep most below that for {} against this attack.",
    "less": "It is less for {}, but of most pictures more than a guess.",
    "sees": "Masks change nothing of it for {}.",
    "open": "Whether masks change it for {} is not known.",
}


def answer_words(scores: Sequence[Mapping[str, Any]], named: Mapping[str, Any]) -> tuple[str, str]:
    """Return what can be recognised, then the statistic.

    scores: of each arm, as `asdict` gives it. Each party counts by the arm that shows it most.
    named: as `semsim.scores.reference.recognition`.
    Where the attack does not get most pictures back from plain training, nothing is said.
    """
    known = {score["arm"]: score for score in scores}
    plain = max((known[arm] for arm in (REFERENCE, RESCALED) if arm in known), key=strength)
    count = count_of(plain)
    figures = f"{count.words} (SSIM {likeness(plain['ssim'])})"
    lead = recognised_words(named, [plain["arm"]], " from plain training")
    if not count.comes_back:
        return lead, (
            f"{STATISTIC}the attack failed on plain training too; what came back is {figures}. "
            "Nothing can be said of masks. Take a stronger attack, or another network."
        )
    found: dict[str, list[str]] = {}
    for party, arms in PARTIES.items():
        judged = [known[arm] for arm in arms if arm in known]
        if judged:
            best = max(judged, key=strength)
            told = f"{party[0].lower()}{party[1:]} ({best['clearer']} of {best['images']})"
            found.setdefault(_STANDING[best["verdict"]], []).append(told)
    parts = [f"{STATISTIC}what came back from plain training is {figures}."]
    parts += [words.format(listed(found[key])) for key, words in _SAID.items() if key in found]
    return lead, " ".join(parts)
