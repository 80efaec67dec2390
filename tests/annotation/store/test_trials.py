"""Trials look like items, are answered like items, and never count."""

import itertools
import uuid
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO

import pytest
from study_factory import DATABASES, kept, write_set

from annotation.design import quality
from annotation.domain import Answer, Step, StudyStatus, TrialKind, VoteStatus
from annotation.errors import AnswerError, ConflictError, NotAllowedError, NotFoundError
from annotation.spec import StudySpec, Task
from annotation.store.tables import (
    AnnotatorRow,
    SlotRow,
    StimulusRow,
    StudyRow,
    TrialRow,
    VoteRow,
)
from annotation.store.trials import schedules_of
from annotation.study import participants as people
from annotation.study.create import create_study
from annotation.study.exports import export_labels, export_votes
from annotation.study.labelling import (
    image_path,
    join,
    next_items,
    progress,
    progress_of,
    set_status,
    undo,
    vote,
    who,
)
from annotation.study.participants import erase
from annotation.study.protocols import amend

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = ("Cat", "Cat", "cow", "cow", "star", "star", "sun", "sun")


BOTH = pytest.mark.parametrize("store", DATABASES, indirect=True)


def each_on_one(name, *values):
    """Try each value on one of the databases: which of them it is, is asked of others."""
    pairs = [*zip(DATABASES, values, strict=True)]
    return pytest.mark.parametrize(("store", name), pairs, indirect=["store"])


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    return [write_set(folder / model, model=model, labels=LABELS) for model in ("a", "b")]


@pytest.fixture
def make(store, sets, images):
    """A study over two sets of eight images; `gold` are lines of a CSV file."""

    def make(task=Task.RECOGNITION, gold=(), **spec):
        made = StudySpec(name="s", task=task, **{"votes_per_item": 2, "repeat_rate": 0.0, **spec})
        if not gold:
            return kept(store, made, sets, images)
        table = StringIO("\n".join(["model,image_id,answer", *gold]))
        return create_study(store, made, sets, images, gold=table)

    return make


def signed_in(store, study, name, step=Step.MAIN):
    """Somebody at a step, however people get there."""
    session = join(store, study.token, name)

    def put(tx):
        tx.get(AnnotatorRow, session.annotator.id).step = step

    store.write(put)
    return who(store, session.session_token)


def say(store, person, item, text="none", at=NOW):
    return vote(store, person, Answer(id=str(uuid.uuid4()), item=item, answer=text, tab="t"), at)


def rows(store, table):
    return store.read(lambda tx: tx.query(table).all())


def trial_ids(store, kind=None):
    return {one.id for one in rows(store, TrialRow) if kind in (None, one.kind)}


def answer_all(store, person, n=3, tab="t", text="none"):
    """Everything there is, `n` at a time; returns the items in the order of showing."""
    shown, at = [], NOW
    while items := next_items(store, person, tab, n, at):
        for item in items:
            at += timedelta(seconds=1)
            say(store, person, item.item, text, at)
            shown.append(item)
    return shown


@BOTH
def test_catch_trials_come_at_their_places_and_never_count(store, make, images):
    study = make(set_aside=4, catch_rate=0.5)
    anna = signed_in(store, study, "Anna")
    shown = answer_all(store, anna)
    hidden = trial_ids(store)
    assert progress(store, study.id).coverage == [0, 8, 0]
    assert len(shown) == 8 + len(hidden)
    schedule = quality.schedule(TrialKind.CATCH, anna.seat, (study.spec, 0))
    expected = schedule.due(8)
    assert len(hidden) == expected == 4
    votes = [0]
    for item in shown:
        votes.append(votes[-1] + (item.item not in hidden))
    where = [n for n, item in zip(votes, shown, strict=False) if item.item in hidden]
    assert where == [schedule.place(n) for n in range(4)]
    assert export_labels(store, study.id, images)["n_votes"].tolist() == [1] * 8


