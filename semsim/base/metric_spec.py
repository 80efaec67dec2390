"""Facts of a metric and the names of a SemSim's controls: all that statistics know of a metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from semsim.base.storage.folders import shown

Reference = Literal["clean", "attacked"]
VOTERS_KIND = "same kind as the simulated voters"  # the mark of a metric that is
# What is kept beside a SemSim to judge it by, as <name>.<control>, and what each is.
START, CALIBRATED = "start", "calibrated"
CONTROLS = {START: "initial weights", CALIBRATED: "calibrated baseline"}
_BLOCK = "block:"


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """The facts of a metric.

    Attributes:
        higher_means_more_leakage: Whether a larger value means that the reconstruction shows more.
        per_image: One value a pair; otherwise one value a set.
        reference: What a reconstruction is compared with: the clean original, or the image that was
            really attacked, which training may have shifted or mirrored.
        weights: Names in `checkpoints/manifest.json` of the files it cannot do without.
        libraries: Distributions that compute it, besides those every result depends on.
        smallest_side: Of an image it can judge, in pixels.
        yes_or_no: Each value is 0 or 1, so that the mean over images is a rate.
        classifier: One of the product's own classifiers computes it, as those are that simulate
            voters.
        mark: Why it leads nothing where it stands, "" of most; see `marked`.
    """

    name: str
    title: str
    unit: str = ""
    higher_means_more_leakage: bool
    per_image: bool
    reference: Reference = "clean"
    weights: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    smallest_side: int = 1
    yes_or_no: bool = False
    classifier: bool = False
    mark: str = ""

    @property
    def sign(self) -> float:
        """1 where a larger value means more leakage, else -1."""
        return 1.0 if self.higher_means_more_leakage else -1.0

    def marked(self, why: str) -> MetricSpec:
        """Return it with the mark `why`, which its title says; itself for "" or if it has one."""
        if not why or self.mark:
            return self
        return replace(self, mark=why, title=f"{self.title} [{why}]")


def beside_votes(specs: Iterable[MetricSpec], simulated: bool) -> tuple[MetricSpec, ...]:
    """Return `specs`, marked where votes are simulated and a metric is of the voters' kind."""
    why = VOTERS_KIND if simulated else ""
    return tuple(spec.marked(why) if spec.classifier else spec for spec in specs)


def semsims(checkpoints: Path) -> list[str]:
    """Names of the SemSims in the folder `checkpoints`, their controls left out."""
    names = [path.stem for path in shown(checkpoints, "*.safetensors")]
    return [name for name in names if not control_in(name)]


def control_in(name: str) -> str:
    """Of `CONTROLS`, the one that the name of a checkpoint stands for; "" for a SemSim itself."""
    last = name.rpartition(".")[2]
    return last if last in CONTROLS and last != name else ""


def checkpoint_of(metric: str) -> str:
    """The SemSim whose checkpoint a metric is of, by the metric's name; "" for another."""
    checkpoint = _learned(metric)
    return "" if control_in(checkpoint) else checkpoint


def voted_for(metric: str) -> str:
    """The SemSim whose votes a metric saw: its own, or the one it is calibrated beside; else ""."""
    checkpoint = _learned(metric)
    control = control_in(checkpoint)
    return "" if control == START else checkpoint.removesuffix(f".{control}")


def block_name(block: str) -> str:
    """Return the metric name of one block of the calibrated baseline alone."""
    return f"{_BLOCK}{block.replace(' ', '-')}"


def is_block(metric: str) -> bool:
    """Return whether a metric, by its name, is one block of the calibrated baseline alone."""
    return metric.startswith(_BLOCK)


def is_start(metric: str) -> bool:
    """Return whether a metric, by its name, is a SemSim's initial weights, which lead nothing."""
    return control_in(_learned(metric)) == START


def controlled(metric: str) -> str:
    """The name of the metric that a control, by its name, is a control of."""
    name, at, rest = metric.partition("@")
    return f"{name.rpartition('.')[0]}{at}{rest}"


def _learned(metric: str) -> str:
    """The checkpoint in a metric's name, a control's too; "" for a metric without one."""
    family, _, checkpoint = metric.partition("@")[0].partition(":")
    return checkpoint if family == "semsim" else ""
