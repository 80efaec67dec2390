"""Starting weights from a classifier of public images."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from semsim.base.errors import SettingsError
from semsim.datasets.digits import Digits
from semsim.datasets.symbols import Symbols
from semsim.learning import TrainSettings
from semsim.learning.initial import identify, load_initial, start_facts, starts
from semsim.learning.pretrain import PretrainSettings, goodness_of_start, pretrain, save_start
from semsim.learning.train import train
from semsim.metrics.network import ModelSettings, SemSimModel

QUICK = PretrainSettings(backbone="lenet", epochs=1, batch_size=16)
NORMED = PretrainSettings(backbone="mobilenet_v3_small", small_stem=False, epochs=1, batch_size=16)


@pytest.fixture(scope="module")
def data():
    return Symbols(train_per_class=1)("train")


@pytest.fixture(scope="module")
def start(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("start") / "lenet.safetensors"
    facts = {"dataset": "symbols", "at_chance": False}
    save_start(pretrain(data, QUICK, device="cpu"), path, QUICK, facts)
    return path


def test_a_semsim_starts_from_it_and_says_so(start):
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.1] * 3, std=[9.0] * 3)
    load_initial(model, str(start))
    kept = load_file(start)
    assert all(torch.equal(kept[n], value) for n, value in model.body.state_dict().items())
    assert torch.equal(model.mean, kept["mean"])  # the scale these weights were trained with
    told = identify("lenet", str(start))
    assert told.startswith("sha256:")
    assert told.endswith("a classifier of the training split of symbols, seed 7")


def test_a_folder_tells_what_one_can_start_from(start):
    assert starts(start.parent) == {"lenet.safetensors": "lenet, classifier of symbols"}
    assert starts(start.parent / "nothing") == {}


def test_the_same_seed_gives_the_same_weights_after_an_interruption(data, tmp_path):
    settings = replace(QUICK, epochs=2)

    def stop(progress):
        if progress.values.get("loss"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(data, settings, device="cpu", checkpoint=tmp_path / "kept", report=stop)
    resumed = pretrain(data, settings, device="cpu", checkpoint=tmp_path / "kept")
    whole = pretrain(data, settings, device="cpu")
    assert all(
        torch.equal(a, b)
        for a, b in zip(resumed.body.parameters(), whole.body.parameters(), strict=True)
    )


def test_images_of_another_size_are_resized(data):
    settings = replace(QUICK, input_size=24)
    model = pretrain(data.pick(range(16)), settings, device="cpu")
    assert model.size == (24, 24)
    assert 0 <= goodness_of_start(model, data.pick(range(4)))["accuracy"] <= 1


def test_lenet_learns_to_read_at_the_rate_it_has_by_itself(tmp_path):
    """At 0.05, the rate of networks that normalise, this training ends where guessing does."""
    settings, digits = replace(QUICK, epochs=10, batch_size=64), Digits()
    model = pretrain(digits("train"), settings, device="cpu")
    tested = goodness_of_start(model, digits("test"))
    assert tested["accuracy"] > 0.8
    save_start(model, tmp_path / "good.safetensors", settings, {"dataset": "digits", **tested})
    assert starts(tmp_path) == {"good.safetensors": "lenet, classifier of digits"}


@pytest.mark.parametrize(
    ("settings", "rate"),
    [
        (QUICK, 0.01),
        (NORMED, 0.05),
        (replace(QUICK, lr=0.3), 0.3),
        (replace(QUICK, backbone="regnet_y_400mf", small_stem=False, epochs=1), 0.05),
    ],
)
def test_the_rate_goes_with_the_network_and_is_recorded(settings, rate, data, tmp_path):
    path = tmp_path / "start.safetensors"
    save_start(pretrain(data.pick(range(16)), settings, device="cpu"), path, settings, {})
    assert start_facts(path)["settings"]["lr"] == rate


def test_a_start_at_chance_is_said_to_be_wherever_it_is_named(data, tmp_path):
    path = tmp_path / "poor.safetensors"
    model = pretrain(data, QUICK, device="cpu")
    save_start(model, path, QUICK, {"dataset": "symbols", **goodness_of_start(model, data)})
    assert starts(tmp_path) == {"poor.safetensors": "lenet, classifier of symbols, at chance"}
    assert identify("lenet", str(path)).endswith("symbols, seed 7, at chance")


def test_settings_out_of_range_are_refused():
    with pytest.raises(SettingsError, match="epochs must be at least 1"):
        PretrainSettings(epochs=0)
    with pytest.raises(SettingsError, match="seed must be at most 9223372036854775807"):
        PretrainSettings(seed=2**63)


def test_frozen_batch_norm_needs_weights_to_start_from():
    with pytest.raises(SettingsError, match="batch_norm must be trained"):
        TrainSettings(batch_norm="frozen")


@pytest.mark.parametrize("batch_norm", ["frozen", "trained"])
def test_frozen_averages_stay_as_they_began(batch_norm, data, labels, quick, tmp_path):
    path = tmp_path / "start.safetensors"
    started = pretrain(data.pick(range(16)), NORMED, device="cpu")
    save_start(started, path, NORMED, {"dataset": "symbols"})
    settings = replace(
        quick,
        backbone=NORMED.backbone,
        small_stem=False,
        epochs=1,
        weights=str(path),
        batch_norm=batch_norm,
    )
    trained = dict(train(labels, settings).model.body.named_buffers())
    averages = [name for name in trained if name.endswith("running_mean")]
    same = [torch.equal(trained[n], dict(started.body.named_buffers())[n]) for n in averages]
    assert averages
    assert all(same) if batch_norm == "frozen" else not any(same)
