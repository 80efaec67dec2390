"""Attacks that descend on a distance: what they share around what is minimised, and how.

`distance` is between what images would leak and what leaked. `first_order` minimises it step by
step, `lbfgs` by a quasi-Newton method. All work on many images of one model at once, each as alone.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from semsim.attacks.labels import Label, label_of, labels_of
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Look, Progress, Report, placed, silent
from semsim.base.registry import Checked
from semsim.images import to_uint8
from semsim.types import GradientObservation, Reconstruction, UpdateObservation

Found = Reconstruction | AttackFailedError
Rngs = Sequence[torch.Generator]
Seen = Sequence[GradientObservation]  # of one model, each of one picture
Leaked = Seen | UpdateObservation  # or what one client shares of its pictures
# What an attack takes an update for: local steps that it goes itself, or one gradient, rescaled.
Updates = Literal["simulated", "one-gradient"]


class Together(Checked):
    """An attack that works on many images of one model at once, each as if it were alone."""

    @property
    def label(self) -> Label:
        """Source of the label, known or inferred; a setting of an attack that has it as a field."""
        return "known"

    @abstractmethod
    def solve(self, seen: Seen, labels: Sequence[int], rngs: Rngs, report: Report) -> list[Found]:
        """A reconstruction, or why there is none, for each observation, of which `labels` tell."""

    def told_label(self, seen: GradientObservation) -> int:
        """The class index that `solve` is told; raises `AttackFailedError` where there is none."""
        return label_of(seen, self.label)

    def check(self, seen: GradientObservation) -> None:
        """Raise `AttackFailedError` unless the observation has what the attack works with."""

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises `AttackFailedError` on divergence."""
        return only(self.many([seen], rngs=[rng], report=report))

    def many(self, seen: Seen, *, rngs: Rngs, report: Report = silent) -> list[Found]:
        """One result an observation; a failed image does not stop the others.

        Args:
            seen: Of one model and one image shape; `SettingsError` otherwise.
            rngs: One an observation, so that an image's result does not depend on its company.
        """
        _check_together(seen, rngs)
        found: dict[int, Found] = {}
        labels: dict[int, int] = {}
        for place, one in enumerate(seen):
            try:
                label = self.told_label(one)
                self.check(one)
                labels[place] = label
            except AttackFailedError as failure:
                found[place] = failure
        if labels:
            good = [seen[place] for place in labels], list(labels.values())
            told = placed(report, list(labels))
            solved = self.solve(*good, [rngs[place] for place in labels], told)
            found |= zip(labels, solved, strict=True)
        return [found[place] for place in range(len(seen))]


def first_of(seen: Leaked) -> GradientObservation | UpdateObservation:
    """The observation that tells the model and the shape of all pictures."""
    return seen if isinstance(seen, UpdateObservation) else seen[0]


def only(found: Sequence[Found]) -> Reconstruction:
    """The one reconstruction in `found`; raises its `AttackFailedError` where there is none."""
    (one,) = found
    if isinstance(one, AttackFailedError):
        raise one
    return one


def best_of_starts(
    restarts: int, start: Callable[[Report], Sequence[Found]], report: Report
) -> list[Found]:
    """The best of what each of several starts found, for each image.

    The lowest objective counts: an attacker has nothing else to go by.
    """
    starts = [start(one_of(report, part, restarts)) for part in range(restarts)]
    return [best(each) for each in zip(*starts, strict=True)]


def best(found: Sequence[Found]) -> Found:
    """The lowest objective of those that did not fail, or else the first failure."""
    good = [one for one in found if isinstance(one, Reconstruction)]
    return min(good, key=lambda one: one.objective) if good else found[0]


@dataclass(frozen=True, kw_only=True)
class Descended:
    """End of a descent, per image.

    Attributes:
        unknown: (N, …), the last iterate.
        objective: (N,), before the last step.
        failures: Why an image diverged, or None.
    """

    unknown: Tensor
    objective: Tensor
    failures: tuple[str | None, ...]


