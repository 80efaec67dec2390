import pytest
import torch

from semsim.base.errors import WeightsError
from semsim.metrics import Pairs, Resources
from semsim.metrics.multi_scale import MsSsim


def test_where_the_library_is_absent_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("semsim.metrics.multi_scale._LIBRARY", "pytorch-no-such-library")
    for attempt in (MsSsim().files, MsSsim().prepare):
        with pytest.raises(WeightsError, match=r"pip install \"semsim-studio\[ms-ssim\]\""):
            attempt(Resources())


def test_negative_contrast_counts_as_nothing():
    x = torch.rand(1, 3, 161, 161, generator=torch.Generator().manual_seed(0))
    pairs = Pairs(originals=x, reconstructions=1 - x)
    assert MsSsim().prepare(Resources())(pairs).values == pytest.approx([0.0])
