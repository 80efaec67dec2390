import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from semsim.base.errors import DataError
from semsim.defences.policies import OPERATIONS, POLICIES, USUAL_MAGNITUDES, moved


def picture(seed=0, height=22, width=32):
    """A smooth coloured picture that uses all brightnesses but the very darkest and lightest."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(20, 236, (5, 6, 3), dtype=np.uint8))
    return coarse.resize((width, height), Image.Resampling.BICUBIC)


def tensor(image):
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1)[None]


def affine(image, *matrix, resample=Image.Resampling.NEAREST):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, resample, fillcolor=(0,) * 3)


def rotated(image, degrees):
    turned = image.convert("RGBA").rotate(degrees)
    grey = Image.new("RGBA", image.size, (128,) * 4)
    return Image.composite(turned, grey, turned).convert("RGB")


# What ATS calls in PIL, and by how many of 255 levels ours may differ.
BICUBIC = Image.Resampling.BICUBIC
PIL_CALLS = {
    "translateX": (lambda im, m: affine(im, 1, 0, m * im.width, 0, 1, 0), 0),
    "translateY": (lambda im, m: affine(im, 1, 0, 0, 0, 1, m * im.height), 0),
    "shearY": (lambda im, m: affine(im, 1, 0, 0, m, 1, 0, resample=BICUBIC), 6),
    "rotate": (rotated, 0),
    "color": (lambda im, m: ImageEnhance.Color(im).enhance(1 + m), 1),
    "contrast": (lambda im, m: ImageEnhance.Contrast(im).enhance(1 + m), 1),
    "brightness": (lambda im, m: ImageEnhance.Brightness(im).enhance(1 + m), 1),
    "sharpness": (lambda im, m: ImageEnhance.Sharpness(im).enhance(1 + m), 1),
    "posterize": (lambda im, m: ImageOps.posterize(im, round(m)), 0),
    "solarize": (ImageOps.solarize, 0),
    "autocontrast": (lambda im, _: ImageOps.autocontrast(im), 1),
    "equalize": (lambda im, _: ImageOps.equalize(im), 0),
    "invert": (lambda im, _: ImageOps.invert(im), 0),
}


def magnitudes(name):
    operation = OPERATIONS[name]
    used = {operation.magnitude(step) for other, step in POLICIES if other == name}
    both = [m * sign for m in used - {None} for sign in ((1, -1) if operation.signed else (1,))]
    return both or [0.0]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_does_what_pil_does(name):
    call, levels = PIL_CALLS[name]
    for seed in (0, 1):
        image = picture(seed)
        for magnitude in magnitudes(name):
            ours = OPERATIONS[name].apply(tensor(image), magnitude)
            theirs = tensor(call(image, magnitude))
            # 1.5 levels: PIL rounds twice where we do not round at all.
            worst = (ours - theirs).abs().max().item() * 255
            assert worst <= levels * 1.5 + 1e-3, f"magnitude {magnitude}"
            assert 0 <= ours.min() <= ours.max() <= 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_images_of_a_batch_do_not_touch_each_other(name):
    images = torch.cat([tensor(picture(seed)) for seed in range(3)])
    apply, magnitude = OPERATIONS[name].apply, magnitudes(name)[0]
    alone = torch.cat([apply(image[None], magnitude) for image in images])
    assert torch.allclose(apply(images, magnitude), alone, atol=1e-6)


@pytest.mark.parametrize("name", ["translateX", "translateY"])
@pytest.mark.parametrize("share", [0.4532, -0.4532, 0.1007, -0.1511])
def test_translation_says_by_how_much(name, share):
    images = torch.rand(1, 3, 32, 28, generator=torch.Generator().manual_seed(0))
    right, down = OPERATIONS[name].shift(share, (32, 28))
    assert (right == 0) is (name == "translateY")
    assert (down == 0) is (name == "translateX")
    assert torch.equal(OPERATIONS[name].apply(images, share), moved(images, right, down))


def test_moving_is_cutting_and_filling():
    image = torch.arange(1.0, 13).view(1, 1, 3, 4)
    right = torch.tensor([[0.0, 0, 1, 2], [0, 0, 5, 6], [0, 0, 9, 10]])
    up = torch.tensor([[5.0, 6, 7, 8], [9, 10, 11, 12], [0, 0, 0, 0]])
    assert torch.equal(moved(image, 2, 0)[0, 0], right)
    assert torch.equal(moved(image, 0, -1)[0, 0], up)
    assert torch.equal(moved(image, -9, 7), torch.zeros_like(image))


def test_policies_have_the_strengths_that_the_papers_name():
    # semsim_protocol §1.3: 3, 1 and 7 at 32 pixels; 43 and 18.
    strengths = [OPERATIONS[name].magnitude(step) for name, step in POLICIES]
    assert len(POLICIES) == 50
    assert [POLICIES[i][0] for i in (3, 1, 7)] == ["translateX", "contrast", "translateY"]
    assert [POLICIES[i][0] for i in (43, 18)] == ["translateY", "contrast"]
    assert strengths[3] * 32 == pytest.approx(14.5, abs=0.01)
    assert strengths[7] * 32 == pytest.approx(3.2, abs=0.05)
    assert strengths[43] * 32 == pytest.approx(4.8, abs=0.05)
    assert [strengths[i] for i in (1, 18)] == pytest.approx([0.333, 0.389], abs=1e-3)
    assert [strengths[i] for i in (2, 6, 37, 40)] == pytest.approx(
        [6.67, 0.067, 142.2, 227.6], 0.01
    )
    assert round(strengths[11]) == 6
    assert strengths[28] == OPERATIONS["solarize"].neutral


def test_usual_magnitudes_change_something():
    for name, magnitude in USUAL_MAGNITUDES.items():
        assert magnitude != OPERATIONS[name].neutral
    assert set(USUAL_MAGNITUDES) == {n for n, o in OPERATIONS.items() if o.neutral is not None}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_two_channels_are_changed_or_refused_in_a_sentence(name):
    images, operation = torch.rand(2, 2, 8, 8), OPERATIONS[name]
    try:
        changed = operation.apply(images, operation.largest or 0.0)
    except DataError as error:
        assert "1 or 3 channels; got 2" in str(error)  # noqa: PT017
    else:
        assert changed.shape == images.shape
