import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.defences.resized_crop_flip import ResizedCropFlip


def ramps(count: int, height: int = 24, width: int = 32) -> torch.Tensor:
    """Pictures whose first colour is how far right a pixel is, the second how far down, 0 to 1."""
    right = torch.linspace(0, 1, width).expand(height, width)
    down = torch.linspace(0, 1, height)[:, None].expand(height, width)
    return torch.stack([right, down, torch.ones(height, width)]).expand(count, 3, height, width)


def test_a_box_of_the_image_is_magnified():
    """The slope of a ramp says which part of the picture fills it, and its corner where from."""
    images = ramps(200)
    out = ResizedCropFlip(flip=0.0).images(images, torch.Generator().manual_seed(0)).images
    assert out.shape == images.shape
    assert torch.allclose(out[:, 2], torch.ones(200, 24, 32), atol=1e-5)  # nothing black comes in
    wide = (out[:, 0, 12, 26] - out[:, 0, 12, 6]) * 31 / 20  # away from what the edge repeats
    high = (out[:, 1, 19, 16] - out[:, 1, 5, 16]) * 23 / 14
    share = wide * high
    assert 0.05 < float(share.min()) < 0.2
    assert 0.8 < float(share.max()) <= 1.01
    assert abs(float(share.mean()) - 0.5) < 0.08  # even between 0.08 and 1, but for misfits
    stretch = (wide * 32) / (high * 24)
    assert float(stretch.max()) <= 4 / 3 * 1.15  # whole pixels
    assert float(stretch.min()) >= 3 / 4 / 1.15
    assert (out.diff(dim=-1)[:, 0] >= -1e-6).all()  # never mirrored


def test_what_is_mirrored_is_recorded_and_a_magnification_is_no_shift():
    images = ramps(64)
    out = ResizedCropFlip().images(images, torch.Generator().manual_seed(1))
    falls = out.images[:, 0, 12, 26] < out.images[:, 0, 12, 6]
    assert torch.equal(falls, out.flipped)
    assert out.flipped.any()
    assert not out.flipped.all()
    assert not out.shift_x.any()
    assert not out.shift_y.any()


def test_a_shape_that_never_fits_takes_the_middle():
    """A strip can hold no box of its own area that is nearly square."""
    strip = ramps(3, height=4, width=40)
    whole = ResizedCropFlip(least=1.0, longest=1.0, flip=0.0)
    out = whole.images(strip, torch.Generator().manual_seed(0)).images
    middle = strip[:, 0, 0, 18:22]
    assert torch.allclose(out[:, 0, 0, [0, -1]], middle[:, [0, -1]], atol=0.02)


def test_the_whole_of_a_square_is_left_as_it_is():
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    whole = ResizedCropFlip(least=1.0, longest=1.0, flip=0.0)
    out = whole.images(images, torch.Generator().manual_seed(0))
    assert torch.allclose(out.images, images, atol=1e-6)
    assert not out.flipped.any()


@pytest.mark.parametrize(
    "settings", [{"least": 0.0}, {"most": 1.5}, {"least": 0.9, "most": 0.5}, {"longest": 0.5}]
)
def test_boxes_that_cannot_be_are_refused(settings):
    with pytest.raises(SettingsError, match="resized-crop-flip takes"):
        ResizedCropFlip(**settings)
