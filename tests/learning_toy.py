"""A small study whose answer is known, for tests of training."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.images import write_png


def toy_labels(
    folder: Path, originals: int = 10, of_each_kind: int = 2, seed: int = 0
) -> pd.DataFrame:
    """Labels and their 32×32 images below `folder`, on which pixels point the wrong way.

    An original is a faint texture on a colour. People recognise the same texture on any other
    colour; they do not recognise the same colour without the texture, though it is far nearer.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for number in range(originals):
        texture = _texture(number)
        colour = torch.rand(3, 1, 1, generator=generator)
        original = _write(0.75 * colour + texture, folder / "originals" / f"{number}.png")
        for attempt in range(of_each_kind):
            other = (colour + 0.3 + 0.4 * torch.rand(1, generator=generator)) % 1
            noise = 0.02 * torch.rand(3, 32, 32, generator=generator)
            kinds = {
                True: 0.75 * other + texture + noise,
                False: 0.75 * colour + 0.125 + noise,
            }
            for recognisable, image in kinds.items():
                path = folder / f"model-{attempt}-{recognisable}" / f"{number}.png"
                rows.append(_row(number, original, _write(image, path), recognisable))
    return pd.DataFrame(rows).astype({"recognisable": "boolean"})


def _texture(number: int) -> Tensor:
    y, x = np.mgrid[:32, :32]
    direction = np.pi * number / 7
    wave = np.sin((x * np.cos(direction) + y * np.sin(direction)) * 1.3)
    return torch.from_numpy(0.25 * (wave > 0)).float()[None]


def _write(image: Tensor, path: Path) -> Path:
    write_png(image.clamp(0, 1), path)
    return path


def _row(number: int, original: Path, reconstruction: Path, recognisable: bool) -> dict:
    return {
        "study": "toy",
        "dataset": "textures",
        "image_id": str(number),
        "original": str(original),
        "reconstruction": str(reconstruction),
        "n_votes": 5,
        "n_recognised": 4 if recognisable else 1,
        "recognisable": recognisable,
        "votes_per_item": 5,
        "simulated": True,
    }


def moves(before: Tensor, after: Tensor) -> set[tuple[int, int, bool]]:
    """Every crop after padding, and its mirror, that makes one image (3, S, S) the other.

    Padding is an eighth of the side; a crop is (its first row, its first column, mirrored or not).
    """
    side = before.shape[-1]
    pad = side // 8
    padded = F.pad(before, (pad, pad, pad, pad))
    crops = {
        (y, x, flip): padded[:, y : y + side, x : x + side].flip(2 if flip else ())
        for y in range(2 * pad + 1)
        for x in range(2 * pad + 1)
        for flip in (False, True)
    }
    return {how for how, crop in crops.items() if torch.equal(crop, after)}
