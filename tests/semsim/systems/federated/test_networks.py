import pytest
import torch
import torch.nn.functional as F
from made_federated import made_data

from semsim.attacks.fast_gradients import gradient_of_each
from semsim.base.errors import SettingsError, UnknownNameError
from semsim.layer_graph import LayerGraph, count_parameters
from semsim.systems.federated import NETWORKS
from semsim.systems.federated.data import of_table
from semsim.systems.federated.networks import QuadraticClassifier, drawn_network
from semsim.systems.federated.pbpfl import slots_of


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_runs_and_can_be_masked(name):
    data = made_data(count=3)
    network = drawn_network(name, data, torch.float32, seed=0)
    found = network(data.test.inputs[:1])
    assert found.shape == (1, 3)
    assert torch.isfinite(found).all()
    assert slots_of(network).free


def test_resnet56_has_the_parameters_of_the_authors_program():
    nodes = NETWORKS["resnet56-add"].nodes((3, 32, 32), 7)
    assert count_parameters(LayerGraph(nodes, input_shape=(3, 32, 32))) == 851_312


def test_layers_are_as_many_as_the_names_say():
    for name, layers in (("mlp-7", 7), ("lenet", 4), ("resnet20", 20), ("resnet56", 56)):
        nodes = NETWORKS[name].nodes((3, 8, 8), 3)
        assert sum(bool(list(node.layer.parameters())) for node in nodes) >= layers
        assert sum(not node.name.endswith("project") for node in nodes if node.layer._parameters)


def test_a_stage_with_sums_shares_one_slot_a_channel_and_one_with_joins_does_not():
    shape = (3, 8, 8)
    added = slots_of(LayerGraph(NETWORKS["resnet20-add"].nodes(shape, 3), input_shape=shape))
    joined = slots_of(LayerGraph(NETWORKS["resnet20"].nodes(shape, 3), input_shape=shape))
    assert added.of_node["s1b1add"] == added.of_node["s1b3add"] == added.of_node["conv0"]
    assert joined.of_node["s1b1relu2"] != joined.of_node["s1b3relu2"]


def test_weights_depend_on_the_seed_alone_and_keep_outputs_small():
    data = made_data()
    one, same, other = (drawn_network("lenet", data, torch.float64, seed) for seed in (0, 0, 1))
    first = [next(network.parameters()) for network in (one, same, other)]
    assert torch.equal(first[0], first[1])
    assert not torch.allclose(first[0], first[2])
    assert one(data.test.inputs).abs().max() < 3


def test_images_are_needed_where_there_are_convolutions():
    with pytest.raises(SettingsError, match="take 'mlp-3'"):
        drawn_network("lenet", of_table("diabetes"), torch.float64, 0)
    with pytest.raises(SettingsError, match="multiples of 4; got 6"):
        drawn_network("lenet", made_data(count=3, side=6), torch.float64, 0)
    with pytest.raises(UnknownNameError, match="Known: lenet"):
        drawn_network("vgg", made_data(count=3), torch.float64, 0)


def both(scale):
    data = made_data(count=6)
    network = drawn_network("lenet", data, torch.float64, 0)
    with torch.no_grad():
        network.nodes[-1].layer.weight.mul_(scale)
    return network, QuadraticClassifier(network), data.train


def test_the_cross_entropy_is_the_quadratic_loss_up_to_a_constant():
    for scale in (0.0, 1.0, 30.0):
        network, classifier, train = both(scale)
        found = F.cross_entropy(classifier(train.inputs), train.labels, reduction="none")
        loss = (network(train.inputs) - train.targets).square().sum(1) / 2
        constant = 1 + torch.tensor(3.0, dtype=torch.float64).log()
        assert torch.allclose(found - loss, constant.expand(6), rtol=1e-9)


def test_attacks_get_the_gradients_of_the_quadratic_loss():
    network, classifier, train = both(5.0)
    found = gradient_of_each(classifier, train.inputs, train.labels)
    for place in range(2):
        one = train.pick([place])
        loss = (network(one.inputs) - one.targets).square().sum() / 2
        true = torch.autograd.grad(loss, tuple(network.parameters()))
        for each, expected in zip(found, true, strict=True):
            assert torch.allclose(each[place], expected, rtol=1e-8, atol=1e-10)
