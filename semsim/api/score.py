"""`semsim.score`: metrics of folders, tensors or tables of pairs, as `semsim-studio score`."""

import hashlib
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import InitVar, asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from semsim.api.pretrained import SemSim
from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.sets.set_format import RUN
from semsim.base.storage.places import resolved
from semsim.device import pick_device
from semsim.metrics import Judge, Metric, MetricSpec, Pairs, Resources
from semsim.metrics import find_metric as metric_called
from semsim.metrics.base import Scores, described
from semsim.metrics.scoring import (
    PairSet,
    match_folders,
    pair_sets_of_folders,
    pair_sets_of_labels,
    pairs_in_memory,
    score_sets,
    wide_table,
)
from semsim.metrics.semsim import SemSimDistance, semsim_judge
from semsim.weights import CHECKPOINTS

Folder = str | Path
Function = Callable[[Tensor, Tensor], Any]
Named = str | SemSim | Metric | Function
PairsGiven = tuple[Tensor, Tensor] | tuple[Folder, Folder] | pd.DataFrame | Folder | list[Folder]


@dataclass(frozen=True, kw_only=True)
class GivenSemSim:
    """A SemSim in memory as a metric.

    Attributes:
        sha256: Of its weights and what its network is made from, which tells its scores apart.
    """

    name: str
    sha256: str
    module: InitVar[SemSim]

    def __post_init__(self, module: SemSim) -> None:
        object.__setattr__(self, "_network", module.network)

    @property
    def spec(self) -> MetricSpec:
        return SemSimDistance(checkpoint=self.name).spec

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return semsim_judge(self._network)  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class _OfFunction:
    """A function of originals and reconstructions, (N, 3, H, W), to (N,) as a metric."""

    spec: MetricSpec
    of: Function

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return self._judge

    @torch.no_grad()
    def _judge(self, pairs: Pairs) -> Scores:
        found = self.of(pairs.originals, pairs.reconstructions)
        return Scores(values=np.asarray(found.cpu() if isinstance(found, Tensor) else found))


def _pair_by_pair(metric: Any, name: str) -> Function:
    """A metric of torchmetrics as a function; a copy is updated, with one pair at a time."""
    alone = metric.clone()

    def values(originals: Tensor, reconstructions: Tensor) -> list[float]:
        found = []
        for pair in zip(reconstructions.split(1), originals.split(1), strict=True):
            alone.reset()
            try:
                alone.update(*(images.to(alone.device) for images in pair))
                found.append(float(alone.compute()))
            except (TypeError, ValueError, RuntimeError) as error:
                raise DataError(f"{name} gives no number for one pair: {error}") from error
        return found

    return values


def score(
    pairs: PairsGiven,
    metrics: Named | Sequence[Named] = ("mse", "psnr", "ssim"),
    *,
    checkpoints: Folder = CHECKPOINTS,
    device: str = "auto",
    kept: Folder | None = None,
    report: Report = silent,
) -> pd.DataFrame:
    """Score reconstructions against their originals; the numbers of `semsim-studio score`.

    Args:
        pairs: What is compared. Two tensors, originals and reconstructions, (N, 3, H, W) float32 in
            [0, 1]; or two folders of images of the same names: the table has one row a pair and one
            column a metric of images. One reconstruction set, a list of them, or a frame with the
            columns dataset, attack, model, image_id, class_name, original and reconstruction
            (paths): the table has one row an image and metric, columns
            `semsim.metrics.scoring.BOOK_COLUMNS`.
        metrics: Names as `score --help` lists them, a `SemSim`, a metric of torchmetrics that takes
            reconstructions and originals; a function of originals and reconstructions, (N, 3, H,
            W), to (N,), with the attributes `name` and `higher_leaks`; or an object with `spec`,
            `files` and `prepare` as `semsim.metrics.Metric` has them.
        checkpoints: Folder of weights.
        device: "auto", "cpu", "cuda", … .
        kept: Folder where scores of sets are kept, so that none is computed twice; not those of a
            metric of your own, whose code may have changed since.
        report: Called for each part of two tensors or folders, for each metric of a set. Two
            folders: images without a partner are left out with a warning. Of metrics of sets,
            `attrs` of the table has the value, under "metrics".

    Raises:
        UnknownNameError: For a name no metric has.
        WeightsError: Where weights are missing.
        DataError: For images that cannot be judged and for two metrics of one name.

    >>> import torch, semsim
    >>> black, grey = torch.zeros(2, 3, 16, 16), torch.full((2, 3, 16, 16), 0.5)
    >>> semsim.score((black, grey), ["mse"])
      image_id   mse
    0        0  0.25
    1        1  0.25
    """
    resources = Resources(checkpoints=Path(checkpoints), device=pick_device(device))
    if isinstance(metrics, str) or not isinstance(metrics, Sequence):
        metrics = [metrics]
    called = dict[str, Metric]()
    for metric in map(_metric, metrics):
        name = metric.spec.name
        if called.setdefault(name, metric) != metric:
            raise DataError(f"Two metrics are called {name!r}; give each a name of its own.")
        metric.files(resources)  # what is missing is told before anything is computed
    sets = _pairs(pairs)
    of_sets = all(one.title for one in sets)
    folder = Path(kept) if of_sets and kept is not None else None
    book = score_sets(sets, list(called.values()), resources, folder, report)
    for (title, name), reason in book.refused.items():
        of = f" of {title}" if title else ""
        raise DataError(f"{name}{of} cannot be computed: {reason}")
    return book.scores if of_sets else wide_table(sets[0], book, called)


