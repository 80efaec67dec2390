import torch
from torch import nn

from semsim.systems.split.networks import FeatureNoise, SplitSystem
from semsim.systems.split.run import cost_of


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
