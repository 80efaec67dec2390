"""The page Train SemSim: its handlers, and a training it starts."""

import os
from dataclasses import replace

import gradio as gr
import pandas as pd
import pytest
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient
from helpers import bytes_read, ended
from made_judged import QUICK, finished_training, judged_labels, judged_votes
from safetensors.torch import save_file

from semsim.base.errors import DataError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState, owner_now
from semsim.base.progress import Progress
from semsim.base.storage.atomic import write_json
from semsim.base.storage.records import write_record
from semsim.learning import PRESETS
from semsim.learning.ablations_run import (
    JudgedOrder,
    Material,
    Workplace,
    queue_judged,
)
from semsim.learning.card import FORMAT, card_paths, read_card
from semsim.learning.default_checkpoint import promoted
from semsim.learning.diagnostics import Course
from semsim.learning.initial import START as START_FORMAT
from semsim.learning.pace import USUAL, LearningPace
from semsim.learning.settings import Order
from semsim.learning.splits import HoldOut
from semsim.metrics.provenance import read_training
from semsim.ui import ScienceContext, StudyChoice, jobpanel, learn, learn_view

STUDIES = [StudyChoice("s1", "Demo study", True), StudyChoice("s2", "Nobody voted", False)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    voted = judged_labels(tmp_path_factory.mktemp("toy"), originals=6)
    nothing = pd.array([pd.NA] * len(voted), dtype="boolean")
    return {"s1": voted, "s2": voted.assign(recognisable=nothing, simulated=False)}


@pytest.fixture
def context(tmp_path, tables):
    return ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path / "checkpoints",
        studies=lambda: STUDIES,
        labels=tables.__getitem__,
        votes=lambda study: judged_votes(tables[study]),
        device="cpu",
    )


def order(context, name):
    return Order(name=name, checkpoints=context.checkpoints, settings=QUICK, study="Demo study")


def queue(context, tables, name):
    asked = JudgedOrder(order=order(context, name), hold_out=HoldOut())
    place = Workplace(checkpoints=context.checkpoints, scores=context.data / "scores")
    return queue_judged(asked, Material(labels=tables["s1"]), place, context.data / "jobs")


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
    _, study, stock, name, hold_out, split = values[:6]
    assert study.choices == [("Demo study (simulated)", "s1"), ("Nobody voted", "s2")]
    assert study.value == ["s1"]
    assert "6 of 6 originals" in stock
    assert ">simulated</span>" in stock
    assert name == "semsim-demo-study-1"
    offered = [value for _, value in hold_out.choices]
    assert offered[:3] == ["original", "architecture=net0", "architecture=net1"]
    assert "of 4 originals" in split  # two of six are kept for the test
    shown = dict(zip([output.elem_id for output in outputs], values, strict=True))
    assert "No SemSim has been trained" in shown["learn-trainings"]
    assert [value for _, value in shown["learn-weights"].choices] == ["scratch", "imagenet"]
    assert (shown["learn-preset"], shown["learn-loss"]) == (USUAL, "triplet")
    assert "4 originals with" in split


def test_the_page_opens_on_the_study_that_has_votes(context):
    silent_first = replace(context, studies=lambda: STUDIES[::-1], voted=lambda: ["s1"])
    with gr.Blocks():
        [(load, _)] = learn.render(silent_first)
    assert load()[1].value == ["s1"]


def test_the_page_opens_on_the_study_in_hand(context):
    in_hand = replace(context, voted=lambda: ["s1"], in_hand=lambda request: "s2")
    with gr.Blocks():
        [(load, _)] = learn.render(in_hand)
    asked = gr.Request(username=None, query_params={}, headers={})
    assert load(asked)[1].value == ["s2"]
    gone = replace(in_hand, in_hand=lambda request: "gone")
    with gr.Blocks():
        [(load, _)] = learn.render(gone)
    assert load(asked)[1].value == ["s1"]


def test_the_page_opens_on_the_newest_training_if_there_is_one(page, context, tables):
    _, _, [(load, outputs)] = page
    assert load()[0].selected == "new"
    queue(context, tables, "one")
    assert load()[0].selected == "one"
    other = replace(context, in_hand=lambda request: "s2")
    with gr.Blocks():
        [(load_other, _)] = learn.render(other)
    # Of another study: its list where it is at work, never its page as if it were of this one.
    asked = gr.Request(username=None, query_params={}, headers={})
    assert load_other(asked)[0].selected == "list"
    assert outputs[0].elem_id == "learn-tabs"


