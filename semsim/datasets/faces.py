"""Built-in data sets for the pair task: 100 faces, and a detector's faces and other things."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import skimage

from semsim.base.errors import SettingsError
from semsim.base.registry import setting
from semsim.datasets.on_disk import check_split
from semsim.types import LabelledImages

FACES = 100  # the first 100 of the 200 images; the others show no face
_HELD_OUT = 20  # of either kind, for the detector's test


@dataclass(frozen=True, kw_only=True)
class Faces:
    """100 grey faces at 25×25 (Labelled Faces in the Wild), one picture a face.

    Each face is its own identity. No person has a second picture. So the training split is made of
    `train_per_face` shifted, mirrored and relit copies, and the test split of the pictures as they
    are.

    Attributes:
        seed: Decides the copies.
        people: How many of them, 1 to 100.
    """

    task: ClassVar[str] = "pair"
    about: ClassVar[str] = "100 people, one image of each at 25×25, part of scikit-image"

    train_per_face: int = setting(20, least=1)
    seed: int = setting(0, least=0)
    people: int = FACES

    def __post_init__(self) -> None:
        if not 1 <= self.people <= FACES:
            raise SettingsError(f"people is 1 to {FACES}; got {self.people!r}.")

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `ValueError` for another."""
        import torch  # a list of data sets needs none

        check_split(split)
        faces = skimage.data.lfw_subset()[: self.people].astype(np.float32)
        copies = self.train_per_face if split == "train" else 1
        pictures = faces.repeat(copies, axis=0)
        if split == "train":
            pictures = _vary(pictures, np.random.default_rng(self.seed))
        images = torch.from_numpy(pictures)[:, None].expand(-1, 3, -1, -1).contiguous()
        return LabelledImages(
            dataset="faces",
            classes=tuple(f"face_{number:03d}" for number in range(self.people)),
            ids=tuple(f"faces-{split}-{number:05d}" for number in range(len(pictures))),
            images=images,
            labels=torch.arange(self.people).repeat_interleave(copies),
        )


@dataclass(frozen=True, kw_only=True)
class FaceOrNot:
    """Data of a face detector: 25×25 grey pictures that show a face, or none.

    scikit-image's LFW subset has 100 of either kind. The last 20 of both are the test split, as
    they are; of the others the training split has `train_per_picture` shifted, mirrored and relit
    copies each. The class is "face" or "other"; who a face is of is the subject, one a picture.

    Attributes:
        seed: Decides the copies.
    """

    task: ClassVar[str] = "pair"
    about: ClassVar[str] = "100 faces and 100 other pictures at 25×25, part of scikit-image"

    train_per_picture: int = setting(10, least=1)
    seed: int = setting(0, least=0)

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `ValueError` for another."""
        import torch  # a list of data sets needs none

        check_split(split)
        everything = skimage.data.lfw_subset().astype(np.float32)
        kept = FACES - _HELD_OUT
        part = slice(0, kept) if split == "train" else slice(kept, FACES)
        places = np.concatenate([np.arange(FACES)[part], FACES + np.arange(FACES)[part]])
        if split == "train":
            places = places.repeat(self.train_per_picture)
        pictures = everything[places]
        if split == "train":
            pictures = _vary(pictures, np.random.default_rng(self.seed))
        is_face = places < FACES
        return LabelledImages(
            dataset="face-or-not",
            classes=("face", "other"),
            ids=tuple(f"face-or-not-{split}-{number:05d}" for number in range(len(places))),
            images=torch.from_numpy(pictures)[:, None].expand(-1, 3, -1, -1).contiguous(),
            labels=torch.from_numpy((~is_face).astype(np.int64)),
            subjects=tuple(
                f"face_{place:03d}" if face else f"other_{place - FACES:03d}"
                for place, face in zip(places.tolist(), is_face.tolist(), strict=True)
            ),
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
