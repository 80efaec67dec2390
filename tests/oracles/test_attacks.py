"""Attacks against loops written out as their papers state them, in float64, step by step."""

import pytest
import torch
import torch.nn.functional as F
from made_linear import Net, leak, seeded
from torch import nn

from semsim.attacks import run_many
from semsim.attacks.descent.distance import distance_of_each
from semsim.attacks.dlg import DLG, IDLG
from semsim.attacks.fast_gradients import gradient_of_each
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.invgrad import InvGrad
from semsim.targets.model import TargetModel
from semsim.targets.resnet import ResNet20x4

SIZE = 12


NETS = {
    "lenet": Net([(5, 6, 2, 2), (5, 6, 2, 2), (5, 6, 1, 2)], nn.Sigmoid, bias=True),
    "cnn4": Net([(3, 5, 2, 1), (3, 5, 1, 1)] * 2, nn.ReLU, bias=True),
    "resnet20": ResNet20x4(width=2),
}


def target(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TargetModel(
            NETS[name], ["a", "b", "c"], mean=[0.5] * 3, std=[0.25] * 3, size=(SIZE, SIZE)
        )
        if name == "lenet":
            for parameter in model.parameters():
                nn.init.uniform_(parameter, -0.5, 0.5)  # as in the DLG paper
    return model.eval().double()


def image_of(seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(1, 3, SIZE, SIZE, generator=rng).double()


def seen_of(model, seed):
    return leak(model, image_of(seed)[0], seed % 3)


def rng_of(seed):
    return seeded(1, seed)[0]


def gradient_with_graph(model, x, label):
    loss = F.cross_entropy(model(x * model.std + model.mean), label)
    return torch.autograd.grad(loss, tuple(model.parameters()), create_graph=True)


def invgrad_loop(seen, steps, seed):
    """Signed Adam on cosine and total variation, one image, parameter gradients included."""
    model, tv, lr = seen.model, 1e-4, 0.1
    x = torch.randn(1, *seen.shape, generator=rng_of(seed)).double().requires_grad_(True)
    first, second = torch.zeros_like(x), torch.zeros_like(x)
    low, high = -model.mean / model.std, (1 - model.mean) / model.std
    for step in range(1, steps + 1):
        found = gradient_with_graph(model, x, torch.tensor([seen.label]))
        dot = sum((a * b).sum() for a, b in zip(found, seen.gradients, strict=True))
        length = sum(a.square().sum() for a in found) * sum(
            b.square().sum() for b in seen.gradients
        )
        objective = 1 - dot / length.sqrt()
        objective = objective + tv * (x[..., 1:] - x[..., :-1]).abs().mean()
        objective = objective + tv * (x[..., 1:, :] - x[..., :-1, :]).abs().mean()
        objective.backward()
        sign = x.grad.sign()
        first, second = 0.9 * first + 0.1 * sign, 0.999 * second + 0.001 * sign.square()
        passed = sum(step - 1 >= round(steps * part / 8) for part in (3, 5, 7))
        moved = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        x = (x.detach() - lr * 0.1**passed * moved).clamp(low, high).requires_grad_(True)
    model.zero_grad()
    return (x.detach() * model.std + model.mean)[0]


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("steps", [1, 4, 8])
def test_invgrad_many_at_once_is_the_papers_loop_step_by_step(name, steps):
    model = target(name)
    seen = [seen_of(model, seed) for seed in range(3)]
    together = InvGrad(steps=steps).many(seen, rngs=[rng_of(s) for s in range(3)])
    for seed, found in enumerate(together):
        expected = invgrad_loop(seen[seed], steps, seed)
        assert (found.image - expected).abs().max() < 1e-5
        alone = InvGrad(steps=steps)(seen[seed], rng=rng_of(seed))
        assert (found.image - alone.image).abs().max() < 1e-5


def lbfgs_loop(seen, steps, seed, *, joint):
    """DLG (joint) or iDLG as published: L-BFGS on the squared distance of the gradients."""
    model, rng = seen.model, rng_of(seed)
    x = torch.randn(1, *seen.shape, generator=rng).double().requires_grad_(True)
    unknowns, label = [x], torch.tensor([int(seen.gradients[-1].argmin())])
    if joint:
        label = torch.randn(1, 3, generator=rng).double().requires_grad_(True)
        unknowns = [x, label]
    optimiser = torch.optim.LBFGS(unknowns, lr=1)

    def closure():
        optimiser.zero_grad()
        chances = model(x * model.std + model.mean).log_softmax(-1)
        wanted = label.softmax(-1) if joint else F.one_hot(label, 3)
        loss = -(wanted * chances).sum()
        found = torch.autograd.grad(loss, tuple(model.parameters()), create_graph=True)
        distance = sum(((a - b) ** 2).sum() for a, b in zip(found, seen.gradients, strict=True))
        distance.backward()
        return distance

    for _ in range(steps):
        optimiser.step(closure)
    model.zero_grad()
    return (x.detach() * model.std + model.mean).clamp(0, 1)[0]


@pytest.mark.parametrize(("attack", "joint"), [(DLG, True), (IDLG, False)])
def test_dlg_and_idlg_follow_their_papers(attack, joint):
    seen = seen_of(target("lenet"), 1)
    found = attack(steps=2, stop_below=0.0)(seen, rng=rng_of(0))
    expected = lbfgs_loop(seen, 2, 0, joint=joint)
    # 40 iterations of L-BFGS let rounding grow; the images themselves differ by 0.3 on average.
    assert (found.image - expected).abs().max() < 1e-4


def test_idlg_recovers_the_image_when_given_time():
    seen = seen_of(target("lenet"), 1)
    found = IDLG(steps=12)(seen, rng=rng_of(0))
    assert (found.image - image_of(1)[0]).square().mean() < 1e-3  # 30 dB
    assert found.residual < 1e-2 * found.grey_residual


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("distance", ["cosine", "cosine-per-layer", "l2"])
def test_the_matching_loss_is_zero_at_the_truth_only(name, distance):
    model = target(name)
    seen = [seen_of(model, seed) for seed in range(2)]
    wanted = [torch.stack(each) for each in zip(*(s.gradients for s in seen), strict=True)]
    labels = torch.tensor([s.label for s in seen])
    truth = torch.cat([image_of(0), image_of(1)])
    for images, is_truth in ((truth, True), (1 - truth, False)):
        found = gradient_of_each(model, images, labels)
        values = distance_of_each(found, wanted, distance)
        assert (values.abs() < 1e-12).all() == is_truth


def test_known_statistics_and_label_are_worth_something():
    model = target("resnet20")
    seen = seen_of(model, 1)
    with_batch_norm = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert with_batch_norm
    found = run_many(
        GradAttack(steps=20, statistics="running", label="inferred", tv=1e-3),
        [seen],
        rngs=[rng_of(0)],
    )
    assert found[0].residual < found[0].grey_residual
