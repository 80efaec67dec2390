"""Audit of a model as a client receives it: exact batches, and signs that it was changed."""

import json
import re

import pytest
from audit_command import run

from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets.imprint import Imprinted
from semsim.targets.model import save_target
from semsim.targets.train import train_target
from semsim.targets.train_settings import TrainSettings


def test_a_changed_model_warns_though_it_has_no_c_of_m():
    done = run("imprint:bins=16,network=lenet", "--json")
    assert done.exit_code == 0, done.output
    assert "c(M) is not defined here: " in done.stderr
    assert "WARNING: Equal rows" in done.stderr
    assert "Share nothing of this model" in done.stderr
    rows = {row["what"]: row for row in json.loads(done.stdout)["client"]}
    assert rows["equal rows in a layer"]["value"] == "32 of 32 in body.0.rows"
    assert rows["equal rows in a layer"]["warns"]


def test_a_trained_one_warns_from_its_file(tmp_path):
    data = Symbols(train_per_class=2, size=16)("train")
    how = TrainSettings(epochs=1)
    model = train_target(Imprinted(network="lenet", bins=16), data, NoDefence(), how)
    save_target(model, tmp_path / "sent.safetensors", name="imprint", facts={})
    done = run(tmp_path / "sent.safetensors", "--input", "3x16x16")
    assert done.exit_code == 0, done.output
    assert "WARNING: Equal rows" in done.output


@pytest.mark.parametrize("network", ["cnn3:4", "lenet", "mlp:width=60,depth=3"])
def test_an_ordinary_network_does_not_warn(network):
    done = run(network)
    assert done.exit_code == 0, done.output
    assert "WARNING" not in done.output
    assert "No sign of a changed model. That is no proof" in done.output


def test_batches_that_come_back_exactly_are_counted_by_trying():
    done = run("mlp:width=200,depth=3")
    (good, tried) = re.search(
        r"first layer is linear \+ ReLU: batches up to (\d+) come back .*\(tried: (.*)\)",
        done.output,
    ).groups()
    assert tried.split(", ")[:4] == ["1", "2", "4", "8"]
    assert int(good) >= 4
    assert "SPEAR" not in run("lenet").output
    assert "SPEAR" not in run("mlp:width=60,depth=3,activation=tanh").output


def test_a_network_without_a_gradient_is_audited_without_its_client(tmp_path):
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\nclass Net(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(nn.Flatten(), nn.Linear(192, 4))\n"
        "        self.requires_grad_(False)\n\n"
        "    def forward(self, images):\n"
        "        return super().forward(images.detach()).detach()\n"
    )
    done = run(f"{tmp_path / 'net.py'}:Net", "--input", "3x8x8")
    assert done.exit_code == 0, done.output
    assert "Signs for a client are unknown: No parameter of the model" in done.output


def test_what_c_of_m_refuses_stays_an_error_where_its_ranks_or_figure_are_asked_for(tmp_path):
    for asked in (["--verify"], ["--figure", tmp_path / "leaks.png"]):
        done = run("imprint:bins=16,network=lenet", *asked)
        assert done.exit_code == 2
        assert "Traceback" not in done.output
    assert run("imprint:bins=1").exit_code == 2
    assert run("nothing.safetensors").exit_code == 2
