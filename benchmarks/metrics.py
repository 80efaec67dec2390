"""What the metrics cost over scikit-image's own functions called in a loop.

python -m benchmarks.metrics [images]
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from skimage.metrics import (
    mean_squared_error,
    peak_signal_noise_ratio,
    structural_similarity,
)
from torch import Tensor

from semsim.metrics.pixel import mse, psnr
from semsim.metrics.ssim import ssim

WANG = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
REPEATS = 5


def best_seconds(work: Callable[[], object]) -> float:
    """The fastest of some runs: what is slower is other programs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], n: int) -> None:
    a, b = best_seconds(ours), best_seconds(theirs)
    print(f"{name:14}{a / n * 1e3:10.4f} ms{b / n * 1e3:12.4f} ms{(a / b - 1) * 100:+10.1f} %")


def loop(score: Callable[..., float], x: np.ndarray, y: np.ndarray, **settings: object) -> list:
    return [score(a, b, **settings) for a, b in zip(x, y, strict=True)]


def arrays(images: Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).double().numpy()


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    x, y = torch.rand(2, n, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    # The images are given as tensors to both: turning them round is part of a loop, too.
    print(
        f"{n} pairs of 32×32 RGB, an image\n{'':14}{'semsim':>13}{'scikit-image':>15}{'over':>12}"
    )
    compare("mse", lambda: mse(x, y), lambda: loop(mean_squared_error, arrays(x), arrays(y)), n)
    compare(
        "psnr",
        lambda: psnr(x, y),
        lambda: loop(peak_signal_noise_ratio, arrays(x), arrays(y), data_range=1.0),
        n,
    )
    for name, window in (("ssim", WANG), ("ssim-uniform", {})):
        ours = "gaussian" if window else "uniform"
        compare(
            name,
            lambda ours=ours: ssim(x, y, ours),
            lambda window=window: loop(
                structural_similarity,
                arrays(x),
                arrays(y),
                channel_axis=-1,
                data_range=1.0,
                **window,
            ),
            n,
        )


if __name__ == "__main__":
    main()
