"""The parameters that are shared: named, counted, and refused where an attack needs others."""

import pytest
import torch
from made_linear import target
from torch import nn

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.linear.spear import Spear
from semsim.attacks.observe import Update, observe_gradient, observe_round
from semsim.attacks.parameters import check_layers, seen_in, shared_names, shared_part
from semsim.base.errors import SettingsError, UnknownNameError
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.targets.mlp import MLP


class Adapted(nn.Module):
    """A linear layer with low-rank factors beside it, named as common libraries do."""

    def __init__(self):
        super().__init__()
        self.layer, self.lora_A = nn.Linear(6, 4), nn.Linear(6, 2, bias=False)
        self.lora_B, self.head = nn.Linear(2, 4, bias=False), nn.Linear(4, 3)


EVERY = {"layer.weight", "layer.bias", "lora_A.weight", "lora_B.weight", "head.weight", "head.bias"}


@pytest.mark.parametrize(
    ("shared", "named"),
    [
        (["all"], EVERY),
        (["last"], {"head.weight", "head.bias"}),
        (["biases"], {"layer.bias", "head.bias"}),
        (["lora"], {"lora_A.weight", "lora_B.weight"}),
        (["lora", "head"], {"lora_A.weight", "lora_B.weight", "head.weight", "head.bias"}),
        (["layer.weight"], {"layer.weight"}),
        (["l*.weight"], {"layer.weight", "lora_A.weight", "lora_B.weight"}),
    ],
)
def test_parts_are_named_and_counted(shared, named):
    network = Adapted()
    assert shared_names(network, shared) == named
    sizes = {name: one.numel() for name, one in network.named_parameters()}
    of = 28 + 12 + 8 + 15
    assert seen_in(network, named) == {"parameters": sum(map(sizes.get, named)), "of": of}


@pytest.mark.parametrize(
    ("shared", "error", "told"),
    [
        ("heed", UnknownNameError, "Did you mean head"),
        ("lora_C.*", SettingsError, "no parameter that 'lora_C"),
    ],
)
def test_a_part_that_there_is_not_is_refused(shared, error, told):
    with pytest.raises(error, match=told):
        shared_names(Adapted(), [shared])
    with pytest.raises(SettingsError, match="no parameter that 'lora' stands for"):
        shared_names(nn.Linear(3, 2), ["lora"])


def made():
    return target(SmallCNN(width=4, activation="tanh"), "abc", size=(12, 12))


def picture(seed=3):
    return torch.rand(3, 12, 12, generator=torch.Generator().manual_seed(seed))


def test_the_gradient_of_the_last_layer_is_that_part_of_the_whole_and_the_model_is_left_alone():
    model = made()
    part = shared_part(model, "last")
    assert shared_part(model, "all") is model
    found = observe_gradient(part, picture(), 1, NoDefence(), torch.Generator()).observation
    whole = parameter_gradients(model, picture()[None], torch.tensor([1]))
    for own, other in zip(found.gradients, whole[-2:], strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-7)
    assert [name for name, _ in part.named_parameters()] == ["head.weight", "head.bias"]
    assert len(whole) == len([*model.parameters()])


def test_a_client_that_shares_a_layer_trains_it_alone():
    part, images = shared_part(made(), "last"), torch.stack([picture(1), picture(2)])
    sharing = Update(steps=2, batch=2, lr=0.5, parameters="last", batch_norm="eval")
    rngs = [torch.Generator() for _ in images]
    before = {name: value.clone() for name, value in part.state_dict().items()}
    leak = observe_round(part, images, torch.tensor([0, 1]), sharing, NoDefence(), rngs)
    shapes = [tuple(one.shape) for one in leak.observation.update]
    assert shapes == [(3, part.head.in_features), (3,)]
    assert all(one.abs().sum() > 0 for one in leak.observation.update)
    assert all(torch.equal(before[name], value) for name, value in part.state_dict().items())


def test_an_attack_on_a_part_goes_by_that_part():
    """Two networks that differ in nothing of it but a gradient that is not shared."""
    model = made()
    part = shared_part(model, "last")
    attack = ATTACKS["invgrad"](steps=3, start="grey")
    found = [
        attack(
            observe_gradient(one, picture(), 1, NoDefence(), torch.Generator()).observation,
            rng=torch.Generator().manual_seed(0),
        )
        for one in (part, model)
    ]
    assert found[0].grey_residual != found[1].grey_residual
    assert all(0 <= one.image.min() <= one.image.max() <= 1 for one in found)


@pytest.mark.parametrize(
    ("attack", "shared", "told"),
    [
        ("rgap", "last", "rgap needs the gradient of every layer, and body"),
        ("copa-prior", "biases", "copa-prior needs the gradient of every layer"),
        ("spear", "last", "spear needs the gradient of the first layer"),
        ("idlg", "body", "reads the label off the gradient of the last layer, and head"),
        ("invgrad:label=inferred", "body", "label=known"),
    ],
)
def test_an_attack_whose_layer_is_not_shared_is_refused_before_it_runs(attack, shared, told):
    model = made()
    with pytest.raises(SettingsError, match=told):
        check_layers(read_attack(attack), model, shared_names(model, [shared]))
    check_layers(read_attack(attack), model, shared_names(model, ["all"]))


def test_spear_needs_the_first_layer_alone():
    model = target(MLP(width=20, depth=3), "abc", size=(12, 12))
    check_layers(read_attack("spear"), model, shared_names(model, ["body.1"]))
    seen = observe_gradient(
        shared_part(model, "last"), picture(), 1, NoDefence(), torch.Generator()
    ).observation
    with pytest.raises(SettingsError, match="first layer, which is not shared"):
        Spear()(seen, rng=torch.Generator())
