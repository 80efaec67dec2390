"""The time of a training on this machine, and the network of the usual one."""

import math
from dataclasses import replace

from semsim.learning import PRESETS
from semsim.learning.pace import (
    LIMIT,
    PAPER,
    USUAL,
    LearningPace,
    pace_of,
    pace_words,
    preset_settings,
    seconds,
)
from semsim.metrics import BACKBONES

CPU = LearningPace("cpu", 2e-3)  # a machine that takes 2 ms for a picture of the smallest ResNet
GPU = LearningPace("cuda", math.nan)


def test_the_usual_one_is_the_paper_s_loss_on_the_largest_resnet_within_ten_minutes():
    networks = []
    for n in (10, 60, 100, 300, 2000, 9000):
        found = preset_settings(USUAL, n, CPU)
        networks.append(found.backbone)
        assert found == replace(PRESETS[USUAL], backbone=found.backbone)
        assert found.loss == PRESETS[PAPER].loss == "triplet"
    assert networks == ["resnet50", "resnet34", "resnet18", "resnet8", "resnet8", "resnet8"]
    assert set(networks) <= set(BACKBONES)


def test_no_larger_one_would_keep_to_ten_minutes():
    n = 60
    chosen = preset_settings(USUAL, n, CPU)
    assert seconds(chosen, n, CPU) <= LIMIT < seconds(replace(chosen, backbone="resnet50"), n, CPU)


def test_a_gpu_trains_the_paper_s_network_and_its_pace_is_not_made_up():
    found = preset_settings(USUAL, 100, GPU)
    paper = PRESETS[PAPER]
    assert (found.backbone, found.small_stem) == (paper.backbone, paper.small_stem)
    assert found.epochs == PRESETS[USUAL].epochs
    assert "not estimated" in pace_words(100, GPU)


def test_another_preset_is_what_it_is_called():
    assert preset_settings(PAPER, 9000, CPU) == PRESETS[PAPER]


def test_it_says_what_both_take_and_what_comes_on_top():
    said = pace_words(10, CPU)
    assert "triplet takes 1 min 48 s with resnet50, the largest ResNet within 10 minutes" in said
    assert "paper takes 3 h 0 min with resnet50" in said
    assert said.endswith("Shuffled votes come on top.")
    assert pace_words(0, CPU) == ""
    too_many = pace_words(9000, CPU)
    assert "with resnet8, which takes longer than 10 minutes" in too_many


def test_the_pace_is_this_machine_s_own():
    found = pace_of("cpu")
    assert found.device == "cpu"
    assert 1e-6 < found.picture < 10
