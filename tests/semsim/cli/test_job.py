"""`semsim-studio job`: one command for every job, also for those of previous versions."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import torch
from helpers import ROOT, limit, until
from made_judged import judged_labels
from typer.testing import CliRunner

from semsim.cli.main import app
from semsim.jobs import folders as jobs
from semsim.jobs.folders import JobState
from semsim.learning import PRESETS
from semsim.learning.session import STATE_FILE
from semsim.metrics.provenance import read_training

SETTINGS = replace(
    PRESETS["small"],
    backbone="lenet",
    epochs=1,
    batch_size=8,
    triplets_per_original=2,
    lr_drops=(),
    nesterov=False,
    device="cpu",
)


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return judged_labels(tmp_path_factory.mktemp("toy"), originals=6)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def bare(tmp_path, labels):
    """A training as it was queued when `learn` trained with options alone."""
    argv = ["learn", "--labels", "{job}/labels.parquet", "--name", "old"]
    argv += ["--checkpoints", str(tmp_path / "checkpoints"), "--study", "Whose"]
    for name, value in asdict(SETTINGS).items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            argv.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, tuple):
            argv += [f"--{flag}", ",".join(map(str, value))]
        else:
            argv += [f"--{flag}", str(value)]
    files = {"labels.parquet": labels, "training.json": {"name": "old"}}
    return jobs.create(tmp_path / "jobs", kind="learn", title="Train old", argv=argv, files=files)


def flat(tmp_path, labels):
    """A training as it was queued when order.json held it flat."""
    settings = {**asdict(SETTINGS), "lr_drops": []}
    place = {"checkpoints": str(tmp_path / "checkpoints"), "scores": str(tmp_path / "scores")}
    hold_out = {"kind": "original", "value": "", "fraction": 0.25, "seed": 0}
    order = {"do": "train", "name": "old", "study": "Whose", "licence": "CC0", **place}
    order |= {"device": "cpu", "metrics": ["mse"], "hold_out": hold_out, "settings": settings}
    files = {"labels.parquet": labels, "order.json": order}
    argv = ["learn", "carry-out"]
    return jobs.create(tmp_path / "jobs", kind="learn", title="Train old", argv=argv, files=files)


@pytest.mark.parametrize("made", [bare, flat])
def test_a_training_of_a_previous_version_is_carried_out_as_it_was_asked(made, labels, tmp_path):
    job = made(tmp_path, labels)
    outcome = run(*job.command)
    assert outcome.exit_code == 0, outcome.output
    assert jobs.state(job) is JobState.DONE
    written = read_training(tmp_path / "checkpoints" / "old.safetensors")
    assert written.settings == SETTINGS.result_settings()
    assert written.study == "Whose"
    assert ("held_out" in jobs.result(job)) == (made is flat)
    assert not (job.folder / STATE_FILE).exists()
    again = run("job", job.folder)
    assert again.exit_code == 2
    assert "is done" in again.output


@pytest.mark.parametrize("typed", [["--epochs", "3"], ["--labels", "others.parquet"]])
def test_options_beside_an_older_training_are_refused(typed, labels, tmp_path):
    job = bare(tmp_path, labels)
    refused = run("learn", "--job", job.folder, *typed)
    assert refused.exit_code == 2
    assert f"{' '.join(typed)} would change it" in " ".join(refused.output.split())
    assert jobs.state(job) is JobState.QUEUED


def test_what_an_older_job_does_not_say_is_named(labels, tmp_path):
    job = jobs.create(tmp_path, kind="learn", title="Train", argv=["learn", "--labels", "x"])
    outcome = run(*job.command)
    assert outcome.exit_code == 2
    assert "does not say its checkpoints. Start anew." in " ".join(outcome.output.split())


def test_options_alone_say_which_command_trains(tmp_path):
    outcome = run("learn", "--labels", tmp_path / "labels.parquet", "--name", "mine")
    assert outcome.exit_code == 2
    assert "learn run --labels FILE --name NAME" in outcome.output


def test_a_job_of_a_kind_with_a_command_of_its_own_is_done_by_that(tmp_path):
    job = jobs.create(tmp_path, kind="score", title="Score", argv=["score", "--metrics", "no"])
    outcome = run("job", job.folder)
    assert outcome.exit_code == 2
    assert "'no'" in outcome.output


def test_ctrl_c_leaves_a_training_that_goes_on(labels, tmp_path):
    labels.to_parquet(tmp_path / "labels.parquet")
    preset = "small:backbone=lenet,lr=0.005,batch_size=8,epochs=10000"
    words = [*("--labels", tmp_path / "labels.parquet", "--name", "mine", "--preset", preset)]
    words += ["--checkpoints", tmp_path / "checkpoints", "--data-dir", tmp_path / "data"]
    process = subprocess.Popen(
        [sys.executable, "-m", "semsim", "learn", "run", *map(str, words), "--device", "cpu"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever started the tests in the background made them deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    kept = tmp_path / "data" / "jobs"
    until(lambda: process.poll() is not None or list(kept.glob(f"*/{STATE_FILE}")), 400)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=limit(60))[1]
    assert process.returncode == 130
    (job,) = jobs.list_jobs(tmp_path / "data" / "jobs", "learn")
    assert jobs.state(job) is JobState.STOPPED

    epochs_done = len(torch.load(job.folder / STATE_FILE, weights_only=True)["records"])
    assert told.count("loss") <= epochs_done + 1  # a line an epoch, not one a step
    assert "Traceback" not in told
    (folder,) = re.findall(r"^Stopped by Ctrl-C. To go on: semsim-studio job (.*)", told, re.M)
    (job.folder / "stop").touch()  # so that it ends at its first report
    again = run("job", folder)
    assert "Stopped as asked" in again.output, again.output
    steps = jobs.latest(job).total // (2 * 10000)  # the control on shuffled votes has as many
    assert jobs.history(job)[-1].done == steps * epochs_done + 1


def test_only_what_has_a_table_is_printed_as_json(tmp_path):
    job = jobs.create(tmp_path, kind="campaign", title="Campaign", argv=["campaign", "run"])
    refused = run("job", job.folder, "--json")
    assert refused.exit_code == 2
    assert "A job campaign prints no table; leave --json out." in refused.stderr
    assert jobs.state(job) is JobState.QUEUED


def test_json_is_handed_on_to_the_command_of_a_job(tmp_path):
    one = ROOT / "data/demo/sets/cnn4-activation-silu__none__invgrad"
    words = ["score", "--set", one, "--metrics", "mse", "--scores", tmp_path / "scores"]
    job = jobs.create(tmp_path, kind="score", title="Score", argv=[*map(str, words)])
    outcome = run("job", job.folder, "--json")
    assert outcome.exit_code == 0, outcome.output
    assert [row["metric"] for row in json.loads(outcome.stdout)] == ["mse"]
