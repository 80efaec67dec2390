"""Attacks on many images of one model at once: what they share around their own way of solving."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from semsim.attacks.descent.minimise import Descended, one_of
from semsim.attacks.labels import Label, label_of
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Report, placed, silent
from semsim.base.registry import Checked
from semsim.types import GradientObservation, Reconstruction, UpdateObservation

Found = Reconstruction | AttackFailedError
Rngs = Sequence[torch.Generator]
Seen = Sequence[GradientObservation]  # of one model, each of one picture
Leaked = Seen | UpdateObservation  # or what one client shares of its pictures


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

        seen: of one model and one image shape; `SettingsError` otherwise. rngs: one an
        observation, so that an image's result does not depend on its company.
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


def _check_together(seen: Seen, rngs: Rngs) -> None:
    if len(seen) != len(rngs):
        raise SettingsError(f"{len(seen)} observations came with {len(rngs)} generators.")
    if any(one.model is not seen[0].model or one.shape != seen[0].shape for one in seen):
        raise SettingsError(
            "Observations that are attacked together must share one model and one image shape."
        )
