import random
from pathlib import Path

import pandas as pd
import pytest
from contracts import starting_process
from made_demo import demo_in
from studio import START_SECONDS, around, begin
from study_factory import DATABASES, SURE, empty_database, write_set

from annotation.spec import USUAL_TASK, StudySpec
from annotation.store import Store
from annotation.study import builtin
from annotation.study.builtin import (
    ANNOTATORS,
    PAIRS,
    PEOPLE,
    SIMULATED,
    DemoInTheMaking,
    ensure_demo,
)
from annotation.study.create import create_study
from annotation.study.exports import export_labels, export_votes, facts_of_lists
from annotation.study.labelling import list_studies
from annotation.tasks.wording import USUAL

DEMO = Path(__file__).resolve().parents[3] / "data/demo"
SETS, FACES = (sorted((DEMO / name).iterdir()) for name in ("sets", "pairs"))
RECONSTRUCTIONS = [path for folder in SETS for path in folder.glob("reconstructions/*.png")]


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path / 'studies.db'}") as store:
        yield store


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("demo")
    demo_in(made)
    return made


@pytest.fixture(scope="module")
def made(folder):
    """A store that holds the demo."""
    with Store(f"sqlite:///{folder / 'studies.db'}") as store:
        yield store


@pytest.fixture(scope="module")
def demo(made):
    return {study.name: study for study in list_studies(made)}


def test_people_start_with_an_empty_study_and_programs_with_a_marked_one(demo, made):
    assert set(demo) == {PAIRS, PEOPLE, SIMULATED}
    for name in (PAIRS, PEOPLE):
        assert export_votes(made, demo[name].id).empty
        assert not demo[name].spec.simulated
    votes = export_votes(made, demo[SIMULATED].id)
    assert demo[SIMULATED].spec.simulated
    assert votes["simulated"].all()
    assert votes.groupby("item").size().tolist() == [ANNOTATORS] * len(RECONSTRUCTIONS)


def test_simulated_people_disagree_and_differ_as_real_ones_do(demo, made, folder):
    votes = export_votes(made, demo[SIMULATED].id)
    none = votes.assign(none=votes["answer"] == "none").groupby("annotator")["none"].mean()
    assert 0.1 < none.min() < none.max() < 0.7
    labels = export_labels(made, demo[SIMULATED].id, folder / "images")
    assert labels["simulated"].all()
    rates = labels.groupby("model")["mean_response"].mean()
    assert len(rates) == len(SETS)
    assert rates.max() - rates.min() > 0.2


def test_its_lists_give_nothing_away_to_somebody_who_never_looks(demo, made):
    for name in (PEOPLE, SIMULATED):
        facts = facts_of_lists(made, demo[name].id)
        assert facts.guesses
        assert not facts.most.too_good
        assert facts.n_random == 0 < facts.n_lists


def test_who_looked_blind_saw_sixty_that_a_seed_draws():
    drawn = [(path.parents[1].name, path.stem) for path in sorted(RECONSTRUCTIONS)]
    random.Random(20261123).shuffle(drawn)
    looked = pd.read_csv(DEMO / "blind.csv", keep_default_na=False)
    assert list(zip(looked["set"], looked["image_id"], strict=True)) == drawn[:60]


def test_a_second_start_adds_nothing(demo, made, folder):
    ensure_demo(made, SETS, folder / "images", FACES)
    assert len(list_studies(made)) == len(demo)
    assert len(export_votes(made, demo[SIMULATED].id)) == ANNOTATORS * len(RECONSTRUCTIONS)


def test_a_simulation_cut_short_is_finished(store, small, tmp_path, monkeypatch):
    simulate = builtin.simulate
    monkeypatch.setattr(builtin, "simulate", lambda store, study, _: simulate(store, study, 2))
    ensure_demo(store, small, tmp_path / "images")
    assert demo_of(store) == (0, 2 * 8)
    monkeypatch.undo()
    ensure_demo(store, small, tmp_path / "images")
    assert demo_of(store) == (0, ANNOTATORS * 8)


