"""Settings as fields of a form, and a form's answer read back."""

import json
import re
from dataclasses import dataclass
from typing import Literal

import pytest

from semsim.base.errors import SettingsError
from semsim.base.registry import read_plugin, setting
from semsim.datasets import DATASETS
from semsim.lab.markup import pieces
from semsim.lab.settings_form import Given, changed, plugin_settings, settings_of
from semsim.targets import TARGETS
from semsim.targets.layers import ACTIVATIONS
from semsim.targets.train_settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class Made:
    """A thing.

    Attributes:
        steps: How many.
        lr, tv: Sizes of
            something; small is slow.
        where: Place.

    Nothing of this belongs to a field: it is prose.
    """

    steps: int = 3
    lr: float = 0.5
    tv: float = 1e-6
    kind: Literal["a", "b"] = "a"
    on: bool = True
    where: str = setting("here", "Place", "Where it is.")


@dataclass(frozen=True, kw_only=True)
class Limited:
    """most: of them, or None."""

    most: int | None = None


def given(lists=None, **fields):
    return Given.of(json.dumps({"fields": fields, "lists": lists or {}}))


def test_fields_say_what_metadata_or_else_the_docstring_says():
    steps, lr, tv, kind, on, where = settings_of(Made)
    assert (steps.kind, steps.value, steps.text) == ("whole", "3", "How many.")
    assert lr.text == tv.text == "Sizes of something; small is slow."
    assert (lr.kind, lr.label, tv.value) == ("number", "Step size", "1e-06")
    assert (kind.kind, kind.choices, kind.text) == ("choice", ("a", "b"), "")
    assert (on.kind, on.value) == ("yes", "true")
    assert (where.label, where.text) == ("Place", "Where it is.")


def test_a_form_left_alone_means_the_settings_themselves():
    for made in (Made(), TrainSettings(epochs=7, lr=0.003)):
        fields = {f"x.{one.name}": one.value for one in settings_of(made)}
        assert changed(made, fields, "x.") == made


def test_what_is_given_takes_the_place_of_what_was():
    made = changed(Made(), {"steps": "5", "on": False, "kind": "b", "lr": "1e-2", "else": "x"})
    assert made == Made(steps=5, on=False, kind="b", lr=0.01)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"steps": ""}, "steps is empty"),
        ({"steps": "2.5"}, "steps must be a whole number; got '2.5'"),
        ({"lr": "fast"}, "Step size must be a number; got 'fast'"),
        ({"lr": "nan"}, "must be a number"),
        ({"where": " "}, "Place is empty"),
        ({"kind": "c"}, "kind must be a or b; got 'c'"),
    ],
)
def test_what_cannot_be_is_said_in_the_words_of_the_form(fields, says):
    with pytest.raises(SettingsError, match=says):
        changed(Made(), fields)


def test_a_choice_is_text_with_the_settings_that_differ():
    chosen = {"cnn4:activation=relu": {"width": "8", "activation": "silu"}, "lenet": {}}
    assert given({"models": chosen}).texts("models") == ("cnn4:width=8,activation=silu", "lenet")
    assert given().texts("models") == ()
    with pytest.raises(SettingsError, match="root takes no comma"):
        given({"datasets": {"folder": {"root": "a,size=4"}}}).texts("datasets")


def test_what_may_be_left_out_is_a_number_that_may_be_empty():
    found = plugin_settings("semsim.datasets:DATASETS", "cifar100:classes=10")
    fields = {one.name: one for one in found}
    assert (fields["classes"].kind, fields["classes"].value) == ("whole", "10")
    assert (fields["per_class"].value, fields["per_class"].optional) == ("", True)
    assert not fields["root"].optional
    chosen = given({"datasets": {"cifar100:classes=10": {"classes": "", "per_class": "5"}}})
    (text,) = chosen.texts("datasets")
    assert read_plugin(DATASETS, text).settings == {"classes": None, "per_class": 5}
    bare = Limited(most=3)
    assert changed(bare, {"most": " "}) == Limited(most=None)
    assert changed(bare, {"most": "7"}) == Limited(most=7)
    with pytest.raises(SettingsError, match="most must be a whole number; got 'ten'"):
        changed(bare, {"most": "ten"})


def test_activations_are_chosen_from_a_list():
    for item in TARGETS:
        for one in plugin_settings("semsim.targets:TARGETS", item):
            if one.name == "activation":
                assert one.choices == tuple(ACTIVATIONS)


def test_torchvision_s_models_are_a_list_and_weights_those_of_the_model():
    fields = {one.name: one for one in plugin_settings("semsim.targets:TARGETS", "torchvision")}
    model, weights = fields["model"], fields["weights"]
    assert (model.kind, model.value, model.by) == ("choice", "resnet18", "")
    assert {"resnet18", "vgg16", "vit_b_32"} < set(model.choices)
    assert "squeezenet1_0" not in model.choices  # it does not end in a linear layer
    assert (weights.kind, weights.value, weights.by) == ("choice", "", "model")
    assert tuple(weights.offers) == model.choices
    assert weights.offers["resnet50"] == ["", "DEFAULT", "IMAGENET1K_V1", "IMAGENET1K_V2"]
    assert "IMAGENET1K_FEATURES" not in weights.choices  # its classifier is not a number
    assert set(weights.choices) == {one for offered in weights.offers.values() for one in offered}
    html = str(pieces("lab.html").plugin("architectures", "torchvision", "t", (model, weights)))
    assert html.count("<option") == len(model.choices) + len(weights.choices)
    assert '<option value="" selected>none</option>' in html
    (offers,) = re.findall(r"data-by=\"model\" data-offers='([^']+)'", html)
    assert json.loads(offers) == weights.offers


def test_a_folder_of_ones_own_says_what_to_write_and_how_it_lies():
    fields = {one.name: one for one in plugin_settings("semsim.datasets:DATASETS", "folder")}
    assert "<class>/<image>" in fields["root"].text
    assert fields["size"].text
    assert fields["test_share"].text


@pytest.mark.parametrize("text", ["", None, "[]", "{}", '{"fields": 1, "lists": {}}'])
def test_an_answer_of_another_form_is_refused(text):
    with pytest.raises(SettingsError, match="reload the page"):
        Given.of(text)


def test_the_settings_of_a_plug_in_begin_with_its_preset_and_its_own():
    fields = {one.name: one for one in plugin_settings("semsim.attacks:ATTACKS", "invgrad", "fast")}
    assert (fields["steps"].value, fields["tv"].value) == ("500", "0.02")
    assert fields["restarts"].text.startswith("Independent starts")
    found = plugin_settings("semsim.targets:TARGETS", "cnn4:width=8")
    width = {one.name: one.value for one in found}
    assert width == {"width": "8", "activation": "relu", "batch_norm": "false"}