def test_the_usual_preset_takes_the_largest_resnet_within_ten_minutes(
    page, context, tables, monkeypatch
):
    """As it opens and where the preset is chosen; `test_pace.py` has the rest."""
    names = [one for one in learn.FORM if one != "weights"]
    chosen = page[1]["take_preset"]
    for pictures, network in ((1e-3, "resnet50"), (0.08, "resnet18")):
        monkeypatch.setattr(
            learn, "_pace", lambda device, found=pictures: LearningPace("cpu", found)
        )
        found = learn.advise(context, ["s1"])
        told = dict(zip(names, found[1:], strict=True))["backbone"]
        assert (found[0], told) == (USUAL, network)
        values = chosen.fn(USUAL, ["s1"], "original", 0.25)
        assert len(values) == len(chosen.outputs)
        assert "4 originals with" in values[0]
        assert f"with {network}, the largest ResNet within 10 minutes" in values[0]
        assert values[1] == network
    assert chosen.fn("paper", ["s1"], "original", 0.25)[1] == "resnet50"
    assert chosen.fn(USUAL, [], "original", 0.25)[1:] == learn.form_values(PRESETS[USUAL])
    nothing = learn.advise(context, [])
    assert nothing == [gr.skip()] * (1 + len(names))
    assert learn.advise(replace(context, studies=list), ["s9"]) == nothing


def test_what_the_last_training_like_it_took_is_said(context, monkeypatch):
    monkeypatch.setattr(jobs, "start", lambda job: None)
    settings = learn.settings_of("code", learn.form_values(PRESETS["code"]), context.checkpoints)
    asked = HoldOut(fraction=0.25)
    job = learn.begin_training(context, ["s1"], "mine", settings, asked, "start")
    jobs.run_as_job(job.folder, lambda report: {})
    monkeypatch.setattr(jobs, "seconds_taken", lambda job: 90.0)
    said = "The last training on these studies, with this preset and test, took 1 min 30 s on this"
    assert said in learn.describe_split(context, ["s1"], "original", 0.25, "code")
    for held, preset in ((0.5, "code"), (0.25, "pooled")):
        assert said not in learn.describe_split(context, ["s1"], "original", held, preset)


