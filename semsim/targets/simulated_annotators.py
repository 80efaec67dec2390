"""The jury: five classifiers that stand in for people until people have looked.

No two have the same family, training pictures or kind of bad pictures, and all have seen their
symbols moved about, mirrored and turned to nothing. What they are certain of is no verdict about
people; it makes the product usable before there is one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semsim.base.progress import Report, silent
from semsim.base.registry import Plugin, built
from semsim.datasets.symbols import Symbols
from semsim.targets import TARGETS
from semsim.targets.chance import target_facts
from semsim.targets.degrade import (
    coarse,
    covered,
    degrade,
    ghosted,
    mirrored,
    moved,
    shifted,
    speckled,
)
from semsim.targets.model import TargetModel, load_target, save_target
from semsim.targets.train import Degrade, Training, carry_out
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

NOTHING = "nothing"  # the last class of a juror: there is nothing to be named
_NOTHINGS = 8  # one picture of nothing for so many of something
_RATES = (1.0, 0.25)  # of a juror's learning rate, try by try
_LIST = 20  # words among which a juror's certainty is measured, as many as a study offers


@dataclass(frozen=True)
class Juror:
    """One classifier of the jury.

    Attributes:
        bad: What happens to the pictures that it learns, in turn.
        training: Other settings of its training, by their names.
    """

    name: str
    architecture: Plugin
    bad: tuple[Degrade, ...]
    lr: float = 0.05
    epochs: int = 10
    training: Mapping[str, Any] = field(default_factory=dict)


_SLOW = {"lr": 0.03, "epochs": 40}
_FAMILIES: tuple[tuple[str, dict[str, Any], Degrade, dict[str, Any]], ...] = (
    ("cnn-small", {"width": 20}, degrade, {}),
    ("convnet8", {"width": 10}, ghosted, {}),
    ("resnet20-4", {"width": 8}, coarse, {}),
    ("cnn4", {"width": 32}, speckled, _SLOW),
    ("lenet", {"width": 32, "activation": "relu"}, covered, _SLOW),
)
JURORS = tuple(
    Juror(f"Simulated {number}", Plugin(name=family, settings=settings), (moved, bad), **pace)
    for number, (family, settings, bad, pace) in enumerate(_FAMILIES, start=1)
)

# For many thousands of photographs: of a size for that, and it learns pictures hardly changed.
PHOTOGRAPH_JURORS = (
    Juror(
        "Photographs",
        Plugin(name="cnn-pooled", settings={"width": 32}),
        (shifted, mirrored),
        lr=0.15,
        training={"batch_size": 256, "mixed_precision": True, "schedule": "cosine"},
    ),
)


@dataclass(frozen=True, kw_only=True)
class JurySettings:
    """Settings of the training of all jurors.

    Attributes:
        per_class, test_per_class: Pictures of each class, different ones for each juror.
        epochs: In tenths of those that each takes.
    """

    per_class: int = 100
    test_per_class: int = 10
    epochs: int = 10
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class TrainedJuror:
    """A trained juror.

    Attributes:
        threshold: The certainty from which it names what it sees.
    """

    model: TargetModel
    threshold: float


def train_juror(place: int, settings: JurySettings, report: Report = silent) -> TrainedJuror:
    """Juror number `place`, trained and with the threshold of `best_threshold`."""
    seed = 7_000 + 10 * settings.seed + place
    drawn = Symbols(
        train_per_class=settings.per_class, test_per_class=settings.test_per_class, seed=seed
    )
    return juror_of(place, drawn("train"), drawn("test"), settings.epochs, seed, report=report)


def juror_of(
    place: int,
    learned: LabelledImages,
    held_out: LabelledImages,
    epochs: int,
    seed: int,
    *,
    juror: Juror | None = None,
    checkpoint: Path | None = None,
    report: Report = silent,
) -> TrainedJuror:
    """Juror number `place` of any data set.

    A network that names the same for every held-out picture has learned nothing, as where a
    learning rate kills its ReLUs. It is trained once more, at the next of `_RATES`.

    Args:
        juror: Another than that of `JURORS`.
        checkpoint: As `Training` takes it, a file a try: NAME-0, NAME-1.
        epochs: In tenths of those that it takes.
        held_out: Pictures that it does not learn, by which its threshold is set.
    """
    juror = juror or JURORS[place]
    bad = in_turn(juror.bad)
    data = with_nothing(learned, seed)
    tested = with_nothing(held_out, seed + 1)
    pictures = bad(tested.images, torch.Generator().manual_seed(seed))
    for number, part in enumerate(_RATES):
        training = Training(
            architecture=built(TARGETS, juror.architecture),
            data=data,
            settings=TrainSettings(
                **{"batch_size": 32, **juror.training},
                epochs=epochs * juror.epochs // 10,
                lr=juror.lr * part,
                seed=seed,
            ),
            device="cpu",
            degrade=bad,
            checkpoint=checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{number}"),
        )
        model = carry_out(training, report)
        logs = log_probabilities(model, pictures)
        if len(np.unique(logs.argmax(axis=1))) > 1:
            break
    return TrainedJuror(model=model, threshold=best_threshold(logs, tested.labels.numpy(), seed))


def keep_juror(juror: Juror, found: TrainedJuror, path: Path, **more: object) -> None:
    """Write a trained juror to a weight file, with `more` facts, for `kept_jury`."""
    facts = {"juror": juror.name, "threshold": found.threshold, **more}
    save_target(found.model, path, name=juror.architecture.name, facts=facts)


def kept_jury(paths: Iterable[Path]) -> dict[str, TrainedJuror]:
    """The jurors in weight files that `keep_juror` wrote, by name; `WeightsError` for others."""
    found = {path: target_facts(path) for path in paths}
    return {
        str(facts["juror"]): TrainedJuror(
            model=load_target(path), threshold=float(str(facts["threshold"]))
        )
        for path, facts in found.items()
    }


def in_turn(steps: Sequence[Degrade]) -> Degrade:
    """Return what does all steps, one after another."""

    def bad(images: Tensor, rng: torch.Generator) -> Tensor:
        for step in steps:
            images = step(images, rng)
        return images

    return bad


def with_nothing(data: LabelledImages, seed: int) -> LabelledImages:
    """`data` and, as one class more, pictures of it whose frequencies lost their places.

    Of every eighth picture the amplitudes are kept and the phases drawn anew, the same for all
    three colours: as bright, as coloured and as smooth as the others, with nothing to be named.
    """
    rng = np.random.default_rng(seed)
    pictures = data.images[rng.permutation(len(data))[: len(data) // _NOTHINGS]].numpy()
    noise = np.fft.rfft2(rng.standard_normal((len(pictures), 1, *data.images.shape[2:])))
    spectrum = np.fft.rfft2(pictures)
    phase = np.exp(1j * np.angle(noise))
    phase[..., 0, 0] = 1  # the mean stays
    made = np.fft.irfft2(np.abs(spectrum) * phase, s=data.images.shape[2:]).clip(0, 1)
    return replace(
        data,
        classes=(*data.classes, NOTHING),
        ids=(*data.ids, *(f"{NOTHING}-{place}" for place in range(len(made)))),
        images=torch.cat([data.images, torch.from_numpy(made).float()]),
        labels=torch.cat([data.labels, torch.full((len(made),), len(data.classes))]),
    )


@torch.no_grad()
def log_probabilities(model: TargetModel, images: Tensor) -> np.ndarray:
    """Return log-probabilities of (N, 3, H, W) in [0, 1]: (N, K + 1) float64, `NOTHING` last."""
    parts = [model(part.to(model.mean.device)).cpu().double() for part in images.split(256)]
    return torch.cat(parts).log_softmax(1).numpy()


def best_threshold(logs: np.ndarray, labels: np.ndarray, seed: int) -> float:
    """The certainty from which answering gains most, where a wrong word costs what a right gains.

    Args:
        logs: (N, K + 1) of held-out bad pictures.
        labels: (N,) int, K for nothing. Each picture is asked about with a list of 20 words drawn
            by `seed`, the right one among them if there is one.
    """
    rng, known = np.random.default_rng(seed), logs.shape[1] - 1
    certain, gain = [], []
    for row, label in zip(logs, labels, strict=True):
        offered = rng.permutation(np.setdiff1d(np.arange(known), [label]))[:_LIST]
        if label < known:  # at any place of the list, so that a tie does not favour it
            offered[rng.integers(len(offered))] = label
        best = int(offered[row[offered].argmax()])
        certain.append(certainty(row, offered, best))
        gain.append(1 if best == label else -1)
    order = np.argsort(certain)[::-1]
    total = np.cumsum(np.array(gain)[order])
    return float(np.array(certain)[order][total.argmax()])


def certainty(logs: np.ndarray, offered: Sequence[int] | np.ndarray, best: int) -> float:
    """The probability of `best` among the words offered and nothing, 0 to 1.

    Args:
        logs: (K + 1,), log-probabilities of K words and, last, of nothing.
    """
    among = np.exp(logs[[*offered, len(logs) - 1]])
    return float(np.exp(logs[best]) / among.sum())
