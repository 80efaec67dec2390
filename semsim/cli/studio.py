"""`semsim-studio`, as it is installed: the command of app.py, wherever that lies."""

import sys

from semsim.kept.places import BROUGHT, PROGRAM


def main() -> None:
    """Do what the words after `semsim-studio` ask for."""
    sys.path.insert(0, str(BROUGHT))
    from app import front

    front(prog_name=PROGRAM)
