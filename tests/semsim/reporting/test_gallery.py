from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_analysis import SPECS, TESTED, made_analysis, with_targets

from semsim.base.stats.evidence import Ratings
from semsim.reporting.gallery import (
    BOTH,
    METRIC_ONLY,
    NEITHER,
    PEOPLE_ONLY,
    called_leaked,
    four_cases,
    gallery,
)

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


def test_every_picture_says_how_good_its_target_was(analysis):
    found = gallery(with_targets(analysis), MSE, most=12, per_original=6)
    told = {entry.label: entry.target for entry in (*found.metric_only, *found.people_only)}
    labels = analysis.models["label"].tolist()
    assert [told[label] for label in labels] == [*TESTED, "not kept", "not kept"]


def test_one_original_does_not_fill_the_gallery():
    analysis = made_analysis(6, 4)  # rows 0, 4, 8 … show the first original
    table = analysis.disagreement
    share = np.where(table["row"] % 4 == 0, 1.0, 0.6)
    table = table.assign(metric_share=share, human_share=0.0)
    found = gallery(replace(analysis, disagreement=table), MSE, most=6, per_original=2)
    shown = [entry.image_id for entry in found.metric_only]
    assert shown == ["000", "000", "001", "002", "003", "001"]
    assert not found.people_only


def test_a_metric_calls_leaked_as_many_as_people_recognise():
    share = np.linspace(0, 1, 6)
    gaps = pd.DataFrame({"metric_share": share, "human": [0.2, 0.2, 0.2, 0.8, 0.2, 0.8]})
    found = called_leaked(gaps, MSE, 2)
    assert found.tolist() == [False, False, False, False, True, True]  # two, as people do
    tied = gaps.assign(metric_share=[0.2, 0.2, 0.2, 0.2, 0.9, 0.9])
    assert called_leaked(tied, MSE, 2).tolist() == [False] * 4 + [True] * 2
    assert not called_leaked(gaps.assign(metric_share=0.5), MSE, 2).any()


@pytest.mark.parametrize("higher", [True, False])
def test_a_metric_that_says_yes_or_no_is_taken_at_its_word(analysis, higher):
    """All that people recognise has a yes: equal ranks below those of people are no miss."""
    spec = replace(PSNR, yes_or_no=True, higher_means_more_leakage=higher)
    recognised = np.arange(24) % 4 == 0
    table = analysis.disagreement[analysis.disagreement["metric"] == PSNR.name]
    said = np.arange(24) % 2 == 0  # of everything that people recognise, and as much again
    table = table.assign(
        human=recognised.astype(float),
        human_share=np.where(recognised, 0.9, 0.4),
        value=(said == higher).astype(float),
        metric_share=np.where(said, 0.75, 0.25),
    )
    found = gallery(replace(analysis, disagreement=table), spec, most=24, per_original=24)
    assert not found.people_only
    assert sorted(entry.row for entry in found.metric_only) == [2, 6, 10, 14, 18, 22]


def test_a_yes_or_no_that_errs_is_told_whatever_the_ranks_say(analysis):
    """Of equal answers the rank is that of their middle, which may be above people's."""
    spec = replace(PSNR, yes_or_no=True)
    table = analysis.disagreement[analysis.disagreement["metric"] == PSNR.name]
    recognised, said = np.arange(24) < 16, np.arange(24) % 8 == 0
    table = table.assign(
        human=np.where(recognised, 0.6, 0.4),
        human_share=np.where(recognised, 0.3, 0.9),
        value=said.astype(float),
        metric_share=np.where(said, 0.8, 0.4),
    )
    found = gallery(replace(analysis, disagreement=table), spec, most=24, per_original=24)
    assert sorted(entry.row for entry in found.people_only) == [row for row in range(16) if row % 8]
    assert [entry.row for entry in found.metric_only] == [16]


def test_a_mean_rating_at_the_threshold_is_recognised(analysis):
    ratings = Ratings(values=np.full((24, 5), 3.0), levels=5.0, threshold=3.0)
    table = analysis.disagreement.assign(human=0.5, human_share=0.9, metric_share=0.1, gap=-0.8)
    rated = replace(
        analysis, disagreement=table, evidence=replace(analysis.evidence, ratings=ratings)
    )
    assert rated.evidence.threshold == 0.5
    assert PEOPLE_ONLY in four_cases(rated, PSNR)
    assert METRIC_ONLY not in four_cases(rated, PSNR)
    assert PEOPLE_ONLY not in four_cases(replace(analysis, disagreement=table), PSNR)


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


def test_four_cases_are_one_of_each_way_of_other_originals():
    analysis = made_analysis(8, 6)
    table = analysis.disagreement
    mse = table["metric"] == "mse"
    rows = table["row"]
    # By hand: row 7 is what both put first, 14 last; 21 the metric alone, 28 people alone.
    people = rows.map({7: 0.98, 14: 0.03, 21: 0.1, 28: 0.9}).fillna(0.55)
    metric = rows.map({7: 0.99, 14: 0.02, 21: 0.95, 28: 0.05}).fillna(0.55)
    answered = rows.map({7: 1.0, 14: 0.0, 21: 0.0, 28: 1.0}).fillna(0.5)
    made = table.assign(human_share=people, metric_share=metric, human=answered)
    found = four_cases(replace(analysis, disagreement=made[mse]), MSE)
    assert {way: entry.row for way, entry in found.items()} == {
        BOTH: 7,
        NEITHER: 14,
        METRIC_ONLY: 21,
        PEOPLE_ONLY: 28,
    }
    assert list(found) == [BOTH, NEITHER, METRIC_ONLY, PEOPLE_ONLY]


def test_a_way_that_does_not_occur_is_no_case_and_no_original_is_shown_twice():
    analysis = made_analysis(6, 4)
    table = analysis.disagreement
    # The first original is the widest gap both ways: one of them is shown by another.
    odd = table["row"] % 4 == 0
    early = table["row"] < 12
    made = table.assign(
        metric_share=np.where(early, np.where(odd, 1.0, 0.8), np.where(odd, 0.0, 0.2)),
        human_share=np.where(early, 0.1, 0.9),
        human=np.where(early, 0.0, 1.0),
    )
    found = four_cases(replace(analysis, disagreement=made), MSE)
    assert list(found) == [METRIC_ONLY, PEOPLE_ONLY]
    shown = [entry.image_id for entry in found.values()]
    assert shown[0] == "000" != shown[1]


def test_targets_that_guess_are_shown_only_where_there_is_nothing_else():
    analysis = made_analysis(8, 6)
    rows = analysis.disagreement["row"]
    low = {14: (0.02, 0.0), 22: (0.2, 0.0)}  # by hand: nobody recognises these two, 14 least
    shares = rows.map({row: share for row, (share, _) in low.items()}).fillna(0.55)
    answered = rows.map({row: share for row, (_, share) in low.items()}).fillna(0.5)
    made = analysis.disagreement.assign(human_share=shares, metric_share=shares, human=answered)

    def neither(guessing):
        images = analysis.evidence.images
        marks = pd.Series([place in guessing for place in range(len(images))])
        marked = replace(analysis.evidence, images=images.assign(target_at_chance=marks))
        return four_cases(replace(analysis, evidence=marked, disagreement=made), MSE)[NEITHER].row

    assert neither(()) == 14
    assert neither((14,)) == 22
    assert neither((14, 22)) == 14
