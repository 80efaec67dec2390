"""Small sources, made here or by the test beside each importer."""

from pathlib import Path

import numpy as np
import pytest
from helpers import example_of
from PIL import Image

from semsim.importers import IMPORTERS

PUBLISHED = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="session")
def published():
    """The folder of data others published; a clean clone has none."""
    if not PUBLISHED.is_dir():
        pytest.skip(f"no published data at {PUBLISHED}")
    return PUBLISHED


@pytest.fixture
def draw():
    """Write a small random picture; the same seed draws the same one."""

    def write(path, seed=0, size=(6, 6), mode="RGB", **options):
        path.parent.mkdir(parents=True, exist_ok=True)
        channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
        pixels = np.random.default_rng(seed).integers(0, 256, (*size, *channels), dtype=np.uint8)
        Image.fromarray(pixels, mode).save(path, **options)
        return path

    return write


@pytest.fixture
def reasons():
    """What a report leaves out, as text by place."""
    return lambda found: {one.where: one.why for one in found.unread}


@pytest.fixture
def example(tmp_path, draw):
    """A small source of a kind, as `example` in the importer's own test makes it."""
    folder = tmp_path / "source"
    return lambda kind: example_of(
        IMPORTERS[kind], importer=IMPORTERS[kind], folder=folder, draw=draw
    )


@pytest.fixture
def released(example):
    """Two originals, two models, as the authors publish them; see test_layouts.py."""
    return example("train-with-ori")
