"""What every command of both halves keeps to: errors, folders, endings."""

import subprocess
import sys
from pathlib import Path

import pytest
from made_campaign import SYMBOLS
from typer.main import get_command
from typer.testing import CliRunner

from annotation.cli.main import app as human
from semsim.cli.main import app as science
from semsim.weights import CHECKPOINTS

ROOT = Path(__file__).resolve().parents[2]
APPS = {"annotation": human, "semsim": science}


def leaves(command, words=()):
    """Every command that is no group, with the words that call it."""
    if not hasattr(command, "list_commands"):
        return [(words, command)]
    return [
        leaf
        for name in command.list_commands(None)
        for leaf in leaves(command.get_command(None, name), (*words, name))
    ]


COMMANDS = {
    (half, *words): command
    for half, app in APPS.items()
    for words, command in leaves(get_command(app))
}
CALLS = sorted(COMMANDS)


def typed(call, *arguments):
    half, *words = call
    return CliRunner().invoke(APPS[half], [*words, *map(str, arguments)])


def test_the_walk_finds_all_of_them():
    assert len(CALLS) > 50
    assert {("annotation", "annotators", "list"), ("semsim", "campaign", "status")} <= {*CALLS}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_data_and_weights_lie_in_one_place_by_default(call):
    places = {"data_dir": ROOT / "data", "checkpoints": CHECKPOINTS}
    for option in COMMANDS[call].params:
        if option.name in places:
            assert Path(option.default) == places[option.name]


# A file is called like what it holds, and metrics are those of which higher ones leak more.
SINGULAR = {"--labels", "--votes", "--higher-leaks", "--lower-leaks"}
ELSEWHERE = {"--batch": "--batch-size", "--data": "--dataset", "--scale": "--preset"}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_one_thing_has_one_name(call):
    """What repeats is singular and says so, what takes commas is plural."""
    for option in COMMANDS[call].params:
        if option.param_type_name == "argument":
            continue
        name, told = option.opts[0], option.help or ""
        assert name not in ELSEWHERE, ELSEWHERE.get(name)
        assert ("Repeatable." in told) == option.multiple, name
        assert not option.multiple or not name.endswith("s") or name in SINGULAR, name
        commas = "ith commas" in told and "=" not in told
        assert not commas or name.endswith("s"), name


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_usage_error_begins_like_every_other_error(call):
    done = typed(call, "--no-such-option")
    assert done.exit_code == 2
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert "--no-such-option" in said


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_command_explains_itself_in_two_ways_and_can_be_told_how_loud_to_be(call):
    short, long = typed(call, "-h"), typed(call, "--help")
    assert short.exit_code == 0
    assert short.output == long.output
    options = {name for one in COMMANDS[call].params for name in one.opts}
    assert options >= {"-v", "--verbose", "-q", "--quiet"}


# What makes something where there was nothing; everything else needs what is there.
MAKERS = {
    *[("annotation", name) for name in ("create", "restore")],
    ("annotation", "accounts", "add"),
}
STATE = {("annotation", "texts")}  # what says what is always so, and needs nothing


@pytest.mark.parametrize(
    "call", [c for c in CALLS if c[0] == "annotation" and c not in MAKERS | STATE], ids=" ".join
)
def test_nothing_is_made_where_there_are_no_studies(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "no/such"
    done = typed(call, *needed(COMMANDS[call], tmp_path), "--data-dir", data)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert str(data) in done.stderr
    assert list(tmp_path.iterdir()) == []


def needed(command, folder):
    """Something for every argument and option that must be given."""
    given = {"setting": "title=x", "why": "because", "votes": "keep", "out": folder / "made.csv"}
    words = []
    for one in command.params:
        if one.required:
            value = given.get(one.name, "nobody")
            words += [value] if one.param_type_name == "argument" else [one.opts[0], value]
    return words


NOWHERE = "nowhere.parquet"
TINY = ("--name", "x", "--dataset", SYMBOLS, "--architecture", "cnn-small:width=4")
TINY += ("--strategy", "none", "--attack", "invgrad:steps=3", "--images", "2")
READING = {
    ("campaign", "status"): 0,
    ("campaign", "status", "--name", "nobody"): 2,
    ("compare", NOWHERE): 2,
    ("federated", "compare", "--out", "-"): 2,
    ("report", NOWHERE): 2,
    ("learn", "counts", "--labels", NOWHERE): 2,
    ("learn", "run", "--labels", NOWHERE, "--name", "x"): 2,
    ("learn", "promote", "nobody"): 2,
    ("datasets", "list", "--root", "nowhere"): 0,
    ("weights", "--checkpoints", "nowhere"): 1,
    ("score", "--set", "nowhere"): 2,
    ("score", "--labels", NOWHERE): 2,
    ("import", "train-with-ori", "nowhere", "--name", "x"): 2,
    ("audit", "cnn3:9"): 2,
    ("campaign", "plan", "--name", "x", "--dataset", "nobody"): 2,
    ("campaign", "plan", *TINY): 0,
    ("campaign", "run", "--name", "x", "--dataset", "nobody"): 2,
    ("split", "run", "--file", "nowhere.json"): 2,
    ("judge", "list"): 0,
    ("judge", "apply", "nowhere", "--judge", "nobody"): 2,
    ("cases", NOWHERE, "--out", "cases.png"): 2,
    ("job", "nowhere"): 2,
    ("import", "auto", "nowhere", "--name", "x"): 2,
}


# What reads nothing that somebody made before, but fetches, makes or serves.
WRITING = {
    *[("campaign", "vertical"), ("datasets", "get"), ("demo", "build"), ("demo", "jury")],
    *[("federated", name) for name in ("certificates", "join", "serve")],
    *[("import", name) for name in ("annotator-files", "model-folders", "scores", "table")],
    *[("import", name) for name in ("semsim-cifar100", "variant-folders")],
    *[("judge", "train"), ("split", "study")],
    *[("learn", name) for name in ("carry-out", "leave-out", "pretrain", "study")],
    *[("reproduce", name) for name in ("copa", "ensembler", "pbpfl", "semsim")],
}


def called(words):
    """The command that `words` call, without the name of its half."""
    return words[: 2 if ("semsim", *words[:2]) in COMMANDS else 1]


def test_every_command_of_the_science_is_said_to_read_or_to_write():
    reading = {called(words) for words in READING}
    assert reading | WRITING == {call[1:] for call in CALLS if call[0] == "semsim"}
    assert not reading & WRITING


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_science_makes_nothing_where_there_is_nothing(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = ("semsim", *called(words))
    absent = [("--data-dir", "absent"), ("--checkpoints", "absent"), ("--scores", "absent")]
    known = {name for one in COMMANDS[call].params for name in one.opts} - set(words)
    away = [word for pair in absent if pair[0] in known for word in pair]
    done = typed(("semsim",), *words, *away)
    assert done.exit_code == READING[words]
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    if done.exit_code == 2:
        assert any(line.startswith("Error: ") for line in done.stderr.splitlines())
    assert list(tmp_path.iterdir()) == []


def test_the_studio_tells_errors_alike_and_has_the_same_folder():
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py"), "--no-such-option"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "\nError: unrecognized arguments: --no-such-option" in done.stderr
