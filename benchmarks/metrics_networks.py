"""LPIPS and FID beside the packages `lpips` and `torch-fidelity`, for `benchmarks.metrics`.

Both contestants of a metric load the same weights. These are random, since the trained ones do not
come with the product: it is the work that is compared, and no score is told.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import lpips
import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor
from torch.utils.data import Dataset
from torch_fidelity import calculate_metrics, register_feature_extractor
from torch_fidelity.feature_extractor_base import FeatureExtractorBase
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY
from torchvision.models import alexnet

from benchmarks.keeping import Finds, Row
from benchmarks.measuring import ROOT, apart, judge
from benchmarks.turns import memory, seconds
from semsim.metrics import Resources
from semsim.metrics.base import PART, Pairs, judged
from semsim.metrics.inception import INCEPTION, Fid, FrechetJudge
from semsim.metrics.perceptual import Lpips

sys.path[:0] = [str(ROOT / "tests")]

from made_weights import make_inception, put_in_manifest  # noqa: E402

SIDE = 32
WEIGHTS = {"alexnet": "alexnet.pth", INCEPTION: "inception.pth"}
LIGHT, WIDTH = "light", 2048  # a network of one layer, and its features, as many as Inception's
ALIKE = {"lpips": 1e-5, "fid": 1e-3, LIGHT: 1e-3}  # relative to the largest value


class Side(Dataset[Tensor]):
    """Originals (0) or darker reconstructions (1), (3, SIDE, SIDE) uint8, made when asked for."""

    def __init__(self, n: int, which: int) -> None:
        self._n, self._which = n, which
        self._number, self._held = -1, torch.empty(0)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, place: int) -> Tensor:
        number, within = divmod(place, PART)
        return self.part(number)[within]

    def part(self, number: int) -> Tensor:
        """Pictures `number` × PART and the following."""
        if number != self._number:
            rng = torch.Generator().manual_seed(2 * number + self._which)
            shape = (min(PART, self._n - PART * number), 3, SIDE, SIDE)
            made = torch.randint(0, 256 >> self._which, shape, generator=rng, dtype=torch.uint8)
            self._number, self._held = number, made
        return self._held


def pairs(n: int) -> Iterator[Pairs]:
    """Both sides as our metrics take them, PART by PART."""
    sides = Side(n, 0), Side(n, 1)
    for number in range(-(-n // PART)):
        first, second = (side.part(number).float() / 255 for side in sides)
        yield Pairs(originals=first, reconstructions=second)


class Light(FeatureExtractorBase):
    """A layer in the place of Inception: what is done with features is all that takes long."""

    def __init__(self, name: str, features_list: list[str], **_: object) -> None:
        super().__init__(name, features_list)
        rng = torch.Generator().manual_seed(0)
        weight = torch.randn(3 * SIDE * SIDE, WIDTH, generator=rng) / (3 * SIDE * SIDE) ** 0.5
        self.register_buffer("weight", weight)

    @staticmethod
    def get_provided_features_list() -> tuple[str, ...]:
        return (str(WIDTH),)

    @staticmethod
    def get_default_feature_layer_for_metric(_: str) -> str:
        return str(WIDTH)

    def forward(self, images: Tensor) -> tuple[Tensor]:
        return ((images.flatten(1).float() / 255 @ self.weight).tanh(),)


Work = Callable[[int], np.ndarray]  # of so many pictures: the values
Maker = Callable[[Path, str], Work]  # with the weights in a folder, on a device


def ours(metric: Lpips | Fid, folder: Path, device: str) -> Work:
    made = metric.prepare(Resources(checkpoints=folder, classifiers=(), device=device))
    return lambda n: judged(made, pairs(n), metric.spec).values


def ours_light(_: Path, device: str) -> Work:
    network = Light(LIGHT, [str(WIDTH)]).to(device)

    def features(images: Tensor) -> np.ndarray:
        with torch.inference_mode():
            return network((images * 255).round().byte().to(device))[0].double().cpu().numpy()

    return lambda n: judged(FrechetJudge(features=features), pairs(n), Fid().spec).values


def the_lpips(folder: Path, device: str) -> Work:
    """The package as its page says, in batches as large as ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it still asks for `pretrained=`
        model = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False).eval()
    weights = torch.load(folder / WEIGHTS["alexnet"], weights_only=True)
    with torch.no_grad():
        for name, parameter in model.net.named_parameters():  # slice1.0.weight
            parameter.copy_(weights[f"features.{name.split('.', 1)[1]}"])
    model.to(device)

    def work(n: int) -> np.ndarray:
        found = []
        with torch.no_grad():
            for part in pairs(n):
                batches = (part.originals.split(32), part.reconstructions.split(32))
                for first, second in zip(*batches, strict=True):
                    both = first.to(device), second.to(device)
                    found.append(model(*both, normalize=True).flatten().cpu())
        return torch.cat(found).double().numpy()

    return work


