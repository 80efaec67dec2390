"""The jury: pictures it learns from, and the certainty from which it speaks."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from semsim.datasets.symbols import Symbols
from semsim.targets import degrade, simulated_annotators
from semsim.targets.simulated_annotators import (
    JURORS,
    NOTHING,
    JurySettings,
    best_threshold,
    certainty,
    juror_of,
    train_juror,
    with_nothing,
)


@pytest.fixture(scope="module")
def data():
    return Symbols(train_per_class=2, test_per_class=1)("train")


def test_no_two_jurors_have_the_same_family_or_the_same_bad_pictures():
    assert len({juror.architecture.name for juror in JURORS}) == len(JURORS) == 5
    assert len({juror.bad for juror in JURORS}) == 5
    assert all(juror.bad[0] is degrade.moved for juror in JURORS)


@pytest.mark.parametrize("bad", ["ghosted", "coarse", "speckled", "covered", "moved"])
def test_bad_pictures_are_pictures_and_the_generator_decides_them(bad, data):
    make, rng = getattr(degrade, bad), torch.Generator
    made = make(data.images, rng().manual_seed(0))
    assert made.shape == data.images.shape
    assert made.min() >= 0
    assert made.max() <= 1
    assert torch.equal(made, make(data.images, rng().manual_seed(0)))
    assert not torch.equal(made, data.images)


def test_what_moves_is_the_picture_shifted_or_mirrored():
    rng, count = torch.Generator().manual_seed(1), 60
    level = torch.linspace(0.2, 0.9, 32 * 32).view(1, 1, 32, 32).expand(count, 3, -1, -1)
    made = degrade.moved(level, rng)
    kept = [float(((one > 0.15) & (one != 0.5)).float().mean()) for one in made]
    assert sum(share == 1 for share in kept) >= count / 5  # a third stay where they are
    assert min(kept) > (24 / 32) ** 2 - 0.05  # no more than a quarter of a side
    rows = [one[0][(one[0] > 0.15) & (one[0] != 0.5)] for one in made]
    assert any((row.diff()[:20] < 0).any() for row in rows)  # mirrored


def test_pictures_of_nothing_keep_their_amplitudes_and_lose_their_shape(data):
    made = with_nothing(data, 0)
    n = len(data) // 8
    assert len(made) == len(data) + n
    assert made.classes[-1] == NOTHING
    assert (made.labels[-n:] == len(data.classes)).all()
    assert made.labels[:-n].max() == len(data.classes) - 1
    nothing = made.images[-n:]
    assert 0 <= nothing.min() <= nothing.max() <= 1
    nearest = torch.cdist(nothing.flatten(1), data.images.flatten(1)).min()
    assert nearest > 1  # none is a picture of the data


def test_the_threshold_is_where_a_right_word_gains_what_a_wrong_one_costs():
    classes, rng = 30, np.random.default_rng(0)
    labels = rng.integers(0, classes, 400)
    sure = rng.uniform(0.1, 1.0, 400)  # and right as often as it is sure
    seen = np.where(rng.random(400) < sure, labels, (labels + 1) % classes)
    logs = np.log(np.full((400, classes + 1), 1e-9))
    logs[np.arange(400), seen] = np.log(sure)
    logs[:, -1] = np.log(1 - sure + 1e-12)
    assert 0.35 < best_threshold(logs, labels, 0) < 0.7


def test_certainty_is_among_the_words_offered_and_nothing():
    logs = np.log(np.array([0.2, 0.3, 0.1, 0.4]))  # the last is nothing
    assert certainty(logs, [0, 2], 0) == pytest.approx(0.2 / 0.7)


def test_a_juror_is_trained_and_has_a_threshold():
    found = train_juror(0, JurySettings(per_class=2, test_per_class=1, epochs=1))
    assert found.model.classes[-1] == NOTHING
    assert 0 < found.threshold <= 1


def test_a_network_that_names_the_same_for_every_picture_is_trained_again(data, monkeypatch):
    juror, rates = replace(JURORS[0], lr=0.04), []
    alive = juror_of(0, data, data, 10, 0, juror=juror).model
    dead = copy.deepcopy(alive)
    for weight in dead.parameters():
        weight.data.zero_()

    def trained(training, report):
        rates.append(training.settings.lr)
        return models.pop(0)

    monkeypatch.setattr(simulated_annotators, "carry_out", trained)
    models = [alive]
    assert juror_of(0, data, data, 10, 0, juror=juror).model is alive
    models = [dead, alive]
    assert juror_of(0, data, data, 10, 0, juror=juror).model is alive
    assert rates == [0.04, 0.04, 0.01]
