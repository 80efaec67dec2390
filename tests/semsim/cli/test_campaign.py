"""`semsim-studio campaign` in this process, with a worker that is a thread of it."""

import json
import re
import shutil

import pytest
import torch
from made_campaign import SYMBOLS, one_thread_cluster, toy_campaign
from typer.testing import CliRunner

from semsim.base.jobs import folders as jobs
from semsim.base.progress import silent
from semsim.base.sets.reader import read_set
from semsim.base.storage.records import write_record
from semsim.campaign.campaign_job import CampaignOrder, queue_campaign
from semsim.campaign.forecast import Outlook
from semsim.campaign.plan import Campaign
from semsim.campaign.watch import FORMAT, read_campaign
from semsim.cli.campaign import campaign_summary, changed, exit_code, outlook_text
from semsim.cli.main import app
from semsim.distractors.judge_job import JudgeOrder, do_judge
from semsim.images import write_png
from semsim.targets.train_settings import TrainSettings

TINY = ["--name", "tiny", "--dataset", SYMBOLS, "--architecture", "cnn-small:width=4"]
TINY += ["--strategy", "none", "--attack", "invgrad:steps=3", "--images", "2"]
TINY += ["--train", "epochs=1"]


@pytest.fixture(scope="module")
def scheduler():
    with one_thread_cluster() as cluster:
        yield cluster.scheduler_address


def typed(*words):
    return CliRunner().invoke(app, ["campaign", *words])


def test_one_image_of_one_target_is_said_in_the_singular():
    view = Outlook(cells=1, cells_done=0, targets=1, to_train=1, seconds=None, disk=0)
    said = outlook_text(view, 2).splitlines()
    assert said[:2] == [
        "1 image to attack, 0 of them done",
        "1 target, 1 of them still to train",
    ]


def test_a_campaign_is_planned_run_and_reported(scheduler, tmp_path):
    data = ["--data-dir", str(tmp_path)]
    assert "No campaign has begun" in typed("status", *data).output
    planned = typed("plan", *TINY, *data)
    assert planned.exit_code == 0, planned.output
    assert "2 images to attack, 0 of them done" in planned.output
    outlook = json.loads(typed("plan", *TINY, *data, "--json").stdout)["plan"]
    assert (outlook["cells"], outlook["cells_done"], outlook["to_train"]) == (2, 0, 1)
    run = ["run", *TINY, *data, "--scheduler", scheduler, "--device", "cpu"]
    done = typed(*run)
    assert done.exit_code == 0, done.output
    assert "2 ok / 0 failed (2 computed now, 0 done before)" in done.output
    assert "No distractor model has read these images" in done.output
    folder = tmp_path / "runs/tiny/cnn-small__none__invgrad"
    found = read_set(folder)
    words = found.target_words
    assert re.search(r"right.* \(chance|right: at chance", words)
    assert f"{folder}  target {words}  attacker {found.attacker_words}\n" in done.output
    assert "0 computed now, 2 done before" in typed(*run).output
    state = typed("status", "--name", "tiny", *data)
    head, line = state.output.splitlines()
    assert dict(zip(head.split(), line.split(), strict=True)) == {
        **{"name": "tiny", "state": "done", "ok": "2", "failed": "0", "left": "0", "images": "2"}
    }
    (row,) = json.loads(typed("status", *data, "--json").stdout)["campaigns"]
    assert (row["name"], row["state"], row["ok"], row["left"]) == ("tiny", "done", 2, 0)
    first, second = jobs.list_jobs(tmp_path / "jobs", "campaign")
    assert jobs.result(second)["computed"] == 2
    order = jobs.read_order(first, CampaignOrder)
    assert (order.scheduler, order.device) == (scheduler, "cpu")
    assert order.campaign == read_campaign(tmp_path, "tiny")
    again = CliRunner().invoke(app, ["job", str(queue_campaign(order, tmp_path / "jobs").folder)])
    assert again.exit_code == 0, again.output
    assert "0 computed now, 2 done before" in again.output


