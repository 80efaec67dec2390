"""Images as training sees them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from learning_toy import moves

from semsim.base.errors import DataError
from semsim.images import read_image, write_png
from semsim.learning.batches import (
    channel_statistics,
    crop_and_flip,
    load_table,
    mildly_changed,
    take,
)


def image(seed, side=32):
    return torch.rand(3, side, side, generator=torch.Generator().manual_seed(seed))


def test_images_of_the_right_size_are_kept_to_the_bit(tmp_path):
    paths = [tmp_path / f"{seed}.png" for seed in range(3)]
    for seed, path in enumerate(paths):
        write_png(image(seed), path)
    table = load_table(paths, 32)
    assert table.dtype == torch.uint8
    assert torch.equal(take(table, np.array([2]))[0], read_image(paths[2]))


def test_images_of_other_sizes_are_resized(tmp_path):
    for side in (20, 48):
        write_png(image(side, side), tmp_path / f"{side}.png")
    assert load_table([tmp_path / "20.png", tmp_path / "48.png"], 32).shape == (2, 3, 32, 32)


def test_a_missing_image_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.png"):
        load_table([tmp_path / "gone.png"], 32)


def test_channel_statistics_are_those_of_numpy():
    table = (torch.stack([image(0), image(1)]) * 255).byte()
    mean, std = channel_statistics(table)
    values = table.numpy().transpose(1, 0, 2, 3).reshape(3, -1) / 255
    assert mean == pytest.approx(values.mean(1))
    assert std == pytest.approx(values.std(1, ddof=1))


def test_a_constant_channel_does_not_divide_by_zero():
    assert min(channel_statistics(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))[1]) > 0


def test_every_augmented_image_is_a_crop_or_its_mirror():
    originals = torch.stack([image(seed, 16) for seed in range(12)])
    augmented = crop_and_flip(originals, np.random.default_rng(0))
    found = []
    for before, after in zip(originals, augmented, strict=True):
        matches = moves(before, after)
        assert len(matches) == 1
        found.extend(matches)
    assert len(set(found)) > 6  # each image moves on its own
    assert {flip for _, _, flip in found} == {False, True}


def test_images_of_one_original_can_be_moved_alike():
    originals = torch.stack([image(seed) for seed in range(4)])
    alike = np.array([7, 7, 0, 3, 0, 3, 7, 1])
    together = crop_and_flip(originals[alike % 4], np.random.default_rng(0), alike)
    for number in (7, 0, 3):
        first, *others = together[alike == number]
        assert others
        assert all(torch.equal(first, other) for other in others)
    # Each number has a move of its own, the one that its image would have alone.
    apart = crop_and_flip(originals, np.random.default_rng(0))  # 0, 1, 3, 7 have moves 0 to 3
    assert all(torch.equal(apart[n], together[alike == n][0]) for n in (0, 1))
    assert not torch.equal(together[alike == 3][0], together[alike == 7][0])


def test_augmentation_follows_its_generator():
    originals = torch.stack([image(seed) for seed in range(4)])
    first, again, other = (
        crop_and_flip(originals, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_mild_change_is_small_and_of_each_image_its_own():
    originals = torch.stack([image(0)] * 6)
    smooth = F.interpolate(originals[..., ::8, ::8], (32, 32), mode="bicubic").clamp(0, 1)
    changed = mildly_changed(smooth, np.random.default_rng(0))
    assert changed.shape == smooth.shape
    assert 0 <= changed.min() <= changed.max() <= 1
    assert 0.005 < (changed - smooth).abs().mean() < 0.08
    assert len({row.sum().item() for row in changed}) == 6
    assert torch.equal(changed, mildly_changed(smooth, np.random.default_rng(0)))
