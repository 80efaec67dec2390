"""`semsim.attack`: what one gradient of any torch classifier gives away of one image."""

import copy
import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from semsim.attacks.as_text import read_attack
from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.observe import attacked
from semsim.attacks.parameters import as_buffers, check_layers, shared_names
from semsim.base.errors import AttackFailedError, DataError
from semsim.base.progress import Report, silent
from semsim.defences import read_strategy
from semsim.device import exact_device, pick_device
from semsim.metrics.base import checked_images, described
from semsim.targets.layers import (
    OVERWRITES,
    idle_parameters,
    overwrites_what_is_read,
    plain_attention,
    twice_differentiable,
)
from semsim.types import Reconstruction


class Classifier(nn.Module):
    """A copy of any torch classifier as attacks need it; the original is left alone.

    Attributes:
        network: Normalised images to logits.
        mean: One value a channel.
        std: As `mean`.
        shared: As for `attack`.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        mean: Sequence[float],
        std: Sequence[float],
        shared: str | Sequence[str] | None,
    ) -> None:
        super().__init__()
        self.network = _ready(network)
        _share(self.network, shared)
        kind = next(self.network.parameters()).dtype
        self.register_buffer("mean", torch.as_tensor(mean, dtype=kind).view(1, -1, 1, 1))
        self.register_buffer("std", torch.as_tensor(std, dtype=kind).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes) of images (N, C, H, W) in [0, 1]."""
        with plain_attention():
            logits: Tensor = self.network((images - self.mean) / self.std)
        return logits

    def keep_idle(self, logits: Tensor) -> None:
        """Make buffers of frozen parameters and of those that do not change logits, (N, classes).

        No participant has a gradient of them, as of the auxiliary heads of an Inception. Raises
        `DataError` where none is left.
        """
        as_buffers(self, idle_parameters(self, logits))
        if not _count(self):
            raise DataError(
                "No parameter of the model is shared, so there is no gradient to attack: all that "
                'the logits depend on are frozen. Name some, as shared="all" or shared=["head"].'
            )


