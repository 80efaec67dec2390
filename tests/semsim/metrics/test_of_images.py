"""Metrics of images as functions of tensors: MSE, PSNR, SSIM, MS-SSIM, and their gradients."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_weights import make_checkpoints

from semsim.base.errors import DataError, WeightsError
from semsim.metrics import (
    Pairs,
    Resources,
    lpips,
    ms_ssim,
    mse,
    psnr,
    psnr_registered,
    ssim,
    ssim_registered,
)
from semsim.metrics.multi_scale import MsSsim
from semsim.metrics.pixel import Psnr
from semsim.metrics.structural import Ssim

PLAIN = {
    "mse": (mse, 5),
    "psnr": (psnr, 5),
    "ssim": (ssim, 12),
    "ssim-uniform": (partial(ssim, window="uniform"), 8),
    "psnr-registered": (partial(psnr_registered, shift=1), 5),
    "ssim-registered": (partial(ssim_registered, shift=1), 12),
}


def drawn(seed, n=3, side=16, channels=3):
    made = torch.rand(2, n, channels, side, side, generator=torch.Generator().manual_seed(seed))
    return made[0], made[1]


def constant(*values):
    return torch.stack([torch.full((3, 4, 4), value) for value in values])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", PLAIN)
def test_the_gradient_is_the_slope_of_what_is_computed(name, channels):
    function, side = PLAIN[name]
    x, y = (0.1 + 0.8 * one.double() for one in drawn(3, 2, side, channels))
    x, y = x.requires_grad_(), y.requires_grad_()
    assert torch.autograd.gradcheck(function, (x, y), fast_mode=True)
    with torch.no_grad():
        plain = function(x, y)
    assert not plain.requires_grad
    assert torch.allclose(function(x, y), plain, rtol=1e-14, atol=0)


def test_pictures_of_8_bits_have_a_gradient_and_one_may_be_bytes():
    x, y = ((one * 255).round() / 255 for one in drawn(4))
    x.requires_grad_()
    for other in (y, (y * 255).round().byte()):
        (slope,) = torch.autograd.grad(mse(x, other).sum(), x)
        assert torch.allclose(slope, 2 * (x - y) / y[0].numel(), atol=1e-8)


def test_equal_pictures_are_infinitely_near_where_a_gradient_is_asked_for_too():
    x = constant(0.2, 0.0).requires_grad_()
    found = psnr(x, constant(0.2, 0.1))
    assert found[0].isposinf()
    assert found[1].item() == pytest.approx(20, abs=1e-6)


def test_networks_have_a_gradient_along_which_their_distance_falls(tmp_path):
    make_checkpoints(tmp_path)
    of_network = partial(lpips, net="squeeze", checkpoints=tmp_path)
    for function, side, better in ((ms_ssim, 161, 1), (of_network, 24, -1)):
        x, y = drawn(5, 1, side)
        y = (0.5 * x + 0.5 * y).requires_grad_()
        before = function(x, y)
        (slope,) = torch.autograd.grad(before.sum(), y)
        step = 3e-4 * better * slope / slope.abs().max()
        change = function(x, y + step) - before
        assert change.item() == pytest.approx((slope * step).sum().item(), rel=0.1)


@settings(max_examples=20)
@given(st.integers(0, 2**31), st.sampled_from(["mse", "psnr", "ssim", "ssim-uniform"]))
def test_a_score_does_not_depend_on_batch_mates_nor_order_nor_side(seed, name):
    function, _ = PLAIN[name]
    x, y = drawn(seed, 4)
    together = function(x, y)
    assert torch.equal(together.flip(0), function(x.flip(0), y.flip(0)))
    assert torch.equal(together[2:3], function(x[2:3], y[2:3]))
    assert torch.allclose(together, function(y, x), rtol=1e-12)


def test_known_values():
    assert mse(constant(0.0), constant(0.5)).tolist() == pytest.approx([0.25])
    assert psnr(constant(0.0), constant(0.1)).tolist() == pytest.approx([20.0], abs=1e-6)
    assert mse(constant(0.0), constant(1.0)).dtype == torch.float64


def test_bytes_are_their_share_of_255():
    black, grey = torch.zeros(1, 1, 2, 2, dtype=torch.uint8), torch.full((1, 1, 2, 2), 51).byte()
    assert mse(black, grey).tolist() == pytest.approx([0.04], rel=1e-15)
    assert psnr(black, grey).tolist() == pytest.approx([20 * np.log10(5)], rel=1e-15)


def test_one_grey_level_apart_is_the_same_in_bytes_and_in_float32():
    # k/255 in float32 is off by up to 3e-8, which moves the PSNR of such a pair by 1e-4 dB
    levels = torch.arange(255, dtype=torch.uint8).view(-1, 1, 1, 1)
    raised = levels + 1
    expected = np.full(255, 20 * np.log10(255))
    for given_as in ((levels, raised), (levels.float() / 255, raised.float() / 255)):
        assert psnr(*given_as).numpy() == pytest.approx(expected, abs=1e-9)


def test_an_image_between_grey_levels_is_taken_as_it_is():
    between = torch.full((1, 3, 2, 2), 0.5)  # 127.5 / 255
    assert mse(between, torch.zeros(1, 3, 2, 2)).tolist() == pytest.approx([0.25], rel=1e-15)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (torch.zeros(1, 2, 2, 2), r"\(N, 1 or 3, H, W\)"),
        (torch.zeros(1, 3, 2, 2).long(), "uint8 or float32.*got torch.int64"),
        (torch.zeros(1, 3, 2, 2).double() - 1, "from -1 to -1"),
        (torch.zeros(2, 3, 2, 2), "must pair"),
        (np.zeros((1, 3, 2, 2)), "must be a torch tensor; got ndarray"),
    ],
)
def test_what_is_no_image_is_refused(bad, words):
    for function in (mse, ssim):
        with pytest.raises(DataError, match=words):
            function(torch.zeros(1, 3, 2, 2), bad)


def test_psnr_is_averaged_over_images_never_pooled():
    values = psnr(constant(0.0, 0.0), constant(0.1, 1.0))
    assert values.tolist() == pytest.approx([20.0, 0.0], abs=1e-6)
    assert values.mean().item() == pytest.approx(10.0, abs=1e-6)  # pooling gives 2.97 dB


def test_identical_images_have_infinite_psnr_and_a_note():
    pairs = Pairs(originals=constant(0.2, 0.0), reconstructions=constant(0.2, 0.1))
    scores = Psnr().prepare(Resources())(pairs)
    assert np.isposinf(scores.values[0])
    assert np.isfinite(scores.values[1])
    assert scores.notes == ("PSNR is infinite where reconstructions equal their original",)


@pytest.mark.parametrize("window", ["gaussian", "uniform"])
def test_an_image_is_like_itself_and_unlike_its_inverse(window):
    x, _ = drawn(0)
    assert ssim(x, x, window).tolist() == pytest.approx([1, 1, 1])
    assert (ssim(x, 1 - x, window) < 0).all()


@pytest.mark.parametrize(("window", "side"), [("gaussian", 11), ("uniform", 7)])
def test_smaller_than_the_window_is_refused(window, side):
    judge = Ssim(window=window).prepare(Resources())
    x, y = drawn(2, side=side)
    assert judge(Pairs(originals=x, reconstructions=y)).values.shape == (3,)
    x, y = x[..., 1:], y[..., 1:]
    with pytest.raises(DataError, match=f"its window is {side} wide.*{side - 1}×{side}"):
        judge(Pairs(originals=x, reconstructions=y))
    with pytest.raises(DataError, match=f"its window is {side} wide.*{side - 1}×{side}"):
        ssim(x, y, window)


def test_where_the_library_is_absent_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("semsim.metrics.multi_scale._LIBRARY", "pytorch-no-such-library")
    x, y = drawn(0, 1, 161)
    attempts = [partial(attempt, Resources()) for attempt in (MsSsim().files, MsSsim().prepare)]
    for attempt in (*attempts, partial(ms_ssim, x, y)):
        with pytest.raises(WeightsError, match=r"pip install \"semsim-studio\[ms-ssim\]\""):
            attempt()


def test_negative_contrast_counts_as_nothing():
    x, _ = drawn(0, 1, 161)
    pairs = Pairs(originals=x, reconstructions=1 - x)
    assert MsSsim().prepare(Resources())(pairs).values == pytest.approx([0.0])
