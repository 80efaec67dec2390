from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_measures import error_of
from made_votes import SPECS, evidence
from scipy import stats

from semsim.base.stats.correlation import weighted_kendall
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.human import human_score
from semsim.base.stats.picture_ranks import PICTURE_COLUMNS, picture_agreement
from semsim.base.stats.result import AnalysisSettings

ASKED = AnalysisSettings(headline="mean-response")
FOUND = evidence(n_models=3, n_originals=15)
VALUES = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, np.inf]), st.integers(0, 3), st.integers(0, 3)),
    min_size=3,
    max_size=10,
)


def agreement(found, asked=ASKED):
    table = picture_agreement(found, SPECS, asked)
    assert tuple(table.columns) == PICTURE_COLUMNS
    return table.set_index("metric")


@given(VALUES)
def test_weighted_tau_is_scipys_of_values_that_are_repeated(rows):
    x, y, times = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    (found,) = weighted_kendall(x, y, times[None])
    first, second = (np.repeat(side, times.astype(int)) for side in (x, y))
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert np.isnan(found)
        return
    # Ranks, since scipy takes a difference of infinities for a missing value.
    expected = stats.kendalltau(stats.rankdata(first), stats.rankdata(second)).statistic
    assert found == pytest.approx(expected)


def test_both_numbers_are_those_of_all_pictures_as_people_and_the_metric_rank_them():
    human, table = human_score(FOUND, "mean-response"), agreement(FOUND)
    assert table.index.tolist() == ["psnr", "mse"]  # FID is of sets
    for name, sign in (("psnr", 1), ("mse", -1)):
        values = sign * FOUND.scores[name]
        assert table.loc[name, "rho"] == pytest.approx(stats.spearmanr(values, human).statistic)
        assert table.loc[name, "tau"] == pytest.approx(stats.kendalltau(values, human).statistic)
    assert (table["n"] == 45).all()
    assert (table["n_originals"] == 15).all()
    for sign in ("rho", "tau"):
        inside = table[sign].between(table[f"{sign}_low"], table[f"{sign}_high"])
        assert inside.all()


def test_the_interval_is_of_the_rankings_without_each_original():
    human, layout = human_score(FOUND, "mean-response"), layout_of(FOUND.images)
    values, row = FOUND.scores["psnr"], agreement(FOUND).loc["psnr"]
    without = [
        stats.spearmanr(values[layout.original != one], human[layout.original != one]).statistic
        for one in range(15)
    ]
    reach = stats.t.ppf(0.975, 14) * error_of(row["rho"], without, 15) / (1 - row["rho"] ** 2)
    expected = np.tanh(np.arctanh(row["rho"]) + reach * np.array([-1, 1]))
    assert row[["rho_low", "rho_high"]].tolist() == pytest.approx(expected.tolist())


def test_few_originals_give_no_interval_and_say_so():
    table = agreement(evidence(n_models=20, n_originals=5))
    assert table["rho"].notna().all()
    assert table[["rho_low", "rho_high", "tau_low", "tau_high"]].isna().all(axis=None)
    why = "no interval: 5 originals, fewer than 6"
    assert set(table["interval_undefined"]) == {why}


def test_pictures_of_one_original_are_left_out_together():
    """Copies of a study's pictures add nothing: the range stays what it was."""
    single = evidence(n_models=1, n_originals=15)
    again = single.images.assign(model="again")
    said = single.recognised
    twice = replace(
        single,
        images=pd.concat([single.images, again], ignore_index=True),
        recognised=replace(
            said,
            image=np.concatenate([said.image, said.image + 15]),
            annotator=np.tile(said.annotator, 2),
            values=np.tile(said.values, 2),
            shape=(30, said.shape[1]),
        ),
        scores={name: np.tile(values, 2) for name, values in single.scores.items()},
    )
    once, both = agreement(single), agreement(twice)
    for name in ("rho", "rho_low", "rho_high"):
        assert both[name].tolist() == pytest.approx(once[name].tolist())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"scores": {"psnr": np.full(45, 3.0)}}, "metric: the same value for every picture"),
        (
            {"recognised": FOUND.recognised.of(np.zeros(len(FOUND.recognised.values)))},
            "people: the same value for every picture",
        ),
        (
            {"scores": {"psnr": np.r_[1.0, 2.0, np.full(43, np.nan)]}},
            "a ranking needs at least 3 pictures; there are 2",
        ),
    ],
)
def test_what_cannot_be_ranked_says_why_and_has_no_number(changed, why):
    row = agreement(replace(FOUND, **changed)).loc["psnr"]
    assert row["undefined"] == why
    assert row[["rho", "tau", "rho_low", "tau_high"]].isna().all()


def test_a_ranking_that_hangs_on_one_original_has_no_range():
    """Without that original there is none."""
    said = FOUND.recognised
    first = FOUND.images["image_id"].eq(FOUND.images["image_id"].iloc[0]).to_numpy()
    only = replace(FOUND, recognised=said.of(np.where(first[said.image], 1.0, 0.0)))
    row = agreement(only).loc["psnr"]
    assert -1 <= row["rho"] <= 1
    assert row["interval_undefined"] == "no interval: without some original there is no number"
    assert row[["rho_low", "rho_high", "tau_low", "tau_high"]].isna().all()
