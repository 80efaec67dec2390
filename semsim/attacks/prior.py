"""Our own attack: match gradients over what natural images are made of, not over pixels.

Augmentation moves the private image, and the border that it leaves shows the move. Random crops and
the translations of ATS (Gao et al. 2021, arXiv:2011.12505) move the image before its gradient is
taken. The vacated border has one colour, black, or a grey where the contrast was changed
afterwards, so an attacker can read the move off a first reconstruction.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.descent import (
    Descended,
    Found,
    Leaked,
    Rngs,
    Together,
    Updates,
    best,
    best_of_starts,
    first_of,
    one_of,
    reconstructions,
)
from semsim.attacks.descent.distance import Distance, distance_from, total_variation_of_each
from semsim.attacks.descent.first_order import Descent, descend, slope_of
from semsim.attacks.descent.lbfgs import Evaluate, walk_together
from semsim.attacks.image_basis import ImageBasis, image_basis
from semsim.attacks.labels import Label
from semsim.base.progress import Progress, Report, placed
from semsim.base.registry import setting
from semsim.types import AttackedModel, Reconstruction, UpdateObservation

_ERROR = 0.03  # of a pixel in a good reconstruction; below it nothing is told apart


@dataclass(frozen=True, kw_only=True)
class Move:
    """By how many pixels an image was moved, right and down positive, and what fills the border.

    Attributes:
        fill_right, fill_down: Brightness, 0 to 1, of the columns and of the rows left behind.
    """

    right: int = 0
    down: int = 0
    fill_right: float = 0.0
    fill_down: float = 0.0

    @property
    def shift(self) -> tuple[int, int]:
        """(right, down) in pixels."""
        return self.right, self.down


STILL = Move()


def moved(images: Tensor, move: Move) -> Tensor:
    """Images (…, H, W) moved by `move`, first sideways; of the same shape, differentiable.

    What leaves the frame is lost; what is left behind has the fill.
    """
    across = _shifted(images, move.right, move.fill_right)
    return _shifted(across.mT, move.down, move.fill_down).mT


def estimate_move(image: Tensor, *, limit: int, fill: float | None = 0.0) -> Move:
    """The move that explains the border of a reconstruction best; none where there is no border.

    Args:
        image: (C, H, W) in [0, 1], a reconstruction of the moved image.
        limit: The longest move tried, in pixels.
        fill: Brightness of the border, or None for any one grey, which is then read off. Each width
            of border splits the image into a strip of one grey with small errors and a picture with
            errors as large as its contrast; the split of the highest Gaussian likelihood wins. A
            dark rim of the picture itself can look the same: let the attack's objective decide
            between the image with and without the move.
    """
    down, fill_down = _best_border(image.mT, limit, fill)
    # Rows come last in a move, so they are whole, and would spoil the columns' grey.
    rows = image[:, max(down, 0) : image.shape[1] + min(down, 0)]
    right, fill_right = _best_border(rows, limit, fill)
    return Move(right=right, down=down, fill_right=fill_right, fill_down=fill_down)


def _best_border(image: Tensor, limit: int, fill: float | None) -> tuple[int, float]:
    """Columns of the best border, negative on the right side, and its brightness."""
    limit = min(limit, image.shape[-1] - 1)
    widths = [side * width for width in range(1, limit + 1) for side in (1, -1)]
    best, best_fill = 0, 0.0
    highest = _likelihood(image[..., :0], 0.0, image)
    for width in widths:
        strip = image[..., :width] if width > 0 else image[..., width:]
        picture = image[..., width:] if width > 0 else image[..., :width]
        level = float(strip.median()) if fill is None else fill
        likelihood = _likelihood(strip, level, picture)
        if likelihood > highest:
            best, best_fill, highest = width, level, likelihood
    return best, best_fill


def _likelihood(strip: Tensor, level: float, picture: Tensor) -> float:
    """Log-likelihood, but for a constant, of a strip around `level` beside a picture."""
    contrast = picture - picture.mean(dim=(-2, -1), keepdim=True)
    found = -picture.numel() * math.log(max(float(contrast.square().mean()), _ERROR**2)) / 2
    if strip.numel():
        found -= (
            strip.numel() * math.log(max(float((strip - level).square().mean()), _ERROR**2)) / 2
        )
    return found


def _shifted(images: Tensor, shift: int, level: float) -> Tensor:
    """Columns moved right by `shift`, or left where it is negative."""
    if shift == 0:
        return images
    kept = images[..., : images.shape[-1] - shift] if shift > 0 else images[..., -shift:]
    return F.pad(kept, (max(shift, 0), max(-shift, 0)), value=level)


_SPREAD = 0.25  # standard deviation of the mean brightness of photographs
_START = 0.01  # of the size of a natural image's coefficients: all but grey
_HISTORY = 100  # pairs of steps that L-BFGS remembers
_SCALE = 1e5  # torch's L-BFGS drops curvature pairs below an absolute 1e-10; near the truth all are
_ROUNDING = 1e-5  # of a pixel in [0, 1] that went through its coefficients in float32
# Names of autograd nodes whose slope jumps; a loss made of slopes then jumps too, and quasi-Newton
# steps, which need a second derivative, go astray.
_KINKED = ("Relu", "Prelu", "Hardtanh", "Hardswish", "Hardsigmoid", "Threshold", "MaxPool", "Abs")


@dataclass(frozen=True, kw_only=True)
class Prior(Together):
    """Match gradients in cosine waves of opponent colours, scaled as in natural images.

    The unknown is the coefficients of `image_basis.ImageBasis`, started next to the grey image,
    so that what the gradient does not determine stays as smooth and as grey as photographs are.

    There is neither paper nor other code: "paper" takes three times the steps of "code", the
    default, and "augmented" looks for the shift of a random crop or of ATS.

    Attributes:
        activation: "smooth" models get L-BFGS, "kinked" ones (ReLU, max pooling) Adam; "auto" looks
            at the model.
        steps: Iterations of L-BFGS; Adam takes twice as many.
        lr, tv: Of Adam only: first step size, in units of the coefficients, and weight of total
            variation.
        decay: Exponent of the fall of amplitude with frequency.
        chroma: Scale of colour beside brightness.
        curvature: Share of the curvature that ReLUs, leaky ones too, are lent under Adam, so that
            the descent knows which units to switch; max pooling is lent none. 0 for the true slope.
        boxed: Keep the image inside [0, 1] at every step of Adam. Without it the first steps may
            throw the image far outside, where a trained network's gradient no longer tells the way
            back.
        restarts: Independent starts; the lowest objective is kept.
        max_shift: 0 takes the image as it is. Otherwise the attacker expects augmentation to have
            moved the image by up to so many pixels, estimates the move from the border it left and
            returns the image moved back.
        border: Brightness of that border, "black", or "any" grey.
        label: "known", or "inferred" from the gradient.
        batch_norm: "eval" uses running statistics, "train" the image's own.
        updates: Where a client shares the change of its weights, "simulated" goes its local steps
            with the guess, "one-gradient" takes the change for one gradient.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"steps": 600, "restarts": 1},
        "code": {"steps": 200, "restarts": 1},
        "fast": {"steps": 80, "restarts": 1},
        "augmented": {"steps": 200, "max_shift": 16, "border": "any"},
    }

    activation: Literal["auto", "smooth", "kinked"] = "auto"
    steps: int = setting(200, least=1)
    lr: float = setting(0.4, above=0)
    tv: float = setting(0.02, least=0)
    decay: float = 0.8
    chroma: float = 0.3
    curvature: float = setting(0.1, least=0)
    boxed: bool = True
    restarts: int = setting(1, least=1)
    max_shift: int = setting(0, least=0)
    border: Literal["black", "any"] = "black"
    label: Label = "known"
    batch_norm: BatchNorm = "eval"
    updates: Updates = "simulated"

    def solve(self, seen: Leaked, labels: Sequence[int], rngs: Rngs, report: Report) -> list[Found]:
        """Kinked models are attacked with all images at once, smooth ones image after image.

        Of what `max_shift` expects nothing is undone in what a client shares of its pictures.
        """
        problem = self._problem(seen, labels)
        if not self.max_shift or isinstance(seen, UpdateObservation):
            return self._stage(problem, rngs, report)
        solved = self._stage(problem, rngs, one_of(report, 0, 2))
        moves = [self._move(one) for one in solved]
        places = [place for place, move in enumerate(moves) if any(move.shift)]
        rest = _stretched(one_of(report, 1, 2), self._iterations(problem))
        if places:
            framed = problem.some(places, [moves[place] for place in places])
            again = self._stage(framed, [rngs[place] for place in places], placed(rest, places))
            for place, other in zip(places, again, strict=True):
                solved[place] = best([solved[place], other])
        else:
            rest(Progress(1, 1))
        return solved

    def _problem(self, seen: Leaked, labels: Sequence[int]) -> "_Problem":
        one, kinked = first_of(seen), self.activation == "kinked"
        if self.activation == "auto":
            kinked = has_kinks(one.model, one.shape)
        basis = image_basis(
            one.shape, spread=_SPREAD, decay=self.decay, chroma=(self.chroma, self.chroma)
        )
        return _Problem(
            distance=distance_from(
                seen,
                labels,
                "cosine" if kinked else "scaled",
                batch_norm=self.batch_norm,
                curvature=self.curvature if kinked else 0.0,
            ),
            basis=basis.to(one.model.mean),
            moves=(STILL,) * len(labels),
            kinked=kinked,
        )

    def _stage(self, problem: "_Problem", rngs: Rngs, report: Report) -> list[Found]:
        return best_of_starts(self.restarts, partial(self._one_start, problem, rngs), report)

    def _one_start(self, problem: "_Problem", rngs: Rngs, report: Report) -> list[Found]:
        shape = problem.basis.amplitude.shape
        start = _START * torch.cat([torch.randn(1, *shape, generator=rng) for rng in rngs])
        ended = self._minimised(problem, start.to(problem.basis.amplitude), report)
        measured = problem.distance.beside_grey(problem.images(ended.unknown).clamp(0, 1))
        unmoved = problem.basis.image(ended.unknown).clamp(0, 1)
        found = reconstructions(unmoved, ended, *measured)
        if not self.max_shift:
            return found
        return [
            replace(one, shift=move.shift) if isinstance(one, Reconstruction) else one
            for one, move in zip(found, problem.moves, strict=True)
        ]

    def _minimised(self, problem: "_Problem", start: Tensor, report: Report) -> Descended:
        if not problem.kinked:
            return _solve_by_lbfgs(problem, start, steps=self.steps, report=report)
        return _solve_by_adam(
            problem,
            start,
            descent=Descent(steps=2 * self.steps, lr=self.lr, signed=False, schedule="cosine"),
            tv=self.tv,
            keep=problem.basis.boxed if self.boxed else None,
            report=report,
        )

    def _iterations(self, problem: "_Problem") -> int:
        return (2 if problem.kinked else 1) * self.steps * self.restarts

    def _move(self, found: Found) -> Move:
        if not isinstance(found, Reconstruction):
            return STILL
        fill = 0.0 if self.border == "black" else None
        return estimate_move(found.image, limit=self.max_shift, fill=fill)


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """The images of several observations of one model, as functions of coefficients.

    Attributes:
        distance: Joint cosine where the model has kinks, scaled squared distance otherwise: the
            latter is a sum of squares, which suits L-BFGS; the former forgives that a wrong pattern
            of active units scales the gradient.
        moves: What augmentation is believed to have done to each image; STILL for nothing.
    """

    distance: Distance
    basis: ImageBasis
    moves: tuple[Move, ...]
    kinked: bool

    def images(self, coefficients: Tensor) -> Tensor:
        """The images whose gradients leaked, as `coefficients` have them: (N, C, H, W)."""
        images = self.basis.image(coefficients)
        if not any(any(move.shift) for move in self.moves):
            return images
        return torch.cat(
            [moved(one, move) for one, move in zip(images.split(1), self.moves, strict=True)]
        )

    def some(self, places: Sequence[int], moves: Sequence[Move]) -> "_Problem":
        """The problem of the observations at `places` alone, with these moves."""
        return replace(self, distance=self.distance.some(places), moves=tuple(moves))


