import torch

from semsim.defences.crop_flip import CropFlip


def test_record_says_what_was_done_to_each_image():
    rng = torch.Generator().manual_seed(0)
    images = torch.rand(32, 3, 12, 10, generator=rng) + 0.1  # never black, so borders show
    out = CropFlip(padding=3).images(images, rng)
    for n in range(len(images)):
        dx, dy = int(out.shift_x[n]), int(out.shift_y[n])
        expected = torch.zeros_like(images[n])
        source = images[n].flip(-1) if out.flipped[n] else images[n]
        for y in range(12):
            for x in range(10):
                if 0 <= y - dy < 12 and 0 <= x - dx < 10:
                    expected[:, y, x] = source[:, y - dy, x - dx]
        assert torch.equal(out.images[n], expected)
    assert out.flipped.any()
    assert not out.flipped.all()
    assert out.shift_x.unique().numel() > 3


def test_strength_zero_is_the_identity(is_identity):
    assert is_identity(CropFlip(padding=0, flip=0.0))
