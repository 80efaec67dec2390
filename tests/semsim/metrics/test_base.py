import numpy as np
import pytest
import torch

from semsim.base.errors import DataError
from semsim.base.metric_spec import MetricSpec
from semsim.metrics.base import Pairs, batches, check_side, checked_pairs, summarise

GOOD = torch.full((2, 3, 8, 8), 0.5)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (GOOD[0], r"\(N, 3, H, W\); got torch.float32 \(3, 8, 8\), values from 0.5 to 0.5"),
        (GOOD[:, :1], r"got torch.float32 \(2, 1, 8, 8\)"),
        (GOOD[:0], r"got torch.float32 \(0, 3, 8, 8\)"),
        (GOOD.double(), "float32 in .0, 1.; got torch.float64"),
        ((GOOD * 255).byte(), "got torch.uint8"),
        (GOOD + 0.6, "values from 1.1 to 1.1"),
        (GOOD - 0.6, "values from -0.1"),
        (GOOD + 0.503, "values from 1.003 to 1.003"),
        (GOOD.numpy(), r"torch tensor; got ndarray of float32 \(2, 3, 8, 8\), values from 0.5"),
        ([0.5], r"torch tensor; got list \[0.5\]"),
        (GOOD * float("nan"), "values from nan to nan"),
    ],
)
def test_images_that_are_not_what_they_should_be_are_refused(bad, words):
    with pytest.raises(DataError, match="originals.*" + words):
        checked_pairs(bad, GOOD)
    with pytest.raises(DataError, match="reconstructions.*" + words):
        checked_pairs(GOOD, bad)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_counts_as_float32(kind):
    images = torch.rand(2, 3, 8, 8).to(kind)
    first, second = checked_pairs(images, GOOD)
    assert first.dtype == second.dtype == torch.float32
    assert torch.equal(first, images.float())
    assert Pairs(originals=images, reconstructions=images).originals.dtype == torch.float32


def test_values_that_rounding_moved_out_of_the_range_are_clamped():
    odd = GOOD.clone()
    odd[0, 0, 0, :2] = torch.tensor([-1e-4, 1 + 1e-4])
    first, _ = checked_pairs(odd, GOOD)
    assert (first.min(), first.max()) == (0, 1)
    assert torch.equal(first[1], GOOD[1])
    assert odd.max() > 1  # the caller's own are left alone


def test_pairs_must_pair():
    with pytest.raises(DataError, match=r"got .*\(2, 3, 8, 8\).* and .*\(1, 3, 8, 8\)"):
        checked_pairs(GOOD, GOOD[:1])
    with pytest.raises(DataError, match="2 images came with 1 class names"):
        Pairs(originals=GOOD, reconstructions=GOOD, class_names=("cat",))


def test_pairs_count_themselves():
    assert len(Pairs(originals=GOOD, reconstructions=GOOD)) == 2


def test_a_small_image_is_refused_with_the_reason():
    spec = MetricSpec(
        name="m", title="M", higher_means_more_leakage=True, per_image=True, smallest_side=9
    )
    with pytest.raises(DataError, match=r"M needs images of at least 9 pixels.*because.; got 8×8"):
        check_side(GOOD, spec, "because")
    check_side(torch.zeros(1, 3, 9, 9), spec, "because")


def test_summary_counts_infinities_and_keeps_them_out():
    found = summarise(np.array([1.0, 3.0, np.inf]))
    assert (found.n, found.n_inf, found.mean) == (3, 1, 2.0)
    assert found.sd == pytest.approx(np.std([1, 3], ddof=1))


def test_summary_of_nothing_finite_has_no_mean():
    found = summarise(np.array([np.inf, np.inf]))
    assert (found.n_inf, found.mean, found.sd) == (2, None, None)


def test_summary_refuses_nan():
    with pytest.raises(DataError, match="1 of 2 scores are NaN"):
        summarise(np.array([1.0, np.nan]))


def test_batches_cover_everything_in_order():
    parts = list(batches(torch.arange(5.0), 2, torch.device("cpu")))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert torch.equal(torch.cat(parts), torch.arange(5.0))
