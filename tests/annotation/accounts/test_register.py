"""Passwords and names of accounts; the rules of the database are in the contract tests."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from made_accounts import made_account
from study_factory import joined

from annotation.accounts import register as accounts
from annotation.domain import Role, Step, StudyStatus
from annotation.errors import AccountError, ConflictError, NotFoundError, SignInError
from annotation.store import phases
from annotation.store.tables import EventRow, InvitationRow
from annotation.study import participants as people
from annotation.study.labelling import set_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PASSWORD = "four words make one"


@pytest.fixture
def ada(store):
    return accounts.add_first_administrator(store, "  Ada  Lovelace ", PASSWORD, NOW)


def test_the_password_opens_a_session_whatever_case_the_name_is_in(store, ada):
    session = accounts.sign_in(store, "ada lovelace", PASSWORD, NOW)
    assert session.account == ada
    assert ada.name == "Ada Lovelace"
    assert accounts.who(store, session.token, NOW) == ada


def test_a_wrong_password_and_an_unknown_name_are_told_alike(store, ada):
    told = set()
    for name, password in ((ada.name, "another one!!"), ("Bo", PASSWORD), ("a\0b", PASSWORD)):
        with pytest.raises(SignInError) as caught:
            accounts.sign_in(store, name, password, NOW)
        told.add(str(caught.value))
    assert told == {accounts.WRONG}


def test_an_unknown_name_costs_a_password_too(store, ada, monkeypatch):
    monkeypatch.setattr(accounts, "PARALLELISM", 2)
    costs = []
    real = hashlib.scrypt
    monkeypatch.setattr(
        hashlib, "scrypt", lambda *text, **cost: costs.append(cost["p"]) or real(*text, **cost)
    )
    for name in ("Ada Lovelace", "Bo"):
        with pytest.raises(SignInError):
            accounts.sign_in(store, name, "wrong password", NOW)
    assert costs == [2, 2]


def test_nobody_signs_in_with_the_password_that_stands_for_nobody(store):
    for password in ("", "0", "00" * 64):
        with pytest.raises(SignInError):
            accounts.sign_in(store, "nobody", password, NOW)


def test_there_is_one_first_administrator(store, ada):
    assert accounts.has_accounts(store)
    with pytest.raises(ConflictError):
        accounts.add_first_administrator(store, "Bo", PASSWORD, NOW)


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "a\x1bb"])
def test_a_name_must_be_readable(name):
    with pytest.raises(AccountError, match="1 to 80"):
        accounts.tidy(name)


@pytest.mark.parametrize("password", ["", "eleven char", "aaaaaaaaaaaaaaaa"])
def test_a_password_must_be_long_and_not_one_letter(password):
    with pytest.raises(AccountError):
        accounts.protect(password)


def test_changing_the_password_ends_all_other_sessions(store, ada):
    here, there = (accounts.sign_in(store, ada.name, PASSWORD, NOW).token for _ in range(2))
    with pytest.raises(SignInError, match="old password"):
        accounts.change_password(store, ada, "not this one", "five words make a few", keep=here)
    assert accounts.who(store, there, NOW) == ada
    accounts.change_password(store, ada, PASSWORD, "five words make a few", keep=here)
    assert accounts.who(store, here, NOW) == ada
    assert accounts.who(store, there, NOW) is None
    with pytest.raises(SignInError):
        accounts.sign_in(store, ada.name, PASSWORD, NOW)


def test_an_invitation_makes_an_account_of_its_role(store):
    ada = made_account(store, "Ada", Role.ADMINISTRATOR)
    link = accounts.invite(store, Role.RESEARCHER, NOW, by=ada)
    with pytest.raises(ConflictError):
        accounts.accept(store, link, "ada", PASSWORD, NOW)  # and the link works on
    session = accounts.accept(store, link, "Bo", PASSWORD, NOW)
    assert (session.account.name, session.account.role) == ("Bo", Role.RESEARCHER)
    assert accounts.who(store, session.token, NOW) == session.account
    with pytest.raises(NotFoundError):
        accounts.accept(store, link, "Cleo", PASSWORD, NOW)


def test_who_let_whom_in_is_told_and_kept(store):
    ada, cleo = (made_account(store, name, Role.ADMINISTRATOR) for name in ("Ada", "Cleo"))
    for_somebody = accounts.invite(store, Role.RESEARCHER, NOW, by=ada)
    for_ada = accounts.invite_to_reset(store, ada.id, NOW, by=cleo)
    told = accounts.open_invitations(store, NOW)
    assert {(one.invited_by, one.account) for one in told} == {("Ada", None), ("Cleo", ada)}
    later = NOW + timedelta(hours=1)
    for link, name in ((for_somebody, "Bo"), (for_ada, "")):
        accounts.accept(store, link, name, PASSWORD, later)
    assert accounts.open_invitations(store, later) == []
    rows = store.read(lambda tx: tx.query(InvitationRow).all())
    assert {(one.invited_by, one.account_id, one.role) for one in rows} == {
        (ada.id, None, "researcher"),
        (cleo.id, ada.id, "administrator"),
    }
    assert {(one.created, one.used) for one in rows} == {(NOW, later)}


def test_who_is_disabled_lets_nobody_in_any_more_also_once_they_are_back(store, ada):
    eve = made_account(store, "Eve", Role.ADMINISTRATOR)
    link = accounts.invite(store, Role.ADMINISTRATOR, NOW, by=eve)
    own = accounts.invite_to_reset(store, eve.id, NOW, by=ada)
    others = accounts.invite(store, Role.RESEARCHER, NOW, by=ada)
    accounts.disable(store, eve.id, NOW, by=ada)
    accounts.enable(store, eve.id, by=ada)
    for ended in (link, own):
        with pytest.raises(NotFoundError):
            accounts.invitation(store, ended, NOW)
    assert accounts.accept(store, others, "Bo", PASSWORD, NOW).account.name == "Bo"


def test_a_new_password_ends_all_links_to_another_one(store, ada):
    first, lost = (accounts.invite_to_reset(store, ada.id, NOW, by=ada) for _ in range(2))
    invited = accounts.invite(store, Role.RESEARCHER, NOW, by=ada)
    accounts.accept(store, first, "", "other words make two", NOW)
    with pytest.raises(NotFoundError, match="does not work"):
        accounts.accept(store, lost, "", "words of a mail that was lost", NOW)
    late = accounts.invite_to_reset(store, ada.id, NOW, by=ada)
    accounts.set_password(store, ada, PASSWORD)
    with pytest.raises(NotFoundError):
        accounts.invitation(store, late, NOW)
    assert [one.account for one in accounts.open_invitations(store, NOW)] == [None]
    assert accounts.accept(store, invited, "Bo", PASSWORD, NOW).account.name == "Bo"


def test_a_reset_link_changes_the_password_and_signs_out_elsewhere(store, ada):
    token = accounts.sign_in(store, ada.name, PASSWORD, NOW).token
    link = accounts.invite_to_reset(store, ada.id, NOW, by=ada)
    session = accounts.accept(store, link, "ignored", "five words make a few", NOW)
    assert session.account == ada
    assert accounts.who(store, token, NOW) is None
    assert accounts.who(store, session.token, NOW) == ada


def test_nobody_is_found_under_a_name_that_does_not_exist(store):
    made_account(store, "Ada")
    with pytest.raises(NotFoundError, match="'Ada'"):
        accounts.find_account(store, "Bo")


def test_an_event_says_who_let_in_somebody_who_had_failed(store, make_study):
    study = make_study(check=True, check_attempts=1)
    (anna,) = joined(store, study, "Anna")
    store.write(lambda tx: phases.go_on(tx, anna, Step.INSTRUCTIONS, NOW))
    store.write(lambda tx: phases.answer_check(tx, anna, {}, 0, NOW))
    assert people.let_in(store.by("Ada"), study.id, "Anna", NOW).id == anna.id
    events = store.read(lambda tx: tx.query(EventRow).filter_by(annotator_id=anna.id).all())
    last = events[-1]
    assert (last.kind, last.at) == (phases.MOVED, NOW)
    assert last.data == {"before": "failed", "after": "main", "protocol": 1, "by": "Ada"}
    assert "by" not in events[-2].data  # failing is nobody's doing


def test_events_say_which_account_caused_them(store, study, anna):
    people.pause(store.by("Ada"), study.id, "Anna", NOW)
    people.resume(store, study.id, "Anna", NOW)
    set_status(store.by("Bo"), study.id, StudyStatus.PAUSED)
    events = store.read(lambda tx: tx.query(EventRow).filter_by(study_id=study.id).all())
    told = [one.data.get("by") for one in events if one.kind in {"annotator_status", "status"}]
    assert told == ["Ada", None, "Bo"]
