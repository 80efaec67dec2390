"""The heat map of everything: what each panel holds, and that nothing without a number has one."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from semsim.metrics import find_metric
from semsim.papers.judged import METRICS
from semsim.reporting.export import svg
from semsim.reporting.leak_map import PEOPLE, RHO, TARGET, leak_map

SPECS = tuple(find_metric(name).spec for name in ("psnr", "mse"))


def cell(network="net", strategy="none", attack="invgrad", status="ok", **facts):
    known = {"people": 0.25, "psnr": 10.0, "mse": 0.1, "target_accuracy": 0.5}
    found = known if status == "ok" else dict.fromkeys(known, np.nan)
    place = {"network": network, "strategy": strategy, "attack": attack, "status": status}
    return {**place, "target_at_chance": False, **found, **facts}


CELLS = pd.DataFrame(
    [
        cell(),
        cell(strategy="dp-sgd", people=1.0, target_accuracy=0.02, target_at_chance=True),
        cell(attack="dlg", status="failed", target_accuracy=0.5),
        cell(strategy="dp-sgd", attack="dlg", status="cannot be"),
        cell("", "", "a grey picture", "control", people=0.0, psnr=np.inf, mse=0.0),
    ]
)
AGREEMENT = pd.DataFrame(
    [
        {"metric": "psnr", "title": "PSNR", "rho": 0.5, "low": 0.1, "high": 0.8},
        {"metric": "mse", "title": "MSE", "rho": np.nan, "low": np.nan},
    ]
)


@pytest.fixture(scope="module")
def drawn():
    return leak_map(CELLS, AGREEMENT, SPECS, 6)


def test_cells_without_a_number_have_a_sign_instead(drawn):
    people = drawn.frame[drawn.frame["panel"] == PEOPLE].set_index(["row", "column"])
    assert people.loc[("net · invgrad", "none"), "text"] == "25"
    assert people.loc[("net · dlg", "none"), "text"] == "×"
    assert people.loc[("net · dlg", "dp-sgd"), "text"] == "–"
    assert people.loc[["net · dlg"], "value"].isna().all()


def test_a_target_that_guesses_is_marked_and_has_no_colour(drawn):
    targets = drawn.frame[drawn.frame["panel"] == TARGET]
    assert targets["text"].tolist() == ["50", "2°"]
    assert targets["value"].isna().all()


def test_a_control_is_the_same_under_every_strategy(drawn):
    of_control = drawn.frame[drawn.frame["row"] == "a grey picture"]
    people = of_control[of_control["panel"] == PEOPLE]
    assert people["column"].tolist() == ["none", "dp-sgd"]
    assert people["value"].tolist() == [0.0, 0.0]
    assert people["text"].tolist() == ["0", ""]


def test_every_metric_has_a_panel_and_a_row_of_agreement(drawn):
    assert {"PSNR", "MSE"} < set(drawn.frame["panel"])
    assert drawn.frame.loc[drawn.frame["panel"] == RHO, "row"].tolist() == ["PSNR", "MSE"]


def test_more_leakage_is_warm_whichever_way_a_metric_goes(drawn):
    text = svg(drawn, True)
    assert "0.00 to" not in text
    assert "10.0 to 10.0 dB" in text  # ∞ is no end of a scale
    assert "0.10 to 0.00" in text  # of MSE the largest leaks least


def test_titles_of_many_metrics_lie_neither_over_each_other_nor_outside():
    specs = [find_metric(name).spec for name in METRICS if name != "semsim:demo"]
    cells = CELLS.assign(**{spec.name: 0.5 for spec in specs})
    figure = leak_map(cells, AGREEMENT, specs, 6).draw()
    figure.canvas.draw()
    titles = {spec.title for spec in specs}
    shown = [
        text
        for axes in figure.findobj(Axes)
        for text in axes.get_children()
        if isinstance(text, Text) and text.get_text().replace("\n", " ") in titles
    ]
    boxes = [text.get_window_extent() for text in shown]
    assert len(boxes) == len(specs)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
