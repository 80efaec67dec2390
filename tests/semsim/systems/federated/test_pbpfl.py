import copy
import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from semsim.base.errors import SettingsError
from semsim.layer_graph import INPUT, Add, Chain, Concat, LayerGraph
from semsim.systems.federated.pbpfl import (
    FIXED,
    ClientUpload,
    Masked,
    Pbpfl,
    client_backward,
    client_forward,
    perturb,
    recover,
    release,
    scales_of,
    slots_of,
)


def client_step(masked, inputs, targets):
    return client_backward(masked, client_forward(masked, inputs, targets))


BLOCKS = ("conv", "strided", "leaky", "max-pool", "avg-pool", "concat", "add", "projected")


@st.composite
def graphs(draw):
    """Random convolutional graphs with skips and pooling, and plain ones on flat inputs."""
    if draw(st.booleans()):
        return _flat(draw(st.integers(1, 4)), draw(st.booleans()), draw(st.integers(1, 5)))
    blocks = draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=5))
    return _convolutional(blocks, pooled=draw(st.booleans()), bias=draw(st.booleans()))


def _flat(depth, bias, outputs):
    chain, width = Chain(), 6
    for number in range(depth):
        chain.add(f"fc{number}", nn.Linear(width, 7, bias=bias))
        chain.add(f"relu{number}", nn.ReLU())
        width = 7
    chain.add("out", nn.Linear(width, outputs, bias=bias))
    return LayerGraph(chain.nodes, input_shape=(6,)).double()


def _convolutional(blocks, *, pooled, bias):
    chain, width, side = Chain(), 4, 8
    chain.add("start", nn.Conv2d(2, width, 3, padding=1, bias=bias))
    chain.add("start-relu", nn.ReLU())
    for place, block in enumerate(blocks):
        width, side = _add(chain, f"{place}{block}", block, width, side, bias)
    if pooled:
        chain.add("gap", nn.AdaptiveAvgPool2d(1))
        side = 1
    chain.add("flatten", nn.Flatten())
    chain.add("hidden", nn.Linear(width * side * side, 6, bias=bias))
    chain.add("hidden-relu", nn.ReLU())
    chain.add("out", nn.Linear(6, 3, bias=bias))
    return LayerGraph(chain.nodes, input_shape=(2, 8, 8), mean=(0.4, 0.5), std=(0.3, 0.2)).double()


def _add(chain, name, block, width, side, bias):
    start = chain.last
    if block.endswith("pool"):
        if side == 1:
            return width, side
        chain.add(name, nn.MaxPool2d(2) if block == "max-pool" else nn.AvgPool2d(2))
        return width, side // 2
    stride = 2 if block == "strided" and side > 1 else 1
    chain.add(f"{name}conv", nn.Conv2d(width, width, 3, stride, padding=1, bias=bias))
    if block in ("add", "projected"):
        short = start
        if block == "projected":
            short = chain.add(f"{name}short", nn.Conv2d(width, width, 1, bias=False), start)
        chain.add(f"{name}add", Add(), f"{name}conv", short)
    own = chain.add(f"{name}relu", nn.LeakyReLU(0.1) if block == "leaky" else nn.ReLU())
    if block == "concat":
        chain.add(f"{name}join", Concat(), own, start)
        return 2 * width, side
    return width, side // stride


def _reseeded(network, seed):
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            fan = max(parameter[0].numel(), 1)
            parameter.copy_(
                torch.randn(parameter.shape, generator=rng, dtype=torch.float64) / fan**0.5
            )
    inputs = torch.rand(3, *network.input_shape, generator=rng, dtype=torch.float64)
    outputs = network.nodes[-1].layer.out_features
    return inputs, torch.randn(3, outputs, generator=rng, dtype=torch.float64), rng


def _plain_gradients(network, inputs, targets):
    loss = (network(inputs) - targets).square().sum(1).mean() / 2
    names = [name for name, _ in network.named_parameters()]
    return dict(zip(names, torch.autograd.grad(loss, tuple(network.parameters())), strict=True))