@each_on_one("n", 1, 50)
def test_after_an_amendment_trials_go_on_at_the_new_rate(store, make, n):
    study = make(set_aside=4, catch_rate=0.5, votes_per_item=1)
    anna, at = signed_in(store, study, "Anna"), datetime.now(UTC)
    while progress(store, study.id).annotators[0].done < 4:
        (item,) = next_items(store, anna, "t", 1, at)
        say(store, anna, item.item, at=at)
    before = trial_ids(store)
    assert len(before) == 2  # one for two votes
    amend(store, study.id, {"catch_rate": 0.25}, "so many catch nobody")
    assert progress_of(store, anna).trials_left == 1
    later = datetime.now(UTC) + timedelta(days=1)
    while items := next_items(store, anna, "t", n, later):
        again = next_items(store, anna, "t", n, later)
        assert {one.item for one in again} == {one.item for one in items}
        for item in items:
            say(store, anna, item.item, at=later)
    assert len(trial_ids(store) - before) == 1
    assert progress(store, study.id).coverage == [0, 8]
    assert progress_of(store, anna).trials_done == 3


def test_surplus_votes_put_off_no_trial_after_an_amendment(store, make):
    study = make(set_aside=4, catch_rate=0.5, votes_per_item=1)
    anna, ben = (signed_in(store, study, name) for name in ("Anna", "Ben"))
    next_items(store, anna, "t", 50, NOW)  # all there is, until her leases run out
    after = NOW + timedelta(days=1)
    taken = {item.item for item in next_items(store, ben, "t", 4, after)} - trial_ids(store)
    for item in taken:
        say(store, ben, item, at=after)
        assert say(store, anna, item, at=after).status is VoteStatus.SURPLUS
    spec = amend(store, study.id, {"catch_rate": 0.25}, "so many catch nobody").spec
    of = {
        who.name: store.read(partial(schedules_of, annotator=who, spec=spec, version=2))
        for who in (anna, ben)
    }
    counted = {name: of[name][TrialKind.CATCH].parts[-1].votes for name in of}
    assert counted == {"Anna": 0, "Ben": len(taken)}


@pytest.mark.parametrize("made", [True, False])
def test_catch_trials_of_which_there_are_no_items_are_not_promised(store, make, made):
    study = make(set_aside=4, catch_rate=0.5 if made else 0.0, votes_per_item=1)

    def as_an_earlier_version_let_it_be_amended(tx):
        row = tx.get_one(StudyRow, study.id)
        row.spec = {**row.spec, "catch_rate": 0.5}

    store.write(as_an_earlier_version_let_it_be_amended)
    anna = signed_in(store, study, "Anna")
    assert progress_of(store, anna).trials_left == (4 if made else 0)


def test_slots_are_only_of_items_that_count(store, make):
    make(set_aside=4, catch_rate=0.1, practice=3, gold=["a,image-000,Cat"], gold_rate=0.1)
    kinds = {one.id: one.kind for one in rows(store, StimulusRow)}
    assert {kinds[slot.stimulus_id] for slot in rows(store, SlotRow)} == {"reconstruction"}
    assert sorted(set(kinds.values())) == ["catch", "gold", "practice", "reconstruction"]
    assert list(kinds.values()).count("catch") == 8
    # Of two models four originals are left, but for the one gold item.
    assert list(kinds.values()).count("reconstruction") == 7


@pytest.mark.parametrize("task", list(Task))
def test_nothing_sent_tells_a_trial_from_an_item(store, make, task):
    study = make(task, set_aside=4, catch_rate=0.5)
    anna = signed_in(store, study, "Anna")
    items = next_items(store, anna, "t", 50, NOW)
    hidden = [item for item in items if item.item in trial_ids(store)]
    plain = [item for item in items if item not in hidden]
    assert hidden
    assert plain
    for item in items:
        texts = (item.item, *item.images)
        assert all(len(text) == 32 and int(text, 16) >= 0 for text in texts)
        assert len(set(texts)) == len(texts) == (3 if study.kind.beside else 2)
    again = next_items(store, anna, "t", 50, NOW + timedelta(seconds=10))
    assert {item.item for item in again} == {item.item for item in items}
    for name, shown in itertools.product(("lease_until", "practice"), (items, again)):
        assert len({getattr(item, name) for item in shown}) == 1
    assert {len(item.candidates) for item in items} == {len(plain[0].candidates)}
    text = study.kind.offered(plain[0].candidates)[-1]
    receipts = [say(store, anna, item[0].item, text) for item in (hidden, plain)]
    for field in fields(receipts[0]):
        if field.name != "id":
            assert getattr(receipts[0], field.name) == getattr(receipts[1], field.name)
    assert receipts[0].status is VoteStatus.COUNTED
    assert {v.status for v in rows(store, VoteRow)} == {"counted", "quality"}


