import pytest
import torch


@pytest.fixture
def is_identity():
    """Whether a defence changes neither images nor gradients, in any phase."""

    def check(defence):
        rng = torch.Generator().manual_seed(0)
        images, gradients = (
            torch.rand(5, 3, 9, 11, generator=rng),
            torch.randn(2, 30, generator=rng),
        )
        out = defence.images(images, rng)
        shared = [defence.gradients(tuple(gradients), rng, phase) for phase in ("train", "attack")]
        still = not out.shift_x.any() and not out.shift_y.any() and not out.flipped.any()
        same = [torch.equal(torch.stack(each), gradients) for each in shared]
        return still and torch.equal(out.images, images) and all(same)

    return check
