"""What layer-wise inversion costs beside the same with matrices, and what it sees.

python -m benchmarks.linear [--rounds 3] [--variants 1 2 3 4] [--image FILE] [--no-dense]

The dense contestant is the tests' oracle: it builds U of every layer by loops, for 0.1 to
0.7 of its 0.8 to 90 s, and solves it by LAPACK's gelsd, as R-GAP's published code does. Both have
their turn in every round; times are CPU seconds of one thread, BLAS included, a ratio is the median
of those of the rounds.
Network and gradients are those of the COPA paper: CNN3 with uniform weights, in float64.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

for library in ("OMP", "OPENBLAS", "MKL"):  # read when NumPy and PyTorch are first imported
    os.environ[f"{library}_NUM_THREADS"] = "1"

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from benchmarks.keeping import Finds, add_option  # noqa: E402
from benchmarks.measuring import begin, judge  # noqa: E402
from semsim.attacks.linear.copa import Copa  # noqa: E402
from semsim.attacks.linear.copa_prior import CopaPrior  # noqa: E402
from semsim.attacks.linear.rgap import RGap  # noqa: E402
from semsim.datasets.symbols import Symbols  # noqa: E402
from semsim.images import read_images  # noqa: E402
from semsim.papers.copa import Try, attempt, cnn3_model  # noqa: E402

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

from oracles import dense_linear  # noqa: E402

ACTIVATIONS = ("tanh", "leaky-relu")
TIMES = (20, 100)  # as fast as with matrices: the targets, and that of variant 3


def dense_recursion(one: Try) -> Tensor:
    """The image of `RGap`, by matrices."""
    layers = list(one.seen.model.body)  # type: ignore[attr-defined]
    parts = one.seen.model.head.modules()  # type: ignore[attr-defined]
    head = next(part for part in parts if isinstance(part, nn.Linear))
    return 0.5 + dense_linear.dense_recursion(
        layers[0:-1:2], layers[1:-1:2], one.seen.shape, head, one.seen.gradients
    )


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def speed(tries: dict[tuple[str, int], Try], rounds: int, finds: Finds) -> None:
    """Keep CPU seconds of both recursions, how many times less ours takes, and both errors."""
    row = finds.table("speed", "network", "semsim", "dense", "ratio", "target", "errors")
    for (activation, variant), one in tries.items():
        recursion = partial(_recursion, one)
        recursion()  # what is loaded at its first use is not timed
        pairs = [(timed(recursion), timed(partial(dense_recursion, one))) for _ in range(rounds)]
        ratio = median(dense[0] / ours[0] for ours, dense in pairs)
        cells = [min(pair[who][0] for pair in pairs) for who in (0, 1)]
        errors = [float((found - one.image).square().mean()) for _, found in pairs[-1]]
        row(
            f"{activation}, variant {variant}",
            *(f"{cell:.2f}" for cell in cells),
            f"×{ratio:.0f}",
            judge(ratio, least=TIMES[variant == 3]),
            ", ".join(f"{error:.2g}" for error in errors),
        )


def _recursion(one: Try) -> Tensor:
    return RGap().inversion(one.seen).image


def sight(tries: dict[tuple[str, int], Try], finds: Finds) -> None:
    """Keep squared error and CPU seconds of all our attacks on the same image."""
    attacks: dict[str, RGap | Copa | CopaPrior] = {
        "R-GAP": RGap(),
        "COPA": Copa(),
        "COPA-prior": CopaPrior(),
    }
    heads = [f"{name}{what}" for name in attacks for what in (": error", ", seconds")]
    row = finds.table("sight", "network", *heads)
    for (activation, variant), one in tries.items():
        cells = []
        for attack in attacks.values():
            start = time.process_time()
            found = attack.inversion(one.seen)
            error = float((found.image - one.image).square().mean())
            cells += [f"{error:.3g}", f"{time.process_time() - start:.2f}"]
        row(f"{activation}, variant {variant}", *cells)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--variants", type=int, nargs="+", default=[1, 2, 3, 4])
    options.add_argument("--image", type=Path, help="32×32; without it a built-in symbol")
    options.add_argument("--no-dense", action="store_true", help="no comparison, which takes long")
    add_option(options)
    given = options.parse_args()
    begin()
    torch.set_num_threads(1)
    built_in = Symbols(test_per_class=1, size=32)("test").images[0]
    image = read_images([given.image], (32, 32))[0] if given.image else built_in
    tries = {
        (activation, variant): attempt(cnn3_model(variant, activation, 0), image, 9)
        for activation in ACTIVATIONS
        for variant in given.variants
    }
    print(f"torch {torch.__version__}, CPU seconds of one thread, float64, one image")
    with Finds(given.results) as finds:
        if not given.no_dense:
            speed(tries, given.rounds, finds)
        sight(tries, finds)


if __name__ == "__main__":
    main()