def _size(tensors):
    return torch.stack([t.square().sum() for t in tensors]).sum().sqrt()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(graphs(), st.integers(0, 1000))
def test_the_recovered_gradient_is_the_plain_one(network, seed):
    inputs, targets, rng = _reseeded(network, seed)
    before = copy.deepcopy(network.state_dict())
    key, masked = perturb(network, Pbpfl(), rng)
    found = recover(key, client_step(masked, inputs, targets), Pbpfl()).gradients
    true = _plain_gradients(network, inputs, targets)
    assert found.keys() == true.keys()
    off = _size([found[name] - true[name] for name in true])
    assert off <= 1e-9 * _size(true.values())  # the bound; cancellation leaves about 1e-12
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


@settings(max_examples=20, deadline=None, derandomize=True)
@given(graphs(), st.integers(0, 1000))
def test_the_released_network_predicts_the_same_with_other_weights(network, seed):
    inputs, _, rng = _reseeded(network, seed)
    released = release(network, Pbpfl(), rng)
    assert torch.allclose(released(inputs), network(inputs), rtol=1e-12, atol=1e-12)
    first, given_out = next(network.parameters()), next(released.parameters())
    assert not torch.allclose(first, given_out, rtol=1e-3)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(graphs(), st.integers(0, 1000))
def test_the_loss_identity_holds_and_the_output_is_shifted_along_a(network, seed):
    inputs, targets, rng = _reseeded(network, seed)
    key, masked = perturb(network, Pbpfl(), rng)
    losses = client_forward(masked, inputs, targets)
    plain = (network(inputs) - targets).square().sum(1).mean() / 2
    found = losses.noisy - key.gamma * losses.phi + key.v * losses.psi
    assert torch.isclose(found, plain, rtol=1e-9)
    noisy, features = masked.network.with_features(inputs)
    shift = key.gamma * features.sum(1)[:, None] * masked.a
    assert torch.allclose(noisy, network(inputs) + shift, rtol=1e-9, atol=1e-9)


def test_hidden_outputs_are_multiplied_channel_by_channel():
    network = _convolutional(["max-pool", "concat"], pooled=False, bias=True)
    inputs, _, rng = _reseeded(network, 3)
    _, masked = perturb(network, Pbpfl(), rng)
    true, seen = network.trace(inputs), masked.network.trace(inputs)
    ratio = seen["start"] / true["start"]
    per_channel = ratio[0, :, 0, 0]
    assert torch.allclose(ratio, per_channel[:, None, None].expand_as(ratio[0]), rtol=1e-9)
    assert per_channel.min() >= 0.5
    assert per_channel.max() <= 2.0
    assert len(per_channel.unique()) == 4


def test_the_noisy_gradient_is_another_one():
    network = _flat(3, True, 4)
    inputs, targets, rng = _reseeded(network, 1)
    _, masked = perturb(network, Pbpfl(), rng)
    noisy = client_step(masked, inputs, targets).g
    true = _plain_gradients(network, inputs, targets)
    joined = [torch.cat([t.flatten() for t in each.values()]) for each in (noisy, true)]
    assert torch.cosine_similarity(*joined, dim=0) < 0.9


def test_the_upload_survives_flattening_and_leaves_out_what_is_zero():
    network = _flat(2, True, 3)
    inputs, targets, rng = _reseeded(network, 2)
    _, masked = perturb(network, Pbpfl(), rng)
    upload = client_step(masked, inputs, targets)
    again = ClientUpload.of(upload.tensors())
    assert again.sigma.keys() == upload.g.keys()
    assert "layers.out.weight" not in again.beta
    assert torch.equal(again.beta["layers.fc0.weight"], upload.beta["layers.fc0.weight"])


def test_too_much_noise_is_an_error_with_advice():
    network = _flat(3, True, 4)
    inputs, targets, rng = _reseeded(network, 1)
    loud = Pbpfl(a_high=1e5)
    key, masked = perturb(network, loud, rng)
    with pytest.raises(SettingsError, match="smaller a_high"):
        recover(key, client_step(masked, inputs, targets), loud)