def test_a_running_training_is_watched_without_reading_all_that_it_reported(context, tables):
    job = queue(context, tables, "long")
    write_json(job.folder / "pid.json", owner_now(os.getpid()))
    tell = Course(job.folder, lambda report: None)
    for epoch in range(1, 4):
        values = {"epoch": epoch, "loss": 1.0, "d_plus": 1.0, "d_minus": 2.0}
        tell(Progress(epoch, 9, "ends", values))
    tell.write()
    line = b'{"done": 3, "total": 9, "note": "epoch 4", "values": {"epoch": 3.5}, "at": 1.0}\n'
    (job.folder / "progress.jsonl").write_bytes(line * (47_000_000 // len(line)))
    assert jobs.state(job) is JobState.RUNNING
    shown = []
    looks = (
        lambda: shown.append(learn.draw(context, job)[1]),
        lambda: jobpanel.show(job),
        lambda: learn.trainings_now(context),
        lambda: jobpanel.running(context.data / "jobs"),
    )
    assert max(map(bytes_read, looks)) < 470_000
    assert "Mean distance to the original" in shown[0]


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
    _, study, stock, name, _, split = load()[:6]
    assert (study.value, name, split) == ([], "", "")
    assert "no study yet" in stock


def test_a_study_nobody_voted_in_says_what_to_do(context):
    stock, _, _, split, start = learn.describe(context, ["s2"])
    assert (start.value, start.interactive) == ("Nothing to learn from yet", False)
    assert learn.describe(context, ["s1"])[4].interactive
    assert "no original has both kinds" in split
    assert "0 of 6 originals" in stock
    assert "Collect more votes" in stock
    assert "simulated" not in stock


def test_names_are_free(context, tables):
    assert learn.suggest_name(context, ["s2"]) == "semsim-nobody-voted-1"
    queue(context, tables, "semsim-demo-study-1")
    context.checkpoints.mkdir()
    (context.checkpoints / "semsim-demo-study-2.safetensors").touch()
    assert learn.suggest_name(context, ["s1"]) == "semsim-demo-study-3"


@pytest.mark.parametrize("name", ["Ünï <b>", "", "a" * 200, "日本"])
def test_any_study_name_gives_a_name_a_checkpoint_can_have(context, name):
    named = replace(context, studies=lambda: [StudyChoice("s", name, False)])
    suggested = learn.suggest_name(named, ["s"])
    assert suggested.startswith("semsim-")
    assert order(context, suggested).checkpoint.name == f"{suggested}.safetensors"


@pytest.mark.parametrize(
    ("study", "name", "message"),
    [
        ([], "a", "Choose a study"),
        (["gone"], "a", "does not exist any more"),
        (["s2"], "a", "none has both"),
        (["s1", "s2"], "a", "have 24 of the same reconstructions"),
    ],
)
def test_a_training_that_cannot_be_says_why_and_leaves_no_job(context, study, name, message):
    with pytest.raises(DataError, match=message):
        learn.begin_training(context, study, name, QUICK, HoldOut(), "start")
    assert jobs.list_jobs(context.data / "jobs") == []


def test_a_mistake_is_told_and_changes_nothing_else_on_the_page(page):
    _, handlers, _ = page
    values = learn.form_values(PRESETS["triplet"])
    told, *others = handlers["start"].fn(
        ["s1"], "original", 0.25, "<b>", "triplet", "start", *values
    )
    assert 'role="alert"' in told
    assert "&lt;b&gt;&#39; cannot name a checkpoint" in told
    assert others == [gr.skip()] * (len(handlers["start"].outputs) - 1)


def test_a_study_that_has_gone_is_told(context, tables):
    def gone(study_id):
        raise DataError(f"There is no study {study_id}.")

    studies = [StudyChoice("s9", "Gone", True)]
    lost = replace(context, labels=gone, studies=lambda: studies)
    stock, name, _, split, _ = learn.describe(lost, ["s9"])
    told = learn.alert_html(DataError("There is no study s9."))
    assert (stock, name, split) == (told, "", "")
    assert learn.describe_split(lost, ["s9"], "original", 0.25, "triplet") == told


@pytest.mark.parametrize("held", ["architecture=other", "nonsense", "attack="])
def test_a_hold_out_that_cannot_be_is_told_before_anything_starts(context, held):
    assert 'role="alert"' in learn.describe_split(context, ["s1"], held, 0.25, "triplet")


def test_a_training_started_on_the_page_ends_in_a_checkpoint(page, context):
    _, handlers, [(load, outputs)] = page
    form = learn.form_values(QUICK)
    values = handlers["start"].fn(
        ["s1"], "architecture=net1", 0.5, " mine ", "triplet", "all", *form
    )
    assert len(values) == len(handlers["start"].outputs)
    assert values[0] == ""
    (job,) = jobs.list_jobs(context.data / "jobs")

    assert ended(job) is JobState.DONE, jobs.log_tail(job)

    shown = dict(zip([output.elem_id for output in outputs], load(), strict=True))
    assert "Done" in shown["learn-status"]
    assert "mine.safetensors" in shown["learn-result"]
    assert ">simulated</span> votes" in shown["learn-result"]
    assert 'href="compare?study=s1&amp;semsim=mine">Use it in Compare' in shown["learn-result"]
    assert "the architecture net1, which it has not seen" in shown["learn-result"]
    assert "learn-verdict" in shown["learn-verdict"]
    assert ">simulated</span>" in shown["learn-verdict"]
    assert "on the training set" in shown["learn-result"]
    assert "People (ceiling)" in shown["learn-result"]
    assert shown["learn-promote"].visible
    said, listed, sure = handlers["promote_chosen"].fn(job.id)
    if sure.visible:  # what two epochs teach is not what this test is of
        said, listed, sure = handlers["promote_surely"].fn(job.id)
    assert "mine is now the SemSim" in said
    assert "mine ★" in listed
    assert promoted(context.checkpoints) == "mine"
    assert ">done<" in shown["learn-trainings"]
    assert shown["learn-curves"].count("<svg") == 3
    (job.folder / "progress.jsonl").write_text("")  # which may be very long
    assert learn.draw(context, job)[1] == shown["learn-curves"]
    assert "d+ held out" in shown["learn-curves"]
    assert "all originals together" in shown["learn-curves"]
    training = read_training(context.checkpoints / "mine.safetensors")
    assert (training.study, training.simulated) == ("Demo study", True)
    assert training.settings["epochs"] == 2
    app = FastAPI()
    app.include_router(learn_view.router(context))
    client = TestClient(app)
    for name in ("mine.safetensors", "mine.card.md", "mine.card.json"):
        address = f"{learn_view.FOLDER}/{name}"
        assert f'href="{address}" download' in shown["learn-result"]
        reply = client.get(address)
        assert reply.content == (context.checkpoints / name).read_bytes()
        assert f'filename="{name}"' in reply.headers["content-disposition"]
    (context.checkpoints / "mine.txt").touch()
    for name in ("no.safetensors", "mine.txt", ".safetensors", ".."):
        assert client.get(f"{learn_view.FOLDER}/{name}").status_code == 404
    other = context.data / "mine.safetensors"  # of that name, but not what would be handed out
    other.touch()
    assert learn_view.offered(other, context.checkpoints) == []


def test_several_studies_are_learned_from_as_one(context, tables):
    other = tables["s1"].assign(dataset="more textures")
    both = replace(context, labels={**tables, "s2": other}.__getitem__)
    stock, name, hold_out, *_ = learn.describe(both, ["s1", "s2"])
    assert "12 of 12 originals" in stock
    assert name == "semsim-demo-study-nobody-voted-1"
    assert ("Originals and the dataset more textures", "dataset=more textures") in hold_out.choices
    together = learn.study_names(both, ["s1", "s2"])
    assert learn.studies_behind(both, together) == {"s1": "Demo study", "s2": "Nobody voted"}
    found = learn.material_of(both, ["s1", "s2"])
    assert len(found.labels) == 2 * len(tables["s1"])
    one = judged_votes(tables["s1"])["annotator"].nunique()
    assert found.votes["annotator"].nunique() == 2 * one


def test_a_name_with_a_plus_is_one_study(context):
    named = replace(
        context,
        studies=lambda: [StudyChoice("a", "A + B", False), StudyChoice("b", "B", False)],
    )
    assert learn.studies_behind(named, "A + B") == {"a": "A + B"}
    assert learn.studies_behind(named, "gone") == {}


def test_no_chosen_study_is_asked_for(context):
    assert "Choose at least one study" in learn.describe(context, [])[0]


@pytest.fixture
def lost(context):
    """A finished training whose card says that it lost to all but its start."""
    job = finished_training(context.checkpoints, context.data)
    outcome = jobs.read_json(job.folder / "result.json")
    card = read_card(order(context, "mine").checkpoint)
    for row in card["held_out"]["against"]:
        row["difference"] = 0.1 if row["control"] else -0.1
    write_record(card_paths(order(context, "mine").checkpoint)[1], FORMAT, card)
    write_json(job.folder / "result.json", {**outcome, "held_out": card["held_out"]})
    return job


def test_a_semsim_that_lost_is_promoted_only_by_somebody_who_is_sure(page, context, lost):
    _, handlers, _ = page
    assert jobs.state(lost) is JobState.DONE
    said, _, sure = handlers["promote_chosen"].fn(lost.id)
    assert "<strong>lost to MSE, PSNR, SSIM</strong>" in said
    assert sure.visible
    assert promoted(context.checkpoints) is None
    assert handlers["forget"].fn()[1].visible is False  # another training is chosen
    said, listed, sure = handlers["promote_surely"].fn(lost.id)
    assert "mine is now the SemSim" in said
    assert "★" in listed
    assert not sure.visible
    assert promoted(context.checkpoints) == "mine"


def test_the_result_says_what_it_lost_to(context, lost):
    verdict, _, result, _ = learn.draw(context, lost)
    assert "Behind " in verdict
    assert "initial weights (the same network, not trained on votes)" in verdict
    assert "SemSim (mine, initial weights)" in result
    assert "of initial weights" in learn.trainings_now(context)


def test_another_preset_leaves_the_controls_as_they_were_chosen(page):
    outputs = {output.elem_id for output in page[1]["take_preset"].outputs}
    assert "learn-epochs" in outputs
    assert "learn-controls" not in outputs


def test_only_a_finished_training_is_promoted(context, tables):
    job = queue(context, tables, "waiting")
    for one in (job.id, None):
        said, asks = learn.promote_training(context, one)
        assert "Choose a training that is done" in said
        assert not asks
    assert not any(learn.draw(context, one)[-1].visible for one in (job, None))
    assert promoted(context.checkpoints) is None


def test_a_broken_start_is_named_and_takes_the_page_from_nobody(context, page):
    blocks, _, [(load, outputs)] = page
    facts = {"format": START_FORMAT, "config": "{}"}
    context.checkpoints.mkdir(exist_ok=True)
    save_file({"a": torch.zeros(1)}, context.checkpoints / "x.safetensors", metadata=facts)
    shown = dict(zip([output.elem_id for output in outputs], load(), strict=True))
    assert "x.safetensors" in shown["learn-weights"].info
    assert "x.safetensors" not in str(shown["learn-weights"].choices)
    client = TestClient(gr.mount_gradio_app(FastAPI(), blocks, path="/train"))
    assert client.get("/train/").status_code == 200


def test_the_pace_of_this_machine_is_measured_once():
    assert learn._pace("cpu") is learn._pace("cpu")
