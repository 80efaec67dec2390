"""What the page Federated draws: plain values in, HTML out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from semsim.federated.leak_answer import answer_words
from semsim.federated.summary import (
    COST_COLUMNS,
    COST_TITLES,
    cost_ratios,
    cpu_seconds,
    decibels,
    likeness,
    training_words,
)
from semsim.ui import lab_cards
from semsim.ui.curves import Chart, Curve, svg
from semsim.ui.lab_sets import METHOD as EACH
from semsim.ui.lab_sets import Step
from semsim.ui.lab_sets import verdict_html as verdict_of
from semsim.ui.markup import pieces
from semsim.words import counted

if TYPE_CHECKING:
    from semsim.federated.comparison import FederatedOutlook
    from semsim.federated.settings import FederatedOrder

_HTML = pieces("federated.html")
METHOD = f"{EACH} Each party counts by the way of looking that gets most back."
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
        said = answer_words(leak["scores"], leak["recognition"])
    return verdict_of(said, steps, METHOD if steps else "")


def result_html(leak: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """A finished comparison: a study of it, and the verdict a party with its figures."""
    if not leak.get("summary"):
        return ""
    return lab_cards.made_html(_HTML.summary(leak["summary"]), [one.folder for one in steps])


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
