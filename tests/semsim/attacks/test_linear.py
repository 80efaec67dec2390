import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_linear import CLOSED, FIRST_OPEN, leak, net, picture
from torch import nn
from torch.nn import functional as F
from torch.nn import grad

from semsim.attacks.linear.chain import activation_of, chain_of
from semsim.attacks.linear.equations import Equations
from semsim.attacks.linear.least_squares import Linearised, Search, cgls, gauss_newton
from semsim.attacks.linear.outcome import Inversion, denoised, reconstruction
from semsim.attacks.linear.recursion import invert, known_end, minimum_norm
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import silent
from semsim.papers.copa import METHODS, cnn3_model, linear_rows
from semsim.systems.audit.security_index import CNN3 as LAYERS
from semsim.systems.audit.security_index import security_index
from semsim.targets.model import TargetModel
from semsim.types import LabelledImages


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def solved(matrix, b, **settings):
    return cgls(
        lambda parts: (matrix @ parts[0],),
        lambda parts: (matrix.T @ parts[0],),
        (b,),
        limit=500,
        **settings,
    )


# Least squares


@pytest.mark.parametrize("shape", [(12, 7), (7, 12), (9, 9)])
def test_cgls_finds_the_solution_of_least_norm(shape):
    A, b = random(*shape), random(shape[0], seed=1)
    found = solved(A, b)
    expected = torch.linalg.pinv(A) @ b
    assert torch.allclose(found.solution[0], expected, atol=1e-9)
    left = float((A @ expected - b).norm() / b.norm())
    assert found.residual == pytest.approx(left, abs=1e-9)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("seed", range(0, 30, 3))
def test_cgls_does_not_run_away_where_rank_is_missing(dtype, near, seed):
    low = random(40, 5, seed=seed, dtype=dtype) @ random(5, 30, seed=seed + 1, dtype=dtype)
    b = random(40, seed=seed + 2, dtype=dtype)  # no x explains it
    found = solved(low, b, tolerance=0.0)
    expected = torch.linalg.pinv(low.double(), rtol=1e-6) @ b.double()
    assert found.iterations < 100
    assert (found.solution[0] - expected).norm() < near * expected.norm()


def test_cgls_of_nothing_is_zero():
    found = solved(random(4, 3), torch.zeros(4, dtype=torch.float64))
    assert found.residual == 0
    assert not found.solution[0].any()


def test_gauss_newton_finds_where_a_curved_function_vanishes():
    def at(parts):
        (x,) = parts
        slope = 1 + 3 * x.square()
        return Linearised(
            value=(x + x**3 - 10,),
            forward=lambda move: (slope * move[0],),
            adjoint=lambda pull: (slope * pull[0],),
        )

    told = []
    (x,) = gauss_newton(at, (torch.zeros(1),), Search(steps=30, inner=5), told.append)
    assert float(x) == pytest.approx(2.0, abs=1e-5)  # 2 + 8 = 10
    assert told[-1].done == told[-1].total


# Reading a network


@pytest.mark.parametrize(
    "layer", [nn.Tanh(), nn.Sigmoid(), nn.LeakyReLU(0.2), nn.LeakyReLU(), nn.Identity()]
)
def test_an_activation_is_undone_and_has_the_slope_of_its_layer(layer):
    z = torch.linspace(-4, 4, 41, dtype=torch.float64, requires_grad=True)
    activation = activation_of(layer)
    expected = layer(z)
    (slope,) = torch.autograd.grad(expected.sum(), z)
    assert torch.equal(activation.value(z), expected)
    assert torch.allclose(activation.slope(z), slope)
    assert torch.allclose(activation.inverse(expected), z, atol=1e-9)


@pytest.mark.parametrize("layer", [nn.Tanh(), nn.Sigmoid()])
def test_what_an_activation_never_reaches_counts_as_its_edge(layer):
    found = activation_of(layer).inverse(torch.tensor([-7.0, 7.0]))
    assert found.isfinite().all()
    assert found[0] < -5 < 5 < found[1]


