import json

import pytest

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.registry import built
from semsim.defences import DEFENCES, STRATEGIES, make, parse, spell
from semsim.defences.gradient_noise import GradientNoise

SPECS = {
    "none": ("none", {}),
    " crop-flip ": ("crop-flip", {}),
    "crop-flip:padding=2, flip=0": ("crop-flip", {"padding": 2, "flip": 0.0}),
    "ats:3-1-7": ("ats", {"policies": "3-1-7"}),
    "ats:3-1-7+43-18-18": ("ats", {"policies": "3-1-7+43-18-18"}),
    "ops:translateX, invert": ("ops", {"steps": "translateX,invert"}),
    "ops": ("ops", {}),
    "gradient-noise:gaussian,std=1e-3,apply_at=both": (
        "gradient-noise",
        {"distribution": "gaussian", "std": 0.001, "apply_at": "both"},
    ),
    "gradient-pruning:rate=0.7,apply_at=both": (
        "gradient-pruning",
        {"rate": 0.7, "apply_at": "both"},
    ),
    "gradient-pruning:0.5": ("gradient-pruning", {"rate": 0.5}),
    "crop-flip&ats: 3-1-7": ("composed", {"parts": "crop-flip & ats:3-1-7"}),
    "none & gradient-noise:laplacian,std=0.10": (
        "composed",
        {"parts": "none & gradient-noise:distribution=laplacian,std=0.1"},
    ),
}


@pytest.mark.parametrize("text", SPECS)
def test_text_means_a_name_and_settings(text):
    found = parse(text)
    assert (found.name, found.settings) == SPECS[text]
    assert parse(spell(found.name, found.settings)) == found
    assert json.loads(json.dumps(found.settings)) == found.settings
    assert make(text) == built(DEFENCES, found)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("fog", UnknownNameError, "crop-flip"),
        ("gradient-noise:std=much", SettingsError, "std must be a number; got 'much'"),
        ("gradient-noise:strength=1", SettingsError, "strength"),
        ("gradient-noise:cauchy", SettingsError, "laplacian"),
        ("gradient-noise:std=-1", SettingsError, "0 or more"),
        ("crop-flip:4", SettingsError, "key=value"),
        ("crop-flip:padding=-1", SettingsError, "padding"),
        ("crop-flip:", SettingsError, "after the colon"),
        ("ats:3-1-70", SettingsError, "0 to 49"),
        ("crop-flip &", SettingsError, "missing"),
        ("", SettingsError, "'none'"),
        ("composed:none", SettingsError, "crop-flip & ats"),
    ],
)
def test_what_cannot_be_says_why(text, error, says):
    with pytest.raises(error, match=says):
        parse(text)


@pytest.mark.parametrize("source", STRATEGIES)
def test_strategies_of_the_paper_are_seven_defences(source):
    made = [make(text) for text in STRATEGIES[source].values()]
    assert len(made) == len(set(made)) == 7
    assert list(STRATEGIES[source]) == list(STRATEGIES["code"])


def test_authors_gradient_defences_leave_the_attacked_gradient_clean():
    assert "apply_at=train" in STRATEGIES["code"]["noise"]
    assert make(STRATEGIES["paper"]["noise"]) == GradientNoise(std=1e-3, apply_at="both")
