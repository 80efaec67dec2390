"""A toy study, and settings that train on it in a second."""

import pandas as pd
import pytest
from learning_toy import toy_labels
from made_judged import judged_labels, judged_votes

from semsim.learning import TrainSettings
from semsim.learning.ablations_run import Material


@pytest.fixture(scope="session")
def labels(tmp_path_factory) -> pd.DataFrame:
    return toy_labels(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def material(request, tmp_path_factory) -> Material:
    """A toy study with its votes, of `ORIGINALS` of the file of tests, or eight."""
    many = getattr(request.module, "ORIGINALS", 8)
    labels = judged_labels(tmp_path_factory.mktemp("judged"), originals=many)
    return Material(labels=labels, votes=judged_votes(labels))


@pytest.fixture(scope="session")
def quick() -> TrainSettings:
    return TrainSettings(
        backbone="lenet",
        lr=0.005,
        batch_size=8,
        epochs=3,
        triplets_per_original=3,
        device="cpu",
    )
