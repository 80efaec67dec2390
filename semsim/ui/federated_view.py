"""What the page Federated draws: plain values in, HTML out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from semsim.federated.arms import PARTIES, REFERENCE, RESCALED
from semsim.federated.summary import (
    COST_COLUMNS,
    COST_TITLES,
    cost_ratios,
    count_of,
    cpu_seconds,
    decibels,
    likeness,
    strength,
    training_words,
)
from semsim.sets.recognition import STATISTIC, recognised_words
from semsim.ui import lab_cards
from semsim.ui.curves import Chart, Curve, svg
from semsim.ui.lab_sets import METHOD as EACH
from semsim.ui.lab_sets import Step
from semsim.ui.lab_sets import verdict_html as verdict_of
from semsim.ui.markup import pieces
from semsim.words import counted, listed

if TYPE_CHECKING:
    from semsim.federated.comparison import FederatedOutlook
    from semsim.federated.settings import FederatedOrder

_HTML = pieces("federated.html")
METHOD = f"{EACH} Each party counts by the way of looking that gets most back."
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
# Colour and dash: schemes that agree lie on each other, so that the upper one is dashed.
_LINES = {
    "FedAvg": ("leaked", False),
    "PBPFL": ("private", True),
    "FedAvg, cross-entropy": ("ink", True),
}


def course(training: Mapping[str, Any]) -> Chart:
    """Accuracy against rounds, or squared error where there are no classes."""
    curves = training["curves"]
    classes = all(point["accuracy"] is not None for curve in curves.values() for point in curve)
    key, title = ("accuracy", "Accuracy on test images") if classes else ("squared_error", "MSE")
    lines = tuple(
        Curve(
            name=name,
            x=[point["round"] for point in curve],
            y=[point[key] for point in curve],
            colour=_LINES[name][0],
            dashed=_LINES[name][1],
            marked=False,
        )
        for name, curve in curves.items()
    )
    return Chart(title=title, x="round", y=title, curves=lines)


def training_html(training: Mapping[str, Any]) -> str:
    """The course, what masking changes in words, and what it costs as a table."""
    rows = [
        (title, *(cpu_seconds(training["costs"][name][key]) for name in ("FedAvg", "PBPFL")), ratio)
        for title, key, ratio in zip(
            COST_TITLES, COST_COLUMNS, cost_ratios(training["costs"]), strict=True
        )
    ]
    traffic = training["traffic"]
    for title, key in (("megabytes down", "bytes_down"), ("megabytes up", "bytes_up")):
        plain, masked = traffic["FedAvg"][key], traffic["PBPFL"][key]
        rows.append((title, f"{plain / 1e6:.2f}", f"{masked / 1e6:.2f}", f"{masked / plain:.2f}"))
    head = ("Cost", "FedAvg", "PBPFL", "Ratio")
    words = training_words(training).splitlines()
    return str(_HTML.training(svg(course(training)), words, head, rows))


def outlook_html(order: FederatedOrder, found: FederatedOutlook, last: str) -> str:
    """Return what an order takes before it is started, as HTML; last: see `jobpanel.last_words`."""
    pictures = f"{counted(found.attacks, 'attack')} on {counted(found.pictures, 'picture')} each"
    return lab_cards.outlook_html(
        counted(found.trainings, "training"),
        f" of {counted(order.rounds, 'round')} with {counted(order.clients, 'client')}",
        pictures if found.attacks else "nothing attacked",
        found.disk,
        last,
    )


def verdict_html(leak: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """The answer in a sentence, and what is clearer than a guess, party by party; "" until then."""
    if not leak.get("summary"):
        return ""
    said: Sequence[str] = leak["summary"][:1]
    if "scores" in leak:
        said = verdict_words(leak["scores"], leak["recognition"])
    return verdict_of(said, steps, METHOD if steps else "")


def result_html(leak: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """A finished comparison: a study of it, and the verdict a party with its figures."""
    if not leak.get("summary"):
        return ""
    return lab_cards.made_html(_HTML.summary(leak["summary"]), [one.folder for one in steps])


def verdict_words(scores: Sequence[Mapping[str, Any]], named: Mapping[str, Any]) -> tuple[str, str]:
    """What can be recognised, then the statistic; each party counts by the arm that shows it most.

    named: as `semsim.scores.reference.recognition`.
    Where the attack does not get most pictures back from plain training, nothing is said.
    """
    known = {score["arm"]: score for score in scores}
    plain = max((known[arm] for arm in (REFERENCE, RESCALED) if arm in known), key=strength)
    count = count_of(plain)
    figures = f"{count.words} (SSIM {likeness(plain['ssim'])})"
    lead = recognised_words(named, [plain["arm"]], " of plain training")
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
    parts = [f"{STATISTIC}what came back of plain training is {figures}."]
    parts += [words.format(listed(found[key])) for key, words in _SAID.items() if key in found]
    return lead, " ".join(parts)


def figures(score: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What stands beside the pictures of a party."""
    if score is None:
        return ()
    gap = "\N{NO-BREAK SPACE}"
    return (
        f"SSIM{gap}{likeness(score['ssim'])}",
        f"{decibels(score['psnr'])}{gap}dB",
        score["verdict"],
    )
