"""`semsim.score`: metrics of folders, tensors or tables of pairs, as `semsim-studio score`."""

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import InitVar, asdict, dataclass, replace
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
from semsim.metrics import Judge, Metric, MetricSpec, Pairs, Reference, Resources, is_known
from semsim.metrics import find_metric as metric_called
from semsim.metrics.base import Scores, described
from semsim.metrics.folder_pairs import folder_scores, match_folders, pair_scores
from semsim.metrics.scoring import (
    BOOK_COLUMNS,
    PairSet,
    ScoreBook,
    pair_sets_of_folders,
    pair_sets_of_labels,
    score_sets,
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

    sha256: of its weights and what its network is made from, which tells its scores apart.
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


class _Lent:
    """A metric that is not the registry's, for one call: no key tells its code of today."""

    def __init__(
        self,
        spec: MetricSpec,
        prepare: Callable[[Resources], Judge],
        files: Callable[[Resources], tuple[Path, ...]] = lambda _: (),
    ) -> None:
        self.spec = spec
        self.prepare: Any = prepare
        self.files: Any = files


def _of_function(of: Function, name: str, higher_leaks: bool) -> _Lent:
    """A function of originals and reconstructions, (N, 3, H, W), to (N,) as a metric."""

    @torch.no_grad()
    def judge(pairs: Pairs) -> Scores:
        found = of(pairs.originals, pairs.reconstructions)
        return Scores(values=np.asarray(found.cpu() if isinstance(found, Tensor) else found))

    spec = MetricSpec(name=name, title=name, higher_means_more_leakage=higher_leaks, per_image=True)
    return _Lent(spec, lambda _: judge)


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

    pairs: what is compared.
        Two tensors, originals and reconstructions, (N, 3, H, W) float32 in [0, 1]; or two folders
        of images of the same names: the table has one row a pair and one column a metric of images.
        One reconstruction set, a list of them, or a frame with the columns dataset, attack, model,
        image_id, class_name, original and reconstruction (paths): the table has one row an image
        and metric, columns `semsim.metrics.scoring.BOOK_COLUMNS`.
    metrics: names as `score --help` lists them, a `SemSim`, a metric of torchmetrics that takes
        reconstructions and originals; a function of originals and reconstructions, (N, 3, H, W),
        to (N,), with the attributes `name` and `higher_leaks`; or an object with `spec`, `files`
        and `prepare` as `semsim.metrics.Metric` has them.
    checkpoints: folder of weights. device: "auto", "cpu", "cuda", … . kept: folder where scores of
    sets are kept, so that none is computed twice; not those of a metric of your own, whose code
    may have changed since. report: called for each part of two tensors or folders, for each metric
    of a set.
    Two folders: images without a partner are left out with a warning. Of metrics of sets, `attrs`
    of the table has the value, under "metrics". Raises `UnknownNameError` for a name no metric has,
    `WeightsError` where weights are missing, `DataError` for images that cannot be judged and for
    two metrics of one name.

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
    wanted, called = [_metric(one) for one in metrics], dict[str, Metric]()
    for metric in wanted:
        name = metric.spec.name
        if called.setdefault(name, metric) != metric:
            raise DataError(f"Two metrics are called {name!r}; give each a name of its own.")
        metric.files(resources)  # what is missing is told before anything is computed
    sets = _sets(pairs)
    if sets is not None:
        return _of_sets(sets, wanted, resources, kept, report)
    table = _of_two(pairs, wanted, resources, report)
    for name, record in table.attrs["metrics"].items():
        if "unavailable" in record:
            raise DataError(f"{name} cannot be computed: {record['unavailable']}")
    return table


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
        return _of_function(_pair_by_pair(named, name) if of_torchmetrics else named, name, higher)
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


def _sets(pairs: PairsGiven) -> list[PairSet] | None:
    """The sets that `pairs` are; None of two tensors, or of two folders that are none."""
    if isinstance(pairs, pd.DataFrame):
        return pair_sets_of_labels(pairs)
    if isinstance(pairs, str | Path):
        return pair_sets_of_folders([Path(pairs)])
    for one in pairs:
        if not isinstance(one, Tensor | str | Path):
            raise DataError(f"Give torch tensors or folders; got {described(one)}.")
    folders = [resolved(one) for one in pairs if not isinstance(one, Tensor)]
    if len(folders) < len(pairs):
        return None
    if isinstance(pairs, list) or all((folder / RUN).is_file() for folder in folders):
        return pair_sets_of_folders(folders)
    return None


def _of_sets(
    sets: Sequence[PairSet],
    metrics: Sequence[Metric],
    resources: Resources,
    kept: Folder | None,
    report: Report,
) -> pd.DataFrame:
    names = {metric.spec.name: place for place, metric in enumerate(metrics)}
    total, books = len(sets) * len(metrics), list[ScoreBook]()
    with tempfile.TemporaryDirectory() as passing:
        groups = _by_folder(metrics, Path(passing if kept is None else kept), Path(passing))
        for folder, group in groups.items():
            so_far = _part_of(report, sum(len(book.facts) for book in books), total)
            books.append(score_sets(sets, group, resources, folder, so_far))
            for (title, name), reason in books[-1].refused.items():
                raise DataError(f"{name} of {title} cannot be computed: {reason}")
    tables = [book.scores for book in books if len(book.scores)] or [books[0].scores]
    table = pd.concat(tables)[list(BOOK_COLUMNS)]
    # As they were asked for, wherever they were kept.
    return table.sort_values(
        "metric", key=lambda column: column.map(names), kind="stable", ignore_index=True
    )


def _by_folder(metrics: Sequence[Metric], kept: Path, passing: Path) -> dict[Path, list[Metric]]:
    """Metrics by where their scores go: those that could be another's tomorrow into `passing`."""
    groups: dict[Path, list[Metric]] = {kept: []}
    for metric in metrics:
        name = metric.spec.name
        if isinstance(metric, GivenSemSim) or (is_known(name) and metric_called(name) == metric):
            groups[kept].append(metric)
        else:
            lent = _Lent(metric.spec, metric.prepare, metric.files)
            groups.setdefault(passing, []).append(lent)
    return groups


def _part_of(report: Report, before: int, total: int) -> Report:
    """A report for work that `before` of `total` steps come before."""
    return lambda told: report(replace(told, done=before + told.done, total=total))


def _of_two(
    pairs: Any, metrics: Sequence[Metric], resources: Resources, report: Report
) -> pd.DataFrame:
    if len(pairs) != 2:
        raise DataError(f"Give originals and reconstructions as two; got {len(pairs)}.")
    first, second = pairs
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        images = Pairs(originals=first, reconstructions=second)
        rows = pd.DataFrame({"image_id": [str(place) for place in range(len(images))]})
        return pair_scores(
            rows, lambda reference: [_clean(images, reference)], metrics, resources, report
        )
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        raise DataError("Give two tensors or two folders, not one of each.")
    found = match_folders(Path(first), Path(second))
    if found.problems:
        shown = " ".join(found.problems[:3])
        warnings.warn(f"{len(found.problems)} left out: {shown}", stacklevel=3)
    for note in found.notes:
        warnings.warn(note, stacklevel=3)
    return folder_scores(found, metrics, resources, report)


def _clean(images: Pairs, reference: Reference) -> Pairs:
    if reference != "clean":
        raise DataError("Two tensors come without the attacked image. Leave @attacked out.")
    return images
