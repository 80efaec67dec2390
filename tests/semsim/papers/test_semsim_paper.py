"""The paper's plan as data, counted against what the paper says in words."""

from dataclasses import fields

import pytest

from semsim.attacks.as_text import read_attack, read_vertical
from semsim.base.registry import build
from semsim.datasets import DATASETS
from semsim.defences.strategies import read_strategy
from semsim.papers.semsim_scales import (
    DATA_SETS,
    MAIN_ATTACK,
    METRICS,
    OTHER_ATTACKS,
    PRINTED,
    STRATEGIES,
    VOTES_PER_IMAGE,
)
from semsim.targets import TARGETS


def test_there_are_70_targets_14_on_each_of_5_data_sets():
    targets = [
        (one.dataset, network, ours)
        for one in DATA_SETS
        for network in one.architectures
        for _, ours, _ in STRATEGIES
    ]
    assert len(DATA_SETS) == 5
    assert len(set(targets)) == 70
    assert {network for _, network, _ in targets} == {
        *("resnet20-4", "resnet50", "resnet152", "densenet40", "convnet8"),
    }


def test_people_judged_600_700_and_100_images_of_each_target():
    assert [one.images for one in DATA_SETS] == [600, 700, 100, 100, 100]
    assert VOTES_PER_IMAGE * 14 * sum(one.images for one in DATA_SETS) == 112_000


@pytest.mark.parametrize("one", DATA_SETS, ids=lambda one: one.dataset)
def test_our_data_sets_ask_what_the_paper_asks_at_its_size(one):
    made = build(DATASETS, one.dataset)
    assert made.task == one.task
    if "size" in {field.name for field in fields(made)}:
        assert made.size == one.pixels
    for network in one.architectures:
        build(TARGETS, network)


def test_every_strategy_and_attack_can_be_built():
    for _, ours, theirs in STRATEGIES:
        read_strategy(ours)
        read_strategy(theirs)
    assert read_strategy(STRATEGIES[1][1]).name == "resized-crop-flip"
    assert read_strategy(STRATEGIES[1][2]).name == "crop-flip"
    for attack in (MAIN_ATTACK, *OTHER_ATTACKS):
        if attack.title == "CAFE":
            assert read_vertical(attack.text).settings["steps"] == 20_000
        else:
            read_attack(attack.text)


def test_cells_agree_with_the_papers_own_sentences():
    """Section 5.1 says by how much SemSim's τ is above PSNR's, and what FID's τ are."""
    own, psnr, other = (METRICS.index(name) for name in ("SemSim", "PSNR", "FID"))
    first, second = (
        {row: cells for (table, row, sign), cells in PRINTED.items() if (table, sign) == (n, "tau")}
        for n in (1, 2)
    )
    gains = [round(tau[own] - tau[psnr], 4) for tau in first.values()]
    assert gains == [0.2418, 0.1333, 0.2663, 0.1319, 0.2401]
    assert [tau[other] for tau in first.values()] == [0.5604, 0.1556, 0.4252, 0.0989, 0.3196]
    assert [tau[-1] for tau in second.values()] == [0.7342, 0.7510, 0.7260]
    assert list(first) == [one.title for one in DATA_SETS]
    assert list(second) == [one.title for one in OTHER_ATTACKS]
    for (table, row, sign), cells in PRINTED.items():
        assert len(cells) == len(METRICS)
        below = PRINTED[table, row, "tau"], PRINTED[table, row, "rho"]
        assert sign == "tau" or all(0 < tau < rho < 1 for tau, rho in zip(*below, strict=True))
