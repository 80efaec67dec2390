"""SPEAR: a whole batch from one gradient, exactly (Dimitrov et al. 2024, arXiv:2403.03945).

Let Z = X Wᵀ + bias be the first layer, X the b pictures and Δ = ∂L/∂Z, (units, b). Its gradient is
Δ X = U R with U, (units, b), orthonormal and R = S Vᵀ, so that Δ = U Q and X = Q⁻¹ R for some Q,
(b, b). ReLU makes a column of Δ zero at each unit that its picture leaves off: the column of Q
spans the kernel of any b − 1 such rows of U. Rows are drawn until all kernels are found.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from semsim.attacks.descent import Found
from semsim.attacks.linear.first_layer import FromFirstLayer, SeenLayer, solved
from semsim.base.errors import AttackFailedError
from semsim.base.progress import Progress, Report
from semsim.base.registry import setting

_CHUNK = 4096  # draws at once
_PAIRS = 8  # ends of a draw that are tried
_REFINED = 32  # kernels of a round that are looked at, those with most zeros
_PROBED = 64  # units at which each is tried first
_LIKE_NOISE = 30.0  # times the noise: what counts as zero
_AGREES = 0.9  # least λ of a result; a wrong choice has about 0.75


@dataclass(frozen=True, kw_only=True)
class Spear(FromFirstLayer):
    """Solve for all pictures of a batch at once; exact where the first layer is linear with ReLU.

    Beyond the paper: rows at which few pictures seem to be on are drawn more often, a direction is
    kept only if both halves of its zeros decide it, and zeros are told by the noise that the
    singular values behind the b-th show, so that gradients in float32 do.

    Attributes:
        samples: Draws of rows at most. A batch of b takes about 2ᵇ.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "code": {},
        "fast": {"samples": 200_000},
    }
    called: ClassVar = "SPEAR"

    samples: int = setting(8_000_000, least=1)

    def pictures(
        self, layer: SeenLayer, count: int, rng: torch.Generator, report: Report
    ) -> list[Found]:
        """As `FromFirstLayer.pictures`; all of them, or an error where draws run out."""
        space = _Space.of(layer.of_weight, count)
        known, agreed = 0, 0.0
        for found in space.directions(self.samples, rng, report):
            known = min(len(found), count)
            mixing = space.scaled(found[:count].T, layer.of_bias) if known == count else None
            if mixing is None:
                continue
            inputs = torch.linalg.solve(mixing, space.rows)  # (b, n)
            apart = space.disagreement(inputs @ layer.weight.T + layer.bias, mixing)
            agreed = max(agreed, 1 - float(apart.mean()))
            if agreed >= _AGREES:
                report(Progress(self.samples, self.samples, f"{count} of {count} pictures"))
                dark = ((0.5 - layer.mean) / layer.std).expand(1, *layer.shape).reshape(1, -1)
                grey = space.disagreement(dark @ layer.weight.T + layer.bias, mixing)
                return solved(layer.images(inputs), apart, grey)
        if known < count:
            raise AttackFailedError(
                f"{self.samples:,} draws gave {known} of {count} pictures. Take more samples, or a "
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

    def directions(self, samples: int, rng: torch.Generator, report: Report) -> Iterator[Tensor]:
        """Draw rows of U; yield all columns of Q known so far, most zeros first, as they come.

        Yields:
            (K, b), each of length 1.
        """
        count = self.units.shape[1]
        rows = self.units[self.live] / self.lengths[self.live, None]
        found = rows.new_ones(1, 1) if count == 1 else rows.new_empty(0, count)
        if count == 1:
            yield found
            return
        end = samples
        leverage = self.lengths[self.live].square()
        weights = torch.exp(-2 * leverage / leverage.mean()).cpu()
        for done in range(0, samples, _CHUNK):
            if done > end:
                return
            report(Progress(done, samples, f"{min(len(found), count)} of {count} pictures"))
            left = _kernels(rows, weights, rng, self._coarse, self._needed(rows))
            before = len(found)
            left = left[~_like(left, found, 1e-3)][:_REFINED]
            while len(left := left[~_like(left, found, 1e-3)]):
                one = self._refined(rows, left[0], rng)
                left = left[1:][~_like(left[1:], left[:1], 1e-3)]
                if one is not None and not _like(one[None], found, 1e-6):
                    found = torch.cat([found, one[None]])
            if len(found) > before:
                zeros = ((rows @ found.T).abs() < self.zero).sum(0)
                found = found[zeros.argsort(descending=True)]
                if before < count <= len(found):  # as many again may find better ones
                    end = 2 * done + 20 * _CHUNK
                yield found

    @property
    def _coarse(self) -> float:
        """Product that counts as zero for a kernel of few rows, which amplifies noise."""
        return min(max(30 * self.zero, 1e-7), 0.02)

    @staticmethod
    def _needed(rows: Tensor) -> int:
        """Zeros of a direction that is kept: those it was drawn by, and a twentieth of units."""
        return rows.shape[1] - 1 + max(8, len(rows) // 20)

    def _refined(self, rows: Tensor, one: Tensor, rng: torch.Generator) -> Tensor | None:
        """The kernel of all rows that `one`, (b,), makes zero; None where they leave it open.

        A mixture of two pictures' columns is zero where both are off, too. Those rows have more
        than one direction in their kernel, but for single rows at which the two cancel.
        """
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


def _kernels(
    rows: Tensor, weights: Tensor, rng: torch.Generator, zero: float, needed: int
) -> Tensor:
    """Kernels of drawn rows that make many others zero.

    A draw eliminates b − 3 rows; what is left of the others are vectors of three, and several pairs
    of them give a kernel each by their cross product.

    Args:
        rows: (units, b), of length 1.
        weights: (units,), chances of a row to be drawn.
        zero: Product with a row that counts as zero.
        needed: Zeros of a kernel that is returned.

    Returns:
        (K, b), of length 1, most zeros first.
    """
    count = rows.shape[1]
    tail = 2 if count > 3 else 0
    head = count - 1 - tail
    drawn = torch.multinomial(weights, _CHUNK * head, True, generator=rng).view(_CHUNK, head)
    taken = rows[drawn.to(rows.device)]
    solved, failed = torch.linalg.solve_ex(taken[:, :, :head], -taken[:, :, head:])
    ends = torch.eye(tail + 1).to(solved).expand(_CHUNK, -1, -1)
    basis = torch.cat([solved, ends], 1)[failed == 0]  # (draws, b, tail + 1)
    if tail:
        probed = torch.randperm(len(rows), generator=rng)[:_PROBED].to(rows.device)
        left = rows[probed] @ basis  # (draws, units, 3)
        first, second = torch.randint(left.shape[1], (2, _PAIRS), generator=rng)
        across = torch.linalg.cross(left[:, first], left[:, second])  # (draws, pairs, 3)
        lengths = (across @ basis.mT).norm(dim=2)
        zeros = ((left @ across.mT).abs() < zero * lengths[:, None]).sum(1)
        draw, pair = (zeros > left.shape[1] // 8).nonzero(as_tuple=True)
        kernel = (basis[draw] @ across[draw, pair][:, :, None])[..., 0]
    else:
        kernel = basis[..., 0]
    kernel = kernel / kernel.norm(dim=1, keepdim=True)
    kernel = kernel[kernel.isfinite().all(1)]
    zeros = ((kernel @ rows.T).abs() < zero).sum(1)
    return kernel[zeros.argsort(descending=True)][: int((zeros >= needed).sum())]
