import numpy as np
import plotly.graph_objects as go
import pytest

from semsim.ui.compare_data import View, fresh
from semsim.ui.compare_plot import image_plot


def test_one_point_an_image_at_its_value_near_its_share_of_votes(made_context):
    found = fresh(made_context(n_images=3), View(study="1"))
    (trace,) = image_plot(found, found.spec("mse")).data
    rows = list(trace.customdata)
    assert rows == list(range(18))
    assert list(trace.x) == found.analysis.evidence.scores["mse"].tolist()
    assert np.abs(np.array(trace.y) - found.images["share"]).max() < 0.04
    assert trace.text[0].endswith("recognised it")
    assert isinstance(trace, go.Scatter)


def test_infinite_scores_are_not_drawn(made_context):
    found = fresh(made_context(n_images=3), View(study="1"))
    (trace,) = image_plot(found, found.spec("psnr")).data
    assert len(trace.x) == 15  # the first model gave three perfect reconstructions


def test_thousands_of_points_are_drawn_by_the_graphics_card(made_context, monkeypatch):
    monkeypatch.setattr("semsim.ui.compare_plot._MANY", 10)
    found = fresh(made_context(n_images=3), View(study="1"))
    assert isinstance(image_plot(found, found.spec("mse")).data[0], go.Scattergl)


@pytest.mark.parametrize("votes", [0, 5])
def test_without_votes_or_scores_the_figure_says_why_it_is_empty(made_context, votes):
    found = fresh(made_context(n_images=2, votes=votes), View(study="1"))
    figure = image_plot(found, found.spec("mse") if votes == 0 else None)
    assert figure.data == ()
    assert "No reconstruction has both" in figure.layout.annotations[0].text
