"""Pictures of work under way: few, small, and never in its way."""

import io

import numpy as np
import pytest
from PIL import Image

from semsim.base.progress import Look, Progress
from semsim.grid.previews import SIDE, STEPS, Camera, Preview, longer


def told(share, place=0, picture=lambda: np.zeros((8, 8, 3), np.uint8)):
    look = Look(place=place, share=share, picture=picture)
    return Progress(round(1000 * share), 1000, look=look)


def test_of_a_thousand_reports_five_are_looked_at():
    asked = []

    def picture():
        asked.append(1)
        return np.zeros((8, 8, 3), np.uint8)

    camera, strip = Camera(), ()
    for step in range(1, 1001):
        sight = camera(told(step / 1000, picture=picture))
        strip = strip if sight is None else longer(strip, sight)
    assert len(asked) == len(strip) == STEPS
    assert [one.share for one in strip] == [0.001, 0.2, 0.4, 0.6, 0.8]


def test_another_image_and_a_new_beginning_are_another_strip():
    camera, strip, lengths = Camera(), (), []
    for share, place in ((0.1, 0), (0.5, 0), (0.1, 1), (0.5, 1), (0.9, 1), (0.1, 1)):
        strip = longer(strip, camera(told(share, place)))
        lengths.append((strip[-1].place, len(strip)))
    assert lengths == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (1, 1)]


def test_a_strip_is_never_longer_than_it_may_be():
    strip = ()
    for step in range(2 * STEPS):
        strip = longer(strip, Preview(place=0, share=step / 20, png=b""))
    assert len(strip) == STEPS
    assert strip[-1].share == (2 * STEPS - 1) / 20


def test_pictures_are_small_files():
    noise = np.random.default_rng(0).integers(0, 256, (300, 150, 3)).astype(np.uint8)
    sight = Camera()(told(0.5, picture=lambda: noise))
    assert Image.open(io.BytesIO(sight.png)).size == (SIDE // 2, SIDE)
    assert len(sight.png) < 16 * 1024


@pytest.mark.parametrize("error", [RuntimeError("CUDA error"), ValueError("a size")])
def test_work_goes_on_where_it_cannot_be_shown(error):
    def broken():
        raise error

    camera = Camera()
    assert camera(told(0.1, picture=broken)) is None
    assert camera(told(0.5)).share == 0.5
    assert camera(Progress(9, 10)) is None
