"""The plan is a Latin square, and nobody sees more of an original than is allowed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.design.exposure import (
    Candidate,
    Seen,
    cell_of,
    cells_in_order,
    choose,
    fits,
    source_ranks,
)
from annotation.spec import StudySpec, Task


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 30), st.integers())
def test_each_block_has_every_original_once_and_every_model_equally_often(models, n, seat, seed):
    ranks = source_ranks([str(i) for i in range(n)], seed)
    for cell in cells_in_order(seat, models, originals=False):
        block = [
            (source, model)
            for source, rank in ranks.items()
            for model in range(models)
            if cell_of(rank, model, models) == cell
        ]
        assert Counter(source for source, _ in block) == dict.fromkeys(ranks, 1)
        per_model = [Counter(model for _, model in block)[model] for model in range(models)]
        assert max(per_model) - min(per_model) <= 1


@given(st.integers(1, 9), st.integers(0, 30), st.booleans())
def test_everybody_works_through_all_cells_and_originals_come_last(models, seat, originals):
    order = cells_in_order(seat, models + originals, originals=originals)
    assert sorted(order) == list(range(models + originals))
    assert not originals or order[-1] == models


@given(st.integers(1, 9), st.integers(0, 30))
def test_people_who_join_one_after_the_other_meet_the_models_equally_often(models, seat):
    orders = [cells_in_order(seat + n, models, originals=False) for n in range(models)]
    for block in range(models):
        assert sorted(order[block] for order in orders) == list(range(models))


def test_the_seed_alone_decides_the_ranks():
    names = [f"{i:02}" for i in range(30)]
    assert source_ranks(names, 1) == source_ranks(names[::-1], 1)
    assert source_ranks(names, 1) != source_ranks(names, 2)
    assert sorted(source_ranks(names, 1).values()) == list(range(30))


def candidates(text):
    """One for each letter: its original; an upper-case letter is the original itself."""
    return [
        Candidate(item=f"{i}{letter}", source=letter.lower(), is_original=letter.isupper())
        for i, letter in enumerate(text)
    ]


def limits(**more):
    return StudySpec(name="s", task=Task.PAIR, **more)


def letters(chosen):
    return "".join(item[-1] for item in chosen)


def test_without_limits_the_best_are_given_in_their_order():
    assert choose(candidates("aabc"), 3, limits(), Seen()) == ["0a", "1a", "2b"]


def test_views_are_never_exceeded():
    of, seen = limits(max_views=2), Seen(views={"a": 1, "b": 2})
    assert letters(choose(candidates("aaabbc"), 9, of, seen)) == "ac"


def test_an_item_somebody_had_before_is_no_further_view():
    seen = Seen(views={"a": 1}, again=frozenset({"1a"}))
    assert choose(candidates("aaa"), 9, limits(max_views=1), seen) == ["1a"]


def test_the_lag_is_kept_while_there_are_others():
    seen = Seen(recent=("c", "a"))
    assert letters(choose(candidates("aabc"), 9, limits(min_lag=2), seen)) == "bca"
    assert letters(choose(candidates("aab"), 9, limits(min_lag=2), seen)) == "b"


def test_the_lag_gives_way_where_nothing_else_is_left():
    seen = Seen(recent=("a", "b"))
    assert letters(choose(candidates("bbaa"), 9, limits(min_lag=2), seen)) == "abab"


def test_nothing_comes_after_the_original_itself():
    seen = Seen(views={"a": 1}, named=frozenset({"a"}))
    assert letters(choose(candidates("abA"), 9, limits(), seen)) == "bA"


def test_the_original_itself_waits_for_an_answer_to_a_trial_of_it():
    seen = Seen(waiting=frozenset("a"))
    assert letters(choose(candidates("aAB"), 9, limits(), seen)) == "aB"


def test_what_is_near_comes_only_where_the_lag_gives_way():
    seen, of = Seen(recent=("c", "b"), near=frozenset("a")), limits(min_lag=1)
    assert letters(choose(candidates("abc"), 9, of, seen)) == "cb"
    assert letters(choose(candidates("ab"), 1, of, seen)) == "a"
    assert letters(choose(candidates("ac"), 1, limits(), seen)) == "a"


@pytest.mark.parametrize(
    ("spec", "seen", "does"),
    [
        (limits(), Seen(views={"a": 9}, recent=("a",), near=frozenset("a")), True),
        (limits(max_views=2), Seen(views={"a": 1}), True),
        (limits(max_views=2), Seen(views={"a": 2}), False),
        (limits(max_views=2), Seen(views={"a": 2}, again=frozenset({"0a"})), True),
        (limits(min_lag=2), Seen(recent=("a", "b", "c")), True),
        (limits(min_lag=2), Seen(recent=("a", "b")), False),
        (limits(min_lag=2), Seen(near=frozenset("a")), False),
        (limits(), Seen(named=frozenset("a")), False),
    ],
)
def test_what_fits_keeps_every_limit(spec, seen, does):
    (one,) = candidates("a")
    assert fits(one, spec, seen) is does


views = st.none() | st.integers(1, 3)


@given(st.text("abcd", max_size=20), st.text("abcd", max_size=6), st.integers(0, 4), views)
def test_no_choice_breaks_the_limits(text, recent, lag, most):
    seen = Seen(views=Counter(recent), recent=tuple(recent))
    chosen = letters(choose(candidates(text), 10, limits(max_views=most, min_lag=lag), seen))
    shown = recent + chosen
    for letter in set(chosen):
        assert most is None or shown.count(letter) <= most
    near = [
        n for n in range(len(recent), len(shown)) if lag and shown[n] in shown[max(0, n - lag) : n]
    ]
    if near:  # then none was far when this was asked, and views were all that mattered
        may = [c for c in text if most is None or recent.count(c) < most]
        far = [c for c in may if c not in recent[-lag:]]
        assert far == []
