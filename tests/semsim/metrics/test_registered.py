import numpy as np
import pytest
import torch

from semsim.errors import DataError, SettingsError
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
    assert note.startswith("4 of 4 reconstructions equal their original")


def test_without_shift_and_flip_it_is_the_plain_metric_and_more_freedom_is_never_worse():
    other = torch.rand(4, 3, 24, 22, generator=torch.Generator().manual_seed(1))
    for registered, plain in ((psnr_registered, psnr), (ssim_registered, ssim)):
        values = [registered(IMAGES, other, s, f) for s, f in ((0, False), (2, False), (4, True))]
        assert values[0] == pytest.approx(plain(IMAGES, other), abs=1e-12)
        assert (values[1] >= values[0] - 1e-12).all()
        assert (values[2] >= values[1] - 1e-12).all()


def test_a_score_does_not_depend_on_where_the_work_is_cut():
    many = torch.rand(2, 120, 3, 15, 15, generator=torch.Generator().manual_seed(2))
    for registered in (psnr_registered, ssim_registered):
        together = registered(*many, 1, True)
        assert registered(*many[:, 97:99], 1, True) == pytest.approx(together[97:99], abs=1e-12)


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
    assert np.isfinite(registered(x, y, shift, True)).all()
    x, y = x[..., 1:], y[..., 1:]
    with pytest.raises(DataError, match=words):
        registered(x, y, shift, True)
    with pytest.raises(DataError, match=words):
        metric(shift=shift).prepare(Resources())(Pairs(originals=x, reconstructions=y))
    with pytest.raises(SettingsError, match="0 pixels or more; got -1"):
        registered(x, y, -1, True)
