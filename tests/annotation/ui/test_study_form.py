"""The form of the Studies page, without a browser."""

import pytest
from study_factory import write_set

from annotation.domain import HeadlineRule, Task
from annotation.errors import StudyError
from annotation.ui import StudyContext, study_form


@pytest.fixture
def context(store, images, tmp_path):
    folder = write_set(tmp_path / "sets" / "one", model="one")
    return StudyContext(store=store, images=images, find_sets=lambda: [("One", folder)])


def spec(**changes):
    values = {
        "name": " Symbols ",
        "task": "recognition",
        "votes": 5,
        "list_size": 20,
        "decoy_rate": 0.5,
        "headline": "majority",
        "seed": 3,
        "scale": 8,
        "password": "",
    }
    return study_form.spec_of(**{**values, **changes})


def test_the_form_becomes_a_study():
    made = spec()
    assert (made.name, made.task, made.seed, made.password) == (
        "Symbols",
        Task.RECOGNITION,
        3,
        None,
    )
    assert made.decoy_rate == 0  # the slider is hidden for this task
    assert spec(task="pair").decoy_rate == 0.5
    assert spec(headline="dawid-skene").headline is HeadlineRule.DAWID_SKENE
    assert spec(password="secret").password == "secret"


def test_empty_numbers_are_named_all_at_once():
    with pytest.raises(StudyError, match=r"Votes per item is empty.*\nSeed is empty"):
        spec(votes=None, seed=None)


def test_impossible_values_are_named():
    with pytest.raises(StudyError, match="name"):
        spec(name="  ")


def test_only_sets_on_offer_can_be_chosen(context, tmp_path):
    (_, folder), *_ = context.find_sets()
    assert study_form.known_folders(context, [str(folder)]) == [folder]
    with pytest.raises(StudyError, match="No such reconstruction set"):
        study_form.known_folders(context, [str(tmp_path)])


def test_the_preview_counts_what_the_sets_hold(context):
    (_, folder), *_ = context.find_sets()
    assert "4 reconstructions of 1 target model" in study_form.preview_of(
        [folder], "recognition", 5, 0.0
    )
