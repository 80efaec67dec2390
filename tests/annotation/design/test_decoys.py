"""Decoys: another label, the same model, the nearest quality."""

import random
import time
from collections import Counter

import pytest
from helpers import limit
from hypothesis import given
from hypothesis import strategies as st

from annotation.design.study_plan import MOST_USES, Pair, decoys, quality_strata
from annotation.errors import StudyError


def pair(index, label, model="m", stratum=0):
    return Pair(image_id=str(index), label=label, model=model, stratum=stratum)


pairs_of_two_models = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("mn"), st.integers(0, 3)),
    min_size=4,
    max_size=40,
).map(
    lambda rows: (
        # every model has at least two labels
        [pair(f"{m}{label}", label, m) for m in "mn" for label in "ab"]
        + [pair(i, label, model, stratum) for i, (label, model, stratum) in enumerate(rows)]
    )
)


@given(pairs_of_two_models, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 9))
def test_any_decoys(pairs, rate, seed):
    made = decoys(pairs, rate, rng=random.Random(seed))
    used = Counter()
    for original, shown in made:
        others = [
            index
            for index, other in enumerate(pairs)
            if other.model == pairs[original].model and other.label != pairs[original].label
        ]
        assert shown in others
        cost = {
            other: (
                max(0, used[other] + 1 - MOST_USES),
                abs(pairs[other].stratum - pairs[original].stratum),
            )
            for other in others
        }
        assert cost[shown] == min(cost.values())
        used[shown] += 1
    for model, size in Counter(p.model for p in pairs).items():
        of_model = [original for original, _ in made if pairs[original].model == model]
        assert len(of_model) == len(set(of_model)) == int(rate * size + 0.5)
    assert made == decoys(pairs, rate, rng=random.Random(seed))


def test_another_image_of_the_same_label_is_no_decoy():
    pairs = [pair(0, "labrador"), pair(1, "labrador"), pair(2, "poodle")]
    made = decoys(pairs, 1.0, rng=random.Random(0))
    assert {shown for original, shown in made if original < 2} == {2}


def test_reconstructions_take_turns_as_decoys():
    pairs = [pair(i, str(i)) for i in range(10)]
    used = Counter(shown for _, shown in decoys(pairs, 1.0, rng=random.Random(0)))
    assert max(used.values()) <= 2


def test_nobody_learns_one_decoy_by_heart():
    # One poodle alone is as bad as the ten labradors, but there are better ones.
    pairs = [pair(i, "labrador", stratum=3) for i in range(10)] + [pair(10, "poodle", stratum=3)]
    pairs += [pair(11 + i, "poodle") for i in range(4)]
    made = decoys(pairs, 1.0, rng=random.Random(0))
    used = Counter(shown for original, shown in made if original < 10)
    assert used[10] == 2
    assert max(used.values()) <= 2
    alone = decoys(pairs[:11], 1.0, rng=random.Random(0))
    assert Counter(shown for original, shown in alone if original < 10) == {10: 10}


def test_one_label_only_is_an_error():
    with pytest.raises(StudyError, match="at least two classes"):
        decoys([pair(0, "a"), pair(1, "a")], 1.0, rng=random.Random(0))


def test_quality_strata_are_quantiles():
    assert quality_strata([0.4, 0.1, 0.3, 0.2]) == [3, 0, 2, 1]
    assert quality_strata([5.0] * 6) == [0] * 6
    assert quality_strata([]) == []
    assert Counter(quality_strata([i / 10 for i in range(40)])) == {0: 10, 1: 10, 2: 10, 3: 10}


def test_decoys_of_a_large_model_take_seconds():
    n = 20_000  # of each set beside each, they would take an hour
    pairs = [pair(index, str(index // 2), stratum=index % 4) for index in range(n)]
    began = time.process_time()
    assert len(decoys(pairs, 1.0, rng=random.Random(0))) == n
    assert time.process_time() - began < limit(20)
