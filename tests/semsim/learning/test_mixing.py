"""Weights of pixels and network fitted to what people said."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from semsim.base.errors import SettingsError
from semsim.base.stats.roc import WITHIN
from semsim.learning import PRESETS
from semsim.learning.batches import load_table
from semsim.learning.epoch import embed
from semsim.learning.mixing import (
    balance,
    block_alone,
    block_aucs,
    block_distances,
    fit,
    judged_shares,
)
from semsim.learning.settings import acting
from semsim.learning.train import train
from semsim.learning.triplets import ImageIndex, learnable, take_stock
from semsim.metrics.network import NAMES, ModelSettings, SemSimModel

MIXED = replace(PRESETS["mixed"], device="cpu", validation_fraction=0.2)


@pytest.fixture
def made():
    """A model, and pairs of which only the coarse structure says whether people recognise."""
    torch.manual_seed(0)
    model = SemSimModel(ModelSettings(backbone="lenet", mixed=True), mean=[0.5] * 3, std=[0.3] * 3)
    draw = np.random.default_rng(0)
    table = torch.from_numpy(draw.integers(0, 256, (80, 3, 32, 32)).astype(np.uint8))
    pairs = np.stack([np.arange(40), np.arange(40, 80)], axis=1)
    gaps = block_distances(model, table, pairs)
    return model, table, pairs, gaps


def test_before_any_vote_every_block_counts_alike(made):
    model, table, pairs, gaps = made
    balance(model, table, pairs)
    share = model.weights.numpy() * gaps.mean(axis=0)
    assert share == pytest.approx(np.ones(len(NAMES)), rel=1e-5)


def test_the_block_that_people_go_by_gains_and_none_falls_below_nothing(made):
    model, table, pairs, gaps = made
    scaled = gaps / gaps.mean(axis=0)
    goes_by = scaled[:, 3]
    seen = (goes_by < np.median(goes_by)).astype(float)
    loss = fit(model, table, pairs, seen)
    weights = model.weights.numpy() * gaps.mean(axis=0)
    assert weights.argmax() == 3
    assert (weights >= 0).all()
    assert loss < np.log(2)  # which guessing gives
    before = model.weights.clone()
    fit(model, table, pairs, seen)
    assert torch.equal(before, model.weights)  # convex: the same answer again


def test_a_training_changes_the_weights_and_not_the_network(labels):
    began = []
    result = train(
        labels,
        MIXED,
        begun=lambda m: began.append(
            {name: value.clone() for name, value in m.state_dict().items()}
        ),
    )
    (start,) = began
    after = result.model.state_dict()
    assert all(torch.equal(start[name], after[name]) for name in start if name != "weights")
    assert not torch.equal(start["weights"], after["weights"])
    (record,) = result.records
    assert record.epoch == result.kept_epoch == 1
    assert 0 <= record.validation_auc <= 1
    # On the toy study pixels point the wrong way and structure does not.
    gained = (after["weights"] / start["weights"]).numpy()
    assert gained[2:4].max() > gained[:2].max()
    assert record.validation_auc > 0.9


def test_settings_that_its_card_leaves_out_change_nothing(labels):
    every = MIXED.result_settings()
    idle = set(every) - set(acting(every)) - {"shuffle", "epochs", "patience", "batch_norm"}
    others = {
        **{"normalize": True, "margin": 3.0, "mining": "semi-hard", "identity_weight": 0.5},
        **{"lr": 0.5, "lr_drops": (0.1,), "batch_size": 2, "momentum": 0.1, "nesterov": False},
        **{"weight_decay": 0.1, "triplets_per_original": 2, "augmentation": "none"},
        **{"collapse_patience": 1, "mixed_precision": True, "small_stem": False},
    }
    assert set(others) == idle
    plain, changed, seeded = (
        train(labels, settings).model.state_dict()
        for settings in (MIXED, replace(MIXED, **others), replace(MIXED, seed=1))
    )
    assert all(torch.equal(plain[name], changed[name]) for name in plain)
    assert not torch.equal(plain["weights"], seeded["weights"])


def test_a_block_alone_tells_apart_what_it_tells_apart(labels):
    """As images by its distance: the AUC of a block is that of a SemSim that has no other."""
    result = train(labels, MIXED)
    aucs = block_aucs(result.model, result.training)
    assert set(aucs) == set(NAMES)
    alone = block_alone(result.model, "structure")
    assert (alone.weights > 0).tolist() == [name == "structure" for name in NAMES]
    index = ImageIndex(result.training)
    pairs, seen = index.judged(result.training)
    features = embed(alone, load_table(index.paths, 32), np.unique(pairs))
    near = -(features[pairs[:, 0]] - features[pairs[:, 1]]).norm(dim=1).numpy()
    assert aucs["structure"] == pytest.approx(roc_auc_score(seen, near))
    each = [
        roc_auc_score(seen[own], near[own])
        for own in (pairs[:, 0] == one for one in np.unique(pairs[:, 0]))
        if len(set(seen[own])) == 2
    ]
    within = block_aucs(result.model, result.training, WITHIN)
    assert within["structure"] == pytest.approx(np.mean(each))
    assert block_aucs(result.model, [replace(o, recognisable=()) for o in result.training]) == {}


def test_a_resumed_training_is_over(labels):
    kept = []
    whole = train(labels, MIXED, save=kept.append)
    again = train(labels, MIXED, resume=kept[-1])
    one, other = whole.model.state_dict(), again.model.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_targets_are_the_majority_or_the_share_of_votes(labels):
    usable = learnable(take_stock(labels), "majority")
    pairs, targets = judged_shares(ImageIndex(usable), usable, "majority")
    assert len(pairs) == len(labels)
    assert set(targets) == {0.0, 1.0}
    usable = learnable(take_stock(labels), "votes")
    pairs, targets = judged_shares(ImageIndex(usable), usable, "votes")
    assert len(pairs) == len(labels)
    assert set(targets) == {0.2, 0.8}


def test_distances_are_of_the_triplets_that_votes_order(labels):
    # A majority recognises every one, some by more votes: no triplet has both kinds.
    some = labels.assign(
        recognisable=pd.array([True] * len(labels), "boolean"),
        n_recognised=labels["n_recognised"].replace({1: 3}),
    )
    (record,) = train(some, replace(MIXED, ordering="votes")).records
    assert all(np.isfinite(value) for value in record.values().values())
    assert record.d_plus < record.d_minus


def test_it_is_fitted_once():
    with pytest.raises(SettingsError, match="epochs must be 1 where the loss is mixed"):
        replace(PRESETS["mixed"], epochs=2)
