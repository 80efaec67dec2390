"""What is not imported before it is needed: by the modules of a fresh process, not by a clock."""

import json
import subprocess
import sys

import pytest
from studio import ROOT
from typer.main import get_command

from annotation.cli.main import app as human
from semsim.cli.main import app as science

HALVES = {"annotation": human, "semsim": science}
# What no list of commands needs, and what each costs most.
HEAVY = {"torch", "torchvision", "numpy", "pandas", "scipy", "skimage", "sklearn", "matplotlib"}
HEAVY |= {"pyarrow", "PIL", "sqlalchemy", "alembic", "pydantic", "fastapi", "gradio", "plotly"}

RUN = """
import json, runpy, sys
sys.argv = {argv!r}
try:
    runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(module: str, *arguments: str) -> set[str]:
    """The modules that `python -m module arguments` has imported when it ends."""
    code = RUN.format(argv=[module, *arguments], module=module)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("half", HALVES)
def test_the_list_of_commands_imports_none_of_them(half):
    modules = imported_by(half, "--help")
    assert not modules & HEAVY
    inside = {name for name in modules if name.startswith(f"{half}.cli.")}
    assert inside <= {f"{half}.cli.main", f"{half}.cli.terminal"}


@pytest.mark.parametrize("half", HALVES)
def test_the_list_says_what_the_commands_say_of_themselves(half):
    group = get_command(HALVES[half])
    for name, one in group.commands.items():
        said = group.get_command(None, name).help.split("\n\n")[0]
        assert one.help == " ".join(said.split())


def test_the_studio_says_what_it_does_before_it_imports_its_pages():
    code = "import sys, json, app; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not set(json.loads(done.stdout)) & (HEAVY - {"uvicorn"})
