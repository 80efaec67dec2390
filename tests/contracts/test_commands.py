"""What every command of both halves keeps to: errors, folders, endings."""

import ast
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from json_parts import differing
from made_campaign import SYMBOLS
from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

import app
from annotation.cli.main import app as human
from annotation.cli.main import study as study_app
from semsim.base.cli.commands import parts_of
from semsim.base.storage.places import PROGRAM, toml_of
from semsim.base.words import listed
from semsim.cli.main import app as science
from semsim.papers import REPRODUCTIONS
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
    for half, door in APPS.items()
    for words, command in leaves(get_command(door))
}
CALLS = sorted(COMMANDS)


def typed(call, *arguments):
    half, *words = call
    return CliRunner().invoke(APPS[half], [*words, *map(str, arguments)])


def test_the_walk_finds_all_of_them():
    assert len(CALLS) > 50
    assert {("annotation", "annotators", "list"), ("semsim", "campaign", "status")} <= {*CALLS}


# Every option or argument of a command with the words that call it: checks name all offenders.
OPTIONS = [(call, option) for call in CALLS for option in COMMANDS[call].params]


def test_data_and_weights_lie_in_one_place_by_default():
    places = {"data_dir": ROOT / "data", "checkpoints": CHECKPOINTS}
    found = [(call, one.name, Path(one.default)) for call, one in OPTIONS if one.name in places]
    assert len(found) > 30
    assert [(call, name, at) for call, name, at in found if at != places[name]] == []


def test_how_many_work_is_no_negative_number():
    counts = {"workers", "annotators", "people"}
    asked = [o for o in OPTIONS if o[1].name in counts and isinstance(o[1].default, int)]
    assert asked
    assert [(call, one.name) for call, one in asked if not refuses_negative(call, one)] == []


def refuses_negative(call, option):
    if option.min is None:  # settings say so themselves
        return typed(call, option.opts[0], -2).exit_code == 2
    return option.min >= 0


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
ELSEWHERE |= {"--settings": "--train"}
COMMON = {"--data-dir", "--checkpoints", "--device", "--database", "--scheduler"}


def misnamed(option):
    """Why an option or argument has not the name that its like have; "" where it has."""
    if option.param_type_name == "argument":
        return "--set" if option.name == "sets" else ""
    name, told = option.opts[0], option.help or ""
    commas = "ith commas" in told and "=" not in told
    wrong = {
        f"it is {ELSEWHERE.get(name)}": name in ELSEWHERE,
        "what repeats says so": ("Repeatable." in told) != option.multiple,
        "what repeats is singular": option.multiple and name.endswith("s") and name not in SINGULAR,
        "a column is called so": ("-column" in name) != (told.startswith("Column")),
        "what takes commas is plural": commas and not name.endswith("s"),
    }
    return "; ".join(why for why, holds in wrong.items() if holds)


def test_one_thing_has_one_name():
    assert [(call, one.opts, why) for call, one in OPTIONS if (why := misnamed(one))] == []


def test_an_option_has_one_sort_of_value_and_a_common_one_has_one_text():
    sorts, texts = {}, {}
    for call, one in OPTIONS:
        if one.param_type_name == "option":
            sort = "TEXT" if "|" in one.metavar else one.metavar
            sorts.setdefault(one.opts[0], {}).setdefault(sort, []).append(call)
            texts.setdefault(one.opts[0], {}).setdefault(one.help, []).append(call)
    assert {name: found for name, found in sorts.items() if len(found) > 1} == {}
    assert {name: texts[name] for name in COMMON if len(texts[name]) > 1} == {}


def test_a_usage_error_begins_like_every_other_error():
    wrong = {}
    for call in CALLS:
        done = typed(call, "--no-such-option")
        said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        if done.exit_code != 2 or len(said) != 1 or "--no-such-option" not in said[0]:
            wrong[call] = (done.exit_code, done.stderr)
    assert wrong == {}


HELP = re.compile(r"--help +-h\b")  # one option of two names


def test_a_command_explains_itself_in_two_ways():
    wrong = []
    for call in CALLS:
        done = typed(call, "-h")
        if done.exit_code != 0 or not HELP.search(done.output):
            wrong.append(call)
    assert wrong == []
    assert typed(CALLS[0], "--help").output == typed(CALLS[0], "-h").output


