"""The SemSim that comes with the product: what it has learned from, and what README says of it."""

from pathlib import Path

import pytest

from semsim.base.metric_spec import CONTROLS, START
from semsim.base.sets.reader import read_set
from semsim.learning.baselines import controls_of, surely
from semsim.learning.card import read_card
from semsim.metrics.provenance import read_training
from semsim.weights import CHECKPOINTS, sha256_of

ROOT = Path(__file__).resolve().parents[3]
SEMSIM = CHECKPOINTS / "demo.safetensors"


@pytest.fixture(scope="module")
def card():
    return read_card(SEMSIM)


def test_it_has_learned_from_simulated_votes_on_a_part_of_the_originals(card):
    training = read_training(SEMSIM)
    every = {
        f"symbols/{image}"
        for folder in (ROOT / "data/demo/sets").iterdir()
        for image in read_set(folder).manifest["image_id"]
    }
    held_out = set(card["split"]["test_originals"])
    assert training.simulated
    assert card["simulated"]
    assert card["held_out"]["simulated"]
    assert held_out == every - set(training.pixels)
    assert len(held_out) == pytest.approx(len(every) / 2, abs=1)
    assert card["sha256"] == sha256_of(SEMSIM)


def test_it_is_judged_beside_its_start_its_best_block_and_shuffled_votes(card):
    found, absent = controls_of(SEMSIM)
    assert (set(found), absent) == (set(CONTROLS), {})
    assert len(card["held_out"]["shuffled"]["each"]) >= 20
    for sample in ("held_out", "in_sample"):
        compared = {row["control"] for row in card[sample]["against"]}
        assert compared >= set(CONTROLS)
        assert card[sample]["absent"] == {}


def test_readme_compares_it_with_its_initial_weights(card):
    """The figures behind it come from a file of results, which `test_claims` holds."""
    (row,) = [row for row in card["held_out"]["against"] if row["control"] == START]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    stands = "beats" if surely(row) else "does not clearly beat"
    if row["difference"] < 0:
        stands = "is worse than"
    assert f"The demo SemSim {stands} its initial weights (AUC difference <!--=demo " in text
