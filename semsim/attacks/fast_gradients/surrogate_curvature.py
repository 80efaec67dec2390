"""A curvature lent to ReLU, which has none, for attacks that descend on a gradient's distance.

Where the gradient of a ReLU network points depends on which units are active. The slope of a
distance between gradients by the image does not: the second derivative of ReLU is zero wherever it
exists, so nothing tells a descent which units to switch. Here that second derivative, and nothing
else, is replaced by that of a smooth step; values and gradients stay those of the network. The idea
is that of surrogate gradients for spiking networks (Neftci, Mostafa and Zenke 2019,
arXiv:1901.09948), one derivative further up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

_SHARPNESS = 10.0  # of the smooth step: it rises over about a tenth of the std; chosen on training


def lent_curvature(x: Tensor, share: float) -> Tensor:
    """share · k σ′(k x), the second derivative that max(x, 0) is taken to have.

    Args:
        x: (N, …), in any unit, as k = 10 / std of x, each image with its own. σ: the logistic
            function.
        share: 1 for as much as a step of that width has. 0 for an image whose x are all equal.
    """
    spread = x.flatten(1).std(dim=1, correction=0)
    steepness = torch.where(spread > 0, _SHARPNESS / spread, 0.0).view(-1, *[1] * (x.dim() - 1))
    risen = (steepness * x).sigmoid_()
    return (share * steepness) * risen.mul_(1 - risen)


@contextmanager
def lending(curvature: float) -> Iterator[None]:
    """Automatic differentiation lends this share of `lent_curvature` to every ReLU called inside.

    Modules and functions, leaky ones too, also under `torch.func`. Each call's first dimension
    counts images, which share no std; under `torch.func.vmap` it is 1.
    """
    if not curvature:
        yield
        return
    with _Lending(curvature):
        yield


class _Lending(TorchFunctionMode):
    def __init__(self, curvature: float) -> None:
        super().__init__()
        self.curvature = curvature

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if func in _RELUS:
            return self._lent(args[0], 0.0)
        if func in _LEAKY:
            return self._lent(args[0], args[1] if len(args) > 1 else given["negative_slope"])
        return func(*args, **given)

    def _lent(self, x: Tensor, below: float) -> Tensor:
        # The square is 0 and has no slope here, but the curvature that stands before it.
        here = x.detach()
        bent = lent_curvature(here, self.curvature * (1 - below))
        return F.leaky_relu(x, below) + bent / 2 * (x - here).square()


# Those that overwrite may work on a copy: what they return is what a network goes on with.
_RELUS = {F.relu, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_}
_LEAKY = {F.leaky_relu}
