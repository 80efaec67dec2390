"""What counts as more than a guess, on pictures of which one knows."""

import numpy as np
import pytest
from skimage.filters import gaussian

from semsim.sets.control import Control, clearer, comes_back, count_words

RNG = np.random.default_rng(0)


def drawn(n: int = 4, side: int = 24) -> list[np.ndarray]:
    """Dark pictures with a light square each, at a place of its own."""
    found = []
    for _ in range(n):
        picture = np.full((side, side, 3), 20, np.uint8)
        x, y = RNG.integers(2, side - 12, size=2)
        picture[y : y + 8, x : x + 8] = (200, 180, 60)
        found.append(picture)
    return found


ORIGINALS = drawn()


def of_all(change) -> tuple[bool, ...]:
    return clearer([change(one) for one in ORIGINALS], ORIGINALS)


def test_the_picture_itself_blurred_and_in_another_light_is_clearer_than_a_guess():
    assert of_all(lambda one: one) == (True,) * 4
    assert (
        of_all(lambda one: gaussian(one, 1.5, channel_axis=2, preserve_range=True)) == (True,) * 4
    )
    assert of_all(lambda one: one // 2 + 90) == (True,) * 4  # its shapes, in the wrong colours


@pytest.mark.parametrize("spread", [1, 40, 120])
def test_noise_is_no_clearer_however_near_its_mean_is(spread):
    """Dark pictures are far from mid-grey: noise of their mean beats that and shows nothing."""

    def noise(one: np.ndarray) -> np.ndarray:
        return np.clip(one.mean(axis=(0, 1)) + RNG.normal(0, spread, one.shape), 0, 255)

    assert of_all(noise) == (False,) * 4
    if spread == 40:
        for one in ORIGINALS:
            near = np.square(noise(one) - one.astype(float)).mean()
            assert near < np.square(127.5 - one.astype(float)).mean()


def test_plain_pictures_are_no_clearer_in_any_colour():
    for colour in (0, 20, 127.5, 255):
        assert of_all(lambda one, colour=colour: np.full(one.shape, colour)) == (False,) * 4
    assert of_all(lambda one: np.zeros(one.shape) + one.mean(axis=(0, 1))) == (False,) * 4


def test_what_all_pictures_have_in_common_does_not_come_back():
    """As the mean face is, where all are faces."""
    base = 60 * np.abs(np.sin(np.arange(24) / 3))[:, None, None] + np.zeros((24, 24, 3))
    faces, others = ([base + one / 4 for one in drawn(n)] for n in (64, 400))
    mean = sum(others) / len(others)
    assert not comes_back(sum(clearer([mean] * 64, faces)), 64)
    for face in faces:  # though it is far nearer than a plain picture
        assert np.square(mean - face).mean() < np.square(face - face.mean(axis=(0, 1))).mean() / 2
    assert clearer(faces, faces) == (True,) * 64


def test_a_failed_attack_and_a_plain_original_count_as_not_clearer():
    plain = np.full((8, 8, 3), 9, np.uint8)
    assert clearer([None, ORIGINALS[1]], ORIGINALS[:2]) == (False, True)
    assert clearer([plain], [plain]) == (False,)


def test_originals_of_several_sizes_are_judged_by_the_plain_picture():
    mixed = [ORIGINALS[0], ORIGINALS[1][:16]]
    assert Control.of(mixed).total is None
    assert clearer(mixed, mixed) == (True, True)
    assert clearer([np.zeros(one.shape) for one in mixed], mixed) == (False, False)


def test_what_was_attacked_is_what_a_picture_is_held_against():
    moved = np.roll(ORIGINALS[0], 9, axis=0)
    control = Control.of(ORIGINALS)
    assert control.is_beaten(0, moved, moved)
    assert not control.is_beaten(0, ORIGINALS[0], moved)


def test_pictures_come_back_where_most_of_them_do():
    assert [comes_back(n, 4) for n in range(5)] == [False, False, False, True, True]
    assert not comes_back(0, 0)
    words = "clearer than a guess (a plain picture, or the mean of the others) on 3 of 4 pictures"
    assert count_words(3, 4) == words