def _solve_by_adam(
    problem: _Problem,
    start: Tensor,
    *,
    descent: Descent,
    tv: float,
    keep: Callable[[Tensor], Tensor] | None,
    report: Report,
) -> Descended:
    """Adam on all images at once.

    Args:
        start: (N, C, H, W) coefficients.
        tv: Weight of the total variation of the image, in [0, 1].
        keep: Of `descend`.
    """

    def objective(coefficients: Tensor) -> Tensor:
        images = problem.images(coefficients)
        if keep is not None:
            images = _on_the_edge(images)
        variation = total_variation_of_each(images)
        if problem.distance.joint:
            variation = variation.mean().expand(len(variation))
        return problem.distance(images) + tv * variation

    return descend(
        partial(slope_of, objective),
        start,
        descent=descent,
        keep=keep,
        report=report,
        shown=problem.basis.image,
    )


def _on_the_edge(images: Tensor) -> Tensor:
    """Pixels that are 0 or 1 but for rounding, made so; the slope is as it was.

    Total variation would else take the sign of what rounding leaves between two such pixels.
    """
    known = images.detach()
    edge = known.round()
    return torch.where((known - edge).abs() < _ROUNDING, edge + (images - known), images)


def _solve_by_lbfgs(problem: _Problem, start: Tensor, *, steps: int, report: Report) -> Descended:
    """L-BFGS with a strong Wolfe line search (Nocedal and Wright 2006, §7.2).

    Args:
        start: (N, C, H, W) coefficients.
        steps: Iterations at most of an image, or of those that share a distance, of 1 to 1.25
            evaluations each.
    """
    every = list(range(len(start)))
    groups = [every] if problem.distance.joint else [[place] for place in every]

    def objective_of(walks: Sequence[int]) -> Callable[[Tensor], Tensor]:
        places = [place for walk in walks for place in groups[walk]]
        firsts = [places.index(groups[walk][0]) for walk in walks]
        heads = torch.tensor(firsts, device=start.device)
        own = problem.some(places, [problem.moves[place] for place in places])
        return lambda coefficients: own.distance(own.images(coefficients))[heads]

    return walk_together(
        [partial(_one_by_lbfgs, start[places], steps) for places in groups],
        objective_of,
        steps=steps,
        each=1,
        report=report,
        shown=problem.basis.image,
    )