@pytest.mark.parametrize("layer", [nn.ReLU, nn.MaxPool2d, nn.BatchNorm2d, nn.LeakyReLU])
def test_other_layers_are_refused_by_name(layer):
    wrong = {nn.MaxPool2d: (2,), nn.BatchNorm2d: (6,), nn.LeakyReLU: (0.0,)}.get(layer, ())
    model = net(CLOSED)
    seen = leak(model, picture())
    model.body[1] = layer(*wrong)
    with pytest.raises(SettingsError, match=layer.__name__):
        chain_of(seen)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(6, 6, 1, groups=2, bias=False),
        nn.Conv2d(6, 6, 2, dilation=2, bias=False),
        nn.Conv2d(6, 6, 3, padding="same", bias=False),
        nn.Conv2d(6, 6, 3, padding=1, padding_mode="circular", bias=False),
    ],
)
def test_unusual_convolutions_are_refused(layer):
    model = net([(3, 6, 1, 0), (1, 6, 1, 0)])
    seen = leak(model, picture())
    model.body[2] = layer
    with pytest.raises(SettingsError, match="Conv2d"):
        chain_of(seen)


def test_what_is_no_chain_is_refused():
    model = net(CLOSED)
    seen = leak(model, picture())
    with pytest.raises(SettingsError, match="body"):
        chain_of(replace(seen, model=nn.Flatten()))
    model.body[0] = nn.Sequential(nn.Tanh(), model.body[0])
    with pytest.raises(SettingsError, match="follow"):
        chain_of(seen)


def test_an_identity_changes_nothing_wherever_it_stands():
    model = net(CLOSED)
    seen = leak(model, picture())
    before = [stage.activation.name for stage in chain_of(seen).stages]
    model.body[0] = nn.Sequential(nn.Identity(), model.body[0], nn.Identity())
    model.body[1] = nn.Sequential(model.body[1], nn.Identity())
    assert [stage.activation.name for stage in chain_of(seen).stages] == before


def test_a_gradient_that_vanished_or_is_not_finite_is_a_failure():
    seen = leak(net(CLOSED), picture())
    nothing = replace(seen, gradients=tuple(torch.zeros_like(g) for g in seen.gradients))
    with pytest.raises(AttackFailedError, match="zero"):
        known_end(chain_of(nothing), 1)
    with pytest.raises(AttackFailedError, match="finite"):
        chain_of(replace(seen, gradients=tuple(g * math.nan for g in seen.gradients)))


@pytest.mark.parametrize("variant", [1, 2, 3, 4])
def test_what_stages_hide_adds_up_to_the_papers_index(variant):
    seen = leak(cnn3_model(variant, "tanh", 0), picture((32, 32)))
    hidden = [stage.hidden for stage in chain_of(seen).stages]
    index = security_index(LAYERS[variant], (3, 32, 32))
    assert hidden == [*(layer.hidden for layer in index.layers), 0]


# The fully connected end


class Dense:
    """Fully connected layers before the head, without convolutions."""

    def build(self, channels, size):
        layers = [nn.Flatten(), nn.Linear(channels * size[0] * size[1], 30), nn.Tanh()]
        return nn.Sequential(*layers, nn.Linear(30, 20, bias=False), nn.Sigmoid()), 20


def dense_model(head_bias=True):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TargetModel(Dense(), list("abcde"), mean=[0.5] * 3, std=[0.5] * 3, size=(4, 4))
        model.head = nn.Linear(20, 5, bias=head_bias)
    return model.double().eval()


