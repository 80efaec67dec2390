"""`semsim.score`: metrics of folders, tensors or tables of pairs, as `python -m semsim score`."""

import hashlib
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from semsim.device import pick_device
from semsim.errors import DataError
from semsim.interface.pretrained_module import SemSim
from semsim.metrics import Judge, Metric, MetricSpec, Pairs, Reference, Resources
from semsim.metrics import find_metric as metric_called
from semsim.metrics.semsim import SemSimDistance, semsim_judge
from semsim.progress import Report, silent
from semsim.scores.folder_pairs import folder_scores, match_folders, pair_scores
from semsim.scores.scoring import (
    BOOK_COLUMNS,
    PairSet,
    pair_sets_of_folders,
    pair_sets_of_labels,
    score_sets,
)
from semsim.sets.format import RUN
from semsim.weights import CHECKPOINTS

Folder = str | Path
Named = str | SemSim | Metric
PairsGiven = tuple[Tensor, Tensor] | tuple[Folder, Folder] | pd.DataFrame | Folder | list[Folder]


@dataclass(frozen=True, kw_only=True)
class GivenSemSim:
    """A SemSim in memory as a metric. sha256: of its weights, which tells its scores apart."""

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


def score(
    pairs: PairsGiven,
    metrics: Sequence[Named] = ("mse", "psnr", "ssim"),
    *,
    checkpoints: Folder = CHECKPOINTS,
    device: str = "auto",
    kept: Folder | None = None,
    report: Report = silent,
) -> pd.DataFrame:
    """Score reconstructions against their originals; the numbers of `python -m semsim score`.

    pairs: what is compared.
        Two tensors, originals and reconstructions, (N, 3, H, W) float32 in [0, 1]; or two folders
        of images of the same names: the table has one row a pair and one column a metric of images.
        One reconstruction set, a list of them, or a frame with the columns dataset, attack, model,
        image_id, class_name, original and reconstruction (paths): the table has one row an image
        and metric, columns `semsim.scores.scoring.BOOK_COLUMNS`.
    metrics: names as `score --help` lists them, a `SemSim`, or any object with `spec`, `files` and
        `prepare` as `semsim.metrics.Metric` has them.
    checkpoints: folder of weights. device: "auto", "cpu", "cuda", … . kept: folder where scores of
    sets are kept, so that none is computed twice.
    Two folders: images without a partner are left out with a warning. Of metrics of sets, `attrs`
    of the table has the value, under "metrics". Raises `UnknownNameError` for a name no metric has,
    `WeightsError` where weights are missing, `DataError` for images that cannot be judged.

    >>> import torch, semsim
    >>> black, grey = torch.zeros(2, 3, 16, 16), torch.full((2, 3, 16, 16), 0.5)
    >>> semsim.score((black, grey), ["mse"])
      image_id   mse
    0        0  0.25
    1        1  0.25
    """
    resources = Resources(checkpoints=Path(checkpoints), device=pick_device(device))
    wanted = [_metric(one) for one in ([metrics] if isinstance(metrics, str) else metrics)]
    for metric in wanted:
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
    return named


def _digest(module: SemSim) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(module.network.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _sets(pairs: PairsGiven) -> list[PairSet] | None:
    """The sets that `pairs` are; None of two tensors, or of two folders that are none."""
    if isinstance(pairs, pd.DataFrame):
        return pair_sets_of_labels(pairs)
    if isinstance(pairs, str | Path):
        return pair_sets_of_folders([Path(pairs)])
    folders = [Path(one) for one in pairs if not isinstance(one, Tensor)]
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
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(passing if kept is None else kept)
        book = score_sets(sets, metrics, resources, folder, report)
    for (title, name), reason in book.refused.items():
        raise DataError(f"{name} of {title} cannot be computed: {reason}")
    return book.scores[list(BOOK_COLUMNS)]


def _of_two(
    pairs: Any, metrics: Sequence[Metric], resources: Resources, report: Report
) -> pd.DataFrame:
    if len(pairs) != 2:
        raise DataError(f"Give originals and reconstructions as two; got {len(pairs)}.")
    first, second = pairs
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        images = Pairs(originals=first, reconstructions=second)
        rows = pd.DataFrame({"image_id": [str(place) for place in range(len(images))]})
        return pair_scores(rows, lambda reference: _clean(images, reference), metrics, resources)
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        raise DataError("Give two tensors or two folders, not one of each.")
    found = match_folders(Path(first), Path(second))
    if found.problems:
        shown = " ".join(found.problems[:3])
        warnings.warn(f"{len(found.problems)} left out: {shown}", stacklevel=3)
    return folder_scores(found, metrics, resources, report)


def _clean(images: Pairs, reference: Reference) -> Pairs:
    if reference != "clean":
        raise DataError("Two tensors come without the attacked image. Leave @attacked out.")
    return images
