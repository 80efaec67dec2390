"""The figure of four cases, and the command that draws it."""

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from made_analysis import SPECS, TESTED, made_analysis, with_targets
from made_votes import table_of
from matplotlib.text import Text
from PIL import Image

from semsim.base.errors import DataError
from semsim.cli import examples
from semsim.images import write_png
from semsim.reporting.cases import case_figure
from semsim.reporting.export import png
from semsim.reporting.gallery import four_cases

PSNR, MSE, *_ = SPECS


@pytest.fixture
def pictured(tmp_path):
    return with_pictures(made_analysis(8, 6), tmp_path)


def with_pictures(analysis, tmp_path):
    """The same with its pictures on disk, each of one grey."""
    images = analysis.evidence.images
    paths = [tmp_path / f"{place}.png" for place in range(len(images))]
    for place, path in enumerate(paths):
        write_png(torch.full((3, 8, 8), place / len(paths)), path)
    texts = pd.Series([str(path) for path in paths], dtype=object)
    shown = images.assign(original=texts, reconstruction=texts)
    return replace(analysis, evidence=replace(analysis.evidence, images=shown))


def test_each_case_stands_with_what_everybody_says(pictured, tmp_path):
    figure = case_figure(pictured, MSE, SPECS)
    found = four_cases(pictured, MSE)
    assert list(figure.frame["reconstruction"]) == [e.reconstruction for e in found.values()]
    evidence = pictured.evidence
    for row, entry in zip(figure.frame.itertuples(), found.values(), strict=True):
        said = table_of(evidence.recognised)[entry.row]
        yes, votes = int((said == 1).sum()), int((said >= 0).sum())
        assert row.people.startswith(f"recognised by {yes} of {votes}")
        ways = [(title, way) for title, _, way in row.metrics]
        assert ways.count((MSE.title, "lower is closer")) == 1
        assert (PSNR.title, "higher is closer") in ways
        assert "the metric" not in row.way
    for width, across in ((183.0, 4), (89.0, 2)):
        path = tmp_path / f"{across}.png"
        path.write_bytes(png(figure, 50, width))
        assert abs(Image.open(path).width - width / 25.4 * 50) <= 1


def test_each_case_says_how_good_its_target_was(tmp_path):
    known = with_pictures(with_targets(made_analysis(2, 6)), tmp_path)
    figure = case_figure(known, MSE)
    # By hand: the first model has what MSE alone calls leaked, the second what people alone do.
    assert list(figure.frame["target"]) == list(TESTED)
    drawn = figure.paint(figure.frame, 183.0).findobj(Text)
    words = " ".join(" ".join(text.get_text() for text in drawn).split())
    assert all(f"target {said}" in words for said in TESTED)


def test_simulated_annotators_are_called_that(pictured):
    simulated = replace(pictured, evidence=replace(pictured.evidence, simulated=True))
    figure = case_figure(simulated, MSE)
    assert figure.frame["people"].str.endswith(" simulated").all()
    assert "simulated annotators" in figure.title
    assert "simulated annotators alone recognise it" in set(figure.frame["way"])
    assert not figure.frame["way"].str.contains("people").any()
    real = replace(pictured, evidence=replace(pictured.evidence, simulated=False))
    real_frame = case_figure(real, MSE).frame
    assert not real_frame["people"].str.contains("simulated").any()
    assert "people alone recognise it" in set(real_frame["way"])


def test_without_pictures_or_votes_nothing_is_drawn(pictured):
    gone = pictured.evidence.images.assign(original=None)
    with pytest.raises(DataError, match="not at hand"):
        case_figure(replace(pictured, evidence=replace(pictured.evidence, images=gone)), MSE)
    nobody = replace(pictured, disagreement=pictured.disagreement.iloc[:0])
    with pytest.raises(DataError, match="No reconstruction has both"):
        case_figure(nobody, MSE)


def test_the_rows_hold_what_the_figure_shows_and_its_images(pictured):
    figure = case_figure(pictured, MSE, SPECS)
    told = json.loads(json.dumps(examples.told(figure)))
    assert [one["people"] for one in told["cases"]] == list(figure.frame["people"])
    for one, path in zip(told["cases"], figure.frame["original"], strict=True):
        kind, _, held = one["original"].partition(",")
        assert kind == "data:image/png;base64"
        assert b64decode(held) == Path(path).read_bytes()