@pytest.mark.parametrize("kind", DATABASES)
def test_two_servers_that_start_at_once_make_the_demo_once(kind, tmp_path):
    sets = [write_set(tmp_path / name, model=name, probabilities=SURE) for name in "ab"]
    with empty_database(kind, tmp_path) as url:
        words = [starting_process.__file__, url, *map(str, (tmp_path, *sets))]
        log = tmp_path / "log"
        servers = [begin(words, around(), log) for _ in range(2)]
        ended = [server.wait(START_SECONDS) for server in servers]
        assert ended == [0, 0], log.read_text()
        with Store(url) as store:
            names = sorted(study.name for study in list_studies(store))
            assert names == [PEOPLE, SIMULATED]
            (made,) = [one for one in list_studies(store) if one.spec.simulated]
            assert len(export_votes(store, made.id)) == ANNOTATORS * 8


def test_where_there_are_studies_or_no_sets_nothing_is_made(store, tmp_path):
    ensure_demo(store, [], tmp_path / "images")
    assert list_studies(store) == []


def demo_of(store):
    votes = {one.name: len(export_votes(store, one.id)) for one in list_studies(store)}
    return votes.get(PEOPLE), votes.get(SIMULATED)


@pytest.fixture
def small(tmp_path):
    return [write_set(tmp_path / name, model=name, probabilities=SURE) for name in "ab"]


def test_it_is_made_beside_other_work_and_says_so_meanwhile(store, small, tmp_path):
    making = DemoInTheMaking(store, small, tmp_path / "images")
    assert making.note() == ""
    with store.alone():  # as another server that is making it
        making.start()
        assert "being made" in making.note()
        assert demo_of(store) == (None, None)
    making.wait()
    assert making.note() == ""
    assert demo_of(store) == (0, ANNOTATORS * 8)


def test_a_study_made_while_the_demo_is_waiting_does_not_prevent_it(store, small, tmp_path):
    making = DemoInTheMaking(store, small, tmp_path / "images")
    spec = StudySpec(name="Mine", title="Mine", task=USUAL_TASK)
    create_study(store, spec, small, tmp_path / "images")
    making.start()
    making.wait()
    assert demo_of(store) == (0, ANNOTATORS * 8)
    again = DemoInTheMaking(store, small, tmp_path / "images")
    again.start()
    again.wait()
    assert len(list_studies(store)) == 3


@pytest.mark.parametrize("whole", [0, 1], ids=["before the second study", "before the votes"])
def test_a_start_cut_short_is_finished_by_the_next(whole, store, small, tmp_path, monkeypatch):
    made = []

    def cut(*given):
        if len(made) > whole:
            raise KeyboardInterrupt
        made.append(create_study(*given))
        return made[-1]

    monkeypatch.setattr(builtin, "create_study", cut)
    monkeypatch.setattr(builtin, "simulate", cut)
    with pytest.raises(KeyboardInterrupt):
        ensure_demo(store, small, tmp_path / "images")
    monkeypatch.undo()
    assert len(list_studies(store)) == whole + 1
    spec = StudySpec(name="Mine", title="Mine", task=USUAL_TASK)
    create_study(store, spec, small, tmp_path / "images")
    ensure_demo(store, small, tmp_path / "images")
    assert demo_of(store) == (0, ANNOTATORS * 8)
    assert len(list_studies(store)) == 3


def test_why_it_could_not_be_made_is_told(store, tmp_path, caplog):
    making = DemoInTheMaking(store, [tmp_path / "nowhere"], tmp_path / "images")
    making.start()
    making.wait()
    assert "not whole" in making.note()
    assert "nowhere" in making.note()
    assert making.note() in caplog.text


def test_faces_are_told_apart_by_people_with_decoys(store, small, tmp_path):
    labels = [f"face_{number}" for number in range(4)]
    about = {"dataset": "faces", "labels": labels, "classes": labels}
    pairs = [write_set(tmp_path / "faces" / name, model=name, **about) for name in "cd"]
    for _ in range(2):
        ensure_demo(store, small, tmp_path / "images", pairs)
    studies = {study.name: study for study in list_studies(store)}
    assert set(studies) == {PAIRS, PEOPLE, SIMULATED}
    faces = studies[PAIRS]
    assert (faces.task.value, faces.spec.simulated) == ("pair", False)
    assert (faces.n_reconstructions, faces.n_decoys) == (4, 2)  # two of four persons are practice
    assert (faces.spec.practice, faces.spec.set_aside) == (2, 2)
    assert faces.spec.wording("pair.question") == "Do both pictures show the same person?"
    read = [faces.spec.wording(name) for name in USUAL if name.startswith("pair.")]
    assert not any("subject" in text for text in read)
    assert studies[PEOPLE].spec.texts == {}
    assert demo_of(store) == (0, ANNOTATORS * 8)
