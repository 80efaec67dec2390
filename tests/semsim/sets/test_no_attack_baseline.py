"""What counts as more than a guess, on pictures of which one knows."""

import numpy as np
import pytest
from skimage.filters import gaussian, sobel

from semsim.sets.no_attack_baseline import NOTHING, Control, Count, Shown, judged

RNG = np.random.default_rng(0)
BOTH, NEARER, BY_SHAPES = Shown(True, True), Shown(True, False), Shown(False, True)


def drawn(n: int = 4, side: int = 24) -> list[np.ndarray]:
    """Dark pictures with a light square each, at a place of its own."""
    found = []
    for _ in range(n):
        picture = np.full((side, side, 3), 20, np.uint8)
        x, y = RNG.integers(2, side - 12, size=2)
        picture[y : y + 8, x : x + 8] = (200, 180, 60)
        found.append(picture)
    return found


def scene(side: int = 32) -> np.ndarray:
    """Noise whose power falls with the square of the frequency, as that of photographs does."""
    far = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None])
    far[0, 0] = 1
    noise = np.fft.fft2(RNG.normal(size=(3, side, side))) / far
    waves = np.fft.ifft2(noise).real.transpose(1, 2, 0)
    return np.clip(128 + 50 * waves / waves.std(), 0, 255)


ORIGINALS = drawn()


def of_all(change, originals=ORIGINALS) -> tuple[Shown, ...]:
    return judged([change(one) for one in originals], originals)


def clearer(shown: tuple[Shown, ...]) -> int:
    return Count.of(shown).clearer


