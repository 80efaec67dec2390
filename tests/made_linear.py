"""Small networks of convolutions and a fully connected layer, and what leaks from them."""

import torch
from torch import nn
from torch.nn import functional as F

from semsim.targets.lenet import start_uniform
from semsim.targets.model import TargetModel
from semsim.types import GradientObservation


class Net:
    """Convolutions given as (kernel, channels, stride, padding), an activation behind each."""

    def __init__(self, plan, activation=nn.Tanh, bias=False):
        self.plan, self.activation, self.bias = plan, activation, bias

    def build(self, channels, size):
        layers = []
        for kernel, outputs, stride, padding in self.plan:
            layers += [
                nn.Conv2d(channels, outputs, kernel, stride, padding, bias=self.bias),
                self.activation(),
            ]
            channels = outputs
        body = nn.Sequential(*layers, nn.Flatten())
        width = body(torch.zeros(1, self.plan_inputs, *size)).shape[1]
        return body, width

    @property
    def plan_inputs(self):
        return 3


def target(architecture, classes="abcde", *, size=(16, 16), std=0.25, seed=0):
    """A network that was never trained, in eval mode; always the same one of a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return TargetModel(
            architecture, list(classes), mean=[0.5] * 3, std=[std] * 3, size=size
        ).eval()


def net(plan, activation=nn.Tanh, *, bias=False, size=(8, 8), seed=0, std=1.0):
    """A model of float64 with weights uniform in ±0.5, that sees images less 0.5."""
    model = target(Net(plan, activation, bias), size=size, std=std, seed=seed)
    start_uniform(model, torch.Generator().manual_seed(seed))
    return model.double()


def seeded(count, first=0):
    """So many generators, each with a seed of its own."""
    return [torch.Generator().manual_seed(first + place) for place in range(count)]


def picture(size=(8, 8), seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(3, *size, generator=rng, dtype=torch.float64)


def leak(model, image, label=1):
    """What a server sees of one image, without the image."""
    logits = model(image.to(model.mean)[None])
    gradients = torch.autograd.grad(
        F.cross_entropy(logits, torch.tensor([label])), tuple(model.parameters())
    )
    return GradientObservation(
        model=model, gradients=gradients, shape=tuple(image.shape), label=label
    )


LEAKING = [(5, 16, 2, 2)] * 2  # two convolutions: a net that leaks
# By what their equations hide: nothing, the second layer's input, the image.
CLOSED = [(3, 6, 1, 0), (3, 9, 1, 0)]
SECOND_OPEN = [(3, 6, 1, 0), (3, 3, 2, 0)]
FIRST_OPEN = [(3, 1, 1, 0), (3, 6, 1, 0)]
