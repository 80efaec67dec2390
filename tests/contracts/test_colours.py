"""Both halves draw in the same colours what leaked and what did not: figures and pages."""

import re

import pytest

from annotation.web.templates import STATIC
from semsim.reporting import canvas

TOKENS = (STATIC / "tokens.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["leaked", "private"])
def test_a_figure_has_the_colour_of_the_pages(name):
    (light,) = re.findall(rf"--st-{name}: light-dark\((#[0-9a-f]{{6}}),", TOKENS)
    assert getattr(canvas, name.upper()) == light
