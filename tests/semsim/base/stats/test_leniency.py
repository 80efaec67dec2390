"""Leniency of annotators is taken out of the votes; where it cannot be told, the reason stands."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from made_votes import scores_of, votes_of
from scipy.special import expit
from scipy.stats import kendalltau

from semsim.base.stats.evidence import gather
from semsim.base.stats.verdict import adjusted, human_score, judged


def made(n=400, leniency=(1.5, 0.5, -0.5, -1.5), models=4, seed=0):
    """Item, annotator, vote and model of votes that the model itself makes, and θ of the items."""
    draw = np.random.default_rng(seed)
    model = np.arange(n) % models
    theta = draw.normal(np.linspace(-1.5, 1.5, models)[model], 1.0)
    item, annotator = (one.ravel() for one in np.indices((n, len(leniency))))
    chance = expit(theta[item] + np.asarray(leniency)[annotator])
    return item, annotator, (draw.random(len(item)) < chance).astype(float), model[item], theta


def means(score, model):
    return np.bincount(model, score) / np.bincount(model)


def test_models_judged_by_lenient_people_do_not_gain_by_it():
    """Four models alike; two of four annotators judge each, other two the next one."""
    draw, lenient = np.random.default_rng(1), np.array([1.5, 0.5, -0.5, -1.5])
    item = np.repeat(np.arange(2000), 2)
    annotator = (item + np.tile([0, 1], 2000)) % 4
    chance = expit(draw.normal(0, 1, 2000)[item] + lenient[annotator])
    said = (draw.random(len(item)) < chance).astype(float)
    score, why = adjusted(item, annotator, said, item % 4)
    assert why == ""
    assert np.ptp(means(said, item % 4)) > 0.3
    assert np.ptp(means(score, np.arange(2000) % 4)) < 0.1


def test_the_order_that_made_the_votes_is_found():
    item, annotator, said, model, theta = made()
    score, _ = adjusted(item, annotator, said, model)
    assert kendalltau(score, theta).statistic > 0.5
    assert means(score, np.arange(len(score)) % 4).argsort().tolist() == [0, 1, 2, 3]


def test_all_scores_lie_within_0_and_1():
    score, _ = adjusted(*made(n=60)[:4])
    assert ((score > 0) & (score < 1)).all()


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_and_the_names_of_votes_do_not_matter(seed):
    item, annotator, said, model, _ = made(n=24)
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(item))
    called = draw.permutation(4)
    one, _ = adjusted(item, annotator, said, model)
    other, _ = adjusted(item[order], called[annotator[order]], said[order], model[order])
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_turning_every_vote_turns_every_score():
    item, annotator, said, model, _ = made(n=60)
    one, other = (adjusted(item, annotator, x, model)[0] for x in (said, 1 - said))
    np.testing.assert_allclose(other, 1 - one, atol=1e-8)


def of_models(**said):
    """Evidence of two models; annotators by letter, 1 or 0 for each image of m, then of n."""
    rows = {(m, str(i)): "".join(marks) for m, images in said.items()
            for i, marks in enumerate(zip(*images, strict=True))}  # fmt: skip
    return gather(votes_of(rows), scores_of({}), ())


def test_undefined_with_a_reason():
    none = np.array([], int)
    score, why = adjusted(none, none, none.astype(float), none)
    assert (score.shape, why) == ((0,), "there are no votes")
    cases = {
        "one annotator alone": {"m": ["101"]},
        "1 of 2 annotators recognise everything or nothing": {"m": ["101", "111"]},
        "2 of 3 annotators recognise everything or nothing": {"m": ["000", "111", "010"]},
    }
    for words, votes in cases.items():
        found = judged(of_models(**votes), "adjusted")
        assert found.undefined.startswith(f"Leniency: {words}")
        assert np.isnan(found.values).all()


def test_groups_that_share_no_model_are_not_compared():
    apart = of_models(m=["101", "110", "---"], n=["---", "---", "101"])
    assert judged(apart, "adjusted").undefined.startswith(
        "Leniency: the annotators are 2 groups that judged no target model in common"
    )
    # They need no picture in common: pictures of one model are enough.
    joined = of_models(m=["101-", "110-", "---0"], n=["---", "---", "101"])
    assert judged(joined, "adjusted").undefined is None


def test_an_image_without_a_vote_has_no_score():
    votes = votes_of({("m", "1"): "10", ("m", "2"): "01", ("m", "3"): "11"})
    labels = votes_of({("m", str(i)): "1" for i in range(1, 5)})
    found = gather(votes, scores_of({}), (), labels=labels.assign(votes_per_item=2))
    np.testing.assert_array_equal(np.isnan(human_score(found, "adjusted")), [0, 0, 0, 1])
