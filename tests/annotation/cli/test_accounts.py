"""The command group `accounts`, in process."""

from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from annotation.accounts import register as accounts
from annotation.cli.main import app
from annotation.errors import SignInError
from annotation.store import Store

PASSWORD = "four words make one"


@pytest.fixture
def run(tmp_path):
    def run(*arguments, password=PASSWORD):
        return CliRunner().invoke(
            app,
            ["accounts", *arguments, "--data-dir", str(tmp_path)],
            env={"SEMSIM_ADMIN_PASSWORD": password},
        )

    return run


def test_accounts_from_the_first_to_the_last(run, tmp_path):
    assert "Ada is administrator" in run("add", "Ada", "--role", "administrator").output
    assert "Bo is researcher" in run("add", "Bo").output
    assert "Bo is disabled" in run("disable", "bo").output
    listed = run("list").output.splitlines()
    head, *rows = [line.split() for line in listed]
    assert head == ["name", "role", "created", "disabled"]
    assert [row[:2] for row in rows] == [["Ada", "administrator"], ["Bo", "researcher"]]
    assert [len(row) for row in rows] == [3, 4]
    assert "Bo may sign in again" in run("enable", "Bo").output
    assert "Bo has a new password" in run("reset", "Bo", password="five words make a few").output
    check_password(tmp_path, "Bo", "five words make a few")


def check_password(folder, name, password):
    with Store(f"sqlite:///{folder / 'studies.db'}") as store:
        now = datetime.now(UTC)
        assert accounts.sign_in(store, name, password, now).account.name == name
        with pytest.raises(SignInError):
            accounts.sign_in(store, name, PASSWORD, now)


def test_what_cannot_be_done_is_told(run):
    run("add", "Ada", "--role", "administrator")
    for told, arguments in (
        ("last administrator", ("disable", "Ada")),
        ("There are: 'Ada'", ("reset", "Eve")),
        ("already", ("add", "ada")),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert told in done.output
    assert "at least 12" in run("add", "Bo", password="short").output