@pytest.mark.parametrize("label", [1, None])
@pytest.mark.parametrize("head_bias", [True, False])
def test_fully_connected_layers_give_the_image_away_in_closed_form(head_bias, label):
    image = picture((4, 4))
    chain = chain_of(leak(dense_model(head_bias), image))
    found = chain.images(invert(chain, label, minimum_norm(1), silent).x)[0]
    # Without a bias the scale of the last slope is searched for, to half of float64's digits.
    assert torch.allclose(found, image, rtol=0, atol=1e-9 if head_bias else 1e-4)


def test_the_last_slope_is_found_without_a_bias_behind_a_sigmoid():
    model = net(CLOSED)
    model.head = nn.Sequential(nn.Linear(model.head.in_features, 5, bias=False), nn.Sigmoid())
    model = model.double()
    seen = leak(model, picture(), label=3)
    slope = torch.linalg.svdvals(seen.gradients[-1])[0]
    end = known_end(chain_of(seen), None)
    z = chain_of(seen).stages[1]
    inside = model.body[:-2](picture()[None] - 0.5)
    assert slope > 0
    assert torch.allclose(end.z + z.shift(), inside, atol=1e-4)


# The equations of a layer


PLANS = [(3, 4, 1, 0), (3, 2, 2, 1), (4, 3, 2, 0), ((2, 3), 3, (3, 1), (1, 2)), (1, 5, 1, 1)]


def equations_of(layer):
    stage = chain_of(leak(net([layer], bias=True, size=(7, 9)), picture((7, 9)))).stages[0]
    slope, output = (random(1, *stage.outputs, seed=seed) for seed in (0, 1))
    return Equations(stage=stage, slope=slope, output=output)


@pytest.mark.parametrize("layer", PLANS)
def test_equations_are_torchs_convolution_its_transpose_and_its_weight_gradient(layer):
    equations = equations_of(layer)
    stage, slope = equations.stage, equations.slope
    for seed in (2, 3):  # the second time in the buffers of the first
        x = random(1, 3, 7, 9, seed=seed)
        output, gradient = equations.forward(x)
        weight = grad.conv2d_weight(x, stage.weight.shape, slope, stage.stride, stage.padding)
        plain = F.conv2d(x, stage.weight, None, stage.stride, stage.padding)
        assert torch.allclose(output.view_as(plain), plain, atol=1e-12)
        by_tap = weight.flatten(2).transpose(1, 2).reshape(gradient.shape)
        assert torch.allclose(gradient, by_tap, atol=1e-12)
        pulled = equations.adjoint((slope[0].flatten(1), torch.zeros_like(gradient)))
        back = grad.conv2d_input(x.shape, stage.weight, slope, stage.stride, stage.padding)
        assert torch.allclose(pulled, back, atol=1e-12)


@pytest.mark.parametrize("as_weighted", [Equations.balanced, Equations.orthogonal, lambda it: it])
@pytest.mark.parametrize("layer", PLANS)
def test_adjoint_is_the_transpose_however_equations_are_weighted(layer, as_weighted):
    equations = as_weighted(equations_of(layer))
    x = random(1, 3, 7, 9, seed=2)
    found = equations.forward(x)
    y = tuple(random(*part.shape, seed=3) for part in found)
    dot = sum(float((a * b).sum()) for a, b in zip(found, y, strict=True))
    assert float((x * equations.adjoint(y)).sum()) == pytest.approx(dot, rel=1e-12)


@pytest.mark.parametrize("as_weighted", [Equations.balanced, Equations.orthogonal])
@pytest.mark.parametrize("layer", PLANS)
def test_weighted_equations_hold_where_they_held_before(layer, as_weighted):
    plain = equations_of(layer)
    x = random(1, 3, 7, 9, seed=2)
    stage = plain.stage
    output, weight = stage.apply(x), stage.gradient(x, plain.slope)
    true = replace(plain, output=output, stage=replace(stage, weight_gradient=weight))
    assert true.residual(x) < 1e-14
    assert as_weighted(true).residual(x) < 1e-13
    assert as_weighted(true).residual(2 * x) == pytest.approx(1.0)
    assert true.reachable().residual(x) < 1e-14


