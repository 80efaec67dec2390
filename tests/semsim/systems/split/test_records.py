"""What an attack on split inference got back, on disk and in its rate."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from semsim.sets.reader import read_set
from semsim.systems.split.run import FeatureLeak, write_split_set
from semsim.types import LabelledImages

RESIDUALS = (0.1, 0.5, 0.9, math.nan)
PICTURES = torch.full((4, 3, 8, 8), 0.25)
IMAGES = LabelledImages(
    dataset="made",
    classes=("a",),
    ids=("p", "q", "r", "s"),
    images=PICTURES,
    labels=torch.zeros(4, dtype=torch.long),
)
RECORD = {"model": "small", "attack": {"name": "adaptive"}}


@pytest.fixture
def leak():
    return FeatureLeak(
        images=PICTURES,
        ssim=np.zeros(4),
        psnr=np.zeros(4),
        residuals=np.array(RESIDUALS),
        grey_residuals=np.full(4, 0.5),
        shadow_accuracy=1.0,
        decoder_error=0.0,
    )


def test_no_better_than_grey_and_undefined_are_worse_than_grey(leak, tmp_path):
    assert leak.worse_than_grey == [False, True, True, True]
    rows = read_set(write_split_set(tmp_path / "set", RECORD, IMAGES, leak)).manifest
    assert list(rows["worse_than_grey"]) == [False, True, True, True]


def test_the_measure_is_the_attacks_own_and_not_the_likeness(leak):
    better = replace(leak, residuals=np.full(4, 0.2), psnr=np.full(4, -5.0))
    assert better.worse_than_grey == [False] * 4
