"""Figures 5 and 6 of the SemSim paper: an original's reconstructions by a metric, marked."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from made_analysis import SPECS, made_analysis
from made_votes import said, table_of

from semsim.images import write_png
from semsim.reporting.export import svg
from semsim.reporting.ranked_figure import most_divided, ranked, ranked_rows

PSNR, MSE, _, FID = SPECS


def pictured(folder, n_models=4, n_images=3):
    """The made analysis with a picture a reconstruction, its red telling its row."""
    analysis = made_analysis(n_models, n_images)
    images = analysis.evidence.images.copy()
    for kind in ("original", "reconstruction"):
        paths = []
        for row in range(len(images)):
            picture = torch.zeros(3, 4, 4)
            picture[0] = row / len(images)
            paths.append(folder / f"{kind}-{row}.png")
            write_png(picture, paths[-1])
        images[kind] = [str(path) for path in paths]
    return replace(analysis, evidence=replace(analysis.evidence, images=images))


def test_what_a_metric_says_leaks_most_stands_first(tmp_path):
    analysis = pictured(tmp_path)
    for spec, ascending in ((PSNR, False), (MSE, True)):
        rows = ranked_rows(analysis, spec)
        for _, part in rows.groupby("original"):
            values = part.sort_values("place")["value"].tolist()
            assert values == sorted(values, reverse=not ascending)
            assert part["place"].tolist() == [1, 2, 3, 4]


def test_marks_are_the_majority_of_votes(tmp_path):
    analysis = pictured(tmp_path)
    rows = ranked_rows(analysis, PSNR).set_index("row")
    votes = table_of(analysis.evidence.recognised)
    for row, mark in rows["mark"].items():
        share = np.nan if np.isnan(votes[row]).any() else votes[row].mean()
        expected = "undecided" if np.isnan(share) else "recognised"
        assert mark == ("not recognised" if share < 0.5 else expected)
    assert set(rows["mark"]) >= {"recognised", "undecided"}


def test_half_of_the_votes_is_undecided(tmp_path):
    analysis = pictured(tmp_path)
    shared = replace(analysis.settings, headline="mean-response")
    rows = ranked_rows(replace(analysis, settings=shared), PSNR).set_index("row")
    means = analysis.evidence.recognised.means
    half = replace(analysis.evidence, recognised=said(np.tile([1.0, 0.0], (len(means), 2))))
    halves = ranked_rows(replace(analysis, settings=shared, evidence=half), PSNR)
    assert set(halves["mark"]) == {"undecided"}
    assert rows["mark"].eq("recognised").tolist() == (means[rows.index] > 0.5).tolist()


def test_the_originals_shown_are_those_people_are_most_divided_about(tmp_path):
    rows = ranked_rows(pictured(tmp_path), PSNR)
    marks = ["recognised", "not recognised", "recognised", "not recognised"]
    rows.loc[rows["original"] == rows["original"].max(), "mark"] = marks
    rows.loc[rows["original"] != rows["original"].max(), "mark"] = "recognised"
    assert most_divided(rows, 2) == [rows["original"].max(), rows["original"].min()]


def test_every_picture_is_drawn_in_its_place(tmp_path):
    drawn = ranked(pictured(tmp_path), PSNR, originals=2)
    (axes,) = drawn.draw().axes
    assert len(axes.images) == 2 * (1 + 4)
    lines = [axes.images[place : place + 5] for place in (0, 5)]
    reds = [one.get_array()[0, 0, 0] for line in lines for one in line[1:]]
    assert reds == [round(255 * row / 12) for row in drawn.frame["row"]]
    for line in lines:  # from left to right, none over another
        ends = [one.get_extent()[:2] for one in line]
        assert all(before[1] < after[0] for before, after in pairwise(ends))
    assert lines[0][0].get_extent()[2] < lines[1][0].get_extent()[3]  # mm from the top
    signs = [text.get_text()[0] for text in axes.texts if text.get_text()[0] in "✓✗?"]
    assert signs == ["✓✗?"["rnu".index(mark[0])] for mark in drawn.frame["mark"]]


def test_pictures_of_an_svg_stay_pictures_of_their_own(tmp_path):
    text = svg(ranked(pictured(tmp_path), PSNR, originals=2), live=False)
    assert text.count("<image ") == 2 * (1 + 4)


def test_a_picture_keeps_its_shape(tmp_path):
    analysis = pictured(tmp_path)
    for path in analysis.evidence.images["reconstruction"]:
        write_png(torch.zeros(3, 4, 8), Path(path))
    (axes,) = ranked(analysis, PSNR, originals=1).draw().axes
    shapes = [one.get_extent() for one in axes.images]
    wide = [(right - left) / (bottom - top) for left, right, bottom, top in shapes]
    assert wide == pytest.approx([1, 2, 2, 2, 2])


def test_a_long_row_is_broken(tmp_path):
    drawn = ranked(pictured(tmp_path, n_models=20, n_images=1), MSE)
    (axes,) = drawn.draw().axes
    assert len(axes.images) == 21
    assert len({round(one.get_extent()[3], 3) for one in axes.images}) == 2
    assert len({round(one.get_extent()[0], 3) for one in axes.images}) == 16


@pytest.mark.parametrize(
    ("spec", "words"), [(FID, "no value to a single picture"), (PSNR, "not at hand")]
)
def test_without_pictures_or_values_it_says_so(spec, words):
    figure = ranked(made_analysis(), spec).draw()
    assert words in " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
