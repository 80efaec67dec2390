"""What layer-wise inversion costs beside the same with matrices, and what it sees.

python -m benchmarks.linear [--rounds 3] [--variants 1 2 3 4] [--image FILE] [--no-dense]

The dense contestant builds U of every layer with vectorised indexing and solves it by LAPACK's
least squares (gelsd), as R-GAP's published code does with slower building. Both have their turn
in every round; times are CPU seconds of one thread, a ratio is the median of those of the rounds.
Network and gradients are those of the COPA paper: CNN3 with uniform weights, in float64.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

from semsim.attacks.copa import Copa
from semsim.attacks.copa_prior import CopaPrior
from semsim.attacks.linear.activations import activation_of
from semsim.attacks.linear.rows import Try, attempt, cnn3_model
from semsim.attacks.rgap import RGap
from semsim.datasets.symbols import Symbols
from semsim.images import read_images

ACTIVATIONS = ("tanh", "leaky-relu")


def patches(shape: tuple[int, ...], layer: nn.Conv2d) -> np.ndarray:
    """Which input value every tap of every position sees, (taps, positions); no padding."""
    numbers = torch.arange(float(np.prod(shape)), dtype=torch.float64).view(1, *shape)
    seen = nn.functional.unfold(numbers, layer.kernel_size, stride=layer.stride)
    return seen[0].long().numpy()


def dense_layer(layer: nn.Conv2d, slope: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """U of one convolution without padding, one column an input value."""
    seen = patches(shape, layer)
    weight = layer.weight.detach().numpy()
    outputs, (taps, positions) = len(weight), seen.shape
    by_output = np.zeros((outputs, positions, int(np.prod(shape))))
    by_weight = np.zeros((outputs, taps, int(np.prod(shape))))
    kernels, slopes = weight.reshape(outputs, -1), slope.reshape(outputs, -1)
    across = np.arange(positions)
    for tap in range(taps):
        by_output[:, across, seen[tap]] = kernels[:, tap, None]
        by_weight[:, tap, seen[tap]] = slopes
    size = by_output.shape[-1]
    return np.concatenate([by_output.reshape(-1, size), by_weight.reshape(-1, size)])


def dense_recursion(one: Try) -> Tensor:
    """The image of `RGap`, by matrices."""
    model = one.seen.model
    layers = list(model.body)  # type: ignore[attr-defined]
    leaked = [gradient.numpy() for gradient in one.seen.gradients]
    shapes, example = [], torch.zeros(1, 3, 32, 32, dtype=torch.float64)
    for layer in layers[0:-1:2]:
        shapes.append(tuple(example.shape[1:]))
        example = layer(example)
    row = np.abs(leaked[-1]).argmax()
    x = leaked[-2][row] / leaked[-1][row]
    head = next(part for part in model.head.modules() if isinstance(part, nn.Linear))  # type: ignore[attr-defined]
    pulled = head.weight.detach().numpy().T @ leaked[-1]
    for place in (1, 0):
        activation = activation_of(layers[2 * place + 1])
        z = activation.inverse(torch.from_numpy(x))
        slope, z = pulled * activation.slope(z).numpy(), z.numpy()
        U = dense_layer(layers[2 * place], slope, shapes[place])
        x = np.linalg.lstsq(U, np.concatenate([z, leaked[place].ravel()]), rcond=None)[0]
        pulled = U[: len(z)].T @ slope
    return torch.from_numpy(x).view(3, 32, 32) + 0.5


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def speed(tries: dict[tuple[str, int], Try], rounds: int) -> None:
    """CPU seconds of both recursions, how many times less ours takes, and both errors."""
    print(f"\n{'recursion':22}{'semsim':>9}{'dense':>10}{'ratio':>9}{'MSE':>12}{'dense MSE':>12}")
    for (activation, variant), one in tries.items():
        recursion = partial(_recursion, one)
        recursion()  # what is loaded at its first use is not timed
        pairs = [(timed(recursion), timed(partial(dense_recursion, one))) for _ in range(rounds)]
        ratio = median(dense[0] / ours[0] for ours, dense in pairs)
        cells = [min(pair[who][0] for pair in pairs) for who in (0, 1)]
        errors = [float((found - one.image).square().mean()) for _, found in pairs[-1]]
        print(
            f"{activation:12}variant {variant} {cells[0]:7.2f} s{cells[1]:8.2f} s{ratio:8.0f}×"
            f"{errors[0]:12.3g}{errors[1]:12.3g}",
            flush=True,
        )


def _recursion(one: Try) -> Tensor:
    return RGap().inversion(one.seen).image


def sight(tries: dict[tuple[str, int], Try]) -> None:
    """CPU seconds and MSE of all our attacks on the same image."""
    attacks = {"rgap": RGap(), "copa": Copa(), "copa-prior": CopaPrior()}
    print(f"\n{'attacks':22}" + "".join(f"{name:>22}" for name in attacks))
    for (activation, variant), one in tries.items():
        cells = []
        for attack in attacks.values():
            start = time.process_time()
            found = attack.inversion(one.seen)
            error = float((found.image - one.image).square().mean())
            cells.append(f"{time.process_time() - start:9.2f} s {error:10.3g}")
        print(f"{activation:12}variant {variant} " + "".join(f"{c:>22}" for c in cells), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--variants", type=int, nargs="+", default=[1, 2, 3, 4])
    options.add_argument("--image", type=Path, help="32×32; without it a built-in symbol")
    options.add_argument("--no-dense", action="store_true", help="no comparison, which takes long")
    given = options.parse_args()
    torch.set_num_threads(1)
    built_in = Symbols(test_per_class=1, size=32)("test").images[0]
    image = read_images([given.image], (32, 32))[0] if given.image else built_in
    tries = {
        (activation, variant): attempt(cnn3_model(variant, activation, 0), image, 9)
        for activation in ACTIVATIONS
        for variant in given.variants
    }
    print(f"torch {torch.__version__}, CPU seconds of one thread, float64, one image")
    if not given.no_dense:
        speed(tries, given.rounds)
    sight(tries)


if __name__ == "__main__":
    main()
