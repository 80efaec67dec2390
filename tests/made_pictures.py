"""Pictures as files."""

import numpy as np
from PIL import Image


def blocky(path, number, size=(20, 28)):
    """A blocky picture, different for each number, as JPEG or PNG by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = np.random.default_rng(number).integers(0, 256, (4, 3, 3), dtype=np.uint8)
    Image.fromarray(colours).resize(size, Image.Resampling.NEAREST).save(path)
