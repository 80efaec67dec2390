"""Blocks of a mixed SemSim: what each compares, and how weights count."""

import pytest
import torch

from semsim.metrics.network import (
    NAMES,
    ModelSettings,
    SemSimModel,
    load_semsim,
    mixed,
    pixel_blocks,
    save_semsim,
    semsim_distance,
)
from semsim.metrics.pixel import mse
from semsim.metrics.provenance import Training


def pictures(n=3, side=32, seed=0):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(seed))


def gaps(a, b):
    pairs = zip(pixel_blocks(a), pixel_blocks(b), strict=True)
    return [(x - y).square().sum(1) for x, y in pairs]


def test_the_first_block_is_the_mean_squared_error():
    a, b = pictures(), pictures(seed=1)
    torch.testing.assert_close(gaps(a, b)[0].double(), mse(a, b))


def test_coarse_pixels_do_not_see_fine_noise_and_structure_does():
    a = torch.full((1, 3, 32, 32), 0.5)
    checks = a.clone()
    checks[..., ::2, ::2] += 0.1
    checks[..., 1::2, 1::2] += 0.1
    checks[..., ::2, 1::2] -= 0.1
    checks[..., 1::2, ::2] -= 0.1
    pixels, coarse, structure, _ = gaps(a, checks)
    assert pixels == pytest.approx(0.01, rel=1e-4)
    assert coarse < 1e-10
    assert structure > 0.5


def test_structure_does_not_see_another_brightness_or_contrast():
    a = pictures()
    other = 0.3 * a + 0.5
    pixels, _, structure, _ = gaps(a, other)
    assert (pixels > 0.03).all()
    assert (structure < 0.05).all()
    assert (gaps(a, pictures(seed=1))[2] > 1).all()


@pytest.mark.parametrize("side", [1, 5, 8, 13, 32])
def test_any_size_of_image_has_every_block(side):
    blocks = pixel_blocks(pictures(side=side))
    assert len(blocks) == len(NAMES) - 1
    assert all(block.isfinite().all() and len(block) == 3 for block in blocks)


def test_the_squared_distance_is_the_weighted_sum_of_the_blocks():
    a, b = pixel_blocks(pictures()), pixel_blocks(pictures(seed=1))
    weights = torch.tensor([0.5, 0.0, 2.0, 1.0])
    each = torch.stack([(x - y).square().sum(1) for x, y in zip(a, b, strict=True)])
    together = (mixed(a, weights) - mixed(b, weights)).square().sum(1)
    torch.testing.assert_close(together, weights @ each)


def test_a_mixed_checkpoint_scores_as_the_model_that_was_saved(tmp_path):
    torch.manual_seed(0)
    model = SemSimModel(
        ModelSettings(backbone="lenet", mixed=True), mean=[0.5] * 3, std=[0.3] * 3
    ).eval()
    model.weights.copy_(torch.tensor([1.0, 0.0, 0.5, 0.25, 3.0]))
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": ""}
    training = Training(**facts, versions={}, settings={}, pixels={"symbols/000": [""]})
    save_semsim(model, tmp_path / "m.safetensors", training)
    a, b = pictures(), pictures(seed=1)
    found = semsim_distance(load_semsim(tmp_path / "m.safetensors"), a, b)
    assert torch.equal(found, semsim_distance(model, a, b))
    assert model(a).shape == (3, model.width)
