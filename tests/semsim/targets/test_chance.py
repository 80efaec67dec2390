"""The mark at chance: a share of right answers that guessing reaches is no accuracy."""

import math

import pytest

from semsim.targets.chance import chance_of, facts_of_test, is_chance


@pytest.mark.parametrize(("right", "tested", "classes"), [(10, 470, 47), (21, 470, 47), (0, 5, 2)])
def test_the_mark_is_the_upper_tail_of_a_binomial(right, tested, classes):
    tail = sum(
        math.comb(tested, n) * (1 / classes) ** n * (1 - 1 / classes) ** (tested - n)
        for n in range(right, tested + 1)
    )
    assert is_chance(right, tested, 1 / classes) == (tail > 0.05)


def test_from_which_share_on_a_target_is_better_than_guessing():
    marks = [is_chance(right, 470, 1 / 47) for right in range(471)]
    assert marks.index(False) == 16  # 3.4%, where 2.1% is guessing
    assert not any(marks[16:])
    assert is_chance(50, 100, 1 / 2)


def test_what_is_kept_of_a_test():
    labels = [*range(47)] * 10
    found = facts_of_test(12 / 470, labels, 47)
    counts = {"accuracy": 12 / 470, "n_test": 470, "n_classes": 47}
    assert found == {**counts, "chance": 1 / 47, "at_chance": True}


@pytest.mark.parametrize(("common", "others"), [(23, 2), (5, 1), (60, 40), (10, 0)])
def test_always_saying_the_commonest_class_is_no_accuracy(common, others):
    labels = [1] * common + [0] * others
    tested = common + others
    found = facts_of_test(common / tested, labels, 2)
    assert found["chance"] == common / tested
    assert found["at_chance"]


def test_classes_that_the_test_split_lacks_are_guessed_among_too():
    assert chance_of([0, 1, 2, 3], 10) == 1 / 4
    assert chance_of([*range(10)], 10) == 1 / 10
    assert facts_of_test(0.9, [0] * 60 + [1] * 40, 2)["at_chance"] is False
