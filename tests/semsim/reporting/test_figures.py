from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_analysis import SPECS, made_analysis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from semsim.base.errors import UnknownNameError
from semsim.reporting import canvas
from semsim.reporting.canvas import safe_name
from semsim.reporting.figures import NAMES, by_agreement, figure, figures, names_of


def written(drawing):
    """Everything a drawing says outside of its ticks, in one line."""
    texts = [text.get_text() for axes in drawing.axes for text in axes.texts]
    return " ".join(" ".join([*texts, drawing.get_supxlabel()]).split())


WIDTHS = {True: canvas.SINGLE, False: canvas.DOUBLE}


@pytest.fixture(scope="module", params=WIDTHS, ids=["simulated", "people"])
def laid_out(request):
    """Lay out all figures of many models: whether votes are simulated, the width in mm, each."""
    simulated, width = request.param, WIDTHS[request.param]
    drawn = [(one, one.draw(width)) for one in figures(made_analysis(14, 12, simulated=simulated))]
    for _, drawing in drawn:
        FigureCanvasAgg(drawing)
        drawing.draw_without_rendering()
    return simulated, width, drawn


def is_whole(drawing, width):
    """Whether a drawing is as wide as it was asked for, in mm, and has nothing beyond its edge."""
    inked = drawing.get_tightbbox()  # inches
    across, up = drawing.get_size_inches()
    inside = min(inked.x0, inked.y0) > -0.01 and inked.x1 < across + 0.01 and inked.y1 < up + 0.01
    return inside and across * 25.4 == pytest.approx(width)


def test_nothing_is_cut_and_the_width_is_that_of_a_column(laid_out):
    _, width, drawn = laid_out
    assert [one.stem for one, drawing in drawn if not is_whole(drawing, width)] == []


def smallest(drawing):
    """Points of the smallest text in a drawing."""
    return min(text.get_fontsize() for text in drawing.findobj(Text) if text.get_text().strip())


def test_texts_are_large_enough_to_read_and_drawing_changes_no_data(analysis):
    drawn = figures(analysis)
    before = [one.frame.copy() for one in drawn]
    sizes = {one.stem: smallest(one.draw()) for one in drawn}
    assert {stem: size for stem, size in sizes.items() if size < 5.5} == {}
    changed = [
        one.stem for one, frame in zip(drawn, before, strict=True) if not one.frame.equals(frame)
    ]
    assert changed == []


def test_every_name_makes_a_figure_and_a_metric_of_sets_has_none_of_images(analysis):
    stems = [one.stem for one in figures(analysis)]
    assert len(set(stems)) == len(stems)
    assert {one.name for one in figures(analysis)} == set(NAMES)
    assert "images-psnr" in stems
    assert "scatter-fid" in stems
    assert "images-fid" not in stems


def test_every_figure_says_what_it_shows(analysis):
    for one in figures(analysis):
        assert one.title
        assert one.caption.endswith(".")
        assert len(one.frame), one.stem


def test_a_study_without_scores_says_so_in_every_figure(empty):
    drawn = figures(empty)
    assert all(one.metric is None for one in drawn)
    for one in drawn:
        assert written(one.draw()).startswith("No"), one.name


def test_unknown_names_are_refused_with_the_known_ones(analysis):
    with pytest.raises(UnknownNameError, match="forest"):
        figure(analysis, "pie")
    with pytest.raises(UnknownNameError, match="psnr, mse"):
        figure(analysis, "scatter", "lpips")
    with pytest.raises(UnknownNameError, match="None"):
        figure(analysis, "scatter")


def test_the_best_agreeing_metric_comes_first_and_the_undefined_one_last(analysis):
    assert [spec.name for spec in by_agreement(analysis)] == ["psnr", "fid", "mse", "flat:x"]


def test_stems_are_file_names(analysis):
    assert safe_name("semsim:a/b@attacked") == "semsim-a-b-attacked"
    assert figure(analysis, "scatter", "flat:x").stem == "scatter-flat-x"


def test_metrics_whose_names_make_one_file_name_keep_a_figure_each():
    flat = SPECS[-1]
    names = ("own:a b", "own:a-b", "own:A-B")
    stems = [
        one.stem.casefold()
        for one in figures(made_analysis(specs=[replace(flat, name=name) for name in names]))
    ]
    assert len(set(stems)) == len(stems)
    assert {"scatter-own-a-b", "scatter-2-own-a-b", "scatter-3-own-a-b"} <= set(stems)


def test_one_model_is_drawn_too():
    analysis = made_analysis(1, 3)
    for one in figures(analysis):
        one.draw().draw_without_rendering()
    assert np.isinf(analysis.models["psnr"]).all()
    assert "an infinite mean: 1 resnet/0 <b>" in written(figure(analysis, "scatter", "psnr").draw())


def test_no_metric_of_images(analysis):
    analysis = made_analysis(specs=SPECS[3:])
    stems = {one.stem for one in figures(analysis)}
    assert {"scatter-fid", "stability-fid"} <= stems
    assert set(NAMES) - set(names_of(analysis, SPECS[3])) == {"images", "ranked"}
    for name in ("images", "ranked"):
        with pytest.raises(UnknownNameError, match="FID gives no value to a single image"):
            figure(analysis, name, "fid")
    assert "images-fid" not in stems
    assert "no AUC" in written(figure(analysis, "auc").draw())


def test_every_figure_of_simulated_votes_says_so_once_beside_what_it_shows(laid_out):
    simulated, _, drawn = laid_out
    for one, drawing in drawn:
        assert one.title.count("simulated votes") == simulated, one.stem
        assert one.frame.get("simulated", pd.Series([False])).all() == simulated, one.stem
        marks = [text for text in drawing.texts if text.get_text() == "Simulated votes"]
        assert len(marks) == simulated, one.stem
        if simulated and one.name != "ranked":  # whose line of names has room on the right
            lowest = marks[0].get_window_extent().y0
            tops = [axes.get_tightbbox().y1 for axes in drawing.axes]
            assert max(tops) <= lowest, one.stem
