"""Statistics that batch norm takes of one image, and normalising by them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from semsim.base.errors import SettingsError
from semsim.types import AttackedModel, BatchNormStatistics

BatchNorm = Literal["eval", "train"]  # normalise by running statistics, or by the image's own


def moments(activations: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each channel of each image: (N, C, H, W) to two (N, C)."""
    variance, mean = torch.var_mean(activations, dim=(2, 3), correction=0)
    return mean, variance


def normalised_by_itself(activations: Tensor, eps: float) -> Tensor:
    """Each channel of each image, (N, C, H, W), less its own mean, over its own deviation.

    Args:
        eps: Added to the variance, as of the layer.

    Returns:
        The same shape; differentiable.
    """
    mean, variance = (m[:, :, None, None] for m in moments(activations))
    return (activations - mean) * (variance + eps).rsqrt()


def batch_norm_layers(model: AttackedModel) -> list[nn.BatchNorm2d]:
    """Every `BatchNorm2d` of `model`, in the order of `model.modules()`."""
    if not isinstance(model, nn.Module):
        return []
    return [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]


@contextmanager
def batch_norm_mode(model: AttackedModel, mode: BatchNorm, *, alone: bool = True) -> Iterator[None]:
    """Inside, batch norm works as `mode` says, and every other layer as in eval mode.

    "train": as in training on a batch of this one image, so that images given together do not
    mix; where they are not `alone`, as in training on the batch of them all. So does a layer
    without running statistics, whatever `mode` is.
    Running statistics are never changed, and every layer goes back to the mode it was in.
    Raises `SettingsError` where a layer of an image that is alone has no places to take its own
    statistics over.
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    trained = [module for module in modules if module.training]
    every = [module for module in modules if isinstance(module, _BatchNorm)]
    if alone:
        flat = [layer for layer in every if not isinstance(layer, nn.BatchNorm2d)]
        if flat and mode == "train":
            raise SettingsError(
                f"The network has a {type(flat[0]).__name__}, which has no statistics of one image "
                "that is alone: share a batch or an update, or take batch_norm=eval."
            )
        every = [layer for layer in every if layer not in flat]
    layers = [layer for layer in every if mode == "train" or layer.running_mean is None]
    by = _by_its_own_statistics if alone else _by_those_of_the_batch
    handles = [layer.register_forward_hook(by) for layer in layers]
    for module in trained:
        module.training = False
    try:
        yield
    finally:
        for module in trained:
            module.training = True
        for handle in handles:
            handle.remove()


def moments_of_each(
    model: AttackedModel, images: Tensor, mode: BatchNorm
) -> list[tuple[Tensor, Tensor]]:
    """The `moments` of each image at the input of every layer of `running_statistics`, in order.

    Args:
        images: (N, C, H, W) in [0, 1]. A layer that runs several times counts with its last run,
            and one that never runs, as of an auxiliary head, with its running statistics.
    """
    known = _running(model)
    found = {
        layer: (mean.expand(len(images), -1), variance.expand(len(images), -1))
        for layer, (mean, variance) in known.items()
    }

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        found[layer] = moments(inputs[0])

    with batch_norm_mode(model, mode):
        handles = [layer.register_forward_hook(keep) for layer in known]
        try:
            model(images)
        finally:
            for handle in handles:
                handle.remove()
    return list(found.values())


@torch.no_grad()
def statistics_of(model: AttackedModel, image: Tensor, mode: BatchNorm) -> BatchNormStatistics:
    """Return the statistics of one image, (1, C, H, W) in [0, 1], at every batch norm layer.

    Args:
        mode: Of the layers while it passes.

    Returns:
        One (channels,) mean and variance a layer.
    """
    found = moments_of_each(model, image, mode)
    return BatchNormStatistics(
        means=tuple(mean[0] for mean, _ in found),
        variances=tuple(variance[0] for _, variance in found),
    )


def running_statistics(model: AttackedModel) -> BatchNormStatistics:
    """The running statistics, which are public with the model, as a guess at an image's own.

    Of every batch norm layer that keeps some, in the order of `model.modules()`.
    """
    found = _running(model).values()
    return BatchNormStatistics(
        means=tuple(mean for mean, _ in found), variances=tuple(variance for _, variance in found)
    )


def _running(model: AttackedModel) -> dict[nn.Module, tuple[Tensor, Tensor]]:
    """Mean and variance, (channels,) each, of every batch norm layer that keeps them, in order."""
    return {
        layer: (layer.running_mean.detach(), layer.running_var.detach())
        for layer in batch_norm_layers(model)
        if layer.running_mean is not None and layer.running_var is not None
    }


def _by_its_own_statistics(
    layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor
) -> Tensor | None:
    if not isinstance(layer, nn.BatchNorm2d):
        return None
    plain = normalised_by_itself(inputs[0], layer.eps)
    if not layer.affine:
        return plain
    return plain * layer.weight[:, None, None] + layer.bias[:, None, None]


def _by_those_of_the_batch(
    layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor
) -> Tensor | None:
    if not isinstance(layer, _BatchNorm):
        return None
    return F.batch_norm(
        inputs[0], None, None, layer.weight, layer.bias, training=True, eps=layer.eps
    )
