import math
from dataclasses import replace

import pytest
import torch
from made_linear import net

from semsim.attacks import ATTACKS, VERTICAL_ATTACKS, run_many
from semsim.attacks.matching import parameter_gradients
from semsim.attacks.observe import assumptions, observe_gradient
from semsim.attacks.presets import PRESETS
from semsim.defences import DEFENCES
from semsim.errors import AttackFailedError
from semsim.registry import build
from semsim.targets.convnet import SmallCNN
from semsim.targets.model import TargetModel
from semsim.types import Reconstruction

QUICK = {
    "invgrad": {"steps": 40},
    "dlg": {"steps": 2},
    "idlg": {"steps": 2},
    "gradattack": {"steps": 40},
    "copa-prior": {"steps": 1, "inner": 10},
}
LAYER_WISE = {"rgap", "copa", "copa-prior"}  # know neither batch norm nor pooling
NO_RANDOM_START = {"prior", *LAYER_WISE}
# Gradients of images at once and one by one differ in the last bits, which a few signed steps
# of 0.1 turn into whole steps for pixels whose slope is nearly zero; in float64 that is rare.
FEW = {"invgrad": {"steps": 8}, "gradattack": {"steps": 8}}


@pytest.fixture
def target(request):
    if request.node.callspec.params["name"] in LAYER_WISE:
        return net([(3, 4, 1, 0), (3, 4, 2, 1)], size=(12, 12)).float()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TargetModel(
            SmallCNN(width=4, activation="tanh"),
            ["a", "b", "c"],
            mean=[0.5] * 3,
            std=[0.25] * 3,
            size=(12, 12),
        ).eval()


def picture(seed=3):
    return torch.rand(3, 12, 12, generator=torch.Generator().manual_seed(seed))


def seen_of(target, seed=3, label=1):
    defence = build(DEFENCES, "none")
    return observe_gradient(target, picture(seed), label, defence, torch.Generator()).observation


def quick(name):
    return build(ATTACKS, name, QUICK.get(name, {"steps": 5}))


def seeded(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_returns_an_image_in_range_and_leaves_the_model_alone(name, target):
    before = {key: value.clone() for key, value in target.state_dict().items()}
    hooks = [len(layer._forward_hooks) for layer in target.modules()]
    told = []
    found = quick(name)(seen_of(target), rng=seeded(0)[0], report=told.append)
    assert found.image.shape == (3, 12, 12)
    assert found.image.dtype == torch.float32
    assert 0 <= found.image.min() <= found.image.max() <= 1
    assert math.isfinite(found.objective)
    assert told[-1].done == told[-1].total
    assert [p.done for p in told] == sorted(p.done for p in told)
    for key, value in target.state_dict().items():
        assert torch.equal(value, before[key])
    assert all(p.grad is None and p.requires_grad for p in target.parameters())
    assert not target.training
    assert [len(layer._forward_hooks) for layer in target.modules()] == hooks


@pytest.mark.parametrize("name", ATTACKS)
def test_same_seed_same_image_other_seed_other_image(name, target):
    seen, attack = seen_of(target), quick(name)

    def run(seed):
        return attack(seen, rng=seeded(seed)[0]).image

    assert torch.equal(run(0), run(0))
    if name not in NO_RANDOM_START:
        assert not torch.equal(run(0), run(1))


@pytest.mark.parametrize("name", ATTACKS)
def test_the_residual_is_that_of_the_image_and_the_grey_one_of_grey(name, target):
    found = quick(name)(seen_of(target), rng=seeded(0)[0])
    assert found.residual >= -1e-6
    assert found.grey_residual > 0
    assert found.is_worse_than_grey == (found.residual >= found.grey_residual)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_gradient_that_is_not_a_number_is_a_failure_and_never_an_image(name, target):
    seen = seen_of(target)
    broken = replace(seen, gradients=tuple(g * math.nan for g in seen.gradients))
    with pytest.raises(AttackFailedError):
        quick(name)(broken, rng=seeded(0)[0])


@pytest.mark.parametrize("name", ATTACKS)
def test_a_failing_image_does_not_stop_the_others(name, target):
    good, other = seen_of(target, 3, 1), seen_of(target, 4, 2)
    broken = replace(good, gradients=tuple(g * math.nan for g in good.gradients))
    told = []
    found = run_many(quick(name), [good, broken, other], rngs=seeded(0, 1, 2), report=told.append)
    assert isinstance(found[1], AttackFailedError)
    assert isinstance(found[0], Reconstruction)
    assert isinstance(found[2], Reconstruction)
    assert told[-1].done == told[-1].total


@pytest.mark.parametrize("name", [n for n in ATTACKS if hasattr(ATTACKS[n], "many")])
def test_many_at_once_are_what_each_is_alone(name, target):
    target = target.double()
    seen = [seen_of_double(target, seed) for seed in (3, 4, 5)]
    attack = build(ATTACKS, name, FEW.get(name, QUICK.get(name, {"steps": 5})))
    together = run_many(attack, seen, rngs=seeded(0, 1, 2))
    for one, rng, found in zip(seen, seeded(0, 1, 2), together, strict=True):
        alone = attack(one, rng=rng)
        assert (alone.image - found.image).abs().max() < 1e-5
        assert found.objective == pytest.approx(alone.objective, rel=1e-6, abs=1e-9)
        assert found.residual == pytest.approx(alone.residual, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_in_nothing_out(name):
    assert run_many(quick(name), [], rngs=[]) == []


def seen_of_double(target, seed):
    image, label = picture(seed).double(), torch.tensor([seed % 3])
    gradients = parameter_gradients(target, image[None], label, differentiable=False)
    seen = seen_of(target.float(), seed)
    target.double()
    return replace(seen, gradients=gradients, label=int(label))


@pytest.mark.parametrize(
    ("name", "preset"), [(name, preset) for name in ATTACKS for preset in PRESETS[name]]
)
def test_every_preset_builds_and_what_it_assumes_can_be_observed(name, preset, target):
    attack = build(ATTACKS, name, PRESETS[name][preset])
    one_step = replace(attack, steps=1)
    leak = observe_gradient(
        target,
        picture(),
        1,
        build(DEFENCES, "none"),
        torch.Generator(),
        **assumptions(one_step),
    )
    assert one_step(leak.observation, rng=seeded(0)[0]).image.shape == (3, 12, 12)


def test_every_attack_has_the_three_presets():
    assert set(PRESETS) == set(ATTACKS) | set(VERTICAL_ATTACKS)
    for name in PRESETS:
        assert {"paper", "code", "fast"} <= set(PRESETS[name])
