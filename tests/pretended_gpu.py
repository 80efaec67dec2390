"""A GPU as Apple makes them, pretended on the CPU: what is on it can be anything but float64."""

from typing import Any

import torch
from torch import Tensor, nn

_PLACE = torch.device("mps")
_NO_FLOAT64 = "Cannot convert a MPS Tensor to float64 dtype."
_TO_NUMPY = (Tensor.numpy, Tensor.__array__)


class OnGpu(Tensor):
    """A tensor that counts as on that GPU, and so does what is computed of it.

    Raises `TypeError`, as torch does there, where it would become float64 or be read as an array.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return _PLACE
        if func in _TO_NUMPY:
            raise TypeError("can't convert mps:0 device type tensor to numpy.")
        given = (*args, *kwargs.values())
        if func is Tensor.cpu or (func is Tensor.to and torch.device("cpu") in _devices(given)):
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs).as_subclass(Tensor)
        # Where the tensor is to stay, the real one stays on the CPU.
        if func is Tensor.to:
            args = tuple(torch.device("cpu") if _is_place(one) else one for one in args)
            kwargs = {name: one for name, one in kwargs.items() if not _is_place(one)}
        found = super().__torch_function__(func, types, args, kwargs)
        if isinstance(found, OnGpu) and found.dtype == torch.float64:
            raise TypeError(_NO_FLOAT64)
        return found


def _is_place(one: Any) -> bool:
    return isinstance(one, torch.device) and one == _PLACE


def _devices(given: tuple[Any, ...]) -> list[torch.device]:
    named = [one for one in given if isinstance(one, str | torch.device)]
    return [torch.device(one) for one in named]


def on_gpu(tensor: Tensor) -> Tensor:
    """The same numbers on the pretended GPU; `TypeError` for float64."""
    if tensor.dtype == torch.float64:
        raise TypeError(_NO_FLOAT64)
    return tensor.as_subclass(OnGpu)


class Answering(nn.Module):
    """A network whose answers are on the pretended GPU: the mean of each channel of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, images: Tensor, *others: Tensor) -> Tensor:
        """(N, C) of (N, C, H, W); of two batches their distance, (N, 1, 1, 1)."""
        means = images.mean((2, 3))
        if not others:
            return on_gpu(means)
        return on_gpu((means - others[0].mean((2, 3))).abs().mean(1)[:, None, None, None])
