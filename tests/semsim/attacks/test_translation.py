import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_linear import LEAKING, Net, leak, target

from semsim.attacks.prior import STILL, Move, Prior, estimate_move, moved
from semsim.datasets.symbols import Symbols
from semsim.defences.crop_flip import CropFlip

SIZE = 16
PICTURE = 0.3 + 0.7 * torch.rand(3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))

shifts = st.integers(-5, 5)


@pytest.fixture(scope="module")
def model():
    return target(Net(LEAKING, bias=True), "abcdefgh", size=(SIZE, SIZE), std=0.3)


@given(right=shifts, down=shifts)
@settings(max_examples=30, deadline=None)
def test_moved_equals_a_slow_loop(right, down):
    image = PICTURE[:, :7, :9]
    found = moved(image, Move(right=right, down=down, fill_right=0.1, fill_down=0.2))
    for y in range(7):
        for x in range(9):
            fill = 0.2 if not 0 <= y - down < 7 else 0.1 if not 0 <= x - right < 9 else None
            slow = image[:, y - down, x - right] if fill is None else torch.full((3,), fill)
            assert torch.equal(found[:, y, x], slow)


def test_a_move_is_that_of_crop_and_flip():
    found = CropFlip(flip=0.0).images(PICTURE[None], torch.Generator().manual_seed(4))
    move = Move(right=int(found.shift_x), down=int(found.shift_y))
    assert any(move.shift)
    assert torch.equal(moved(PICTURE, move), found.images[0])


def test_moving_is_differentiable():
    image = PICTURE.clone().requires_grad_()
    moved(image, Move(right=2, down=-3)).sum().backward()
    assert image.grad.sum() == 3 * (SIZE - 2) * (SIZE - 3)


@given(right=shifts, down=shifts)
@settings(max_examples=30, deadline=None)
def test_the_move_is_read_off_a_noisy_picture(right, down):
    noise = 0.05 * torch.randn(PICTURE.shape, generator=torch.Generator().manual_seed(1))
    noisy = (moved(PICTURE, Move(right=right, down=down)) + noise).clamp(0, 1)
    assert estimate_move(noisy, limit=5).shift == (right, down)


def test_a_border_of_any_grey_is_found_when_asked_for():
    move = Move(right=4, down=-2, fill_right=0.75, fill_down=0.0)
    image = moved(PICTURE, move)
    assert estimate_move(image, limit=5, fill=None) == move
    assert estimate_move(image, limit=5).right == 0  # 0.75 is not black


def test_the_limit_is_never_passed():
    image = moved(PICTURE, Move(right=5))
    assert abs(estimate_move(image, limit=3).right) <= 3
    assert estimate_move(image, limit=100).right == 5


def test_a_picture_without_a_border_stays():
    assert estimate_move(PICTURE, limit=8) == STILL


def test_the_attack_finds_the_move_and_returns_the_image_moved_back(model):
    clean = Symbols(test_per_class=1, size=SIZE)("test").images[4]
    move = Move(right=-2, down=3)
    told = []
    found = Prior(steps=40, max_shift=4)(
        leak(model, moved(clean, move)),
        rng=torch.Generator().manual_seed(0),
        report=told.append,
    )
    assert told[-1].done == told[-1].total
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert found.shift == move.shift
    kept = (slice(None), slice(0, SIZE - 3), slice(2, SIZE))
    error = (found.image - clean)[kept].square().mean()
    assert error < 1e-3  # 30 dB where the image was in the frame
    still = (moved(clean, move) - clean)[kept].square().mean()
    assert error < still / 10


def test_an_image_that_was_not_moved_is_told_so(model):
    image = 0.25 + 0.75 * Symbols(test_per_class=1, size=SIZE)("test").images[4]
    told = []
    found = Prior(steps=20, max_shift=4)(
        leak(model, image), rng=torch.Generator().manual_seed(0), report=told.append
    )
    assert found.shift == (0, 0)
    assert told[-1].done == told[-1].total
