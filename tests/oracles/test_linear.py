"""Layer-wise inversion against matrices, singular values and automatic differentiation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_linear import CLOSED, FIRST_OPEN, SECOND_OPEN, leak, net, picture
from oracles.dense_linear import dense_recursion, matrices
from torch import nn

from semsim.attacks.image_basis import image_basis
from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.copa import _linearised, has_pull_back
from semsim.attacks.linear.copa_prior import WholeProblem
from semsim.attacks.linear.equations import Equations
from semsim.attacks.linear.least_squares import by_autograd, cgls
from semsim.attacks.linear.recursion import known_end, minimum_norm
from semsim.attacks.linear.rgap import RGap

ODD = [(3, 4, 2, 1), (2, 5, 1, 0)]  # leaves part of both layers open


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def equations_of(model, place, shape=(8, 8)):
    stage = chain_of(leak(model, picture(shape))).stages[place]
    return Equations(
        stage=stage, slope=random(1, *stage.outputs), output=random(1, *stage.outputs, seed=1)
    )


def dense(equations):
    stage = equations.stage
    W, K = matrices(
        stage.weight.numpy(), equations.slope.numpy(), stage.inputs, stage.stride, stage.padding
    )
    return torch.from_numpy(np.concatenate([W, K]))


def rows(equations, parts):
    """What `Equations.forward` gives, in the order of the rows of `dense`."""
    output, gradient = parts
    channels, inputs = equations.stage.weight.shape[:2]
    return torch.cat(
        [output.flatten(), gradient.view(channels, -1, inputs).transpose(1, 2).flatten()]
    )


LAYERS = [(3, 4, 1, 0), (3, 2, 2, 1), ((2, 3), 3, (3, 1), (1, 2))]


@pytest.mark.parametrize("layer", LAYERS)
def test_the_operators_are_the_circulant_matrices_and_their_transposes(layer):
    equations = equations_of(net([layer], size=(7, 9)), 0, (7, 9))
    U = dense(equations)
    x = random(1, 3, 7, 9, seed=2)
    assert torch.allclose(rows(equations, equations.forward(x)), U @ x.flatten(), atol=1e-12)
    y = tuple(random(*part.shape, seed=3) for part in equations.forward(x))
    pulled = U.T @ rows(equations, y)
    assert torch.allclose(equations.adjoint(y).flatten(), pulled, atol=1e-12)


# The last two contradict themselves beyond what is said twice: a border, a channel too many.
@pytest.mark.parametrize("layer", [(3, 3, 2, 0), (2, 2, 1, 0), (3, 4, 2, 1), (1, 4, 1, 0)])
def test_equations_that_contradict_each_other_have_the_matrices_least_squares_solution(layer):
    equations = equations_of(net([layer], size=(7, 9)), 0, (7, 9))
    assert equations.stage.hidden or layer[0] == 1
    U, V = dense(equations), rows(equations, equations.target)
    found = minimum_norm(3000)(equations, None)
    expected = torch.linalg.pinv(U) @ V
    assert torch.allclose(found.unknown.flatten(), expected, atol=1e-8)
    left = float((U @ expected - V).norm() / V.norm())
    assert found.residual == pytest.approx(left, rel=1e-6)
    assert left > 0.01


def test_what_is_reachable_has_the_same_least_squares_solutions_and_no_contradiction():
    equations = equations_of(net([(3, 3, 2, 0)], size=(7, 9)), 0, (7, 9))
    U = dense(equations)
    before, after = (rows(one, one.target) for one in (equations, equations.reachable()))
    assert (before - after).norm() > 0.01 * before.norm()
    assert torch.allclose(U.T @ before, U.T @ after, atol=1e-12)
    assert torch.allclose(U @ (torch.linalg.pinv(U) @ after), after, atol=1e-10)


def singular(equations):
    """Singular values of W and K, as they count, by applying both to every unit vector."""
    shape = (1, *equations.stage.inputs)
    size = torch.Size(shape).numel()
    columns = [equations.forward(one.view(shape)) for one in torch.eye(size, dtype=torch.float64)]
    W, K = (
        torch.stack([part.flatten() for part in parts], 1) for parts in zip(*columns, strict=True)
    )
    return torch.linalg.svdvals(W), torch.linalg.svdvals(K)


def test_weights_of_equations_make_singular_values_alike():
    equations = equations_of(net([(3, 2, 2, 0)], size=(11, 11)), 0, (11, 11))
    W, K = singular(equations.orthogonal())
    assert torch.allclose(K, W.square().mean().sqrt(), rtol=1e-4)
    W, K = singular(equations.balanced())
    assert float(K.square().mean()) == pytest.approx(float(W.square().mean()))
    few = equations_of(net([(3, 2, 2, 0)], size=(7, 7)), 0, (7, 7))  # 18 rows of K, 9 positions
    assert few.orthogonal().mix is None
    assert few.orthogonal().factor == few.balanced().factor


ACTIVATIONS = [nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.Identity]


# With both layers open the first one's equations contradict each other, behind a guessed layer. A
# sigmoid's guess leaves (0, 1), is clamped, and slopes of 1e-16 leave a rank to taste.
@pytest.mark.parametrize(
    ("plan", "activation"),
    [(plan, activation) for plan in (CLOSED, FIRST_OPEN) for activation in ACTIVATIONS]
    + [(SECOND_OPEN, nn.Tanh), (SECOND_OPEN, nn.Identity), (ODD, nn.Tanh), (ODD, nn.LeakyReLU)],
)
def test_rgap_is_the_dense_recursion(plan, activation):
    model = net(plan, activation, bias=plan is ODD, seed=3)
    seen = leak(model, picture())
    found = RGap().inversion(seen)
    layers = list(model.body)
    slow = dense_recursion(layers[0:-1:2], unnamed(layers), (3, 8, 8), model.head, seen.gradients)
    size = max(1.0, float(slow.abs().max()))  # a blow-up is as large here as there
    assert torch.allclose(found.image - 0.5, slow, rtol=0, atol=1e-6 * size)


def unnamed(layers):
    return [None if isinstance(one, nn.Identity) else one for one in layers[1:-1:2]]


def test_the_equations_hold_at_the_truth_and_hide_what_the_rank_says():
    model = net(SECOND_OPEN)
    seen = leak(model, picture())
    chain = chain_of(seen)
    end = known_end(chain, seen.label)
    stage = chain.stages[1]
    truth = chain.stages[0].activation.value(
        chain.stages[0].apply(chain.normalised(picture()[None]))
    )
    equations = Equations(stage=stage, slope=end.slope, output=end.z)
    for found, target in zip(equations.forward(truth), equations.target, strict=True):
        assert torch.allclose(found, target, atol=1e-12)
    U = dense(equations)
    assert stage.hidden == U.shape[1] - int(torch.linalg.matrix_rank(U)) > 0


def test_the_pull_back_constraint_is_that_of_the_singular_vectors():
    model = net(SECOND_OPEN, bias=True)
    chain = chain_of(leak(model, picture()))
    before, stage = chain.stages[:2]
    assert has_pull_back(before)
    equations = Equations(
        stage=stage, slope=random(1, *stage.outputs), output=random(1, *stage.outputs, seed=1)
    )
    z = random(1, *before.outputs, seed=4)
    W = dense(Equations(stage=before, slope=random(1, *before.outputs), output=z))
    W = W[: z.numel()]
    R, values, _ = torch.linalg.svd(W)  # Eq. 15
    rest = R[:, len(values) :]
    g = rest @ (rest.T @ (z - before.shift()).flatten())  # Eq. 18
    linear = _linearised(equations, before, (z, torch.zeros(1, 3, 8, 8, dtype=z.dtype)))
    w = cgls(
        lambda parts: (before.apply(parts[0]),),
        lambda parts: (before.pull(parts[0]),),
        (linear.value[2],),
        limit=500,
    ).solution[0]
    assert torch.allclose((linear.value[2] - before.apply(w)).flatten(), g, atol=1e-9)


def test_products_with_the_jacobian_are_those_of_the_jacobian():
    model = net(SECOND_OPEN, nn.Sigmoid, bias=True)
    image = picture()
    seen = leak(model, image)
    chain = chain_of(seen)
    basis = image_basis((3, 8, 8), spread=0.25, decay=1.0, chroma=(0.3, 0.3))
    problem = WholeProblem(chain=chain, end=known_end(chain, None), basis=basis)
    truth = basis.coefficients(image[None])
    assert all(part.abs().max() < 1e-9 for part in problem.errors(truth))
    place, move = random(1, 3, 8, 8), random(1, 3, 8, 8, seed=1)
    linear = by_autograd(problem.errors, (place,))
    slopes = torch.func.jacrev(problem.errors)(place)
    for part, slope in zip(linear.forward((move,)), slopes, strict=True):
        assert torch.allclose(part.flatten(), slope.flatten(-4).reshape(-1, 192) @ move.flatten())
    y = tuple(random(*part.shape, seed=2) for part in linear.value)
    expected = sum(
        part.flatten() @ slope.flatten(-4).reshape(-1, 192)
        for part, slope in zip(y, slopes, strict=True)
    )
    assert torch.allclose(linear.adjoint(y)[0].flatten(), expected)


def test_a_first_bias_s_gradient_is_an_equation_of_the_whole_too():
    model, image = net(SECOND_OPEN, bias=True), picture()
    seen = leak(model, image)
    weight, bias, *others = seen.gradients
    wrong = replace(seen, gradients=(weight, 3 * bias, *others))
    basis = image_basis((3, 8, 8), spread=0.25, decay=1.0, chroma=(0.3, 0.3))
    chain = chain_of(wrong)
    problem = WholeProblem(chain=chain, end=known_end(chain, None), basis=basis)
    output, second, first = problem.errors(basis.coefficients(image[None]))
    assert max(output.norm(), second.norm()) < 1e-9
    size = (weight.square().sum() + (3 * bias).square().sum()).sqrt()
    assert float(first.norm()) == pytest.approx(float(2 * bias.norm() / size))


def test_copa_linearises_as_automatic_differentiation_does():
    model = net(SECOND_OPEN, bias=True)
    chain = chain_of(leak(model, picture()))
    before, stage = chain.stages[:2]
    slope, output = (random(1, *stage.outputs, seed=seed) for seed in (0, 1))
    equations = Equations(stage=stage, slope=slope, output=output)

    def plain(z, w):
        x = before.activation.value(z)
        by_tap = stage.gradient(x, slope).flatten(2).transpose(1, 2)
        return stage.apply(x), by_tap, z - before.apply(w)

    parts = (random(1, *before.outputs), random(1, *before.inputs, seed=1))
    move = (random(1, *before.outputs, seed=2), random(1, *before.inputs, seed=3))
    linear = _linearised(equations, before, parts)
    _, expected = torch.func.jvp(plain, parts, move)
    found = linear.forward(move)
    for part, other in zip(found, expected, strict=True):
        assert torch.allclose(part.flatten(), other.flatten())
    y = tuple(random(*part.shape, seed=4) for part in found)
    dot = sum((a * b).sum() for a, b in zip(y, found, strict=True))
    back = sum((a * b).sum() for a, b in zip(linear.adjoint(y), move, strict=True))
    assert float(dot) == pytest.approx(float(back), rel=1e-12)
