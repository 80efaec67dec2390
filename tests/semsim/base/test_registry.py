from dataclasses import dataclass

import pytest

from semsim.attacks.as_text import read_attack
from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.registry import Registry, build
from semsim.metrics import find_metric


@dataclass(frozen=True, kw_only=True)
class Noise:
    std: float = 1.0
    seed: int = 0


REGISTRY = Registry("toy", {"noise": Noise})


def test_builds_with_defaults_and_with_settings():
    assert build(REGISTRY, "noise") == Noise()
    assert build(REGISTRY, "noise", {"std": 2.0}) == Noise(std=2.0)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(UnknownNameError) as caught:
        build(REGISTRY, "nosie")
    assert str(caught.value) == "No toy is called 'nosie'. Did you mean noise? Known: noise."


def test_a_wrong_setting_lists_the_right_ones():
    with pytest.raises(SettingsError, match=r"'noise' has no setting 'sdt'.*std, seed"):
        build(REGISTRY, "noise", {"sdt": 1.0})


def test_is_a_mapping_that_cannot_be_changed():
    assert list(REGISTRY) == ["noise"]
    assert len(REGISTRY) == 1
    with pytest.raises(TypeError):
        REGISTRY["other"] = Noise


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("pnsr", "psnr"),
        ("lpips", "lpips-alex or lpips-squeeze or lpips-vgg"),
        ("SSIM", "ssim or ssim-uniform or ssim-registered"),
    ],
)
def test_a_mistyped_metric_is_met_with_the_nearest(slip, meant):
    with pytest.raises(UnknownNameError, match=rf"Did you mean {meant}\?"):
        find_metric(slip)


def test_what_is_like_nothing_is_met_with_all():
    with pytest.raises(UnknownNameError) as caught:
        find_metric("nonsense")
    assert str(caught.value).startswith("No metric is called 'nonsense'. Known: mse, psnr, ")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("invgard", "invgrad"),
        ("r-gap", "rgap"),
        ("invgrad:step=3", "steps"),
        ("invgrad:papr", "paper"),
    ],
)
def test_mistyped_attacks_settings_and_presets_are_too(text, meant):
    with pytest.raises((UnknownNameError, SettingsError), match=rf"Did you mean {meant}[? ]"):
        read_attack(text)