def fidelity(light: bool, folder: Path, device: str) -> Work:
    """torch-fidelity with its own settings, of one process as ours is."""
    given: dict[str, object] = {
        "cuda": device != "cpu",
        "fid": True,
        "verbose": False,
        "cache": False,
    }
    given |= {"save_cpu_ram": True}  # no processes that load pictures
    if light:
        if LIGHT not in FEATURE_EXTRACTORS_REGISTRY:  # each round asks anew
            register_feature_extractor(LIGHT, Light)
        given |= {"feature_extractor": LIGHT}
    else:
        given |= {"feature_extractor_weights_path": str(folder / WEIGHTS[INCEPTION])}

    def work(n: int) -> np.ndarray:
        found = calculate_metrics(input1=Side(n, 0), input2=Side(n, 1), **given)
        return np.array([found["frechet_inception_distance"]])

    return work


CONTESTS: dict[str, dict[str, Maker]] = {
    "lpips": {"semsim": partial(ours, Lpips(net="alex")), "lpips": the_lpips},
    "fid": {"semsim": partial(ours, Fid()), "torch-fidelity": partial(fidelity, False)},
    LIGHT: {"semsim": ours_light, "torch-fidelity": partial(fidelity, True)},
}


class Seen(NamedTuple):
    """Values, seconds without loading, and peak memory in MiB."""

    values: np.ndarray
    took: float
    memory: float


def measure(metric: str, who: str, n: int, folder: Path, device: str) -> Seen:
    """One contestant in this process, with one thread."""
    torch.set_num_threads(1)
    found = list[np.ndarray]()
    with threadpool_limits(1):
        work = CONTESTS[metric][who](folder, device)  # anew: ours remembers what it was asked
        took = seconds(lambda: found.append(work(n)), device)
    return Seen(found[0], took, memory(device))


def contest(metric: str, n: int, rounds: int, folder: Path, device: str, row: Row) -> None:
    """Whether both say the same, each in a fresh process; then their turns in this one.

    Ends with an error where they do not: other work is not compared.
    """
    alone = {who: apart(measure, metric, who, n, folder, device) for who in CONTESTS[metric]}
    (_, mine), (theirs, other) = alone.items()
    differ = float(np.abs(mine.values - other.values).max() / np.abs(other.values).max())
    if not differ <= ALIKE[metric]:
        raise SystemExit(f"{metric}: semsim and {theirs} differ by {differ:.1e} of the largest.")
    for who in alone:
        measure(metric, who, 2, folder, device)  # what is loaded at first is not counted
    times = [
        {who: measure(metric, who, n, folder, device).took for who in alone} for _ in range(rounds)
    ]
    paces = [
        f"{n / median(one[who] for one in times):,.1f}, {seen.memory:,.0f} MiB"
        for who, seen in alone.items()
    ]
    fast = median(one[theirs] / one["semsim"] for one in times)
    share = mine.memory / other.memory
    row(
        f"{metric}, {n:,} pairs",
        paces[0],
        f"{theirs}: {paces[1]}",
        f"×{fast:.2f}, {judge(fast, least=1)}",
        f"{share:.2f}, {judge(share, most=1)}",
        f"to {differ:.0e}",
    )


def networks(
    names: list[str], n: int, rounds: int, folder: Path, device: str, finds: Finds
) -> None:
    """Keep the contests of these names, of `n` pictures a side."""
    made = {name: folder / file for name, file in WEIGHTS.items()}
    torch.manual_seed(0)
    torch.save(alexnet(weights=None).state_dict(), made["alexnet"])
    make_inception(made[INCEPTION])
    put_in_manifest(folder, made)
    print(f"\n{n:,} pairs of {SIDE}×{SIDE}, one thread, {rounds} rounds, on {device}")
    print("weights random: speed only, no score is told")
    heads = ("semsim", "their package", "as fast", "memory", "the same value")
    row = finds.table("networks", "pictures a second", *heads)
    for name in names:
        contest(name, n, rounds, folder, device, row)
