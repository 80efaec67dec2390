"""The studies of the demo with every vote, made once.

A server that starts on an empty data folder computes for seconds to make them.
"""

import shutil
from pathlib import Path

from made_once import code, made_once

from annotation.store import Store
from annotation.study.builtin import ensure_demo
from semsim.base.sets.reader import set_folders
from semsim.base.storage.places import DEMO


def demo_in(data: Path) -> None:
    """Put the studies and their pictures into a data folder, as the first start of the product."""
    pictures = sorted(path for path in DEMO.rglob("*") if path.is_file())
    made_of = [Path(__file__), *code("annotation"), *pictures]
    shutil.copytree(made_once("demo", made_of, _make), data, dirs_exist_ok=True)


def _make(folder: Path) -> None:
    sets, pairs = (set_folders([DEMO / name]) for name in ("sets", "pairs"))
    with Store(f"sqlite:///{folder / 'studies.db'}") as store:
        ensure_demo(store, sets, folder / "images", pairs)
