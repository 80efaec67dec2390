"""The page Train SemSim: its handlers, and a training it starts."""

import time
from dataclasses import replace

import gradio as gr
import pandas as pd
import pytest
from learning_toy import toy_labels

from semsim import jobs
from semsim.errors import DataError, SettingsError
from semsim.jobs import JobState
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.model import read_training
from semsim.learning.orders import Order, queue_training
from semsim.ui import ScienceContext, StudyChoice, learn

QUICK = TrainSettings(backbone="lenet", lr=0.005, epochs=2, batch_size=8, triplets_per_original=2)
STUDIES = [StudyChoice("s1", "Demo study", True), StudyChoice("s2", "Nobody voted", False)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    voted = toy_labels(tmp_path_factory.mktemp("toy"), originals=6)
    nothing = pd.array([pd.NA] * len(voted), dtype="boolean")
    return {"s1": voted, "s2": voted.assign(recognisable=nothing, simulated=False)}


@pytest.fixture
def context(tmp_path, tables):
    return ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path / "checkpoints",
        studies=lambda: STUDIES,
        labels=tables.__getitem__,
        votes=tables.__getitem__,  # this page never asks for them
        device="cpu",
    )


def order(context, name):
    return Order(name=name, checkpoints=context.checkpoints, settings=QUICK, study="Demo study")


def queue(context, tables, name):
    return queue_training(order(context, name), tables["s1"], context.data / "jobs")


@pytest.fixture
def page(context):
    """The handlers of the page by name, and what happens when it is loaded."""
    with gr.Blocks() as blocks:
        loads = learn.render(context)
    handlers = {fn.fn.__name__: fn for fn in blocks.fns.values() if fn.fn.__name__ != "<lambda>"}
    return blocks, handlers, loads


def test_the_page_offers_the_studies_and_what_each_is_good_for(page):
    _, _, [(load, outputs)] = page
    values = load()
    assert len(values) == len(outputs)
    study, stock, name = values[:3]
    assert study.choices == [("Demo study (simulated votes)", "s1"), ("Nobody voted", "s2")]
    assert study.value == "s1"
    assert "6 of 6 originals" in stock
    assert ">simulated</span>" in stock
    assert name == "semsim-demo-study-1"
    assert "No SemSim has been trained" in values[-1]


def test_a_reload_shows_the_newest_training(page, context, tables):
    queue(context, tables, "older")
    newest = queue(context, tables, "newer")
    _, _, [(load, outputs)] = page
    values = dict(zip([output.elem_id for output in outputs], load(), strict=True))
    assert values["learn-job"].value == newest.id
    assert len(values["learn-job"].choices) == 2
    assert "Train newer on simulated votes" in values["learn-status"]
    assert values["learn-trainings"].index("newer") < values["learn-trainings"].index("older")


def test_a_page_without_studies_says_what_to_do(context):
    empty = replace(context, studies=list)
    with gr.Blocks():
        [(load, _)] = learn.render(empty)
    study, stock, name = load()[:3]
    assert (study.value, name) == (None, "")
    assert "no study yet" in stock


def test_a_study_nobody_voted_in_says_what_to_do(context):
    stock, _ = learn.describe(context, "s2")
    assert "0 of 6 originals" in stock
    assert "Collect more votes" in stock
    assert "simulated" not in stock


def test_every_handler_is_private_and_out_of_the_queue(page):
    blocks, _, _ = page
    assert len(blocks.fns) == 7
    for fn in blocks.fns.values():
        assert fn.api_visibility == "private"
        assert not fn.queue


def test_the_page_keeps_nothing_in_the_browser_session(page):
    assert not [block for block in page[0].blocks.values() if isinstance(block, gr.State)]


def test_names_are_free(context, tables):
    assert learn.suggest_name(context, "s2") == "semsim-nobody-voted-1"
    queue(context, tables, "semsim-demo-study-1")
    context.checkpoints.mkdir()
    (context.checkpoints / "semsim-demo-study-2.safetensors").touch()
    assert learn.suggest_name(context, "s1") == "semsim-demo-study-3"


