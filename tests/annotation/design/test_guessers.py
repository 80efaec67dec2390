"""What somebody reaches who sees the candidate lists alone."""

import math
import random

import pytest

from annotation import spec
from annotation.design.candidates import (
    BOUND,
    BOUNDED,
    Lists,
    balanced_lists,
    candidate_list,
    guesses,
    learned,
    most_right,
    ranked,
    said,
)


def reached(lists, answers):
    return {one.name: one.rate for one in guesses(Lists.of(lists, answers))}


def test_whoever_takes_the_rarest_word_finds_a_class_that_stands_on_its_own_list_only():
    lists = [("a", "x", "y"), ("b", "x", "y"), ("c", "x", "y")]
    found = reached(lists, "abc")
    assert found["rarest"] == 1
    assert found["commonest"] == 0
    assert found["told-originals"] == 1


def test_whoever_learns_from_lists_names_what_their_memory_holds_and_no_more():
    words = tuple("abcdefghij")
    same, other = [words] * 20, [tuple(f"{k}{w}" for w in words) for k in range(20)]
    assert learned(same, "a" * 20, 0.0) == pytest.approx(0.1)  # nothing to remember: by chance
    assert learned(same, "a" * 20, 1.0) == 1
    # One list: right as soon as it was recognised once, and by a guess in ten before.
    waits = sum(0.7**k for k in range(1, 21)) / 20
    assert learned(same, "a" * 20, 0.3) == pytest.approx(1 - 0.9 * waits, abs=0.02)
    # Lists that never come again, of words that never come again, tell nothing: the control.
    assert learned(other, [one[0] for one in other], 0.3) == pytest.approx(0.37, abs=0.03)


def test_words_that_tie_are_guessed_among():
    assert reached([("a", "b"), ("a", "b")], "ab")["rarest"] == 0.5


def test_a_word_far_from_the_others_in_the_alphabet_stands_out():
    words = [f"{k:02d}" for k in range(15)]
    lists = [(*words[:4], "07"), (*words[:4], "10"), tuple(words[4:9]), tuple(words[10:15])]
    found = reached(lists, ["07", "10", "04", "14"])["outside-the-run"]
    assert found == pytest.approx((2 + 2 / 5) / 4)  # in a run, any of the five


def test_the_word_that_its_neighbours_bring_along_is_in_the_midst():
    # Each word is listed with its two neighbours on a ring.
    classes = [f"{k:02d}" for k in range(12)]
    lists = [[classes[(k + d) % 12] for d in (-2, -1, 0, 1, 2)] for k in range(12)]
    assert reached(lists, classes)["central"] == 1


def test_the_place_of_the_first_word_is_where_the_word_in_the_midst_usually_stands():
    # As above; third in the alphabet on 8 of the 12 lists. The answers themselves do not matter.
    classes = [f"{k:02d}" for k in range(12)]
    lists = [[classes[(k + d) % 12] for d in (-2, -1, 0, 1, 2)] for k in range(12)]
    assert reached(lists, classes)["first-word-place"] == 8 / 12
    assert reached(lists, [*classes[1:], "00"])["first-word-place"] == 1 / 12
    assert reached([("a", "b", "c")] * 3, "aaa")["first-word-place"] == pytest.approx(1 / 3)


def test_places_are_those_in_which_people_read_the_words():
    answers = ["Zebra", "bee_hive", "beer"]
    shown = [candidate_list(one, ["ant", *answers], 4, rng=random.Random(0)) for one in answers]
    lists = Lists.of([one.classes for one in shown], answers)
    assert lists.right.tolist() == [one.true_position for one in shown] == [3, 1, 2]


def test_the_usual_place_is_that_of_the_other_lists():
    found = reached([("a", "b"), ("a", "b"), ("a", "b")], "aab")
    assert found["usual-place"] == 0.5 * 2 / 3  # twice one each way to guess, once never


def test_the_sentence_warns_only_above_the_bound():
    fair = guesses(Lists.of([("a", "b"), ("a", "b")], "ab"))
    told = guesses(Lists.of([("a", "x", "y"), ("b", "x", "y")], "ab"))
    assert "Warning" not in said(fair)
    assert "not above 1.5 times chance" in said(fair)
    assert "Warning" in said(told)
    assert "100.0%" in said(told)
    assert "100.0% by the words that are answers somewhere" in said(told)
    assert "50.0% by the words that are answers somewhere" in said(fair)
    assert said(()) == ""


