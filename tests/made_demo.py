"""The studies of the demo with every vote, made once and kept until what they are made of changes.

A server that starts on an empty data folder computes for seconds to make them.
"""

import hashlib
import shutil
from pathlib import Path

from filelock import FileLock
from studio import ROOT

from annotation.store import Store
from annotation.study.builtin import ensure_demo
from semsim.base.places import DEMO
from semsim.sets.reader import set_folders

KEPT = ROOT / ".pytest_cache" / "made"


def demo_in(data: Path) -> None:
    """Put the studies and their pictures into a data folder, as the first start of the product."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made = KEPT / f"demo-{_key()}"
    with FileLock(KEPT / "demo.lock"):  # of several workers one makes it
        if not made.exists():
            for old in KEPT.glob("demo-*"):
                shutil.rmtree(old)
            _make(KEPT / "demo-unfinished").rename(made)
        shutil.copytree(made, data, dirs_exist_ok=True)


def _key() -> str:
    """A hash of the code and the pictures that make the demo."""
    files = [Path(__file__), *sorted((ROOT / "annotation").rglob("*.py"))]
    files += sorted(path for path in DEMO.rglob("*") if path.is_file())
    told = hashlib.sha256()
    for path in files:
        told.update(path.name.encode() + path.read_bytes())
    return told.hexdigest()[:16]


def _make(folder: Path) -> Path:
    folder.mkdir()
    sets, pairs = (set_folders([DEMO / name]) for name in ("sets", "pairs"))
    with Store(f"sqlite:///{folder / 'studies.db'}") as store:
        ensure_demo(store, sets, folder / "images", pairs)
    return folder
