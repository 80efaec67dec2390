"""Built-in data set: 32×32 drawings of things a child can name, made from a font on the machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from semsim.base.registry import setting
from semsim.base.storage.optional import matplotlib
from semsim.base.storage.places import toml_of
from semsim.datasets.on_disk import check_split
from semsim.types import LabelledImages

# By class, its code point in DejaVu Sans.
GLYPHS: Mapping[str, int] = MappingProxyType(toml_of("semsim.datasets", "glyphs.toml"))
_OVERSAMPLING = 4  # drawn this much larger, then averaged down: smooth edges


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """47 nameable symbols at 32×32 with varied colour, background, place, turn and light.

    Attributes:
        train_per_class, test_per_class: Images of each class in either split.
        seed: Decides every image; one image never depends on how many others are drawn.
    """

    task: ClassVar[str] = "recognition"
    about: ClassVar[str] = "47 classes, any number of images at 32×32, drawn here"

    train_per_class: int = setting(60, least=1)
    test_per_class: int = setting(10, least=1)
    size: int = setting(32, least=1)
    seed: int = setting(0, least=0)

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test"; `ValueError` for another."""
        import torch  # a list of data sets needs none

        check_split(split)
        count = self.train_per_class if split == "train" else self.test_per_class
        numbers = range(len(GLYPHS) * count)
        drawn = torch.from_numpy(_drawn(split, count, self.size, self.seed))
        return LabelledImages(
            dataset="symbols",
            classes=tuple(GLYPHS),
            ids=tuple(f"symbols-{split}-{number:05d}" for number in numbers),
            images=drawn.permute(0, 3, 1, 2).contiguous(),
            labels=torch.tensor([number // count for number in numbers]),
        )


@lru_cache(maxsize=4)  # a campaign trains many targets on the same images, which cost 2 ms each
def _drawn(split: str, count: int, size: int, seed: int) -> np.ndarray:
    """`count` images of each class, class by class, (N, size, size, 3); not to be changed."""
    places = np.ndindex(len(GLYPHS), count)
    return np.stack([_picture(split == "test", *place, size, seed) for place in places])


@lru_cache(maxsize=512)  # a small set is part of a larger one
def _picture(test: bool, label: int, number: int, size: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, int(test), label, number])
    return draw([*GLYPHS.values()][label], size, rng)


def draw(codepoint: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """One symbol as (size, size, 3) float32 in [0, 1]."""
    canvas = size * _OVERSAMPLING
    mask = _stencil(codepoint, canvas, rng)
    ink, first, second = _palette(rng)
    blend = _background(canvas, rng)
    light = 1 - _across(canvas, rng)[1] * rng.uniform(0.05, 0.25)  # soft, from one side
    drawn = np.empty((size, size, 3), np.float32)
    for channel in range(3):  # one at a time: numpy is slow at three in a row
        paper = first[channel] + blend * (second[channel] - first[channel])
        lit = (paper + mask * (ink[channel] - paper)) * light
        drawn[..., channel] = lit.reshape(size, _OVERSAMPLING, size, _OVERSAMPLING).mean((1, 3))
    return drawn.clip(0, 1)


@cache
def _font(points: int) -> ImageFont.FreeTypeFont:
    path = Path(matplotlib().get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(str(path), points)


def _stencil(codepoint: int, canvas: int, rng: np.random.Generator) -> np.ndarray:
    """Coverage of the glyph, (canvas, canvas) in [0, 1]: centred by its ink, turned, shifted."""
    extent = canvas * rng.uniform(0.72, 0.9)
    font = _font(canvas)
    left, top, right, bottom = font.getbbox(chr(codepoint))
    # One font size for all would leave small glyphs tiny: scale each by its own ink.
    font = _font(round(canvas * extent / max(right - left, bottom - top)))
    left, top, right, bottom = font.getbbox(chr(codepoint))
    shift = rng.uniform(-0.05, 0.05, 2) * canvas
    glyph = Image.new("L", (canvas, canvas))
    origin = (
        (canvas - left - right) / 2 + shift[0],
        (canvas - top - bottom) / 2 + shift[1],
    )
    ImageDraw.Draw(glyph).text(origin, chr(codepoint), fill=255, font=font)
    turned = glyph.rotate(rng.uniform(-15, 15), resample=Image.Resampling.BICUBIC)
    return np.asarray(turned, dtype=np.float32) / 255


def _palette(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ink and two paper colours; ink and paper differ enough in brightness to be told apart."""
    dark, light = rng.uniform(0.0, 0.3, 3), rng.uniform(0.65, 1.0, 3)
    dark[rng.integers(3)] += rng.uniform(0, 0.3)
    light[rng.integers(3)] -= rng.uniform(0, 0.35)
    ink, paper = (dark, light) if rng.random() < 0.5 else (light, dark)
    return ink, paper, np.clip(paper + rng.uniform(-0.15, 0.15, 3), 0, 1)


def _background(canvas: int, rng: np.random.Generator) -> np.ndarray:
    """A gradient, stripes or soft blotches, (canvas, canvas): shares of the second paper colour."""
    along, share = _across(canvas, rng)
    kind = rng.integers(3)
    if kind == 0:
        return share
    if kind == 1:
        return 0.5 + 0.5 * np.sin(2 * np.pi * (rng.uniform(3, 6) * along + rng.random()))
    coarse = Image.fromarray((rng.random((6, 6)) * 255).astype(np.uint8))
    return np.asarray(coarse.resize((canvas, canvas), Image.Resampling.BICUBIC)) / 255


def _across(canvas: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return each pixel's place along a direction, (canvas, canvas), and the same from 0 to 1."""
    steps = np.arange(canvas) / canvas
    angle = rng.uniform(0, 2 * np.pi)
    along = steps * np.cos(angle) + (steps * np.sin(angle))[:, None]
    corners = along[:: canvas - 1, :: canvas - 1]  # least and most are at two of them
    return along, (along - corners.min()) / np.ptp(corners)
