import gc
import weakref

import pytest
import torch
from torch import nn

from semsim.attacks import fast_gradients
from semsim.attacks.batch_norm import batch_norm_mode
from semsim.attacks.descent.distance import FLOOR, GradientDistance, distance_of_each
from semsim.attacks.fast_gradients import (
    gradient_of_each,
    parameter_gradients,
    products_of_each,
)
from semsim.attacks.fast_gradients.plan import plan_for, plan_of
from semsim.attacks.fast_gradients.surrogate_curvature import lent_curvature
from semsim.targets.convnet import ConvNet8, SmallCNN
from semsim.targets.model import TargetModel
from semsim.targets.resnet import ResNet20x4


class Overwriting:
    """A net that no plan knows: a grouped convolution, group norm, and in-place activations."""

    def build(self, channels, size):
        return nn.Sequential(
            nn.Conv2d(channels, 6, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(6, 6, 3, padding=1, groups=2),
            nn.GroupNorm(3, 6),
            nn.Flatten(),
        ), 6 * size[0] * size[1]


class LayerNormed:
    """A net that `torch.func.vmap` differentiates wrongly."""

    def build(self, channels, size):
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3, padding=1), nn.LayerNorm(size[1]), nn.Tanh(), nn.Flatten()
        ), 4 * size[0] * size[1]


class Normed(nn.Module):
    """Layer norm as a function, and instance norm, with weights of their own."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True)
        self.weight, self.bias = nn.Parameter(torch.rand(4) + 1), nn.Parameter(torch.rand(4))
        self.head = nn.Sequential(nn.Tanh(), nn.Flatten(), nn.Linear(144, 5))

    def forward(self, images):
        rows = nn.functional.layer_norm(self.conv(images).movedim(1, -1), (4,), self.weight)
        rows = nn.functional.layer_norm(rows.tanh(), (4,), self.weight, self.bias, 0.1)
        return self.head(self.norm(rows.movedim(-1, 1).contiguous()))


def hooked():
    """Layers that do more than their kind does, since something hangs on them."""
    made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 5))
    made[1].register_forward_hook(lambda layer, given, made: 2 * made)
    return made


def spectral():
    """A layer whose weight is made of parameters anew before it runs."""
    made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 5))
    nn.utils.spectral_norm(made[3])
    return made


class Mixed:
    """Layers of every kind that other nets here lack: pools, strides, Softplus, leaky slopes."""

    def build(self, channels, size):
        return nn.Sequential(
            nn.Conv2d(channels, 4, (3, 5), stride=(1, 2), padding=(0, 2)),
            nn.Softplus(beta=2),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(4, 5, 1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(5, 4, 3, padding=1, bias=False),
            nn.Sigmoid(),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(4 * 3 * 2, 7),
            nn.SiLU(),
        ), 7


def target(architecture, size=(8, 8)):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TargetModel(
            architecture, ["a", "b", "c", "d"], mean=[0.5] * 3, std=[0.2, 0.3, 0.4], size=size
        )
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):  # as after training, not at their defaults
                nn.init.normal_(layer.running_mean, std=0.3)
                nn.init.uniform_(layer.running_var, 0.5, 2)
                nn.init.uniform_(layer.weight, 0.5, 2)
                nn.init.normal_(layer.bias)
    return model.eval().double()


NETS = {
    "small-relu": SmallCNN(width=3),
    "small-tanh": SmallCNN(width=3, activation="tanh"),
    "wide": SmallCNN(width=13, activation="tanh"),  # its convolutions go the way of large ones
    "resnet": ResNet20x4(width=2),
    "mixed": Mixed(),
    "overwriting": Overwriting(),
    "layer-normed": LayerNormed(),
}
PLANNED = {"small-relu", "small-tanh", "wide", "resnet", "mixed"}
RNG = torch.Generator().manual_seed(0)
IMAGES = torch.rand(3, 3, 8, 8, generator=RNG, dtype=torch.float64)
LABELS = torch.tensor([2, 0, 2])


def one_by_one(model, images):
    alone = [
        parameter_gradients(model, images[i : i + 1], LABELS[i : i + 1]) for i in range(len(images))
    ]
    return tuple(torch.stack(each) for each in zip(*alone, strict=True))


@pytest.mark.parametrize("name", NETS)
def test_gradients_of_each_are_those_of_one_by_one(name):
    model = target(NETS[name])
    assert (plan_of(model) is not None) == (name in PLANNED)
    found = gradient_of_each(model, IMAGES, LABELS)
    for own, expected, parameter in zip(
        found, one_by_one(model, IMAGES), model.parameters(), strict=True
    ):
        assert own.shape == (3, *parameter.shape)
        assert torch.allclose(own, expected, rtol=1e-9, atol=1e-11)
        assert parameter.grad is None


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("count", [1, 3])
def test_their_slope_by_the_images_is_that_of_automatic_differentiation(name, count):
    model = target(NETS[name])
    images, labels = IMAGES[:count].clone().requires_grad_(True), LABELS[:count]
    rng = torch.Generator().manual_seed(1)
    along = [
        torch.randn(count, *p.shape, generator=rng, dtype=torch.float64) for p in model.parameters()
    ]

    def slope(gradients):
        # Squared, so that the weight on each entry depends on the gradient, as in a distance.
        value = sum((a * g * g).sum() for a, g in zip(along, gradients, strict=True))
        return torch.autograd.grad(value, images)[0]

    found = slope(gradient_of_each(model, images, labels))
    expected = slope(one_by_one(model, images))
    assert torch.allclose(found, expected, rtol=1e-8, atol=1e-10 * expected.abs().max())


@pytest.mark.parametrize("name", sorted(PLANNED))
def test_what_one_step_needs_is_free_before_the_next(monkeypatch, name):
    runs = []

    class Watched(fast_gradients.Passes):
        def __init__(self, *given):
            super().__init__(*given)
            runs.append(weakref.ref(self))

    monkeypatch.setattr(fast_gradients, "Passes", Watched)
    images = IMAGES.clone().requires_grad_(True)
    found = gradient_of_each(target(NETS[name]), images, LABELS)
    slope = torch.autograd.grad(sum(each.square().sum() for each in found), images)
    assert runs[0]() is not None
    del found, slope
    targets = targets_of(target(NETS[name]), len(IMAGES))
    found = distance_to(targets, target(NETS[name]), images, "cosine")
    slope = torch.autograd.grad(found.sum(), images)
    assert runs[1]() is not None
    del found, slope
    assert [one() for one in runs] == [None, None]


@pytest.mark.parametrize("name", ["small-relu", "resnet", "mixed"])
def test_a_model_that_was_attacked_is_not_kept(name):
    model = target(NETS[name])
    assert plan_of(model) is not None
    gradient_of_each(model, IMAGES, LABELS)
    known = weakref.ref(model)
    del model
    gc.collect()
    assert known() is None


class Twice(nn.Module):
    """A net whose middle layer is used twice."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3 * 8 * 8, 3 * 8 * 8), nn.Linear(3 * 8 * 8, 4)
        self.bend = nn.Tanh()

    def forward(self, images):
        return self.head(self.body(self.bend(self.body(torch.flatten(images, 1)))))


