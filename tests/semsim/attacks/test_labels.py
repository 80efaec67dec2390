import pytest
import torch
from torch import nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.labels import infer_label, infer_labels, label_of
from semsim.base.errors import AttackFailedError
from semsim.types import GradientObservation

CLASSES = 7


def net(bias=True):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(12, 9), nn.Sigmoid(), nn.Linear(9, CLASSES, bias=bias)
        )


class HeadFirst(nn.Module):
    """Its last layer is the first that it has, so that another's parameters come last."""

    def __init__(self, bias, last):
        super().__init__()
        self.head, self.body = nn.Linear(9, CLASSES, bias=bias), nn.Linear(12, 9)
        self.after = nn.ParameterList([nn.Parameter(torch.ones(last))])

    def forward(self, images):
        return self.head(self.body(images.flatten(1)).sigmoid()) * self.after[0]


def head_first(bias, last=()):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return HeadFirst(bias, last)


def gradients(labels, bias=True, make=net):
    images = torch.rand(len(labels), 3, 2, 2, generator=torch.Generator().manual_seed(0))
    return parameter_gradients(make(bias), images, torch.tensor(labels))


def seen(found, label=None, model=None):
    model = model or net()
    return GradientObservation(model=model, gradients=found, shape=(3, 2, 2), label=label)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("label", range(CLASSES))
def test_the_label_of_one_image_is_exact(label, bias):
    for make in (net, head_first):
        assert infer_label(seen(gradients([label], bias, make), model=make(bias))) == label


def test_a_zero_or_broken_gradient_tells_no_label():
    found = gradients([1])
    for bad in (0.0, float("nan")):
        with pytest.raises(AttackFailedError, match="cannot be inferred"):
            infer_label(seen(tuple(g * bad for g in found)))


def test_a_network_without_a_last_layer_of_its_classes_tells_no_label():
    model = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (3, 4)), nn.Linear(4, 1), nn.Flatten())
    found = parameter_gradients(model, torch.rand(1, 3, 2, 2), torch.tensor([1]))
    with pytest.raises(AttackFailedError, match="no last layer"):
        infer_label(seen(found, model=model))


def test_known_or_inferred_is_said_and_not_guessed():
    found = gradients([3])
    assert label_of(seen(found, label=5), "known") == 5
    assert label_of(seen(found, label=5), "inferred") == 3
    with pytest.raises(AttackFailedError, match='label="inferred"'):
        label_of(seen(found), "known")


@pytest.mark.parametrize("labels", [[5], [0, 0, 0, 0], [0, 3, 3, 1], [6, 5, 4, 3, 2, 1, 0, 0]])
def test_the_labels_of_a_batch_are_counted(labels):
    """An untrained network says of all pictures about what it says of grey."""
    with torch.no_grad():
        chances = net()(torch.full((1, 3, 2, 2), 0.5)).softmax(1)[0]
    found = infer_labels(gradients(labels)[-1], len(labels), chances)
    assert sorted(found) == sorted(labels)


def test_a_batch_without_a_bias_or_a_gradient_tells_no_labels():
    weight = gradients([1, 2], bias=False)[-1]
    with pytest.raises(AttackFailedError, match="network has none there"):
        infer_labels(weight, 2)
    with pytest.raises(AttackFailedError, match="cannot be inferred"):
        infer_labels(torch.zeros(CLASSES), 2)
