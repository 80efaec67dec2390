from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_analysis import SPECS, made_analysis

from semsim.reporting.gallery import gallery

PSNR, MSE, _, FID = SPECS


def test_both_ways_of_disagreeing_the_widest_first(analysis):
    found = gallery(analysis, MSE, most=3)
    assert [entry.row for entry in found.metric_only] == [0, 1, 2]
    assert [entry.row for entry in found.people_only] == [23, 22, 21]
    assert found.metric_only[0].gap == 1
    assert found.people_only[0].gap == -1
    first = found.metric_only[0]
    assert (first.label, first.image_id, first.class_name) == ("resnet/0 <b>", "000", "cat")
    assert (first.value, first.human) == (30, 0)
    assert first.model_key == "symbols\ninvgrad\nresnet/0"


def test_one_original_does_not_fill_the_gallery():
    analysis = made_analysis(6, 4)  # rows 0, 4, 8 … show the first original
    table = analysis.disagreement
    share = np.where(table["row"] % 4 == 0, 1.0, 0.6)
    table = table.assign(metric_share=share, human_share=0.0)
    found = gallery(replace(analysis, disagreement=table), MSE, most=6, per_original=2)
    shown = [entry.image_id for entry in found.metric_only]
    assert shown == ["000", "000", "001", "002", "003", "001"]
    assert not found.people_only


def test_images_both_agree_on_or_nobody_judged_are_in_neither(analysis):
    table = analysis.disagreement.assign(metric_share=0.5, human_share=0.5)
    table.loc[0, "human_share"] = np.nan
    found = gallery(replace(analysis, disagreement=table), PSNR)
    assert found.metric_only == found.people_only == ()
    assert not found.has_images


def test_a_metric_of_sets_has_an_empty_gallery(analysis):
    assert gallery(analysis, FID).metric_only == ()


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA])
def test_pictures_are_there_or_not(analysis, absent):
    assert not gallery(analysis, MSE).has_images
    paths = pd.Series(["a.png"] * 23 + [absent], dtype=object)
    images = analysis.evidence.images.assign(original=paths, reconstruction=paths)
    found = gallery(replace(analysis, evidence=replace(analysis.evidence, images=images)), MSE)
    assert found.has_images
    assert found.metric_only[0].original == "a.png"
    assert found.people_only[0].reconstruction is None
