from dataclasses import dataclass

import pytest

from semsim.errors import SettingsError, UnknownNameError
from semsim.registry import Registry, build


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
