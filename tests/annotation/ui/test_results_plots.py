"""The figures of the Results page say what the tables say."""

import numpy as np
import pandas as pd
import pytest
from made_ballots import ballots, random_votes

from annotation.design.candidates import CandidateList
from annotation.design.list_facts import list_facts
from annotation.tasks.recognition import Recognition
from annotation.ui.results_plots import (
    confusion_figure,
    kappa_figure,
    rate_figure,
    view_figure,
)
from annotation.votes.agreement import Coding, pair_table, pairs_of
from annotation.votes.quality import carry_over_table
from annotation.votes.rates import confusion_table, rate_table

FOUND = ballots(random_votes(), bootstraps=50)


def test_the_model_that_leaks_most_is_on_top_with_its_interval():
    table = rate_table(FOUND, 5)
    figure = rate_figure(table)
    points = figure.data[0]
    assert list(points.y) == list(table["model"])[::-1]  # the last one is drawn on top
    top = table.iloc[0]
    assert points.x[-1] == top["rate"]
    assert points.x[-1] + points.error_x.array[-1] == pytest.approx(top["rate_high"])
    assert points.x[-1] - points.error_x.arrayminus[-1] == pytest.approx(top["rate_low"])
    assert [note.text for note in figure.layout.annotations] == list(points.y)


def test_a_model_without_a_rate_is_not_drawn():
    table = rate_table(FOUND, 5)
    table.loc[0, "rate"] = np.nan
    assert len(rate_figure(table).data[0].x) == len(table) - 1


def test_a_line_stands_where_somebody_is_who_sees_only_the_lists():
    lists = list_facts(
        [
            CandidateList(classes=("a", "x"), true_position=0, true_rank=1, forced=False),
            CandidateList(classes=("b", "x"), true_position=0, true_rank=1, forced=False),
        ]
    )
    table = rate_table(FOUND, 5)
    (line,) = rate_figure(table, lists=lists).layout.shapes
    assert line.x0 == line.x1 == 1
    assert not rate_figure(table).layout.shapes


def test_confusion_is_a_share_of_each_row_and_zeros_are_blank():
    counts = pd.DataFrame({"cat": [3, 0], "none": [1, 2]}, index=["cat", "<b>dog</b>"])
    cells = confusion_figure(counts, "class").data[0]
    assert [list(row) for row in cells.z] == [[0.75, 0.25], [None, 1]]
    assert [list(row) for row in cells.text] == [["75%", "25%"], ["", "100%"]]
    assert list(cells.y) == ["cat", "&lt;b&gt;dog&lt;/b&gt;"]
    whole = confusion_figure(confusion_table(FOUND, Recognition()), "class").data[0]
    sums = [sum(cell or 0 for cell in row) for row in whole.z]
    assert sums == pytest.approx([1] * len(sums))


def test_the_matrix_of_pairs_is_symmetric_with_a_blank_diagonal():
    pairs = pair_table(FOUND, pairs_of(FOUND, Coding.RECOGNISED))
    cells = np.array([list(row) for row in kappa_figure(pairs).data[0].z], dtype=float)
    assert np.isnan(np.diag(cells)).all()
    np.testing.assert_array_equal(cells, cells.T)
    assert cells[0, 1] == pairs["value"][0]


def test_one_annotator_has_no_pairs_and_still_a_figure():
    alone = ballots(random_votes(annotators=1), bootstraps=5)
    figure = kappa_figure(pair_table(alone, pairs_of(alone, Coding.RECOGNISED)))
    assert len(figure.data[0].z) == 0


def test_views_are_drawn_with_their_intervals():
    table = carry_over_table(random_votes(), np.random.default_rng(0), 50)
    points = view_figure(table).data[0]
    assert list(points.x) == [1, 2, 3]
    last = table.iloc[-1]
    assert points.y[-1] == last["share"]
    assert points.y[-1] + points.error_y.array[-1] == pytest.approx(last["high"])
    assert points.y[-1] - points.error_y.arrayminus[-1] == pytest.approx(last["low"])
