"""The people of a study; `tests/contracts/test_store_people.py` has the races."""

import uuid
from datetime import UTC, datetime

import pytest
from study_factory import answer_to, questions_for

from annotation.domain import AnnotatorStatus, Answer, Step
from annotation.errors import ConflictError, NotFoundError
from annotation.store import Store
from annotation.store.tables import EventRow, VoteRow
from annotation.study import participants as people
from annotation.study.exports import export_labels, export_votes
from annotation.study.labelling import join, next_items, progress, vote
from annotation.study.participant_flow import advance
from annotation.tasks.kind import NONE
from semsim.base.errors import StoreError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answer_all(store, person, answer=NONE):
    for item in next_items(store, person, "tab", 9, NOW):
        given = Answer(id=str(uuid.uuid4()), item=item.item, answer=answer, rt_ms=800.0)
        vote(store, person, given, NOW)


def row_of(store, study, name):
    (row,) = (one for one in people.list_people(store, study.id) if one.name == name)
    return row


def test_excluded_votes_are_told_apart_and_their_pace_is_still_known(store, study, anna):
    answer_all(store, anna)
    assert (row_of(store, study, "Anna").done, row_of(store, study, "Anna").excluded) == (8, 0)
    people.exclude(store, study.id, "Anna", NOW)
    row = row_of(store, study, "Anna")
    assert (row.status, row.done, row.excluded) == ("excluded", 0, 8)
    assert (row.median_rt_ms, row.none_rate) == (800.0, 1.0)


def test_removed_answers_are_no_answers(store, study, anna):
    answer_all(store, anna)
    erased = people.erase(store, study.id, "Anna", NOW, keep_votes=False)
    row = row_of(store, study, erased.name)
    assert (row.excluded, row.median_rt_ms, row.none_rate) == (8, None, None)


def test_tables_count_excluded_votes_no_more(store, study, images, anna, ben):
    answer_all(store, anna)
    answer_all(store, ben)
    people.exclude(store, study.id, "Ben", NOW)
    votes = export_votes(store, study.id)
    assert votes.groupby("annotator")["status"].unique().str[0].to_dict() == {
        "Anna": "counted",
        "Ben": "excluded",
    }
    assert set(export_labels(store, study.id, images)["n_votes"]) == {1}
    assert progress(store, study.id).coverage == [0, 8, 0]


def test_a_preview_changes_nothing_and_says_what_happens(store, study, images, anna, ben):
    answer_all(store, anna)
    answer_all(store, ben)
    before = export_labels(store, study.id, images)
    effect = people.preview_exclusion(store, study.id, "BEN", images)
    assert export_labels(store, study.id, images).equals(before)
    assert (effect.annotator, effect.n_votes, effect.n_short, effect.n_undecided) == (
        "Ben", 8, 8, 8,
    )  # fmt: skip
    people.exclude(store, study.id, "Ben", NOW)
    assert export_labels(store, study.id, images)["recognisable"].isna().all()


def test_nobody_of_that_name(store, study, images):
    for act in (people.pause, people.resume, people.exclude, people.include):
        with pytest.raises(NotFoundError, match="called 'Nobody'"):
            act(store, study.id, "Nobody", NOW)
    with pytest.raises(NotFoundError, match="called 'Nobody'"):
        people.erase(store, study.id, "Nobody", NOW, keep_votes=True)
    with pytest.raises(NotFoundError, match="called 'Nobody'"):
        people.preview_exclusion(store, study.id, "Nobody", images)


def test_votes_of_somebody_who_refused_that_are_not_kept(store, make_study):
    study = make_study(consent="Voluntary.")
    for name, keep in (("Anna", "no"), ("Ben", "yes")):
        person = join(store, study.token, name).annotator
        advance(store, person, Step.CONSENT, {"agree": "yes", "keep_votes": keep})
    with pytest.raises(ConflictError, match="Anna did not agree"):
        people.erase(store, study.id, "Anna", NOW, keep_votes=True)
    assert row_of(store, study, "Anna").status is AnnotatorStatus.ACTIVE
    people.erase(store, study.id, "Anna", NOW, keep_votes=False)
    people.erase(store, study.id, "Ben", NOW, keep_votes=True)


def test_traces_that_stayed_in_the_files_go_by_erasing_the_pseudonym(
    store, study, anna, monkeypatch
):
    def busy(self):
        raise StoreError("Traces may be left.")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "scrub", busy)
        with pytest.raises(StoreError, match=r"Traces may be left\. Erase erased-") as caught:
            people.erase(store, study.id, "Anna", NOW, keep_votes=True)
    (row,) = people.list_people(store, study.id)
    assert f"Erase {row.name} to try again." in str(caught.value)
    assert people.erase(store, study.id, row.name, NOW, keep_votes=True).name == row.name


@pytest.mark.parametrize("keep_votes", [True, False])
def test_what_a_browser_called_its_tab_goes_from_votes_too(store, study, anna, ben, keep_votes):
    for person in (anna, ben):
        for item in next_items(store, person, "t", 2, NOW):
            vote(store, person, answer_to(item.item, tab=f"tab of {person.name}"), NOW)
    people.erase(store, study.id, "Anna", NOW, keep_votes=keep_votes)
    tabs = store.read(lambda tx: [row.tab for row in tx.query(VoteRow)])
    assert sorted(tabs) == ["", "", "tab of Ben", "tab of Ben"]


@pytest.mark.parametrize("keep_votes", [True, False])
def test_what_was_answered_to_the_questions_goes_with_the_votes(store, make_study, keep_votes):
    study = make_study(check=True)
    anna = join(store, study.token, "Anna").annotator
    advance(store, anna, Step.INSTRUCTIONS, {})
    wrong = {
        one.name: next(name for name, _ in one.options if name != one.right)
        for one in questions_for(store, anna)
    }
    advance(store, anna, Step.CHECK, {"attempt": "0", **wrong})
    people.erase(store, study.id, "Anna", NOW, keep_votes=keep_votes)
    (event,) = store.read(lambda tx: tx.query(EventRow).filter_by(kind="check").all())
    assert bool(event.data) is keep_votes
