import pytest
import torch

from semsim.defences import DEFENCES
from semsim.registry import build


@pytest.mark.parametrize("name", DEFENCES)
def test_defence_keeps_shapes_and_range_and_leaves_its_input_alone(name):
    defence = build(DEFENCES, name)
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    gradients = (torch.ones(4, 3), torch.ones(4))
    kept = images.clone()
    out = defence.images(images, torch.Generator().manual_seed(1))
    shared = defence.gradients(gradients, torch.Generator().manual_seed(1), "attack")
    assert torch.equal(images, kept)
    assert out.images.shape == images.shape
    assert out.images.min() >= 0
    assert out.images.max() <= 1
    assert len(out.shift_x) == len(out.shift_y) == len(out.flipped) == 5
    assert [g.shape for g in shared] == [g.shape for g in gradients]
    assert torch.equal(gradients[0], torch.ones(4, 3))


@pytest.mark.parametrize("name", DEFENCES)
def test_same_seed_same_result(name):
    defence = build(DEFENCES, name)
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    gradients = (torch.ones(4, 3),)

    def run():
        rng = torch.Generator().manual_seed(2)
        return defence.images(images, rng).images, defence.gradients(gradients, rng, "train")[0]

    for first, second in zip(run(), run(), strict=True):
        assert torch.equal(first, second)
