"""What the studio's log has, and what it must never have."""

import argparse
import asyncio
import logging

import pytest

from annotation.web import logs

SECRET = "c2VjcmV0"


@pytest.fixture
def begun():
    """Starts a log with options; afterwards all is as it was."""
    names = ("", "annotation", "semsim", logs.ACCESS)
    loggers = [logging.getLogger(name) for name in names]
    before = [(one, one.level, list(one.handlers), one.propagate) for one in loggers]

    def begin(*options):
        parser = argparse.ArgumentParser()
        logs.add_options(parser)
        logs.begin(parser.parse_args([*options]))

    yield begin
    for one, level, handlers, propagate in before:
        for handler in set(one.handlers) - set(handlers):
            one.removeHandler(handler)
            handler.close()
        one.setLevel(level)
        one.propagate = propagate


def visit(path, status=200):
    """One request of somebody with a session, answered with `status`."""

    async def answering(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body"})

    async def told(message):
        pass

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": f"PROLIFIC_PID={SECRET}".encode(),
        "client": ("192.0.2.7", 1),
        "headers": [(b"cookie", f"semsim_session={SECRET}".encode())],
    }
    asyncio.run(logs.Accessed(answering)(scope, None, told))


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/", "/"),
        ("/login", "/login"),
        (f"/join/{SECRET}", "/join/…"),
        (f"/me/{SECRET}", "/me/…"),
        (f"/invite/{SECRET}", "/invite/…"),
        (f"/invite/{SECRET}/more", "/invite/…"),
        ("/studio/people", "/studio/people"),
        (f"/studio/download/{SECRET}/votes.csv", "/studio/download/…"),
        ("/api/vote", "/api/vote"),
        (f"/label\nGET /{SECRET}", "/?/…"),
    ],
)
def test_a_path_is_kept_without_what_may_be_a_secret(path, kept):
    assert logs.without_secrets(path) == kept


def test_the_access_log_says_what_was_asked_and_not_who_asked(begun, tmp_path):
    file = tmp_path / "studio.log"
    begun("--access-log", "--log-file", str(file))
    visit(f"/join/{SECRET}", 404)
    visit("/api/next")
    lines = file.read_text().splitlines()
    assert [line.split(": ", 1)[1].rsplit(" ", 2)[0] for line in lines] == [
        "GET /join/… 404",
        "GET /api/next 200",
    ]
    assert all(secret not in file.read_text() for secret in (SECRET, "192.0.2.7", "PROLIFIC"))


def test_without_the_option_no_request_is_logged(begun, tmp_path):
    begun("--log-file", str(tmp_path / "studio.log"))
    visit("/api/next")
    assert (tmp_path / "studio.log").read_text() == ""


@pytest.mark.parametrize(
    ("options", "on_the_terminal", "in_the_file"),
    [
        ([], ["WARNING", "ERROR"], ["INFO", "WARNING", "ERROR"]),
        (["-v"], ["INFO", "WARNING", "ERROR"], ["DEBUG", "INFO", "WARNING", "ERROR"]),
        (["-q"], ["ERROR"], ["INFO", "WARNING", "ERROR"]),
    ],
)
def test_levels_of_terminal_and_file(
    begun, tmp_path, capsys, options, on_the_terminal, in_the_file
):
    begun(*options, "--log-file", str(tmp_path / "studio.log"))
    for level in ("DEBUG", "INFO", "WARNING", "ERROR"):
        logging.getLogger("semsim.made").log(getattr(logging, level), "something")
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.split()[2] for line in told.err.splitlines()] == on_the_terminal
    kept = (tmp_path / "studio.log").read_text().splitlines()
    assert [line.split()[2] for line in kept] == in_the_file


def test_the_file_says_that_a_study_was_made_and_not_what_it_is_called(begun, tmp_path, make_study):
    begun("--log-file", str(tmp_path / "studio.log"))
    made = make_study(name="Ada's own")
    (line,) = (tmp_path / "studio.log").read_text().splitlines()
    told = f"INFO annotation.study.create: Study {made.id} was made, of {made.n_items} items."
    assert line.split(" ", 2)[2] == told


def test_a_full_file_is_put_aside_and_five_are_kept(begun, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "BYTES", 200)
    begun("--log-file", str(tmp_path / "studio.log"))
    for number in range(40):
        logging.getLogger("annotation").info("line %d", number)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"studio.log", *(f"studio.log.{n}" for n in range(1, 6))}
    assert "line 39" in (tmp_path / "studio.log").read_text()
