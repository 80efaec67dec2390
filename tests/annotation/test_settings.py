"""Settings of a study, stated once: as text, and one that a newcomer adds."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import MISSING
from pathlib import Path

import pytest

from annotation.cli.study import create, parse
from annotation.errors import StudyError
from annotation.spec import SETTINGS, Background, StudySpec, Task, as_text, value_of

ROOT = Path(__file__).parents[2]
# Typed in front of another one, as the page of the form has them in this order.
BEFORE = "    # Never the name, which may tell too much.\n"
LINE = '    glasses: bool = _of_question(False, "Glasses", "Whether people wear glasses.")\n'
LOOK = """
import json
from annotation.cli.study import create, parse
from annotation.spec import StudySpec
from annotation.study.study_file import StudyFile, read_text, written
from annotation.ui import new_study
from annotation.web.templates import fill

spec = StudySpec(name="x", task="pair", **parse(["glasses=yes"]))
steps, usual = new_study.steps(), dict.fromkeys(("data", "said", "title"), "")
print(json.dumps({
    "form": fill("new.html", cards=[], steps=steps, kinds={}, longest=1, **usual),
    "file": written(StudyFile(settings=vars(spec))),
    "read": read_text("name: x\\ntask: pair\\nglasses: yes").spec().glasses,
    "help": create.__doc__,
    "sentences": new_study.unusual(spec),
}))
"""


def test_every_setting_is_explained():
    assert [name for name, one in SETTINGS.items() if not one.text] == ["name"]


def test_values_have_the_types_of_the_settings():
    given = ["max_views=2", "repeat_rate=0.1", "check=yes", "background=black", "consent=a = b"]
    assert parse(given) == {
        "max_views": 2,
        "repeat_rate": 0.1,
        "check": True,
        "background": Background.BLACK,
        "consent": "a = b",
    }
    assert parse(["max_views="]) == {"max_views": None}
    assert StudySpec(name="x", task=Task.PAIR, **parse(given)).max_views == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("check", "NAME=VALUE"),
        ("nmae=x", "no setting 'nmae'"),
        ("name=x", "no setting 'name'"),
        ("seed=", "a whole number; got ''"),
        ("seed=1.5", "a whole number"),
        ("repeat_rate=often", "a number"),
        ("check=maybe", "yes or no"),
        ("background=pink", "one of grey, black, white"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(StudyError, match=words):
        parse([text])


def test_the_command_lists_settings_with_their_defaults():
    assert "repeat_lag: Votes between an item and its repeat, at least. (default 50)" in (
        create.__doc__
    )
    assert "balanced" in create.__doc__
    assert "password: Asked for when people join.\n" in create.__doc__


@pytest.mark.parametrize("one", SETTINGS.values(), ids=SETTINGS)
def test_a_value_written_out_is_read_as_it_was(one):
    if one.usual is not MISSING:
        assert value_of(one.name, as_text(one.usual)) == one.usual


def test_a_newcomer_adds_a_setting_with_one_line(tmp_path):
    shutil.copytree(
        ROOT / "annotation", tmp_path / "annotation", ignore=shutil.ignore_patterns("__pycache__")
    )
    spec = tmp_path / "annotation/spec.py"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace(BEFORE, LINE + BEFORE, 1), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert '<input type="checkbox" data-setting="glasses"> Glasses' in told["form"]
    assert "Whether people wear glasses. Usual: no." in told["form"]
    assert told["file"].splitlines()[1:] == ["name: x", "task: pair", "glasses: true"]
    assert told["read"] is True
    assert "glasses: Whether people wear glasses. (default False)" in told["help"]
    assert told["sentences"] == [["Glasses", "yes", "no"]]
