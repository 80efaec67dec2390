"""What attacks return, and when it is nothing."""

import math

import pytest

from semsim.types import worse_than_grey


@pytest.mark.parametrize(
    ("residual", "grey", "worse"),
    [
        (0.1, 0.5, False),
        (0.5, 0.5, True),
        (0.9, 0.5, True),
        (math.nan, 0.5, True),
        (0.1, math.nan, True),
        (math.inf, math.inf, True),
    ],
)
def test_only_a_picture_that_explains_more_than_grey_is_better(residual, grey, worse):
    assert worse_than_grey(residual, grey) is worse