def test_a_command_begins_with_one_to_three_examples_that_it_can_read():
    door = get_command(app.front)
    found = {}
    for call in CALLS:
        calls = re.findall(
            rf"^  {PROGRAM} (.+)$", COMMANDS[call].help.partition("Examples:")[2], re.M
        )
        found[call] = calls if 0 < len(calls) < 4 else []
        for one in calls:
            context, words = Context(door), shlex.split(one.partition(" > ")[0])
            while hasattr(context.command, "resolve_command"):
                name, command, words = context.command.resolve_command(context, words)
                context = Context(command, parent=context, info_name=name)
            assert inspect.unwrap(context.command.callback) == inspect.unwrap(
                COMMANDS[call].callback
            )
            context.command.parse_args(context, words)
    assert [call for call, calls in found.items() if not calls] == []


# A type of Python, as Typer shows it, and a limit or an argument as a formula.
TYPES = re.compile(r"<(?:bool|str|int|float|path|list\[.*?\]|(?:int|float) range)>|\[x|Usage.*[{}]")


def test_help_names_values_in_words_and_no_types():
    helps = {call: typed(call, "-h").output for call in CALLS}
    helps |= {half: CliRunner().invoke(door, ["-h"]).output for half, door in APPS.items()}
    helps |= {"front": CliRunner().invoke(app.front, ["-h"]).output}
    assert {call: found for call, text in helps.items() if (found := TYPES.findall(text))} == {}
    assert "compare [OPTIONS] VOTES [SCORES]" in helps["semsim", "compare"]
    limits = {one._get_number_range_help_str() for _, one in OPTIONS}
    assert {"", "at least 1", "1 to 1000"} <= limits
    shown = [one.metavar for _, one in OPTIONS if one.param_type_name == "option" and one.is_flag]
    assert {*shown} == {""}


def test_help_is_a_word_too_and_has_exit_codes_and_environment():
    for half, door in APPS.items():
        whole = CliRunner().invoke(door, ["help"])
        assert whole.output == CliRunner().invoke(door, ["--help"]).output
        assert "Exit codes: 0 " in whole.output, half
        assert "SEMSIM_HOME" in whole.output, half
    assert typed(("semsim",), "help", "score").output == typed(("semsim", "score"), "-h").output


def test_a_default_is_of_no_machine():
    wrong = [
        (call, one.name)
        for call, one in OPTIONS
        if isinstance(one.default, Path) and one.default.is_absolute() and one.show_default is True
    ]
    assert wrong == []
    assert str(ROOT) not in typed(("semsim", "train", "run"), "-h").output


def names_of(call):
    return {name for one in COMMANDS[call].params for name in one.opts}


def test_a_command_can_be_told_how_loud_to_be():
    loudness = {"-v", "--verbose", "-q", "--quiet"}
    assert [call for call in CALLS if not names_of(call) >= loudness] == []


