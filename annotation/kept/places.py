"""Where files lie: those that people make, and those that come with the product.

What people make lies in the folder `data` of the checkout; where the product is installed, of the
folder that the system has for a user's data; or of the one that the environment variable
`SEMSIM_HOME` names. The other half has a file like this, for neither imports the other; a test
keeps them alike.
"""

import os
from importlib import resources
from pathlib import Path

import platformdirs

PROGRAM = "semsim-studio"  # the command that is installed


def files_of(package: str) -> Path:
    """The folder of a package, where the files lie that come with its modules."""
    return Path(str(resources.files(package)))


def checkout() -> Path | None:
    """The folder of the checkout that runs; None where the product is installed."""
    folder = files_of(__name__.partition(".")[0]).parent
    ours = all((folder / name).is_file() for name in ("app.py", "checkpoints/manifest.json"))
    return folder if ours else None


def home() -> Path:
    """The folder that holds `data` and `checkpoints`; it need not be there yet."""
    named = os.environ.get("SEMSIM_HOME")
    if named:
        return Path(named).expanduser().absolute()
    return checkout() or platformdirs.user_data_path(PROGRAM, appauthor=False)


DATA = home() / "data"
