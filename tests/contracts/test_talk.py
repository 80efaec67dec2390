"""What every command says beside its results, and how it ends when it is stopped."""

import json
import signal
import subprocess
import sys

import pytest
import shellingham
from helpers import ROOT, limit
from studio import Studio
from typer.testing import CliRunner

import annotation
import semsim
from annotation.cli.main import app as human
from app import COMMANDS, front
from semsim.base.storage.places import PROGRAM
from semsim.cli.main import app as science
from semsim.metrics import METRICS

HALVES = ("annotation", "semsim")
APPS = {"annotation": human, "semsim": science, PROGRAM: front}


def demo_set(strategy):
    return ROOT / f"data/demo/sets/cnn4-activation-silu__{strategy}__invgrad"


DEMO = demo_set("none")


def typed(half, *words, **given):
    return CliRunner().invoke(APPS[half], [*map(str, words)], **given)


DOOR = ["-c", "from semsim.cli.studio import main; main()"]  # as its script has it


@pytest.mark.parametrize(
    "program", [["-m", "semsim"], ["-m", "annotation"], ["app.py"], DOOR], ids=str
)
def test_every_program_says_its_version(program):
    done = subprocess.run(
        [sys.executable, *program, "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"SemSim Studio {semsim.__version__}\n"
    assert done.stderr == ""
    assert annotation.__version__ == semsim.__version__


def test_a_shell_completes_the_installed_command(monkeypatch):
    # What it looks for is the shell above this process; where tests are started there may be none.
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("bash", "/bin/bash"))
    script = typed(PROGRAM, "--show-completion", prog_name=PROGRAM)
    assert script.exit_code == 0, script.output
    assert "_SEMSIM_STUDIO_COMPLETE" in script.stdout

    def completed(words):
        asked = {"_SEMSIM_STUDIO_COMPLETE": "complete_bash", "COMP_WORDS": f"{PROGRAM} {words}"}
        asked["COMP_CWORD"] = str(words.count(" ") + 1)
        return typed(PROGRAM, prog_name=PROGRAM, env=asked).stdout.split()

    assert set(completed("")) == set(COMMANDS)
    assert completed("score --met") == ["--metrics"]
    assert completed("study annotators exc") == ["exclude"]


@pytest.mark.parametrize(
    "words",
    [
        ("semsim", "score", "--set", "nowhere", "-v"),
        ("semsim", "-v", "score", "--set", "nowhere"),
        ("annotation", "list", "--data-dir", "nowhere", "-v"),
        ("annotation", "-v", "list", "--data-dir", "nowhere"),
        (PROGRAM, "-v", "study", "list", "--data-dir", "nowhere"),
        (PROGRAM, "study", "-v", "list", "--data-dir", "nowhere"),
        (PROGRAM, "score", "--set", "nowhere", "-v"),
    ],
    ids=" ".join,
)
def test_an_error_says_where_it_comes_from_only_when_asked(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loud = typed(*words)
    plain = typed(*(word for word in words if word != "-v"))
    assert (loud.exit_code, plain.exit_code) == (2, 2)
    assert "Traceback" in loud.stderr
    assert loud.stderr.endswith(plain.stderr)
    assert plain.stderr.startswith("Error: ")
    assert plain.stderr.count("\n") == 1
    assert loud.stdout == plain.stdout == ""


def test_talk_goes_to_standard_error_and_can_be_silenced(tmp_path):
    pair = [DEMO / "originals", DEMO / "reconstructions"]
    words = ["score", *pair, "--metrics", "mse", "--out", "-"]
    plain, quiet = typed("semsim", *words), typed("semsim", *words, "-q")
    assert plain.exit_code == quiet.exit_code == 0
    assert plain.stdout == quiet.stdout
    assert plain.stdout.startswith("image")
    assert "mean" in plain.stderr
    assert quiet.stderr == ""


def test_a_silenced_list_has_only_names():
    whole, names = typed("semsim", "datasets", "list"), typed("semsim", "datasets", "list", "-q")
    lines = whole.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == names.stdout.splitlines()
    assert "symbols" in names.stdout.splitlines()


def test_how_loud_one_command_was_says_nothing_of_the_next(tmp_path):
    typed("semsim", "score", "--set", tmp_path / "nowhere", "-v")
    after = typed("semsim", "score", "--set", tmp_path / "nowhere")
    assert "Traceback" not in after.stderr


def can_be_stopped():
    # Whoever started the tests in the background made them deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Reading the file of a study takes as long as nobody stops it.
WAITS = """
import runpy, sys, time
import annotation.cli.study

def reads(path, wrong):
    print("reading", flush=True)
    time.sleep(600)

annotation.cli.study.read_plain = reads
runpy.run_module("annotation", run_name="__main__", alter_sys=True)
"""


def test_ctrl_c_ends_with_a_sentence(tmp_path):
    words = ["create", "mine", "--file", tmp_path / "study.yaml", "--data-dir", tmp_path]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=can_be_stopped,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    told = ended(process)
    assert process.returncode == 130
    assert told == ("", "\nStopped by Ctrl-C.\n")


def ended(process):
    """What a process says that gets Ctrl-C until it ends."""
    while True:
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=limit(20))
        except subprocess.TimeoutExpired:
            continue


def test_ctrl_c_at_a_question_is_no_other_than_elsewhere(tmp_path, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("getpass.getpass", pressed)
    done = typed("annotation", "accounts", "add", "maria", "--data-dir", tmp_path)
    assert (done.exit_code, done.stderr) == (130, "\nStopped by Ctrl-C.\n")


def test_ctrl_c_ends_the_studio_with_a_sentence(tmp_path):
    kept = tmp_path / "kept.log"
    studio = Studio(tmp_path, tmp_path / "checkpoints", "--log-file", str(kept))
    studio.start()
    assert studio.interrupt() == 130
    told = (tmp_path / "server.log").read_text()
    assert told.endswith("\nStopped by Ctrl-C.\n")
    assert "Traceback" not in told
    first, *_, last = [line.split(" ", 2)[2] for line in kept.read_text().splitlines()]
    assert first == f"INFO annotation.web.proxies: The server starts at 127.0.0.1:{studio.port}."
    assert last == "INFO annotation.web.proxies: The server has stopped."


COMPUTES = """
import atexit, threading
from semsim.base.cli.commands import ended_at_once
atexit.register(print, "closed")
threading.Thread(target=threading.Event().wait).start()
with ended_at_once():
    raise SystemExit({code!r})
"""


def test_a_thread_does_not_keep_the_studio_from_its_end():
    words = [sys.executable, "-c", COMPUTES.format(code=130)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=limit(60))
    assert (done.returncode, done.stdout, done.stderr) == (130, "closed\n", "")


@pytest.mark.parametrize(
    ("words", "named", "facts"),
    [
        (("semsim", "datasets", "list"), "datasets", {"name", "task", "files", "about"}),
        (("semsim", "distractors", "list", "--checkpoints", "nowhere"), "models", set()),
        (("semsim", "weights", "--checkpoints", "nowhere"), "files", {"name", "state", "where"}),
        (
            ("annotation", "list"),
            "studies",
            {"id", "name", "task", "status", "simulated", "voter", "made_by", "items", "link"},
        ),
        (("annotation", "accounts", "list"), "accounts", {"name", "role", "created", "disabled"}),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_list_is_printed_as_json_too(words, named, facts, tmp_path):
    data = []
    if words[0] == "annotation":
        data = ["--data-dir", tmp_path]
        sets = [part for name in ("none", "crop-flip") for part in ("--set", demo_set(name))]
        made = typed("annotation", "create", "mine", *sets, *data)
        assert made.exit_code == 0, made.stderr
        env = {"SEMSIM_ADMIN_PASSWORD": "a long enough one"}
        assert typed("annotation", "accounts", "add", "maria", *data, env=env).exit_code == 0
    ((part, rows),) = json.loads(typed(*words, *data, "--json").stdout).items()
    assert part == named
    assert bool(rows) == bool(facts)
    assert all(set(row) == facts for row in rows)
    plain = typed(*words, *data).stdout
    assert len(plain.splitlines()) >= len(rows)
    assert all(str(row["name"]) in plain for row in rows)


def test_score_names_the_metrics():
    told = typed("semsim", "score", "--help").output
    assert all(name in told for name in METRICS)