def test_the_picture_itself_blurred_and_in_another_light_is_clearer_than_a_guess():
    assert of_all(lambda one: one) == (BOTH,) * 4
    blurred = of_all(lambda one: gaussian(one, 1.5, channel_axis=2, preserve_range=True))
    assert [one.nearer for one in blurred] == [True] * 4
    assert of_all(lambda one: one // 2 + 90) == (BOTH,) * 4  # its shapes, in the wrong colours


def test_negatives_wrong_colours_and_pictures_under_noise_are_told_apart():
    """By squared error all of them are farther from the original than a plain picture is."""
    changes = (
        lambda one: 255.0 - one,
        lambda one: 0.2 * (255.0 - one) + 90,  # and dim
        lambda one: one[..., [1, 2, 0]] * [1.0, -1.0, 0.3],
        lambda one: one + RNG.normal(0, 80, one.shape),
        lambda one: np.repeat(255 - one.mean(axis=2, keepdims=True), 3, axis=2),
    )
    for change in changes:
        for originals in (ORIGINALS, *([scene() for _ in range(n)] for n in (24, 8))):
            shown = of_all(change, originals)
            assert [one.told_apart for one in shown] == [True] * len(originals)
        assert [one.nearer for one in shown] == [False] * 8
    assert of_all(changes[0]) == (BY_SHAPES,) * 4


def test_outlines_and_what_noise_almost_hides_are_told_apart_where_originals_are_many():
    """With the first place among 24, which fewer than 20 do not make rare."""
    many = [scene() for _ in range(24)]

    def grey(lines: np.ndarray) -> np.ndarray:
        return np.repeat(lines.mean(axis=2, keepdims=True), 3, axis=2)

    changes = (
        lambda one: grey(one - np.roll(one, (1, 1), axis=(0, 1))),  # in relief
        lambda one: grey(np.abs(sobel(gaussian(one, 1, channel_axis=2)))),
        lambda one: one + RNG.normal(0, 200, one.shape),
    )
    for change in changes:
        assert sum(one.told_apart for one in of_all(change, many)) >= 20
        few = [of_all(change, many[at : at + 8]) for at in (0, 8, 16)]
        assert sum(one.told_apart for shown in few for one in shown) < 20


def test_what_is_of_no_original_tells_none_apart():
    """Pictures of the same kind, noise, and the mean: at most one in as many as there are."""
    others = [scene() for _ in range(40)]
    makers = (
        lambda: scene(),
        lambda: RNG.normal(128, 60, (32, 32, 3)),
        lambda: sum(others) / 40 + RNG.normal(0, 5, (32, 32, 3)),
        lambda: np.full((32, 32, 3), 77.0),
    )
    for make in makers:
        for n, most in ((8, 1), (24, 1.6)):  # of 24 luck gives one, with a standard error of 0.3
            counts = [
                sum(one.told_apart for one in judged([make() for _ in range(n)], scenes))
                for scenes in ([scene() for _ in range(n)] for _ in range(15))
            ]
            assert np.mean(counts) <= most
            assert max(counts) <= n / 2  # so pictures never come back


def test_an_original_twice_is_no_rival_of_itself_and_one_alone_has_none():
    twice = [ORIGINALS[0], ORIGINALS[0], ORIGINALS[1]]
    assert judged([255 - one for one in twice], twice) == (BY_SHAPES,) * 3
    assert judged([255 - ORIGINALS[0]], ORIGINALS[:1]) == (NOTHING,)
    assert judged([255 - ORIGINALS[0]] * 2, [ORIGINALS[0]] * 2) == (NOTHING,) * 2


def test_originals_too_much_alike_are_not_told_apart():
    near = [ORIGINALS[0] + RNG.normal(0, 2, ORIGINALS[0].shape) for _ in range(4)]
    assert of_all(lambda one: 255 - gaussian(one, 1, channel_axis=2), near) == (NOTHING,) * 4


@pytest.mark.parametrize("spread", [1, 40, 120])
def test_noise_is_no_clearer_however_near_its_mean_is(spread):
    """Dark pictures are far from mid-grey: noise of their mean beats that and shows nothing."""

    def noise(one: np.ndarray) -> np.ndarray:
        return np.clip(one.mean(axis=(0, 1)) + RNG.normal(0, spread, one.shape), 0, 255)

    assert of_all(noise) == (NOTHING,) * 4
    if spread == 40:
        for one in ORIGINALS:
            near = np.square(noise(one) - one.astype(float)).mean()
            assert near < np.square(127.5 - one.astype(float)).mean()


def test_plain_pictures_are_no_clearer_in_any_colour():
    for colour in (0, 20, 127.5, 255):
        assert of_all(lambda one, colour=colour: np.full(one.shape, colour)) == (NOTHING,) * 4
    assert of_all(lambda one: np.zeros(one.shape) + one.mean(axis=(0, 1))) == (NOTHING,) * 4


def test_what_all_pictures_have_in_common_does_not_come_back():
    """As the mean face is, where all are faces."""
    base = 60 * np.abs(np.sin(np.arange(24) / 3))[:, None, None] + np.zeros((24, 24, 3))
    faces, others = ([base + one / 4 for one in drawn(n)] for n in (64, 400))
    mean = sum(others) / len(others)
    assert not Count.of(judged([mean] * 64, faces)).comes_back
    for face in faces:  # though it is far nearer than a plain picture
        assert np.square(mean - face).mean() < np.square(face - face.mean(axis=(0, 1))).mean() / 2
    assert clearer(judged(faces, faces)) == 64


def test_a_failed_attack_and_a_plain_original_count_as_not_clearer():
    plain = np.full((8, 8, 3), 9, np.uint8)
    assert judged([None, ORIGINALS[1]], ORIGINALS[:2]) == (NOTHING, BOTH)
    assert judged([plain], [plain]) == (NOTHING,)
    assert judged([plain, plain], [plain, ORIGINALS[0][:8, :8]]) == (NOTHING,) * 2


def test_originals_of_several_sizes_are_judged_by_the_plain_picture():
    mixed = [ORIGINALS[0], ORIGINALS[1][:16]]
    assert judged(mixed, mixed) == (NEARER, NEARER)
    assert judged([np.zeros(one.shape) for one in mixed], mixed) == (NOTHING, NOTHING)


def test_what_was_attacked_is_what_a_picture_is_held_against():
    moved = np.roll(ORIGINALS[0], 9, axis=0)
    control = Control(ORIGINALS)
    assert control.judge(0, moved, moved) == BOTH
    assert control.judge(0, 255 - moved, moved) == BY_SHAPES
    assert control.judge(0, ORIGINALS[0], moved) == NOTHING


def test_pictures_come_back_where_most_of_them_do():
    assert [Count(n, 0, 4).comes_back for n in range(5)] == [False, False, False, True, True]
    assert not Count.of([]).comes_back
    some = Count.of([BOTH, NEARER, NOTHING, BY_SHAPES])
    assert some == (3, 1, 4, 0)
    assert some.short == "3 of 4 (1 by shapes)"
    words = "above the no-attack baseline (a plain picture or the mean of the others) on 3 of 4 "
    words += "pictures, 75% [no interval: 4 originals, fewer than 6]"
    assert Count(3, 0, 4).words == words
    assert "on 9 of 12 pictures, 75% [no interval: 4 originals" in Count(9, 0, 12, 4).words
    shapes = "by their shapes alone, as negatives, in wrong colours or as outlines"
    assert some.words == f"{words}, 1 of them {shapes}"
