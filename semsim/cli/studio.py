"""`semsim-studio`, as it is installed: the command of app.py, wherever that lies."""

import sys

from semsim.base.errors import foreign
from semsim.base.storage.places import BROUGHT, PROGRAM, no_home


def main() -> None:
    """Do what the words after `semsim-studio` ask for."""
    sys.path[0] = str(BROUGHT)  # in place of the script's own folder
    try:
        from app import front
    except ImportError:
        if told := foreign():
            raise SystemExit(f"Error: {told}") from None
        raise

    sys.path[:] = [*sys.path[1:], ""]  # a network of one's own is imported from where one is
    if told := no_home():
        raise SystemExit(f"Error: {told}")
    front(prog_name=PROGRAM)
