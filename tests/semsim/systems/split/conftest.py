"""A tiny split system that every test here may use."""

import pytest
import torch

from semsim.datasets.digits import Digits
from semsim.systems.split.networks import SmallResNet
from semsim.systems.split.plan import SplitTrainSettings
from semsim.systems.split.training import Bench

TINY = SplitTrainSettings(epochs=1, ensemble_epochs=1, batch_size=32)


@pytest.fixture(scope="session")
def digits():
    """96 digits to train on and 24 to test on, 16×16."""
    tool = Digits()
    return tool("train").pick(range(96)), tool("test").pick(range(24))


@pytest.fixture
def bench(digits):
    """Where a defence trains in a moment."""
    return Bench(
        network=SmallResNet(width=4),
        data=digits[0],
        settings=TINY,
        seed=0,
        device=torch.device("cpu"),
    )