# What prints a sentence, a path or the file that it makes, and no table. All others take --json.
SENTENCES = {
    *[("annotation", "accounts", name) for name in ("add", "disable", "enable", "reset")],
    *[("annotation", "annotators", name) for name in ("erase", "include", "let-in", "link")],
    *[("annotation", "annotators", name) for name in ("pause", "resume")],
    *[("annotation", name) for name in ("amend", "backup", "export", "labels", "restore")],
    *[("annotation", name) for name in ("simulate", "texts")],
    *[("semsim", "campaign", name) for name in ("run", "vertical")],
    *[("semsim", "federated", name) for name in ("certificates", "join")],
    *[("semsim", "distractors", name) for name in ("apply", "train")],
    *[("semsim", "demo", name) for name in ("build", "jury", "people")],
    *[("semsim", "train", name) for name in ("pretrain", "promote")],
    ("semsim", "datasets", "get"),
    *[("semsim", name) for name in ("examples", "report")],
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


def test_what_prints_a_table_prints_it_as_json_too():
    without = {call for call in CALLS if "--json" not in names_of(call)}
    assert without == SENTENCES
    assert [c for c in without if draws_a_table(inspect.unwrap(COMMANDS[c].callback))] == []


def test_tables_are_seen_where_they_are_drawn():
    found = {call for call in CALLS if draws_a_table(inspect.unwrap(COMMANDS[call].callback))}
    assert found >= {
        *[("semsim", "reproduce", name) for name in REPRODUCTIONS],
        *[("semsim", "federated", "serve"), ("semsim", "import", "scores")],
        *[("annotation", "create"), ("annotation", "annotators", "exclude")],
    }


# What may go to standard output, each typed so by a test of its own.
TO_STDOUT = {
    *[("annotation", name) for name in ("export", "labels")],
    *[("semsim", name) for name in ("report", "score")],
}


def test_what_may_go_to_standard_output_is_typed_so_by_a_test():
    outs = {call: one.help for call, one in OPTIONS if one.name == "out"}
    assert {call for call, told in outs.items() if "- is" in told} == TO_STDOUT


TALK = ("Wrote ", "Dry run", "No pictures")


@pytest.mark.parametrize("half", sorted(APPS))
def test_talk_is_said_on_standard_error(half):
    """Standard output has results alone: what was written, and that nothing was, is said."""
    for path in sorted((ROOT / half).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(begun in text for begun in TALK):
            continue
        tree = ast.parse(text)
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


def test_nothing_is_made_where_there_are_no_studies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "no/such"
    asked = [c for c in CALLS if c[0] == "annotation" and c not in MAKERS | STATE]
    assert asked
    wrong = {}
    for call in asked:
        done = typed(call, *needed(COMMANDS[call], tmp_path), "--data-dir", data)
        told = done.stderr.startswith("Error: ") and str(data) in done.stderr
        if done.exit_code != 2 or not told or list(tmp_path.iterdir()):
            wrong[call] = (done.exit_code, done.stderr, list(tmp_path.iterdir()))
    assert wrong == {}


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
    ("train", "counts", "--labels", NOWHERE): 2,
    ("train", "run", "--labels", NOWHERE, "--name", "x"): 2,
    ("train", "promote", "nobody"): 2,
    ("datasets", "list", "--root", "nowhere"): 0,
    ("people", "list"): 0,
    ("weights", "--checkpoints", "nowhere"): 0,
    ("score", "--set", "nowhere"): 2,
    ("score", "--labels", NOWHERE): 2,
    ("import", "train-with-ori", "nowhere", "--name", "x"): 2,
    ("audit", "cnn3:9"): 2,
    ("campaign", "plan", "--name", "x", "--dataset", "nobody"): 2,
    ("campaign", "plan", *TINY): 0,
    ("campaign", "run", "--name", "x", "--dataset", "nobody"): 2,
    ("split", "run", "--file", "nowhere.json"): 2,
    ("distractors", "list"): 0,
    ("distractors", "apply", "--set", "nowhere", "--name", "nobody"): 2,
    ("examples", NOWHERE, "--out", "cases.png"): 2,
    ("job", "nowhere"): 2,
    ("baseline-check", "nowhere"): 2,
    ("import", "auto", "nowhere", "--name", "x"): 2,
}


# What reads nothing that somebody made before, but fetches, makes or serves.
WRITING = {
    *[("campaign", "vertical"), ("datasets", "get"), ("demo", "build"), ("demo", "jury")],
    ("demo", "people"),
    *[("federated", name) for name in ("certificates", "join", "serve")],
    *[("import", name) for name in ("annotator-files", "model-folders", "scores", "table")],
    *[("import", name) for name in ("class-folders", "semsim-cifar100", "variant-folders")],
    *[("distractors", "train"), ("people", "get"), ("split", "study")],
    *[("train", name) for name in ("leave-out", "pretrain", "study")],
    *[("reproduce", name) for name in REPRODUCTIONS],
}


def called(words):
    """The command that `words` call, without the name of its half."""
    return words[: 2 if ("semsim", *words[:2]) in COMMANDS else 1]


def test_every_command_of_the_science_is_said_to_read_or_to_write():
    reading = {called(words) for words in READING}
    assert reading | WRITING == {call[1:] for call in CALLS if call[0] == "semsim"}
    assert not reading & WRITING


def test_science_makes_nothing_where_there_is_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    absent = {"--data-dir": "absent", "--checkpoints": "absent", "--cache-dir": "absent"}
    wrong = {}
    for words, code in READING.items():
        known = names_of(("semsim", *called(words))) - set(words)
        away = [word for name in absent if name in known for word in (name, absent[name])]
        done = typed(("semsim",), *words, *away)
        lines = done.stderr.splitlines()
        told = code != 2 or any(line.startswith("Error: ") for line in lines)
        ended = done.exception is None or isinstance(done.exception, SystemExit)
        if done.exit_code != code or not told or not ended or list(tmp_path.iterdir()):
            wrong[words] = (done.exit_code, done.output, done.exception, list(tmp_path.iterdir()))
    assert wrong == {}


def test_the_door_leads_to_every_command_of_both_halves():
    """Those of a study below `study`, those of the server and of the science at its top.

    `python -m annotation studies` is a second name of `list`.
    """
    through = {words for words, _ in leaves(get_command(app.front))}
    study = {words for words, _ in leaves(get_command(study_app))}
    assert through == {
        *[("study", *words) for words in study],
        *[call[1:] for call in CALLS if call[0] == "semsim"],
        *[
            call[1:]
            for call in CALLS
            if call[0] == "annotation" and call[1:] not in {*study, ("studies",)}
        ],
        *[("serve",), ("doctor",)],
    }


def test_the_list_of_the_door_names_them_and_is_shown_without_a_word():
    done = CliRunner().invoke(app.front, [], prog_name=PROGRAM)
    assert f"Usage: {PROGRAM} " in done.output
    assert [name for name in app.COMMANDS if f" {name} " not in done.output] == []


SPEAKS = re.compile(r"python -m (semsim|annotation)|python app\.py")
HOW = {"semsim/__main__.py", "annotation/__main__.py", "app.py"}  # say it of themselves
HOW |= {"benchmarks/tables.md"}  # has what each half takes to start


def test_nothing_but_the_door_is_told_of():
    """Hints, pages and documents name the one command."""
    places = ("semsim", "annotation", "docs", "deploy", "examples", "benchmarks", "checkpoints")
    kinds = {".py", ".html", ".js", ".md", ".toml", ".yaml", ".service", ""}
    files = [path for place in places for path in (ROOT / place).rglob("*") if path.is_file()]
    files += [*ROOT.glob("*.md"), *(ROOT / "data").glob("*.md"), *(ROOT / "data/demo").glob("*.md")]
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if path.suffix in kinds and path.name != "CHANGELOG.md"
    }
    assert len(texts) > 500
    assert {name for name, text in texts.items() if SPEAKS.search(text)} <= HOW


