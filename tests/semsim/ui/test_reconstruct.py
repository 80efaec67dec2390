"""The page Reconstruct: its handlers, without a browser."""

from dataclasses import replace

import gradio as gr
import pytest
from distributed import Client
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_campaign import SYMBOLS, one_thread_cluster, toy_campaign
from made_weights import make_classifier

from semsim.campaign.campaign_job import CampaignOrder, plan_of, queue_campaign
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder
from semsim.errors import JobError, SettingsError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import run_as_job
from semsim.sets.reader import read_set
from semsim.ui import ScienceContext, reconstruct, reconstruct_data, reconstruct_files
from semsim.ui.reconstruct_data import CellState, set_views

FORM = {
    "name": "made",
    "datasets": [],
    "architectures": [],
    "strategies": ["none"],
    "attacks": [],
    "preset": "fast",
    "images": 2,
    "seeds": "0",
    "training": "epochs=1",
    "judge": "",
    "more_datasets": SYMBOLS,
    "more_architectures": "cnn-small:width=4\n",
    "more_strategies": "",
    "more_attacks": "invgrad:steps=3",
}


def form(**changes):
    return list({**FORM, **changes}.values())


def context_at(data):
    return ScienceContext(
        data=data,
        checkpoints=data / "checkpoints",
        studies=list,
        labels={}.__getitem__,
        votes={}.__getitem__,
        device="cpu",
    )


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
        loads = reconstruct.render(context)
    return blocks, loads


def test_an_empty_page_says_what_will_be_here(page, context):
    _, [(load, outputs)] = page
    values = load()
    assert len(values) == len(outputs)
    assert values[0] == "campaign-1"
    assert "python -m semsim datasets get cifar100" in values[1]
    assert [value for _, value in values[2].choices] == [""]
    assert any("No campaign has been started here yet" in str(value) for value in values)


def test_the_plan_is_told_before_anything_is_measured(context):
    [words] = reconstruct.plan_words(context, form())
    assert "<strong>1 targets</strong>, 1 of them to train" in words
    assert "<strong>2 images to attack</strong>" in words
    assert "being measured" in words
    assert not list(context.data.rglob("*.npz"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "no/such"}, "cannot name a campaign"),
        ({"strategies": []}, "no strategies"),
        ({"images": None}, "number of images is empty"),
        ({"seeds": "one"}, "Seeds are whole numbers"),
        ({"more_attacks": "invgrad:<b>"}, "no preset '&lt;b&gt;'"),
        ({"more_datasets": "folder:root=/nowhere"}, "No folder /nowhere"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(context, change, told):
    [words] = reconstruct.plan_words(context, form(**change))
    assert 'role="alert"' in words
    assert told in words.replace("&#39;", "'")


def test_nothing_starts_where_something_is_wrong(context):
    with pytest.raises(SettingsError):
        reconstruct.begin_campaign(context, form(images=0))
    assert not (context.data / "jobs").exists()


def test_a_campaign_under_way_is_not_started_again(context):
    order = CampaignOrder(campaign=toy_campaign(), data=context.data)
    queue_campaign(order, context.data / "jobs")
    with pytest.raises(JobError, match="under way already"):
        queue_campaign(order, context.data / "jobs")
    assert reconstruct.free_name(context) == "campaign-1"


def test_a_finished_campaign_is_shown_with_its_pictures(finished):
    context, job = finished
    sets, result = reconstruct.draw(context, job)
    assert "6 ok / 0 failed" in result
    assert sets.count("3 of 3 done") == 2
    targets = [read_set(folder).target_words for folder in jobs.result(job)["sets"]]
    assert targets[0].endswith(")")  # with what guessing gets, or a mark
    assert all(f"<td>{words}</td>" in sets for words in targets)
    assert sets.count('class="rec-cell ok"') == 6 + 1  # and one in the legend
    assert reconstruct.attacks_of(context, job) == ["invgrad"]
    grid = reconstruct.grid_now(context, job, "invgrad", 1)
    assert grid.count("data:image/png;base64") == 3  # originals
    assert grid.count(reconstruct_files.FOLDER) == 6
    assert "Page 1 of 1" in reconstruct.grid_now(context, job, "invgrad", 99)
    assert reconstruct.grid_now(context, job, None, 1) == ""


def test_a_picture_that_blew_up_is_flagged(finished):
    context, job = finished
    assert "blew up" not in reconstruct.grid_now(context, job, "invgrad", 1)
    store = PieceStore(context.data)
    key = plan_of(toy_campaign(attacks=("invgrad:steps=3",))).sets[1].cells[2].key
    cell = store.cells.read(key)
    store.cells.write(key, replace(cell, result=replace(cell.result, blown_up=True)))
    assert reconstruct.grid_now(context, job, "invgrad", 1).count("⚠ blew up") == 1


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
    assert "training, 25%" in reconstruct.draw(context, job)[0]
    assert "being attacked<br>40%" in reconstruct.grid_now(context, job, "invgrad", 1)
    assert "Waiting to start" in str(load_of(context))


def load_of(context):
    with gr.Blocks():
        [(load, _)] = reconstruct.render(context)
    return load()


def test_pictures_are_served_by_key_and_nothing_else_is(finished):
    context, job = finished
    app = FastAPI()
    app.include_router(reconstruct_files.router(context))
    client = TestClient(app)
    key = plan_of(toy_campaign(attacks=("invgrad:steps=3",))).sets[0].cells[0].key
    picture = client.get(reconstruct_files.address(key, "picture", 1))
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert "immutable" in picture.headers["cache-control"]
    found = PieceStore(context.data).cells.read(key).result.picture
    assert picture.content == reconstruct_files.png(found)
    for place in ("0" * 20, "..%2f..%2fstudies", key.upper() + "x"):
        assert client.get(f"{reconstruct_files.FOLDER}/{place}/picture.png").status_code == 404
    assert client.get(f"{reconstruct_files.FOLDER}/{key}/facts.png").status_code == 422
    assert jobs.state(job).value == "done"


def test_judges_are_offered_with_how_good_they_are_and_the_campaign_takes_one(context):
    tested = {"accuracy": 0.5, "n_test": 10, "n_classes": 4, "at_chance": False}
    facts = {"dataset": {"name": "symbols"}, "clean": tested, "degraded": tested}
    make_classifier(context.checkpoints / "judges/J.safetensors", facts=facts)
    make_classifier(context.checkpoints / "judges/other.safetensors")  # does not say what it is
    choices = reconstruct.judge_choices(context)
    assert [name for _, name in choices] == ["", "J"]
    assert "random" in choices[0][0]
    assert choices[1][0] == "J: symbols, 50.0% right (chance is 25.0%)"
    job = reconstruct_data.queued(
        reconstruct._form_of(form(judge="J")), context.data, "cpu", context.checkpoints
    )
    assert jobs.read_order(job, CampaignOrder).judge == "J"
