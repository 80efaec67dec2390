import pytest
import torch

from semsim.errors import WeightsError
from semsim.metrics import Pairs, Resources, ms_ssim
from semsim.metrics.ms_ssim import MsSsim


def test_where_the_library_is_absent_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(ms_ssim, "_LIBRARY", "pytorch-no-such-library")
    for attempt in (MsSsim().files, MsSsim().prepare):
        with pytest.raises(WeightsError, match="python -m pip install pytorch-no-such-library"):
            attempt(Resources())


def test_negative_contrast_counts_as_nothing():
    x = torch.rand(1, 3, 161, 161, generator=torch.Generator().manual_seed(0))
    pairs = Pairs(originals=x, reconstructions=1 - x)
    assert MsSsim().prepare(Resources())(pairs).values == pytest.approx([0.0])