def test_the_studio_tells_errors_alike_and_has_the_same_folder():
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py"), "serve", "--no-such-option"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "\nError: unrecognized arguments: --no-such-option" in done.stderr


LIMITS = {
    ("semsim", "campaign", "plan", "--workers", "0"): "a whole number of at least 1; got '0'",
    ("semsim", "campaign", "plan", "--images", "x"): "a whole number; got 'x'",
    ("semsim", "examples", "votes.csv", "--width", "5"): "a number of at least 89; got '5'",
    ("annotation", "create", "--task", "x"): "one of recognition, pair, rating; got 'x'",
    ("annotation", "simulate", "x", "--annotators", "0"): "a whole number of at least 1; got '0'",
}


@pytest.mark.parametrize(("words", "allowed"), LIMITS.items(), ids=" ".join)
def test_what_an_option_may_be_is_said_in_our_words(words, allowed):
    done = typed(words[:1], *words[1:])
    assert done.exit_code == 2
    option = words[-2]
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("Error: ")]
    assert line == f"Error: Invalid value for '{option}': it must be {allowed}."


def test_every_command_with_json_declares_its_parts_and_no_other_does():
    """Tests hold printed JSON against them wherever they print it, see `json_parts`."""
    declared = {*toml_of("semsim.base.cli", "parts.toml")}
    printing = {" ".join(call[1:]) for call in CALLS if "--json" in names_of(call)}
    groups = {words.partition(" ")[0] for words in printing}
    assert declared - printing - groups == {"doctor"}
    for words in printing:
        (helped,) = [one.help for one in COMMANDS[called_by(words)].params if one.name == "as_json"]
        assert helped.endswith(f"an object with {listed([*parts_of(words)])}.")


def called_by(words):
    return next(call for call in CALLS if " ".join(call[1:]) == words)


def test_json_that_is_not_declared_is_seen():
    study = {"name": "a", "votes": 1, "votes_wanted": 2}
    assert differing({"study": study}, "progress") == []
    assert differing({"studies": []}, "progress") == ["progress: no part studies"]
    assert differing({"study": [study]}, "progress") == ["progress: study is no object"]
    assert len(differing({"study": {**study, "more": 1}}, "progress")) == 1
    assert len(differing({"study": {"name": "a", "votes": 1}}, "progress")) == 1
    assert len(differing({"study": {**study, "votes": "1"}}, "progress")) == 1
    assert len(differing({"study": {**study, "votes": True}}, "progress")) == 1
