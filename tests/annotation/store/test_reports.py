"""Reports of a study leave out other studies."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import event, select
from study_factory import answer_all, answer_to, joined, write_set

from annotation.errors import NotFoundError
from annotation.spec import StudySpec, Task
from annotation.store import reports
from annotation.store.tables import StimulusRow
from annotation.study.create import create_study
from annotation.study.labelling import image_path, join, next_items, progress, progress_of, vote

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answer_some(store, study, name, n, text):
    (person,) = joined(store, study, name)
    answer_all(store, person, text, n)
    return person


@pytest.fixture(autouse=True)
def noise(store, make_study):
    """Another study with votes, so that a missing condition shows."""
    answer_some(store, make_study("noise", votes_per_item=1), "Anna", 8, "none")


def test_progress_is_of_one_study(store, make_study):
    study = make_study(votes_per_item=2)
    anna = answer_some(store, study, "Anna", 2, "Cat")
    now = progress(store, study.id)
    assert now.coverage == [6, 2, 0]
    assert [(row.name, row.done, row.none_rate) for row in now.annotators] == [("Anna", 2, 0.0)]
    assert (progress_of(store, anna).done, progress_of(store, anna).left) == (2, 6)


def test_the_pair_task_has_no_none_rate(store, make_study):
    study = make_study(task=Task.PAIR)
    answer_some(store, study, "Anna", 1, "same")
    assert [row.none_rate for row in progress(store, study.id).annotators] == [None]


def test_rows_are_of_one_study(store, make_study):
    study = make_study(votes_per_item=2)
    answer_some(store, study, "Anna", 2, "Cat")
    assert len(store.read(lambda tx: reports.vote_rows(tx, study))) == 2
    rows = store.read(lambda tx: reports.item_rows(tx, study))
    assert [(row["model"], row["image_id"]) for row in rows] == [
        (model, f"image-{i:03d}") for model in ("convnet8", "resnet20-4") for i in range(4)
    ]


@pytest.mark.parametrize("task", Task)
def test_no_address_leads_to_an_attacked_image(store, tmp_path, images, task):
    folder = write_set(tmp_path / "set", mirrored=range(4))
    study = create_study(store, StudySpec(name="blind", task=task), [folder], images)
    attacked = [row["attacked"] for row in store.read(lambda tx: reports.item_rows(tx, study))]
    assert len(set(attacked)) == 4
    assert all((images / f"{digest}.png").exists() for digest in attacked)
    anna = join(store, study.token, "Anna").annotator
    items = next_items(store, anna, "tab", 4, NOW)
    seen = [image_path(store, anna, token, images).stem for item in items for token in item.images]
    assert len(seen) == 4 * (2 if study.kind.beside else 1)
    assert not set(seen) & set(attacked)
    for digest in attacked:
        with pytest.raises(NotFoundError):
            image_path(store, anna, digest, images)


def test_only_simulated_studies_have_answers_of_the_jury(store, make_study):
    people, simulated = make_study("people"), make_study("simulated", simulated=True)
    assert store.read(lambda tx: reports.simulated_answers(tx, people.id)) == {}
    answers = store.read(lambda tx: reports.simulated_answers(tx, simulated.id))
    assert len(answers) == 8
    assert all(
        [said != "none" for said in one.values()] == [True] * 3 + [False] * 2
        for one in answers.values()
    )


@pytest.mark.parametrize(
    ("times", "median"),
    [([None], None), ([None, 812.5], 812.5), ([190, 1e3, None, 700.25, 160], 445.125)],
)
def test_medians_are_over_the_times_that_were_measured(store, study, anna, times, median):
    for item, rt_ms in zip(next_items(store, anna, "tab", len(times), NOW), times, strict=True):
        vote(store, anna, answer_to(item.item, rt_ms=rt_ms), NOW)
    (row,) = progress(store, study.id).annotators
    assert (row.done, row.median_rt_ms, row.none_rate) == (len(times), median, 1.0)


def test_pictures_of_a_study_are_looked_up_by_their_digests(store, make_study):
    study, asked = make_study(), []
    shown = store.read(lambda tx: [*tx.scalars(select(StimulusRow.sha256))])

    def look(tx, digest):
        reports.require_picture(tx, study.id, digest)

    with pytest.raises(NotFoundError):
        store.read(lambda tx: look(tx, "0" * 64))
    event.listen(store._engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    store.read(lambda tx: look(tx, shown[0]))
    (statement, values) = next(one for one in asked if "sha256" in one[0])
    with store._engine.connect() as there:
        plan = str(there.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all())
    for name in ("stimulus_sha256", "stimulus_attacked_sha256", "source_sha256"):
        assert f"COVERING INDEX ix_{name} ({name.split('_', 1)[1]}=? AND study_id=?)" in plan
