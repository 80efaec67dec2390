"""The first account: asked for, taken from the environment, or the server does not start."""

import pytest
from made_accounts import made_account

from annotation.accounts import register as accounts
from annotation.accounts.access import ensure_administrator, require_loopback, who_may_enter
from annotation.domain import Role
from annotation.errors import AccountError

PASSWORD = "four words make one"


def answers(*given):
    """Somebody at the terminal who gives these answers, one a question."""
    left = list(given)
    return lambda question: left.pop(0)


def first(store):
    (only,) = accounts.list_accounts(store)
    return only.name, only.role


def test_somebody_at_the_terminal_is_asked(store):
    ensure_administrator(store, {}, answers("Ada"), answers(PASSWORD, PASSWORD))
    assert first(store) == ("Ada", Role.ADMINISTRATOR)


def test_two_different_passwords_make_no_account(store):
    with pytest.raises(AccountError, match="not the same"):
        ensure_administrator(store, {}, answers(""), answers(PASSWORD, PASSWORD + "!"))
    assert not accounts.has_accounts(store)


def test_the_environment_goes_first(store):
    environment = {"SEMSIM_ADMIN_PASSWORD": PASSWORD}
    ensure_administrator(store, environment, answers(), answers())
    assert first(store) == ("admin", Role.ADMINISTRATOR)


def test_the_environment_may_name_the_administrator(store):
    environment = {"SEMSIM_ADMIN_PASSWORD": PASSWORD, "SEMSIM_ADMIN": "Ada"}
    ensure_administrator(store, environment, None, answers())
    assert first(store) == ("Ada", Role.ADMINISTRATOR)


@pytest.mark.parametrize("password", ["", "admin"])
def test_no_weak_password_is_taken_from_there(store, password):
    with pytest.raises(AccountError, match="at least 12"):
        ensure_administrator(store, {"SEMSIM_ADMIN_PASSWORD": password}, None, answers())
    assert not accounts.has_accounts(store)


def test_without_anybody_to_ask_the_server_says_what_to_do(store):
    with pytest.raises(AccountError, match=r"SEMSIM_ADMIN_PASSWORD.*accounts add.*--local"):
        ensure_administrator(store, {}, None, answers())
    assert not accounts.has_accounts(store)


def test_where_there_is_an_account_nothing_is_asked(store):
    made_account(store, "Ada")
    ensure_administrator(store, {"SEMSIM_ADMIN_PASSWORD": PASSWORD}, answers(), answers())
    assert first(store) == ("Ada", Role.RESEARCHER)


def test_local_is_for_this_machine_only(store):
    assert who_may_enter(store, "127.0.0.1", local=True) is None
    for host in ("0.0.0.0", "::", "192.168.0.7", "lab.example.org"):
        with pytest.raises(AccountError, match="--local"):
            who_may_enter(store, host, local=True)
    require_loopback("localhost")


def test_without_local_accounts_decide(store):
    made_account(store, "Ada")
    who = who_may_enter(store, "0.0.0.0", local=False)
    assert who("made up") is None