# Properties of the recursion


@given(
    kernel=st.integers(1, 3),
    channels=st.integers(1, 9),
    stride=st.integers(1, 2),
    padding=st.integers(0, 1),
    activation=st.sampled_from([nn.Tanh, nn.Sigmoid, nn.LeakyReLU]),
    seed=st.integers(0, 9),
)
@settings(max_examples=15)
def test_recovered_inputs_satisfy_their_equations(
    kernel, channels, stride, padding, activation, seed
):
    plan = [(kernel, channels, stride, padding)]
    seen = leak(net(plan, activation, bias=seed % 2 == 0, size=(6, 6), seed=seed), picture((6, 6)))
    chain = chain_of(seen)
    found = invert(chain, None, minimum_norm(2000), silent)
    end = known_end(chain, None)
    stage = chain.stages[0]
    equations = Equations(stage=stage, slope=end.slope, output=end.z - stage.shift())
    for part, target in zip(equations.forward(found.x), equations.target, strict=True):
        assert torch.allclose(part, target, atol=1e-7)
    assert 0 <= stage.hidden <= 3 * 36
    assert found.residuals[0] < 1e-7


# What an attack says of its result


def test_a_solution_farther_from_grey_than_any_picture_is_a_blow_up():
    black = Inversion(image=torch.zeros(3, 4, 4), residuals=(0.1, 0.7, 0.2), solver="recursion")
    assert not black.blew_up
    assert black.residual == 0.7
    assert replace(black, image=black.image - 0.01).blew_up
    assert replace(black, image=black.image * math.nan).blew_up
    assert replace(black, residuals=()).residual == 0


def test_a_reconstruction_is_clamped_and_knows_how_well_it_fits():
    model, image = net(FIRST_OPEN), picture()
    seen = leak(model, image)
    found = reconstruction(seen, Inversion(image=image, residuals=(0.25,), solver="recursion"))
    assert found.image.dtype == torch.float32
    assert found.objective == 0.25
    assert found.residual < 1e-20  # gradients of the image itself, in float64
    assert found.residual < found.grey_residual
    far = reconstruction(
        replace(seen, label=None), Inversion(image=9 * image, residuals=(), solver="recursion")
    )
    assert far.image.max() == 1
    assert far.residual > 0
    with pytest.raises(AttackFailedError):
        reconstruction(seen, Inversion(image=image * math.nan, residuals=(), solver="recursion"))


def test_denoising_smooths_and_without_weight_does_nothing():
    image = picture()
    assert denoised(image, 0.0) is image
    smooth = denoised(image, 0.15)
    assert smooth.shape == image.shape
    assert smooth.std() < 0.7 * image.std()
    assert smooth.mean() == pytest.approx(float(image.mean()), abs=0.01)


def test_rows_hold_every_method_and_grey_is_what_a_grey_image_has():
    images = LabelledImages(
        dataset="made",
        classes=("a", "b"),
        ids=("one",),
        images=picture((32, 32))[None].float(),
        labels=torch.tensor([1]),
    )
    told = []
    rows = linear_rows(images, "leaky-relu", 4, 0, report=told.append)
    assert rows["method"].tolist() == list(METHODS)
    grey = rows.set_index("method").loc["grey"]
    assert grey["mse"] == pytest.approx(float((images.images - 0.5).square().mean()))
    assert (rows["psnr_paper"] - rows["psnr"]).tolist() == pytest.approx([48.1308] * 5, abs=1e-4)
    assert set(rows["class_name"]) == {"b"}
    solved = rows.set_index("method")["equation_residual"]
    assert solved.isna().tolist() == [method == "grey" for method in METHODS]
    assert solved["copa denoised"] == solved["copa"] < solved["copa-prior"] < 0.1
    assert grey["residual"] > 0.5
    assert told[-1].done == told[-1].total == 1
