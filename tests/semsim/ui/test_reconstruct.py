"""The page Reconstruct: its handlers, without a browser."""

import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qs, urlsplit

import gradio as gr
import numpy as np
import pytest
from distributed import Client
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_campaign import one_thread_cluster, toy_campaign
from made_pages import context_at
from made_weights import make_classifier

from semsim.attacks import ATTACKS
from semsim.base.errors import DataError, JobError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState, run_as_job
from semsim.base.sets.reader import read_set
from semsim.base.storage.names import free_name
from semsim.base.threat import LETTERS
from semsim.base.words import jury_words
from semsim.campaign.campaign_job import CampaignOrder, plan_of, queue_campaign
from semsim.campaign.demo import DemoSettings, plans
from semsim.campaign.plan import DEMO_GRID, FIRST_LOOK, target_key
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder
from semsim.datasets.fetch_job import KIND
from semsim.grid.previews import STEPS, Preview
from semsim.images import png_of
from semsim.lab import page as lab_declared
from semsim.lab.markup import study_address
from semsim.lab.settings_form import Given
from semsim.reporting.writing import png_address
from semsim.sets.no_attack_baseline import NOTHING, Count, Shown
from semsim.sets.recognition import NOT_YET, STATISTIC
from semsim.ui import (
    lab,
    lab_page,
    reconstruct,
    reconstruct_sets,
)
from semsim.ui.lab_page import Declared
from semsim.ui.reconstruct import FORM as CAMPAIGN
from semsim.ui.reconstruct import campaign_of
from semsim.ui.reconstruct_sets import CellState, kept_plan, set_views

FORM = {
    "fields": {
        "name": "made",
        "preset": "fast",
        "images": "2",
        "seeds": "1",
        "first_seed": "0",
        "judge": "",
        "threat": "",
        "train.epochs": "1",
    },
    "lists": {
        "datasets": {"symbols": {"train_per_class": "1", "test_per_class": "1"}},
        "architectures": {"cnn-small": {"width": "4"}},
        "strategies": {"none": {}},
        "attacks": {"invgrad": {"steps": "3"}},
        "shares": {"gradient": {}},
    },
}


def form(lists=None, **fields):
    return json.dumps({"fields": FORM["fields"] | fields, "lists": FORM["lists"] | (lists or {})})


