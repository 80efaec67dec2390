"""What `make check` runs for a change."""

import subprocess

from programs import needed
from touched import ALWAYS, ROOT, changed_since, imported, touched

TESTS = [str(one.relative_to(ROOT)) for one in (ROOT / "tests").rglob("test_*.py")]


def test_a_module_touches_its_tests_and_those_that_import_it():
    found = touched(["semsim/reporting/gallery.py"], TESTS)
    assert {"tests/semsim/reporting/test_gallery.py", ALWAYS} <= {*found}
    assert "tests/semsim/reporting/test_cases.py" in found  # imports what it takes from it
    assert not {"tests/test_app.py", "tests/annotation/ui/test_home.py"} & {*found}


def test_a_template_touches_the_test_called_after_it_and_a_helper_those_that_use_it():
    assert "tests/annotation/ui/test_home.py" in touched(["annotation/ui/html/home.html"], TESTS)
    assert "tests/semsim/reporting/test_gallery.py" in touched(["tests/made_analysis.py"], TESTS)


def test_a_changed_test_is_run_also_in_a_browser_and_no_change_runs_nothing():
    test = "tests/e2e/test_split_page.py"
    assert touched([test], TESTS) == sorted([ALWAYS, test])
    assert touched([], TESTS) == []


def test_every_way_to_import_is_seen():
    text = "import a\nimport b.c as d\nfrom e.f import (\n    g,\n    h,\n)\n    from i import j\n"
    assert imported(text) >= {"a", "b.c", "e.f", "e.f.g", "e.f.h", "i", "i.j"}


def test_what_is_not_committed_counts(tmp_path, monkeypatch):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run([needed("git"), *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("old.py", "same.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    git("checkout", "-b", "branch")
    (tmp_path / "new.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "second")
    (tmp_path / "old.py").write_text("2\n")
    (tmp_path / "loose.py").write_text("1\n")
    monkeypatch.setattr("touched.ROOT", tmp_path)
    assert changed_since("main") == ["loose.py", "new.py", "old.py"]
