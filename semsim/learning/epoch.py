"""One epoch of a training: draw triplets, take steps, look at the held-out originals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import TrainingFailedError
from semsim.base.progress import Progress, Report
from semsim.learning.batches import crop_and_flip, mildly_changed, take
from semsim.learning.diagnostics import (
    Distances,
    EpochRecord,
    auc,
    distances,
    triplet_distances,
)
from semsim.learning.loss import LOSSES, identity_loss
from semsim.learning.settings import TrainSettings
from semsim.learning.triplets import ImageIndex, JudgedOriginal
from semsim.metrics.network import SemSimModel

T = TypeVar("T")

# Triplets of one original share its image and reconstructions, and a batch passes each image once:
# the fewer originals in a batch, the faster. Batch normalisation and the pooled loss need several.
# With four a batch of the preset "pooled" is whole originals, as those of "code" and "paper" are.
ORIGINALS_A_BATCH = 4


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Triplets of one epoch, in the order in which batches are cut from them.

    Attributes:
        triplets: (T, 3) int, original, nearer and farther reconstruction, as numbers of images.
        weights: (T,) float32 in (0, 1], how much each counts.
    """

    triplets: np.ndarray
    weights: np.ndarray


def draw(
    index: ImageIndex,
    originals: Sequence[JudgedOriginal],
    settings: TrainSettings,
    rng: np.random.Generator,
    features: Tensor | None = None,
) -> Draw:
    """As many triplets of every original as the settings say, never of two originals.

    Those of one original come together, as far as a batch of `settings.batch_size` then still holds
    triplets of `ORIGINALS_A_BATCH` originals, where it is no smaller and there are so many.

    Args:
        features: (N, d), by number of image; semi-hard mining needs them.
    """
    count = settings.triplets_per_original
    piles = []
    for original in originals:
        if settings.mining == "semi-hard" and features is not None:
            chosen = _mined(index, original, settings, rng, features)
        elif settings.ordering == "majority":
            chosen = _balanced(original, count, rng)
        else:
            chosen = _evenly(original.ordered(settings.ordering), count, rng)
        anchor = index.number(original.image)
        rows = [(anchor, index.number(p), index.number(n), weight) for p, n, weight in chosen]
        piles.append(rng.permutation(np.array(rows, dtype=np.float64)))
    table = _dealt(piles, settings.batch_size, rng)
    return Draw(triplets=table[:, :3].astype(np.int64), weights=table[:, 3].astype(np.float32))


def semi_hard(plus: float, minus: np.ndarray, margin: float, rng: np.random.Generator) -> int:
    """Choose a candidate, by distances `minus`, (K,), to set against a positive at `plus`.

    By chance one that is farther than the positive but inside the margin (Schroff et al. 2015,
    §3.2); where there is none, the mildest of those that are nearer, else the nearest.
    """
    inside = np.flatnonzero((minus > plus) & (minus < plus + margin))
    if len(inside) > 0:
        return int(rng.choice(inside))
    nearer = np.flatnonzero(minus <= plus)
    return int(nearer[minus[nearer].argmax()]) if len(nearer) > 0 else int(minus.argmin())


