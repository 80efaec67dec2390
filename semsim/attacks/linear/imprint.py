"""Pictures read off the layer that `semsim.targets.imprint` puts before a network.

Of unit i the gradients of weight and bias are the sums of aₚxₚ and of aₚ over the pictures p that
are brighter than its threshold, with aₚ the same for all units. Of neighbours the differences are
sums over the pictures of one bin: where there is one picture, their quotient is that picture, with
no step of optimisation (Fowl et al. 2022, arXiv:2110.13057, section 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from semsim.attacks.descent import Found
from semsim.attacks.linear.first_layer import FromFirstLayer, SeenLayer, solved
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Progress, Report
from semsim.base.registry import setting

_EMPTY = 1e-6  # of the largest gradient of a bias: what a bin without a picture may have


def expected(pictures: int, bins: int) -> float:
    """Count of pictures that are alone in their bin, of so many that fall into any one alike."""
    return pictures * (1 - 1 / bins) ** (pictures - 1)


@dataclass(frozen=True, kw_only=True)
class Imprint(FromFirstLayer):
    """Divide gradients of neighbouring rows; exact for every picture that is alone in its bin.

    Beyond the paper: the layer has each row twice, followed by different weights. Several pictures
    of a bin are mixed otherwise by each, so that only a single picture is the same in both.

    Attributes:
        apart: Root mean squared difference in [0, 1] of what both rows give of a picture, up to
            which it counts as one.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}, "code": {}, "fast": {}}
    called: ClassVar = "Imprint"

    apart: float = setting(1e-3, above=0)

    def pictures(
        self, layer: SeenLayer, count: int, rng: torch.Generator, report: Report
    ) -> list[Found]:
        """As `FromFirstLayer.pictures`: those that are alone, then a failure for each other."""
        images, weights, beyond = _bins(layer, count)
        distance = (images[0] - images[1]).flatten(1).square().mean(1).sqrt()
        outside = (images - images.clamp(0, 1)).abs().amax((0, 2, 3, 4))
        like = (distance <= self.apart) & (outside <= self.apart)
        slack = float(self.apart / layer.std.min())
        (good,) = (like & (beyond <= slack)).nonzero(as_tuple=True)
        best = good[distance[good].argsort()]
        flat = images[0, best].flatten(1)
        near = torch.cdist(flat, flat) <= 2 * self.apart * flat.shape[1] ** 0.5
        best = best[~near.tril(-1).any(1)]  # steps may move a picture to the next bin
        report(Progress(1, 1, f"{len(best)} of {count} pictures"))
        stronger = (weights[0].abs() > weights[1].abs())[best, None, None, None]
        first, second = images[:, best]
        grey = (second - 0.5).flatten(1).square().mean(1).sqrt()
        found = solved(torch.where(stronger, first, second), distance[best], grey)
        failure = AttackFailedError(
            f"Not separated: {len(best)} of {count} pictures are alone in a bin of brightness; "
            f"{len(distance) - len(best)} bins hold several, or what a defence made of them."
        )
        return [*found, *[failure] * (count - len(best))]


def _bins(layer: SeenLayer, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures that both copies of a layer give of the B bins that are not empty, dark to bright.

    Returns:
        (2, B, C, H, W), the sums of the weights of each bin's pictures, (2, B), and by how much
        brighter or darker than the bin such a picture is, (B,), in normalised values.

    Raises:
        SettingsError: Where the layer is none with equal rows and each bias twice.
        AttackFailedError: Where its gradient is zero or not finite.
    """
    rows, biases = layer.weight, layer.bias
    bins = len(biases) // 2
    twice = torch.equal(biases, biases[:bins].repeat(2))
    if not twice or not torch.equal(rows, rows[:1].expand_as(rows)):
        raise SettingsError(
            "Imprint works on a network whose first layer has equal rows and each bias twice, as "
            "the target imprint has. Take spear."
        )
    if not (layer.of_weight.isfinite().all() and layer.of_bias.isfinite().all()):
        raise AttackFailedError("A gradient is not finite; there is nothing to solve for.")
    order = biases[:bins].argsort(descending=True)
    joined = torch.cat([layer.of_weight, layer.of_bias[:, None]], 1)
    above = joined.unflatten(0, (2, bins))[:, order]
    inside = -above.diff(dim=1, append=torch.zeros_like(above[:, :1]))  # the last has none above
    weights = inside[..., -1].abs().amin(0)
    weights[inside[..., :-1].abs().amax((0, 2)) == 0] = 0  # what rounding alone leaves
    most = weights.argsort(descending=True)[:count]  # no more bins than pictures
    places = most[weights[most] > _EMPTY * layer.of_bias.abs().max()].sort().values
    if not len(places):
        raise AttackFailedError("The gradient of the first layer is zero; it leaks nothing.")
    inputs = inside[:, places, :-1] / inside[:, places, -1:]
    starts = -biases[order] / rows[0].sum()
    ends = torch.cat([starts[1:], starts.new_tensor([torch.inf])])
    shades = inputs @ rows[0] / rows[0].sum()
    beyond = torch.maximum(starts[places] - shades, shades - ends[places]).amax(0)
    images = layer.images(inputs.flatten(0, 1)).unflatten(0, (2, -1))
    return images, inside[:, places, -1], beyond
