"""Studies that have been answered, as the formats get them."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from study_factory import fresh_database, of_convnet8, small_study

from annotation.domain import Answer
from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.labelling import join, next_items, vote
from annotation.study.simulate import simulate

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def let_answer(store, images, study, say, names=("Anna", "Ben", "Cleo")):
    """Let people answer every item of a study with `say(stimulus)`; returns its data."""
    known = read_study(store, study.id, images).stimuli.set_index("item")
    for name in names:
        person = join(store, study.token, name).annotator
        for item in next_items(store, person, "tab", 100, NOW):
            text, new = say(known.loc[item.item]), str(uuid.uuid4())
            said = Answer(id=new, item=item.item, answer=text, rt_ms=1500.0)
            vote(store, person, said, NOW)
    return read_study(store, study.id, images)


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