def test_single_precision_is_refused_at_the_usual_tolerance():
    network = _convolutional(["add"], pooled=True, bias=True)
    inputs, targets, rng = _reseeded(network, 1)
    usual = Pbpfl(a_high=10.0)
    key, masked = perturb(network.float(), usual, rng)
    with pytest.raises(SettingsError, match="float64"):
        recover(key, client_step(masked, inputs.float(), targets.float()), usual)


PLANS = (["conv"], ["strided", "leaky"], ["add"], ["projected", "max-pool"], ["concat", "avg-pool"])
PLANS += (["max-pool", "add", "conv"], ["conv", "conv", "conv", "add"])


@pytest.mark.parametrize("a_high", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("plan", [*PLANS, None], ids=lambda plan: "-".join(plan or ["flat"]))
def test_an_accepted_recovery_in_float32_is_never_worse_than_was_said(plan, a_high):
    lax = Pbpfl(a_high=a_high, tolerance=10.0)
    for seed, pooled in itertools.product(range(2), (True, False)):
        if plan is None:
            network = _flat(2 + seed % 2, True, 3)
        else:
            network = _convolutional(plan, pooled=pooled, bias=bool(seed % 2))
        inputs, targets, rng = _reseeded(network, seed)
        true = _plain_gradients(network, inputs, targets)
        key, masked = perturb(network.float(), lax, rng)
        upload = client_step(masked, inputs.float(), targets.float())
        found = recover(key, upload, lax)
        off = _size([found.gradients[name] - true[name] for name in true]) / _size(true.values())
        assert 1e-9 < off <= found.error
        assert found.error <= 1000 * off  # an estimate, not a wild guess
        with pytest.raises(SettingsError, match="could be off"):
            recover(key, upload, replace(lax, tolerance=0.99 * off.item()))


def test_dead_units_are_no_reason_to_fail():
    network = _flat(1, True, 2)
    inputs, _, rng = _reseeded(network, 4)
    with torch.no_grad():
        network.nodes[0].layer.bias.fill_(-1e3)
    targets = network(inputs).detach()
    key, masked = perturb(network, Pbpfl(), rng)
    found = recover(key, client_step(masked, inputs, targets), Pbpfl())
    assert found.condition == 1.0
    assert all(not gradient.any() for gradient in found.gradients.values())


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (nn.Sigmoid(), "sigmoid of r"),
        (nn.Tanh(), "tanh of r"),
        (nn.BatchNorm2d(4), "batch's own deviation"),
        (nn.SiLU(), "not known"),
    ],
)
def test_layers_that_a_mask_does_not_pass_through_are_refused(layer, reason):
    chain = Chain()
    chain.add("conv", nn.Conv2d(2, 4, 3))
    chain.add("odd", layer)
    chain.add("flatten", nn.Flatten())
    chain.add("out", nn.Linear(4 * 36, 3))
    network = LayerGraph(chain.nodes, input_shape=(2, 8, 8))
    with pytest.raises(SettingsError, match=reason):
        perturb(network, Pbpfl(), torch.Generator())


def test_noise_of_one_network_does_not_open_another():
    network = _flat(2, True, 3)
    inputs, targets, rng = _reseeded(network, 2)
    key, _ = perturb(network, Pbpfl(), rng)
    _, other = perturb(network, Pbpfl(), rng)
    found = recover(key, client_step(other, inputs, targets), Pbpfl()).gradients
    true = _plain_gradients(network, inputs, targets)
    assert _size([found[name] - true[name] for name in true]) > 0.1 * _size(true.values())


