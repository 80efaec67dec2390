"""A few pairs as one picture."""

import io

import numpy as np
import pytest
from made_pictures import blocky
from PIL import Image

from semsim.base.errors import DataError
from semsim.sets.strip import spread, strip


def test_originals_are_above_and_what_is_missing_stays_clear(tmp_path):
    for number in range(3):
        blocky(tmp_path / f"{number}.png", number, (8, 6))
    (tmp_path / "broken.png").write_bytes(b"x")
    pairs = [("0.png", "1.png"), ("2.png", None), ("broken.png", "1.png")]
    files = [tuple(one and tmp_path / one for one in pair) for pair in pairs]
    made = np.asarray(Image.open(io.BytesIO(strip(files))))
    assert made.shape == (2 * 6 + 2, 3 * 8 + 2 * 2, 4)
    first = np.asarray(Image.open(tmp_path / "0.png").convert("RGB"))
    np.testing.assert_array_equal(made[:6, :8, :3], first)
    assert made[:6, 10:18, 3].min() == 255
    assert made[8:, 10:18, 3].max() == 0
    assert made[:6, 20:, 3].max() == 0


def test_large_pictures_are_made_small(tmp_path):
    blocky(tmp_path / "0.png", 0, (400, 200))
    assert Image.open(io.BytesIO(strip([(tmp_path / "0.png", None)]))).size == (96, 98)


def test_where_there_is_nothing_to_show(tmp_path):
    with pytest.raises(DataError):
        strip([(tmp_path / "gone.png", None)])


@pytest.mark.parametrize(
    ("n", "places"), [(0, []), (1, [0]), (3, [0, 1, 2]), (12, [0, 2, 4, 6, 8, 10])]
)
def test_places_are_spread(n, places):
    assert spread(n) == places
