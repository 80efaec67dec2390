"""Studies that have been answered, as the formats get them."""

import uuid
from datetime import UTC, datetime

import pytest

from annotation.domain import Answer
from annotation.exports import read_study
from annotation.study import join, next_items, simulate, vote

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def answer(store, images):
    """Let people answer every item of a study with `say(stimulus)`; returns its data."""

    def answer(study, say, names=("Anna", "Ben", "Cleo")):
        known = read_study(store, study.id, images).stimuli.set_index("item")
        for name in names:
            person = join(store, study.token, name).annotator
            for item in next_items(store, person, "tab", 100, NOW):
                text, new = say(known.loc[item.item]), str(uuid.uuid4())
                said = Answer(id=new, item=item.item, answer=text, rt_ms=1500.0)
                vote(store, person, said, NOW)
        return read_study(store, study.id, images)

    return answer


@pytest.fixture
def data(make_study, answer):
    """Four originals, two models; people recognise all of convnet8 and nothing of resnet20-4."""
    return answer(make_study(votes_per_item=3), of_convnet8)


@pytest.fixture
def simulated(store, make_study, images):
    """The same images, answered by simulated annotators."""
    study = make_study(simulated=True, votes_per_item=3)
    simulate(store, study.id, 3, 0)
    return read_study(store, study.id, images)


@pytest.fixture
def out(tmp_path):
    """An empty folder to write to, as a format gets it."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def of_convnet8(stimulus):
    return stimulus["class_name"] if stimulus["model"] == "convnet8" else "none"
