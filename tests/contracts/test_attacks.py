import pytest
import torch

from semsim.attacks import ATTACKS
from semsim.attacks.observe import observe_gradient
from semsim.defences import DEFENCES
from semsim.registry import build
from semsim.targets.convnet import SmallCNN
from semsim.targets.model import TargetModel

QUICK = {"invgrad": {"steps": 40}}


@pytest.fixture
def target():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TargetModel(
            SmallCNN(width=4, activation="tanh"),
            ["a", "b", "c"],
            mean=[0.5] * 3,
            std=[0.25] * 3,
            size=(12, 12),
        ).eval()


@pytest.fixture
def leak(target):
    image = torch.rand(3, 12, 12, generator=torch.Generator().manual_seed(3))
    return observe_gradient(target, image, 1, build(DEFENCES, "none"), torch.Generator())


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_returns_an_image_in_range_and_leaves_the_model_alone(name, leak, target):
    before = {key: value.clone() for key, value in target.state_dict().items()}
    seen = []
    attack = build(ATTACKS, name, QUICK[name])
    found = attack(leak.observation, rng=torch.Generator().manual_seed(0), report=seen.append)
    assert found.image.shape == (3, 12, 12)
    assert found.image.dtype == torch.float32
    assert 0 <= found.image.min() <= found.image.max() <= 1
    assert seen[-1].done == seen[-1].total
    for key, value in target.state_dict().items():
        assert torch.equal(value, before[key])
    assert all(p.grad is None for p in target.parameters())


@pytest.mark.parametrize("name", ATTACKS)
def test_same_seed_same_image_other_seed_other_image(name, leak):
    attack = build(ATTACKS, name, QUICK[name])

    def run(seed):
        return attack(leak.observation, rng=torch.Generator().manual_seed(seed)).image

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))
