"""`semsim.attack`: what one gradient of any torch classifier gives away of one image."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from semsim.attacks.as_text import read_attack
from semsim.campaign.cell import attacked
from semsim.defences.strategies import read_strategy
from semsim.device import exact_device, pick_device
from semsim.errors import AttackFailedError, DataError
from semsim.progress import Report, silent
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

    network: normalised images to logits. mean, std: one value a channel.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.network = _ready(network)
        kind = next(self.network.parameters()).dtype
        self.register_buffer("mean", torch.tensor(mean, dtype=kind).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=kind).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes) of images (N, C, H, W) in [0, 1]."""
        with plain_attention():
            logits: Tensor = self.network((images - self.mean) / self.std)
        return logits

    def keep_idle(self, logits: Tensor) -> None:
        """Make buffers of the parameters that logits, (N, classes), of this do not depend on.

        Nobody has a gradient of them to share, as of the auxiliary heads of an Inception.
        """
        for name in idle_parameters(self, logits):
            place, _, last = name.rpartition(".")
            module = self.get_submodule(place)
            value = getattr(module, last).detach()
            delattr(module, last)
            module.register_buffer(last, value)


def _ready(network: nn.Module) -> nn.Module:
    """A copy that can be differentiated twice, in eval mode; `DataError` where none can be made."""
    try:
        made = twice_differentiable(copy.deepcopy(network)).requires_grad_(True).eval()
        kinds = {one.dtype for one in made.parameters()}
    except (RuntimeError, ValueError, TypeError) as error:
        raise DataError(f"The model cannot be copied to be attacked: {error}") from error
    if not kinds:
        raise DataError("The model has no parameter, so there is no gradient to attack.")
    return made.float() if kinds & {torch.float16, torch.bfloat16} else made


def attack(
    model: nn.Module,
    image: Tensor,
    label: int,
    attack: str = "invgrad",
    *,
    defence: str = "none",
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    seed: int = 0,
    device: str = "auto",
    report: Report = silent,
) -> Reconstruction:
    """The image an eavesdropper gets back from the gradient of one private image.

    model: any torch classifier, (N, C, H, W) to logits (N, classes); a copy is put into eval mode,
    in float32 where it is in half precision, and the model left alone. image: (C, H, W) float32 in
    [0, 1]. label: its class index.
    attack: as on the command line, `invgrad`, `invgrad:fast,steps=200`, `prior`, … . defence: what
    the participant does to its images and gradient, as `crop-flip` or `gradient-noise:std=0.01`.
    mean, std: one value a channel, by which images are normalised for the model; left out, it
    normalises itself. seed: of the defence and the attack's start. device: "auto", "cpu", "cuda",
    "mps"; where that has no float64, a model of it is on the CPU.
    What is attacked is the gradient of all parameters that the logits depend on.
    Returns a `semsim.types.Reconstruction`: `image` (C, H, W) in [0, 1] on the CPU, and the
    attack's own distance beside that of a grey image; which paper an attack is from, its class in
    `semsim.attacks` says. Raises `DataError` for another image or
    label, `SettingsError` and `UnknownNameError` for an attack or defence that there is not,
    `AttackFailedError` where the attack diverged.

    >>> import torch, semsim
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
    >>> found = semsim.attack(model, torch.rand(3, 8, 8), 1, "invgrad:fast,steps=5")
    >>> found.image.shape
    torch.Size([3, 8, 8])
    """
    _check(image)
    tool, shield = read_attack(attack), read_strategy(defence)
    channels = len(image)
    made = Classifier(model, mean or (0.0,) * channels, std or (1.0,) * channels)
    place = pick_device(device)
    made = made.to(exact_device(place) if made.mean.dtype == torch.float64 else place)
    classes = _classes(made, image)
    if overwrites_what_is_read(model, (image[None].to(made.mean) - made.mean) / made.std):
        raise DataError(f"A layer of the model {OVERWRITES}")
    if not 0 <= label < classes:
        raise DataError(f"label must be 0 to {classes - 1}, a class of the model; got {label}.")
    try:
        ((_, found),) = attacked(made, [image], [label], shield, tool, [seed], report)
    except RuntimeError as error:
        if "is not implemented" not in str(error):
            raise
        raise DataError(f"The model cannot be differentiated twice, as it must: {error}") from error
    if isinstance(found, AttackFailedError):
        raise found
    return replace(found, image=found.image.detach().cpu())


def _check(image: Tensor) -> None:
    if not isinstance(image, Tensor) or image.ndim != 3 or image.dtype != torch.float32:
        raise DataError("image must be a torch tensor (C, H, W), float32 in [0, 1].")
    low, high = (float(bound) for bound in image.detach().aminmax())
    if not (low >= 0 and high <= 1):
        raise DataError(f"image must lie in [0, 1]; got values from {low:g} to {high:g}.")


def _classes(model: Classifier, image: Tensor) -> int:
    try:
        logits = model(image[None].to(model.mean))
    except (RuntimeError, ValueError) as error:
        raise DataError(f"The model cannot take an image {tuple(image.shape)}: {error}") from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 1:
        raise DataError("The model must give logits, (N, classes), of images (N, C, H, W).")
    model.keep_idle(logits)
    return logits.shape[1]