def _dealt(piles: Sequence[np.ndarray], batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """The rows of all piles, each (triplets of one original, 4), in an order fit for batches.

    Piles go round in tables of `ORIGINALS_A_BATCH` or a few more, each putting down in its turn as
    many rows as leave room for that many piles in a batch.
    """
    handful = max(1, batch_size // ORIGINALS_A_BATCH)
    tables = max(1, len(piles) // ORIGINALS_A_BATCH)
    dealt = [
        piles[pile][start : start + handful]
        for table in np.array_split(rng.permutation(len(piles)), tables)
        for start in range(0, len(piles[0]), handful)
        for pile in table
    ]
    return np.concatenate(dealt)


def _balanced(
    original: JudgedOriginal, count: int, rng: np.random.Generator
) -> list[tuple[Path, Path, float]]:
    """Each reconstruction as often as any other of its kind, give or take once, however many."""
    positives = _evenly(original.recognisable, count, rng)
    negatives = _evenly(original.unrecognisable, count, rng)
    return [(p, n, 1.0) for p, n in zip(positives, negatives, strict=True)]


def _mined(
    index: ImageIndex,
    original: JudgedOriginal,
    settings: TrainSettings,
    rng: np.random.Generator,
    features: Tensor,
) -> list[tuple[Path, Path, float]]:
    away = _distances(index, original, features)
    rivals: dict[Path, list[tuple[Path, float]]] = {}
    for nearer, farther, weight in original.ordered(settings.ordering):
        rivals.setdefault(nearer, []).append((farther, weight))
    chosen = []
    for nearer in _evenly(tuple(rivals), settings.triplets_per_original, rng):
        minus = np.array([away[path] for path, _ in rivals[nearer]])
        farther, weight = rivals[nearer][semi_hard(away[nearer], minus, settings.margin, rng)]
        chosen.append((nearer, farther, weight))
    return chosen


def _distances(index: ImageIndex, original: JudgedOriginal, features: Tensor) -> dict[Path, float]:
    paths = original.images[1:]
    rows = features[[index.number(path) for path in paths]]
    from_original = torch.linalg.vector_norm(rows - features[index.number(original.image)], dim=1)
    return dict(zip(paths, from_original.tolist(), strict=True))


def _evenly(items: Sequence[T], count: int, rng: np.random.Generator) -> list[T]:
    rounds = -(-count // len(items))
    order = np.concatenate([rng.permutation(len(items)) for _ in range(rounds)])
    return [items[i] for i in order[:count]]


_SCORING_BATCH = 256  # images whose features are held at once
# Each use of chance has a stream of its own, so that none shifts another.
SPLIT, _TRIPLETS, _AUGMENTATION, _IDENTITY, _NETWORK, SHUFFLE = range(6)


@dataclass(frozen=True, kw_only=True)
class EpochMaterial:
    """Material of a training: images by number, and the originals on either side."""

    table: Tensor
    index: ImageIndex
    training: tuple[JudgedOriginal, ...]
    held_out: tuple[JudgedOriginal, ...]


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """Each different image of N triplets once, and which of them every triplet is made of.

    Attributes:
        images: (M, C, S, S), M ≤ 3N, and behind them mildly changed originals where they are asked
            for.
        roles: (3, N) or (4, N) int, rows of `images`: originals, nearer and farther
            reconstructions, and the changed originals.
        weights: (N,).
    """

    images: Tensor
    roles: Tensor
    weights: Tensor


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """Measurements of one step.

    Attributes:
        weight: Of its triplets together.
    """

    n: int
    weight: float
    loss: float
    measured: Distances
    identity: float | None


def stream(settings: TrainSettings, use: int, epoch: int = 0) -> np.random.Generator:
    """The generator for one use of chance in one epoch."""
    return np.random.default_rng([settings.seed, use, epoch])


def run_epoch(
    model: SemSimModel,
    optimizer: torch.optim.Optimizer,
    material: EpochMaterial,
    settings: TrainSettings,
    report: Report,
    epoch: int,
) -> EpochRecord:
    """Epoch number `epoch`, counted from 0; what it leaves depends on its arguments only.

    Raises `TrainingFailedError` where the loss leaves the finite numbers.
    """
    for group in optimizer.param_groups:
        group["lr"] = settings.lr_at(epoch)
    drawn = _draw(model, material, settings, epoch)
    batches = -(-len(drawn.triplets) // settings.batch_size)
    seen = []
    model.train()
    if settings.batch_norm == "frozen":
        _freeze_averages(model)
    with torch.random.fork_rng(devices=_cuda_devices(model)):  # for networks with dropout
        torch.manual_seed(int(stream(settings, _NETWORK, epoch).integers(2**62)))
        rngs = [stream(settings, use, epoch) for use in (_AUGMENTATION, _IDENTITY)]
        for number in range(batches):
            batch = _batch(material.table, drawn, settings, number, rngs)
            seen.append(_step(model, optimizer, batch, settings))
            _check_finite(seen[-1].loss, epoch, settings)
            report(_batch_progress(epoch, number + 1, batches, settings, seen[-1].loss))
    return _record(epoch, seen, settings.margin, validate(model, material))


def embed(model: SemSimModel, table: Tensor, numbers: np.ndarray) -> Tensor:
    """Features, (N, d) on the CPU, as scoring would make them; NaN to other numbers.

    Args:
        table: (N, 3, S, S) uint8.
        numbers: (M,) int, of the images that are asked about.
    """
    features = torch.full((len(table), model.width), torch.nan)
    model.eval()
    with torch.inference_mode():
        for part in np.array_split(numbers, -(-len(numbers) // _SCORING_BATCH)):
            features[torch.from_numpy(part)] = model(take(table, part).to(model.mean.device)).cpu()
    return features.clone()


def _freeze_averages(model: SemSimModel) -> None:
    """Training then sees the features that scoring will see, however small a batch is."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()


def _draw(model: SemSimModel, material: EpochMaterial, settings: TrainSettings, epoch: int) -> Draw:
    features = None
    if settings.mining == "semi-hard":
        paths = dict.fromkeys(path for o in material.training for path in o.images)
        numbers = np.array([material.index.number(path) for path in paths])
        features = embed(model, material.table, numbers)
    rng = stream(settings, _TRIPLETS, epoch)
    return draw(material.index, material.training, settings, rng, features)


def _batch(
    table: Tensor,
    drawn: Draw,
    settings: TrainSettings,
    number: int,
    rngs: Sequence[np.random.Generator],
) -> _Batch:
    rows = slice(number * settings.batch_size, (number + 1) * settings.batch_size)
    triplets = drawn.triplets[rows]
    numbers, roles = np.unique(triplets.T, return_inverse=True)
    roles = roles.reshape(3, -1)
    images = take(table, numbers)
    augmentation, identity = rngs
    if settings.augmentation != "none":
        alike = _originals(roles) if settings.augmentation == "joint" else None
        images = crop_and_flip(images, augmentation, alike)
    if settings.identity_weight > 0:
        originals, changed = np.unique(roles[0], return_inverse=True)
        roles = np.vstack([roles, len(images) + changed])
        images = torch.cat([images, mildly_changed(images[torch.from_numpy(originals)], identity)])
    weights = torch.from_numpy(drawn.weights[rows])
    return _Batch(images=images, roles=torch.from_numpy(roles), weights=weights)


def _originals(roles: np.ndarray) -> np.ndarray:
    """For each image of a batch the row of its original, (M,); an original's is its own."""
    found = np.empty(roles.max() + 1, dtype=np.int64)
    found[roles] = roles[0]
    return found


def _step(
    model: SemSimModel,
    optimizer: torch.optim.Optimizer,
    batch: _Batch,
    settings: TrainSettings,
) -> _Seen:
    """One update."""
    device = model.mean.device
    # One forward pass for all roles, so that batch normalisation sees one distribution, in which
    # each image counts once in however many triplets it is.
    with torch.autocast(device.type, torch.bfloat16, enabled=settings.mixed_precision):
        features = model(batch.images.to(device))
    # Distances are small beside the features, so they need all the digits there are.
    # Unlike indexing, a lookup adds up the gradients of repeats in the same order every time.
    anchors, positives, negatives, *changed = F.embedding(batch.roles.to(device), features.float())
    weights = batch.weights.to(device)
    loss = LOSSES[settings.loss](margin=settings.margin)(anchors, positives, negatives, weights)
    identity = identity_loss(anchors, changed[0]) if changed else None
    if identity is not None:
        loss = loss + settings.identity_weight * identity
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return _Seen(
        n=len(batch.weights),
        weight=float(batch.weights.sum()),
        loss=loss.item(),
        measured=distances(*(part.detach() for part in (anchors, positives, negatives))),
        identity=None if identity is None else identity.item(),
    )


def validate(model: SemSimModel, material: EpochMaterial) -> dict[str, float | None]:
    """Measure the held-out originals; values by name in `EpochRecord`, empty without any."""
    triplets = material.index.every(material.held_out)
    pairs, recognisable = material.index.judged(material.held_out)
    if len(pairs) == 0:
        return {}
    features = embed(model, material.table, np.unique(pairs))
    rows = torch.from_numpy(pairs)
    found: dict[str, float | None] = {
        "validation_auc": auc(
            torch.linalg.vector_norm(features[rows[:, 0]] - features[rows[:, 1]], dim=1),
            recognisable,
        )
    }
    if len(triplets) > 0:
        measured = triplet_distances(features, triplets)
        found["validation_d_plus"] = float(measured.plus.mean())
        found["validation_d_minus"] = float(measured.minus.mean())
        found["validation_accuracy"] = measured.accuracy()
    return found


def _record(
    epoch: int, seen: Sequence[_Seen], margin: float, held_out: dict[str, float | None]
) -> EpochRecord:
    def mean(values: Sequence[float]) -> float:
        return float(np.average(values, weights=[step.n for step in seen]))

    identity = [step.identity for step in seen if step.identity is not None]
    return EpochRecord(
        epoch=epoch + 1,
        loss=float(np.average([s.loss for s in seen], weights=[s.weight for s in seen])),
        d_plus=mean([float(step.measured.plus.mean()) for step in seen]),
        d_minus=mean([float(step.measured.minus.mean()) for step in seen]),
        violated=mean([step.measured.violated(margin) for step in seen]),
        norm=mean([step.measured.norm for step in seen]),
        identity=mean(identity) if identity else None,
        **held_out,
    )


def _check_finite(loss: float, epoch: int, settings: TrainSettings) -> None:
    if not np.isfinite(loss):
        raise TrainingFailedError(
            f"The loss became {loss} in epoch {epoch + 1}. Train again with a learning rate "
            f"below {settings.lr:g}."
        )


def _batch_progress(
    epoch: int, number: int, batches: int, settings: TrainSettings, loss: float
) -> Progress:
    return Progress(
        done=epoch * batches + number,
        total=settings.epochs * batches,
        note=f"epoch {epoch + 1} of {settings.epochs}",
        values={"epoch": epoch + number / batches, "loss": loss},
    )


def _cuda_devices(model: SemSimModel) -> list[torch.device]:
    device = model.mean.device
    return [device] if device.type == "cuda" else []
