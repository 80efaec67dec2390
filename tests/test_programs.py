"""How a test run is divided, and what it prints where a program is missing."""

from helpers import ROOT, RUN
from programs import MISSING, NEEDED, summary


def is_there(name: str) -> bool:
    """Whether a file or folder of the tests, or a test in a file, has this name."""
    place, _, test = name.partition("::")
    path, test = ROOT / place, test.partition("[")[0]
    return path.exists() and (not test or f"def {test}(" in path.read_text(encoding="utf-8"))


def test_each_name_in_the_tables_of_the_run_is_of_something():
    assert [name for names in RUN.values() for name in names if not is_there(name)] == []


def test_a_missing_program_is_named_once_with_what_installs_it():
    names = ("Caddy", "Flower", "Caddy")
    # As pytest reports them.
    reasons = [str(("tests/a.py", 7, f"Skipped: {MISSING}{name}")) for name in names]
    assert summary([*reasons, "Skipped: needs a GPU"]) == [
        "Caddy (2 tests): apt-get install caddy",
        "Flower (1 tests): make flower",
    ]


def test_each_program_can_be_installed():
    assert [name for name, one in NEEDED.items() if bool(one.package) is bool(one.command)] == []