def targets_of(model, count):
    rng = torch.Generator().manual_seed(2)
    gradients = [
        torch.randn(count, *p.shape, generator=rng, dtype=torch.float64) for p in model.parameters()
    ]
    return tuple(gradients)


def distance_to(targets, model, images, kind, **how):
    labels = LABELS[: len(images)]
    given = {"model": model, "leaked": targets, "labels": labels, "kind": kind}
    return GradientDistance(**given, **how)(images)


@pytest.mark.parametrize("name", [*NETS, "twice"])
@pytest.mark.parametrize("distance", ["cosine", "cosine-per-layer"])
@pytest.mark.parametrize("count", [1, 3])
def test_the_cosine_without_gradients_is_that_of_the_gradients(name, distance, count):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Twice().double() if name == "twice" else target(NETS[name])
    images, targets = IMAGES[:count].clone().requires_grad_(True), targets_of(model, count)
    found = distance_to(targets, model, images, distance)
    expected = distance_of_each(one_by_one(model, images), targets, distance)
    assert torch.allclose(found, expected, rtol=1e-9)
    weights = torch.arange(1.0, 1 + count, dtype=torch.float64)
    slopes = [torch.autograd.grad((weights * d).sum(), images)[0] for d in (found, expected)]
    assert torch.allclose(*slopes, rtol=1e-8, atol=1e-10 * slopes[1].abs().max())


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_an_image_hardly_moved_is_hardly_away_by_cosine_per_layer_under_its_own_statistics(
    activation,
):
    model = target(ConvNet8(width=8, activation=activation), size=(32, 32)).float()
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    seen = gradient_of_each(model, images, LABELS[:2], batch_norm="train")
    # The biases before batch norm have no gradient in truth.
    lengths = torch.stack([each.flatten(1).norm(dim=1) for each in seen], dim=1)
    assert ((lengths > 0) & (lengths < FLOOR * lengths.norm(dim=1, keepdim=True))).sum() >= 8
    asked = model, images + 1e-6, "cosine-per-layer"
    assert distance_to(seen, *asked, batch_norm="train").max() < 1e-3


