"""A step passes each image of its batch once and learns what passing every triplet would teach."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learning_toy import moves

from semsim.learning import epoch
from semsim.learning.batches import load_table, take
from semsim.learning.epoch import EpochMaterial, run_epoch
from semsim.learning.loss import LOSSES
from semsim.learning.triplets import ImageIndex, learnable, take_stock
from semsim.metrics.network import ModelSettings, SemSimModel

# A share of votes of its own for every reconstruction, so that triplets have different weights.
VOTES = {True: (5, 4), False: (1, 0)}


@pytest.fixture
def material(labels):
    kinds = labels.groupby(["image_id", "recognisable"]).cumcount()
    votes = [VOTES[bool(k)][i] for k, i in zip(labels.recognisable, kinds, strict=True)]
    originals = learnable(take_stock(labels.assign(n_recognised=votes)), "votes")
    index = ImageIndex(originals)
    return EpochMaterial(
        table=load_table(index.paths, 32), index=index, training=originals, held_out=()
    )


@pytest.fixture
def whole(quick):
    """Every triplet of the ten originals once, in one batch, as they are."""
    return replace(
        quick,
        batch_norm="frozen",
        weights="begun elsewhere",
        ordering="votes",
        triplets_per_original=6,  # of four reconstructions with different shares of votes
        batch_size=60,
        augmentation="none",
    )


def fresh(settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SemSimModel(
            ModelSettings(backbone=settings.backbone, small_stem=False),
            mean=[0.5] * 3,
            std=[0.3] * 3,
        )
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2, generator=torch.Generator().manual_seed(1))
    return model


def watched(material, settings):
    """The epoch's record, the model after it, and of every batch the images passed and the loss."""
    model, passed, losses = fresh(settings), [], []
    model.register_forward_pre_hook(lambda _, images: passed.append(images[0].clone()))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr)
    record = run_epoch(
        model, optimizer, material, settings, lambda p: losses.append(p.values["loss"]), 0
    )
    return record, model, passed, losses


def drawn(material, settings):
    """The triplets (N, 3) of every batch of that epoch."""
    triplets = epoch._draw(fresh(settings), material, settings, 0).triplets
    return np.split(triplets, range(settings.batch_size, len(triplets), settings.batch_size))


def every_triplet(material):
    """All triplets, (T, 3) numbers, and their weights (T,)."""
    number = material.index.number
    rows = [
        (number(o.image), number(p), number(n), weight)
        for o in material.training
        for p, n, weight in o.ordered("votes")
    ]
    return np.array([row[:3] for row in rows]), torch.tensor([row[3] for row in rows])


@pytest.mark.parametrize(
    ("loss", "backbone"),
    [("triplet", "resnet18"), ("contrastive", "lenet"), ("pooled", "lenet")],
)
def test_loss_and_gradients_are_those_of_every_role_passed_on_its_own(
    material, whole, loss, backbone
):
    settings = replace(whole, loss=loss, backbone=backbone)
    material = replace(material, training=material.training[:4])
    record, model, _, (loss_of_the_batch,) = watched(material, settings)

    triplets, weights = every_triplet(material)
    plain = fresh(settings).eval()
    roles = [plain(take(material.table, column)) for column in triplets.T]
    expected = LOSSES[loss](margin=settings.margin)(*roles, weights)
    expected.backward()

    assert loss_of_the_batch == pytest.approx(expected.item(), abs=1e-5)
    assert record.loss == pytest.approx(expected.item(), abs=1e-5)
    plus = torch.linalg.vector_norm(roles[0] - roles[1], dim=1)
    assert record.d_plus == pytest.approx(plus.mean().item(), abs=1e-5)
    lengths = torch.linalg.vector_norm(torch.cat(roles), dim=1)
    assert record.norm == pytest.approx(lengths.mean().item(), abs=1e-5)
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        # One step is one batch, so the gradients of that step are still there.
        scale = float(theirs.grad.abs().max())
        assert scale > 0, name
        torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-5 * max(1, scale), rtol=1e-5)


def test_the_identity_term_is_the_mean_over_triplets(material, whole):
    # A batch of 45 ends in the middle of an original, which then counts half as much in it.
    settings = replace(whole, batch_size=45, identity_weight=0.5, lr=1e-30)
    record, _, passed, losses = watched(material, settings)
    plain, terms = fresh(settings).eval(), []
    for triplets, images in zip(drawn(material, settings), passed, strict=True):
        numbers, counts = np.unique(triplets[:, 0], return_counts=True)
        originals, changed = take(material.table, numbers), images[-len(numbers) :]
        nearest = torch.cdist(changed.flatten(1), originals.flatten(1)).argmin(dim=1)
        assert nearest.tolist() == list(range(len(numbers)))
        away = torch.linalg.vector_norm(plain(originals) - plain(changed), dim=1)
        terms.append(np.average(away.detach(), weights=counts))
    assert set(counts) == {3, 6}
    assert record.identity == pytest.approx(np.average(terms, weights=[45, 15]), abs=1e-5)
    without = watched(material, replace(settings, identity_weight=0.0))[3]
    assert np.subtract(losses, without) == pytest.approx(0.5 * np.array(terms), abs=1e-5)


@pytest.mark.parametrize("augmentation", ["none", "crop-flip", "joint"])
@pytest.mark.parametrize("identity_weight", [0.0, 1.0])
def test_each_different_image_of_a_batch_is_passed_once(
    material, whole, augmentation, identity_weight
):
    settings = replace(
        whole, batch_size=16, augmentation=augmentation, identity_weight=identity_weight
    )
    passed = watched(material, settings)[2]
    batches = drawn(material, settings)
    assert len(passed) == len(batches) == 4
    for triplets, images in zip(batches, passed, strict=True):
        originals = len(np.unique(triplets[:, 0])) if identity_weight > 0 else 0
        assert len(images) == len(np.unique(triplets)) + originals < triplets.size
        assert len(images.flatten(1).unique(dim=0)) == len(images)
        if augmentation == "none":
            expected = take(material.table, np.unique(triplets))
            assert torch.equal(images[: len(expected)], expected)


def test_joint_moves_all_images_of_an_original_alike(material, whole):
    (images,) = watched(material, replace(whole, augmentation="joint"))[2]
    number, of_originals = material.index.number, []
    for original in material.training:
        own = [number(path) for path in original.images]
        of_each = [moves(take(material.table, np.array([n]))[0], images[n]) for n in own]
        assert len(of_each) == 5
        (common,) = set.intersection(*of_each)
        of_originals.append(common)
    assert len(set(of_originals)) > 5  # and those of others in another way


def test_crop_flip_moves_each_image_on_its_own(material, whole):
    (images,) = watched(material, replace(whole, augmentation="crop-flip"))[2]
    number = material.index.number
    for original in material.training:
        own = [number(path) for path in original.images]
        of_each = [moves(take(material.table, np.array([n]))[0], images[n]) for n in own]
        assert all(of_each)
        assert not set.intersection(*of_each)