def _one_by_lbfgs(start: Tensor, steps: int, evaluate: Evaluate) -> Descended:
    unknown = start.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS(
        [unknown],
        lr=1,
        max_iter=steps,
        max_eval=steps + steps // 4,
        history_size=_HISTORY,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )
    done = 0

    def closure() -> float:
        nonlocal done
        found, done = evaluate(unknown), done + 1
        unknown.grad = _SCALE * found.slope
        return _SCALE * found.value

    value = evaluate(unknown).value if _stepped(optimiser, closure) else math.nan
    failure = None if math.isfinite(value) else f"The objective became {value} after {done} steps."
    return Descended(
        unknown=unknown.detach(),
        objective=torch.full((len(start),), value, dtype=torch.float64),
        failures=(failure,) * len(start),
    )


def _stepped(optimiser: torch.optim.Optimizer, closure: Callable[[], float]) -> bool:
    """Minimise; False where the line search asked for a step that is no finite number."""
    try:
        optimiser.step(closure)
    except RuntimeError as error:
        if "without overflow" not in str(error):
            raise
        return False
    return True


def _stretched(report: Report, total: int) -> Report:
    """A report that tells everything as a share of `total`, so that parts of work can be joined."""

    def tell(progress: Progress) -> None:
        done = total * progress.done // progress.total
        report(replace(progress, done=done, total=total))

    return tell


def has_kinks(model: AttackedModel, shape: tuple[int, int, int]) -> bool:
    """Check whether the forward pass of `model` uses an activation or pooling that is not smooth.

    Read off the graph that autograd records for a grey image of `shape`, so that activations
    called as functions count like those that are modules.
    """
    image = torch.full((1, *shape), 0.5, device=model.mean.device, requires_grad=True)
    waiting = [model(image).grad_fn]
    known = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        known.add(node)
        if any(word in node.name() for word in _KINKED):
            return True
        waiting.extend(following for following, _ in node.next_functions)
    return False
