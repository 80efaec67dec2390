"""What the metrics cost: an image beside other libraries, and a whole study.

python -m benchmarks.metrics [images] [models]
python -m benchmarks.metrics --only lpips,fid [--pictures 64] [--rounds 3] [--device cpu]
python -m benchmarks.metrics --only light --pictures 100000 --rounds 1

The last two measure FID and LPIPS beside their packages, with random weights. On a CPU Inception
takes a day for 100,000 pictures; `light` is FID with one layer in its place, so that what is done
with the features, and the memory of it, can be measured of as many.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch
from skimage.metrics import (
    mean_squared_error,
    peak_signal_noise_ratio,
    structural_similarity,
)
from torch import Tensor

from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin, judge
from benchmarks.metrics_networks import CONTESTS as NETWORKS
from benchmarks.metrics_networks import networks
from semsim.images import write_png
from semsim.metrics import Resources
from semsim.metrics.pixel import mse, psnr
from semsim.metrics.registered import psnr_registered, ssim_registered
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.metrics.structural import ssim

WANG = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
REPEATS = 7
SIDE = 32
PER_MODEL = 600  # images of a model in the paper's CIFAR-100 study

# Metrics that share a reading of the whole study, and the seconds it may take.
STUDY = (
    (["mse", "psnr", "ssim"], 5.0),
    (["psnr-registered"], None),
    (["ssim-registered"], 8.0),
)

Work = Callable[[Tensor, Tensor], object]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def loop(score: Callable[..., float], **settings: object) -> Work:
    """scikit-image's function called pair by pair; turning the tensors round is part of it."""
    return lambda x, y: [score(a, b, **settings) for a, b in zip(arrays(x), arrays(y), strict=True)]


def arrays(images: Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).double().numpy()


def of_torchmetrics() -> dict[str, Work]:
    """What torchmetrics has of the same, one value a pair, in float32; nothing without it."""
    if find_spec("torchmetrics") is None:
        return {}
    from torchmetrics.functional.image import (
        peak_signal_noise_ratio,
        structural_similarity_index_measure,
    )

    each: dict[str, Any] = {"reduction": "none", "data_range": 1.0}
    return {
        "psnr": partial(peak_signal_noise_ratio, dim=(1, 2, 3), **each),
        "ssim": partial(structural_similarity_index_measure, **each),
        "ssim-uniform": partial(
            structural_similarity_index_measure, gaussian_kernel=False, kernel_size=7, **each
        ),
    }


CONTESTS: dict[str, tuple[Work, Work | None]] = {
    "mse": (mse, loop(mean_squared_error)),
    "psnr": (psnr, loop(peak_signal_noise_ratio, data_range=1.0)),
    "ssim": (ssim, loop(structural_similarity, channel_axis=-1, data_range=1.0, **WANG)),
    "ssim-uniform": (
        partial(ssim, window="uniform"),
        loop(structural_similarity, channel_axis=-1, data_range=1.0),
    ),
    "psnr-registered": (partial(psnr_registered, shift=4, flip=True), None),
    "ssim-registered": (partial(ssim_registered, shift=4, flip=True), None),
}


def contest(x: Tensor, y: Tensor, finds: Finds) -> None:
    """Keep a row a metric, of some rounds in which every library has its turn.

    Times are the fastest of the rounds; what is over is the median of the rounds' ratios, as other
    programs slow both sides of a round alike.
    """
    others = of_torchmetrics()
    heads = ("metric", "semsim", "scikit-image", "over it", "torchmetrics (float32)", "over it")
    row = finds.table("pixels", *heads)
    for name, (ours, theirs) in CONTESTS.items():
        works = {"semsim": ours, "scikit-image": theirs, "torchmetrics": others.get(name)}
        rounds = [
            {who: seconds(partial(work, x, y)) for who, work in works.items() if work is not None}
            for _ in range(REPEATS)
        ]
        best = {who: min(times[who] for times in rounds) / len(x) * 1e3 for who in rounds[0]}
        cells = [f"{best['semsim']:.4f}", "", "", "", ""]
        if "scikit-image" in best:
            over = (median(t["semsim"] / t["scikit-image"] for t in rounds) - 1) * 100
            cells[1:3] = [f"{best['scikit-image']:.4f}", f"{over:+.1f}%, {judge(over, most=0)}"]
        if "torchmetrics" in best:
            over = (median(t["semsim"] / t["torchmetrics"] for t in rounds) - 1) * 100
            cells[3:] = [f"{best['torchmetrics']:.4f}", f"{over:+.1f}%, {judge(over, most=0)}"]
        row(name, *cells)


def study(folder: Path, models: int) -> pd.DataFrame:
    """Labels of `models` models with `PER_MODEL` noisy images each, written to `folder`."""
    rng = torch.Generator().manual_seed(0)
    rows = []
    for i in range(PER_MODEL):
        original = torch.rand(3, SIDE, SIDE, generator=rng)
        first = folder / "originals" / f"{i}.png"
        write_png(original, first)
        for model in range(models):
            noise = torch.rand(3, SIDE, SIDE, generator=rng)
            second = folder / f"{model}" / f"{i}.png"
            write_png(0.7 * original + 0.3 * noise, second)
            rows.append(("d", "a", str(model), str(i), "c", str(first), str(second)))
    columns = ["dataset", "attack", "model", "image_id", "class_name", "original"]
    return pd.DataFrame(rows, columns=[*columns, "reconstruction"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=int, nargs="?", default=512)
    parser.add_argument("models", type=int, nargs="?", default=14)
    parser.add_argument("--only", help=f"some of {','.join(NETWORKS)}, with commas")
    parser.add_argument("--pictures", type=int, default=64, help="of either side, of --only")
    parser.add_argument("--rounds", type=int, default=3, help="of --only")
    parser.add_argument("--device", default="cpu", help="of --only")
    add_option(parser)
    asked = parser.parse_args()
    names = [] if asked.only is None else asked.only.split(",")
    if unknown := set(names) - set(NETWORKS):
        parser.error(f"--only knows {', '.join(NETWORKS)}; got {', '.join(unknown)}.")
    begin()
    with Finds(asked.results) as finds, tempfile.TemporaryDirectory() as name:
        if names:
            networks(names, asked.pictures, asked.rounds, Path(name), asked.device, finds)
        else:
            pixels(asked.images, asked.models, Path(name), finds)


def pixels(n: int, models: int, folder: Path, finds: Finds) -> None:
    """The metrics without a network: an image, and a whole study."""
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randint(0, 256, (2, n, 3, SIDE, SIDE), generator=rng).float() / 255
    print(f"{n} pairs of {SIDE}×{SIDE} RGB with {torch.get_num_threads()} threads, an image")
    contest(x, y, finds)
    sets = pair_sets_of_labels(study(folder / "images", models))
    row = finds.table("study", f"{models * PER_MODEL} pairs from disk to disk", "s", "target")
    for metrics, most in STUDY:
        took = seconds(partial(score_sets, sets, metrics, Resources(), folder / "scores"))
        row(", ".join(metrics), f"{took:.1f}", judge(took, most=most, unit="s"))


if __name__ == "__main__":
    main()
