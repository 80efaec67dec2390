import pytest
import torch
from torch import nn

from semsim.base.errors import SettingsError
from semsim.layer_graph import INPUT, Add, Chain, Concat, LayerGraph
from semsim.systems.federated.pbpfl import FIXED, scales_of, slots_of


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
