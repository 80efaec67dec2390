"""That what newcomers are shown is of a network that has learned something."""

from dataclasses import replace

import pytest

from semsim.systems.federated.comparison import check
from semsim.systems.federated.leak import LeakStudy
from semsim.systems.federated.settings import FIRST_LOOK


@pytest.mark.parametrize(
    ("attack_round", "least", "most"), [(FIRST_LOOK.attack_round, 0.85, 1.0), (1, 0.0, 0.3)]
)
def test_the_attacked_network_of_the_example_names_most_digits(attack_round, least, most):
    """Before the first round it names hardly more than one of ten."""
    order = replace(FIRST_LOOK, attack_round=attack_round)
    loaded = check(order)
    tested = LeakStudy(loaded.data, loaded.images, order).tested()
    assert tested["n_test"] > 300
    assert least < tested["accuracy"] < most
