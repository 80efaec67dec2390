"""`semsim-studio job`: one command for every job."""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

import copies
import pandas as pd
import pytest
import torch
from helpers import ROOT, limit, until
from made_judged import judged_labels
from typer.testing import CliRunner

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState
from semsim.cli.job import KINDS
from semsim.cli.main import app
from semsim.learning.settings import STATE_FILE


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return judged_labels(tmp_path_factory.mktemp("toy"), originals=6)


@dataclass(frozen=True, kw_only=True)
class Asked:
    order: str


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_ctrl_c_leaves_a_training_that_goes_on(labels, tmp_path):
    labels.to_parquet(tmp_path / "labels.parquet")
    preset = "triplet:backbone=lenet,lr=0.005,batch_size=8,epochs=10000"
    words = [*("--labels", tmp_path / "labels.parquet", "--name", "mine", "--train", preset)]
    words += ["--checkpoints", tmp_path / "checkpoints", "--data-dir", tmp_path / "data"]
    command = ["-m", "semsim", "train", "run", *map(str, words), "--device", "cpu"]
    kept = tmp_path / "data" / "jobs"
    with (tmp_path / "told").open("wb") as err, (tmp_path / "out").open("wb") as out:
        process = copies.begin(command, cwd=ROOT, env=os.environ, out=out, err=err)
    until(lambda: process.poll() is not None or list(kept.glob(f"*/{STATE_FILE}")), 400)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=limit(60)) == 130
    told = (tmp_path / "told").read_text()
    (job,) = jobs.list_jobs(tmp_path / "data" / "jobs", "learn")
    assert jobs.state(job) is JobState.STOPPED

    epochs_done = len(torch.load(job.folder / STATE_FILE, weights_only=True)["records"])
    assert told.count("loss") <= epochs_done + 1  # a line an epoch, not one a step
    assert "Traceback" not in told
    (folder,) = re.findall(r"^Stopped by Ctrl-C. To go on: semsim-studio job (.*)", told, re.M)
    (job.folder / "stop").touch()  # so that it ends at its first report
    again = run("job", folder)
    assert "Stopped as asked" in again.output, again.output
    steps = jobs.latest(job).total // (6 * 10000)  # each of five shuffles has as many
    assert jobs.latest(job).done == steps * epochs_done + 1


def test_only_what_has_a_table_is_printed_as_json(tmp_path):
    job = jobs.create(tmp_path, kind="campaign", title="Campaign")
    refused = run("job", job.folder, "--json")
    assert refused.exit_code == 2
    assert "A job campaign prints no table; leave --json out." in refused.stderr
    assert jobs.state(job) is JobState.QUEUED


def test_a_kind_that_nothing_carries_out_is_named(tmp_path):
    job = jobs.create(tmp_path, kind="nonsense", title="Nothing")
    refused = run("job", job.folder)
    assert refused.exit_code == 2
    assert "is a job of the kind 'nonsense'; known: campaign," in " ".join(refused.stderr.split())


def test_where_a_result_cannot_go_nothing_is_begun(labels, tmp_path):
    """Else it would be noticed after hours of training."""
    labels.to_parquet(tmp_path / "labels.parquet")
    (tmp_path / "taken").touch()
    where = ["--checkpoints", tmp_path / "taken/below", "--data-dir", tmp_path / "data"]
    words = ["train", "run", "--labels", tmp_path / "labels.parquet", "--name", "mine"]
    refused = run(*words, "--train", "triplet:backbone=lenet,epochs=1", *where, "--device", "cpu")
    assert refused.exit_code == 2
    assert "taken/below cannot be written" in " ".join(refused.stderr.split())
    (job,) = jobs.list_jobs(tmp_path / "data" / "jobs", "learn")
    assert jobs.state(job) is JobState.FAILED
    assert not (job.folder / STATE_FILE).exists()


def test_all_that_a_job_writes_to_is_a_field_of_its_order():
    for kind in KINDS.values():
        for name in kind.writes:
            order = kind.done(kind.order)
            for field in name.partition("/")[0].split("."):
                order = get_type_hints(order)[field]
            assert order is Path


def test_what_is_typed_again_is_one_job(tmp_path):
    """A killed job ends as lost once: the same work goes on in its folder."""

    def asked(order="a", rows=(1,)):
        table = pd.DataFrame({"n": rows})
        order = Asked(order=order)
        return jobs.create(tmp_path, kind="k", title="T", order=order, files={"t.parquet": table})

    first = asked()
    assert jobs.go_on(asked()).id != first.id  # it waits for its turn
    for job in jobs.list_jobs(tmp_path, "k"):
        jobs.request_stop(job)
    again = asked()
    assert jobs.go_on(again).id != again.id
    assert not again.folder.exists()
    for other in (asked("b"), asked(rows=(2,))):
        assert jobs.go_on(other) == other
