"""Places of files: those that people make, and those that come with the product.

Files that people make lie in the folders `data` and `checkpoints` of the checkout; where the
product is installed, of the folder that the system has for a user's data; or of the one that the
environment variable `SEMSIM_HOME` names.
"""

import os
import shutil
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import platformdirs

PROGRAM = "semsim-studio"  # the command that is installed


def files_of(package: str) -> Path:
    """The folder of a package, where the files lie that come with its modules."""
    return Path(str(resources.files(package)))


@cache
def toml_of(package: str, name: str) -> dict[str, Any]:
    """Return the content of the TOML file `name`, which comes with the modules of a package.

    A file is read once in a process.
    """
    return tomllib.loads((files_of(package) / name).read_text("utf-8"))


@cache
def checkout() -> Path | None:
    """The folder of the checkout that runs; None where the product is installed."""
    folder = files_of(__name__.partition(".")[0]).parent
    ours = all((folder / name).is_file() for name in ("app.py", "checkpoints/manifest.json"))
    return folder if ours else None


def home() -> Path:
    """The folder that holds `data` and `checkpoints`; it need not be there yet.

    Not absolute where the system has none for this user, see `no_home`.
    """
    named = os.environ.get("SEMSIM_HOME")
    if named:
        return Path(os.path.expanduser(named)).absolute()
    try:
        return checkout() or platformdirs.user_data_path(PROGRAM, appauthor=False)
    except RuntimeError:  # nobody knows one
        return Path(PROGRAM)


def no_home() -> str:
    """Return what to do where the system has no folder for this user's data; "" elsewhere."""
    if home().is_absolute():
        return ""
    return (
        "The system knows no home folder of this user, so there is none for data. Name one: set "
        "SEMSIM_HOME to a folder that this user can write."
    )


DATA = home() / "data"
# Laid out as a checkout: the demo in `data/demo`, the manifest and its SemSim in `checkpoints`.
BROUGHT = checkout() or files_of("semsim") / "brought"
DEMO = BROUGHT / "data" / "demo"


def demo_sets() -> dict[str, Path]:
    """Return the folders of the demo's sets by short names: activation-strategy-attack."""
    folders = sorted((DEMO / "sets").glob("cnn4-activation-*"))
    return {one.name[len("cnn4-activation-") :].replace("__", "-"): one for one in folders}


def resolved(path: Path | str) -> Path:
    """Return `path`, or what it names of the files here where nothing lies there.

    `data/…` and `checkpoints/…` are looked up in `home` and then among the product's own files;
    `demo/NAME/…` is a set of `demo_sets`. A path that the system cannot look up, as one too long,
    is returned as it is.
    """
    given = Path(path)
    top, name, *rest = (*given.parts, "", "")
    sets = demo_sets() if top == "demo" else {}
    others = [sets[name].joinpath(*rest)] if name in sets else [home() / given, BROUGHT / given]
    try:
        return next((one for one in (given, *others) if one.exists()), given)
    except OSError:
        return given


CHECKPOINTS = home() / "checkpoints"


def settle() -> None:
    """Put the SemSim that comes with the product into `CHECKPOINTS`, where that is not there."""
    if not CHECKPOINTS.exists():
        shutil.copytree(BROUGHT / "checkpoints", CHECKPOINTS)
