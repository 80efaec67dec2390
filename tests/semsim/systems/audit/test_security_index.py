"""c(M) in closed form: the paper's table, shapes, and what cannot be."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.attacks.linear.rank import Convolution, rank_of
from semsim.base.errors import SettingsError
from semsim.systems.audit.security_index import (
    CIFAR,
    CNN3,
    FullyConnected,
    Pooling,
    security_index,
    shapes_of,
    square,
)

TEN = FullyConnected(outputs=10)
TABLE_1 = {1: (-2266.5, 588), 2: (-1995.0, 147), 3: (0.0, 7056), 4: (-2146.0, 4704)}


@pytest.mark.parametrize("variant", CNN3)
def test_table_1_of_the_paper_is_met_exactly(variant):
    index = security_index(CNN3[variant], CIFAR)
    assert (index.value, index.features) == TABLE_1[variant]


def test_every_layer_says_where_its_part_comes_from():
    first, second = security_index(CNN3[2], CIFAR).layers
    assert (first.inputs, first.outputs) == ((3, 32, 32), (6, 15, 15))
    assert (first.equations, first.unknowns, first.rank, first.hidden) == (1638, 3072, 1602, 1470)
    assert (first.weight, first.contribution) == (1.0, -1470.0)
    assert (second.weight, second.contribution) == (0.5, -525.0)
    assert first.exact
    assert first.unseen == 0


def test_exactly_nothing_hidden_is_zero_and_not_minus_zero():
    assert str(security_index(CNN3[3], CIFAR).value) == "0.0"
    assert str(security_index([TEN], CIFAR).value) == "0.0"


@settings(max_examples=40, deadline=None)
@given(
    kernel=st.integers(1, 5),
    channels=st.integers(1, 12),
    stride=st.integers(1, 3),
    inputs=st.integers(1, 6),
    size=st.integers(12, 40),
)
def test_plain_layers_follow_the_formula_of_the_paper_trail(kernel, channels, stride, inputs, size):
    """rank U = min(n, |Z| + |W| − C_out²) where every pixel is seen and channels are few."""
    stride = min(stride, kernel)
    convolution = square(kernel, channels, stride)
    positions = (size - kernel) // stride + 1
    if (positions - 1) * stride + kernel < size or channels > inputs * kernel**2:
        return  # a rest at the border, or kernels that depend on each other
    plain = channels * positions**2 + channels * inputs * kernel**2 - channels**2
    n = inputs * size**2
    found = rank_of(convolution, (inputs, size, size))
    if channels * (-(-kernel // stride)) ** 2 < (size // stride) ** 2:  # no tap has too many
        assert found == min(n, plain)
    assert found <= n


@settings(max_examples=40, deadline=None)
@given(
    channels=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    groups=st.sampled_from([1, 3]),
)
def test_c_is_never_above_zero_and_adds_up(channels, kernel, stride, padding, groups):
    layers = [
        Convolution(
            channels=3 * c,
            kernel=(kernel, kernel),
            stride=(stride, 1),
            padding=(padding, padding),
            groups=groups,
        )
        for c in channels
    ]
    try:
        index = security_index([*layers, TEN], (3, 24, 20))
    except SettingsError:
        return  # too small a map for so many strides
    depth = len(layers)
    total = sum(
        Fraction(depth - place, depth) * (layer.rank - layer.unknowns)
        for place, layer in enumerate(index.layers)
    )
    assert index.value <= 0
    assert index.value == pytest.approx(float(total))
    for layer in index.layers:
        assert 0 <= layer.unseen <= layer.hidden < layer.unknowns


def test_what_no_patch_reaches_is_counted():
    gaps = security_index([square(1, 9, 3), TEN], (1, 9, 9)).layers[0]
    assert (gaps.rank, gaps.unseen, gaps.hidden) == (9, 72, 72)
    rest = security_index([square(2, 9, 2), TEN], (1, 5, 5)).layers[0]
    assert (rest.rank, rest.unseen) == (16, 9)


def test_groups_are_layers_of_their_own():
    together = Convolution(channels=6, kernel=(3, 3), stride=(2, 2), groups=3)
    alone = Convolution(channels=2, kernel=(3, 3), stride=(2, 2))
    assert rank_of(together, (3, 15, 15)) == 3 * rank_of(alone, (1, 15, 15))


def test_pooling_shrinks_the_map():
    layers = [square(3, 4, 1, 1), Pooling(), square(3, 4, 1), Pooling(size=(2, 3)), TEN]
    shapes = [(3, 12, 12), (4, 12, 12), (4, 6, 6), (4, 4, 4), (4, 2, 3), (10,)]
    assert shapes_of(layers, (3, 12, 12)) == shapes
    assert security_index(layers, (3, 12, 12)).features == 24


def test_dilation_wide_padding_and_tiny_maps_are_said_to_be_rough():
    wide = Convolution(channels=2, kernel=(3, 3), padding=(2, 2))
    dilated = Convolution(channels=2, kernel=(3, 3), dilation=(2, 2))
    tiny = (square(3, 9, 1), (3, 5, 5))
    as_large_as_the_map = (square(5, 2, 1), (3, 9, 9))
    for layer, inputs in ((wide, CIFAR), (dilated, CIFAR), tiny, as_large_as_the_map):
        assert not security_index([layer, TEN], inputs).layers[0].exact
    for layer, inputs in ((square(3, 9, 1, 1), CIFAR), (square(5, 2, 1), (3, 10, 10))):
        assert security_index([layer, TEN], inputs).layers[0].exact


@pytest.mark.parametrize(
    ("layers", "shape", "says"),
    [
        ([square(3, 2, 1)], CIFAR, "at least one fully connected layer"),
        ([TEN, square(3, 2, 1), TEN], CIFAR, "no convolution behind it"),
        ([], CIFAR, "got nothing"),
        ([square(5, 2, 1), TEN], (3, 4, 4), "larger than the 4×4 map"),
        ([square(3, 2, 1), TEN], (3, 32), "3x32x32"),
        ([Convolution(channels=4, kernel=(1, 1), groups=2), TEN], CIFAR, "do not divide its 3"),
    ],
)
def test_what_has_no_index_says_why(layers, shape, says):
    with pytest.raises(SettingsError, match=says):
        security_index(layers, shape)


@pytest.mark.parametrize(
    "wrong",
    [{"channels": 0}, {"stride": (0, 1)}, {"padding": (-1, 0)}, {"channels": 3, "groups": 2}],
)
def test_a_layer_of_nothing_is_refused(wrong):
    with pytest.raises(SettingsError):
        Convolution(**{"channels": 2, "kernel": (3, 3), **wrong})
