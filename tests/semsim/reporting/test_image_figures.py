from dataclasses import replace

import numpy as np
import pytest
from made_analysis import SPECS
from made_votes import voted

from semsim.reporting import canvas
from semsim.reporting.figures import images, matrix

PSNR, MSE, *_ = SPECS


def with_votes(analysis, recognised):
    return replace(analysis, evidence=voted(analysis.evidence, recognised))


def test_every_image_with_votes_and_a_finite_value_is_a_dot(analysis):
    drawn = images(analysis, PSNR)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    (dots,) = drawing.axes[0].collections
    assert dots.get_rasterized()
    found = dots.get_offsets()
    kept = np.ones(24, dtype=bool)
    kept[[0, 5]] = False  # infinite; without votes
    assert sorted(found[:, 1]) == sorted(analysis.evidence.scores["psnr"][kept])
    assert drawing.get_supxlabel() == ("Images not drawn: 1 without votes, 1 with the value ∞.")
    assert "23 with votes" in drawn.caption


def test_a_dot_stays_near_its_share_of_votes(analysis):
    recognised = np.full((24, 5), np.nan)
    recognised[:, :4] = np.repeat(np.arange(24) % 5, 4).reshape(24, 4) > np.arange(4)
    drawn = images(with_votes(analysis, recognised), MSE)
    assert drawn.frame["share"].tolist() == [(i % 5) / 4 for i in range(24)]
    axes = drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]
    finite = drawn.frame[np.isfinite(drawn.frame["value"])]
    at = axes.collections[0].get_offsets()[:, 0]
    assert np.abs(at - finite["share"]).max() < 0.125  # half the step between shares
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [
        *("0.00", "0.25", "0.50", "0.75", "1.00")
    ]
    counts = [text.get_text() for text in axes.texts]
    assert sorted(counts) == sorted(["n = 4", "n = 5", "n = 5", "n = 5", "n = 4"])


def test_the_box_is_median_and_middle_half(analysis):
    recognised = np.ones((24, 5))
    drawn = images(with_votes(analysis, recognised), MSE)
    axes = drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]
    values = drawn.frame["value"][np.isfinite(drawn.frame["value"])]
    whisker, box, middle = (line.get_ydata() for line in axes.lines)
    assert list(whisker) == pytest.approx(list(np.percentile(values, [5, 95])))
    assert list(box) == pytest.approx(list(np.percentile(values, [25, 75])))
    assert list(middle) == pytest.approx([values.median()] * 2)


def test_many_different_shares_are_gathered_in_tenths(analysis):
    recognised = (np.arange(24)[:, None] > np.arange(24)).astype(float)
    drawn = images(with_votes(analysis, recognised), MSE)
    axes = drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]
    assert len(axes.get_xticks()) == 11


def test_without_any_votes_the_figure_says_so(analysis):
    drawn = images(with_votes(analysis, np.full((24, 5), np.nan)), MSE)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    assert "24 without votes" in drawing.axes[0].texts[0].get_text()


def test_the_matrix_writes_every_number_and_a_dash_where_there_is_none(analysis):
    table = analysis.matrix.copy()
    table.iloc[0, 1] = np.nan
    drawn = matrix(replace(analysis, matrix=table))
    assert list(drawn.frame.columns) == ["title", *table.columns]
    axes = drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]
    written = [text.get_text() for text in axes.texts]
    assert written.count("1.00") == 5
    assert written.count("–") == 1
    assert written.count("−0.25") == 19
