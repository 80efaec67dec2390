"""Accounts on every database: who may enter, for how long, and who is the last to."""

from datetime import timedelta
from functools import partial

import pytest
from helpers import at_once
from made_accounts import SECRET, made_account, made_session
from sqlalchemy import text
from study_factory import START as NOW

from annotation.accounts import register as accounts
from annotation.domain import IDLE, INVITATION, LONGEST_SESSION, Role, Secret
from annotation.errors import ConflictError, NotAllowedError, NotFoundError, SignInError
from annotation.store import Store
from annotation.store import accounts as rows

MOMENT = timedelta(microseconds=1)
ADMIN, RESEARCHER = Role.ADMINISTRATOR, Role.RESEARCHER


@pytest.fixture
def ada(store):
    return made_account(store, "Ada", ADMIN)


def opened(store, name="Ada", at=NOW):
    return store.write(lambda tx: rows.open_session(tx, name, SECRET, at)).token


def kept(store, table):
    return store.read(lambda tx: tx.execute(text(f"SELECT * FROM {table}")).all())


def test_a_name_is_taken_whatever_its_letter_case(store, ada):
    with pytest.raises(ConflictError, match="ADA"):
        made_account(store, "ADA")
    assert accounts.find_account(store, " ada ") == ada


def test_two_who_take_a_name_at_once_get_one_account(store):
    outcomes = at_once(
        *[partial(made_account, store, name) for name in ("Bo", "bo")], refused=ConflictError
    )
    assert sorted(type(one).__name__ for one in outcomes) == ["Account", "ConflictError"]


def test_a_session_ends_when_nobody_uses_it_for_30_days(store, ada):
    token = opened(store)
    assert accounts.who(store, token, NOW + IDLE - MOMENT) == ada  # and is seen then
    assert accounts.who(store, token, NOW + 2 * IDLE - 2 * MOMENT) == ada
    assert accounts.who(store, token, NOW + 3 * IDLE - 2 * MOMENT) is None


def test_a_session_ends_after_90_days_however_much_it_is_used(store, ada):
    token = opened(store)
    for day in range(1, LONGEST_SESSION.days):
        assert accounts.who(store, token, NOW + timedelta(days=day)) == ada
    assert accounts.who(store, token, NOW + LONGEST_SESSION) is None


def test_ended_sessions_are_forgotten(store, ada):
    opened(store)
    opened(store, at=NOW + IDLE)
    assert len(kept(store, "account_session")) == 1


def test_a_session_in_use_is_not_written_down_each_time(store, ada):
    token = opened(store)
    before = kept(store, "account_session")
    accounts.who(store, token, NOW + timedelta(minutes=59))
    assert kept(store, "account_session") == before


def test_sessions_outlive_the_server(store, ada):
    token = opened(store)
    with Store(store.url) as again:
        assert accounts.who(again, token, NOW) == ada


def test_signing_out_ends_that_session_only(store, ada):
    one, other = opened(store), opened(store)
    accounts.sign_out(store, one)
    accounts.sign_out(store, one)
    assert accounts.who(store, one, NOW) is None
    assert accounts.who(store, other, NOW) == ada


def test_tokens_are_not_in_the_database(store, ada):
    session = made_session(store, "Ada")
    link = accounts.invite(store, RESEARCHER, NOW, by=ada)
    everything = str([kept(store, table) for table in ("account_session", "invitation")])
    assert session not in everything
    assert link not in everything


def test_who_is_disabled_is_out_at_once(store, ada):
    bo = made_account(store, "Bo")
    token = opened(store, "Bo")
    accounts.disable(store, bo.id, NOW, by=ada)
    assert accounts.who(store, token, NOW) is None
    with pytest.raises(SignInError):
        opened(store, "Bo")
    accounts.enable(store, bo.id, by=ada)
    assert accounts.who(store, token, NOW) is None  # signing in anew is asked for
    assert accounts.who(store, opened(store, "Bo"), NOW) == bo


