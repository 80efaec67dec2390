"""What every command of both halves keeps to: errors, folders, endings."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from made_campaign import SYMBOLS
from typer.main import get_command
from typer.testing import CliRunner

from annotation.cli.main import app as human
from semsim.cli.main import app as science
from semsim.reproduce import REPRODUCTIONS
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


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_how_many_work_is_no_negative_number(call):
    for option in COMMANDS[call].params:
        if option.name in {"workers", "annotators", "people"} and isinstance(option.default, int):
            if option.min is None:  # settings say so themselves
                assert typed(call, option.opts[0], -2).exit_code == 2
            else:
                assert option.min >= 0


@pytest.mark.parametrize("half", APPS)
def test_no_group_offers_to_complete_itself(half):
    """A shell completes a program by its name, which a group does not have."""
    top = get_command(APPS[half])
    groups = [one for name in top.list_commands(None) if (one := top.get_command(None, name))]
    assert groups
    for group in groups:
        assert "--install-completion" not in {name for one in group.params for name in one.opts}


# A file is called like what it holds, and metrics are those of which higher ones leak more.
SINGULAR = {"--labels", "--votes", "--higher-leaks", "--lower-leaks"}
ELSEWHERE = {"--batch": "--batch-size", "--data": "--dataset", "--scale": "--preset"}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_one_thing_has_one_name(call):
    """What repeats is singular and says so, what takes commas is plural."""
    for option in COMMANDS[call].params:
        if option.param_type_name == "argument":
            assert option.name != "sets", "--set"
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


# What prints a sentence, a path or the file that it makes, and no table. All others take --json.
SENTENCES = {
    *[("annotation", "accounts", name) for name in ("add", "disable", "enable", "reset")],
    *[("annotation", "annotators", name) for name in ("erase", "include", "let-in", "link")],
    *[("annotation", "annotators", name) for name in ("pause", "resume")],
    *[("annotation", name) for name in ("amend", "backup", "export", "labels", "restore")],
    *[("annotation", name) for name in ("simulate", "texts")],
    *[("semsim", "campaign", name) for name in ("run", "vertical")],
    *[("semsim", "federated", name) for name in ("certificates", "join")],
    *[("semsim", "judge", name) for name in ("apply", "train")],
    *[("semsim", "demo", name) for name in ("build", "jury")],
    *[("semsim", "learn", name) for name in ("pretrain", "promote")],
    ("semsim", "datasets", "get"),
    *[("semsim", name) for name in ("cases", "report")],
}


def names_in(code):
    """What a function names, also in functions that it makes."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return {*code.co_names, *(name for one in inner for name in names_in(one))}


def calls_of(function):
    """The functions of ours that a function names, by their own module's names."""
    named, found = names_in(function.__code__), function.__globals__
    reach = [found[name] for name in named if name in found]
    modules = [one for one in reach if isinstance(one, ModuleType)]
    for module in [one for one in modules if one.__name__.partition(".")[0] in APPS]:
        reach += [getattr(module, name) for name in named if hasattr(module, name)]
    return {
        inspect.unwrap(one)
        for one in reach
        if isinstance(one, FunctionType) and one.__module__.partition(".")[0] in APPS
    }


def draws_a_table(function):
    """Whether `text_table` is called below a function, or `show` in it."""
    waiting, seen = [function], set()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += calls_of(one)
    told = {one.__name__ for one in calls_of(function)}
    return "text_table" in {one.__name__ for one in seen} or bool(told & {"show", "show_told"})


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_what_prints_a_table_prints_it_as_json_too(call):
    command = COMMANDS[call]
    has = "--json" in {name for one in command.params for name in one.opts}
    assert has == (call not in SENTENCES)
    if not has:
        assert not draws_a_table(inspect.unwrap(command.callback))


def test_tables_are_seen_where_they_are_drawn():
    found = {call for call in CALLS if draws_a_table(inspect.unwrap(COMMANDS[call].callback))}
    assert found >= {
        *[("semsim", "reproduce", name) for name in REPRODUCTIONS],
        *[("semsim", "federated", "serve"), ("semsim", "import", "scores")],
        *[("annotation", "create"), ("annotation", "annotators", "exclude")],
    }


def test_every_sentence_is_of_a_command():
    assert {*CALLS} >= SENTENCES


TALK = ("Wrote ", "Dry run", "No pictures")


@pytest.mark.parametrize("half", sorted(APPS))
def test_talk_is_said_on_standard_error(half):
    """Standard output has results alone: what was written, and that nothing was, is said."""
    for path in sorted((ROOT / half).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {
            one
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "say"
            for one in ast.walk(node)
        }
        talk = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.lstrip().startswith(TALK)
        ]
        assert [ast.unparse(one) for one in talk if one not in said] == [], path


# What makes something where there was nothing; everything else needs what is there.
MAKERS = {
    *[("annotation", name) for name in ("create", "restore")],
    ("annotation", "accounts", "add"),
}
# What says what is always so, or assumed, and needs nothing.
STATE = {("annotation", "texts"), ("annotation", "plan", "crowd")}


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
    ("judge", "apply", "--set", "nowhere", "--judge", "nobody"): 2,
    ("cases", NOWHERE, "--out", "cases.png"): 2,
    ("job", "nowhere"): 2,
    ("verdict", "nowhere"): 2,
    ("import", "auto", "nowhere", "--name", "x"): 2,
}


# What reads nothing that somebody made before, but fetches, makes or serves.
WRITING = {
    *[("campaign", "vertical"), ("datasets", "get"), ("demo", "build"), ("demo", "jury")],
    *[("federated", name) for name in ("certificates", "join", "serve")],
    *[("import", name) for name in ("annotator-files", "model-folders", "scores", "table")],
    *[("import", name) for name in ("class-folders", "semsim-cifar100", "variant-folders")],
    *[("judge", "train"), ("split", "study")],
    *[("learn", name) for name in ("leave-out", "pretrain", "study")],
    *[("reproduce", name) for name in REPRODUCTIONS],
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