@pytest.mark.parametrize("name", sorted(PLANNED - {"mixed"}))
@pytest.mark.parametrize("batch_norm", ["eval", "train"])
@pytest.mark.parametrize("distance", ["cosine-per-layer", "cosine"])
def test_with_a_tensor_below_the_floor_all_ways_agree(name, batch_norm, distance):
    model = target(NETS[name])
    targets = targets_of(model, 3)
    for place in (1, 3):
        targets[place].mul_(1e-8)
    images = IMAGES.clone().requires_grad_(True)
    found = distance_to(targets, model, images, distance, batch_norm=batch_norm)
    alone = [
        cosine_of_one(model, images[i : i + 1], targets, i, distance, batch_norm) for i in range(3)
    ]
    expected = torch.stack(alone)
    assert torch.allclose(found, expected, rtol=1e-9)
    slopes = [torch.autograd.grad(d.sum(), images)[0] for d in (found, expected)]
    assert torch.allclose(*slopes, rtol=1e-8, atol=1e-10 * slopes[1].abs().max())


def cosine_of_one(model, image, targets, place, distance, batch_norm):
    """The distance written out for one image, by automatic differentiation alone."""
    with batch_norm_mode(model, batch_norm):
        found = parameter_gradients(model, image, LABELS[place : place + 1])
    wanted = [each[place] for each in targets]
    if distance == "cosine":
        dot = sum((f * w).sum() for f, w in zip(found, wanted, strict=True))
        return (
            1
            - dot
            / (sum(f.square().sum() for f in found) * sum(w.square().sum() for w in wanted)).sqrt()
        )
    whole, own = (sum(each.square().sum() for each in g).sqrt() for g in (wanted, found))
    return torch.stack(
        [
            1 - (f * w).sum() / (f.norm().maximum(1e-6 * own) * w.norm())
            for f, w in zip(found, wanted, strict=True)
            if w.norm() >= 1e-6 * whole
        ]
    ).mean()


@pytest.mark.parametrize("name", ["resnet", "mixed", "overwriting"])
@pytest.mark.parametrize("batch_norm", ["eval", "train"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_model_is_left_as_it_was_found(name, batch_norm, count):
    asked = IMAGES[:count], LABELS[:count]
    model = target(NETS[name])
    how = {"batch_norm": batch_norm}
    expected = gradient_of_each(model, *asked, **how)
    model.train()
    next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d)).eval()
    modes = [layer.training for layer in model.modules()]
    state = {key: value.clone() for key, value in model.state_dict().items()}
    found = gradient_of_each(model, *asked, **how)
    assert [layer.training for layer in model.modules()] == modes
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert all(torch.equal(*both) for both in zip(found, expected, strict=True))


def test_only_a_layer_that_is_used_twice_is_shared():
    assert plan_of(Twice()).shares
    assert not plan_of(target(NETS["resnet"])).shares


@pytest.mark.parametrize("name", ["small-tanh", "resnet"])
def test_images_given_together_do_not_mix_under_their_own_statistics(name):
    model = target(NETS[name])
    found = gradient_of_each(model, IMAGES, LABELS, batch_norm="train")
    model.train()
    for place in range(3):
        state = {key: value.clone() for key, value in model.state_dict().items()}
        loss = nn.functional.cross_entropy(
            model(IMAGES[place : place + 1]), LABELS[place : place + 1]
        )
        expected = torch.autograd.grad(loss, tuple(model.parameters()))
        model.load_state_dict(state)
        for own, wanted in zip(found, expected, strict=True):
            assert torch.allclose(own[place], wanted, rtol=1e-6, atol=1e-8)


class Spread(nn.Module):
    """What a layer makes, and to each place of it the mean over all places."""

    def __init__(self):
        super().__init__()
        self.conv, self.mean = nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d([1, 1])
        self.whole = nn.Conv2d(3, 4, 8)
        self.head = nn.Sequential(nn.Tanh(), nn.Flatten(), nn.Linear(144, 5))

    def forward(self, images):
        features = self.conv(images)
        return self.head(self.whole(images) + (features + self.mean(features)))


