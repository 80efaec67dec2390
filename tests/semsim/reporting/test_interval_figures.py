from dataclasses import replace

import numpy as np
import pytest
from made_analysis import WHY

from semsim.base.stats.ceiling import Ceiling
from semsim.base.stats.intervals import too_few
from semsim.reporting import canvas
from semsim.reporting.figures import auc, forest, rules


def words(drawing):
    drawing.draw_without_rendering()
    return [" ".join(text.get_text().split()) for axes in drawing.axes for text in axes.texts]


def lines(axes, colour, length):
    return [
        np.asarray(line.get_xydata())
        for line in axes.lines
        if line.get_color() == colour and len(line.get_xydata()) == length
    ]


def test_the_forest_draws_estimates_and_intervals_best_first(analysis):
    drawn = forest(analysis)
    assert drawn.frame["title"].tolist()[-2:] == ["<Flat> & co", "Human ceiling"]
    assert drawn.frame["n"].tolist() == [4] * 5  # models, of the ceiling too
    assert drawn.frame["rho"].tolist()[:3] == [0.6703, 0.6703, -0.6176]
    left, right = drawn.paint(drawn.frame, canvas.DOUBLE).axes
    points = np.concatenate(lines(left, canvas.METRIC, 1))
    assert points.tolist() == [[0.6703, 0], [0.6703, 1], [-0.6176, 2]]
    assert [bar[:, 0].tolist() for bar in lines(left, canvas.METRIC, 2)] == [
        [0.18, 0.89],
        [0.18, 0.89],
        [-0.9, -0.1],
    ]
    assert "after Bonett and Wright" in drawn.caption
    assert lines(right, canvas.METRIC, 2)[0][:, 0].tolist() == [0.12, 0.75]
    assert np.concatenate(lines(right, canvas.METRIC, 1))[0].tolist() == [0.4725, 0]


def test_the_forest_says_n_the_ceiling_and_why_there_is_no_number(analysis):
    drawn = forest(analysis)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    said = words(drawing)
    assert said.count(f"undefined: {WHY}") == 2
    assert "human ceiling 0.90" in said
    assert "0.67 [0.18, 0.89]" in said
    assert drawing.axes[0].get_xlabel() == "Spearman's ρ over n = 4 models"
    assert "10 splits" in drawn.caption


def test_the_forest_says_why_there_is_no_interval(analysis):
    agreement = analysis.agreement.assign(interval_undefined=too_few(3, "model"))
    caption = forest(replace(analysis, agreement=agreement)).caption
    assert caption.count(" No interval: 3 models, fewer than 6.") == 1


def test_n_stands_at_each_metric_where_it_differs(analysis):
    agreement = analysis.agreement.assign(n=[4, 4, 4, 3])
    drawn = forest(replace(analysis, agreement=agreement))
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    labels = [tick.get_text() for tick in drawing.axes[0].get_yticklabels()]
    assert labels[:2] == ["PSNR, n = 4", "FID, n = 3"]
    assert "n = 3 to 4 models" in drawn.caption


def test_an_undefined_ceiling_is_said_and_not_drawn(analysis):
    drawn = forest(replace(analysis, ceiling=Ceiling(undefined="one annotator")))
    assert "undefined: one annotator" in drawn.caption
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    assert not [text for text in words(drawing) if "ceiling" in text]
    assert not lines(drawing.axes[0], canvas.PEOPLE, 2)


def test_narrow_panels_stand_one_above_the_other(analysis):
    drawn = forest(analysis)
    wide, narrow = (drawn.paint(drawn.frame, width) for width in (canvas.DOUBLE, canvas.SINGLE))
    assert narrow.get_size_inches()[1] == pytest.approx(2 * wide.get_size_inches()[1])


def test_auc_has_a_line_a_scope_and_one_for_chance(analysis):
    drawn = auc(analysis)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    (axes,) = drawing.axes
    points = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    assert sorted(points) == pytest.approx([0.6, 0.6, 0.65, 0.65, 0.7, 0.7])
    assert [0.5, 0.5] in [list(line.get_xdata()) for line in axes.lines]
    low, high = axes.get_xlim()
    assert low < 0.5 < 0.75 < high
    assert words(drawing).count("undefined: the same value for every image") == 1


def test_a_reason_names_its_lines_where_only_some_are_undefined(analysis):
    table = analysis.auc.copy()
    table.loc[0, ["auc", "low", "high"]] = np.nan
    table["undefined"] = table["undefined"].astype(object)
    table.loc[0, "undefined"] = "no image was recognised"
    drawn = auc(replace(analysis, auc=table))
    said = words(drawn.paint(drawn.frame, canvas.DOUBLE))
    assert "pooled undefined: no image was recognised" in said


def test_rules_stand_side_by_side_with_their_own_marker(analysis):
    drawn = rules(analysis)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    points = {
        (line.get_marker(), round(float(line.get_ydata()[0]), 2))
        for line in drawing.axes[0].lines
        if len(line.get_xdata()) == 1
    }
    assert points == {(m, y + s) for y in (0, 1, 3) for m, s in (("o", -0.2), ("s", 0.2))}
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "Majority of votes",
        "Share of votes",
    ]
