from dataclasses import replace

import pytest
import torch
from torch import nn

from semsim.base.errors import SettingsError
from semsim.systems.split import SPLIT_NETWORKS
from semsim.systems.split.networks import (
    FeatureNoise,
    ImageTask,
    ResNet18,
    SmallResNet,
    SplitSystem,
    Vgg16,
    feature_shape,
    make_parts,
    task_of,
)
from semsim.systems.split.run import cost_of

TASK = ImageTask(size=(32, 32), classes=5, mean=(0.4, 0.5, 0.6), std=(0.2, 0.2, 0.2))
NARROW = {"small": {"width": 4}, "resnet18": {"width": 4}, "vgg16": {"width": 4}}
UNITS = {"small": 4, "resnet18": 6, "vgg16": 16}
MAPS = {**UNITS, "vgg16": 13}  # units after which there are maps to send


def cuts(name):
    count = UNITS[name]
    return [(h, t) for h in range(1, count) for t in range(1, count - h) if h <= MAPS[name]]


@pytest.mark.parametrize("name", SPLIT_NETWORKS)
def test_every_cut_gives_parts_that_fit_together(name):
    for h, t in cuts(name)[:: 1 if name != "vgg16" else 17]:
        network = SPLIT_NETWORKS[name](h=h, t=t, **NARROW[name])
        parts = make_parts(network, TASK, 0)
        for part in (parts.head, parts.body, parts.tail):
            part.eval()
        with torch.no_grad():
            logits = parts.tail(parts.body(parts.head(torch.rand(2, 3, 32, 32))))
        assert logits.shape == (2, 5), (h, t)


@pytest.mark.parametrize("name", SPLIT_NETWORKS)
def test_where_it_is_cut_changes_nothing_about_the_network(name):
    counts = set()
    for h, t in (cuts(name)[0], cuts(name)[-1]):
        parts = make_parts(SPLIT_NETWORKS[name](h=h, t=t, **NARROW[name]), TASK, 0)
        modules = (parts.head, parts.body, parts.tail)
        counts.add(sum(p.numel() for module in modules for p in module.parameters()))
    assert len(counts) == 1


@pytest.mark.parametrize("network", [SmallResNet(h=1, t=3), SmallResNet(h=0), SmallResNet(t=0)])
def test_a_cut_that_leaves_a_part_empty_is_refused(network):
    with pytest.raises(SettingsError, match="4 units"):
        make_parts(network, TASK, 0)


@pytest.mark.parametrize(("pool", "shape"), [(True, (64, 16, 16)), (False, (64, 32, 32))])
def test_resnet18_sends_what_the_paper_says(pool, shape):
    assert feature_shape(make_parts(ResNet18(pool=pool), TASK, 0).head, TASK) == shape


def test_resnet18_and_vgg16_have_their_published_numbers_of_layers():
    def layers(network):
        parts = make_parts(network, TASK, 0)
        modules = [m for part in (parts.head, parts.body, parts.tail) for m in part.modules()]
        kinds = (torch.nn.Conv2d, torch.nn.Linear)
        return sum(isinstance(m, kinds) and getattr(m, "kernel_size", 0) != (1, 1) for m in modules)

    assert layers(ResNet18(width=4)) == 18
    assert layers(Vgg16(width=4)) == 16


@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_tail_takes_the_answers_of_several_bodies(t):
    network = ResNet18(width=4, t=t)
    one, four = make_parts(network, TASK, 0), make_parts(network, TASK, 0, copies=4)
    answer = one.body(one.head(torch.rand(2, 3, 32, 32)))
    assert four.tail(torch.cat([answer] * 4, dim=1)).shape == (2, 5)


def test_the_seed_decides_the_weights_and_the_global_generator_stays():
    before = torch.random.get_rng_state()
    first, again, other = (make_parts(SmallResNet(width=4), TASK, s).body for s in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = list(zip(first.parameters(), again.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any(not torch.equal(a, c) for a, _, c in pairs)


def test_vgg16_sends_maps_and_no_vectors():
    with pytest.raises(SettingsError, match="h must be at most 13; got 14"):
        make_parts(Vgg16(h=14, width=4), TASK, 0)


def test_vgg16_refuses_images_that_it_would_halve_to_nothing():
    with pytest.raises(SettingsError, match="32 pixels"):
        Vgg16().units(3, (16, 16), 10)


def test_a_channel_that_is_the_same_in_all_images_is_not_divided_by_zero(digits):
    images = digits[0].images.clone()
    images[:, 1] = 0.3
    task = task_of(replace(digits[0], images=images))
    assert task.std[1] == 1.0
    assert task.std[0] == pytest.approx(digits[0].images[:, 0].std().item(), rel=1e-6)
    (standardise,) = task.entrance()
    assert standardise(images).isfinite().all()


def system(bodies, selector):
    return SplitSystem(
        head=nn.Conv2d(3, 2, 3, padding=1, bias=False),
        noise=FeatureNoise(torch.zeros(2, 8, 8)),
        bodies=[nn.Sequential(nn.Flatten(), nn.Linear(128, 5)) for _ in range(bodies)],
        selector=torch.tensor(selector),
        tail=nn.Linear(5 * bodies, 3),
    )


def test_a_body_that_is_not_selected_changes_nothing():
    whole = system(3, [0.5, 0.0, 0.5])
    images = torch.rand(4, 3, 8, 8)
    before = whole(images)
    whole.bodies[1][1].weight.data.fill_(7.0)
    assert torch.equal(before, whole(images))
    whole.bodies[0][1].weight.data.fill_(7.0)
    assert not torch.equal(before, whole(images))


def test_the_cost_counts_every_body_and_what_crosses():
    one, three = (cost_of(system(n, [1 / n] * n), torch.rand(1, 3, 8, 8)) for n in (1, 3))
    assert one.server == 2 * 128 * 5
    assert three.server == 3 * one.server
    assert one.sent == three.sent == 4 * 2 * 8 * 8
    assert three.returned == 3 * one.returned == 3 * 4 * 5
    assert one.client == 2 * (2 * 3 * 9 * 64 + 5 * 3)
