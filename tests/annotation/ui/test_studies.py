"""The form of the Studies page, without a browser."""

import gradio as gr
import pytest
from study_factory import write_set

from annotation.domain import Task
from annotation.errors import StudyError
from annotation.ui import StudyContext, studies


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
        "seed": 3,
        "scale": 8,
        "password": "",
    }
    return studies.spec_of(**{**values, **changes})


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
    assert spec(password="secret").password == "secret"


def test_empty_numbers_are_named_all_at_once():
    with pytest.raises(StudyError, match=r"Votes per item is empty.*\nSeed is empty"):
        spec(votes=None, seed=None)


def test_impossible_values_are_named():
    with pytest.raises(StudyError, match="name"):
        spec(name="  ")


def test_only_sets_on_offer_can_be_chosen(context, tmp_path):
    (_, folder), *_ = context.find_sets()
    assert studies.known_folders(context, [str(folder)]) == [folder]
    with pytest.raises(StudyError, match="No such reconstruction set"):
        studies.known_folders(context, [str(tmp_path)])


def test_the_preview_counts_what_the_sets_hold(context):
    (_, folder), *_ = context.find_sets()
    assert "4 reconstructions of 1 target model" in studies.preview_of(
        [folder], "recognition", 5, 0.0
    )


def test_the_page_keeps_no_state_and_opens_no_endpoint(context):
    with gr.Blocks(analytics_enabled=False) as demo:
        for load, outputs in studies.render(context):
            demo.load(load, None, outputs, queue=False, api_visibility="private")
    assert not [block for block in demo.blocks.values() if isinstance(block, gr.State)]
    assert demo.get_api_info()["named_endpoints"] == {}
    assert demo.get_api_info()["unnamed_endpoints"] == {}