def test_a_judge_reads_the_pictures_at_the_end(scheduler, tmp_path):
    checkpoints = tmp_path / "weights"
    judge = JudgeOrder(
        name="J",
        dataset=SYMBOLS,
        train=TrainSettings(epochs=1),
        checkpoints=checkpoints,
        data=tmp_path,
        device="cpu",
    )
    do_judge(judge, tmp_path, silent)
    where = ["--data-dir", str(tmp_path), "--checkpoints", str(checkpoints)]
    run = ["run", *TINY, *where, "--scheduler", scheduler, "--device", "cpu", "--distractor-model"]
    unknown = typed(*run, "K")
    assert unknown.exit_code == 2
    assert "No distractor model is called 'K'" in unknown.output
    done = typed(*run, "J")
    assert done.exit_code == 0, done.output
    assert "4 pictures judged" in done.output
    assert "No distractor model" not in done.output
    (folder,) = (tmp_path / "runs/tiny").glob("*/predictions.parquet")
    assert read_set(folder.parent).run["predictor"]["name"] == "J"
    assert "pictures judged" not in typed(*run, "J").output  # they are as they were

    other = typed(*run, "J", "--name", "faces", "--dataset", "faces")
    assert other.exit_code != 0
    assert "is known to one of them only" in other.output


def test_what_is_typed_beside_a_job_replaces_what_was_asked(scheduler, tmp_path):
    campaign = toy_campaign(strategies=("none",), images=1, attacks=("invgrad:steps=2",))
    order = CampaignOrder(campaign=campaign, data=tmp_path, scheduler="nonsense://x", device="cpu")
    job = ["run", "--job", str(queue_campaign(order, tmp_path / "jobs").folder)]
    assert "No Dask scheduler answers at 'nonsense://x'" in typed(*job).output
    other = typed(*job, "--scheduler", scheduler, "--images", "2")
    assert "Another campaign is called 'toy'" in other.output
    done = typed(*job, "--scheduler", scheduler)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("strategies", "code"),
    [(["none"], 0), (["none", "gradient-noise:std=1e38"], 1), (["gradient-noise:std=1e38"], 3)],
)
def test_the_exit_code_tells_all_some_or_none(strategies, code, scheduler, tmp_path):
    asked = ["--name", "codes", "--dataset", SYMBOLS, "--architecture", "cnn-small:width=4"]
    asked += [word for one in strategies for word in ("--strategy", one)]
    asked += ["--attack", "invgrad:steps=3", "--images", "1", "--train", "epochs=2"]
    words = ["run", *asked, "--data-dir", str(tmp_path), "--scheduler", scheduler]
    done = typed(*words, "--device", "cpu")
    assert done.exit_code == code, done.output