@pytest.mark.parametrize("name", ["Ünï <b>", "", "a" * 200, "日本"])
def test_any_study_name_gives_a_name_a_checkpoint_can_have(context, name):
    named = replace(context, studies=lambda: [StudyChoice("s", name, False)])
    suggested = learn.suggest_name(named, "s")
    assert suggested.startswith("semsim-")
    assert order(context, suggested).checkpoint.name == f"{suggested}.safetensors"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_form_of_a_preset_means_the_preset(preset):
    values = learn.form_values(PRESETS[preset])
    assert learn.settings_of(preset, tuple(values)) == PRESETS[preset]


def test_the_form_changes_what_it_shows_and_nothing_else():
    values = dict(zip(learn.FORM, learn.form_values(PRESETS["small"]), strict=True))
    changed = values | {"epochs": 3.0, "normalize": True}
    settings = learn.settings_of("small", tuple(changed.values()))
    assert settings == replace(PRESETS["small"], epochs=3, normalize=True)
    assert isinstance(settings.epochs, int)


def test_an_empty_field_is_named():
    values = dict(zip(learn.FORM, learn.form_values(PRESETS["small"]), strict=True))
    with pytest.raises(SettingsError, match="lr is empty"):
        learn.settings_of("small", tuple((values | {"lr": None}).values()))


@pytest.mark.parametrize(
    ("study", "name", "message"),
    [
        (None, "a", "Choose a study"),
        ("gone", "a", "does not exist any more"),
        ("s2", "a", "none has both"),
    ],
)
def test_a_training_that_cannot_be_says_why_and_leaves_no_job(context, study, name, message):
    with pytest.raises(DataError, match=message):
        learn.begin_training(context, study, name, QUICK)
    assert jobs.list_jobs(context.data / "jobs") == []


def test_a_mistake_is_told_and_changes_nothing_else_on_the_page(page):
    _, handlers, _ = page
    values = learn.form_values(PRESETS["small"])
    told, *others = handlers["start"].fn("s1", "<b>", "small", *values)
    assert 'role="alert"' in told
    assert "&lt;b&gt;&#x27; cannot name a checkpoint" in told
    assert others == [gr.skip()] * (len(handlers["start"].outputs) - 1)


def test_a_study_that_has_gone_is_told(context, tables):
    def gone(study_id):
        raise DataError(f"There is no study {study_id}.")

    assert learn.describe(replace(context, labels=gone), "s9") == [
        learn.alert_html(DataError("There is no study s9.")),
        "",
    ]


def test_a_training_started_on_the_page_ends_in_a_checkpoint(page, context):
    _, handlers, [(load, outputs)] = page
    form = [getattr(QUICK, field) for field in learn.FORM]
    values = handlers["start"].fn("s1", " mine ", "small", *form)
    assert len(values) == len(handlers["start"].outputs)
    assert values[0] == ""
    (job,) = jobs.list_jobs(context.data / "jobs")

    deadline = time.monotonic() + 120
    while jobs.state(job) in {JobState.QUEUED, JobState.RUNNING}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert jobs.state(job) is JobState.DONE, jobs.log_tail(job)

    shown = dict(zip([output.elem_id for output in outputs], load(), strict=True))
    assert "Done" in shown["learn-status"]
    assert "mine.safetensors" in shown["learn-result"]
    assert ">simulated</span> votes" in shown["learn-result"]
    assert "Use it in Compare" in shown["learn-result"]
    assert ">done<" in shown["learn-trainings"]
    assert "held out" in shown["learn-distances"].value["plot"]
    training = read_training(context.checkpoints / "mine.safetensors")
    assert (training.study, training.simulated) == ("Demo study", True)
    assert training.settings["epochs"] == 2
