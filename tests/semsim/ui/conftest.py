"""A made study as the pages of the science see it."""

from pathlib import Path

import pytest
from made_study import make_labels, make_votes

from semsim.metrics import Resources
from semsim.scoring import pair_sets_of_labels, score_sets
from semsim.ui import ScienceContext, StudyChoice


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


@pytest.fixture
def made_context(tmp_path):
    """A function from settings of `make_labels` to the context of one study of that kind."""

    def make(
        *, change=lambda labels: labels, scored=("mse", "psnr", "ssim"), simulated=True, **made
    ):
        labels = change(make_labels(tmp_path / "images", simulated=simulated, **made))
        votes = make_votes(labels)
        data, checkpoints = tmp_path / "data", tmp_path / "checkpoints"
        resources = Resources(checkpoints=checkpoints, classifiers=())
        score_sets(pair_sets_of_labels(labels), list(scored), resources, data / "scores")
        return ScienceContext(
            data=data,
            checkpoints=checkpoints,
            studies=lambda: [StudyChoice("1", "Made", simulated)],
            labels=lambda study: labels,
            votes=lambda study: votes,
            device="cpu",
        )

    return make


@pytest.fixture
def image_bytes(tmp_path):
    """The content of an image of the made study, by its place below the folder of images."""
    return lambda place: Path(tmp_path / "images" / place).read_bytes()
