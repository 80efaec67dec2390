"""A made study as the pages of the science see it."""

from functools import partial
from pathlib import Path

import pytest
from jobs_here import jobs_here
from made_study import make_labels, make_votes

from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.ui import ScienceContext, StudyChoice


@pytest.fixture(scope="module", autouse=True)
def _no_torch_home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(tmp_path_factory.mktemp("torch-home")))
        yield


@pytest.fixture(autouse=True)
def _jobs_here(monkeypatch):
    """Stop every job before what a test changed is put back."""
    with jobs_here():
        yield


def make_context(
    folder, *, change=lambda labels: labels, scored=("mse", "psnr", "ssim"), simulated=True, **made
):
    """The context of one study in `folder`; `made` are settings of `make_labels`."""
    labels = change(make_labels(folder / "images", simulated=simulated, **made))
    votes = make_votes(labels)
    data, checkpoints = folder / "data", folder / "checkpoints"
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


@pytest.fixture
def made_context(tmp_path):
    """`make_context` in a folder of the test's own."""
    return partial(make_context, tmp_path)


@pytest.fixture(scope="module")
def small_context(tmp_path_factory):
    """A study of three images that a file of tests only reads."""
    return make_context(tmp_path_factory.mktemp("small"), n_images=3)


@pytest.fixture
def image_bytes(tmp_path):
    """The content of an image of the made study, by its place below the folder of images."""
    return lambda place: Path(tmp_path / "images" / place).read_bytes()
