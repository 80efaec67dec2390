"""Small published trees, made here."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
def released(tmp_path, draw):
    """Two originals, two models: image 7 (class 3) and 12 (class 0), as the authors publish them.

    Recognisable are 7 by model 1 and 12 by both.
    """
    root = tmp_path / "human_anno_id/train_with_ori"
    draw(root / "7/7_3_ori.png", 7)
    draw(root / "7/7_3_rec_0_1.png", 71)
    draw(root / "-7/7_3_rec_3_2.png", 72)
    draw(root / "12/12_0_ori.png", 12)
    draw(root / "12/12_0_rec_1_1.png", 121)
    draw(root / "12/12_0_rec_2_2.png", 122)
    return root
