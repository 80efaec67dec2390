"""Which test files a change touches: `make check` runs these, `make test-all` runs all.

A changed test file is one; so is one that imports a changed module, or that is called after a
changed file, as tests/…/test_home.py is after home.html. Tests in a browser are left to
`make test-all`, and so is what a module changes for those that import it.

    python tests/touched.py [REVISION]    since this branch left REVISION, main if left out
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = "tests/test_architecture.py"
_IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (\([^)]*\)|.*)$", re.MULTILINE)


def touched(changed: Iterable[str], tests: Iterable[str], root: Path = ROOT) -> list[str]:
    """Those of `tests` that the files `changed` touch; all paths from the top of the repository."""
    paths = {PurePosixPath(path) for path in changed}
    modules = {".".join(one.with_suffix("").parts) for one in paths if one.suffix == ".py"}
    modules = {name.removesuffix(".__init__").removeprefix("tests.") for name in modules}
    ours = ("semsim", "annotation")
    stems = {one.stem.replace("-", "_") for one in paths if one.parts[0] in ours} - {"__init__"}

    def is_touched(test: str) -> bool:
        path = PurePosixPath(test)
        if path in paths or test == ALWAYS:
            return True
        if "e2e" in path.parts:
            return False
        text = (root / test).read_text(encoding="utf-8")
        return path.stem.removeprefix("test_") in stems or not modules.isdisjoint(imported(text))

    return [test for test in sorted(tests) if is_touched(test)] if paths else []


def imported(text: str) -> set[str]:
    """Names of all modules that a file may import, and of what it takes from them."""
    found: set[str] = set()
    for package, names in _IMPORT.findall(text):
        found |= {package} if package else set()
        found |= {f"{package}.{name}".lstrip(".") for name in re.findall(r"[\w.]+", names)}
    return found


def changed_since(revision: str) -> list[str]:
    """What differs from where this branch left `revision`, also what is not committed yet."""
    base = _git("merge-base", "HEAD", revision)[0]
    return sorted(
        {*_git("diff", "--name-only", base), *_git("ls-files", "-mo", "--exclude-standard")}
    )


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    files = [str(one.relative_to(ROOT)) for one in (ROOT / "tests").rglob("test_*.py")]
    found = touched(changed_since(*(sys.argv[1:] or ["main"])), files)
    sys.stdout.writelines(f"{one}\n" for one in found)
