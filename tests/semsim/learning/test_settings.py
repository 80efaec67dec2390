"""What a training may be told."""

from dataclasses import replace

import pytest

from semsim.base.errors import SettingsError
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.settings import acting, checkpoint_path
from semsim.metrics import BACKBONES


def test_the_paper_preset_is_the_papers():
    paper = PRESETS["paper"]
    assert (paper.backbone, paper.lr, paper.batch_size, paper.epochs, paper.margin) == (
        "resnet50",
        0.1,
        128,
        200,
        1.0,
    )


def test_the_code_preset_is_the_released_codes():
    code = PRESETS["code"]
    assert (code.backbone, code.lr, code.batch_size, code.epochs, code.margin, code.normalize) == (
        "resnet18",
        0.05,
        64,
        100,
        1.0,
        True,
    )


def test_stopping_early_needs_held_out_originals():
    with pytest.raises(SettingsError, match="patience must be 0 where no original is held out"):
        TrainSettings(patience=3, validation_fraction=0)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_names_a_backbone(name):
    assert PRESETS[name].backbone in BACKBONES


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("input_size", 0),
        ("triplets_per_original", 0),
        ("margin", 0.0),
        ("lr", -0.1),
        ("lr", float("nan")),
        ("momentum", 1.0),
        ("weight_decay", -1.0),
        ("validation_fraction", 1.0),
        ("seed", -1),
        ("seed", 2**63),
        ("augmentation", "rotate"),
        ("loss", "softmax"),
        ("ordering", "chance"),
        ("mining", "hard"),
        ("identity_weight", -0.1),
        ("identity_weight", float("inf")),
        ("patience", -1),
        ("collapse_patience", -1),
        ("weights", ""),
    ],
)
def test_a_value_out_of_range_is_named(setting, value):
    with pytest.raises(SettingsError, match=setting):
        TrainSettings(**{setting: value})


def test_nesterov_needs_momentum():
    with pytest.raises(SettingsError, match="nesterov"):
        TrainSettings(momentum=0)
    assert TrainSettings(momentum=0, nesterov=False).momentum == 0


def test_the_rate_drops_by_ten_at_its_shares():
    settings = TrainSettings(lr=1.0, epochs=10, lr_drops=(0.5, 0.8))
    rates = [settings.lr_at(epoch) for epoch in range(10)]
    assert rates == pytest.approx([1] * 5 + [0.1] * 3 + [0.01] * 2)


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_no_rate_drops_before_the_first_epoch(epochs):
    assert TrainSettings(epochs=epochs).lr_at(0) == TrainSettings().lr


def test_the_device_does_not_determine_the_result():
    settings = TrainSettings()
    assert settings.result_settings() == replace(settings, device="cpu").result_settings()
    assert settings.result_settings() != replace(settings, seed=1).result_settings()


def test_a_network_names_all_that_trains_it():
    every = PRESETS["triplet"].result_settings()
    assert acting(every) == {name: value for name, value in every.items() if name != "shuffle"}
    assert acting({**every, "shuffle": 3})["shuffle"] == 3
    without = set(every) - set(acting({**every, "backbone": "lenet"}))
    assert without == {"shuffle", "small_stem", "batch_norm"}


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "<b>", "x" * 81])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="cannot name a checkpoint"):
        checkpoint_path(tmp_path, name)
