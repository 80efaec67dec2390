"""c(M) against explicit matrices: PyTorch applies each layer to every unit image."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import grad

from semsim.analysis.security import (
    CIFAR,
    CNN3,
    Convolution,
    FullyConnected,
    security_index,
)
from semsim.analysis.security_check import LeakedLayer, equations_matrix, matrix_rank
from semsim.analysis.security_model import leaked_layers, network_of, read_network


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


CONVOLUTIONS = st.builds(
    lambda groups, per_group, sides: Convolution(
        channels=groups * per_group,
        kernel=tuple(side[0] for side in sides),
        stride=tuple(side[1] for side in sides),
        padding=tuple(side[2] for side in sides),
        groups=groups,
    ),
    st.sampled_from([1, 1, 2]),
    st.integers(1, 5),
    st.tuples(*[st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 1))] * 2),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    convolution=CONVOLUTIONS, depth=st.integers(1, 3), sides=st.tuples(*[st.integers(4, 11)] * 2)
)
def test_closed_form_is_the_rank_of_the_explicit_matrix(convolution, depth, sides):
    inputs = (depth * convolution.groups, *sides)
    index = security_index([convolution, FullyConnected(outputs=2)], inputs)
    leaked = drawn(convolution, inputs, seed=sum(inputs))
    explicit = dense(convolution, inputs, leaked)
    assert np.allclose(equations_matrix(convolution, inputs, leaked).toarray(), explicit)
    rank = by_svd(explicit)
    assert matrix_rank(equations_matrix(convolution, inputs, leaked)) == rank
    if index.layers[0].exact:
        assert index.layers[0].rank == rank


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
