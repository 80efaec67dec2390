"""`people list` and `people get` on small copies made here."""

import json

import pytest
from made_people import MAKERS
from typer.testing import CliRunner

from semsim.cli.main import app
from semsim.people import SOURCES

pytestmark = pytest.mark.usefixtures("unpinned")


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_list_names_every_source_with_licence_address_and_state(tmp_path):
    done = typed("people", "list", "--json", "--data-dir", tmp_path)
    rows = {row["name"]: row for row in json.loads(done.stdout)["sources"]}
    assert list(rows) == list(SOURCES)
    assert {row["state"] for row in rows.values()} == {"-"}
    assert rows["things-mooney"]["address"].endswith(SOURCES["things-mooney"].commit)
    assert "MIT" in typed("people", "list", "--data-dir", tmp_path).stdout


@pytest.mark.parametrize("name", SOURCES)
def test_get_from_a_copy_writes_an_import(name, tmp_path):
    copy, data = MAKERS[name](tmp_path / "copy"), tmp_path / "data"
    words = ("people", "get", name, "--from", copy, "--data-dir", data, "--accept-licence")
    done = typed(*words)
    assert done.exit_code == 0, done.output
    assert (data / "imports" / name / "import.json").is_file()
    listed = typed("people", "list", "--json", "--data-dir", data)
    state = {row["name"]: row["state"] for row in json.loads(listed.stdout)["sources"]}
    assert state[name] == "here"
    assert "is here already" in typed(*words).stderr


def test_a_non_commercial_licence_is_asked_for(tmp_path):
    copy, data = MAKERS["cifar-10h"](tmp_path / "copy"), tmp_path / "data"
    words = ["people", "get", "cifar-10h", "--from", str(copy), "--data-dir", str(data)]
    refused = CliRunner().invoke(app, words, input="n\n")
    assert refused.exit_code == 1
    assert "CC BY-NC-SA" in refused.output
    assert not data.exists()
    assert CliRunner().invoke(app, words, input="y\n").exit_code == 0


def test_get_says_what_cannot_be_fetched(tmp_path):
    done = typed("people", "get", "semsim-votes", "--data-dir", tmp_path)
    assert done.exit_code == 2
    assert "--from FOLDER" in done.stderr
    assert "Known: " in typed("people", "get", "nobody", "--data-dir", tmp_path).stderr