def _metric(named: Named) -> Metric:
    if isinstance(named, str):
        return metric_called(named)
    if isinstance(named, SemSim):
        return GivenSemSim(name=named.name, sha256=_digest(named), module=named)
    made = not isinstance(named, type)
    if made and isinstance(named, Metric):
        return named
    of_torchmetrics = all(hasattr(named, part) for part in ("update", "compute", "reset", "clone"))
    name = getattr(named, "name", type(named).__name__ if of_torchmetrics else None)
    higher = getattr(named, "higher_is_better" if of_torchmetrics else "higher_leaks", None)
    if made and callable(named) and isinstance(name, str) and isinstance(higher, bool):
        spec = MetricSpec(name=name, title=name, higher_means_more_leakage=higher, per_image=True)
        return _OfFunction(spec=spec, of=_pair_by_pair(named, name) if of_torchmetrics else named)
    raise DataError(
        "A metric must be a name, a SemSim, a metric of torchmetrics with higher_is_better, or a "
        "function of originals and reconstructions to (N,) with the attributes name, a text, and "
        f"higher_leaks, true or false; got {described(named)}."
    )


def _digest(module: SemSim) -> str:
    made_from = json.dumps(asdict(module.network.settings), sort_keys=True)
    digest = hashlib.sha256(made_from.encode())
    for name, value in sorted(module.network.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _pairs(pairs: PairsGiven) -> list[PairSet]:
    """Read what was given: sets, or the pairs of two tensors or folders, which have no title."""
    if isinstance(pairs, pd.DataFrame):
        return pair_sets_of_labels(pairs)
    if isinstance(pairs, str | Path):
        return pair_sets_of_folders([Path(pairs)])
    for one in pairs:
        if not isinstance(one, Tensor | str | Path):
            raise DataError(f"Give torch tensors or folders; got {described(one)}.")
    folders = [resolved(one) for one in pairs if not isinstance(one, Tensor)]
    of_sets = isinstance(pairs, list) or all((folder / RUN).is_file() for folder in folders)
    if len(folders) == len(pairs) and of_sets:
        return pair_sets_of_folders(folders)
    return [_of_two(pairs)]


def _of_two(pairs: Sequence[Any]) -> PairSet:
    """Pair two tensors, or two folders, of which it warns of what was left out."""
    if len(pairs) != 2:
        raise DataError(f"Give originals and reconstructions as two; got {len(pairs)}.")
    first, second = pairs
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return pairs_in_memory(Pairs(originals=first, reconstructions=second))
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        raise DataError("Give two tensors or two folders, not one of each.")
    found = match_folders(Path(first), Path(second))
    if found.problems:
        shown = " ".join(found.problems[:3])
        warnings.warn(f"{len(found.problems)} left out: {shown}", stacklevel=4)
    for note in found.notes:
        warnings.warn(note, stacklevel=4)
    return found