def test_the_additive_noise_is_where_the_paper_puts_it():
    network = _flat(1, False, 3)
    _reseeded(network, 2)
    fixed = Pbpfl(r_low=1.0, r_high=1.0)
    key, masked = perturb(network, fixed, torch.Generator().manual_seed(0))
    assert isinstance(masked, Masked)
    added = masked.network.nodes[-1].layer.weight - network.nodes[-1].layer.weight
    expected = key.gamma * masked.a[:, None].expand(3, 7)
    assert torch.allclose(added, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(masked.network.nodes[0].layer.weight, network.nodes[0].layer.weight)
    assert key.v == pytest.approx(key.gamma**2 * masked.a.square().sum().item())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"r_low": 0.0}, "r_low"),
        ({"r_low": 3.0}, "in order"),
        ({"a_high": -1.0}, "a_high"),
        ({"noise_scope": "layer"}, "noise_scope"),
        ({"zero_sum": True}, "noise_scope='round'"),
        ({"zero_sum_digits": 61}, "at most 60; got 61"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong, reason):
    with pytest.raises(SettingsError, match=reason):
        Pbpfl(**wrong)


def graph(build, shape=(2, 4, 4)):
    chain = Chain()
    build(chain)
    return LayerGraph(chain.nodes, input_shape=shape)


def with_skips(chain):
    first = chain.add("a", nn.Conv2d(2, 3, 1))
    second = chain.add("b", nn.Conv2d(3, 3, 1))
    chain.add("sum", Add(), first, second)
    third = chain.add("c", nn.Conv2d(3, 2, 1))
    chain.add("both", Concat(), third, "sum")
    chain.add("pool", nn.MaxPool2d(2))
    chain.add("flat", nn.Flatten())
    chain.add("out", nn.Linear(20, 2))


def test_added_channels_share_a_slot_and_joined_ones_keep_theirs():
    slots = slots_of(graph(with_skips)).of_node
    assert slots["a"] == slots["b"] == slots["sum"]
    assert slots["both"] == slots["c"] + slots["sum"]
    assert len(set(slots["both"])) == 5
    assert slots["flat"][:4] == slots["c"][:1] * 4  # 2 × 2 places of the first channel
    assert set(slots[INPUT]) == set(slots["out"]) == {FIXED}


def test_free_slots_are_those_in_use():
    slots = slots_of(graph(with_skips))
    assert slots.free == tuple(sorted(set(slots.of_node["both"])))
    assert slots.count == 1 + 3 + 3 + 2


def test_channels_added_to_the_input_stay_unmasked():
    def build(chain):
        chain.add("a", nn.Conv2d(2, 2, 1))
        chain.add("sum", Add(), "a", INPUT)
        chain.add("flat", nn.Flatten())
        chain.add("out", nn.Linear(32, 2))

    assert set(slots_of(graph(build)).of_node["a"]) == {FIXED}


def test_scales_divide_what_comes_in_and_multiply_what_goes_out():
    def build(chain):
        chain.add("one", nn.Linear(2, 3))
        chain.add("relu", nn.ReLU())
        chain.add("two", nn.Linear(3, 2))

    network = graph(build, shape=(2,))
    r = torch.tensor([1.0, 2.0, 4.0, 8.0])
    scales = scales_of(network, slots_of(network), r)
    assert scales["layers.one.weight"].tolist() == [[2, 2], [4, 4], [8, 8]]
    assert scales["layers.one.bias"].tolist() == [2, 4, 8]
    assert scales["layers.two.weight"].tolist() == [[1 / 2, 1 / 4, 1 / 8]] * 2
    assert scales["layers.two.bias"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (nn.Conv2d(2, 2, 3, groups=2), "one group"),
        (nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), "zero padding"),
        (nn.Linear(4, 4), "flat features"),
        (nn.LayerNorm(4), "own deviation"),
    ],
)
def test_layers_that_cannot_be_masked_are_named(layer, reason):
    def build(chain):
        chain.add("odd", layer)
        chain.add("flat", nn.Flatten())
        chain.add("out", nn.LazyLinear(2))

    network = graph(build)
    network(torch.zeros(1, 2, 4, 4))
    with pytest.raises(SettingsError, match=reason):
        slots_of(network)


def test_the_last_layer_has_to_be_linear():
    with pytest.raises(SettingsError, match="last layer is a linear one; got ReLU"):
        slots_of(graph(lambda chain: chain.add("relu", nn.ReLU())))
