"""The mark at chance: a share of right answers that guessing reaches is no accuracy."""

import math

import pytest

from semsim.targets.chance import facts_of_test, is_chance


@pytest.mark.parametrize(("right", "tested", "classes"), [(10, 470, 47), (21, 470, 47), (0, 5, 2)])
def test_the_mark_is_the_upper_tail_of_a_binomial(right, tested, classes):
    tail = sum(
        math.comb(tested, n) * (1 / classes) ** n * (1 - 1 / classes) ** (tested - n)
        for n in range(right, tested + 1)
    )
    assert is_chance(right, tested, classes) == (tail > 0.05)


def test_from_which_share_on_a_target_is_better_than_guessing():
    marks = [is_chance(right, 470, 47) for right in range(471)]
    assert marks.index(False) == 16  # 3.4 %, where 2.1 % is guessing
    assert not any(marks[16:])
    assert is_chance(50, 100, 2)


def test_what_is_kept_of_a_test():
    found = facts_of_test(12 / 470, 470, 47)
    assert found == {"accuracy": 12 / 470, "n_test": 470, "n_classes": 47, "at_chance": True}