class Coloured(nn.Module):
    """Grey images that are normalised as if they had three colours."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.3, 0.4, 0.5]).view(1, 3, 1, 1))
        self.head = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 5))
        self.before = nn.Conv2d(3, 1, 1)

    def forward(self, images):
        return self.head(self.before(images) - self.mean)


class Wasteful(nn.Module):
    """It computes what nobody asks for, before its logits and after."""

    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 4, 3), nn.Softplus(beta=2, threshold=0.1)
        self.flat, self.head = nn.Flatten(), nn.Linear(144, 5)

    def forward(self, images):
        self.head(self.flat(self.conv(images)))
        features = self.flat(self.act(self.conv(images)))
        logits = self.head(features)
        self.act(features)
        return logits


def rows():
    """A linear layer over each line of a picture."""
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Flatten(), nn.Linear(192, 5))


@pytest.mark.parametrize("make", [Spread, Coloured, Wasteful, rows, Normed, hooked, spectral])
@pytest.mark.parametrize("count", [1, 3])
def test_layers_of_unusual_shapes_and_uses_have_exact_gradients(make, count):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make().double().eval()
    images, labels = IMAGES[:count].clone().requires_grad_(), LABELS[:count]
    found = gradient_of_each(model, images, labels)
    alone = map(parameter_gradients, [model] * count, images.split(1), labels.split(1))
    expected = [torch.stack(each) for each in zip(*alone, strict=True)]
    slopes = []
    for side in (found, expected):
        total = sum(one.square().sum() for one in side)
        slopes += torch.autograd.grad(total, images, retain_graph=True)
    torch.testing.assert_close(found, tuple(expected))
    torch.testing.assert_close(*slopes)
    dots, _ = products_of_each(model, images, labels, found, joint=True)
    total = sum(one.detach().flatten(1).square().sum(1) for one in expected)
    torch.testing.assert_close(dots.detach().sum(1), total)


def test_what_nobody_asks_for_is_no_reason_against_a_plan():
    assert plan_of(Wasteful().eval()) is not None


def test_a_pool_whose_size_is_a_list_has_a_plan():
    assert plan_of(nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d([1, 1]))) is not None


@pytest.mark.parametrize("trained", [False, True])
def test_a_plan_is_of_eval_mode_in_whatever_mode_a_model_is(trained):
    model = target(NETS["resnet"])
    assert plan_for(model.train(trained), IMAGES, LABELS) is not None
    assert model.training == trained


def test_the_plan_follows_the_weights():
    model = target(NETS["small-tanh"])
    before = gradient_of_each(model, IMAGES, LABELS)
    with torch.no_grad():
        model.head.weight.mul_(2)
    after = gradient_of_each(model, IMAGES, LABELS)
    expected = one_by_one(model, IMAGES)
    assert not torch.allclose(before[0], after[0])
    assert torch.allclose(after[0], expected[0], rtol=1e-9, atol=1e-11)


def test_labels_may_be_probabilities():
    model = target(NETS["small-tanh"])
    soft = nn.functional.one_hot(LABELS, 4).double()
    for found, expected in zip(
        gradient_of_each(model, IMAGES, soft),
        one_by_one(model, IMAGES),
        strict=True,
    ):
        assert torch.allclose(found, expected, rtol=1e-9, atol=1e-11)


class Bent(torch.autograd.Function):
    """The slope of ReLU, or of its leaky kin, with a curvature written out element by element."""

    @staticmethod
    def forward(ctx, x, below, curvature):
        ctx.save_for_backward(x)
        ctx.share = curvature * (1 - below)
        return (x > 0).to(x.dtype) * (1 - below) + below

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        curvature = torch.empty_like(x)
        for place, one in enumerate(x):
            steepness = 10 / (one - one.mean()).square().mean().sqrt()
            curvature[place] = ctx.share * steepness / 4 / (steepness * one / 2).cosh() ** 2
        return slope * curvature, None, None


class BentRelu(nn.Module):
    """ReLU whose slope is `Bent`: written as a product, whose slopes autograd takes."""

    def __init__(self, below, curvature):
        super().__init__()
        self.below, self.curvature = below, curvature

    def forward(self, x):
        return Kink.apply(x, self.below, self.curvature)


class Kink(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, below, curvature):
        ctx.save_for_backward(x)
        ctx.given = below, curvature
        return nn.functional.leaky_relu(x, below)

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        return slope * Bent.apply(x, *ctx.given), None, None


def bent(model, curvature):
    """`model` with each ReLU, leaky or not, replaced by that of this test."""
    for name, child in list(model.named_children()):
        if isinstance(child, nn.ReLU | nn.LeakyReLU):
            setattr(model, name, BentRelu(getattr(child, "negative_slope", 0.0), curvature))
        else:
            bent(child, curvature)
    return model


class ByFunctions(nn.Module):
    """A net that no plan knows, as its activations are functions, one of each kind."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3 * 8 * 8, 9), nn.Linear(9, 9)
        self.third, self.head = nn.Linear(9, 9), nn.Linear(9, 4)

    def forward(self, images):
        y = nn.functional.relu(self.first(images.flatten(1)), inplace=True)
        y = nn.functional.leaky_relu(self.second(y), 0.2)
        return self.head(torch.relu(self.third(y)))


