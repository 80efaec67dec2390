import math

import numpy as np
import pytest
from made_ballots import random_votes
from made_votes import evidence, said, scores_of, table_of, votes_of
from scipy import stats

from semsim.base.stats.ceiling import MOST_SPLITS, ceiling_of_votes, human_ceiling, splits
from semsim.base.stats.correlation import bonett_wright, kendall_score
from semsim.base.stats.evidence import gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.resampling import resample

FOUND = evidence(n_models=6, n_originals=12, annotators=3)
LAYOUT = layout_of(FOUND.images)
VOTES = table_of(FOUND.recognised)
DRAWN = resample(LAYOUT, 100, 9, 0)


def ceiling_of(found):
    layout = layout_of(found.images)
    return human_ceiling(found.recognised, layout, resample(layout, 0, 0, 0))


def test_the_mean_over_splits_by_a_loop():
    ceiling = human_ceiling(FOUND.recognised, LAYOUT, DRAWN)
    rho, tau = [], []
    for one in range(3):
        others = [a for a in range(3) if a != one]
        alone = [VOTES[LAYOUT.model == m, one].mean() for m in range(6)]
        rest = [VOTES[LAYOUT.model == m][:, others].mean() for m in range(6)]
        rho.append(stats.spearmanr(alone, rest).statistic)
        tau.append(stats.kendalltau(alone, rest).statistic)
    assert (ceiling.rho, ceiling.tau) == pytest.approx((np.mean(rho), np.mean(tau)))
    assert (ceiling.n_annotators, ceiling.sizes, ceiling.n_splits) == (3, (1, 2), 3)
    assert (ceiling.rho_low, ceiling.rho_high) == bonett_wright(ceiling.rho, 6)
    assert (ceiling.tau_low, ceiling.tau_high) == kendall_score(ceiling.tau, 6)
    assert ceiling.n_models == 6


def test_three_models_have_a_ceiling_without_an_interval():
    votes = {(f"m{m}", str(i)): "11" if i <= m else "00" for m in range(3) for i in range(5)}
    ceiling = ceiling_of(gather(votes_of(votes), scores_of({}), ()))
    assert (ceiling.rho, ceiling.rho_low, ceiling.tau_high) == (1, None, None)
    assert ceiling.interval_undefined == "no interval: 3 models, fewer than 6"


def test_people_who_all_agree_predict_each_other():
    votes = {(f"m{m}", str(i)): "11" if i <= m else "00" for m in range(6) for i in range(6)}
    found = gather(votes_of(votes), scores_of({}), ())
    ceiling = ceiling_of(found)
    assert (ceiling.rho, ceiling.tau) == pytest.approx((1, 1))
    assert (ceiling.rho_low, ceiling.rho_high) == bonett_wright(1, 6)
    assert (ceiling.tau_low, ceiling.tau_high) == kendall_score(1, 6)
    assert ceiling.rho_low < 0.9  # chance alone ranks 6 models alike once in 720 times


@pytest.mark.parametrize(("annotators", "n"), [(2, 1), (3, 3), (4, 3), (5, 10), (6, 10), (8, 35)])
def test_every_split_once(annotators, n):
    found = splits(annotators, DRAWN)
    assert len(found) == len(set(found)) == n
    halves = {frozenset([frozenset(g), frozenset(range(annotators)) - set(g)]) for g in found}
    assert len(halves) == n
    assert {len(group) for group in found} == {annotators // 2}


def test_of_many_splits_some_are_drawn():
    assert math.comb(11, 5) > MOST_SPLITS
    found = splits(11, DRAWN)
    assert len(set(found)) == MOST_SPLITS
    assert found == splits(11, DRAWN)


def test_only_images_judged_by_both_groups_count():
    # p1 alone has judged the images "x": they must not move p1's ranking.
    votes = {(f"m{m}", str(i)): "11" if i <= m else "00" for m in range(4) for i in range(5)}
    votes |= {(f"m{m}", "x"): "-1" if m == 0 else "-0" for m in range(4)}
    found = gather(votes_of(votes), scores_of({}), ())
    assert ceiling_of(found).rho == pytest.approx(1)


def test_a_single_annotator_has_nobody_to_predict():
    ceiling = human_ceiling(said(VOTES[:, :1]), LAYOUT, DRAWN)
    assert ceiling.undefined == "1 annotator; to predict each other takes at least 2"
    assert ceiling.rho is None


def test_people_who_share_no_image_have_no_ceiling():
    recognised = VOTES[:, :2].copy()
    recognised[::2, 0] = np.nan
    recognised[1::2, 1] = np.nan
    ceiling = human_ceiling(said(recognised), LAYOUT, DRAWN)
    assert "no split of the annotators" in ceiling.undefined


def test_a_table_of_votes_has_the_ceiling_of_its_evidence():
    votes = random_votes(models=4)
    found = gather(votes, scores_of({}), ())
    assert ceiling_of_votes(votes) == ceiling_of(found)
    trials = votes.assign(status="quality")
    assert ceiling_of_votes(trials).undefined == "there are no votes yet"
