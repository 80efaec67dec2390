import re

import pytest
from helpers import example_of
from torchvision.datasets import CIFAR100
from typer.testing import CliRunner

from semsim.cli.datasets import app
from semsim.datasets import DATASETS


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_every_data_set_is_listed_and_whether_it_is_there(tmp_path):
    example_of(DATASETS["stanford-dogs"], root=tmp_path)
    done = run("list", "--root", tmp_path)
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line for line in done.output.splitlines()}
    assert set(lines) == {"name", *DATASETS}
    assert re.search(r"pair +there +120 breeds", lines["stanford-dogs"])
    assert re.search(r"pair +missing +10,177 people", lines["celeba"])
    assert re.search(r"recognition +- +47 classes", lines["symbols"])


def test_what_is_there_is_not_fetched_again(tmp_path):
    example_of(DATASETS["stanford-dogs"], root=tmp_path)
    done = run("get", "stanford-dogs", "--root", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(tmp_path / "stanford-dogs")


@pytest.mark.parametrize(
    ("name", "says"), [("symbols", "needs no files"), ("folder", "no files"), ("mnist", "cifar100")]
)
def test_what_cannot_be_fetched_says_why(name, says, tmp_path):
    done = run("get", name, "--root", tmp_path)
    assert done.exit_code == 2
    assert says in done.output


def test_a_download_that_fails_is_told_without_a_traceback(tmp_path, monkeypatch):
    # Port 9 of this machine: refused at once, and no name is looked up.
    monkeypatch.setattr(CIFAR100, "url", "http://127.0.0.1:9/cifar.tar.gz")
    done = run("get", "cifar100", "--root", tmp_path)
    assert done.exit_code == 2
    assert "by hand" in done.output
    assert "Traceback" not in done.output
