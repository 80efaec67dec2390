"""Lists hold the true class, at most `size` classes, in the order people expect."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.design.candidates import candidate_list
from annotation.errors import StudyError

CLASSES = ("zebra", "Cat", "apple", "chess_knight", "chess_king", "dog")
names = st.lists(st.text("abcXYZ_", min_size=1, max_size=4), min_size=1, max_size=40, unique=True)


def make(true_class="dog", classes=CLASSES, size=3, ranking=(), seed=0):
    return candidate_list(true_class, classes, size, ranking, rng=random.Random(seed))


@given(names, st.integers(2, 20), st.integers(0, 99), st.data())
def test_any_list(classes, size, seed, data):
    true_class = data.draw(st.sampled_from(classes))
    ranking = data.draw(st.permutations(classes))[: data.draw(st.integers(0, len(classes)))]
    made = make(true_class, classes, size, ranking, seed)
    assert made.classes[made.true_position] == true_class
    assert len(made.classes) == len(set(made.classes)) == min(size, len(classes))
    assert set(made.classes) <= set(classes)
    shown = [name.replace("_", " ").casefold() for name in made.classes]
    assert shown == sorted(shown)
    assert set(ranking[: size - 1]) <= set(made.classes)
    assert made == make(true_class, classes, size, ranking, seed)


def test_the_ranking_chooses_the_distractors():
    made = make(ranking=("Cat", "dog", "zebra", "apple"))
    assert made.classes == ("Cat", "dog", "zebra")
    assert (made.true_rank, made.forced) == (2, False)


def test_a_true_class_the_ranking_misses_is_forced_in_and_logged():
    made = make(ranking=("Cat", "zebra", "apple", "dog"))
    assert made.classes == ("Cat", "dog", "zebra")
    assert (made.true_rank, made.forced) == (4, True)


def test_without_ranking_the_seed_chooses():
    lists = {make(seed=seed).classes for seed in range(20)}
    assert len(lists) > 3
    assert make().true_rank is None
    assert not make().forced


def test_a_short_list_of_classes_is_offered_whole():
    made = make(size=20, ranking=("Cat",))
    assert made.classes == ("apple", "Cat", "chess_king", "chess_knight", "dog", "zebra")
    assert not made.forced


def test_names_the_data_set_does_not_have_are_no_distractors():
    assert "wolf" not in make(ranking=("wolf", "Cat", "dog")).classes


def test_the_hash_is_of_the_classes():
    assert make().sha256 == make().sha256
    assert make(seed=1).sha256 != make(seed=2).sha256


def test_an_unknown_true_class_is_an_error():
    with pytest.raises(StudyError, match="'wolf'"):
        make("wolf")
