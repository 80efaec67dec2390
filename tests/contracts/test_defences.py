import pytest
import torch

from semsim.defences import DEFENCES
from semsim.registry import build


@pytest.mark.parametrize("name", DEFENCES)
def test_defence_keeps_shapes_and_range_and_leaves_its_input_alone(name):
    defence = build(DEFENCES, name)
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    gradients = (torch.ones(4, 3), torch.ones(4))
    kept = images.clone()
    out = defence.images(images, torch.Generator().manual_seed(1))
    shared = defence.gradients(gradients, torch.Generator().manual_seed(1), "attack")
    assert torch.equal(images, kept)
    assert out.images.shape == images.shape
    assert out.images.min() >= 0
    assert out.images.max() <= 1
    assert len(out.shift_x) == len(out.shift_y) == len(out.flipped) == 5
    assert [g.shape for g in shared] == [g.shape for g in gradients]
    assert torch.equal(gradients[0], torch.ones(4, 3))


@pytest.mark.parametrize("name", DEFENCES)
def test_same_seed_same_result(name):
    defence = build(DEFENCES, name)
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    gradients = (torch.ones(4, 3),)

    def run():
        rng = torch.Generator().manual_seed(2)
        return defence.images(images, rng).images, defence.gradients(gradients, rng, "train")[0]

    for first, second in zip(run(), run(), strict=True):
        assert torch.equal(first, second)


NO_STRENGTH = {
    "none": {},
    "crop-flip": {"padding": 0, "flip": 0.0},
    "ats": {"policies": "28-39+39"},  # a solarize of 256 and a colour of 0
    "ops": {
        "steps": "translateX=0,translateY=0,shearY=0,rotate=0,color=0,contrast=0,brightness=0,"
        "sharpness=0,posterize=8,solarize=256"
    },
    "gradient-noise": {"std": 0.0},
    "gradient-pruning": {"rate": 0.0},
    "composed": {"parts": "crop-flip:padding=0,flip=0 & gradient-noise:std=0 & ats:39"},
}


@pytest.mark.parametrize("name", DEFENCES)
def test_without_strength_it_is_the_identity(name):
    defence = build(DEFENCES, name, NO_STRENGTH[name])
    rng = torch.Generator().manual_seed(0)
    images, gradients = torch.rand(5, 3, 9, 11, generator=rng), torch.randn(2, 30, generator=rng)
    out = defence.images(images, rng)
    assert torch.equal(out.images, images)
    assert not out.shift_x.any()
    assert not out.shift_y.any()
    assert not out.flipped.any()
    for phase in ("train", "attack"):
        shared = defence.gradients(tuple(gradients), rng, phase)
        assert all(torch.equal(a, b) for a, b in zip(shared, gradients, strict=True))


@pytest.mark.parametrize("name", DEFENCES)
def test_model_is_left_untouched(name):
    model = torch.nn.Linear(6, 2)
    kept = model.weight.detach().clone()
    gradients = torch.autograd.grad(model(torch.ones(1, 6)).square().sum(), model.parameters())
    build(DEFENCES, name).gradients(gradients, torch.Generator().manual_seed(0), "train")
    assert torch.equal(model.weight, kept)
    assert all(parameter.grad is None for parameter in model.parameters())
