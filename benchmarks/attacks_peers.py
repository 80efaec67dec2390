"""What our gradient inversion is measured against: a plain loop, and the library `breaching`."""

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.types import GradientObservation


def plain_loop(seen: GradientObservation, steps: int, rng: torch.Generator) -> Tensor:
    """InvGrad on one image as the papers' code has it, (3, H, W) in [0, 1].

    The cosine is summed tensor by tensor, and `backward()` computes and adds up the gradient of
    every parameter too, which nobody reads.
    """
    model, mean, std = seen.model, seen.model.mean, seen.model.std
    parameters = tuple(model.parameters())
    labels = torch.tensor([seen.label], device=mean.device)
    low, high = -mean / std, (1 - mean) / std
    x = torch.randn((1, *seen.shape), generator=rng).to(mean.device).requires_grad_(True)
    optimiser = torch.optim.Adam([x], lr=0.1)
    milestones = [round(steps * part / 8) for part in (3, 5, 7)]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.1)

    def closure() -> Tensor:
        optimiser.zero_grad()
        for parameter in parameters:
            parameter.grad = None
        loss = F.cross_entropy(model(x * std + mean), labels)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        dot = found = wanted = torch.zeros((), device=x.device)
        for ours, theirs in zip(gradients, seen.gradients, strict=True):
            dot = dot + (ours * theirs).sum()
            found = found + ours.pow(2).sum()
            wanted = wanted + theirs.pow(2).sum()
        objective = 1 - dot / found.sqrt() / wanted.sqrt()
        across = (x[..., 1:] - x[..., :-1]).abs().mean()
        down = (x[..., 1:, :] - x[..., :-1, :]).abs().mean()
        objective = objective + 1e-4 * (across + down)
        objective.backward()
        if x.grad is not None:
            x.grad.sign_()
        return objective

    for _ in range(steps):
        optimiser.step(closure)
        schedule.step()
        with torch.no_grad():
            x.data = torch.max(torch.min(x, high), low)
    for parameter in parameters:
        parameter.grad = None
    return (x.detach() * std + mean)[0].clamp(0, 1)


def has_breaching() -> bool:
    return find_spec("breaching") is not None


def breaching_attack(
    seen: GradientObservation,
    steps: int,
    name: str = "invertinggradients",
    overrides: Sequence[str] = (),
) -> Callable[[], Tensor]:
    """A call that runs an attack of breaching's on `seen` for `steps` steps.

    name: its configuration there. overrides: settings of it, as Hydra takes them. What is called
    returns the image, (3, H, W) in [0, 1], and draws from torch's own generator.
    """
    logging.disable(logging.INFO)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        import breaching

        config = breaching.get_attack_config(name, [f"optim.max_iterations={steps}", *overrides])
    mean, std = seen.model.mean, seen.model.std
    net = _OnNormalised(seen.model)
    device = {"dtype": torch.float, "device": mean.device}
    attacker = breaching.attacks.prepare_attack(net, nn.CrossEntropyLoss(), config, device)
    facts = SimpleNamespace(
        shape=seen.shape,
        mean=mean.flatten().tolist(),
        std=std.flatten().tolist(),
        modality="vision",
    )
    model_sent = {
        "parameters": list(net.parameters()),
        "buffers": list(net.buffers()),
        "metadata": facts,
    }
    about = {
        "num_data_points": 1,
        "labels": torch.tensor([seen.label], device=mean.device),
        "local_hyperparams": None,
    }
    answer = {"gradients": list(seen.gradients), "buffers": None, "metadata": about}

    def attacked() -> Tensor:
        found, _ = attacker.reconstruct([model_sent], [answer], server_secrets={})
        return (found["data"].detach() * std + mean)[0].clamp(0, 1)

    return attacked


class _OnNormalised(nn.Module):
    """A target that takes images already normalised, as breaching hands them in."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.body, self.head = model.body, model.head

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(images))
        return logits