def _count(network: nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


def _share(network: nn.Module, shared: str | Sequence[str] | None) -> None:
    """Freeze all parameters of `network` but those that `shared` names; as they are for None."""
    if shared is None:
        return
    names = shared_names(network, [shared] if isinstance(shared, str) else shared)
    for name, one in network.named_parameters():
        one.requires_grad_(name in names)


def _ready(network: nn.Module) -> nn.Module:
    """A copy that can be differentiated twice, in eval mode; `DataError` where none can be made."""
    if not isinstance(network, nn.Module):
        raise DataError(f"model must be a torch.nn.Module; got {described(network)}.")
    try:
        made = twice_differentiable(copy.deepcopy(network)).eval()
        count, kinds = _count(made), {one.dtype for one in made.parameters()}
    except (RuntimeError, ValueError, TypeError) as error:
        raise DataError(f"The model cannot be copied to be attacked: {error}") from error
    if not count:
        raise DataError("The model has no parameter, so there is no gradient to attack.")
    return made.float() if kinds & {torch.float16, torch.bfloat16} else made


@torch.inference_mode(False)
@torch.enable_grad()
def attack(
    model: nn.Module,
    image: Tensor,
    label: int,
    attack: str = "invgrad",
    *,
    defence: str = "none",
    shared: str | Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    seed: int = 0,
    device: str = "auto",
    report: Report = silent,
) -> Reconstruction:
    """The image an eavesdropper gets back from the gradient of one private image.

    Args:
        model: Any torch classifier, (N, C, H, W) to logits (N, classes); a copy is put into eval
            mode, in float32 where it is in half precision, and the model left alone.
        image: (C, H, W) float32 or half precision in [0, 1].
        label: Its class index, a whole number.
        attack: As on the command line, `invgrad`, `invgrad:fast,steps=200`, `prior`, … .
        defence: What the participant does to its images and gradient, as `crop-flip` or
            `gradient-noise:std=0.01`.
        shared: The parameters whose gradient is seen, as for
            `semsim.attacks.parameters.shared_names`: "all", "last", a name, a pattern, several;
            left out, those with `requires_grad`. Of these, those count that the logits depend on.
        mean: One value a channel, by which images are normalised for the model; left out, it
            normalises itself.
        std: As `mean`.
        seed: Of the defence and the attack's start.
        device: "auto", "cpu", "cuda", "mps"; where that has no float64, a model of it is on the
            CPU. It computes gradients under `torch.no_grad` and `torch.inference_mode` as well.

    Returns:
        A `semsim.types.Reconstruction`: `image` (C, H, W) in [0, 1] on the CPU, the attack's own
        distance beside that of a grey image, and `seen_parameters`, the share of the model's
        parameters whose gradient was seen; which paper an attack is from, its class in
        `semsim.attacks` says.

    Raises:
        DataError: For another image or label, and where nothing is shared or its gradient is 0.
        SettingsError: For an attack, defence or parameter that there is not.
        UnknownNameError: For an attack, defence or parameter that there is not.
        AttackFailedError: Where the attack diverged.

    >>> import torch, semsim
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
    >>> found = semsim.attack(model, torch.rand(3, 8, 8), 1, "invgrad:fast,steps=5")
    >>> found.image.shape
    torch.Size([3, 8, 8])
    """
    # One that was made in inference mode takes no part in gradients; its copy does.
    image = checked_images("image", image, ()).detach().clone()
    tool, shield = read_attack(attack), read_strategy(defence)
    by = (_per_channel("mean", mean, image), _per_channel("std", std, image))
    made = Classifier(model, *by, shared)
    place = pick_device(device)
    made = made.to(exact_device(place) if made.mean.dtype == torch.float64 else place)
    classes = _classes(made, image)
    if overwrites_what_is_read(model, (image[None].to(made.mean) - made.mean) / made.std):
        raise DataError(f"A layer of the model {OVERWRITES}")
    label = _class(label, classes)
    check_layers(tool, model, {name for name, _ in made.network.named_parameters()})
    try:
        _check_gradient(made, image, label)
        ((_, found),) = attacked(made, [(image, label)], shield, tool, [seed], report)
    except RuntimeError as error:
        if "is not implemented" not in str(error):
            raise
        raise DataError(f"The model cannot be differentiated twice, as it must: {error}") from error
    if isinstance(found, AttackFailedError):
        raise found
    share = _count(made) / _count(model)
    return replace(found, image=found.image.detach().cpu(), seen_parameters=share)


def _per_channel(name: str, given: Sequence[float] | None, image: Tensor) -> Sequence[float]:
    """Mean or standard deviation, one value a channel; 0 or 1 where it is left out."""
    usual = [float(name == "std")]
    found = usual if given is None else torch.as_tensor(given).flatten().tolist()
    good = all(map(math.isfinite, found)) and (name == "mean" or min(found, default=0) > 0)
    if len(found) not in (1, len(image)) or not good:
        raise DataError(f"{name} must be {len(image)} numbers, std above 0; got {given!r}.")
    return found


def _class(label: Any, classes: int) -> int:
    """The class index that `label` is; `DataError` for what is no whole number or no class."""
    no_number = isinstance(label, bool) or str(getattr(label, "dtype", "")).endswith("bool")
    try:
        index = -1 if no_number else operator.index(label)
    except (TypeError, ValueError):
        index = -1
    if not 0 <= index < classes:
        raise DataError(
            f"label must be a whole number from 0 to {classes - 1}, a class of the model; got "
            f"{described(label)}."
        )
    return index


def _check_gradient(model: Classifier, image: Tensor, label: int) -> None:
    """`DataError` where the gradient that is shared gives nothing to attack."""
    place = model.mean.device
    seen = parameter_gradients(
        model, image[None].to(model.mean), torch.tensor([label], device=place)
    )
    if not all(bool(one.isfinite().all()) for one in seen):
        raise DataError("The gradient of this image is not finite: look at the model's weights.")
    if not any(bool(one.any()) for one in seen):
        raise DataError(
            "The gradient of this image is 0, so there is nothing to attack: the model is sure of "
            "its class, or no layer before the shared parameters lets anything through."
        )


def _classes(model: Classifier, image: Tensor) -> int:
    try:
        logits = model(image[None].to(model.mean))
    except (RuntimeError, ValueError) as error:
        raise DataError(f"The model cannot take an image {tuple(image.shape)}: {error}") from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 1:
        raise DataError("The model must give logits, (N, classes), of images (N, C, H, W).")
    if logits.shape[1] == 1:
        raise DataError(
            "The model gives one logit, and the gradient of its cross-entropy is 0: there is "
            "nothing to attack. Give it two classes: torch.cat([-logit, logit], 1) / 2 has the "
            "same binary cross-entropy."
        )
    model.keep_idle(logits)
    return logits.shape[1]
