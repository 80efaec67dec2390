"""Numeric ranks: agreement, and words for what is not in general position."""

import math

import scipy.sparse
import torch

from semsim.attacks.linear.rank import has_full_rank, matrix_rank
from semsim.systems.audit.numeric_rank import LeakedLayer, checked_layers, measured_index
from semsim.systems.audit.security_index import FullyConnected, security_index, shapes_of, square

LAYERS = (square(3, 4, 2), FullyConnected(outputs=3))
SHAPE = (2, 11, 11)


def leaked(seed=0):
    rng = torch.Generator().manual_seed(seed)
    weight = torch.randn(4, 2, 3, 3, generator=rng, dtype=torch.float64)
    return LeakedLayer(
        weight=weight, slope=torch.randn(4, 5, 5, generator=rng, dtype=torch.float64)
    )


def checked(one):
    index = security_index(LAYERS, SHAPE)
    (found,) = checked_layers(index, [one])
    return found, measured_index(index, [found]).value


def test_weights_in_general_position_agree_with_the_closed_form():
    found, value = checked(leaked())
    assert found.agrees
    assert found.why == ()
    assert value == security_index(LAYERS, SHAPE).value == 156 - 242  # 4·25 + 4·18 − 4²; 2·11²


def test_a_silent_channel_is_named_and_explains_the_rank():
    one = leaked()
    one.slope[1] = 0
    found, value = checked(one)
    assert not found.agrees
    assert found.why[0] == "1 of 4 channels has a gradient of 0 everywhere"
    assert found.why[-1] == "with these the closed form gives the same rank"
    assert value < 156 - 242


def test_equal_kernels_are_named():
    one = leaked()
    one.weight[0] = one.weight[1]
    found, _ = checked(one)
    assert "the kernels span 3 of 4 dimensions" in found.why


def test_dead_units_that_cost_no_rank_are_no_difference():
    one = leaked()
    one.slope[:, 2, 2] = 0
    assert checked(one)[0].agrees


def test_dead_units_are_named_where_they_cost_rank():
    one = leaked()
    one.slope[:, :, 1:] = 0
    one.slope[:, 3:] = 0  # three positions are left for four channels
    found, _ = checked(one)
    assert found.why[:2] == (
        "88 of 100 units are dead: their gradient is 0",
        "the channels' gradients span 3 of 4 dimensions",
    )


def test_rows_of_very_different_size_count_alike():
    diagonal = scipy.sparse.diags_array([1e9, 1.0, 1e-9, 0.0]).tocsr()
    assert matrix_rank(diagonal) == 3
    assert matrix_rank(scipy.sparse.csr_array((5, 4))) == 0


def test_too_large_a_layer_is_told_and_keeps_its_closed_form():
    index = security_index([square(3, 8, 1, 1), FullyConnected(outputs=3)], (3, 64, 64))
    shape = index.layers[0].outputs
    one = LeakedLayer(weight=torch.ones(8, 3, 3, 3), slope=torch.ones(shape))
    (found,) = checked_layers(index, [one])
    assert found.rank is None
    assert not found.agrees
    assert found.why[0].startswith("too large to check: 32,984 equations for 12,288 values")
    assert measured_index(index, [found]) == index


def full_rank(layer, inputs, weight):
    _, outputs, _ = shapes_of((layer, FullyConnected(outputs=2)), inputs)
    matrix = torch.stack(
        [
            torch.nn.functional.conv2d(unit[None], weight, stride=layer.stride).flatten()
            for unit in torch.eye(math.prod(inputs), dtype=torch.float64).view(-1, *inputs)
        ],
        1,
    )
    found = has_full_rank(layer, inputs, outputs, weight)
    # The paper's words, by the singular values of the whole matrix: rank W = n < m.
    m, n = matrix.shape
    assert found == (int(torch.linalg.matrix_rank(matrix)) == n < m)
    return found


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_a_weight_has_full_rank_where_it_has_more_rows_than_columns_and_folds_nothing():
    inputs = (2, 9, 9)
    assert full_rank(square(3, 5, 1), inputs, drawn(5, 2, 3, 3))
    assert not full_rank(square(3, 5, 3), inputs, drawn(5, 2, 3, 3))  # fewer rows
    blind = drawn(5, 2, 3, 3)
    blind[:, 1] = 0
    assert not full_rank(square(3, 5, 1), inputs, blind)  # more rows, and a channel unseen


def test_a_stride_may_leave_a_border_unseen_so_that_a_wide_layer_has_no_full_rank():
    """Ours and the paper's condition part: more outputs than inputs, and a last row unseen."""
    layer = square(3, 20, 2)
    (found,) = checked_layers(
        security_index((layer, FullyConnected(outputs=3)), (2, 10, 10)),
        [LeakedLayer(weight=drawn(20, 2, 3, 3), slope=drawn(20, 4, 4))],
    )
    assert found.layer.pulls_back
    assert found.full_rank is False
    assert not full_rank(layer, (2, 10, 10), drawn(20, 2, 3, 3))
