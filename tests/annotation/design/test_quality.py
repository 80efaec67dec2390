"""Items that never count are chosen by seed, and come when their place says so."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.design.quality import (
    MOST_AHEAD,
    Gold,
    Material,
    check_expected,
    counted,
    drawn,
    expected,
    gold_order,
    quality_items,
    repeated,
    schedule,
    set_aside,
)
from annotation.design.study_plan import Original, Reconstruction, plan_study
from annotation.domain import StimulusKind, TrialKind
from annotation.errors import StudyError
from annotation.spec import StudySpec, Task

CLASSES = ("cat", "cow", "star")


def spec(task=Task.RECOGNITION, **more):
    return StudySpec(name="s", task=task, **more)


def originals(*classes):
    return [
        Original(image_id=f"i{n}", class_name=name, sha256=f"o{n}")
        for n, name in enumerate(classes)
    ]


def material(of, images, aside=None, gold=()):
    """Two models; the error of a reconstruction is the number of its original."""
    return Material(
        originals=images,
        reconstructions=[
            Reconstruction(
                image_id=one.image_id,
                class_name=one.class_name,
                model=model,
                attack="invgrad",
                sha256=f"{model}{one.image_id}",
                error=float(one.image_id[1:]),
            )
            for model in ("a", "b")
            for one in images
        ],
        aside=set_aside(of, images, gold) if aside is None else aside,
        noise={one.image_id: f"noise{one.image_id}" for one in images},
        gold=gold,
    )


NINE = originals(*CLASSES * 3)


def test_originals_set_aside_are_spread_over_classes_by_seed():
    for seed in range(20):
        chosen = set_aside(spec(set_aside=3, seed=seed), NINE)
        names = {one.image_id: one.class_name for one in NINE}
        assert Counter(names[one] for one in chosen) == dict.fromkeys(CLASSES, 1)
    draws = {tuple(set_aside(spec(set_aside=3, seed=seed), NINE)) for seed in range(20)}
    assert len(draws) > 10
    assert set_aside(spec(set_aside=3), NINE) == set_aside(spec(set_aside=3), NINE)


def test_the_last_of_a_class_stays_as_long_as_another_has_one_to_spare():
    images = originals("cat", "cow", "star", "star", "star")
    names = {one.image_id: one.class_name for one in images}
    for seed in range(20):
        two, three = (set_aside(spec(set_aside=n, seed=seed), images) for n in (2, 3))
        assert [names[one] for one in two] == ["star", "star"]
        assert Counter(names[one] for one in three)["star"] == 2


def test_originals_of_gold_items_are_not_set_aside():
    gold = [Gold(model="a", image_id=f"i{n}", answer="cat") for n in range(6)]
    assert sorted(set_aside(spec(set_aside=3), NINE, gold)) == ["i6", "i7", "i8"]
    with pytest.raises(StudyError, match="cannot be set aside"):
        set_aside(spec(set_aside=4), NINE, gold)


def test_something_must_be_left():
    with pytest.raises(StudyError, match="9 of 9 originals cannot be set aside"):
        set_aside(spec(set_aside=9), NINE)
    gold = [Gold(model=m, image_id=f"i{n}", answer="cat") for m in "ab" for n in range(9)]
    with pytest.raises(StudyError, match="No reconstruction is left"):
        counted(material(spec(gold_rate=0.1), NINE, gold=gold))


def test_pairs_that_differ_need_two_labels():
    with pytest.raises(StudyError, match="two labels"):
        set_aside(spec(Task.PAIR, set_aside=2), originals("cat", "cat", "cat"))
    assert set_aside(spec(set_aside=2), originals("cat", "cat", "cat"))


def test_what_is_set_aside_or_gold_does_not_count():
    gold = [Gold(model="a", image_id="i8", answer="cat")]
    left = counted(material(spec(gold_rate=0.1), NINE, aside=["i0", "i1"], gold=gold))
    assert len(left) == 2 * 9 - 2 * 2 - 1
    assert not {"i0", "i1"} & {one.image_id for one in left}
    assert [one.model for one in left if one.image_id == "i8"] == ["b"]


def test_practice_goes_from_clear_to_the_worst():
    of = spec(set_aside=6, practice=10)
    items = quality_items(of, material(of, NINE))
    assert [item.kind for item in items] == [StimulusKind.PRACTICE] * 10
    assert [item.quality for item in items[:2]] == [None, None]
    strata = [item.quality for item in items[2:]]
    assert strata == sorted(strata)
    assert {0, 3} <= set(strata)
    assert len({item.shown.sha256 for item in items}) == 10
    assert all(item.expected == item.shown.class_name for item in items)


def test_more_practice_than_there_is():
    of = spec(set_aside=2, practice=7)
    with pytest.raises(StudyError, match="give 6"):
        quality_items(of, material(of, NINE))
    of = spec(set_aside=2, practice=6)
    assert len(quality_items(of, material(of, NINE))) == 6


def test_catch_trials_are_clear_or_noise():
    of = spec(set_aside=3, catch_rate=0.1)
    made = material(of, NINE)
    items = quality_items(of, made)
    assert Counter(item.expected for item in items) == {"none": 3, "cat": 1, "cow": 1, "star": 1}
    for item in items:
        noise = item.expected == "none"
        assert item.shown.sha256 == (f"noise{item.image_id}" if noise else f"o{item.image_id[1:]}")
        assert item.image_id in made.aside


def test_pairs_to_catch_are_the_same_different_or_noise():
    of = spec(Task.PAIR, set_aside=3, catch_rate=0.1, practice=9)
    names = {one.image_id: one.class_name for one in NINE}
    items = quality_items(of, material(of, NINE))
    catch = [item for item in items if item.kind is StimulusKind.CATCH]
    assert Counter(item.expected for item in catch) == {"same": 3, "different": 6}
    for item in items:
        same = item.shown.class_name == names[item.image_id]
        assert item.expected == ("same" if same else "different")
    practice = [item for item in items if item.kind is StimulusKind.PRACTICE]
    assert set(Counter(item.expected for item in practice).values()) <= {4, 5}


def test_gold_items_are_what_the_researcher_says():
    gold = [Gold(model="b", image_id="i4", answer="none")]
    of = spec(gold_rate=0.1)
    (item,) = quality_items(of, material(of, NINE, gold=gold))
    assert (item.kind, item.shown.sha256, item.expected) == (StimulusKind.GOLD, "bi4", "none")
    with pytest.raises(StudyError, match="expected both or neither"):
        quality_items(spec(), material(spec(), NINE, gold=gold))
    with pytest.raises(StudyError, match="expected both or neither"):
        quality_items(of, material(of, NINE))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("x", "i1")], "f, line 2: The sets hold no reconstruction of 'i1' by 'x'"),
        ([("a", "i1"), ("a", "i1")], r"f, line 3: .* has an answer already \(f, line 2:\)"),
    ],
)
def test_gold_rows_that_fit_no_reconstruction(rows, words):
    gold = [
        Gold(model=model, image_id=image_id, answer="cat", where=f"f, line {line}: ")
        for line, (model, image_id) in enumerate(rows, start=2)
    ]
    with pytest.raises(StudyError, match=words):
        counted(material(spec(gold_rate=0.1), NINE, gold=gold))


@pytest.mark.parametrize(
    ("task", "answer", "good"),
    [
        (Task.RECOGNITION, "none", True),
        (Task.RECOGNITION, "horse", False),
        (Task.PAIR, "different", True),
        (Task.PAIR, "cat", False),
    ],
)
def test_the_answer_expected_must_be_offered(task, answer, good):
    of = spec(task, gold_rate=0.1)
    made = material(of, NINE, gold=[Gold(model="a", image_id="i1", answer=answer)])
    plan = plan_study(
        of,
        dataset="d",
        classes=CLASSES,
        originals=NINE,
        reconstructions=counted(made),
        n_failed=0,
        quality=quality_items(of, made),
    )
    if good:
        check_expected(plan)
    else:
        with pytest.raises(StudyError, match="is not offered"):
            check_expected(plan)


kinds = st.sampled_from((TrialKind.CATCH, TrialKind.GOLD, TrialKind.REPEAT))
rates = st.floats(0.01, 0.5)


@given(kinds, rates, st.integers(0, 9), st.integers(0, 60))
def test_one_trial_in_each_block(kind, rate, seat, lag):
    of = spec(
        set_aside=1, catch_rate=rate, gold_rate=rate, repeat_rate=rate, repeat_lag=lag, seed=seat
    )
    start = lag + 1 if kind is TrialKind.REPEAT else 0
    found = schedule(kind, seat, (of, 0))
    for ordinal in range(12):
        inside = found.place(ordinal) - start
        assert int(ordinal / rate) <= inside <= (ordinal + 1) / rate


@given(kinds, rates, st.integers(0, 9), st.integers(0, 300))
def test_due_is_the_number_of_places_before(kind, rate, seat, votes):
    of = spec(set_aside=1, catch_rate=rate, gold_rate=rate, repeat_rate=rate, seed=seat)
    found = schedule(kind, seat, (of, 0))
    places = [found.place(ordinal) for ordinal in range(160)]
    assert found.due(votes) == sum(where < votes for where in places)


@given(kinds, rates, st.integers(0, 400), st.integers(0, 60))
def test_about_as_many_answers_are_expected_as_come(kind, rate, votes, lag):
    none = {"catch_rate": 0.0, "gold_rate": 0.0, "repeat_rate": 0.0}
    of = spec(set_aside=1, practice=3, repeat_lag=lag, **{**none, f"{kind}_rate": rate})
    assert abs(expected(of, votes, 10_000) - 3 - schedule(kind, 0, (of, 0)).due(votes)) <= 1
    assert expected(of, votes, 0) == 3 or kind is not TrialKind.GOLD


def test_no_trials_at_rate_zero_and_places_of_their_own_for_everybody():
    assert schedule(TrialKind.REPEAT, 0, (spec(repeat_rate=0), 0)).due(1000) == 0
    assert schedule(TrialKind.PRACTICE, 0, (spec(), 0)).due(1000) == 0
    of = spec(set_aside=1, catch_rate=0.05)
    firsts = [schedule(TrialKind.CATCH, seat, (of, 0)).place(0) for seat in range(40)]
    assert len(set(firsts)) > 10
    assert set(firsts) <= set(range(20))


@pytest.mark.parametrize(("before", "after"), [(0.5, 0.1), (0.1, 0.5), (0.0, 0.1)])
def test_after_an_amendment_trials_are_counted_from_there_under_new_numbers(before, after):
    first, second = (spec(set_aside=1, catch_rate=rate) for rate in (before, after))
    amended = schedule(TrialKind.CATCH, 3, (first, 0), (second, 100))
    start, block = amended.due(100), round(1 / after)
    assert start >= schedule(TrialKind.CATCH, 3, (first, 0)).due(100 + MOST_AHEAD)
    assert [amended.due(100 + n * block) - start for n in range(9)] == list(range(9))
    for n in range(9):
        assert n * block <= amended.place(start + n) - 100 < (n + 1) * block
    if start:  # one that was made before stays where it was
        assert amended.place(start - 1) == schedule(TrialKind.CATCH, 3, (first, 0)).place(start - 1)
    again = schedule(TrialKind.CATCH, 3, (first, 0), (second, 100), (first, 150))
    assert again.due(150) >= amended.due(150 + MOST_AHEAD)
    off = schedule(TrialKind.CATCH, 3, (second, 0), (spec(set_aside=1), 100))
    assert off.due(100) == off.due(10_000)


def test_after_a_longer_lag_repeats_go_on_at_once_where_there_are_votes_enough():
    short, long = (spec(repeat_rate=0.1, repeat_lag=lag) for lag in (10, 50))
    amended = schedule(TrialKind.REPEAT, 0, (short, 0), (long, 100))
    assert amended.due(110) - amended.due(100) == 1
    early = schedule(TrialKind.REPEAT, 0, (short, 0), (long, 20))
    assert early.due(51) == early.due(20)
    assert early.due(61) == early.due(20) + 1


def test_what_changes_no_rate_changes_no_place():
    of = spec(set_aside=1, catch_rate=0.2, repeat_rate=0.1)
    later = spec(set_aside=1, catch_rate=0.2, repeat_rate=0.3, title="T")
    found = schedule(TrialKind.CATCH, 4, (of, 0), (later, 30))
    for votes in range(90):
        assert found.due(votes) == schedule(TrialKind.CATCH, 4, (of, 0)).due(votes)


def test_all_items_come_before_any_comes_again_and_gold_comes_once():
    of = spec(set_aside=1, catch_rate=0.1, gold_rate=0.1)
    turns = [[drawn(of, 3, 5 * turn + i, 5) for i in range(5)] for turn in (0, 1)]
    assert [sorted(turn) for turn in turns] == [[0, 1, 2, 3, 4]] * 2
    assert drawn(of, 3, 0, 0) is None
    assert sorted(gold_order(of, 3, 4)) == [0, 1, 2, 3]
    assert gold_order(of, 3, 0) == []
    assert len({tuple(gold_order(of, seat, 4)) for seat in range(20)}) > 5


def test_what_is_repeated_is_one_of_those_free():
    draws = [repeated(spec(), 0, ordinal, ["x", "y", "z"]) for ordinal in range(40)]
    assert set(draws) == {"x", "y", "z"}
    assert repeated(spec(), 0, 0, []) is None
