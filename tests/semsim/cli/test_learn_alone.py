"""`python -m semsim learn`, in this process and in one of its own."""

import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
import typer
from learning_toy import toy_labels
from typer.testing import CliRunner

from semsim.cli.learn_alone import learn_command, settings_from
from semsim.errors import SettingsError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import JobState
from semsim.learning import PRESETS
from semsim.learning.orders import Order, queue_training
from semsim.learning.session import STATE_FILE
from semsim.metrics.network import load_semsim, read_training

PROGRAM = "import typer; from semsim.cli.learn_alone import learn_command; typer.run(learn_command)"
QUICK = [
    *("--backbone", "lenet", "--lr", "0.005", "--device", "cpu"),
    *("--epochs", "2", "--batch-size", "8"),
]


@pytest.fixture
def files(tmp_path):
    toy_labels(tmp_path / "images", originals=6).to_parquet(tmp_path / "labels.parquet")
    return [
        *("--labels", str(tmp_path / "labels.parquet")),
        *("--checkpoints", str(tmp_path / "checkpoints")),
        *("--data-dir", str(tmp_path / "data")),
    ]


def run(arguments):
    app = typer.Typer()
    app.command("learn")(learn_command)
    app.callback()(lambda: None)
    return CliRunner().invoke(app, ["learn", *arguments])


def only_job(tmp_path):
    (job,) = jobs.list_jobs(tmp_path / "data" / "jobs", "learn")
    return job


def test_writes_a_checkpoint_and_says_what_it_learned_from(files, tmp_path):
    outcome = run([*files, "--name", "mine", *QUICK])
    assert outcome.exit_code == 0, outcome.output
    assert "Trained on simulated votes" in outcome.output
    assert "held-out" in outcome.output
    assert load_semsim(tmp_path / "checkpoints" / "mine.safetensors").settings.backbone == "lenet"
    job = only_job(tmp_path)
    assert jobs.state(job) is JobState.DONE
    assert not (job.folder / STATE_FILE).exists()


def test_every_flag_reaches_the_checkpoint(files, tmp_path):
    flags = {
        "backbone": "lenet",
        "weights": "scratch",
        "input_size": 36,
        "loss": "contrastive",
        "margin": 0.5,
        "ordering": "votes",
        "mining": "semi-hard",
        "batch_norm": "trained",
        "identity_weight": 0.25,
        "lr": 0.001,
        "batch_size": 5,
        "epochs": 1,
        "momentum": 0.5,
        "weight_decay": 0.01,
        "triplets_per_original": 2,
        "augmentation": "none",
        "validation_fraction": 0.4,
        "patience": 3,
        "collapse_patience": 4,
        "seed": 7,
    }
    arguments = [p for k, v in flags.items() for p in (f"--{k.replace('_', '-')}", str(v))]
    arguments += ["--small-stem", "--normalize", "--no-nesterov", "--lr-drops", ".3,.6"]
    arguments += ["--mixed-precision"]
    outcome = run([*files, "--name", "mine", "--device", "cpu", *arguments])
    assert outcome.exit_code == 0, outcome.output
    written = read_training(tmp_path / "checkpoints" / "mine.safetensors").settings
    expected = {"small_stem": True, "normalize": True, "nesterov": False, "lr_drops": [0.3, 0.6]}
    expected |= {"mixed_precision": True}
    assert written == {**flags, **expected}


def test_a_queued_training_is_carried_out_with_the_settings_it_was_given(files, tmp_path):
    settings = replace(PRESETS["paper"], backbone="lenet", epochs=1, lr_drops=(), device="cpu")
    order = Order(name="asked", checkpoints=tmp_path / "checkpoints", settings=settings)
    labels = toy_labels(tmp_path / "images", originals=6)
    job = queue_training(order, labels, tmp_path / "data" / "jobs")
    outcome = run([*job.argv[1:], "--job", str(job.folder)])
    assert outcome.exit_code == 0, outcome.output
    assert read_training(order.checkpoint).settings == settings.result_settings()
    assert jobs.result(job)["name"] == "asked"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "huge"], "Known: code, paper, pooled, small"),
        (["--epochs", "0"], "epochs must be at least 1"),
        (["--backbone", "vgg"], "No backbone is called 'vgg'"),
        (["--name", "a/b"], "cannot name a checkpoint"),
        (["--labels", "nowhere.parquet"], "No labels at"),
        (["--device", "toaster"], "toaster"),
        (["--job", "nowhere"], "no spec.json"),
    ],
)
def test_mistakes_are_told_in_one_line(files, arguments, message):
    outcome = run([*files, "--name", "mine", *QUICK, *arguments])
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output


def test_a_rate_that_is_no_number_is_refused(files):
    outcome = run([*files, "--name", "mine", "--lr-drops", "a,b"])
    assert outcome.exit_code == 2


def test_only_what_is_given_changes_the_preset():
    assert settings_from("small", {"lr": None, "epochs": None}) == PRESETS["small"]
    assert settings_from("small", {"lr": 0.5}) == replace(PRESETS["small"], lr=0.5)
    with pytest.raises(SettingsError):
        settings_from("small", {"lr": 0.0})


def test_ctrl_c_leaves_a_training_that_goes_on(files, tmp_path):
    command = [sys.executable, "-c", PROGRAM, *files, "--name", "mine", *QUICK, "--epochs", "10000"]
    process = subprocess.Popen(
        command,
        cwd=jobs.REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever started the tests in the background made them deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list((tmp_path / "data" / "jobs").glob(f"*/{STATE_FILE}")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    job = only_job(tmp_path)
    assert jobs.state(job) is JobState.STOPPED

    epochs_done = len(torch.load(job.folder / STATE_FILE, weights_only=True)["records"])
    (line,) = re.findall(r"To go on: python -m semsim learn (.*)", told)
    (job.folder / "stop").touch()  # so that it ends at its first report
    again = run(shlex.split(line))
    assert "Stopped as asked" in again.output, again.output
    # Five batches an epoch: 8 triplets of each of the 5 originals that are not held out.
    assert jobs.history(job)[-1].done == 5 * epochs_done + 1
