import math

import numpy as np
import pytest
from made_analysis import TESTED, made_analysis, with_targets

from semsim.reporting.notation import (
    interval,
    number,
    p_value,
    rank_text,
    reason,
    target_text,
    undefined_text,
)
from semsim.reporting.notation import with_interval as bounded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.67033, "0.670"),
        (-0.4286, "−0.429"),
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (9.8991, "9.899"),
        (14.1234, "14.12"),
        (7173.14, "7173"),
        (123456.7, "123457"),
        (0.00042, "0.00042"),
        (0.9996, "0.9996"),
        (-0.99996, "−0.99996"),
        (0.99949, "0.999"),
        (1.0, "1.000"),
        (1 - 1e-9, "1.000000"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_the_digits_they_deserve(value, text):
    assert number(value) == text


def test_intervals():
    assert interval(0.2, 0.911) == "[0.20, 0.91]"
    assert interval(np.nan, 0.9) == "–"
    assert bounded(0.67033, 0.2, 0.91) == "0.670 [0.20, 0.91]"
    assert bounded(0.67033, np.nan, np.nan) == "0.670"
    assert bounded(np.nan, 0.2, 0.9) == "–"


def test_what_is_not_one_is_not_written_as_one():
    assert number(0.9956, 2) == "0.996"  # Spearman's ρ of 14 models after one swap
    assert interval(0.9, 0.9986) == "[0.90, 0.999]"


@pytest.mark.parametrize(
    ("rank", "text"), [(10.5, "10.5"), (10, "10"), (2.975, "3"), (math.nan, "–")]
)
def test_a_rank_keeps_its_half(rank, text):
    assert rank_text(rank) == text


def test_p_values_below_a_thousandth_are_not_zero():
    assert p_value(0.0004) == "< 0.001"
    assert p_value(0.0104) == "0.010"
    assert p_value(1.0) == "1.000"


def test_a_reason_survives_a_table_that_turned_none_into_nan():
    assert reason(None) is None
    assert reason(np.nan) is None
    assert reason("too few") == "too few"
    assert undefined_text("too few") == "undefined: too few"
    assert undefined_text(np.nan) == ""


def test_how_good_an_attacked_model_was_stands_with_chance_and_a_mark_at_it():
    known = with_targets(made_analysis()).models
    assert [target_text(row) for _, row in known.iterrows()] == [*TESTED, "not kept", "not kept"]
    assert target_text(made_analysis().models.iloc[0]) == "not kept"
