import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.base.registry import build
from semsim.defences import DEFENCES
from semsim.defences.base import of_one


@pytest.mark.parametrize("name", DEFENCES)
def test_defence_keeps_shapes_and_range_and_leaves_its_input_alone(name):
    defence = build(DEFENCES, name)
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    gradients = (torch.ones(4, 3), torch.ones(4))
    kept = images.clone()
    out = defence.images(images, torch.Generator().manual_seed(1))
    shared = of_one(defence, gradients, torch.Generator().manual_seed(1), "attack")
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
        return defence.images(images, rng).images, of_one(defence, gradients, rng, "train")[0]

    for first, second in zip(run(), run(), strict=True):
        assert torch.equal(first, second)


WITH_PHASES = [name for name, kind in DEFENCES.items() if "apply_at" in kind.__dataclass_fields__]


@pytest.mark.parametrize("name", WITH_PHASES)
@pytest.mark.parametrize("apply_at", ["train", "attack", "both"])
@pytest.mark.parametrize("phase", ["train", "attack"])
def test_it_acts_where_it_should(name, apply_at, phase):
    gradients = (torch.arange(1.0, 9),)
    defence = build(DEFENCES, name, {"apply_at": apply_at})
    (shared,) = of_one(defence, gradients, torch.Generator().manual_seed(0), phase)
    assert torch.equal(shared, gradients[0]) is (apply_at not in (phase, "both"))


@pytest.mark.parametrize("name", WITH_PHASES)
def test_another_phase_is_refused(name):
    with pytest.raises(SettingsError, match="got 'never'"):
        build(DEFENCES, name, {"apply_at": "never"})


@pytest.mark.parametrize("name", DEFENCES)
def test_model_is_left_untouched(name):
    model = torch.nn.Linear(6, 2)
    kept = model.weight.detach().clone()
    gradients = torch.autograd.grad(model(torch.ones(1, 6)).square().sum(), model.parameters())
    of_one(build(DEFENCES, name), gradients, torch.Generator().manual_seed(0), "train")
    assert torch.equal(model.weight, kept)
    assert all(parameter.grad is None for parameter in model.parameters())
