"""A toy study, and settings that train on it in a second."""

import pandas as pd
import pytest
from learning_toy import toy_labels

from semsim.learning import TrainSettings


@pytest.fixture(scope="session")
def labels(tmp_path_factory) -> pd.DataFrame:
    return toy_labels(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def quick() -> TrainSettings:
    return TrainSettings(
        backbone="lenet",
        lr=0.005,
        batch_size=8,
        epochs=3,
        triplets_per_original=3,
        device="cpu",
    )
