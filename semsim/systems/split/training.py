"""One resumable loop for everything that is trained in split inference, attacks too."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import whole
from semsim.base.storage.records import guarded
from semsim.systems.split.networks import AnyTask, Examples, SplitNetwork, task_of
from semsim.systems.split.plan import SplitTrainSettings
from semsim.targets.train import batches_of

Loss = Callable[[Tensor, Tensor], Tensor]  # inputs (N, …), labels (N, …) → a number
_WARM_UP = 0.3  # share of the steps in which the step size rises, as in torch's OneCycleLR


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Bench on which defences train: network, examples, settings, seed, device.

    Attributes:
        folder: Keeps half-finished stages, so that they can be resumed; None keeps nothing.
    """

    network: SplitNetwork
    data: Examples
    settings: SplitTrainSettings
    seed: int
    device: torch.device
    folder: Path | None = None

    @property
    def task(self) -> AnyTask:
        """Task that the networks are made for."""
        return task_of(self.data)


@dataclass(frozen=True, kw_only=True)
class TrainingStage:
    """One training: what it is called, how long, how fast, from which seed.

    Attributes:
        checkpoint: Written after each epoch and gone on from when it is there; None keeps nothing.
    """

    name: str
    epochs: int
    lr: float
    batch_size: int
    seed: int
    checkpoint: Path | None = None


def fit(
    trained: nn.Module,
    loss: Loss,
    data: Examples,
    stage: TrainingStage,
    report: Report = silent,
) -> float:
    """Train those parameters of `trained` that need a gradient; returns the last epoch's mean loss.

    Args:
        trained: Its mode is the caller's; what is to stay as it is must be in eval mode and need no
            gradient. On a CPU the same seed gives the same weights, interrupted or not.

    Raises:
        SettingsError: Where the loss is no longer finite, or as `batches_of` does.
    """
    parameters = [p for p in trained.parameters() if p.requires_grad]
    device = parameters[0].device
    optimiser = torch.optim.Adam(parameters, lr=stage.lr)
    rng = torch.Generator().manual_seed(stage.seed)
    done, mean = _restore(stage, trained, optimiser, rng)
    inputs, labels = data.inputs.to(device), data.labels.to(device)

    def one() -> Tensor:
        return loss(inputs[:1], labels[:1])

    for epoch in range(done, stage.epochs):
        total = 0.0
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(stage.seed + epoch)  # dropout draws from the global generator only
            order = torch.randperm(len(data), generator=rng).to(device)
            parts = batches_of(order, stage.batch_size, trained, one)
            batches = len(parts)
            for number, batch in enumerate(parts):
                rate = _one_cycle((epoch * batches + number) / (stage.epochs * batches))
                total += _step(loss(inputs[batch], labels[batch]), optimiser, stage.lr * rate)
        mean = total / batches
        if not math.isfinite(mean):
            raise SettingsError(f"{stage.name} diverged; take a smaller lr than {stage.lr:g}.")
        _keep(stage, epoch + 1, mean, trained, optimiser, rng)
        note = f"{stage.name}: epoch {epoch + 1} of {stage.epochs}, loss {mean:.3f}"
        report(Progress(epoch + 1, stage.epochs, note, {"loss": mean}))
    return mean


def freeze(module: nn.Module) -> nn.Module:
    """`module` in eval mode and without gradients, so that nothing about it changes any more."""
    return module.eval().requires_grad_(False)


def _step(loss: Tensor, optimiser: torch.optim.Optimizer, lr: float) -> float:
    optimiser.param_groups[0]["lr"] = lr
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return loss.item()


def _one_cycle(share: float) -> float:
    """The step size, 0.04 to 1, after `share` of the steps (Smith and Topin 2019)."""
    if share < _WARM_UP:
        return 0.04 + 0.96 * (1 - math.cos(math.pi * share / _WARM_UP)) / 2
    return (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP))) / 2


def _keep(
    stage: TrainingStage,
    epoch: int,
    mean: float,
    trained: nn.Module,
    optimiser: torch.optim.Optimizer,
    rng: torch.Generator,
) -> None:
    if stage.checkpoint is None:
        return
    state = {
        "stage": _mark(stage),
        "epoch": epoch,
        "mean": mean,
        "trained": trained.state_dict(),
        "optimiser": optimiser.state_dict(),
        "rng": rng.get_state(),
    }
    write_tensors(stage.checkpoint, state)


def _restore(
    stage: TrainingStage, trained: nn.Module, optimiser: torch.optim.Optimizer, rng: torch.Generator
) -> tuple[int, float]:
    """Epochs that are done already, and the mean loss of the last."""
    if stage.checkpoint is None or not stage.checkpoint.exists():
        return 0, math.nan
    state = read_tensors(stage.checkpoint)
    if state.get("stage") != _mark(stage):
        raise SettingsError(f"{stage.checkpoint} belongs to another training; remove it.")
    trained.load_state_dict(state["trained"])
    optimiser.load_state_dict(state["optimiser"])
    rng.set_state(state["rng"])
    return int(state["epoch"]), float(state["mean"])


def write_tensors(path: Path, content: dict[str, Any]) -> None:
    """Keep tensors and plain values at `path`, whole or not at all."""
    with whole(path) as part:
        torch.save(content, part)


def read_tensors(path: Path) -> dict[str, Any]:
    """Read what `write_tensors` kept; raises `WeightsError` where it is broken."""
    with guarded(path, WeightsError, "cannot be read ({}); remove it."):
        return dict(torch.load(path, weights_only=True, map_location="cpu"))


def _mark(stage: TrainingStage) -> str:
    return f"{stage.name}/{stage.epochs}/{stage.lr:g}/{stage.batch_size}/{stage.seed}"
