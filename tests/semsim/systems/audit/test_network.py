"""Networks as people write them, read step by step as layers; and one gradient of them."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from semsim.attacks.linear.chain import activation_of
from semsim.attacks.linear.rank import Convolution
from semsim.base.errors import SettingsError
from semsim.systems.audit.network import leaked_layers, network_of, read_network, steps_of
from semsim.systems.audit.security_index import (
    CIFAR,
    CNN3,
    FullyConnected,
    Pooling,
    security_index,
    square,
)


class Functional(nn.Module):
    """Much of it in `forward`, as in many tutorials."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 5, stride=2, padding=2)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, padding="same", groups=2)
        self.end = nn.Linear(6 * 4 * 4, 10)

    def forward(self, images):
        x = F.relu(self.norm(self.first((images - 0.5) / 0.25)))
        x = torch.tanh(self.second(F.max_pool2d(x, 2)))
        x = F.adaptive_avg_pool2d(x, 4)
        return self.end(x.view(x.size(0), -1))


class Shortcut(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 3, 3, padding=1)
        self.end = nn.Linear(3072, 10)

    def forward(self, images):
        return self.end((images + self.one(images)).flatten(1))


class Deciding(Shortcut):
    def forward(self, images):
        return self.end(images.flatten(1)) if images.sum() > 0 else images


class Odd(Shortcut):
    def forward(self, images):
        return F.normalize(self.end(self.one(images).flatten(1)))


class Several(Shortcut):
    def forward(self, images):
        maps = self.one(images)
        return self.end(maps.flatten(1)), maps


class Steps(nn.Module):
    """One convolution between two steps that are given."""

    def __init__(self, before, behind, channels, act):
        super().__init__()
        self.before, self.behind, self.act = before, behind, act
        self.one = nn.Conv2d(channels, 3, 3)
        self.end = nn.LazyLinear(10)
        self.register_buffer("mask", torch.tensor([0.0, 1.0, 1.0])[:, None, None])

    def forward(self, images):
        maps = torch.tanh(self.one(self.before(images)))
        return self.end(self.behind(self, maps).flatten(1))


def steps(before=lambda x: x, behind=lambda model, x: x, channels=3, act=None):
    model = Steps(before, behind, channels, act)
    model(torch.zeros(1, *CIFAR))
    return model


class Unflattened(nn.Module):
    def __init__(self):
        super().__init__()
        self.end = nn.Linear(32, 10)

    def forward(self, images):
        return self.end(images)


def test_steps_inside_forward_are_read():
    found = read_network(Functional(), CIFAR)
    assert found.layers == (
        replace(square(5, 4, 2, 2), cut=True),
        Pooling(),
        Convolution(channels=6, kernel=(3, 3), padding=(1, 1), groups=2),
        Pooling(size=(4, 4)),
        FullyConnected(outputs=10),
    )
    assert found.names == ("first", "second")
    relu, grouped, pools, norm = found.notes
    assert grouped.startswith("Conv2d: c(M) holds with it, but")
    assert relu.startswith("relu: cannot be undone")
    assert pools.startswith("max_pool2d, adaptive_avg_pool2d: ".replace("_", ""))
    assert norm.startswith("BatchNorm2d: ")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (steps(lambda x: x.view(-1, 12, 16, 16), channels=12), "makes 12×16×16 of 3×32×32"),
        (steps(behind=lambda model, x: x.flatten()[None]), "makes one vector for all images"),
        (steps(lambda x: x[:, :, :16, :16]), "does not know getitem"),
        (steps(behind=lambda model, x: x * x), "mul .mul. is not arithmetic of a map"),
        (steps(behind=lambda model, x: x * model.mask), "is not arithmetic of a map"),
        (steps(behind=lambda model, x: 1 / x), "truediv .* is not arithmetic of a map"),
        (steps(behind=lambda model, x: x.flatten(2)), "makes 3×900 of 3×30×30"),
        (steps(behind=lambda model, x: model.one(x)), "one is used 2 times"),
        (steps(behind=lambda model, x: F.conv2d(x, model.one.weight)), "use nn.Conv2d itself"),
    ],
)
def test_what_is_no_chain_of_layers_is_refused_by_name(model, says):
    with pytest.raises(SettingsError, match=says):
        read_network(model, CIFAR)


KNOWN = [nn.Tanh(), nn.Sigmoid(), nn.LeakyReLU(0.2), nn.Identity()]
OTHERS = [nn.ELU(), nn.SELU(), nn.CELU(), nn.PReLU(), nn.Softplus(), nn.LogSigmoid(), nn.Softsign()]
OTHERS += [nn.Dropout()]
LOSSY = [nn.ReLU(), nn.ReLU6(), nn.GELU(), nn.SiLU(), nn.Hardtanh(), nn.LeakyReLU(0.0)]
LOSSY += [nn.PReLU(init=0.0), nn.PReLU(init=-1.0), nn.ELU(0.0), nn.LeakyReLU(-0.1)]


@pytest.mark.parametrize("activation", [*KNOWN, *OTHERS, *LOSSY])
def test_an_activation_is_noted_unless_the_attacks_undo_it(activation):
    model = steps(behind=lambda model, x: model.act(x), act=activation)
    notes = read_network(model, CIFAR).notes
    try:
        activation_of(activation)
    except SettingsError:
        (note,) = notes
        said = "cannot be undone everywhere" if activation in LOSSY else "c(M) holds with it, but"
        assert note.startswith(f"{type(activation).__name__}: {said}")
    else:
        assert notes == ()


