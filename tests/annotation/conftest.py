"""A store in a new SQLite file, and small studies in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from study_factory import fresh_database, write_set

from annotation.create import create_study
from annotation.domain import Study, StudySpec, Task
from annotation.store import Store
from annotation.study import join


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with fresh_database("sqlite", tmp_path) as url, Store(url) as opened:
        yield opened


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return tmp_path / "images"


@pytest.fixture
def make_study(store: Store, tmp_path: Path, images: Path) -> Callable[..., Study]:
    """A study over two small sets of four images; keywords are those of `StudySpec`."""

    def make(name: str = "symbols", task: Task = Task.RECOGNITION, **spec: Any) -> Study:
        sets = [
            write_set(tmp_path / "sets" / model, model=model, probabilities=SURE)
            for model in ("resnet20-4", "convnet8")
        ]
        return create_study(store, StudySpec(name=name, task=task, **spec), sets, images)

    return make


# A classifier that is sure of the true class on originals and rather sure on reconstructions.
SURE = {
    "original": {"TRUE": 0.9, "heart": 0.1},
    "reconstruction": {"TRUE": 0.8, "heart": 0.2},
}


@pytest.fixture
def study(make_study):
    return make_study(votes_per_item=2)


@pytest.fixture
def anna(store, study):
    return join(store, study.token, "Anna").annotator


@pytest.fixture
def ben(store, study):
    return join(store, study.token, "Ben").annotator
