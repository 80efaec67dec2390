"""Plug-ins, strategies and trainings written as text."""

import pytest

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import presets, read_attack, with_preset
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.defences.strategies import NAMED_STRATEGIES, read_strategy, strategy_label
from semsim.errors import SettingsError, UnknownNameError
from semsim.registry import Plugin, all_settings, read_plugin, short_labels
from semsim.targets import TARGETS
from semsim.targets.train_settings import TrainSettings, read_training


def test_settings_have_the_type_of_their_default():
    found = read_plugin(TARGETS, "cnn-small: width=4, activation=tanh")
    assert found == Plugin(name="cnn-small", settings={"width": 4, "activation": "tanh"})
    noise = read_attack("invgrad:tv=1,start=grey")
    assert noise.settings == {"tv": 1.0, "start": "grey"}
    assert isinstance(noise.settings["tv"], float)
    assert read_plugin(DATASETS, "folder:root=12").settings == {"root": "12"}
    comma = read_plugin(DATASETS, "folder:root=/my, own/faces,size=32")
    assert comma.settings == {"root": "/my, own/faces", "size": 32}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cnn-small:width=4,big", "no preset 'big'"),
        ("cnn-small:depth=4", "no setting 'depth'"),
        ("cnn-small:width=wide", "width=wide is no int"),
        ("cnn-small:big", "no preset 'big'"),
    ],
)
def test_what_is_wrong_is_named(text, words):
    with pytest.raises(SettingsError, match=words):
        read_plugin(TARGETS, text)
    with pytest.raises(UnknownNameError):
        read_plugin(TARGETS, "nobody:width=4")


def test_a_preset_is_changed_by_what_follows_it():
    assert read_attack("invgrad:paper").settings == presets("invgrad")["paper"]
    assert read_attack("invgrad:paper,steps=7").settings["steps"] == 7
    assert with_preset(["invgrad:steps=7", "invgrad:paper", "invgrad"], "fast") == [
        "invgrad:fast,steps=7",
        "invgrad:paper",
        "invgrad:fast",
    ]
    assert with_preset(["invgrad"], None) == ["invgrad"]


@pytest.mark.parametrize("text", NAMED_STRATEGIES)
def test_the_strategies_of_the_paper_have_names(text):
    found = read_strategy(text)
    assert found == read_strategy(NAMED_STRATEGIES[text])
    assert found.name in DEFENCES
    assert strategy_label(NAMED_STRATEGIES[text]) == text


def test_all_settings_tell_everything_apart():
    plain = all_settings(ATTACKS, read_attack("invgrad"))
    assert plain["name"] == "invgrad"
    assert plain == all_settings(ATTACKS, read_attack("invgrad:steps=4800"))
    one, two = (all_settings(DEFENCES, read_strategy(t)) for t in ("ats:3-1-7", "ats:43-18-18"))
    assert one != two


def test_labels_are_short_where_they_can_be():
    assert short_labels(["a:x=1", "b:y=2"]) == ["a", "b"]
    assert short_labels(["a:x=1", "a:x=2", "c"]) == ["a:x=1", "a:x=2", "c"]


def test_training_settings_are_changed_one_by_one():
    base = TrainSettings(epochs=3, lr=0.5)
    assert read_training("epochs=9", base) == TrainSettings(epochs=9, lr=0.5)
    assert read_training("", base) == base
