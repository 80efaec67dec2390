from dataclasses import replace

import numpy as np
import pytest
from made_analysis import SPECS, WHY, made_analysis

from semsim.reporting import canvas
from semsim.reporting.model_figures import agreement_words, heading, scatter, stability
from semsim.reporting.svg import SPREAD

PSNR, MSE, FLAT, FID = SPECS


def points(axes):
    """gid → (x, y) of every point of a model."""
    return {
        line.get_gid(): (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if (line.get_gid() or "").startswith("row-")
    }


def test_a_model_stands_at_its_mean_and_its_human_score(analysis):
    drawn = scatter(analysis, MSE)
    axes = drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]
    expected = {
        f"row-{i}": (row["mse"], row["human"])
        for i, (_, row) in enumerate(analysis.models.iterrows())
    }
    assert points(axes) == expected
    bars = [line.get_xydata().tolist() for line in axes.lines if len(line.get_xdata()) == 2]
    human, (low, high) = (
        analysis.models["human"][0],
        analysis.models.loc[0, ["mse:low", "mse:high"]],
    )
    assert [[low, human], [high, human]] in bars
    ends = analysis.models.loc[0, ["human_low", "human_high"]]
    assert [[analysis.models["mse"][0], end] for end in ends] in bars


@pytest.mark.parametrize("width", [canvas.SINGLE, canvas.DOUBLE])
def test_models_of_one_place_stand_side_by_side_and_that_is_said(analysis, width):
    models = analysis.models.copy()
    models.loc[1:2, ["mse", "human"]] = models.loc[0, ["mse", "human"]].to_list()
    for table, moved in ((models, True), (analysis.models, False)):
        drawn = scatter(replace(analysis, models=table), MSE)
        figure = drawn.paint(drawn.frame, width)
        figure.draw_without_rendering()
        axes = figure.axes[0]
        shown = [
            72 / figure.dpi * one.get_transform().transform(one.get_xydata())[0]
            for one in axes.lines
            if (one.get_gid() or "").startswith("row-")
        ]
        numerals = [one for one in axes.texts if one.get_text().isdigit()]
        for text, place in zip(numerals, shown, strict=True):
            at = 72 / figure.dpi * text.get_transform().transform(text.get_position())
            assert at == pytest.approx(place)
        apart = [np.hypot(*(a - b)) for i, a in enumerate(shown) for b in shown[:i]]
        assert min(apart) > 8.5  # points, the width of one
        own = axes.transData.transform(drawn.frame[["value", "human"]]) * 72 / figure.dpi
        assert [y for _, y in shown] == pytest.approx(own[:, 1])
        assert [one.get_text() for one in axes.texts].count(SPREAD) == moved


def test_an_infinite_mean_is_named_not_drawn(analysis):
    drawn = scatter(analysis, PSNR)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    assert len(points(drawing.axes[0])) == 3
    assert "Not drawn, an infinite mean: 4 resnet/3 <b>." in " ".join(
        drawing.get_supxlabel().split()
    )
    assert "of the means" not in drawing.get_supxlabel()  # those of a mean that is none are none
    some = analysis.models.assign(**{"psnr:n_inf": 2})
    drawn = scatter(replace(analysis, models=some), PSNR)
    said = drawn.paint(drawn.frame, canvas.DOUBLE).get_supxlabel()
    assert "6 infinite values of single images are left out" in " ".join(said.split())
    key = " ".join(text.get_text() for text in drawing.axes[1].texts)
    assert "resnet/3 <b>" in key


def test_models_without_a_value_are_named(analysis):
    models = analysis.models.copy()
    models.loc[1, "mse"] = np.nan
    models.loc[2, "human"] = np.nan
    drawn = scatter(replace(analysis, models=models), MSE)
    said = drawn.paint(drawn.frame, canvas.DOUBLE).get_supxlabel()
    assert "no human score: 4 resnet/2 <b>" in said
    assert "no value of the metric: 2 resnet/1 <b>" in said


def test_the_title_says_rho_tau_and_n_or_why_there_are_none(analysis):
    assert agreement_words(analysis, MSE) == "ρ = −0.62, τ = −0.43, n = 4 models"
    assert scatter(analysis, FLAT).title.endswith(f"undefined: {WHY}")
    assert heading(MSE) == "MSE ↓"
    assert heading(PSNR) == "PSNR (dB) ↑"


def test_points_carry_the_model_and_a_tooltip(analysis):
    drawn = scatter(analysis, MSE)
    assert drawn.frame["model_key"][0] == "symbols\ninvgrad\nresnet/0"
    said = drawn.tooltip(drawn.frame.iloc[0])
    assert said == "resnet/0 <b>: metric 20.12 [19.62, 20.62], people 0.900 [0.85, 0.95]"
    ranks = stability(analysis, MSE)
    assert ranks.tooltip(ranks.frame.iloc[1]).startswith("resnet/0 <b>: rank 1 by people")


def test_ranks_stand_in_the_order_of_people(analysis):
    table = analysis.stability.copy()
    people = table["measure"] == "people"
    table.loc[people, "rank"] = [4.0, 3.0, 2.0, 1.0]
    drawn = stability(replace(analysis, stability=table), MSE)
    assert set(drawn.frame["measure"]) == {"people", "mse"}
    axes = drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == [f"resnet/{i} <b>" for i in (3, 2, 1, 0)]
    found = points(axes)
    assert len(found) == 8
    for gid, (x, y) in found.items():
        row = drawn.frame.iloc[int(gid.removeprefix("row-"))]
        assert x == row["rank"]
        assert labels[round(y)] == row["label"]


def test_a_model_without_a_rank_is_named(analysis):
    table = analysis.stability.copy()
    table.loc[(table["measure"] == "mse") & (table["label"] == "resnet/1 <b>"), "rank"] = np.nan
    drawn = stability(replace(analysis, stability=table), MSE)
    drawing = drawn.paint(drawn.frame, canvas.DOUBLE)
    assert drawing.get_supxlabel() == "No rank by MSE: resnet/1 <b>."
    assert len(points(drawing.axes[0])) == 7


def test_a_long_list_of_absent_models_is_broken_into_lines():
    analysis = made_analysis(14, 2)
    models = analysis.models.assign(mse=np.nan)
    models.loc[0, "mse"] = 1.0
    drawn = scatter(replace(analysis, models=models), MSE)
    drawing = drawn.paint(drawn.frame, canvas.SINGLE)
    drawing.draw_without_rendering()
    box = drawing.get_tightbbox()
    assert max(map(len, drawing.get_supxlabel().splitlines())) < 70
    assert box.x1 * 25.4 < canvas.SINGLE + 0.3


def test_two_models_of_one_name_are_two(analysis):
    models = analysis.models.assign(label="the same")
    table = analysis.stability.assign(label="the same")
    same = replace(analysis, models=models, stability=table)
    assert len(points(_first(stability(same, FID)))) == 8
    assert len(points(_first(scatter(same, FID)))) == 4


def _first(drawn):
    return drawn.paint(drawn.frame, canvas.DOUBLE).axes[0]


@pytest.mark.parametrize("n", [1, 40])
def test_few_and_many_models(n):
    analysis = made_analysis(n, 2)
    for drawn in (scatter(analysis, MSE), stability(analysis, MSE)):
        drawing = drawn.paint(drawn.frame, canvas.SINGLE)
        drawing.draw_without_rendering()
        assert len(points(drawing.axes[0])) in (n, 2 * n)
