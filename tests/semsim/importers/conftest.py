"""Small sources, made here or by the test beside each importer."""

import runpy
from pathlib import Path

import numpy as np
import pytest
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
    """A small source of a kind: `example(kind, folder, draw)` in the importer's own test."""

    def of(kind):
        module = type(IMPORTERS[kind]).__module__.rpartition(".")[2]
        path = Path(__file__).with_name(f"test_{module}.py")
        if not path.exists():
            pytest.skip(
                f"{kind} has no example yet: def example(kind, folder, draw) in {path.name}"
            )
        return runpy.run_path(str(path))["example"](kind, tmp_path / "source", draw)

    return of


@pytest.fixture
def released(example):
    """Two originals, two models, as the authors publish them; see test_train_with_ori.py."""
    return example("train-with-ori")
