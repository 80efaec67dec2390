"""SPEAR: a whole batch from one gradient, exactly (Dimitrov et al. 2024, arXiv:2403.03945).

Let Z = X Wᵀ + bias be the first layer, X the b pictures and Δ = ∂L/∂Z, (units, b). Its gradient is
Δ X = U R with U, (units, b), orthonormal and R = S Vᵀ, so that Δ = U Q and X = Q⁻¹ R for some Q,
(b, b). ReLU makes a column of Δ zero at each unit that its picture leaves off: Δ is sparse, and a
column q of Q spans the kernel of the rows of U at those units. The paper draws b − 1 rows until
they are such, which takes about 2ᵇ draws. Here q is a unit vector for which U q is sparse, and
descent on a sphere finds it, as dictionary learning does (Sun, Qu and Wright 2015,
arXiv:1504.06785). Bakarsky et al. 2025 (SPEAR++, arXiv:2510.24200) take this way, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

import torch
from torch import Tensor

from semsim.attacks.descent import Found
from semsim.attacks.linear.first_layer import FromFirstLayer, SeenLayer, solved
from semsim.base.errors import AttackFailedError
from semsim.base.progress import Progress, Report
from semsim.base.registry import setting

_STEPS = 150  # of a descent
_STRIDE = 0.3  # of its first steps
_WIDTHS = 1.0, 0.96, 0.01  # of the penalty: at first, from step to step, and at last
_FEW = 12  # pictures at most for which rows are drawn besides
_NEAREST = 1.3  # times b: rows that decide a direction at first
_LIKE_NOISE = 30.0  # times the noise: what counts as zero
_AGREES = 0.9  # least λ of a result; a wrong choice has about 0.75


@dataclass(frozen=True, kw_only=True)
class Spear(FromFirstLayer):
    """Solve for all pictures of a batch at once; exact where the first layer is linear with ReLU.

    Beyond the paper: directions are found by descent, a direction is kept only if both halves of
    its zeros decide it, and zeros are told by the noise that the singular values behind the b-th
    show, so that gradients in float32 do.

    Attributes:
        starts: Descents at most, each from a random direction.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "code": {},
        "fast": {"starts": 5_000},
    }
    called: ClassVar = "SPEAR"

    starts: int = setting(100_000, least=1)

    def pictures(
        self, layer: SeenLayer, count: int, rng: torch.Generator, report: Report
    ) -> list[Found]:
        """As `FromFirstLayer.pictures`; all of them, or an error where starts run out."""
        space = _Space.of(layer.of_weight, count)
        known, agreed, best = 0, 0.0, list[Found]()
        wrong = list[Tensor]()  # mixtures of two pictures' directions
        dark = ((0.5 - layer.mean) / layer.std).expand(1, *layer.shape).reshape(1, -1)
        for found in space.directions(self.starts, wrong, rng, report):
            chosen = found[:count]
            known = max(known, len(chosen))
            mixing = space.scaled(chosen.T, layer.of_bias) if len(chosen) == count else None
            if mixing is None:
                continue
            inputs = torch.linalg.solve(mixing, space.rows)  # (b, n)
            apart = space.disagreement(inputs @ layer.weight.T + layer.bias, mixing)
            if 1 - float(apart.mean()) > agreed:
                agreed = 1 - float(apart.mean())
                grey = space.disagreement(dark @ layer.weight.T + layer.bias, mixing)
                best = solved(layer.images(inputs), apart, grey)
            if float(apart.max()) <= 1 - _AGREES:
                break
            wrong.append(chosen[apart.argmax()])
        if agreed >= _AGREES:
            report(Progress(self.starts, self.starts, f"{count} of {count} pictures"))
            return best
        if known < count:
            raise AttackFailedError(
                f"{self.starts:,} starts gave {known} of {count} pictures. Take more starts, or a "
                "smaller batch."
            )
        raise AttackFailedError(
            f"The {count} pictures found agree with the gradient at a share of λ = {agreed:.2f} of "
            f"the first layer's units; {_AGREES} is asked. A defence may have disturbed it."
        )