@BOTH
def test_progress_told_moves_evenly(store, make):
    study = make(set_aside=4, catch_rate=0.5)
    anna = signed_in(store, study, "Anna")
    seen = []
    while items := next_items(store, anna, "t", 1, NOW):
        now = progress_of(store, anna)
        seen.append((now.done + now.trials_done, now.left + now.trials_left))
        say(store, anna, items[0].item)
    assert seen == [(done, 12 - done) for done in range(12)]


def test_progress_moves_evenly_also_when_an_amendment_ends_all_trials(store, make):
    study = make(set_aside=4, catch_rate=0.5)
    anna = signed_in(store, study, "Anna")
    next_items(store, anna, "t", 50, NOW)
    first, other, *_ = sorted(trial_ids(store))

    def told():
        now = progress_of(store, anna)
        return now.done + now.trials_done, now.left + now.trials_left

    say(store, anna, first)
    before = told()
    amend(store, study.id, {"catch_rate": 0.0}, "nobody fails them")
    assert told() == before  # those that are held already are still to come
    say(store, anna, other)
    assert told() == (before[0] + 1, before[1] - 1)


def test_the_images_are_those_of_the_trial_and_only_for_its_annotator(store, make, images):
    study = make(Task.PAIR, set_aside=4, catch_rate=0.5)
    anna, ben = signed_in(store, study, "Anna"), signed_in(store, study, "Ben")
    items = {item.item: item for item in next_items(store, anna, "t", 50, NOW)}
    known = {one.id: one.sha256 for one in rows(store, StimulusRow)}
    for trial in rows(store, TrialRow):
        original, shown = items[trial.id].images
        assert image_path(store, anna, shown, images).stem == known[trial.stimulus_id]
        assert image_path(store, anna, original, images).exists()
        for token in (original, shown):
            with pytest.raises(NotAllowedError):
                image_path(store, ben, token, images)
        with pytest.raises(NotAllowedError):
            say(store, ben, trial.id, "same")
    with pytest.raises(NotFoundError):
        image_path(store, anna, "made up", images)


def test_the_stimulus_behind_a_trial_has_no_address_of_its_own(store, make, images):
    anna = signed_in(store, make(set_aside=4, catch_rate=0.5), "Anna")
    next_items(store, anna, "t", 50, NOW)
    for one in rows(store, StimulusRow):
        if one.kind == "catch":
            with pytest.raises(NotAllowedError):
                image_path(store, anna, one.token, images)
            with pytest.raises(NotAllowedError):
                say(store, anna, one.id)


def test_open_trials_come_back_in_their_tab_and_elsewhere_when_it_lets_go(store, make):
    anna = signed_in(store, make(set_aside=4, catch_rate=0.5), "Anna")
    first = [item.item for item in next_items(store, anna, "t", 50, NOW)]
    hidden = trial_ids(store)
    assert sorted(item.item for item in next_items(store, anna, "t", 50, NOW)) == sorted(first)
    assert trial_ids(store) == hidden
    # For want of others, the items of the first tab move, and the trials among them.
    other = {item.item for item in next_items(store, anna, "other", 50, NOW)}
    assert other == set(first)


@BOTH
def test_two_tabs_do_not_show_the_same_trial(store, make):
    anna = signed_in(store, make(set_aside=4, catch_rate=0.5), "Anna")
    one = {item.item for item in next_items(store, anna, "one", 5, NOW)}
    two = {item.item for item in next_items(store, anna, "two", 5, NOW)}
    assert not one & two
    assert one & trial_ids(store)
    later = NOW + timedelta(seconds=601)
    again = {item.item for item in next_items(store, anna, "two", 50, later)}
    assert one & trial_ids(store) <= again