@pytest.mark.parametrize(
    ("called", "noted"),
    [
        (lambda x: F.leaky_relu(x, 0.3), False),
        (lambda x: F.leaky_relu(x, 0.0), True),
        (lambda x: F.leaky_relu(x, negative_slope=-1.0), True),
        (lambda x: torch.sigmoid(x), False),
    ],
)
def test_slopes_of_functions_are_looked_at(called, noted):
    model = steps(behind=lambda model, x: called(x))
    assert bool(read_network(model, CIFAR).notes) == noted


@pytest.mark.parametrize(
    "unusual", [{"groups": 3}, {"dilation": 2, "padding": 1}, {"padding": "same"}, {}]
)
def test_convolutions_that_the_attacks_refuse_are_noted(unusual):
    model = steps(behind=lambda model, x: model.act(x), act=nn.Conv2d(3, 3, 3, **unusual))
    said = "Conv2d: c(M) holds with it, but the attacks rgap and copa do not take it."
    assert read_network(model, CIFAR).notes == ((said,) if unusual else ())


def test_scaling_by_constants_is_passed_over():
    model = steps(lambda x: 2 * (x - 0.5), lambda model, x: (x - model.mask) / 3)
    found = read_network(model, CIFAR)
    assert found.layers == (square(3, 3, 1), FullyConnected(outputs=10))


@pytest.mark.parametrize("variant", CNN3)
def test_a_network_made_of_layers_is_read_as_them(variant):
    found = read_network(network_of(CNN3[variant], CIFAR), CIFAR)
    assert found.layers == CNN3[variant]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Shortcut, "branches at add"),
        (Several, "several results are not"),
        (Deciding, "must not decide"),
        (Odd, "does not know normalize"),
        (Unflattened, "flatten it first"),
    ],
)
def test_what_cannot_be_read_is_named(kind, says):
    with pytest.raises(SettingsError, match=says):
        read_network(kind(), CIFAR)


def test_a_wrong_input_size_is_told():
    with pytest.raises(SettingsError, match="does not take images of 3×16×16") as told:
        read_network(network_of(CNN3[1], CIFAR), (3, 16, 16))
    assert "\n" not in str(told.value)


def test_the_model_is_left_as_it_was():
    model = Functional().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    network = read_network(model, CIFAR)
    leaked_layers(model, network.names, CIFAR, torch.Generator().manual_seed(0))
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def small(*behind):
    """A convolution and what is behind it, weights drawn with one seed."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(1, 2, 3), *behind, nn.Flatten(), nn.Linear(2 * 7 * 7, 3))


def slope_of(model):
    rng = torch.Generator().manual_seed(0)
    (leaked,) = leaked_layers(model, ("0",), (1, 9, 9), rng)
    return leaked.slope


def test_frozen_weights_have_slopes_too():
    frozen = small(nn.Tanh()).requires_grad_(False)
    torch.testing.assert_close(slope_of(frozen), slope_of(small(nn.Tanh())))
    assert not frozen[0].weight.requires_grad


def test_an_activation_in_place_does_not_change_what_slope_is_meant():
    found = slope_of(small(nn.ELU(inplace=True)))
    torch.testing.assert_close(found, slope_of(small(nn.ELU())))


def test_a_network_without_a_convolution_has_no_slopes():
    rng = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 2))
    assert leaked_layers(model, (), (1, 3, 3), rng) == []


class Detached(Shortcut):
    def forward(self, images):
        return self.end(self.one(images).detach().flatten(1))


def test_a_network_without_a_gradient_says_why():
    rng = torch.Generator().manual_seed(0)
    with pytest.raises(SettingsError, match=r"has no gradient to check: .* neither detach"):
        leaked_layers(Detached(), ("one",), CIFAR, rng)


def test_slopes_are_those_of_the_loss():
    """The weight's gradient follows from ∂J/∂Z and the image (Eq. 1b)."""
    layers = (square(3, 4, 2), FullyConnected(outputs=3))
    model = network_of(layers, (2, 9, 9))
    (leaked,) = leaked_layers(model, ("0",), (2, 9, 9), torch.Generator().manual_seed(5))
    rng = torch.Generator().manual_seed(5)
    image = torch.rand(1, 2, 9, 9, generator=rng, dtype=torch.float64)
    exact = model.double()
    F.cross_entropy(exact(image), torch.tensor([0])).backward()
    found = torch.nn.grad.conv2d_weight(image, leaked.weight.shape, leaked.slope[None], stride=2)
    torch.testing.assert_close(found, exact[0].weight.grad)
    assert security_index(layers, (2, 9, 9)).layers[0].outputs == leaked.slope.shape


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(1, 2, 3)
        self.end = nn.Linear(8, 4)

    def forward(self, images):
        x = F.max_pool2d(self.look(images / 2), kernel_size=2)
        return self.end(x.view(x.size(0), -1))


def test_each_step_has_its_name_its_kind_and_its_shapes():
    found = [(one.name, one.kind, one.inputs, one.outputs) for one in steps_of(Net(), (1, 6, 6))]
    assert found == [
        ("truediv", "truediv", (1, 6, 6), (1, 6, 6)),
        ("look", "conv2d", (1, 6, 6), (2, 4, 4)),
        ("max_pool2d", "maxpool2d", (2, 4, 4), (2, 2, 2)),
        ("view", "view", (2, 2, 2), (8,)),
        ("end", "linear", (8,), (4,)),
    ]


class Fails(Net):
    def forward(self, images):
        raise ValueError("not today.\nNor tomorrow.")


@pytest.mark.parametrize(
    ("model", "shape", "says"),
    [
        (Fails(), (1, 6, 6), "Fails cannot be read: not today. Its forward"),
        (Net(), (1, 9, 9), "Net does not take images of 1×9×9: mat1 and mat2"),
    ],
)
def test_an_error_inside_is_told_in_one_line(model, shape, says):
    with pytest.raises(SettingsError, match=says) as told:
        list(steps_of(model, shape))
    assert "\n" not in str(told.value)
