"""c(M) against explicit matrices: PyTorch applies each layer to every unit image."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import grad

from semsim.attacks.linear.rank import Convolution, matrix_rank
from semsim.systems.audit.network import leaked_layers, network_of, read_network
from semsim.systems.audit.numeric_rank import LeakedLayer, equations_matrix
from semsim.systems.audit.security_index import CIFAR, CNN3, FullyConnected, security_index


def drawn(convolution, inputs, seed):
    """A weight and a slope in general position."""
    rng = torch.Generator().manual_seed(seed)
    depth = inputs[0] // convolution.groups
    shape = (convolution.channels, depth, *convolution.kernel)
    weight = torch.randn(shape, generator=rng, dtype=torch.float64)
    output = applied(convolution, torch.zeros(1, *inputs, dtype=torch.float64), weight)
    slope = torch.randn(output.shape[1:], generator=rng, dtype=torch.float64)
    return LeakedLayer(weight=weight, slope=slope)


def applied(convolution, images, weight):
    one = convolution
    return F.conv2d(images, weight, None, one.stride, one.padding, one.dilation, one.groups)


def dense(convolution, inputs, leaked):
    """U, column by column."""
    one = convolution
    units = torch.eye(math.prod(inputs), dtype=torch.float64).view(-1, *inputs)
    forward = applied(one, units, leaked.weight).flatten(1)
    slope, shape = leaked.slope[None], leaked.weight.shape
    settings_ = (one.stride, one.padding, one.dilation, one.groups)
    backward = [grad.conv2d_weight(unit[None], shape, slope, *settings_) for unit in units]
    return torch.cat([forward, torch.stack(backward).flatten(1)], 1).T.numpy()


def by_svd(matrix):
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > 1e-9 * values[0]).sum())


def convolution_of(groups, per_group, sides):
    """sides: (kernel, stride, padding) down and right."""
    kernel, stride, padding = zip(*sides, strict=True)
    return Convolution(
        channels=groups * per_group, kernel=kernel, stride=stride, padding=padding, groups=groups
    )


def layer_of(kernel, channels, stride, padding, groups=1):
    return convolution_of(groups, channels // groups, [(kernel, stride, padding)] * 2)


SIDES = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2))
CONVOLUTIONS = st.builds(
    convolution_of, st.sampled_from([1, 1, 2]), st.integers(1, 5), st.tuples(SIDES, SIDES)
)
# Every kind of layer for which the closed form was once too low, or too high and called exact.
ONCE_WRONG = [
    (layer_of(5, 2, 1, 0), (3, 8, 8)),
    (layer_of(3, 2, 1, 0), (4, 5, 5)),
    (layer_of(4, 2, 1, 0), (6, 6, 6)),
    (layer_of(5, 4, 1, 0, groups=2), (8, 8, 8)),
    (layer_of(3, 3, 2, 1), (1, 13, 13)),
    (convolution_of(1, 2, [(7, 1, 1), (1, 1, 0)]), (1, 7, 10)),
    (convolution_of(1, 5, [(4, 1, 0), (2, 4, 0)]), (6, 14, 6)),
    (layer_of(2, 8, 4, 1), (3, 9, 9)),
    (layer_of(2, 7, 3, 1), (2, 7, 7)),
    (layer_of(3, 10, 4, 1), (1, 14, 14)),
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    convolution=CONVOLUTIONS, depth=st.integers(1, 3), sides=st.tuples(*[st.integers(4, 11)] * 2)
)
def test_closed_form_is_the_rank_of_the_explicit_matrix(convolution, depth, sides):
    """Or a bound above it, where it is not called exact."""
    inputs = (depth * convolution.groups, *sides)
    leaked = drawn(convolution, inputs, seed=sum(inputs))
    explicit = dense(convolution, inputs, leaked)
    assert np.allclose(equations_matrix(convolution, inputs, leaked).toarray(), explicit)
    rank = by_svd(explicit)
    assert matrix_rank(equations_matrix(convolution, inputs, leaked)) == rank
    check_bound(convolution, inputs, rank)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    convolution=st.builds(
        layer_of,
        kernel=st.integers(2, 5),
        channels=st.sampled_from([2, 2, 3]),
        stride=st.sampled_from([1, 1, 2]),
        padding=st.integers(0, 1),
    ),
    depth=st.integers(2, 4),
    side=st.integers(5, 8),
)
def test_kernels_as_large_as_the_map_are_bounded_too(convolution, depth, side):
    """The draws that are most often wrong where K's equations depend on each other."""
    check_closed_form(convolution, (depth, side, side))


@pytest.mark.parametrize(("convolution", "inputs"), ONCE_WRONG)
def test_what_was_once_wrong_is_bounded(convolution, inputs):
    check_closed_form(convolution, inputs)


def check_closed_form(convolution, inputs):
    matrix = equations_matrix(convolution, inputs, drawn(convolution, inputs, seed=0))
    check_bound(convolution, inputs, by_svd(matrix.toarray()))


def check_bound(convolution, inputs, rank):
    layer = security_index([convolution, FullyConnected(outputs=2)], inputs).layers[0]
    assert rank <= layer.rank
    if layer.exact:
        assert layer.rank == rank


@pytest.mark.parametrize("variant", CNN3)
def test_table_1_equals_the_numeric_rank_of_real_networks(variant):
    """All of U at 3×32×32: up to 7,542 × 5,400, with a gradient that went through the network."""
    with torch.random.fork_rng():
        torch.manual_seed(variant)
        model = network_of(CNN3[variant], CIFAR)
    network = read_network(model, CIFAR)
    rng = torch.Generator().manual_seed(0)
    leaked = leaked_layers(model, network.names, CIFAR, rng)
    for layer, one in zip(security_index(network.layers, CIFAR).layers, leaked, strict=True):
        matrix = equations_matrix(layer.convolution, layer.inputs, one)
        assert matrix.shape == (layer.equations, layer.unknowns)
        assert matrix_rank(matrix) == layer.rank


def test_the_rank_of_the_paper_s_smallest_layer_by_svd():
    layer = security_index(CNN3[2], CIFAR).layers[1]
    leaked = drawn(layer.convolution, layer.inputs, seed=0)
    matrix = equations_matrix(layer.convolution, layer.inputs, leaked)
    assert by_svd(matrix.toarray()) == layer.rank == 300


def test_equations_hold_for_what_the_layer_saw():
    """U x = V of Eq. 4, with V from PyTorch's own forward and backward pass."""
    layers = (Convolution(channels=3, kernel=(3, 2), stride=(2, 1)), FullyConnected(outputs=4))
    model = network_of(layers, (2, 7, 6)).double()
    x = torch.rand(1, 2, 7, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    z = model[0](x)
    z.retain_grad()
    F.cross_entropy(model[1:](z), torch.tensor([2])).backward()
    leaked = LeakedLayer(weight=model[0].weight.detach(), slope=z.grad[0])
    found = equations_matrix(layers[0], (2, 7, 6), leaked) @ x.flatten().numpy()
    expected = torch.cat([z.detach().flatten(), model[0].weight.grad.flatten()]).numpy()
    assert np.allclose(found, expected, atol=1e-14)  # float64 rounding of sums of a few dozen