class ByModules(ByFunctions):
    """The same net in modules."""

    def __init__(self):
        super().__init__()
        self.bends = nn.ModuleList([nn.ReLU(), nn.LeakyReLU(0.2), nn.ReLU()])

    def forward(self, images):
        y = self.bends[0](self.first(torch.flatten(images, 1)))
        return self.head(self.bends[2](self.third(self.bends[1](self.second(y)))))


class TwiceKinked(Twice):
    def __init__(self):
        super().__init__()
        self.bend = nn.ReLU()


def made(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        alone = {"functions": ByFunctions, "modules": ByModules, "twice": TwiceKinked}
        return alone[name]().double().eval() if name in alone else target(NETS[name])


LENT = {"small-relu", "resnet", "mixed", "overwriting", "functions", "modules", "twice"}


@pytest.mark.parametrize("name", sorted(LENT))
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_a_lent_curvature_is_in_the_slope_and_in_nothing_else(name, count, distance):
    model, targets = made(name), targets_of(made(name), count)
    reference = bent(made("modules" if name == "functions" else name), 0.3)
    images = IMAGES[:count].clone().requires_grad_(True)

    def of(curvature):
        return distance_to(targets, model, images, distance, curvature=curvature)

    expected = distance_of_each(one_by_one(reference, images), targets, distance)
    lent, plain = of(0.3), of(0.0)
    assert torch.equal(lent, plain)
    assert torch.allclose(lent, expected, rtol=1e-9)
    slopes = [torch.autograd.grad(d.sum(), images)[0] for d in (lent, expected, plain)]
    assert torch.allclose(slopes[0], slopes[1], rtol=1e-8, atol=1e-10 * slopes[1].abs().max())
    assert not torch.allclose(slopes[0], slopes[2], rtol=1e-2)


def test_a_lent_curvature_is_there_under_own_statistics_too():
    model, targets = target(NETS["resnet"]), targets_of(target(NETS["resnet"]), 3)
    images = IMAGES.clone().requires_grad_(True)
    slopes = []
    for curvature in (0.0, 0.3):
        given = {"batch_norm": "train", "curvature": curvature}
        found = distance_to(targets, model, images, "cosine", **given)
        slopes.append(torch.autograd.grad(found.sum(), images)[0])
    assert not torch.allclose(*slopes, rtol=1e-2)


def test_an_image_whose_units_are_all_equal_is_lent_nothing():
    x = torch.stack([torch.zeros(2, 2), torch.tensor([[0.0, 1.0], [2.0, 3.0]])])
    found = lent_curvature(x, 4.0)
    assert torch.equal(found[0], torch.zeros(2, 2))
    assert found[1, 0, 0] == found[1].max() > 0


def test_a_lent_curvature_follows_the_unit_of_each_image_alone():
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = lent_curvature(x, 0.5)
    scaled = lent_curvature(torch.stack([x[0], 8 * x[1]]), 0.5)
    assert torch.allclose(scaled[0], found[0])
    assert torch.allclose(scaled[1], found[1] / 8)
    # Its integral over x is what the slope is taken to rise by.
    fine = torch.linspace(-1, 1, 20_001, dtype=torch.float64)[None]
    rise = torch.trapezoid(lent_curvature(fine, 0.5)[0], fine[0])
    assert rise.item() == pytest.approx(0.5, abs=1e-5)
