"""What is shared after local steps: simulated as trained, and attacked by who knows the steps."""

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from made_linear import seeded, target

from semsim.attacks.descent import attack_updates
from semsim.attacks.descent.distance import GradientDistance, distance_from, simulated_update
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.labels import labels_of
from semsim.attacks.observe import BatchGradient, Update, assigned, observe_gradient, observe_round
from semsim.attacks.prior import Prior
from semsim.base.errors import AttackFailedError
from semsim.defences import make
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.targets.lenet import CNN4
from semsim.types import Reconstruction

PLAIN = CNN4(width=8, activation="silu")
NORMED = SmallCNN(width=4, activation="silu")  # with batch norm
LABELS = torch.tensor([0, 3, 3, 1])


def pictures(count=4, seed=0):
    rough = torch.rand(count, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
    return F.interpolate(rough, size=16, mode="bilinear").clamp(0, 1)


def round_of(model, sharing, defence="none"):
    images = pictures(sharing.pictures).to(model.mean)
    labels = LABELS[: sharing.pictures]
    return observe_round(model, images, labels, sharing, make(defence), seeded(sharing.pictures))


def trained_for_real(model, sharing):
    """A plain training loop, as a client's program has it."""
    client = copy.deepcopy(model)
    client.train(sharing.batch_norm == "train")
    optimiser = torch.optim.SGD(client.parameters(), lr=sharing.lr, momentum=sharing.momentum)
    images, labels = pictures(sharing.pictures).to(model.mean), LABELS[: sharing.pictures]
    for step in range(sharing.steps):
        places = [(step * sharing.batch + n) % sharing.pictures for n in range(sharing.batch)]
        optimiser.zero_grad()
        F.cross_entropy(client(images[places]), labels[places]).backward()
        optimiser.step()
    pairs = zip(client.parameters(), model.parameters(), strict=True)
    return [(after - before).detach() for after, before in pairs]


@pytest.mark.parametrize("architecture", [PLAIN, NORMED], ids=["plain", "normed"])
@pytest.mark.parametrize("batch_norm", ["eval", "train"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(("batch", "held"), [(4, 0), (2, 4)])
def test_what_is_shared_and_what_is_simulated_are_a_real_run_of_sgd(
    architecture, batch_norm, momentum, batch, held
):
    model = target(architecture, std=0.2).double()
    sharing = Update(
        steps=5, batch=batch, held=held, lr=0.1, momentum=momentum, batch_norm=batch_norm
    )
    before = {name: one.clone() for name, one in model.state_dict().items()}
    shared = round_of(model, sharing).observation
    simulated = simulated_update(model, pictures().double(), LABELS, sharing.local)
    for one, other, true in zip(
        shared.update, simulated, trained_for_real(model, sharing), strict=True
    ):
        torch.testing.assert_close(one, true, atol=1e-10, rtol=1e-6)
        torch.testing.assert_close(other, true, atol=1e-10, rtol=1e-6)
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())


def test_in_single_precision_they_agree_to_a_millionth():
    model, sharing = target(PLAIN, std=0.2), Update(steps=5, batch=4, lr=0.1, momentum=0.9)
    simulated = simulated_update(model, pictures(), LABELS, sharing.local)
    for one, true in zip(simulated, trained_for_real(model, sharing), strict=True):
        torch.testing.assert_close(one, true, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "attack",
    [
        InvGrad(steps=40, tv=0.01),
        Prior(steps=20),
        Prior(steps=20, activation="kinked"),
    ],
    ids=["invgrad", "prior-smooth", "prior-kinked"],
)
def test_one_step_on_one_picture_is_the_plain_attack(attack):
    model, image = target(PLAIN, std=0.2).double(), pictures(1)[0].double()
    plain = observe_gradient(model, image, 0, NoDefence(), torch.Generator()).observation
    stepped = round_of(model, Update(steps=1, batch=1, momentum=0.9)).observation
    for updates in ("simulated", "one-gradient"):
        one = replace(attack, updates=updates)
        expected = one(plain, rng=seeded(1)[0])
        (found,) = attack_updates(one, [stepped], rngs=seeded(1))
        torch.testing.assert_close(found.image, expected.image, atol=1e-6, rtol=0)
        assert found.residual == pytest.approx(expected.residual, abs=1e-9)
        assert found.grey_residual == pytest.approx(expected.grey_residual, abs=1e-9)


def test_a_defence_acts_at_each_step_and_once_on_a_batch():
    model = target(PLAIN, std=0.2)
    clean = round_of(model, BatchGradient(batch=2)).observation.update
    noisy = round_of(model, BatchGradient(batch=2), "gradient-noise:std=0.5").observation.update
    apart = torch.cat([(a - b).flatten() for a, b in zip(clean, noisy, strict=True)])
    assert float(apart.std()) == pytest.approx(0.5, rel=0.05)
    steps = Update(steps=4, batch=2, lr=0.001)
    clean, noisy = (
        round_of(model, steps, text).observation.update for text in ("none", "gradient-noise:std=1")
    )
    apart = torch.cat([(a - b).flatten() for a, b in zip(clean, noisy, strict=True)])
    assert float(apart.std()) == pytest.approx(0.001 * 4**0.5, rel=0.05)


def test_dp_sgd_clips_each_picture_of_a_batch():
    model = target(PLAIN, std=0.2)
    shared = round_of(model, BatchGradient(batch=4), "dp-sgd:clip=0.01,noise=0").observation
    total = torch.cat([one.flatten() for one in shared.update]).norm()
    assert 0 < float(total) <= 0.01 + 1e-6
    each = [
        torch.cat(
            [g.flatten() for g in simulated_update(model, x, y, BatchGradient(batch=1).local)]
        )
        for x, y in zip(pictures().split(1), LABELS.split(1), strict=True)
    ]
    mean = torch.stack([g * 0.01 / g.norm() for g in each]).mean(0)
    torch.testing.assert_close(
        torch.cat([one.flatten() for one in shared.update]), mean, atol=1e-7, rtol=1e-4
    )


def test_the_distance_is_nought_at_the_truth_alone_and_has_the_true_slope():
    model = target(PLAIN, std=0.2).double()
    seen = round_of(model, Update(steps=3, batch=2, lr=0.1, momentum=0.5)).observation
    distance = distance_from(seen, seen.labels, "scaled")
    truth = pictures(2).double()
    assert distance(truth).max() < 1e-12
    grey = distance.beside_grey(truth)[1]
    assert grey.shape == (2,)
    assert grey[0] == grey[1] > 1e-3
    guess = (0.5 * truth).requires_grad_(True)
    (slope,) = torch.autograd.grad(distance(guess)[0], guess)
    step = torch.zeros_like(truth)
    step[1, 2, 3, 4] = 1e-5
    ahead, behind = (distance((guess + s * step).detach())[0] for s in (1, -1))
    assert float(slope[1, 2, 3, 4]) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-5)


def test_batch_norm_in_training_mode_mixes_a_batch():
    model = target(NORMED, std=0.2).double()
    seen = round_of(model, BatchGradient(batch=4, batch_norm="train")).observation
    truth = pictures().double()
    assert distance_from(seen, seen.labels, "cosine")(truth)[0] < 1e-12
    for wrong in ("eval",):
        local = replace(seen.local, batch_norm=wrong)
        apart = distance_from(replace(seen, local=local), seen.labels, "cosine")(truth)
        assert apart[0] > 1e-3
    alone = GradientDistance(
        model=model,
        leaked=tuple(-one[None] for one in seen.update),
        labels=LABELS[:1],
        kind="cosine",
        batch_norm="train",
    )
    assert alone(truth[:1])[0] > 1e-3


@pytest.mark.parametrize("bias", [True, False])
def test_labels_are_counted_in_an_update(bias):
    model = target(PLAIN, std=0.2)
    if not bias:
        model.head = torch.nn.Linear(model.head.in_features, 5, bias=False)
    seen = round_of(model, Update(steps=3, batch=4, lr=0.01, momentum=0.9)).observation
    told = replace(seen, labels=None)
    with pytest.raises(AttackFailedError, match='label="inferred"'):
        labels_of(told, "known")
    if bias:
        assert sorted(labels_of(told, "inferred")) == [0, 1, 3, 3]
    else:
        with pytest.raises(AttackFailedError, match="counted in the last layer's bias"):
            labels_of(told, "inferred")


def test_who_goes_the_steps_gets_closer_than_who_takes_them_for_one_gradient():
    """A step size at which the steps' gradients differ: five of 0.5 on one untrained network."""
    model, truth = target(PLAIN, std=0.2), pictures(2)
    seen = round_of(model, Update(steps=5, batch=2, lr=0.5)).observation
    errors = {}
    for updates in ("simulated", "one-gradient"):
        attack = InvGrad(steps=80, tv=1e-3, start="grey", updates=updates)
        found = torch.stack([f.image for f in attack_updates(attack, [seen], rngs=seeded(2))])
        errors[updates] = float((found[assigned(found, truth)] - truth).square().mean())
    grey = float((truth - 0.5).square().mean())
    assert errors["simulated"] < 0.7 * errors["one-gradient"]
    assert errors["simulated"] < 0.5 * grey


def test_a_client_that_fails_stops_no_other():
    model = target(PLAIN, std=0.2)
    good = round_of(model, Update(steps=2, batch=2)).observation
    bad = replace(good, update=tuple(one * float("nan") for one in good.update))
    looks = []

    def watch(progress):
        looks.append((progress.done, progress.total, progress.look and progress.look.place))

    attack = InvGrad(steps=20)
    found = attack_updates(attack, [bad, good], rngs=seeded(4), report=watch)
    assert [type(one) for one in found] == [AttackFailedError] * 2 + [Reconstruction] * 2
    assert looks[-1] == (40, 40, 2)
    assert found[2].objective == found[3].objective
    alone = attack_updates(attack, [good], rngs=seeded(4)[2:])
    assert all(torch.equal(a.image, b.image) for a, b in zip(alone, found[2:], strict=True))


def test_restarts_are_of_a_client_not_of_a_picture():
    seen = round_of(target(PLAIN, std=0.2), BatchGradient(batch=2)).observation
    found = attack_updates(InvGrad(steps=20, restarts=3), [seen], rngs=seeded(2))
    both = distance_from(seen, seen.labels, "cosine")(torch.stack([f.image for f in found]))
    assert both.tolist() == [one.residual for one in found]


@pytest.mark.parametrize("sharing", [BatchGradient(batch=4), Update(steps=2, batch=4)])
def test_pictures_of_one_class_do_not_stay_alike_where_they_begin_as_grey(sharing):
    """The second and third are of one class."""
    seen = round_of(target(PLAIN, std=0.2), sharing).observation
    found = attack_updates(InvGrad(steps=60, start="grey"), [seen], rngs=seeded(4))
    images = torch.stack([one.image for one in found])
    assert (images[1] - images[2]).abs().mean() > 0.005


def test_restarts_from_grey_are_independent_and_the_first_is_as_it_was():
    image, label = pictures(1)[0], int(LABELS[0])
    rng = torch.Generator().manual_seed(0)
    seen = observe_gradient(target(PLAIN, std=0.2), image, label, NoDefence(), rng).observation
    told: list[list[float]] = []
    for restarts in (1, 3):
        values = []
        attack = InvGrad(steps=10, start="grey", restarts=restarts)
        attack(seen, rng=seeded(1)[0], report=lambda one, to=values: to.append(one.values))
        told.append([one["objective"] for one in values])
    once, thrice = told
    assert thrice[: len(once)] == once
    ends = thrice[len(once) - 1 :: len(once)]
    assert len(set(ends)) == 3


@pytest.mark.parametrize("kind", ["scaled", "cosine", "l2"])
def test_a_grey_batch_does_not_stand_beside_what_batch_norm_made_of_its_rounding(kind):
    sharing = BatchGradient(batch=4, batch_norm="train")
    seen = round_of(target(NORMED, std=0.2), sharing).observation
    distance = distance_from(seen, LABELS.tolist(), kind)
    noise = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(5))
    _, grey = distance.beside_grey(noise)
    nothing = sum(float(one.square().sum()) for one in seen.update) if kind == "l2" else 1.0
    assert (grey <= nothing * (1 + 1e-5)).all()
    plain = distance(torch.full_like(noise, 0.5))
    assert (plain > 10 * grey).all() or kind == "cosine"
