"""`benchmarks.jury`: simulated annotators beside people, on pictures made here."""

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_people import made_cifar10h, made_cifar10h_arrays
from sklearn.metrics import cohen_kappa_score

from benchmarks.claims import kept
from benchmarks.jury import (
    JURIES,
    STATISTICS,
    TARGET,
    Found,
    People,
    _calibrated,
    claims_of,
    classifier_sentence,
    compare,
    halves,
    held_against,
    keep_sentences,
    people_of,
)
from semsim.base.errors import DataError
from semsim.base.words import jury_words
from semsim.people.cifar import CIFAR10
from semsim.reporting.glossary import glossary
from semsim.reporting.notation import with_interval
from semsim.targets.lenet import LeNet
from semsim.targets.model import TargetModel
from semsim.targets.simulated_annotators import NOTHING, TrainedJuror

pytestmark = pytest.mark.usefixtures("unpinned")

COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "people"


@pytest.fixture(scope="module")
def people():
    """Fifty voices on 200 pictures, of which half are hard; pictures are noise."""
    rng = np.random.default_rng(0)
    true = rng.integers(10, size=200)
    sure = np.where(rng.random(200) < 0.5, rng.uniform(0.3, 0.85, 200), 1.0)
    shares = np.eye(10)[true] * sure[:, None]
    shares[np.arange(200), (true + 1) % 10] += 1 - sure
    counts = rng.multinomial(50, shares).astype(float)
    return People(images=torch.rand(200, 3, 32, 32), counts=counts, true=true)


@pytest.fixture(scope="module")
def jurors():
    def one(seed):
        torch.manual_seed(seed)
        classes = (*reversed(CIFAR10), NOTHING)
        made = LeNet(width=3, activation="relu")
        return TargetModel(made, classes, mean=[0.5] * 3, std=[0.2] * 3, size=(32, 32)).eval()

    return {
        juror.name: TrainedJuror(model=one(seed), threshold=0.05)
        for seed, juror in enumerate(JURIES["five networks"])
    }


def test_who_says_what_people_say_agrees_and_a_guesser_does_not(people):
    every = np.ones(200, bool)
    same = held_against(people.shares, people, every)
    assert [same[name][0] for name in ("rho_hard", "kappa", "confusions")] == pytest.approx([1] * 3)
    rng = np.random.default_rng(1)
    guessed = held_against(rng.dirichlet(np.ones(10), 200), people, every)
    assert np.isnan(same["confusions"].low)
    for name in ("rho_hard", "kappa"):
        found = guessed[name]
        assert found.low <= found.value <= found.high
        assert found.low < 0 < found.high
    assert guessed["right"].high < 0.25 < same["right"].low
    assert {name: one.n for name, one in guessed.items()} == {
        **dict.fromkeys(STATISTICS, 200),
        "rho_hard": people.hard.sum(),
    }


def test_kappa_of_one_word_always_is_0_and_has_no_interval(people):
    constant = held_against(np.eye(10)[np.zeros(200, int)], people, np.ones(200, bool))["kappa"]
    assert constant.value == 0
    assert np.isnan(constant.low)
    assert constant.why == "no interval: no picture that is left out changes it"
    (claim,) = claims_of({"one": {"kappa": constant}}, "now").values()
    assert (claim.value, claim.low, claim.high, claim.n) == (0, None, None, "200 pictures")


def test_shares_have_the_score_interval_and_kappa_that_of_the_product(people):
    every = np.ones(200, bool)
    none = held_against(np.eye(10)[(people.true + 2) % 10], people, every)["right"]
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(3.84 / (200 + 3.84), abs=1e-3)  # Wilson's of 0 of 200
    rng = np.random.default_rng(3)
    rater = rng.dirichlet(np.ones(10), 200)
    told = rng.random(200) < 0.5
    rater[told] = people.shares[told]
    found = held_against(rater, people, every)["kappa"]
    oracle = cohen_kappa_score(rater.argmax(1), people.shares.argmax(1))
    assert found.value == pytest.approx(oracle)


def test_halves_of_the_people_are_a_ceiling_below_agreement(people):
    first, second = halves(people)
    assert np.allclose(first.sum(axis=1), 1)
    assert (second.sum(axis=1) == 25).all()
    numbers = held_against(first, replace(people, counts=second), np.ones(200, bool))
    assert 0.5 < numbers["rho_hard"][0] < 1


def test_the_temperature_is_the_one_that_the_shares_were_made_with(people):
    rng = np.random.default_rng(2)
    logs = np.log(rng.dirichlet(np.ones(10), 200))
    told = replace(people, counts=np.exp(logs) * 50)
    (cooled,) = _calibrated([3 * logs], told, np.arange(200) < 100)
    assert np.allclose(cooled, logs, rtol=1e-2)


def test_what_is_chosen_does_not_depend_on_the_half_that_is_opened(people, jurors):
    found, best, _ = compare({"five networks": jurors}, people)
    rng = np.random.default_rng(49)
    opened = np.flatnonzero(rng.permutation(200) >= 100)
    counts = people.counts.copy()
    counts[opened] = np.roll(counts[opened], 3, axis=1)
    others, same, _ = compare({"five networks": jurors}, replace(people, counts=counts))
    assert same == best
    assert others[best] != found[best]
    assert {"one calibrated network", "control: a no-image baseline"} < set(found)
    claims = claims_of(found, "now")
    assert claims["five-networks-votes.kappa"].value == found["five networks: votes"]["kappa"][0]
    assert "control-one-word-always.rho_hard" in claims  # its share of the true word is 0 or 1


def test_pictures_are_those_that_lie_beside_the_counts(tmp_path):
    found = people_of(made_cifar10h(tmp_path / "copy"))
    assert found.images.shape[0] == len(found.true) == len(found.counts) == 3
    with pytest.raises(DataError, match=r"images/<index>\.png"):
        people_of(made_cifar10h_arrays(tmp_path / "arrays"))


@pytest.mark.skipif(not COPY.is_dir(), reason="no public copies")
def test_hard_pictures_are_those_of_the_public_copy():
    found = people_of(COPY)
    assert (len(found.true), int(found.hard.sum())) == (1077, 591)


def test_the_sentence_beside_simulated_votes_has_the_numbers_of_the_results(
    people, tmp_path, monkeypatch
):
    claims = kept("jury")
    for name in TARGET:
        own = claims[f"all-five-networks-votes.{name}"]
        assert with_interval(own.value, own.low, own.high) in jury_words()
    assert glossary()["simulated"] == jury_words()
    five, best = (claims[f"{who}.kappa"] for who in ("all-five-networks-votes", "one-network"))
    kappas = ({"kappa": Found(one.value, one.low, one.high, 1)} for one in (five, best))
    assert classifier_sentence(*kappas) == jury_words("classifier")
    made = tmp_path / "jury.toml"
    monkeypatch.setattr("benchmarks.jury.SENTENCES", made)
    numbers = dict.fromkeys(STATISTICS, Found(0.25, -0.1, 0.5, 200))
    keep_sentences(numbers, numbers, people, [0.4, 0.6])
    written = tomllib.loads(made.read_text("utf-8"))
    assert written["classifier"] == classifier_sentence(numbers, numbers)
    said = written["simulated"]
    assert "40% to 60%" in said
    assert "On 200 pictures" in said
    assert said.count("0.250 [−0.10, 0.50]") == 2