def made_study(seed, lists="original"):
    """The classes, answers and rankings of a random study; the judge is sharp, blind or between.

    A list for each original, or one for each of several items of every original.
    """
    rng = random.Random(seed)
    classes = [f"c{k:03d}" for k in range(rng.choice([10, 20, 24, 40, 60, 100, 200]))]
    used = rng.sample(classes, rng.randint(max(2, len(classes) // 4), len(classes)))
    answers = rng.choices(used, k=rng.choice([24, 48, 100]))
    at = {name: (rng.gauss(0, 1), rng.gauss(0, 1)) for name in classes}
    # As it is, as probabilities of double precision, and as ones rounded to six digits.
    sharp, digits = rng.choice([0, 0.3, 1, 3, 10, 40]), rng.choice([None, 6, 300])

    def ranking(answer):
        log = {c: rng.gauss(0, 1) - sharp * math.dist(at[c], at[answer]) for c in classes}
        if digits is None:
            return ranked(log, rng)
        return ranked(
            {c: round(math.exp(x - max(log.values())), digits) for c, x in log.items()}, rng
        )

    rankings = [ranking(answer) if sharp else () for answer in answers]
    if lists == "original":
        return classes, answers, rankings, rng
    n_items, some = rng.choice([2, 5, 14]), slice(24)
    return classes, answers[some] * n_items, rankings[some] * n_items, rng


@pytest.mark.parametrize("per", spec.Lists)
def test_no_bounded_guesser_sees_through_balanced_lists(per):
    for seed in range(40):
        classes, answers, rankings, rng = made_study(seed, per)
        lists = balanced_lists(answers, classes, 20, rankings, rng=rng)
        for one, answer in zip(lists, answers, strict=True):
            assert one.true_class == answer
            assert len(set(one.classes)) == len(one.classes) == min(20, len(classes))
        found = guesses(Lists.of([one.classes for one in lists], answers))
        assert {one.name for one in found if one.bounded} == set(BOUNDED)
        best = most_right(found)
        assert best.rate <= BOUND * best.chance + 1e-9, (seed, best)


@pytest.mark.parametrize("n_classes", [20, 40])
def test_no_drawing_hides_where_a_common_answer_stands(n_classes):
    """Why `usual-place` is told and not bounded: the order of the alphabet gives its place away."""
    classes = [f"c{k:03d}" for k in range(n_classes)]
    answers = [classes[0]] * 12 + classes[1:13]
    for seed in range(20):
        rankings = [()] * len(answers)
        lists = balanced_lists(answers, classes, 20, rankings, rng=random.Random(seed))
        assert {one.true_position for one in lists[:12]} == {0}
        found = guesses(Lists.of([one.classes for one in lists], answers))
        usual = next(one for one in found if one.name == "usual-place")
        assert usual.rate >= 12 / 24 > BOUND * usual.chance
        assert not usual.bounded
        assert not most_right(found).too_good


def test_lists_of_the_likeliest_words_are_seen_through():
    """The control: the same studies, drawn the other way."""
    seen_through = 0
    for seed in range(40):
        classes, answers, rankings, rng = made_study(seed)
        lists = [
            candidate_list(answer, classes, 20, ranking, rng=rng)
            for answer, ranking in zip(answers, rankings, strict=True)
        ]
        found = guesses(Lists.of([one.classes for one in lists], answers))
        seen_through += most_right(found).too_good
    assert seen_through > 10


def test_the_same_generator_draws_the_same_lists():
    classes, answers, rankings, _ = made_study(8)
    drawn = [balanced_lists(answers, classes, 20, rankings, rng=random.Random(3)) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_ties_of_a_ranking_are_not_broken_by_the_alphabet():
    names = [f"c{k}" for k in range(9)]
    firsts = {ranked(dict.fromkeys(names, 0.0), random.Random(seed))[0] for seed in range(60)}
    assert len(firsts) > 5
    assert ranked({"a": 0.1, "b": 0.7, "c": 0.2}, random.Random(0)) == ("b", "c", "a")