@dataclass(frozen=True, kw_only=True)
class _Space:
    """The column space of a gradient, whitened, and how well it is known.

    Attributes:
        units: U, (units, b), orthonormal.
        lengths: (units,), of its rows.
        live: (units,), False where no picture switches a unit on.
        rows: R, (b, n).
        zero: Length, relative, up to which a product counts as zero.
    """

    units: Tensor
    lengths: Tensor
    live: Tensor
    rows: Tensor
    zero: float

    @classmethod
    def of(cls, gradient: Tensor, count: int) -> "_Space":
        """Read the space of `count` pictures off a weight's gradient, (units, n)."""
        if not torch.isfinite(gradient).all():
            raise AttackFailedError("A gradient is not finite; there is nothing to solve for.")
        if min(gradient.shape) < count:
            raise AttackFailedError(
                f"A first layer of {gradient.shape[1]} inputs and {gradient.shape[0]} units cannot "
                f"tell {count} pictures apart; take a smaller batch."
            )
        left, values, right = torch.linalg.svd(gradient, full_matrices=False)
        least = float(values[count - 1])
        noise = float(values[count]) / least if least and len(values) > count else 0.0
        zero = max(_LIKE_NOISE * noise, 1e-9)
        if not least > 1e-9 * float(values[0]) or zero > 0.01:
            raise AttackFailedError(
                f"The first layer's gradient is no sum of {count} pictures: its singular value "
                f"{count + 1} is {noise:.1g} of the one before. A defence or several local steps "
                "disturb it, or two pictures are alike."
            )
        units = left[:, :count]
        lengths = units.norm(dim=1)
        live = lengths > lengths.max() * zero
        rows = values[:count, None] * right[:count]
        return cls(units=units, lengths=lengths, live=live, rows=rows, zero=zero)

    def directions(
        self, starts: int, wrong: list[Tensor], rng: torch.Generator, report: Report
    ) -> Iterator[Tensor]:
        """Descend from random starts; yield all columns of Q known so far, most zeros first.

        Args:
            wrong: Directions, (b,), that are no columns; more may be added between two yields.

        Yields:
            (K, b), each of length 1.
        """
        count = self.units.shape[1]
        own, rows = self.units[self.live], self.units[self.live] / self.lengths[self.live, None]
        found = rows.new_ones(1, 1) if count == 1 else rows.new_empty(0, count)
        if count == 1:
            yield found
            return
        end, at_once = starts, max(64, 4 * count)
        kinds = cycle(((own, False), (rows, True), (rows, False), (own, True)))
        for done, (matrix, concave) in zip(range(0, starts, at_once), kinds, strict=False):
            if done > end:
                return
            report(Progress(done, starts, f"{min(len(found), count)} of {count} pictures"))
            begun = torch.randn(min(at_once, starts - done), count, generator=rng).to(own)
            if 0 < len(found) < count:  # half of them away from what is known
                half = begun[len(begun) // 2 :]
                known = torch.linalg.qr(found.T)[0]
                half -= half @ known @ known.T
            not_these = torch.stack(wrong) if wrong else rows.new_empty(0, count)
            found = found[~_like(found, not_these, 1e-6)]
            before = len(found)
            left = _descended(matrix.float(), begun.float(), concave).to(own)
            if count <= _FEW:
                left = torch.cat([left, _kernels(rows, len(left), rng)])
            zeros = ((rows @ left.T).abs() < self._coarse).sum(0)
            left = left[zeros.argsort(descending=True)]  # what is exact before what is near it
            while len(left := left[~_like(left, found, 1e-3)]):
                one = self._refined(rows, left[0], rng)
                left = left[1:][~_like(left[1:], left[:1], 1e-3)]
                if one is not None and not _like(one[None], torch.cat([found, not_these]), 1e-6):
                    found = torch.cat([found, one[None]])
            if len(found) > before:
                zeros = ((rows @ found.T).abs() < self.zero).sum(0)
                found = found[zeros.argsort(descending=True)]
                if before < count <= len(found):  # as many again may find better ones
                    end = 2 * done + 20 * at_once
                yield found

    @property
    def _coarse(self) -> float:
        """Product that counts as zero for a direction that few rows decide: they amplify noise."""
        return min(max(30 * self.zero, 1e-7), 0.02)

    @staticmethod
    def _needed(rows: Tensor) -> int:
        """Zeros of a direction that is kept: those that decide it, and a twentieth of units."""
        return rows.shape[1] - 1 + max(8, len(rows) // 20)

    def _refined(self, rows: Tensor, one: Tensor, rng: torch.Generator) -> Tensor | None:
        """The kernel of all rows that `one`, (b,), makes about zero; None where they leave it open.

        A mixture of two pictures' columns is zero where both are off, too. Those rows have more
        than one direction in their kernel, but for single rows at which the two cancel.
        """
        for _ in range(2):
            products = (rows @ one).abs()
            nearest = max(int(_NEAREST * len(one)) + 2, int((products < self._coarse).sum()))
            decide = rows[products.argsort()[:nearest]]
            one = torch.linalg.svd(decide, full_matrices=False)[2][-1]
        for limit in (self._coarse, self._coarse, self.zero):
            zeros = rows[(rows @ one).abs() < limit]
            if len(zeros) < self._needed(rows):
                return None
            one = torch.linalg.svd(zeros, full_matrices=False)[2][-1]
        order = torch.randperm(len(zeros), generator=rng).to(zeros.device)
        halves = (torch.linalg.svdvals(zeros[part]) for part in (order[::2], order[1::2]))
        sure = all(len(one) == rows.shape[1] and one[-2] > 30 * self.zero for one in halves)
        return one if sure else None

    def scaled(self, directions: Tensor, of_bias: Tensor) -> Tensor | None:
        """Q, (b, b): directions with the lengths by which ∂L/∂bias is the sum of Δ's columns.

        None where two directions are the same.
        """
        lengths, failed = torch.linalg.solve_ex(directions, self.units.T @ of_bias)
        return None if failed else directions * lengths

    def disagreement(self, outputs: Tensor, mixing: Tensor) -> Tensor:
        """Share of units, (b,), that pictures switch otherwise than the gradient has them: 1 − λ.

        Args:
            outputs: The layer's, (b, units), or (1, units) of one picture in place of each.
            mixing: Q, (b, b).
        """
        on = (self.units @ mixing).abs() > self.zero * self.lengths[:, None] * mixing.norm(dim=0)
        return (on != (outputs > 0).T)[self.live].double().mean(0)


def _like(some: Tensor, found: Tensor, apart: float) -> Tensor:
    """Check which of `some`, (N, b), are one of `found`, (K, b), up to sign: (N,) bool."""
    return ((some @ found.T).abs() > 1 - apart).any(1)


def _kernels(rows: Tensor, draws: int, rng: torch.Generator) -> Tensor:
    """Kernels of b − 1 drawn rows each, (draws, b), of length 1: the paper's way."""
    drawn = torch.randint(len(rows), (draws, rows.shape[1] - 1), generator=rng)
    return torch.linalg.svd(rows[drawn.to(rows.device)])[2][:, -1]


def _descended(matrix: Tensor, begun: Tensor, concave: bool) -> Tensor:
    """Unit vectors q for which `matrix` q is sparse, by gradient descent on the sphere.

    Args:
        matrix: (units, b), any scale.
        begun: (N, b), where each descent begins.
        concave: Minimise Σ log(x² + w²) in place of Σ w log cosh(x / w), which is Σ |x| at last;
            each finds directions that the other misses.

    Returns:
        (N, b), of length 1.
    """
    matrix = matrix / matrix.norm() * (len(matrix) * matrix.shape[1]) ** 0.5
    found, width = begun / begun.norm(dim=1, keepdim=True), _WIDTHS[0]
    for step in range(_STEPS):
        products = found @ matrix.T
        if concave:
            slopes = 2 * width * products / (products.square() + width**2)
        else:
            slopes = torch.tanh(products / width)
        slope = slopes @ matrix / len(matrix)
        slope = slope - found * (found * slope).sum(1, keepdim=True)
        late = max(0.0, step - 0.6 * _STEPS)
        found = found - _STRIDE * 0.93**late * slope
        found = found / found.norm(dim=1, keepdim=True)
        width = max(width * _WIDTHS[1], _WIDTHS[2])
    return found
