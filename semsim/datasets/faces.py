"""Built-in data set for the pair task: 100 faces from scikit-image's LFW subset."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import skimage
import torch

from semsim.types import LabelledImages

FACES = 100  # the first 100 of the 200 images; the others show no face


@dataclass(frozen=True, kw_only=True)
class Faces:
    """100 grey faces at 25×25 (Labelled Faces in the Wild), one picture a face.

    Each face is its own identity. There is no second picture of anyone, so the training split is
    made of `train_per_face` shifted, mirrored and relit copies, and the test split of the pictures
    as they are. seed: decides the copies.
    """

    task: ClassVar[str] = "pair"
    about: ClassVar[str] = "100 people, one image of each at 25×25, part of scikit-image"

    train_per_face: int = 20
    seed: int = 0

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `ValueError` for another."""
        if split not in ("train", "test"):
            raise ValueError(f"expected a split of ['test', 'train'], got {split!r}")
        faces = skimage.data.lfw_subset()[:FACES].astype(np.float32)
        copies = self.train_per_face if split == "train" else 1
        pictures = faces.repeat(copies, axis=0)
        if split == "train":
            pictures = _vary(pictures, np.random.default_rng(self.seed))
        images = torch.from_numpy(pictures)[:, None].expand(-1, 3, -1, -1).contiguous()
        return LabelledImages(
            dataset="faces",
            classes=tuple(f"face_{number:03d}" for number in range(FACES)),
            ids=tuple(f"faces-{split}-{number:05d}" for number in range(len(pictures))),
            images=images,
            labels=torch.arange(FACES).repeat_interleave(copies),
        )


def _vary(pictures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mirror half of (N, H, W), shift each by up to two pixels, change its contrast."""
    varied = np.empty_like(pictures)
    for number, picture in enumerate(pictures):
        turned = picture[:, ::-1] if rng.random() < 0.5 else picture
        dy, dx = rng.integers(-2, 3, 2)
        height, width = picture.shape
        moved = np.pad(turned, 2, mode="edge")[2 + dy : 2 + dy + height, 2 + dx : 2 + dx + width]
        varied[number] = np.clip((moved - 0.5) * rng.uniform(0.7, 1.3) + 0.5, 0, 1)
    return varied
