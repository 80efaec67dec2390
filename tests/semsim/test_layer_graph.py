import pytest
import torch
from torch import nn

from semsim.base.errors import SettingsError
from semsim.layer_graph import INPUT, Add, Chain, Concat, LayerGraph, Node, count_parameters


def small():
    chain = Chain()
    one = chain.add("one", nn.Linear(2, 3))
    two = chain.add("two", nn.Linear(2, 3), INPUT)
    chain.add("sum", Add(), one, two)
    chain.add("both", Concat(), "sum", one)
    chain.add("out", nn.Linear(6, 1))
    return LayerGraph(chain.nodes, input_shape=(2,), mean=(1.0, 2.0), std=(2.0, 4.0))


def test_a_graph_computes_what_its_nodes_say():
    network, inputs = small(), torch.tensor([[3.0, -2.0]])
    layers = network.layers
    normal = torch.tensor([[1.0, -1.0]])
    first = layers["one"](normal)
    both = torch.cat([first + layers["two"](normal), first], dim=1)
    assert torch.equal(network(inputs), layers["out"](both))
    output, features = network.with_features(inputs)
    assert torch.equal(features, both)
    assert torch.equal(output, network(inputs))


def test_shapes_and_parameters_are_known_without_data():
    network = small()
    assert network.shapes() == {
        INPUT: (2,),
        "one": (3,),
        "two": (3,),
        "sum": (3,),
        "both": (6,),
        "out": (1,),
    }
    assert count_parameters(network) == 9 + 9 + 7


def test_inputs_take_the_precision_of_the_weights():
    assert small().double()(torch.zeros(1, 2)).dtype == torch.float64


def test_nodes_in_the_wrong_order_are_refused():
    late = Node("first", nn.ReLU(), ("second",))
    with pytest.raises(SettingsError, match="'first'"):
        LayerGraph([late, Node("second", nn.ReLU(), (INPUT,))], input_shape=(2,))
    with pytest.raises(SettingsError, match="at least one"):
        LayerGraph([], input_shape=(2,))
