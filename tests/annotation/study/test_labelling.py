"""The use cases, as the pages and the HTTP interface see them."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from study_factory import answer_to

from annotation.domain import Answer, StudyStatus, VoteStatus
from annotation.errors import (
    AnswerError,
    ConflictError,
    NameTakenError,
    NotAllowedError,
    NotFoundError,
    SignInError,
)
from annotation.spec import Task
from annotation.store import people as people_rows
from annotation.store.tables import PersonalLinkRow, SessionRow
from annotation.study.exports import export_votes
from annotation.study.labelling import (
    come_back,
    get_study,
    heartbeat,
    image_path,
    join,
    list_studies,
    new_link,
    next_items,
    progress,
    progress_of,
    set_status,
    sign_out,
    study_by_token,
    undo,
    vote,
    who,
    whose_link,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
AFTER_LEASE = NOW + timedelta(minutes=11)


@pytest.fixture
def cleo(store, study):
    return join(store, study.token, "Cleo").annotator


def test_studies_are_found(store, make_study):
    first, second = make_study("first"), make_study("second")
    assert [s.name for s in list_studies(store)] == ["second", "first"]
    assert get_study(store, first.id) == first
    assert study_by_token(store, second.token) == second
    for find in (get_study, study_by_token):
        with pytest.raises(NotFoundError):
            find(store, "nothing")


def test_nobody_becomes_somebody_by_their_name(store, study, anna):
    with pytest.raises(NameTakenError, match="Anna takes part already"):
        join(store, study.token, "  aNNA ")
    assert join(store, study.token, "Anna B.").annotator != anna


def test_whoever_is_signed_in_comes_in_again_by_their_name(store, study):
    first = join(store, study.token, "Anna")
    ben = join(store, study.token, "Ben")
    again = join(store, study.token, "anna", session=first.session_token)
    assert again.annotator == first.annotator
    with pytest.raises(NameTakenError):
        join(store, study.token, "Anna", session=ben.session_token)
    sign_out(store, first.session_token)
    with pytest.raises(NameTakenError):
        join(store, study.token, "Anna", session=first.session_token)


def test_a_personal_link_leads_back_from_anywhere(store, study, make_study):
    anna = join(store, study.token, "Anna").annotator
    link = new_link(store, anna)
    assert whose_link(store, link) == anna
    for given in (link, f" https://lab.example/me/{link}/ "):
        assert come_back(store, given, study.id).annotator == anna
    assert link not in str(
        store.read(lambda tx: [row.token_sha256 for row in tx.query(PersonalLinkRow)])
    )
    for wrong in ("", "made up", link[:-1]):
        with pytest.raises(SignInError, match="no longer, a personal link"):
            come_back(store, wrong)
    with pytest.raises(SignInError, match="no longer, a personal link"):
        come_back(store, link, make_study("other").id)


def test_the_latest_links_of_a_person_work(store, study, anna, ben, monkeypatch):
    monkeypatch.setattr(people_rows, "MOST_LINKS", 3)
    others = new_link(store, ben)
    links = [new_link(store, anna) for _ in range(5)]
    assert [whose_link(store, one) for one in links] == [None, None, anna, anna, anna]
    assert whose_link(store, others) == ben


def test_a_link_that_is_used_works_on_however_many_are_made(store, study, anna, monkeypatch):
    monkeypatch.setattr(people_rows, "MOST_LINKS", 3)
    kept, unused = new_link(store, anna), new_link(store, anna)
    for _ in range(5):
        new_link(store, anna)
        assert come_back(store, kept).annotator == anna
    assert whose_link(store, unused) is None


def test_what_does_not_print_makes_no_other_name(store, study, anna):
    for name in ("An\0na", "\u202eAnna", "\x1b Anna\u200b"):
        with pytest.raises(NameTakenError):
            join(store, study.token, name)
    with pytest.raises(SignInError, match="got 0"):
        join(store, study.token, "\u200b\x07")
    join(store, study.token, "Zoé")
    with pytest.raises(NameTakenError):  # an e, nothing that shows, and an accent for it
        join(store, study.token, "Zoe\u200b\u0301")


def test_the_same_name_in_another_study_is_somebody_else(store, study, anna, make_study):
    other = make_study("other")
    assert join(store, other.token, "Anna").annotator.id != anna.id


@pytest.mark.parametrize("name", ["", "   ", "x" * 81])
def test_unusable_names(store, study, name):
    with pytest.raises(SignInError):
        join(store, study.token, name)


def test_a_password_is_asked_for(store, make_study):
    study = make_study(password="open sesame")
    assert study.protected
    assert study.spec.password is None
    for wrong in (None, "", "Open sesame"):
        with pytest.raises(SignInError, match="password"):
            join(store, study.token, "Anna", wrong)
    assert join(store, study.token, "Anna", "open sesame").annotator.name == "Anna"


def test_people_cannot_join_a_simulated_study(store, make_study):
    with pytest.raises(SignInError, match="simulated"):
        join(store, make_study(simulated=True).token, "Anna")


def test_sessions(store, study):
    signed_in = join(store, study.token, "Anna")
    assert who(store, signed_in.session_token) == signed_in.annotator
    stored = store.read(lambda tx: [row.token_sha256 for row in tx.query(SessionRow)])
    assert signed_in.session_token not in stored
    assert who(store, "made up") is None
    sign_out(store, signed_in.session_token)
    sign_out(store, signed_in.session_token)
    assert who(store, signed_in.session_token) is None


def test_a_session_ends_by_itself(store, study, monkeypatch):
    first = join(store, study.token, "Anna").session_token
    monkeypatch.setattr(people_rows, "SESSION_LASTS", timedelta(0))
    assert who(store, first) is None
    second = join(store, study.token, "Ben").session_token
    monkeypatch.undo()
    assert who(store, second).name == "Ben"
    assert store.read(lambda tx: tx.query(SessionRow).count()) == 1  # the ended one is gone


def test_items_tell_nothing_but_the_question(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    assert len(item.images) == 1
    assert len(item.candidates) == 8
    assert item.lease_until == NOW + timedelta(seconds=600)
    texts = (item.item, *item.images)
    assert all(len(text) == 32 and int(text, 16) >= 0 for text in texts)
    assert len(set(texts)) == 2


def test_pairs_have_two_images_and_no_candidates(store, make_study):
    study = make_study(task=Task.PAIR, decoy_rate=0.5)
    anna = join(store, study.token, "Anna").annotator
    items = next_items(store, anna, "tab", 100, NOW)
    assert len(items) == 12
    assert len({token for item in items for token in item.images}) == 24
    assert all(item.candidates == () for item in items)


def test_a_tab_gets_its_own_items_back_first(store, anna):
    first = next_items(store, anna, "tab", 2, NOW)
    more = next_items(store, anna, "tab", 4, NOW)
    assert [i.item for i in more[:2]] == [i.item for i in first]
    assert len({i.item for i in more}) == 4


def test_another_tab_gets_other_items_until_none_are_left(store, anna):
    one = next_items(store, anna, "one", 5, NOW)
    two = next_items(store, anna, "two", 100, NOW)
    assert len(two) == 3
    assert not {i.item for i in one} & {i.item for i in two}
    three = next_items(store, anna, "three", 100, NOW)
    assert {i.item for i in three} == {i.item for i in one} | {i.item for i in two}


def test_started_items_are_finished_first(store, make_study):
    token = make_study(votes_per_item=2, balanced=False).token
    anna, ben = (join(store, token, name).annotator for name in ("Anna", "Ben"))
    begun = {i.item for i in next_items(store, anna, "tab", 3, NOW)}
    assert {i.item for i in next_items(store, ben, "tab", 3, NOW)} == begun


def test_everybody_has_an_order_of_their_own_and_keeps_it(store, make_study, images):
    orders = []
    for name in ("one", "two"):
        study = make_study(name, votes_per_item=2)
        person = join(store, study.token, "Anna").annotator
        before = next_items(store, person, "tab", 4, NOW)
        orders.append([image_path(store, person, i.images[0], images).name for i in before])
    assert orders[0] == orders[1]


def test_full_items_are_given_to_nobody_else(store, anna, ben, cleo):
    for person in (anna, ben):
        assert len(next_items(store, person, "tab", 100, NOW)) == 8
    assert next_items(store, cleo, "tab", 100, NOW) == []


def test_an_expired_item_goes_to_the_next_who_asks(store, anna, ben, cleo):
    for person in (anna, ben):
        next_items(store, person, "tab", 100, NOW)
    assert len(next_items(store, cleo, "tab", 100, AFTER_LEASE)) == 8


def test_a_heartbeat_keeps_items(store, anna, ben, cleo):
    mine = [i.item for i in next_items(store, anna, "tab", 3, NOW)]
    next_items(store, ben, "tab", 100, AFTER_LEASE)
    heartbeat(store, anna, "tab", mine, AFTER_LEASE - timedelta(minutes=5))
    got = {i.item for i in next_items(store, cleo, "tab", 100, AFTER_LEASE)}
    assert not got & set(mine)


def test_a_vote_counts(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    given = answer_to(item.item, "Cat", rt_ms=812.0, client_ts=NOW, display={"scale": 8}, tab="tab")
    assert vote(store, anna, given, NOW).status is VoteStatus.COUNTED
    assert progress(store, study.id).coverage == [7, 1, 0]
    (row,) = export_votes(store, study.id).itertuples()
    assert (row.annotator, row.answer, row.rt_ms, row.status) == ("Anna", "Cat", 812.0, "counted")
    assert row.recognised == (row.class_name == "Cat")
    assert row.client_ts == NOW


def test_a_repeated_vote_changes_nothing(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    given = answer_to(item.item)
    receipts = {vote(store, anna, given, NOW) for _ in range(3)}
    assert len(receipts) == 1
    upper = Answer(id=given.id.upper(), item=given.item, answer=given.answer)
    assert vote(store, anna, upper, NOW) in receipts
    assert len(export_votes(store, study.id)) == 1


def test_an_id_cannot_be_used_for_anything_else(store, anna, ben):
    one, two = next_items(store, anna, "tab", 2, NOW)
    given = answer_to(one.item, "Cat")
    vote(store, anna, given, NOW)
    for other in (
        Answer(id=given.id, item=two.item, answer="Cat"),
        Answer(id=given.id, item=one.item, answer="cow"),
    ):
        with pytest.raises(ConflictError):
            vote(store, anna, other, NOW)
    with pytest.raises(ConflictError, match="somebody else"):
        vote(store, ben, given, NOW)


def test_answers_that_are_not_taken(store, anna, ben, make_study):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    with pytest.raises(AnswerError):
        vote(store, anna, answer_to(item.item, "wolf"), NOW)
    with pytest.raises(AnswerError, match="UUID"):
        vote(store, anna, Answer(id="7", item=item.item, answer="none"), NOW)
    with pytest.raises(NotFoundError):
        vote(store, anna, answer_to("nothing"), NOW)
    with pytest.raises(NotAllowedError):
        vote(store, ben, answer_to(item.item), NOW)
    stranger = join(store, make_study("other").token, "Anna").annotator
    with pytest.raises(NotFoundError):
        vote(store, stranger, answer_to(item.item), NOW)


def test_a_second_vote_on_an_item_is_surplus(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    vote(store, anna, answer_to(item.item), NOW)
    assert vote(store, anna, answer_to(item.item), NOW).status is VoteStatus.SURPLUS
    assert progress(store, study.id).coverage == [7, 1, 0]


def test_a_late_vote_counts_if_nobody_took_the_slot(store, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    assert vote(store, anna, answer_to(item.item), AFTER_LEASE).status is VoteStatus.COUNTED


def test_a_late_vote_counts_as_long_as_the_item_has_another_slot(store, make_study):
    study = make_study(votes_per_item=3)
    anna, ben, cleo, dora = (
        join(store, study.token, name).annotator for name in ("Anna", "Ben", "Cleo", "Dora")
    )
    for person in (anna, ben, cleo):
        next_items(store, person, "tab", 100, NOW)
    (item, *_) = next_items(store, dora, "tab", 100, AFTER_LEASE)
    # Dora has taken over one slot; the first two of the others still find one, the third none.
    statuses = [
        vote(store, person, answer_to(item.item), AFTER_LEASE).status
        for person in (anna, ben, cleo, dora)
    ]
    assert statuses == ["counted", "counted", "surplus", "counted"]
    assert progress(store, study.id).coverage == [7, 0, 0, 1]


def test_a_late_vote_without_a_slot_is_kept_as_surplus(store, study, anna, ben, cleo):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    for person in (ben, cleo):
        taken = next_items(store, person, "tab", 100, AFTER_LEASE)
        assert item.item in {i.item for i in taken}
        vote(store, person, answer_to(item.item), AFTER_LEASE)
    assert vote(store, anna, answer_to(item.item), AFTER_LEASE).status is VoteStatus.SURPLUS
    assert list(export_votes(store, study.id)["status"]) == ["counted", "counted", "surplus"]


def test_undo_gives_the_item_back(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    given = answer_to(item.item, "Cat")
    vote(store, anna, given, NOW)
    back = undo(store, anna, given.id, NOW)
    assert (back.item, back.images, back.candidates) == (item.item, item.images, item.candidates)
    assert undo(store, anna, given.id, NOW).item == item.item
    assert progress(store, study.id).coverage == [8, 0, 0]
    assert vote(store, anna, answer_to(item.item, "cow"), NOW).status is VoteStatus.COUNTED
    assert list(export_votes(store, study.id)["status"]) == ["superseded", "counted"]


def test_undo_of_what_cannot_be_undone(store, study, anna, ben):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    given = answer_to(item.item)
    vote(store, anna, given, NOW)
    for person, vote_id in ((ben, given.id), (anna, str(uuid.uuid4())), (anna, "7")):
        with pytest.raises(NotFoundError):
            undo(store, person, vote_id, NOW)
    undo(store, anna, given.id, NOW)
    vote(store, anna, answer_to(item.item), NOW)
    with pytest.raises(ConflictError, match="answered this picture again"):
        undo(store, anna, given.id, NOW)
    set_status(store, study.id, StudyStatus.CLOSED)
    with pytest.raises(ConflictError, match="closed"):
        undo(store, anna, given.id, NOW)


def test_a_paused_study_hands_out_nothing_and_loses_nothing(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    assert set_status(store, study.id, StudyStatus.PAUSED).status is StudyStatus.PAUSED
    assert next_items(store, anna, "tab", 1, NOW) == []
    assert vote(store, anna, answer_to(item.item), NOW).status is VoteStatus.COUNTED
    set_status(store, study.id, StudyStatus.RUNNING)
    assert len(next_items(store, anna, "tab", 1, NOW)) == 1


def test_a_closed_study_keeps_late_votes_as_surplus(store, study, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    set_status(store, study.id, StudyStatus.CLOSED)
    assert vote(store, anna, answer_to(item.item), NOW).status is VoteStatus.SURPLUS
    assert next_items(store, anna, "tab", 1, NOW) == []


def test_images_are_shown_to_those_who_were_given_them(store, anna, ben, make_study, images):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    path = image_path(store, anna, item.images[0], images)
    assert path.read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(NotAllowedError):
        image_path(store, ben, item.images[0], images)
    with pytest.raises(NotFoundError):
        image_path(store, anna, item.item, images)
    path.unlink()
    with pytest.raises(NotFoundError, match="is gone"):
        image_path(store, anna, item.images[0], images)


def test_images_stay_visible_after_the_slot_was_lost(store, anna, ben, cleo, images):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    for person in (ben, cleo):
        next_items(store, person, "tab", 100, AFTER_LEASE)
    assert image_path(store, anna, item.images[0], images).exists()


def test_both_images_of_a_pair(store, make_study, images):
    study = make_study(task=Task.PAIR)
    anna = join(store, study.token, "Anna").annotator
    (item,) = next_items(store, anna, "tab", 1, NOW)
    original, shown = (image_path(store, anna, token, images) for token in item.images)
    assert original != shown


def test_own_progress(store, anna, ben, cleo):
    assert (progress_of(store, anna).done, progress_of(store, anna).left) == (0, 8)
    now = datetime.now(UTC)
    for rt_ms, item in zip((300, 200, 250), next_items(store, anna, "tab", 3, now), strict=True):
        vote(store, anna, answer_to(item.item, rt_ms=rt_ms), now)
    mine = progress_of(store, anna)
    assert (mine.done, mine.left, mine.total, mine.median_rt_ms) == (3, 5, 8, 250)
    next_items(store, ben, "tab", 100, now)
    next_items(store, cleo, "tab", 100, now)
    assert progress_of(store, anna).left == 0
    assert progress_of(store, ben).left == 8


def test_expired_items_of_others_are_left_for_me(store, anna, ben, cleo):
    long_ago = datetime.now(UTC) - timedelta(days=1)
    for person in (anna, ben):
        next_items(store, person, "tab", 100, long_ago)
    assert progress_of(store, cleo).left == 8


def test_an_item_with_an_expired_and_a_free_slot_is_left_once(store, anna, cleo):
    next_items(store, anna, "tab", 100, datetime.now(UTC) - timedelta(days=1))
    assert progress_of(store, cleo).left == 8


def test_study_progress(store, study, anna, ben):
    for text, item in zip(("none", "Cat"), next_items(store, anna, "t", 2, NOW), strict=True):
        vote(store, anna, answer_to(item.item, text, rt_ms=200), NOW)
    now = progress(store, study.id)
    assert (now.n_items, now.coverage) == (8, [6, 2, 0])
    first, second = now.annotators
    assert (first.name, first.done, first.median_rt_ms, first.none_rate) == ("Anna", 2, 200, 0.5)
    assert first.last_seen == NOW
    assert (second.name, second.done, second.none_rate) == ("Ben", 0, None)
    assert not first.simulated
