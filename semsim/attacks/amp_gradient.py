"""An attack's slope in bfloat16 as long as it points where float32 does.

Near the picture the distance of gradients is a difference of almost equal numbers, of which
bfloat16 keeps little; far from it a step needs no more. So the slope is compared now and then, and
float32 takes over for good once the two part: for each image when its own do, so that none depends
on its company. What an attack reports of its end is float32 either way, see `Apart.beside_grey`.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.attacks.slopes import Objective, slope_of
from semsim.base.errors import SettingsError
from semsim.targets.mixed_precision import COSINE

_EVERY = 20  # evaluations between two comparisons


class RoughSlope:
    """`slopes.slope_of` an objective, (N, C, H, W) to (N,), from bfloat16 until that will not do.

    The value of an image depends on that image only. exact_from: the evaluation from which all
    images are in float32, counted from 0; None so far.
    """

    def __init__(self, objective: Objective) -> None:
        def mixed(unknown: Tensor) -> Tensor:
            with torch.autocast(unknown.device.type, torch.bfloat16):
                return objective(unknown).float()

        self._mixed, self._float32 = partial(slope_of, mixed), partial(slope_of, objective)
        self._count = 0
        self._exact: Tensor | None = None  # (N,), which images are in float32; None: none
        self.exact_from: int | None = None

    def __call__(self, unknown: Tensor) -> tuple[Tensor, Tensor]:
        """The value of each image, (N,), of `unknown`, (N, C, H, W), and its slope, as that.

        Raises `SettingsError` where bfloat16 would turn the first step of an image.
        """
        if self.exact_from is None and self._count % _EVERY == 0:
            self._compare(unknown)
        self._count += 1
        if self.exact_from is not None:
            return self._float32(unknown)
        values, slope = self._mixed(unknown)
        if self._exact is None:
            return values, slope
        own_values, own_slope = self._float32(unknown)
        each = self._exact.view(-1, 1, 1, 1)
        return torch.where(self._exact, own_values, values), torch.where(each, own_slope, slope)

    def _compare(self, unknown: Tensor) -> None:
        (_, rough), (_, exact) = self._mixed(unknown), self._float32(unknown)
        cosine = F.cosine_similarity(rough.flatten(1), exact.flatten(1))
        parted = ~(cosine >= COSINE)  # so that NaN has parted, too
        if not parted.any():
            return
        if self._count == 0:
            raise SettingsError(
                f"mixed_precision turns this attack's first step: the cosine with float32's is "
                f"{float(cosine.min()):.3f} (at least {COSINE}). Attack without."
            )
        self._exact = parted if self._exact is None else self._exact | parted
        if self._exact.all():
            self.exact_from = self._count
