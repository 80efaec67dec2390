import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.base.errors import DataError
from semsim.metrics import Pairs, Resources
from semsim.metrics.structural import Ssim, ssim

STEADY = settings(max_examples=20)

WINDOWS = ("gaussian", "uniform")


def images(seed, n=3, side=16):
    return torch.rand(2, n, 3, side, side, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("window", WINDOWS)
def test_an_image_is_like_itself(window):
    x, _ = images(0)
    assert ssim(x, x, window) == pytest.approx(np.ones(3))


def test_the_inverse_of_an_image_is_unlike_it():
    x, _ = images(1)
    assert (ssim(x, 1 - x) < 0).all()


@pytest.mark.parametrize(("window", "side"), [("gaussian", 11), ("uniform", 7)])
def test_smaller_than_the_window_is_refused(window, side):
    judge = Ssim(window=window).prepare(Resources())
    x, y = images(2, side=side)
    assert judge(Pairs(originals=x, reconstructions=y)).values.shape == (3,)
    x, y = x[..., 1:], y[..., 1:]
    with pytest.raises(DataError, match=f"its window is {side} wide.*{side - 1}×{side}"):
        judge(Pairs(originals=x, reconstructions=y))
    with pytest.raises(DataError, match=f"its window is {side} wide.*{side - 1}×{side}"):
        ssim(x, y, window)
    with pytest.raises(DataError, match="must be a torch tensor; got ndarray"):
        ssim(x.numpy(), y.numpy(), window)


@STEADY
@given(st.integers(0, 2**31), st.sampled_from(WINDOWS))
def test_a_score_does_not_depend_on_batch_mates_nor_order(seed, window):
    x, y = images(seed)
    together = ssim(x, y, window)
    assert np.array_equal(together[::-1], ssim(x.flip(0), y.flip(0), window))
    assert np.array_equal(together[1:2], ssim(x[1:2], y[1:2], window))
    assert (np.abs(together) <= 1).all()
