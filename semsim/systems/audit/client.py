"""A model as a client receives it: batches that come back from its gradient, signs of a change."""

import copy
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.api.attack import Classifier
from semsim.attacks.descent import attack_updates
from semsim.attacks.linear.first_layer import first_layer
from semsim.attacks.linear.rank import Shape
from semsim.attacks.linear.spear import Spear
from semsim.attacks.observe import BatchGradient, assigned, observe_round
from semsim.attacks.parameters import ALL
from semsim.base.cli.terminal import text_table
from semsim.base.errors import SettingsError
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets.model import TargetModel
from semsim.targets.noticed import HELD, Sign, signs
from semsim.types import Reconstruction

_BATCHES = (1, 2, 4, 8, 12, 16)  # that SPEAR is tried on
_SAMPLES = 200_000  # of SPEAR: seconds
_EXACT = 1e-2  # largest difference of a pixel
_ADVICE = "Share nothing of this model; ask for its architecture and compare the weights with it."
_ORDINARY = (
    "No sign of a changed model. That is no proof: signs are known of published attacks alone."
)


def client_view(model: nn.Module, shape: Shape) -> tuple[list[str], list[Sign]]:
    """Report what SPEAR gets, in a sentence where it applies, and signs that the model was changed.

    The client's pictures are built-in symbols, scaled to (C, H, W).

    Raises:
        SettingsError: Where the model gives no logits, (N, classes).
        DataError: Where it has no gradient.
    """
    seen, pictures = _received(model, shape)
    logits = seen(pictures[:1])
    if logits.ndim != 2:
        raise SettingsError(f"it gives {tuple(logits.shape)} of one picture, not (1, classes).")
    labels = torch.arange(len(pictures)) % logits.shape[1]
    found = signs(seen, pictures[:HELD], labels[:HELD])
    return [*_exact_batches(seen, pictures, labels)], found


def client_text(signs: Sequence[Sign]) -> str:
    """Signs as a table for a terminal, with what to do where one warns."""
    header = ["what a client could notice", "here", "ordinary", ""]
    rows = [[one.what, one.value, one.ordinary, "WARNING" if one.warns else ""] for one in signs]
    warned = [one.means for one in signs if one.warns]
    end = " ".join(["WARNING:", *warned, _ADVICE]) if warned else _ORDINARY
    return f"{text_table(header, rows)}\n\n{end}"


def _received(model: nn.Module, shape: Shape) -> tuple[TargetModel | Classifier, Tensor]:
    """A copy that attacks take, and pictures for it, (N, C, H, W)."""
    drawn = Symbols(test_per_class=1)("test").images[: max(_BATCHES)]
    if shape[0] != drawn.shape[1]:
        drawn = drawn.mean(1, keepdim=True).expand(-1, shape[0], -1, -1)
    scaled = F.interpolate(drawn, shape[1:], mode="bilinear", antialias=True).clamp(0, 1)
    if isinstance(model, TargetModel):
        return copy.deepcopy(model).eval(), scaled
    seen = Classifier(model, (0.0,), (1.0,), ALL)
    pictures = scaled.to(seen.mean)
    seen.keep_idle(seen(pictures[:1]))
    return seen, pictures


def _exact_batches(seen: TargetModel | Classifier, pictures: Tensor, labels: Tensor) -> list[str]:
    shape = (pictures.shape[1], pictures.shape[2], pictures.shape[3])
    try:
        first_layer(seen, shape)
    except SettingsError:
        return []
    good, tried = 0, list[str]()
    for batch in _BATCHES:
        tried.append(str(batch))
        if not _comes_back(seen, pictures[:batch], labels[:batch]):
            break
        good = batch
    reach = f"batches up to {good} come back exactly" if good else "no batch came back exactly"
    return [f"Its first layer is linear + ReLU: {reach} by SPEAR (tried: {', '.join(tried)})."]


def _comes_back(seen: TargetModel | Classifier, images: Tensor, labels: Tensor) -> bool:
    rngs = [torch.Generator().manual_seed(place) for place in range(len(images))]
    sharing = BatchGradient(batch=len(images), batch_norm="eval")
    leak = observe_round(seen, images, labels, sharing, NoDefence(), rngs)
    found = attack_updates(Spear(samples=_SAMPLES), [leak.observation], rngs=rngs)
    good = [one.image for one in found if isinstance(one, Reconstruction)]
    if len(good) < len(images):
        return False
    made = torch.stack(good)
    return float((made[assigned(made, images)] - images).abs().max()) < _EXACT
