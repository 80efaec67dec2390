"""Weights a training starts from, where it is told to start from any."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsim.base.errors import DataError, WeightsError
from semsim.base.metric_spec import control_in
from semsim.base.storage.folders import shown
from semsim.base.storage.records import guarded
from semsim.base.words import counted
from semsim.learning.settings import IMAGENET, SCRATCH
from semsim.metrics.learned import Learned, learned_by
from semsim.metrics.provenance import FORMAT, read_training
from semsim.weights import holds, read_facts, sha256_of

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from semsim.learning.settings import TrainSettings
    from semsim.metrics.network import SemSimModel

log = logging.getLogger(__name__)
START = "semsim-start/1"  # of the files that `train pretrain` writes
_OF_SEMSIM = {"mean", "std"}  # beside the network in a SemSim checkpoint
_SUFFIXES = (".safetensors", ".pth")


def check_initial(backbone: str, weights: str) -> None:
    """Raise where `load_initial` is bound to fail, without reading or fetching anything.

    `SettingsError` for a network that torchvision has no weights for, `WeightsError` for a file
    that is missing.
    """
    if weights == IMAGENET:
        from semsim.metrics.backbones import torchvision_name  # with torch

        torchvision_name(backbone)
    elif weights != SCRATCH and not Path(weights).is_file():
        raise WeightsError(f"No weights at {weights}. Give a file, {SCRATCH!r} or {IMAGENET!r}.")


def check_start(settings: TrainSettings) -> None:
    """Raise where no training can begin as `settings` say, before one is queued.

    The network is made once and seen to take images of `input_size`. Raises `UnknownNameError`
    where there is none of its name, `SettingsError` where it cannot, and as `check_initial`.
    """
    _make_once(settings.backbone, settings.small_stem, settings.input_size)
    check_initial(settings.backbone, settings.weights)


@cache
def _make_once(backbone: str, small_stem: bool, input_size: int) -> None:
    import torch  # queueing takes long enough without

    from semsim.metrics.backbones import make_backbone

    with torch.random.fork_rng():  # whose numbers are those of whoever asks
        make_backbone(backbone, small_stem, input_size)


def load_initial(model: SemSimModel, weights: str) -> None:
    """Put the weights called `weights` into `model`; "scratch" leaves it as it is.

    A stem for small images has other shapes and stays fresh. Raises as `check_initial`, and
    `WeightsError` where the weights do not fit or cannot be fetched.

    Args:
        weights: "imagenet" takes torchvision's best for this network, fetched the first time; else
            a file: the network's state dict (.safetensors, or a .pth without code in it), with or
            without its classifier, a SemSim checkpoint, or what `train pretrain` wrote; the last
            two bring the mean and spread of the channels they were made with.
    """
    check_initial(model.settings.backbone, weights)
    if weights != SCRATCH:
        _put(model, _read(model.settings.backbone, weights), weights)


def seen_before(weights: str) -> Learned:
    """Return the originals whose votes are in the weights so called; none in those of no SemSim.

    Raises `WeightsError` for a SemSim that does not say what it learned from.
    """
    if weights in (SCRATCH, IMAGENET) or not holds(Path(weights), FORMAT):
        return Learned(pictures={})
    return learned_by(read_training(Path(weights)))


def check_unseen(weights: str, test: pd.DataFrame) -> None:
    """Raise `DataError` where the labels in `test` could not judge a training from `weights`.

    Its weights are then of a SemSim that has learned what people said of some of them.
    """
    tested = seen_before(weights).among(test)
    if tested.seen:
        by_name = " (going by their names)" if tested.seen & tested.by_name else ""
        raise DataError(
            f"The initial weights, {Path(weights).name}, have learned from votes on "
            f"{len(tested.seen)} of {counted(len(tested.told), 'original')} in the test{by_name}, "
            "which would then show nothing. Hold out others, or start from weights that saw no "
            "votes."
        )


def identify(backbone: str, weights: str) -> str:
    """Return the identity of these weights: a name for ImageNet's, a sha256 for a file.

    A file of `train pretrain` also says what it was trained on.
    """
    if weights == SCRATCH:
        return SCRATCH
    if weights == IMAGENET:
        return str(_imagenet(backbone))
    digest, facts = f"sha256:{sha256_of(Path(weights))}", start_facts(Path(weights))
    if facts is None:
        return digest
    seed, mark = facts["settings"]["seed"], _mark(facts)
    return f"{digest}, a classifier of the training split of {facts['dataset']}, seed {seed}{mark}"


def absolute(weights: str) -> str:
    """A file by its whole path, as a job may be carried out from another folder."""
    return weights if weights in (SCRATCH, IMAGENET) else str(Path(weights).resolve())


def starts(folder: Path, tell: Callable[[str], None] = log.warning) -> dict[str, str]:
    """Files of weights in `folder` by name, with what each says of itself, such as its network.

    `tell` is called with a sentence on each of ours that cannot be read and is left out.
    """
    files = (
        path
        for path in shown(Path(folder))
        if path.suffix in _SUFFIXES and not control_in(path.stem)
    )
    found = {}
    for path in files:
        try:
            found[path.name] = _says(path)
        except WeightsError as error:
            tell(f"Left out: {error}")
    return found


def start_facts(path: Path) -> dict[str, Any] | None:
    """Return the facts that `pretrain.save_start` wrote to the file at `path`; None for others."""
    return read_facts(path, START) if holds(path, START) else None


def _mark(facts: Mapping[str, Any]) -> str:
    """That a classifier is no better than guessing, where it is not."""
    return ", at chance" if facts["at_chance"] else ""


def _says(path: Path) -> str:
    if not holds(path, START) and not holds(path, FORMAT):
        return "network not stated"
    with guarded(path, WeightsError):
        facts = start_facts(path)
        if facts is not None:
            words = f"classifier of {facts['dataset']}{_mark(facts)}"
            return f"{facts['settings']['backbone']}, {words}"
        training = read_training(path)
        network = training.settings.get("backbone", "network not stated")
        return f"{network}, SemSim of {training.study or 'no named study'}"


def _imagenet(backbone: str) -> Any:
    from torchvision.models import get_model_weights  # slow to import, often not needed

    from semsim.metrics.backbones import torchvision_name

    return get_model_weights(torchvision_name(backbone)).DEFAULT


def _read(backbone: str, weights: str) -> Mapping[str, Tensor]:
    import torch
    from safetensors.torch import load_file

    public = _imagenet(backbone) if weights == IMAGENET else None
    with guarded(weights, WeightsError):
        if public is not None:
            return dict(public.get_state_dict(progress=False, check_hash=True))
        if weights.endswith(".safetensors"):
            return load_file(weights)
        return dict(torch.load(weights, weights_only=True, map_location="cpu"))


def _put(model: SemSimModel, state: Mapping[str, Tensor], source: str) -> None:
    wanted = model.body.state_dict()
    given = {name.removeprefix("body."): value for name, value in state.items()}
    stem = {"conv1.weight"} if model.settings.small_stem else set()
    fitting = {n: v for n, v in given.items() if n in wanted and v.shape == wanted[n].shape}
    missing = [name for name in wanted if name not in fitting and name not in stem]
    extra = sorted(set(given) - set(wanted) - _OF_SEMSIM)
    # One module too many is the classifier; more of them are another network's.
    if missing or len({name.rpartition(".")[0] for name in extra}) > 1:
        wrong = f"lack {missing[0]!r} in its shape" if missing else f"also hold {extra[0]!r}"
        raise WeightsError(
            f"The weights {source!r} are not of {model.settings.backbone!r}: they {wrong}."
        )
    model.body.load_state_dict(fitting, strict=False)
    for name in _OF_SEMSIM & set(given):  # what the weights are used to see
        getattr(model, name).copy_(given[name].view(1, 3, 1, 1))