def test_the_same_answer_again_changes_nothing(store, make):
    anna = signed_in(store, make(set_aside=4, catch_rate=0.5), "Anna")
    next_items(store, anna, "t", 50, NOW)
    trial = min(trial_ids(store))
    answer = Answer(id=str(uuid.uuid4()), item=trial, answer="none", tab="t")
    first = vote(store, anna, answer, NOW)
    assert vote(store, anna, answer, NOW) == first
    other = Answer(id=answer.id, item=trial, answer="Cat", tab="t")
    with pytest.raises(ConflictError):
        vote(store, anna, other, NOW)
    assert say(store, anna, trial).status is VoteStatus.SURPLUS
    assert sorted(one.status for one in rows(store, VoteRow)) == ["quality", "surplus"]
    with pytest.raises(AnswerError):
        say(store, anna, trial, "horse")


def test_a_second_answer_to_a_trial_is_none_of_the_items_asked_of_somebody(store, make):
    anna = signed_in(store, make(set_aside=4, catch_rate=0.5, items_per_person=5), "Anna")
    next_items(store, anna, "t", 50, NOW)
    trial = min(trial_ids(store))
    assert say(store, anna, trial).status is VoteStatus.COUNTED
    left = progress_of(store, anna).left
    assert say(store, anna, trial).status is VoteStatus.SURPLUS
    assert progress_of(store, anna).left == left > 0


@BOTH
def test_undo_opens_the_trial_again(store, make):
    anna = signed_in(store, make(set_aside=4, catch_rate=0.5), "Anna")
    before = {item.item: item for item in next_items(store, anna, "t", 50, NOW)}
    trial = min(trial_ids(store))
    given = say(store, anna, trial)
    assert trial not in {item.item for item in next_items(store, anna, "t", 50, NOW)}
    assert undo(store, anna, given.id, NOW) == before[trial]
    assert undo(store, anna, given.id, NOW) == before[trial]
    assert trial in {item.item for item in next_items(store, anna, "t", 50, NOW)}
    assert say(store, anna, trial, "Cat").status is VoteStatus.COUNTED
    with pytest.raises(ConflictError):
        undo(store, anna, given.id, NOW)
    assert sorted(one.status for one in rows(store, VoteRow)) == ["quality", "superseded"]


def test_a_closed_study_takes_no_answer_for_good(store, make):
    study = make(set_aside=4, catch_rate=0.5)
    anna = signed_in(store, study, "Anna")
    next_items(store, anna, "t", 50, NOW)
    set_status(store, study.id, StudyStatus.CLOSED)
    assert say(store, anna, min(trial_ids(store))).status is VoteStatus.SURPLUS
    assert next_items(store, anna, "t", 50, NOW) == []


@each_on_one("n", 3, 100)
def test_repeats_are_of_items_answered_long_before_and_each_once(store, make, n):
    study = make(repeat_rate=0.5, repeat_lag=4)
    anna = signed_in(store, study, "Anna")
    shown = [item.item for item in answer_all(store, anna, n)]
    repeats = {one.id: one.stimulus_id for one in rows(store, TrialRow)}
    ordinals = {one.id: one.ordinal for one in rows(store, TrialRow)}
    assert {one.kind for one in rows(store, TrialRow)} == {"repeat"}
    assert 4 <= len(repeats) == len(set(repeats.values()))
    counted = [item for item in shown if item not in repeats]
    assert len(counted) == 16
    for trial, item in repeats.items():
        before = [one for one in shown[: shown.index(trial)] if one not in repeats]
        assert len(before) - before.index(item) - 1 >= study.spec.repeat_lag
        assert len(before) == quality.schedule(TrialKind.REPEAT, anna.seat, (study.spec, 0)).place(
            ordinals[trial]
        )
    table = export_votes(store, study.id)
    again = table[table["kind"] == "repeat"]
    assert set(again["item"]) == set(repeats.values())
    assert (again["status"] == "quality").all()
    assert again["expected"].isna().all()


