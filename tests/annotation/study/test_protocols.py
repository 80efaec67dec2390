"""Settings that do not decide the items may change, as a new version with a reason."""

import uuid
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from annotation.domain import Answer, StudyStatus
from annotation.errors import ConflictError, NotFoundError, StudyError
from annotation.spec import Background, StudySpec
from annotation.store.tables import EventRow
from annotation.study.exports import export_votes
from annotation.study.labelling import get_study, next_items, set_status, vote
from annotation.study.protocols import AMENDABLE, amend, amended, protocol_versions
from annotation.tasks.wording import USUAL

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOT_LISTED = "recognition.key.not_in_list"
TWO_OPTIONS = [name for name in USUAL if name.startswith("recognition.check.guess.")]
TWO_OPTIONS = [name for name in TWO_OPTIONS if not name.endswith((".text", ".reminder"))][:2]


def test_a_change_is_a_new_version_with_its_reason(store, study):
    changes = {"max_views": 3, "background": "black"}
    changed = amend(store.by("Eva"), study.id, changes, " too long ")
    assert (changed.version, changed.spec.max_views) == (2, 3)
    assert changed.spec.background is Background.BLACK
    assert get_study(store, study.id) == changed
    first, second = protocol_versions(store, study.id)
    assert (first.version, first.sha256, first.spec, first.changed) == (
        1,
        study.protocol,
        study.spec,
        (),
    )
    assert (second.version, second.sha256, second.spec) == (2, changed.protocol, changed.spec)
    assert (second.why, second.by, set(second.changed)) == (
        "too long",
        "Eva",
        {"max_views", "background"},
    )
    (event,) = store.read(lambda tx: tx.query(EventRow).filter_by(kind="amended").all())
    assert event.data["changed"]["max_views"] == {"before": None, "after": 3}


def test_the_hash_is_of_the_items_and_the_settings(store, study, make_study):
    other = make_study("other", votes_per_item=2)
    one = amend(store, study.id, {"min_lag": 3}, "why").protocol
    back = amend(store, study.id, {"min_lag": 0}, "why").protocol
    again = amend(store, study.id, {"min_lag": 3}, "for another reason").protocol
    assert one == again
    assert len({study.protocol, one, back}) == 3
    assert amend(store, other.id, {"min_lag": 3}, "why").protocol != one


def test_votes_say_which_version_was_in_force(store, study, anna):
    for number, item in enumerate(next_items(store, anna, "tab", 2, NOW)):
        if number:
            amend(store, study.id, {"lease_seconds": 60}, "shorter")
        said = Answer(id=str(uuid.uuid4()), item=item.item, answer="none", version=1 + number)
        vote(store, anna, said, NOW)
    assert export_votes(store, study.id)["protocol"].tolist() == [1, 2]


def test_a_change_is_in_force_at_once(store, study, anna):
    amend(store, study.id, {"lease_seconds": 60}, "shorter")
    (item,) = next_items(store, anna, "tab", 1, NOW)
    assert item.lease_until == NOW + timedelta(seconds=60)


@pytest.mark.parametrize("name", ["votes_per_item", "seed", "headline", "task", "password", "x"])
def test_what_decides_the_items_never_changes(store, study, name):
    with pytest.raises(StudyError, match=name):
        amend(store, study.id, {name: 3}, "why")
    assert get_study(store, study.id).version == 1


@pytest.mark.parametrize(
    ("changes", "why", "said"),
    [
        ({"min_lag": 3}, " ", "Give the reason"),
        ({"min_lag": -3}, "why", "Least lag between them must be at least 0"),
        ({"min_lag": 0}, "why", "Nothing would change"),
        ({}, "why", "Nothing would change"),
    ],
    ids=["no reason", "impossible", "the same", "nothing"],
)
def test_changes_that_make_no_sense_are_refused(store, study, changes, why, said):
    with pytest.raises(StudyError, match=said):
        amend(store, study.id, changes, why)
    assert len(protocol_versions(store, study.id)) == 1


@pytest.mark.parametrize(
    ("name", "what"), [("catch_rate", "no catch trials"), ("gold_rate", "no gold items")]
)
def test_items_that_a_study_was_made_without_cannot_come_later(store, make_study, name, what):
    study = make_study(set_aside=2)
    with pytest.raises(StudyError, match=f"{what}.*Make a new study with a {name} above 0"):
        amend(store, study.id, {name: 0.1}, "why")
    assert get_study(store, study.id).version == 1


def test_the_rate_of_items_that_are_there_may_go_to_nothing_and_back(store, make_study):
    study = make_study(set_aside=2, catch_rate=0.1)
    for rate in (0.0, 0.2):
        assert amend(store, study.id, {"catch_rate": rate}, "why").spec.catch_rate == rate


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"lease_seconds": 10**12}, "Seconds of a reservation must be at most 2,147,483,647"),
        ({"lease_seconds": 59}, "Seconds of a reservation must be at least 60; got 59"),
        ({"max_views": 10**20}, "Most views of one original must be at most"),
        (
            {"texts": dict.fromkeys(["recognition.key.cannot_make_out", NOT_LISTED], "None")},
            "Two answers have the same words",
        ),
        (
            {"texts": dict.fromkeys(TWO_OPTIONS, "I wait.")},
            "Two options of .* have the same words",
        ),
    ],
)
def test_what_nobody_could_label_under_is_refused_at_first_and_later(
    store, study, make_study, changes, problem
):
    with pytest.raises(StudyError, match=problem):
        amend(store, study.id, changes, "why")
    assert get_study(store, study.id) == study
    with pytest.raises(StudyError, match=problem):
        make_study("another", **changes)


def test_a_closed_study_stays_as_it_is(store, study):
    set_status(store, study.id, StudyStatus.CLOSED)
    with pytest.raises(ConflictError, match="closed"):
        amend(store, study.id, {"min_lag": 3}, "why")


def test_an_unknown_study_is_said_so(store):
    with pytest.raises(NotFoundError):
        amend(store, "nothing", {"min_lag": 3}, "why")
    with pytest.raises(NotFoundError):
        protocol_versions(store, "nothing")


def test_what_may_change_are_settings(study):
    assert {field.name for field in fields(StudySpec)} > AMENDABLE
    assert amended(study.spec, {"title": "Pictures"}).title == "Pictures"
