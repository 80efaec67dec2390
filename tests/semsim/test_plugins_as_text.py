"""Plug-ins, strategies and trainings written as text."""

import re
from collections.abc import Callable

import pytest

from semsim.attacks import ATTACKS, SHARED, VERTICAL_ATTACKS
from semsim.attacks.as_text import presets, read_attack, with_preset
from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.jobs.orders import from_record
from semsim.base.registry import Plugin, all_settings, build, choices_of, read_plugin, short_labels
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES, NAMED_STRATEGIES, read_strategy, strategy_label
from semsim.metrics.perceptual import Lpips
from semsim.metrics.structural import Ssim
from semsim.targets import TARGETS
from semsim.targets.train_settings import TrainSettings, read_training

REGISTRIES = (ATTACKS, VERTICAL_ATTACKS, SHARED, DEFENCES, DATASETS, TARGETS)
FEW = [
    (registry, name, field)
    for registry in REGISTRIES
    for name in registry
    for field in choices_of(registry[name])
]


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
        ("cnn-small:width=wide", "width must be a whole number; got 'wide'"),
        ("cnn-small:big", "no preset 'big'"),
    ],
)
def test_what_is_wrong_is_named(text, words):
    with pytest.raises(SettingsError, match=words):
        read_plugin(TARGETS, text)
    with pytest.raises(UnknownNameError):
        read_plugin(TARGETS, "nobody:width=4")


def test_a_setting_that_is_one_of_a_few_is_nothing_else():
    built = {(n, f): refused(lambda r=r, n=n, f=f: build(r, n, {f: "nearly"})) for r, n, f in FEW}
    few = {key: re.compile(rf"{key[1]} must be .+ or .+; got 'nearly'") for key in built}
    assert {key: told for key, told in built.items() if not few[key].match(told)} == {}
    made = {  # targets refuse what they do not know when they are built
        (name, field): refused(lambda r=registry, n=name, f=field: r[n](**{f: "nearly"}))
        for registry, name, field in FEW
        if registry is not TARGETS
    }
    assert {key: told for key, told in made.items() if key[1] not in told} == {}


def refused(make: Callable[[], object]) -> str:
    """Why something cannot be made; "" where it can."""
    try:
        make()
    except SettingsError as error:
        return str(error)
    return ""


def test_what_runs_silently_as_something_else_is_among_them():
    assert len(FEW) > 25
    for field in ("start", "label", "batch_norm", "updates"):
        assert field in choices_of(ATTACKS["invgrad"])
    with pytest.raises(SettingsError, match="window must be gaussian or uniform"):
        Ssim(window="gausian")
    with pytest.raises(SettingsError, match="net must be alex or squeeze or vgg"):
        Lpips(net="alexnet")


@pytest.mark.parametrize(
    ("text", "word"), [("label=known,fsat", "fsat"), ("start=grey,label=inferred,", ""), ("x", "x")]
)
def test_a_mistyped_preset_is_no_part_of_the_word_before_it(text, word):
    if not word:
        assert read_attack(f"invgrad:{text}").settings == {"start": "grey", "label": "inferred"}
        return
    with pytest.raises(SettingsError, match=f"no preset '{word}'\\..*Presets: paper, code, fast"):
        read_attack(f"invgrad:{text}")


def test_only_a_text_that_can_be_any_goes_on_after_a_comma():
    with pytest.raises(SettingsError, match="no preset 'DEFAULT'"):
        read_plugin(TARGETS, "torchvision:model=resnet18,DEFAULT")
    with pytest.raises(SettingsError, match="no preset 'own'"):
        read_plugin(DATASETS, "folder:root=/my,task=pair,own")
    assert read_plugin(DATASETS, "folder:task=pair,root=/my,own").settings["root"] == "/my,own"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("digits:size=0", "size must be at least 1; got 0"),
        ("digits:count=4", "count must be at least 5"),
        ("folder:size=0", "size must be at least 1"),
        ("symbols:size=-2", "size must be at least 1"),
        ("symbols:test_per_class=0", "test_per_class must be at least 1"),
        ("symbols:train_per_class=0", "train_per_class must be at least 1"),
        ("symbols:seed=-1", "seed must be 0 or more; got -1"),
        ("faces:seed=-1", "seed must be 0 or more"),
        ("faces:train_per_face=0", "train_per_face must be at least 1"),
        ("face-or-not:train_per_picture=0", "train_per_picture must be at least 1"),
        ("caltech101:per_class=0", "per_class must be at least 1"),
        ("celeba:classes=0", "classes must be at least 1"),
    ],
)
def test_numbers_that_a_data_set_cannot_have_are_refused_before_it_is_read(text, told):
    with pytest.raises(SettingsError, match=told):
        read_plugin(DATASETS, text)


def test_a_limit_may_be_left_out():
    assert read_plugin(DATASETS, "caltech101:classes=None").settings == {"classes": None}
    assert build(DATASETS, "celeba", {"classes": None}).classes is None
    with pytest.raises(SettingsError, match="This is no TrainSettings"):
        from_record(TrainSettings, {"epochs": None}, by_hand=True)


def test_a_preset_is_changed_by_what_is_given_before_or_after_it():
    assert read_attack("invgrad:paper").settings == presets("invgrad")["paper"]
    assert read_attack("invgrad:paper,steps=7").settings["steps"] == 7
    given = {**presets("invgrad")["fast"], "steps": 7}
    assert read_attack("invgrad:steps=7,fast").settings == given
    assert read_attack("invgrad:fast,steps=7").settings == given
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
    assert read_training("seed=3", base).seed == 3
    with pytest.raises(SettingsError, match="give seeds with --seed"):
        read_training("seed=3", base, "--seed")