def test_gold_items_come_once_each(store, make):
    gold = ["a,image-000,Cat", "b,image-003,none"]
    anna = signed_in(store, make(gold=gold, gold_rate=0.5), "Anna")
    answer_all(store, anna, text="Cat")
    told = export_votes(store, anna.study_id)
    told = told[told["kind"] == "gold"].sort_values("model")
    assert told["expected"].tolist() == ["Cat", "none"]
    assert told["image_id"].tolist() == ["image-000", "image-003"]
    assert told["model"].tolist() == ["a", "b"]


GOLD = ["a,image-000,Cat", "b,image-003,none", "a,image-005,star", "b,image-006,none"]


def shows(store, study):
    """What each person was shown, in order: (kind, original) by name."""
    table = export_votes(store, study.id)
    return {
        name: list(zip(own["kind"], own["image_id"], strict=True))
        for name, own in table.groupby("annotator")
    }


def lags(shown, kinds):
    """How many others came between two shows of one original, where one is of `kinds`."""
    for n, (kind, image) in enumerate(shown):
        before = [m for m in range(n) if shown[m][1] == image]
        if before and {kind, shown[before[-1]][0]} & set(kinds):
            yield n - before[-1] - 1


def answer_in_turn(store, study, n_people, n=3):
    for number in range(n_people):
        answer_all(store, signed_in(store, study, f"p{number}"), n)


@BOTH
def test_a_gold_item_is_a_view_like_any_other(store, make):
    study = make(gold=GOLD, gold_rate=0.5, max_views=1)
    answer_in_turn(store, study, 3)
    for shown in shows(store, study).values():
        assert len({image for _, image in shown}) == len(shown)
    kinds = [kind for shown in shows(store, study).values() for kind, _ in shown]
    assert 0 < kinds.count("gold") < 3 * len(GOLD)


@each_on_one("lag", 1, 3)
def test_gold_items_and_repeats_keep_the_lag(store, make, lag):
    trials = {"gold": GOLD, "gold_rate": 0.3, "repeat_rate": 0.5, "repeat_lag": 0}
    study = make(**trials, min_lag=lag, balanced=False)
    answer_in_turn(store, study, 3, n=2)
    for shown in shows(store, study).values():
        trials = [n for n, (kind, _) in enumerate(shown) if kind in ("gold", "repeat")]
        assert trials
        for n in trials:
            assert shown[n][1] not in {image for _, image in shown[max(0, n - lag) : n]}


def test_a_gold_item_among_items_reserved_already_keeps_the_lag_to_both_sides(store, make):
    study = make(gold=GOLD, gold_rate=0.5, min_lag=2)
    answer_in_turn(store, study, 4, n=50)
    found = [one for shown in shows(store, study).values() for one in lags(shown, ("gold",))]
    assert len(found) > 4
    assert min(found) >= 2


def test_items_keep_the_lag_after_trials_as_long_as_there_are_others(store, make):
    study = make(gold=GOLD, gold_rate=0.5, min_lag=2)
    answer_in_turn(store, study, 1, n=1)
    (shown,) = shows(store, study).values()
    assert all(one >= 2 for one in lags(shown[:12], ("gold",)))
    assert [kind for kind, _ in shown[:12]].count("gold") > 1


@BOTH
def test_nothing_of_an_original_is_shown_after_it_was_named(store, make):
    trials = {"gold": GOLD, "gold_rate": 0.2, "repeat_rate": 0.5, "repeat_lag": 1}
    study = make(**trials, label_originals=True)
    answer_in_turn(store, study, 2)
    for shown in shows(store, study).values():
        named = [n for n, (kind, _) in enumerate(shown) if kind == "original"]
        assert len(named) == 8
        assert all(shown[n][1] not in {image for _, image in shown[n + 1 :]} for n in named)
        assert {"gold", "repeat"} <= {kind for kind, _ in shown}


