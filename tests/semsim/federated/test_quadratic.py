import torch
import torch.nn.functional as F
from made_federated import made_data

from semsim.attacks.per_sample import gradient_of_each
from semsim.federated.networks import drawn_network
from semsim.federated.quadratic import QuadraticClassifier


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
    found = gradient_of_each(classifier, train.inputs, train.labels, differentiable=False)
    for place in range(2):
        one = train.pick([place])
        loss = (network(one.inputs) - one.targets).square().sum() / 2
        true = torch.autograd.grad(loss, tuple(network.parameters()))
        for each, expected in zip(found, true, strict=True):
            assert torch.allclose(each[place], expected, rtol=1e-8, atol=1e-10)
