"""Both halves draw in the same colours what leaked and what did not: figures and pages."""

import re

import pytest

from annotation.web.templates import STATIC
from semsim.reporting import canvas

CSS = (STATIC / "studio.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["leaked", "private"])
def test_a_figure_has_the_colour_of_the_pages(name):
    light, *_ = re.findall(rf"--st-{name}: (#[0-9a-f]{{6}});", CSS)
    assert getattr(canvas, name.upper()) == light
    assert CSS.count(light) == 1  # whatever else has it, has it by its name