def test_the_original_is_not_given_while_a_trial_of_it_waits_in_another_tab(store, make):
    study = make(repeat_rate=0.5, repeat_lag=1, label_originals=True, votes_per_item=1)
    anna = signed_in(store, study, "Anna")
    items = []
    while not trial_ids(store):
        for item in items:
            say(store, anna, item.item)
        items = next_items(store, anna, "t", 3, NOW)
    (waiting,) = trial_ids(store)
    assert len(items) > 1  # so the tab keeps the trial
    shown = [item.item for item in answer_all(store, anna, tab="other")]
    of = {one.id: one.stimulus_id for one in rows(store, TrialRow)}
    stimuli = {one.id: one for one in rows(store, StimulusRow)}
    source = stimuli[of[waiting]].source_id
    after = [stimuli[of.get(item, item)] for item in shown[shown.index(waiting) :]]
    assert ("original", source) in {(one.kind, one.source_id) for one in after}
    assert shown.index(waiting) > len(shown) / 2


def test_what_limits_leave_no_room_for_is_not_promised(store, make):
    study = make(gold=["a,image-000,Cat", "b,image-000,Cat"], gold_rate=0.5, max_views=1)
    anna = signed_in(store, study, "Anna")
    assert progress_of(store, anna).trials_left == 2  # of four due, as there are no more
    answer_all(store, anna)
    now = progress_of(store, anna)
    assert now.trials_done < 2
    assert (now.left, now.trials_left) == (0, 0)


@BOTH
def test_practice_is_all_there_is_before_and_tells_the_answer(store, make):
    study = make(set_aside=4, practice=5)
    anna = signed_in(store, study, "Anna", Step.PRACTICE)
    items = next_items(store, anna, "t", 3, NOW)
    assert all(item.practice for item in items)
    assert [item.item for item in next_items(store, anna, "other", 3, NOW)] == [
        item.item for item in items
    ]
    receipt = say(store, anna, items[0].item)
    assert receipt.status is VoteStatus.QUALITY
    assert receipt.feedback in LABELS
    assert len(next_items(store, anna, "t", 50, NOW)) == 4
    table = export_votes(store, study.id)
    assert table[["kind", "status", "expected"]].to_numpy().tolist() == [
        ["practice", "quality", receipt.feedback]
    ]


@pytest.mark.parametrize("step", [Step.CONSENT, Step.CHECK, Step.DONE, Step.FAILED])
def test_there_is_nothing_at_other_steps(store, make, step):
    anna = signed_in(store, make(set_aside=4, practice=2, catch_rate=0.5), "Anna", step)
    assert next_items(store, anna, "t", 50, NOW) == []
    assert rows(store, TrialRow) == []


@BOTH
def test_exclusion_leaves_and_erasure_blanks_answers_to_trials(store, make):
    study = make(set_aside=4, catch_rate=0.5)
    for name in ("Anna", "Ben"):
        answer_all(store, signed_in(store, study, name))
    people.exclude(store, study.id, "Anna", NOW)
    people.erase(store, study.id, "Ben", NOW, keep_votes=False)
    table = export_votes(store, study.id)
    known = table[table["kind"] == "catch"].groupby("annotator")
    assert known["status"].unique().map(list).tolist() == [["quality"], ["quality"]]
    answers = known["answer"].unique().map(list).to_dict()
    assert answers.pop("Anna") == ["none"]
    assert list(answers.values()) == [[""]]


def test_orders_and_images_are_the_same_in_a_copy_of_the_study(store, make):
    runs = []
    for _ in range(2):
        study = make(set_aside=4, catch_rate=0.5, practice=4)
        anna = signed_in(store, study, "Anna")
        answer_all(store, anna)
        table = export_votes(store, study.id)
        runs.append(table[["kind", "model", "image_id", "class_name", "expected"]])
    assert runs[0].equals(runs[1])


def test_the_tabs_of_an_erased_person_go_with_them(store, make):
    study = make(set_aside=4, catch_rate=0.5)
    for name in ("Anna", "Ben"):
        answer_all(store, signed_in(store, study, name), tab=f"tab of {name}")
    erase(store, study.id, "Anna", NOW, keep_votes=True)
    assert {trial.tab for trial in rows(store, TrialRow)} == {"", "tab of Ben"}
    assert {slot.tab for slot in rows(store, SlotRow)} == {"", "tab of Ben"}
