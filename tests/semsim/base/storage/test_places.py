"""Where files lie, found out when the product is imported: so each test asks a new process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from helpers import ROOT

from semsim.api.demo_sets import demo
from semsim.base.errors import UnknownNameError
from semsim.base.storage import places


def asked(expression, python=ROOT, **environment):
    """What `expression` is in `base.places` where the code lies in the folder `python`."""
    code = f"from semsim.base.storage.places import *; print({expression})"
    around = {key: value for key, value in os.environ.items() if key != "SEMSIM_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env={**around, "PYTHONPATH": str(python), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def installed(tmp_path):
    """A folder with the product and no checkout around it, as site-packages is."""
    folder = tmp_path / "site-packages"
    shutil.copytree(ROOT / "semsim/base", folder / "semsim/base")
    shutil.copy(ROOT / "semsim/__init__.py", folder / "semsim")
    brought = folder / "semsim/brought/checkpoints"
    brought.mkdir(parents=True)
    (brought / "demo.safetensors").write_text("weights")
    return folder


def test_a_checkout_keeps_its_data_beside_the_code():
    assert asked("DATA") == str(ROOT / "data")


def test_an_installed_product_keeps_its_data_where_the_system_has_a_users(installed):
    folder = platformdirs.user_data_dir("semsim-studio", appauthor=False)
    assert asked("DATA", installed) == os.path.join(folder, "data")


@pytest.mark.parametrize("is_checkout", [True, False])
def test_the_environment_names_another_folder(is_checkout, installed, tmp_path):
    python = ROOT if is_checkout else installed
    told = asked("DATA", python, SEMSIM_HOME=str(tmp_path / "home"))
    assert told == str(tmp_path / "home/data")
    user = asked("DATA", python, SEMSIM_HOME="~/studio", HOME=str(tmp_path))
    assert user == str(tmp_path / "studio/data")


def test_what_comes_with_the_product_is_found_wherever_data_lies(installed, tmp_path):
    assert asked("DEMO", SEMSIM_HOME=str(tmp_path)) == str(ROOT / "data/demo")
    assert asked("DEMO", python=installed) == str(installed / "semsim/brought/data/demo")


def test_the_demo_is_found_from_anywhere(installed):
    """`asked` runs in `/`, where nothing of the product lies."""
    brought = installed / "semsim/brought"
    folder = brought / "data/demo/sets/cnn4-activation-silu__none__until-0.3__invgrad"
    (folder / "originals").mkdir(parents=True)
    told = {
        "data/demo": brought / "data/demo",
        "checkpoints/demo.safetensors": brought / "checkpoints/demo.safetensors",
        "demo/silu-none-until-0.3-invgrad/originals": folder / "originals",
        "demo/silu": "demo/silu",
        "etc": "etc",
        str(folder): folder,
        "": ".",
    }
    names = [*told]
    found = asked(f"*(resolved(one) for one in {names!r}), sep='|'", installed)
    assert found.split("|") == [str(place) for place in told.values()]


def test_what_a_person_made_is_found_from_anywhere(tmp_path):
    """`asked` runs in `/`; pages name what commands make as data/runs/try."""
    (tmp_path / "data/runs/try").mkdir(parents=True)
    names = ["data/runs/try", "data/runs/other", "data/demo"]
    found = asked(f"*(resolved(one) for one in {names!r}), sep='|'", SEMSIM_HOME=str(tmp_path))
    assert found.split("|") == [str(tmp_path / names[0]), names[1], str(ROOT / names[2])]


def test_what_lies_here_comes_before_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = Path("demo/silu-none-invgrad")
    assert places.resolved(here) == demo("silu-none-invgrad")
    here.mkdir(parents=True)
    assert places.resolved(here) == here


def test_a_path_too_long_to_look_up_is_returned_as_it_is():
    long = Path("x" * 300)
    assert places.resolved(long) == long


def test_the_demo_names_its_sets():
    folders = sorted((ROOT / "data/demo/sets").iterdir())
    assert demo() == ROOT / "data/demo"
    assert sorted(places.demo_sets().values()) == folders
    with pytest.raises(UnknownNameError, match=r"called 'silu'. Did you mean silu-"):
        demo("silu")


def test_the_semsim_that_comes_along_is_put_there_once(installed, tmp_path):
    home = tmp_path / "home"
    asked("settle()", python=installed, SEMSIM_HOME=str(home))
    assert (home / "checkpoints/demo.safetensors").read_text() == "weights"
    (home / "checkpoints/demo.safetensors").unlink()
    asked("settle()", python=installed, SEMSIM_HOME=str(home))
    assert list((home / "checkpoints").iterdir()) == []


def test_a_user_whom_the_system_does_not_know_is_told_to_name_a_folder(installed, tmp_path):
    unknown = "(setattr(__import__('pwd'), 'getpwuid', {}.__getitem__), os.environ.pop('HOME', 0))"
    told = asked(f"{unknown} and no_home()", installed, XDG_DATA_HOME="")
    assert "set SEMSIM_HOME" in told
    assert asked(f"{unknown} and no_home()", installed, SEMSIM_HOME=str(tmp_path)) == ""
