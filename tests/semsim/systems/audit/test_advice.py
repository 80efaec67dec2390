"""Words about c(M), and small changes."""

import pytest

from semsim.systems.audit.advice import advice, described, signed, try_outs
from semsim.systems.audit.security_index import CIFAR, CNN3, FullyConnected, security_index, square

TEN = FullyConnected(outputs=10)


def words(layers, shape=CIFAR):
    return " ".join(advice(security_index(layers, shape)))


def test_the_network_that_leaks_everything_is_told_so():
    said = words(CNN3[3])
    assert "c(M) is 0" in said
    assert "gets the image back exactly" in said
    assert "hidden from the attacker" not in said
    assert "no proof of privacy" in said


def test_a_bound_of_0_promises_nothing():
    said = words([square(5, 40, 1), TEN], (1, 8, 8))
    assert "c(M) is 0 at most" in said
    assert "exactly" not in said
    assert "upper bound of the rank for convolution 1" in said


def test_nothing_is_promised_where_something_stands_in_the_way():
    said = " ".join(advice(security_index(CNN3[3], CIFAR), ["ReLU: cannot be undone."]))
    assert "c(M) is 0" in said
    assert "exactly" not in said
    assert said.endswith("ReLU: cannot be undone.")
    dense = advice(security_index([TEN], CIFAR), ["MaxPool2d: no way back."])
    assert dense[-1] == "MaxPool2d: no way back."
    assert "determines its input exactly" in dense[0]


def test_the_layer_that_hides_most_is_named_with_its_numbers():
    assert (
        "convolution 1, where 1,470 of 3,072 values (48%) stay hidden from the attacker"
        in words(CNN3[2])
    )
    said = words(CNN3[1])
    assert "convolution 2, where 4,533 of 5,400 values (84%) stay hidden from the attacker" in said
    assert "Convolution 1 hides nothing: it makes 5,400 values of 3,072" in said
    assert "Beware" in said


def test_special_cases_are_told():
    assert "no convolution" in words([TEN])
    assert "never looks at 72 of its 81" in words([square(1, 9, 3), TEN], (1, 9, 9))
    assert "upper bound" in words([square(3, 2, 1, 2), TEN])
    assert "Convolution 2 hides nothing." in words(CNN3[4])


def test_every_change_is_computed_anew_and_the_most_hiding_comes_first():
    found = try_outs(CNN3[1], CIFAR)
    assert [one.value for one in found] == sorted(one.value for one in found)
    for one in found:
        index = security_index(one.layers, CIFAR)
        assert (one.value, one.hidden) == (index.value, index.layers[0].hidden)
    by_name = {(one.place, one.change): one for one in found}
    assert set(by_name) == {
        *((1, change) for change in ("stride 2", "3 channels", "12 channels")),
        *((2, change) for change in ("stride 1", "1 channel", "6 channels")),
    }
    assert by_name[1, "stride 2"].layers[0] == square(3, 6, 2)


def test_changes_that_leave_no_map_are_left_out():
    small = [square(3, 2, 1), square(3, 2, 1), TEN]
    changes = {(one.place, one.change) for one in try_outs(small, (1, 5, 5))}
    assert (1, "stride 2") not in changes
    assert (2, "stride 2") in changes


@pytest.mark.parametrize(
    ("value", "text"),
    [(-2266.5, "−2,266.5"), (-1995.0, "−1,995"), (0.0, "0"), (-0.01, "0"), (-0.75, "−0.8")],
)
def test_numbers_have_a_proper_minus(value, text):
    assert signed(value) == text


def test_a_layer_is_described_by_what_is_unusual():
    layer = security_index([square(5, 1, 2, 1), TEN], CIFAR).layers[0]
    assert described(layer) == "5×5, 1 channel, stride 2, padding 1"
