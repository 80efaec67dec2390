import numpy as np
import pytest
import torch

from semsim.base.errors import DataError, SettingsError
from semsim.metrics import Pairs, Resources
from semsim.metrics.pixel import psnr
from semsim.metrics.registered import (
    PsnrRegistered,
    SsimRegistered,
    psnr_registered,
    ssim_registered,
)
from semsim.metrics.structural import ssim

IMAGES = torch.rand(4, 3, 24, 22, generator=torch.Generator().manual_seed(0))


def shifted(images, dx, dy):
    """As augmentation shifts: right and down positive, black where nothing came in."""
    padded = torch.nn.functional.pad(images, (5, 5, 5, 5))
    return padded[..., 5 - dy : 29 - dy, 5 - dx : 27 - dx]


@pytest.mark.parametrize("metric", [PsnrRegistered, SsimRegistered])
def test_what_augmentation_moved_is_found_again(metric):
    moved = [
        shifted(IMAGES[:1], 4, -3),
        shifted(IMAGES[1:2].flip(-1), -4, 4),
        shifted(IMAGES[2:3], 5, 0),  # too far
        IMAGES[3:].flip(-2),  # upside down
    ]
    pairs = Pairs(originals=IMAGES, reconstructions=torch.cat(moved))
    values = metric().prepare(Resources())(pairs).values
    best = np.inf if metric is PsnrRegistered else 1.0
    assert values[:2] == pytest.approx([best, best])
    assert (values[2:] < (20 if metric is PsnrRegistered else 0.5)).all()
    unflipped = metric(flip=False).prepare(Resources())(pairs).values
    assert unflipped[0] == pytest.approx(best)
    assert unflipped[1] < values[1]


def test_identical_overlaps_are_counted():
    pairs = Pairs(originals=IMAGES, reconstructions=shifted(IMAGES, 1, 1))
    (note,) = PsnrRegistered().prepare(Resources())(pairs).notes
    assert note.startswith("PSNR is infinite where reconstructions equal their original where they")


def test_without_shift_and_flip_it_is_the_plain_metric_and_more_freedom_is_never_worse():
    other = torch.rand(4, 3, 24, 22, generator=torch.Generator().manual_seed(1))
    for registered, plain in ((psnr_registered, psnr), (ssim_registered, ssim)):
        values = [registered(IMAGES, other, s, f) for s, f in ((0, False), (2, False), (4, True))]
        assert torch.allclose(values[0], plain(IMAGES, other), rtol=0, atol=1e-12)
        assert (values[1] >= values[0] - 1e-12).all()
        assert (values[2] >= values[1] - 1e-12).all()


def test_a_score_does_not_depend_on_where_the_work_is_cut():
    many = torch.rand(2, 120, 3, 15, 15, generator=torch.Generator().manual_seed(2))
    for registered in (psnr_registered, ssim_registered):
        together = registered(*many, 1, True)
        some = registered(*many[:, 97:99], 1, True)
        assert torch.allclose(some, together[97:99], rtol=0, atol=1e-12)


def as_bytes(images):
    return torch.round(images * 255) / 255


def pairs_near_a_tie():
    """Pairs of which single precision tells least: flat and bright, grey, white, hardly moved."""
    rng = torch.Generator().manual_seed(5)
    noise = torch.rand(12, 3, 20, 20, generator=rng)
    wide = torch.nn.functional.interpolate(noise[:3, :, :4, :4], 20, mode="bilinear")
    flat = as_bytes(0.97 + 0.01 * noise[3:6])
    first = [wide, flat, noise[6:8], torch.ones(1, 3, 20, 20), noise[8:10]]
    second = [
        shifted_by_rolling(as_bytes(wide), 1),
        as_bytes(0.97 + 0.01 * noise[9:12]),
        torch.full((2, 3, 20, 20), 0.5),
        torch.ones(1, 3, 20, 20),
        shifted_by_rolling(noise[8:10], -2),
    ]
    return torch.cat(first), torch.cat(second)


def shifted_by_rolling(images, by):
    return images.roll((by, -by), (2, 3))


def test_ssim_is_the_best_of_all_overlaps_where_they_are_all_but_equal():
    x, y = pairs_near_a_tie()
    sides = [range(max(0, -d), 20 - max(0, d)) for d in (-2, -1, 0, 1, 2)]
    every = []
    for mirrored in (y, y.flip(-1)):
        for rows, theirs in zip(sides, sides[::-1], strict=True):
            for columns, their_columns in zip(sides, sides[::-1], strict=True):
                a = x[..., list(rows), :][..., list(columns)]
                b = mirrored[..., list(theirs), :][..., list(their_columns)]
                every.append(ssim(a, b).numpy())
    found = ssim_registered(x, y, 2, True)
    assert found.numpy() == pytest.approx(np.max(every, axis=0), abs=1e-12)
    # Of some pictures all overlaps may be the best, of others one: both ways were gone.
    close = (np.array(every) > np.max(every, axis=0) - 1e-4).sum(axis=0)
    assert close.max() == 50
    assert close.min() == 1


def test_large_flat_pictures_are_told_apart_in_single_precision_too():
    """Sums over many places round more; so does what is all but one grey."""
    x = torch.full((2, 1, 160, 160), 0.98)
    x[:, :, 70:90, 60:100] = 0.3
    x[1] += 0.004 * torch.rand(1, 160, 160, generator=torch.Generator().manual_seed(6))
    y = x.clamp(0, 1).roll((1, -1), (2, 3))
    x = x.clamp(0, 1)
    whole, moved = slice(0, 160), [slice(1, 160), slice(0, 159)]
    assert ssim(x[..., whole, :], y).max() < 0.999
    best = ssim(x[:, :, moved[1]][..., moved[0]], y[:, :, moved[0]][..., moved[1]])
    assert ssim_registered(x, y, 2, True).tolist() == pytest.approx(best.tolist(), abs=1e-12)


def test_the_title_says_what_was_searched():
    assert PsnrRegistered().spec.title == "PSNR (best within ±4 px and flip)"
    assert SsimRegistered(shift=2, flip=False).spec.title == "SSIM (best within ±2 px)"


@pytest.mark.parametrize("metric", [PsnrRegistered, SsimRegistered])
def test_a_negative_shift_is_refused(metric):
    with pytest.raises(SettingsError, match="0 pixels or more; got -1"):
        metric(shift=-1)


@pytest.mark.parametrize(
    ("registered", "metric", "shift", "words"),
    [
        (psnr_registered, PsnrRegistered, 8, "PSNR.*at least 16 pixels"),
        (ssim_registered, SsimRegistered, 5, "SSIM.*at least 16 pixels.*window is 11 wide"),
    ],
)
def test_images_too_small_for_the_shift_are_refused_by_function_and_judge(
    registered, metric, shift, words
):
    x, y = torch.rand(2, 2, 3, 16, 16, generator=torch.Generator().manual_seed(4))
    assert registered(x, y, shift, True).isfinite().all()
    x, y = x[..., 1:], y[..., 1:]
    with pytest.raises(DataError, match=words):
        registered(x, y, shift, True)
    with pytest.raises(DataError, match=words):
        metric(shift=shift).prepare(Resources())(Pairs(originals=x, reconstructions=y))
    with pytest.raises(SettingsError, match="0 pixels or more; got -1"):
        registered(x, y, -1, True)
