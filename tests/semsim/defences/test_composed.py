import pytest
import torch

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.defences.composed import Composed
from semsim.defences.none import NoDefence
from semsim.defences.policies import moved


def test_shift_and_flip_lead_from_the_first_image_to_the_last():
    rng = torch.Generator().manual_seed(0)
    # One bright pixel in the middle of a large frame: no part can move it out.
    images = torch.zeros(40, 3, 41, 41)
    images[:, :, 19, 17] = 1
    out = Composed(
        parts="crop-flip & ops:translateX=0.1 & crop-flip:padding=2 & ops:translateY=0.1"
    ).images(images, rng)
    for n, image in enumerate(images):
        mirrored = image.flip(-1) if out.flipped[n] else image
        led = moved(mirrored[None], int(out.shift_x[n]), int(out.shift_y[n]))[0]
        assert torch.equal(out.images[n], led)
    assert out.flipped.any()
    assert not out.flipped.all()


def test_gradients_pass_through_every_part():
    gradients = (torch.linspace(-1, 1, 100),)
    (shared,) = Composed(parts="gradient-pruning:rate=0.5 & gradient-noise:std=0.01").gradients(
        gradients, torch.Generator().manual_seed(0), "attack"
    )
    small = gradients[0].abs() < 0.5
    assert shared[small].std() == pytest.approx(0.01, rel=0.5)  # pruned, then noise on top
    assert (shared[small] != 0).all()
    assert (shared[~small] - gradients[0][~small]).abs().max() < 0.06


def test_wrong_parts_are_refused_at_once():
    with pytest.raises(UnknownNameError, match="fog"):
        Composed(parts="crop-flip & fog")
    with pytest.raises(SettingsError, match="missing"):
        Composed(parts="crop-flip & ")


def test_of_parts_without_strength_it_is_the_identity(is_identity):
    assert is_identity(NoDefence())
    assert is_identity(
        Composed(parts="crop-flip:padding=0,flip=0 & gradient-noise:std=0 & ats:39 & none")
    )
