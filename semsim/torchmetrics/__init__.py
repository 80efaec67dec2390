"""SemSim as a metric of torchmetrics; needs torchmetrics, of which nothing else knows."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from semsim.api.pretrained import SemSim as _Network
from semsim.base.errors import MissingExtraError
from semsim.device import exact_device, in_float64

try:
    from torchmetrics import Metric
except ModuleNotFoundError as error:
    raise MissingExtraError("semsim.torchmetrics", "torchmetrics") from error


class SemSim(Metric):
    """The mean distance by a trained SemSim over all pairs seen; lower means more leakage.

    Attributes:
        metric: A `semsim.SemSim`, or what `semsim.SemSim.from_pretrained` loads. Pairs weigh the
            same, however they are split into batches or over processes.

    >>> import torch, semsim
    >>> metric = semsim.torchmetrics.SemSim("checkpoints/demo")
    >>> images = torch.rand(2, 3, 32, 32)
    >>> metric.update(images, images)
    >>> metric.compute()
    tensor(0., dtype=torch.float64)
    """

    is_differentiable = True
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    total: Tensor
    count: Tensor

    def __init__(self, metric: _Network | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metric = _Network.from_pretrained(metric) if isinstance(metric, str) else metric
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, reconstructions: Tensor, originals: Tensor) -> None:
        """Take in a batch; (N, 3, H, W) floats in [0, 1], `DataError` for others."""
        distances: Tensor = self.metric(originals, reconstructions)
        self.total = self.total + in_float64(distances).sum().to(self.total)
        self.count = self.count + len(distances)

    def compute(self) -> Tensor:
        """The mean distance of all pairs so far, of shape (); NaN where there were none."""
        return self.total / self.count.to(self.total.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Module:
        """Move to another device; where that has no float64, the sum stays on the CPU."""
        place = fn(torch.zeros(1)).device
        if exact_device(place) == place:
            return super()._apply(fn, exclude_state)
        self._computed = self._forward_cache = None  # in float64 too; computed again when asked
        return super()._apply(fn, (*exclude_state, "total"))