def reconstructions(
    images: Tensor, ended: Descended, residual: Tensor, grey_residual: Tensor
) -> list[Found]:
    """One value an image, (N, C, H, W) in [0, 1]: its reconstruction, or why it has none.

    An image or objective that is not finite is none, whatever `ended` says of it.
    """
    whole = images.flatten(1).isfinite().all(1).tolist()
    failures = map(_failure, ended.failures, ended.objective.tolist(), whole)
    values = ended.objective.tolist(), residual.tolist(), grey_residual.tolist(), failures
    return [
        Reconstruction(
            image=image.to(torch.float32), objective=value, residual=own, grey_residual=grey
        )
        if failure is None
        else AttackFailedError(failure)
        for image, value, own, grey, failure in zip(images, *values, strict=True)
    ]


def _failure(known: str | None, objective: float, whole: bool) -> str | None:
    """Return why an image has no reconstruction; None where it has one."""
    if known is not None or (math.isfinite(objective) and whole):
        return known
    if not math.isfinite(objective):
        return f"The objective ended at {objective}."
    return "The image is not finite after the last step."


class Simulates(Protocol):
    """An attack that works on what a client shares of several pictures, or after several steps."""

    @property
    def updates(self) -> Updates: ...

    @property
    def label(self) -> Label | None: ...

    def solve(
        self, seen: UpdateObservation, labels: Sequence[int], rngs: Rngs, report: Report
    ) -> list[Found]: ...


def attack_updates(
    attack: Simulates,
    seen: Sequence[UpdateObservation],
    *,
    rngs: Rngs,
    report: Report = silent,
) -> list[Found]:
    """One result a picture of each client, client after client; a failed one stops no other.

    Args:
        rngs: One a picture. No attacker can match a client's results to its pictures.
    """
    found: list[Found] = []
    for turn, one in enumerate(seen):
        told = in_turn(report, turn, len(seen), first=len(found))
        own = rngs[len(found) : len(found) + one.pictures]
        known = one.as_one_step() if attack.updates == "one-gradient" else one
        try:
            labels = () if attack.label is None else labels_of(known, attack.label)
            found += attack.solve(known, labels, own, told)
        except AttackFailedError as failure:
            found += [failure] * one.pictures
    return found


def look_at(unknown: Tensor, shown: Callable[[Tensor], Tensor] | None, share: float) -> Look | None:
    """A look at the first of the images that `unknown` stands for; see `descend` for `shown`."""
    if shown is None:
        return None

    def picture() -> np.ndarray:
        with torch.no_grad():
            return to_uint8(shown(unknown.detach()[:1])[0])

    return Look(place=0, share=share, picture=picture)


def one_of(report: Report, part: int, parts: int) -> Report:
    """A report for part `part` (from 0) of `parts` that are equally long, told as one whole."""

    def tell(progress: Progress) -> None:
        look = progress.look
        if look is not None:
            look = replace(look, share=(part + look.share) / parts)
        report(replace(_part(progress, part, parts), look=look))

    return tell


def in_turn(report: Report, place: int, count: int, first: int | None = None) -> Report:
    """A report for one image, at `place` (from 0) of `count` that are worked on one by one.

    Args:
        first: The place of the first image, where each of the `count` has several.
    """
    tell = placed(report, [place if first is None else first])
    return lambda progress: tell(_part(progress, place, count))


def _part(progress: Progress, part: int, parts: int) -> Progress:
    done, total = part * progress.total + progress.done, parts * progress.total
    return replace(progress, done=done, total=total)


def finite_mean(values: Tensor) -> float:
    """The mean of those values, (N,), that are finite; NaN where none is."""
    finite = values[torch.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _check_together(seen: Seen, rngs: Rngs) -> None:
    if len(seen) != len(rngs):
        raise SettingsError(f"{len(seen)} observations came with {len(rngs)} generators.")
    if any(one.model is not seen[0].model or one.shape != seen[0].shape for one in seen):
        raise SettingsError(
            "Observations that are attacked together must share one model and one image shape."
        )
