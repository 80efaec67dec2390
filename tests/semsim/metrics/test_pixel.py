import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.base.errors import DataError
from semsim.metrics import Pairs, Resources
from semsim.metrics.pixel import Psnr, mse, psnr

STEADY = settings(max_examples=50)


def constant(*values):
    return torch.stack([torch.full((3, 4, 4), value) for value in values])


def test_known_values():
    assert mse(constant(0.0), constant(0.5)) == pytest.approx([0.25])
    assert psnr(constant(0.0), constant(0.1)) == pytest.approx([20.0], abs=1e-6)
    assert mse(constant(0.0), constant(1.0)).dtype == np.float64


def test_bytes_are_their_share_of_255():
    black, grey = torch.zeros(1, 1, 2, 2, dtype=torch.uint8), torch.full((1, 1, 2, 2), 51).byte()
    assert mse(black, grey) == pytest.approx([0.04], rel=1e-15)
    assert psnr(black, grey) == pytest.approx([20 * np.log10(5)], rel=1e-15)


def test_one_grey_level_apart_is_the_same_in_bytes_and_in_float32():
    # k/255 in float32 is off by up to 3e-8, which moves the PSNR of such a pair by 1e-4 dB
    levels = torch.arange(255, dtype=torch.uint8).view(-1, 1, 1, 1)
    raised = levels + 1
    expected = np.full(255, 20 * np.log10(255))
    assert psnr(levels, raised) == pytest.approx(expected, abs=1e-9)
    assert psnr(levels.float() / 255, raised.float() / 255) == pytest.approx(expected, abs=1e-9)


def test_an_image_between_grey_levels_is_taken_as_it_is():
    between = torch.full((1, 3, 2, 2), 0.5)  # 127.5 / 255
    assert mse(between, torch.zeros(1, 3, 2, 2)) == pytest.approx([0.25], rel=1e-15)


def test_what_is_no_image_is_refused():
    good = torch.zeros(1, 3, 2, 2)
    for bad, words in (
        (torch.zeros(1, 2, 2, 2), r"\(N, 1 or 3, H, W\)"),
        (good.long(), "uint8 or float32.*got torch.int64"),
        (good.double() - 1, "from -1 to -1"),
    ):
        with pytest.raises(DataError, match=words):
            mse(good, bad)


def test_psnr_is_averaged_over_images_never_pooled():
    values = psnr(constant(0.0, 0.0), constant(0.1, 1.0))
    assert values == pytest.approx([20.0, 0.0], abs=1e-6)
    assert values.mean() == pytest.approx(10.0, abs=1e-6)  # pooling the error gives 2.97 dB


def test_identical_images_have_infinite_psnr_and_a_note():
    pairs = Pairs(originals=constant(0.2, 0.0), reconstructions=constant(0.2, 0.1))
    scores = Psnr().prepare(Resources())(pairs)
    assert np.isposinf(scores.values[0])
    assert np.isfinite(scores.values[1])
    assert scores.notes == ("PSNR is infinite where reconstructions equal their original",)


def test_pairs_are_checked():
    with pytest.raises(DataError, match="must pair"):
        mse(constant(0.0, 0.0), constant(0.0))


@STEADY
@given(st.integers(0, 2**31))
def test_a_score_does_not_depend_on_batch_mates_nor_order(seed):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.rand(2, 4, 3, 5, 6, generator=generator)
    order = torch.randperm(4, generator=generator)
    for metric in (mse, psnr):
        together = metric(x, y)
        assert np.array_equal(together[order], metric(x[order], y[order]))
        assert np.array_equal(together[2:3], metric(x[2:3], y[2:3]))


@STEADY
@given(st.integers(0, 2**31))
def test_both_are_symmetric(seed):
    x, y = torch.rand(2, 2, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
    assert mse(x, y) == pytest.approx(mse(y, x))
    assert psnr(x, y) == pytest.approx(psnr(y, x))