def test_a_password_changed_while_somebody_signs_in_wins(store, ada):
    accounts.who(store, opened(store), NOW)
    store.write(lambda tx: rows.put_secret(tx, ada.id, Secret(salt="22", hash="33")))
    with pytest.raises(SignInError):
        opened(store)


def test_the_last_administrator_stays(store, ada):
    for change in (
        lambda by: accounts.disable(store, ada.id, NOW, by=by),
        lambda by: accounts.change_role(store, ada.id, RESEARCHER, by=by),
    ):
        for by in (ada, None):
            with pytest.raises(ConflictError, match="last administrator"):
                change(by)
    bo = made_account(store, "Bo", ADMIN)
    accounts.disable(store, bo.id, NOW, by=ada)
    with pytest.raises(ConflictError, match="last administrator"):
        accounts.change_role(store, ada.id, RESEARCHER, by=ada)
    accounts.enable(store, bo.id, by=ada)
    assert accounts.change_role(store, ada.id, RESEARCHER, by=ada).role is RESEARCHER


def test_two_administrators_cannot_remove_each_other(store, ada):
    bo = made_account(store, "Bo", ADMIN)
    outcomes = at_once(
        lambda: accounts.disable(store, bo.id, NOW, by=ada),
        lambda: accounts.change_role(store, ada.id, RESEARCHER, by=bo),
        refused=NotAllowedError,
    )
    assert sum(isinstance(one, NotAllowedError) for one in outcomes) == 1
    left = [one for one in accounts.list_accounts(store) if one.disabled is None]
    assert [one.role for one in left].count(ADMIN) == 1


def test_only_administrators_may_administer(store, ada):
    bo = made_account(store, "Bo")
    for change in (
        lambda: accounts.disable(store, ada.id, NOW, by=bo),
        lambda: accounts.enable(store, ada.id, by=bo),
        lambda: accounts.change_role(store, bo.id, ADMIN, by=bo),
        lambda: accounts.invite(store, ADMIN, NOW, by=bo),
        lambda: accounts.invite_to_reset(store, ada.id, NOW, by=bo),
        lambda: accounts.withdraw(store, "00", by=bo),
    ):
        with pytest.raises(NotAllowedError):
            change()
    assert accounts.list_accounts(store) == [ada, bo]


def test_a_link_works_for_seven_days_and_until_it_is_withdrawn(store, ada):
    link = accounts.invite(store, RESEARCHER, NOW, by=ada)
    assert accounts.invitation(store, link, NOW + INVITATION - MOMENT).role is RESEARCHER
    with pytest.raises(NotFoundError):
        accounts.invitation(store, link, NOW + INVITATION)
    (invitation,) = accounts.open_invitations(store, NOW)
    accounts.withdraw(store, invitation.id, by=ada)
    with pytest.raises(NotFoundError):
        accounts.invitation(store, link, NOW)


def test_links_of_somebody_who_may_invite_no_more_are_dead(store, ada):
    bo = made_account(store, "Bo", ADMIN)
    link = accounts.invite(store, ADMIN, NOW, by=bo)
    accounts.change_role(store, bo.id, RESEARCHER, by=ada)
    assert accounts.open_invitations(store, NOW) == []
    with pytest.raises(NotFoundError):
        store.write(lambda tx: rows.use_invitation(tx, link, NOW))


def test_a_link_works_once_even_at_the_same_moment(store, ada):
    link = accounts.invite(store, RESEARCHER, NOW, by=ada)

    def use():
        return store.write(lambda tx: rows.use_invitation(tx, link, NOW))

    outcomes = at_once(use, use, refused=NotFoundError)
    assert sorted(type(one).__name__ for one in outcomes) == ["Invitation", "NotFoundError"]


def test_a_reset_link_of_somebody_disabled_is_dead(store, ada):
    bo = made_account(store, "Bo")
    link = accounts.invite_to_reset(store, bo.id, NOW, by=ada)
    assert accounts.invitation(store, link, NOW).account == bo
    accounts.disable(store, bo.id, NOW, by=ada)
    with pytest.raises(NotFoundError):
        accounts.invitation(store, link, NOW)
