"""Studies that have been answered, as the formats get them."""

from dataclasses import replace
from functools import partial

import pytest
from study_factory import fresh_database, let_answer, of_convnet8, small_study

from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.simulate import simulate


@pytest.fixture
def answer(store, images):
    """`let_answer` for a study of this store."""
    return partial(let_answer, store, images)


@pytest.fixture(scope="session")
def answered(tmp_path_factory):
    """A study and its images that nobody changes: most formats need no other, only to read it."""
    folder = tmp_path_factory.mktemp("answered")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        study = small_study(store, folder, votes_per_item=3)
        return let_answer(store, folder / "images", study, of_convnet8)


@pytest.fixture(scope="session")
def answered_by_programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        study = small_study(store, folder, simulated=True, votes_per_item=3)
        simulate(store, study.id, 3)
        return read_study(store, study.id, folder / "images")


@pytest.fixture
def data(answered):
    """Four originals, two models; people recognise all of convnet8 and nothing of resnet20-4."""
    return with_tables_of_its_own(answered)


@pytest.fixture
def simulated(answered_by_programs):
    """The same images, answered by simulated annotators."""
    return with_tables_of_its_own(answered_by_programs)


def with_tables_of_its_own(data):
    tables = {name: getattr(data, name).copy() for name in ("votes", "labels", "stimuli")}
    return replace(data, **tables)


@pytest.fixture
def out(tmp_path):
    """An empty folder to write to, as a format gets it."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"