@pytest.fixture
def context(tmp_path):
    return context_at(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A context with a campaign that is done, and its job."""
    made = context_at(tmp_path_factory.mktemp("finished"))
    order = CampaignOrder(campaign=toy_campaign(attacks=("invgrad:steps=3",)), data=made.data)
    job = queue_campaign(order, made.data / "jobs")
    with one_thread_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        plan, how = plan_of(order.campaign), HowToRun(device="cpu")
        run_as_job(job.folder, lambda report: run_plan(plan, made.data, client, how, report))
    return made, job


@pytest.fixture
def page(context):
    with gr.Blocks() as blocks:
        loads = Declared("semsim.ui.reconstruct").render(context)
    return blocks, loads


def test_an_empty_page_says_what_will_be_here(page, context):
    _, [(load, outputs)] = page
    values = load()
    assert len(values) == len(outputs)
    assert any("No campaign has been started here yet" in str(value) for value in values)


def test_the_plan_is_told_before_anything_is_measured(context):
    words = lab_page.plan_words(reconstruct.page(context), form())
    assert "<strong>1 target</strong>, 1 of them to train" in words
    assert "<strong>2 pictures to attack</strong>" in words
    assert "being measured" in words
    assert not list(context.data.rglob("*.npz"))


def test_seeds_are_as_many_as_wanted_from_the_first_on(context):
    changed = Given.of(form(seeds="3", first_seed="7"))
    assert campaign_of(changed).seeds == (7, 8, 9)
    fields = re.findall(r"<input [^>]*>", reconstruct.form_html(context.checkpoints))
    texts = [one for one in fields if 'type="text"' in one]
    assert [re.search(r'name="(.+?)"', one)[1] for one in texts] == ["name"]


def test_what_a_client_shares_is_chosen_with_its_settings():
    shares = {"gradient": {}, "update": {"steps": "2", "batch": "2"}}
    chosen = campaign_of(Given.of(form(lists={"shares": shares})))
    assert chosen.shares == ("gradient", "update:steps=2,batch=2")


def test_each_attack_stands_with_its_attacker_and_a_limit_is_chosen(context):
    html = reconstruct.form_html(context.checkpoints)
    chosen = re.findall(
        r'data-list="attacks" value="([\w-]+)"(?:(?!</div>).)*?Attacker ([^<]+)\.</span>',
        html,
        re.DOTALL,
    )
    attackers = dict(chosen)
    assert attackers["invgrad"] == "B+labels"
    assert (attackers["dlg"], attackers["spear"], attackers["imprint"]) == ("A", "B", "G")
    assert set(attackers) == set(ATTACKS)
    (chosen,) = re.findall(r'<select name="threat">(.*?)</select>', html, re.DOTALL)
    limits = re.findall(r'value="(.*?)"', chosen)
    assert limits == ["", *(f"{one}{more}" for one in LETTERS for more in ("", "+labels"))]
    assert campaign_of(Given.of(form(threat="E+labels"))).threat == "E+labels"


def test_the_part_that_is_shared_is_chosen():
    shares = {"gradient:parameters=last": {}, "gradient": {"parameters": "head+body.0"}}
    chosen = campaign_of(Given.of(form(lists={"shares": shares})))
    assert chosen.shares == ("gradient:parameters=last", "gradient:parameters=head+body.0")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"threat": "A"}, "which attacker A (Eavesdropper) lacks. Take threat=B+labels"),
        (
            {"lists": {"shares": {"gradient": {"parameters": "last"}}, "attacks": {"copa": {}}}},
            "copa needs the gradient of every layer",
        ),
        ({"name": "no/such"}, "cannot name a campaign"),
        ({"lists": {"strategies": {}}}, "no strategies"),
        ({"lists": {"shares": {}}}, "no shares"),
        (
            {"lists": {"shares": {"update": {"batch": "2"}}, "attacks": {"rgap": {}}}},
            "rgap works on the gradient of one picture alone",
        ),
        ({"lists": {"shares": {"update": {"batch": "3"}}}}, "take a multiple of 3"),
        ({"images": ""}, "Pictures is empty"),
        ({"seeds": "one"}, "Seeds must be a whole number"),
        ({"seeds": "0"}, "Seeds must be 1 to 100; got 0"),
        ({"seeds": "1000000000"}, "Seeds must be 1 to 100"),
        ({"first_seed": ""}, "First seed is empty"),
        ({"first_seed": "-1"}, "must be 0 or more; got -1"),
        ({"train.lr": "<b>"}, "Step size must be a number; got '&lt;b&gt;'"),
        ({"lists": {"attacks": {"invgrad": {"<b>": "1"}}}}, "no setting '&lt;b&gt;'"),
        ({"lists": {"datasets": {"folder": {"root": "/nowhere"}}}}, "No folder /nowhere"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(context, change, told):
    words = lab_page.plan_words(reconstruct.page(context), form(**change))
    assert 'role="alert"' in words
    assert told in words.replace("&#39;", "'")


def test_nothing_starts_where_something_is_wrong(context):
    with pytest.raises(SettingsError):
        reconstruct.page(context).queued(Given.of(form(images="0")))
    assert not (context.data / "jobs").exists()


def test_a_campaign_under_way_is_not_started_again(context):
    order = CampaignOrder(campaign=toy_campaign(), data=context.data)
    queue_campaign(order, context.data / "jobs")
    with pytest.raises(JobError, match="under way already"):
        queue_campaign(order, context.data / "jobs")
    assert free_name(context.data / "runs", "campaign") == "campaign-1"


def test_a_finished_campaign_is_shown_with_its_pictures(finished):
    context, job = finished
    strip, sets, verdict, result = reconstruct_sets.draw(context, job)
    assert "6 ok / 0 failed" in result
    assert sets.count("3 of 3 done") == 2
    made = jobs.result(job)["sets"]
    targets = [read_set(folder).target_words for folder in made]
    assert targets[0].endswith(")")  # with what guessing gets, or a mark
    assert all(f"<td>{words}</td>" in sets for words in targets)
    assert sets.count('class="rec-cell ok"') == 6 + 1  # and one in the legend
    assert strip.count("<img") == 2 * 6
    assert " of 6 pictures" in verdict
    address = study_address(made)
    assert address.startswith("/studio/new?set=")
    assert parse_qs(urlsplit(address).query)["set"] == made
    assert address.replace("&", "&amp;") in result
    assert reconstruct_sets.offered(context, job) == (["invgrad"], 1)
    grid = reconstruct_sets.grid_now(context, job, "invgrad", 1)
    assert grid.count("data:image/png;base64") == 3  # originals
    assert grid.count(reconstruct_sets.FOLDER) == 6
    assert reconstruct_sets.grid_now(context, job, "invgrad", 99) == grid
    assert reconstruct_sets.grid_now(context, job, None, 1) == ""


def test_a_finished_campaign_keeps_its_result_where_its_pictures_are_gone(finished, monkeypatch):
    def gone(campaign):
        raise DataError("No pictures at here. Put them back.")

    context, job = finished
    before = reconstruct_sets.draw(context, job)
    monkeypatch.setattr("semsim.ui.reconstruct_sets.kept_plan", gone)
    strip, sets, verdict, result = reconstruct_sets.draw(context, job)
    assert (strip, verdict, result) == ("", "", before[-1])
    assert "No pictures at here. Put them back. Its finished sets stay" in sets
    monkeypatch.setattr(jobs, "state", lambda job: JobState.RUNNING)
    with pytest.raises(DataError):
        reconstruct_sets.draw(context, job)


def test_the_verdict_counts_what_is_clearer_than_a_guess(finished):
    context, _ = finished
    made = toy_campaign(attacks=("invgrad:steps=3",))
    store, views = PieceStore(context.data), set_views(context, made)
    for view in views:
        images = kept_plan(made).pictures[view.planned.target.dataset]
        for place, cell in enumerate(view.cells):
            found = store.cells.read(cell.key).result
            shown = images.control.judge(place, found.picture, found.attacked)
            assert cell.shown == shown
    plain, flipped = views
    better = replace(
        flipped, cells=tuple(replace(cell, shown=Shown(True, True)) for cell in flipped.cells)
    )
    bare = replace(plain, cells=tuple(replace(cell, shown=NOTHING) for cell in plain.cells))
    sets = [{"recognised": 1, "grey": 1, "originals": 3, "over": 3}] * 2
    named = {"why": "", "right": None, "sets": dict(enumerate(sets))}
    words = reconstruct_sets.verdict_html([bare, better], named)
    lead = (
        "A reference classifier recognises 2 of 6 pictures, 33% [no interval: 3 originals, fewer "
        "than 6] (controls: 2 of 6 grey pictures, 6 of 6 originals). "
    ) + jury_words("classifier")
    assert f'<p class="st-lead">{lead}</p><p>{STATISTIC}' in unescape(words)
    assert NOT_YET in reconstruct_sets.verdict_html([bare, better], None)
    assert Count(3, 0, 6, 3).words in words
    assert "nothing can be said of a defence" in words
    assert "on 0 of 3 only" in words
    good = replace(plain, cells=better.cells)
    assert "nothing can be said" not in reconstruct_sets.verdict_html([good, bare], named)
    waiting = replace(plain, cells=tuple(
        replace(cell, state=CellState.WAITING) for cell in plain.cells))  # fmt: skip
    assert reconstruct_sets.verdict_html([waiting], None) == ""


def test_signs_for_a_client_stand_beside_the_attacker_once_a_set_is_written(context):
    campaign = toy_campaign(
        architectures=("imprint:network=lenet,bins=16",),
        strategies=("none",),
        attacks=("imprint",),
        shares=("batch-gradient:batch=2",),
        images=2,
    )
    (before,) = reconstruct_sets.set_views(context, campaign)
    assert before.attacker.startswith("G · ")
    assert "client" not in before.attacker
    run_plan(plan_of(campaign), context.data, None, HowToRun(device="cpu"))
    (after,) = reconstruct_sets.set_views(context, campaign)
    assert after.attacker.startswith(f"{before.attacker} · a client could notice equal rows")
    assert after.attacker in reconstruct_sets.verdict_html([after], None)


def test_a_picture_that_blew_up_is_flagged(finished):
    context, job = finished
    assert "blew up" not in reconstruct_sets.grid_now(context, job, "invgrad", 1)
    store = PieceStore(context.data)
    key = plan_of(toy_campaign(attacks=("invgrad:steps=3",))).sets[1].cells[2].key
    cell = store.cells.read(key)
    store.cells.write(key, replace(cell, result=replace(cell.result, blown_up=True)))
    assert reconstruct_sets.grid_now(context, job, "invgrad", 1).count("⚠ blew up") == 1


def test_what_is_under_way_shows_how_far_it_is(context):
    campaign = toy_campaign()
    plan = plan_of(campaign)
    folder = RunFolder(context.data, campaign.name)
    folder.claim(campaign)
    first, second = plan.sets
    folder.tell({first.cells[1].key: 0.4, second.target.key: 0.25})
    one, two = set_views(context, campaign)
    assert [cell.state for cell in one.cells] == [
        CellState.WAITING,
        CellState.RUNNING,
        CellState.WAITING,
    ]
    assert one.cells[1].share == 0.4
    assert (one.training, two.training, two.target) == (None, 0.25, "")
    job = queue_campaign(CampaignOrder(campaign=campaign, data=context.data), context.data / "jobs")
    assert "training, 25%" in reconstruct_sets.draw(context, job)[1]
    assert "being attacked<br>40%" in reconstruct_sets.grid_now(context, job, "invgrad", 1)
    assert "Waiting to start" in str(load_of(context))


def test_the_picture_under_attack_is_shown_while_the_job_lives(context):
    campaign = toy_campaign()
    (first, _), folder = plan_of(campaign).sets, RunFolder(context.data, campaign.name)
    job = queue_campaign(CampaignOrder(campaign=campaign, data=context.data), context.data / "jobs")
    key = first.cells[1].key
    assert "step by step" in reconstruct_sets.draw(context, job)[0]  # and no picture yet
    pngs = [png_of(np.full((4, 4, 3), grey, np.uint8)) for grey in (60, 90)]
    strip = [Preview(place=1, share=(1 + n) / 5, png=png) for n, png in enumerate(pngs)]
    folder.tell({key: 0.6})
    folder.show(key, tuple(strip))
    shown = reconstruct_sets.draw(context, job)[0]
    pictures = kept_plan(campaign).pictures[campaign.datasets[0]]
    sources = re.findall('src="([^"]*)"', shown)
    assert sources == [png_address(png_of(pictures.pixels[1])), *map(png_address, pngs)]
    assert f"{pictures.names[1]}, {first.model}" in shown
    assert "20%" in shown
    assert "40%" in shown
    assert shown.count("rec-empty") == STEPS - 2 + 1  # steps to come, and the result
    # A file that is half there, a cell of no plan, and a job that is over show none.
    path = folder.path / "seen.json"
    whole = path.read_text()
    path.write_text(whole[:-9])
    assert "<img" not in reconstruct_sets.draw(context, job)[0]
    folder.show("0" * 20, tuple(strip))
    assert "<img" not in reconstruct_sets.draw(context, job)[0]
    path.write_text(whole)
    assert reconstruct_sets.draw(context, job)[0] == shown
    jobs.request_stop(job)
    assert reconstruct_sets.draw(context, job)[0] == ""


def load_of(context):
    with gr.Blocks():
        [(load, _)] = Declared("semsim.ui.reconstruct").render(context)
    return load()


def test_pictures_are_served_by_key_and_nothing_else_is(finished):
    context, job = finished
    app = FastAPI()
    app.include_router(reconstruct_sets.router(context))
    client = TestClient(app)
    key = plan_of(toy_campaign(attacks=("invgrad:steps=3",))).sets[0].cells[0].key
    picture = client.get(reconstruct_sets.address(key, "picture", 1))
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert "immutable" in picture.headers["cache-control"]
    found = PieceStore(context.data).cells.read(key).result.picture
    assert picture.content == png_of(found)
    for place in ("0" * 20, "..%2f..%2fstudies", key.upper() + "x"):
        assert client.get(f"{reconstruct_sets.FOLDER}/{place}/picture.png").status_code == 404
    assert client.get(f"{reconstruct_sets.FOLDER}/{key}/facts.png").status_code == 422
    assert jobs.state(job).value == "done"


def test_judges_are_offered_with_how_good_they_are_and_the_campaign_takes_one(context):
    tested = {"accuracy": 0.5, "n_test": 10, "n_classes": 4, "chance": 0.25}
    tested["at_chance"] = False
    facts = {"dataset": {"name": "symbols"}, "clean": tested, "degraded": tested}
    make_classifier(context.checkpoints / "judges/J.safetensors", facts=facts)
    make_classifier(context.checkpoints / "judges/other.safetensors")  # does not say what it is
    choices = lab.judge_choices(context.checkpoints)
    assert [name for name, _ in choices] == ["", "J"]
    assert "random" in choices[0][1]
    assert choices[1][1] == "J: symbols, 50.0% right (chance is 25.0%)"
    given = Given.of(form(judge="J"))
    job = reconstruct_sets.queued(
        campaign_of(given), given.text("judge"), context.data, "cpu", context.checkpoints
    )
    assert jobs.read_order(job, CampaignOrder).judge == "J"


def test_a_form_cannot_name_code_that_is_run(context):
    given = json.loads(form())
    given["lists"]["architectures"] = {"own:network=os:abort,source=0": {}}
    with pytest.raises(SettingsError, match="from a command line"):
        campaign_of(Given.of(json.dumps(given)))


def test_the_grid_of_the_demo_is_the_demo_s():
    symbols, longer, _ = plans(DemoSettings())["sets"]
    ours = {target.plan.label: target for target in plan_of(DEMO_GRID).targets}
    assert {target.plan.label for target in (*symbols.targets, *longer.targets)} == set(ours)
    assert all(ours[target.plan.label].key == target.key for target in symbols.targets)
    for target in longer.targets:
        usual = ours[target.plan.label].plan
        assert target.plan.train == replace(usual.train, epochs=DemoSettings.longer)
        assert target.key == target_key(replace(usual, train=target.plan.train))


def ran(context, campaign, **order):
    """A job of a campaign that has ended at once, as if it had done its work."""
    asked = CampaignOrder(campaign=campaign, data=context.data, **order)
    job = queue_campaign(asked, context.data / "jobs")
    run_as_job(job.folder, lambda report: {"reused": 0})


def test_a_card_of_which_only_a_part_of_the_machine_ran_or_whose_data_are_absent(
    context, monkeypatch
):
    monkeypatch.setattr(jobs, "seconds_taken", lambda job: 47.0)
    monkeypatch.setattr(lab_declared, "absent", lambda: {"cifar100": "Not here."})
    ran(context, replace(FIRST_LOOK, name="old"))
    ran(context, replace(DEMO_GRID, name="fewer"), workers=1)  # not all of the machine
    first, demo, paper = CAMPAIGN.cards_html(context.data).split("<button")[1:]
    assert [one.count("took 47 s here") for one in (first, demo, paper)] == [1, 0, 0]
    assert [one.count("Not here.") for one in (first, demo, paper)] == [0, 0, 1]


def test_measuring_a_plan_tells_its_time_and_keeps_it(context):
    context.data.mkdir(exist_ok=True)
    page = reconstruct.page(context)
    assert "Time: being measured on a few steps. Disk" in lab_page.plan_words(page, form())
    trouble, words = lab_page.measured_words(page, form())
    assert trouble == ""
    assert re.search(r"Time: about \d+ s on \d+ cores\. Disk: up to", words)
    assert lab_page.plan_words(page, form()) == words  # nothing is measured twice


def test_a_data_set_is_fetched_by_a_job(context, monkeypatch):
    app, begun = FastAPI(), []
    app.include_router(lab.router(context, []))
    client = TestClient(app)
    monkeypatch.setattr(jobs, "start", begun.append)
    address = f"{lab.FOLDER}/fetch/cifar100"
    assert "not being fetched" in client.get(address).json()["words"]
    assert client.post(address).json()["live"]
    assert client.post(address).json()["live"]  # the same one
    [job] = jobs.list_jobs(context.data / "jobs", KIND)
    assert {one.id for one in begun} == {job.id}
    assert client.get(address).json()["live"]
    refused = client.post(f"{lab.FOLDER}/fetch/symbols").json()
    assert "needs no files" in refused["words"]
    assert client.get(f"{lab.FOLDER}/fetch/symbols").json()["there"]