def test_what_was_not_computed_is_said_with_its_reason():
    outcome = {"n_ok": 2, "n_failed": 0, "n_crashed": 0, "computed": 2, "reused": 0, "sets": []}
    words = campaign_summary({**outcome, "undone": {"MemoryError: no room": 3}})
    assert "3 could not be computed and are tried again next time: MemoryError: no room" in words
    assert exit_code({**outcome, "undone": {"MemoryError": 3}}) == 1
    assert exit_code(None) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", *TINY, "--attack", "nobody"], "No attack is called 'nobody'"),
        (["run", *TINY, "--strategy", "nobody"], "No defence is called 'nobody'. Known: ats,"),
        (["run", *TINY, "--scheduler", "nonsense://x"], "No Dask scheduler answers"),
        (["run", *TINY, "--scheduler", "nonsense"], "--scheduler is the address of one, as tcp://"),
        (["run", *TINY, "--train", "seed=5"], "give seeds with --seed"),
        (["run", *TINY, "--train-variant", "seed=1"], "give seeds with --seed"),
        (["plan", "--images", "2"], "--name"),
        (["status", "--name", "nobody"], "There is no campaign 'nobody'"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(words, told, tmp_path):
    done = typed(*words, "--data-dir", str(tmp_path))
    assert done.exit_code in (1, 2)
    assert told in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"images": "3"}, "images must be a whole number; got '3'"),
        ({"datasets": "digits"}, "datasets must be a list; got 'digits'"),
        ({"train": None}, "Expected the settings of TrainSettings; got None"),
        ({"train": {"seed": 5}}, "leave it out of train and give seeds"),
    ],
)
def test_what_a_file_says_wrong_is_said_without_a_traceback(record, told, tmp_path):
    file = tmp_path / "campaign.json"
    write_record(file, FORMAT, {"name": "wrong", **record})
    done = typed("plan", "--file", str(file), "--data-dir", str(tmp_path))
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("folder: root = pics ,size=8", "folder: root = {here}/pics,size=8"),
        ("folder:size=8,root=../up", "folder:size=8,root={up}/up"),
        ("folder:root=my,pics", "folder:root={here}/my,pics"),
        ("folder:root=/there/,size=8", "folder:root=/there/,size=8"),
        ("caltech101:root=data/datasets", "caltech101:root=data/datasets"),
        ("symbols:size=8", "symbols:size=8"),
    ],
)
def test_the_folder_of_a_data_set_is_found_from_anywhere(text, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (found,) = changed(dataset=[text])(Campaign(name="a")).datasets
    assert found == whole.format(here=tmp_path.resolve(), up=tmp_path.resolve().parent)


def test_options_come_on_top_of_a_file(tmp_path):
    file = tmp_path / "campaign.json"
    write_record(file, FORMAT, {"name": "kept", "images": 3, "train": {"epochs": 5, "lr": 0.2}})
    found = changed(file=file, seed=[1, 2], train="lr=0.3", attack_preset="fast")(Campaign(name=""))
    assert found == Campaign(
        name="kept",
        images=3,
        seeds=(1, 2),
        attacks=("invgrad:fast",),
        train=TrainSettings(epochs=5, lr=0.3),
    )


def test_long_times_are_told_in_hours():
    view = Outlook(cells=4, cells_done=1, targets=2, to_train=1, seconds=7200.0, disk=2_500_000)
    assert outlook_text(view, 2).splitlines() == [
        "4 images to attack, 1 of them done",
        "2 targets, 1 of them still to train",
        "about 2.0 h of one core; divide by the number of workers (2)",
        "2.5 MB of disk at most",
    ]


def status_of(data):
    told = typed("status", *data)
    assert told.exit_code == 0
    return told.output.splitlines()


def test_a_folder_is_found_from_elsewhere_and_one_that_is_gone_hides_no_other(
    tmp_path, monkeypatch
):
    for number in range(4):
        picture = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(number))
        write_png(picture, tmp_path / "there/pics" / "ab"[number % 2] / f"{number}.png")
    data = ["--data-dir", str(tmp_path / "data")]
    monkeypatch.chdir(tmp_path / "there")
    own = ["--dataset", "folder:root=pics,size=8,test_share=0.5", "--images", "1"]
    own += ["--architecture", "cnn4:width=4", "--train", "epochs=1", "--attack", "invgrad:steps=1"]
    done = typed("run", "--name", "own", *own, *data, "--device", "cpu")
    assert done.exit_code == 0, done.output
    monkeypatch.chdir(tmp_path)
    assert ["own", "done", "2"] in [line.split()[:3] for line in status_of(data)]
    typed("run", *TINY, *data, "--device", "cpu")
    shutil.rmtree(tmp_path / "there")
    found = {line.split()[0]: line.split()[1:] for line in status_of(data)}
    assert found["own"][:3] == ["unknown:", "No", "folder"]
    assert found["tiny"] == ["done", "2", "0", "0", "2"]
    assert typed("status", "--name", "own", *data).exit_code == 2
