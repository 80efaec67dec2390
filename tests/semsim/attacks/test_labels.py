import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from semsim.attacks.labels import infer_label, infer_labels, label_of
from semsim.attacks.matching import parameter_gradients
from semsim.errors import AttackFailedError
from semsim.types import GradientObservation

CLASSES = 7


def net(bias=True):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(12, 9), nn.Sigmoid(), nn.Linear(9, CLASSES, bias=bias)
        )


def gradients(labels, bias=True):
    images = torch.rand(len(labels), 3, 2, 2, generator=torch.Generator().manual_seed(0))
    return parameter_gradients(net(bias), images, torch.tensor(labels), differentiable=False)


def seen(found, label=None):
    return GradientObservation(model=net(), gradients=found, shape=(3, 2, 2), label=label)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("label", range(CLASSES))
def test_the_label_of_one_image_is_exact(label, bias):
    assert infer_label(seen(gradients([label], bias))) == label


def grey_prediction():
    return net()(torch.full((1, 3, 2, 2), 0.5)).softmax(1)[0].detach()


@given(st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_labels_of_a_batch_are_counted_on_an_untrained_net(labels):
    found = infer_labels(gradients(labels), len(labels), prediction=grey_prediction())
    assert found == sorted(labels)


def test_counting_needs_a_bias():
    with pytest.raises(AttackFailedError, match="bias"):
        infer_labels(gradients([1, 2], bias=False), 2, prediction=grey_prediction())


def test_a_zero_or_broken_gradient_tells_no_label():
    found = gradients([1])
    for bad in (0.0, float("nan")):
        with pytest.raises(AttackFailedError, match="cannot be inferred"):
            infer_label(seen(tuple(g * bad for g in found)))
    with pytest.raises(AttackFailedError, match="cannot be inferred"):
        infer_labels(tuple(g * float("nan") for g in found), 2, prediction=grey_prediction())


def test_known_or_inferred_is_said_and_not_guessed():
    found = gradients([3])
    assert label_of(seen(found, label=5), "known") == 5
    assert label_of(seen(found, label=5), "inferred") == 3
    with pytest.raises(AttackFailedError, match='label="inferred"'):
        label_of(seen(found), "known")
