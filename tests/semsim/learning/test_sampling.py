"""Triplets are of one original, balanced, in the order of votes, and hard where they are mined."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.learning import TrainSettings
from semsim.learning.epoch import ORIGINALS_A_BATCH, draw, semi_hard
from semsim.learning.triplets import ImageIndex, JudgedOriginal, learnable, take_stock

# For each original, how many of five recognised each of its reconstructions.
VOTES = st.lists(
    st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(lambda v: min(v) < 3 <= max(v)),
    min_size=1,
    max_size=6,
)
SEEDS = st.integers(0, 2**16)
ORDERINGS = st.sampled_from(["majority", "votes"])
MININGS = st.sampled_from(["random", "semi-hard"])
quickly = settings(max_examples=40, deadline=None)


def study(votes):
    rows = [
        {
            "dataset": "d",
            "image_id": str(image),
            "original": f"/{image}/original.png",
            "reconstruction": f"/{image}/{number}-{n}.png",
            "n_votes": 5,
            "n_recognised": n,
            "votes_per_item": 5,
            "recognisable": n >= 3,
        }
        for image, counts in enumerate(votes)
        for number, n in enumerate(counts)
    ]
    return pd.DataFrame(rows).astype({"recognisable": "boolean"})


def made(votes, ordering, mining, seed, count=4, batch_size=128):
    chosen = TrainSettings(
        ordering=ordering, mining=mining, triplets_per_original=count, batch_size=batch_size
    )
    originals = learnable(take_stock(votes), ordering)
    index = ImageIndex(originals)
    features = torch.randn(len(index.paths), 3, generator=torch.Generator().manual_seed(seed))
    drawn = draw(index, originals, chosen, np.random.default_rng(seed), features)
    return index, drawn, originals


def share(path):
    return int(path.stem.split("-")[1]) / 5


@quickly
@given(VOTES, ORDERINGS, MININGS, st.integers(1, 7), st.integers(1, 40), SEEDS)
def test_every_triplet_is_of_one_original_and_in_the_order_of_its_votes(
    votes, ordering, mining, count, batch_size, seed
):
    index, drawn, originals = made(study(votes), ordering, mining, seed, count, batch_size)
    assert drawn.triplets.shape == (len(originals) * count, 3)
    for row, weight in zip(drawn.triplets, drawn.weights, strict=True):
        a, p, n = (index.paths[number] for number in row)
        assert a.name == "original.png"
        assert a.parent == p.parent == n.parent
        assert share(p) > share(n)
        if ordering == "majority":
            assert share(p) > 0.5 > share(n)
            assert weight == 1
        else:
            assert weight == pytest.approx(share(p) - share(n), abs=1e-6)  # float32
    anchors = drawn.triplets[:, 0].tolist()
    assert {anchors.count(anchor) for anchor in anchors} == {count}


@quickly
@given(VOTES, st.integers(1, 9), SEEDS)
def test_reconstructions_of_a_kind_are_used_alike(votes, count, seed):
    index, drawn, originals = made(study(votes), "majority", "random", seed, count)
    for column, kind in ((1, "recognisable"), (2, "unrecognisable")):
        used = drawn.triplets[:, column].tolist()
        for original in originals:
            uses = [used.count(index.number(path)) for path in getattr(original, kind)]
            assert sum(uses) == count
            assert max(uses) - min(uses) <= 1


@quickly
@given(VOTES, ORDERINGS, SEEDS)
def test_the_same_seed_draws_the_same_triplets_whatever_the_order_of_the_labels(
    votes, ordering, seed
):
    labels = study(votes)
    shuffled = labels.sample(frac=1, random_state=seed)
    first, again = (made(table, ordering, "random", seed) for table in (labels, shuffled))
    assert first[0].paths == again[0].paths
    assert np.array_equal(first[1].triplets, again[1].triplets)
    assert np.array_equal(first[1].weights, again[1].weights)


def many(originals):
    return study([(5, 4, 1, 0)] * originals)


@quickly
@given(st.integers(1, 19), st.integers(1, 9), st.integers(1, 40), SEEDS)
def test_every_full_batch_has_several_originals(originals, count, batch_size, seed):
    drawn = made(many(originals), "majority", "random", seed, count, batch_size)[1]
    anchors = drawn.triplets[:, 0]
    full = [anchors[i : i + batch_size] for i in range(0, len(anchors), batch_size)]
    for batch in full[: len(anchors) // batch_size]:
        assert len(set(batch.tolist())) >= min(ORIGINALS_A_BATCH, originals, batch_size)


def runs(anchors):
    """How often the original changes from one triplet to the next, and one."""
    return 1 + np.count_nonzero(np.diff(anchors))


def test_triplets_of_an_original_stay_together_where_a_batch_has_room_for_several():
    for batch_size, handfuls in ((32, 1), (128, 1), (16, 2), (15, 3), (4, 8), (1, 8)):
        drawn = made(many(12), "majority", "random", 0, count=8, batch_size=batch_size)[1]
        assert runs(drawn.triplets[:, 0]) == 12 * handfuls


def test_originals_and_their_triplets_come_in_another_order_from_another_seed():
    first, other = (made(many(12), "majority", "random", seed, count=8)[1] for seed in (0, 1))
    orders = [list(dict.fromkeys(one.triplets[:, 0].tolist())) for one in (first, other)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])
    of_one = [one.triplets[one.triplets[:, 0] == 0] for one in (first, other)]
    assert not np.array_equal(*of_one)


@pytest.mark.parametrize(
    ("minus", "expected"),
    [
        ([0.5, 1.5, 3.0], {1}),  # only 1.5 lies between 1 and 2
        ([1.2, 1.9, 0.1], {0, 1}),
        ([0.2, 0.9, 5.0], {1}),  # none inside: the mildest of the nearer ones
        ([1.0, 9.0], {0}),  # a tie with the positive is nearer, not inside
        ([4.0, 2.5, 2.0], {2}),  # all far enough: the nearest
    ],
)
def test_what_is_semi_hard(minus, expected):
    rng = np.random.default_rng(0)
    assert {semi_hard(1.0, np.array(minus), 1.0, rng) for _ in range(30)} == expected


def test_mining_looks_at_the_features_it_is_given():
    original = JudgedOriginal(
        dataset="d",
        image_id="0",
        image=Path("o"),
        recognisable=(Path("p"),),
        unrecognisable=(Path("easy"), Path("inside"), Path("hard")),
        undecided=0,
    )
    index = ImageIndex([original])
    at = {"o": 0.0, "p": 1.0, "easy": 9.0, "inside": 1.5, "hard": 0.1}
    features = torch.tensor([[at[path.name]] for path in index.paths])
    mined = TrainSettings(mining="semi-hard", triplets_per_original=6)
    drawn = draw(index, [original], mined, np.random.default_rng(0), features)
    assert {index.paths[number].name for number in drawn.triplets[:, 2]} == {"inside"}
