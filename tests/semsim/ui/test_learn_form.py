"""The form of the page Train SemSim and the settings it means."""

from dataclasses import replace

import gradio as gr
import pytest
import torch
from safetensors.torch import save_file

from semsim.base.errors import SettingsError
from semsim.learning import PRESETS
from semsim.ui.learn import FORM, build, form_values, settings_of, starts_offered


def form(**changes):
    values = dict(zip(FORM, form_values(PRESETS["triplet"]), strict=True))
    return list((values | changes).values())


@pytest.mark.parametrize("preset", PRESETS)
def test_the_form_of_a_preset_means_the_preset(preset, tmp_path):
    assert settings_of(preset, form_values(PRESETS[preset]), tmp_path) == PRESETS[preset]


def test_the_form_changes_what_it_shows_and_nothing_else(tmp_path):
    settings = settings_of("triplet", form(epochs=3.0, normalize=True, loss="pooled"), tmp_path)
    assert settings == replace(PRESETS["triplet"], epochs=3, normalize=True, loss="pooled")
    assert isinstance(settings.epochs, int)


def test_every_field_has_a_label_an_id_and_the_value_it_was_given():
    with gr.Blocks():
        fields = list(build(PRESETS["pooled"]).values())
    assert all(field.label for field in fields)
    assert [field.elem_id for field in fields] == [f"learn-{n.replace('_', '-')}" for n in FORM]
    assert [field.value for field in fields] == form_values(PRESETS["pooled"])


def test_an_empty_field_is_named(tmp_path):
    with pytest.raises(SettingsError, match="lr is empty"):
        settings_of("triplet", form(lr=None), tmp_path)


def test_weights_are_files_among_the_checkpoints(tmp_path):
    save_file({"a": torch.zeros(1)}, tmp_path / "mine.safetensors")
    offered = [value for _, value in starts_offered(tmp_path).choices]
    assert offered == ["scratch", "imagenet", "mine.safetensors"]
    chosen = settings_of("triplet", form(weights="mine.safetensors", batch_norm="frozen"), tmp_path)
    assert chosen.weights == str(tmp_path / "mine.safetensors")
    assert chosen.batch_norm == "frozen"


@pytest.mark.parametrize("weights", ["gone.safetensors", "../mine.safetensors", "/etc/passwd", ""])
def test_no_other_file_can_be_named(weights, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    save_file({"a": torch.zeros(1)}, tmp_path / "mine.safetensors")
    with pytest.raises(SettingsError, match="no weights"):
        settings_of("triplet", form(weights=weights), tmp_path / "checkpoints")


def test_what_cannot_be_together_is_told(tmp_path):
    with pytest.raises(SettingsError, match="batch_norm must be trained"):
        settings_of("triplet", form(batch_norm="frozen"), tmp_path)
