"""Table 2 of the COPA paper, measured: every method on every image, network and seed."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd
import torch
from torch import Tensor, nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.linear.copa import Copa
from semsim.attacks.linear.copa_prior import CopaPrior
from semsim.attacks.linear.outcome import Inversion, denoised, gradient_distance
from semsim.attacks.linear.rgap import RGap
from semsim.base.errors import AttackFailedError
from semsim.base.progress import Progress, Report, silent
from semsim.targets.cnn3 import CNN3
from semsim.targets.lenet import start_uniform
from semsim.targets.model import TargetModel
from semsim.types import GradientObservation, LabelledImages

TV_WEIGHT = 0.15  # of the paper's denoising
CLASSES = 10
SCALE = 20 * math.log10(255)  # the paper's PSNR is so much above that of images in [0, 1]
METHODS = ("rgap", "copa", "copa denoised", "copa-prior", "grey")


@dataclass(frozen=True, kw_only=True)
class Try:
    """One attacked image: the observation, and the truth that the attack never sees."""

    seen: GradientObservation
    image: Tensor


def cnn3_model(variant: int, activation: str, seed: int) -> TargetModel:
    """CNN3 as the paper attacks it: never trained, weights uniform in ±0.5, in float64.

    Args:
        activation: "tanh", or "leaky-relu", which comes with a sigmoid behind the last layer
            (Appendix C). It sees images less 0.5.
    """
    architecture = CNN3(variant=variant, activation=activation)  # type: ignore[arg-type]
    names = [str(number) for number in range(CLASSES)]
    with torch.random.fork_rng():
        model = TargetModel(architecture, names, mean=[0.5] * 3, std=[1.0] * 3, size=(32, 32))
    start_uniform(model, torch.Generator().manual_seed(seed))
    if activation == "leaky-relu":
        model.head = nn.Sequential(model.head, nn.Sigmoid())  # type: ignore[assignment]
    return model.double().eval()


def attempt(model: TargetModel, image: Tensor, label: int) -> Try:
    """Return one image, (3, 32, 32) in [0, 1], and what leaks of it, in float64."""
    exact = image.double()
    gradients = parameter_gradients(model, exact[None], torch.tensor([label % CLASSES]))
    shape = (image.shape[0], image.shape[1], image.shape[2])
    seen = GradientObservation(model=model, gradients=gradients, shape=shape, label=label % CLASSES)
    return Try(seen=seen, image=exact)


def linear_rows(
    images: LabelledImages, activation: str, variant: int, seed: int, *, report: Report = silent
) -> pd.DataFrame:
    """One row a method and image, of CNN3's `variant` with weights of `seed`.

    Args:
        images: 32×32. Columns: activation, variant, seed, image_id, class_name, method (one of
            `METHODS`), mse (of the image in [0, 1], not clamped, as the paper takes it), psnr (dB),
            psnr_paper (dB on the paper's scale), equation_residual (of the worst layer, as it was
            solved; NaN of grey, which solves nothing), residual (distance of the gradient, after
            clamping; grey's is the baseline), blew_up, solver (of `Inversion`), error ("" or why
            there is no image).
    """
    model = cnn3_model(variant, activation, seed)
    where = {"activation": activation, "variant": variant, "seed": seed}
    rows: list[dict[str, object]] = []
    for place, label in enumerate(images.labels.tolist()):
        what = {"image_id": images.ids[place], "class_name": images.classes[label]}
        one = attempt(model, images.images[place], label)
        for method, found in inversions(one.seen):
            rows.append({**where, **what, "method": method, **_judged(one, found)})
        report(Progress(place + 1, len(images)))
    return pd.DataFrame(rows)


def inversions(
    seen: GradientObservation,
) -> Iterator[tuple[str, Inversion | AttackFailedError]]:
    """The name of each method and what it finds, in the order of `METHODS`."""
    yield "rgap", _tried(RGap(), seen)
    copa = _tried(Copa(), seen)
    yield "copa", copa
    yield "copa denoised", _smoothed(copa)
    yield "copa-prior", _tried(CopaPrior(), seen)
    grey = torch.full(seen.shape, 0.5, dtype=torch.float64)
    yield "grey", Inversion(image=grey, residuals=(), solver="grey")


def _tried(
    attack: RGap | Copa | CopaPrior, seen: GradientObservation
) -> Inversion | AttackFailedError:
    try:
        return attack.inversion(seen)
    except AttackFailedError as failure:
        return failure


def _smoothed(found: Inversion | AttackFailedError) -> Inversion | AttackFailedError:
    if isinstance(found, AttackFailedError):
        return found
    return replace(found, image=denoised(found.image, TV_WEIGHT))


def _judged(one: Try, found: Inversion | AttackFailedError) -> dict[str, object]:
    if isinstance(found, AttackFailedError):
        names = ("mse", "psnr", "psnr_paper", "equation_residual", "residual")
        lost = dict.fromkeys(names, math.nan)
        return {**lost, "blew_up": False, "solver": "", "error": str(found)}
    mse = float((found.image - one.image).square().mean())
    psnr = -10 * math.log10(mse) if mse else math.inf
    return {
        "mse": mse,
        "psnr": psnr,
        "psnr_paper": psnr + SCALE,
        "equation_residual": math.nan if found.solver == "grey" else found.residual,
        "residual": gradient_distance(one.seen, found.image.clamp(0, 1)),
        "blew_up": found.blew_up,
        "solver": found.solver,
        "error": "",
    }
