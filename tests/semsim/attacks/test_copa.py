from dataclasses import replace

import pytest
import torch
from made_linear import CLOSED, FIRST_OPEN, SECOND_OPEN, leak, net, picture
from torch import nn

from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.copa import Copa, folds, has_pull_back, through_activation
from semsim.attacks.linear.least_squares import Search
from semsim.attacks.linear.recursion import invert
from semsim.attacks.linear.rgap import RGap
from semsim.base.progress import silent
from semsim.datasets.symbols import Symbols
from semsim.papers.copa import attempt, cnn3_model


def error(found, image):
    return float((found.image - image).square().mean())


def test_what_is_hidden_by_no_layer_is_found():
    image = picture()
    found = Copa().inversion(leak(net(CLOSED, seed=2), image))
    assert error(found, image) <= 1e-12
    assert found.residual < 1e-9


def test_a_wider_layer_that_hides_nothing_is_undone_exactly():
    image = Symbols(test_per_class=1, size=32)("test").images[4]
    for activation in ("tanh", "leaky-relu"):
        one = attempt(cnn3_model(3, activation, 0), image, 4)
        assert error(Copa().inversion(one.seen), one.image) <= 1e-12


def test_without_hidden_inner_values_it_is_rgap():
    seen = leak(net(FIRST_OPEN), picture())
    found, rgap = Copa().inversion(seen), RGap().inversion(seen)
    assert torch.allclose(found.image, rgap.image, atol=1e-5)


def test_on_cnn3_variant_4_it_is_rgap_since_only_the_first_layer_hides_anything():
    one = attempt(cnn3_model(4, "tanh", 0), picture((32, 32)), 4)
    found, rgap = Copa().inversion(one.seen), RGap().inversion(one.seen)
    assert torch.allclose(found.image, rgap.image, atol=1e-5)


@pytest.mark.parametrize(("mean", "std", "seed"), [(0.5, 0.25, 0), (0.5, 0.25, 1), (0.0, 0.5, 0)])
def test_what_no_layer_hides_is_exact_without_a_bias_in_the_last_layer_too(mean, std, seed):
    model = cnn3_model(3, "tanh", seed)
    model.mean.fill_(mean)
    model.std.fill_(std)
    biased = model.head
    model.head = nn.Linear(biased.in_features, biased.out_features, bias=False).double()
    model.head.load_state_dict({"weight": biased.weight})
    image = Symbols(test_per_class=1, size=32)("test").images[4]
    one = attempt(model, image, 4)
    for attack in (RGap(), Copa()):
        found = attack.inversion(one.seen)
        assert error(found, one.image) <= 1e-18
        assert found.residual <= 1e-9


def test_it_takes_the_image_of_rgap_where_its_own_is_worse_and_says_so():
    image = Symbols(test_per_class=1, size=32)("test").images[4]
    seen = attempt(cnn3_model(3, "tanh", 0), image, 4).seen
    rounded = replace(seen, gradients=tuple(each.float().double() for each in seen.gradients))
    found, rgap = (attack(rounded, rng=torch.Generator()) for attack in (Copa(), RGap()))
    assert rgap.solver == "recursion"
    assert found.solver == "rgap"
    assert torch.equal(found.image, rgap.image)
    assert found.residual == rgap.residual < 1e-9
    smooth = Copa(denoise=0.15).inversion(rounded)
    assert torch.equal(smooth.image, RGap(denoise=0.15).inversion(rounded).image)


def test_its_own_end_is_kept_where_that_is_the_better_one():
    image = Symbols(test_per_class=1, size=32)("test").images[4]
    seen = attempt(cnn3_model(1, "tanh", 0), image, 4).seen
    found, rgap = (attack(seen, rng=torch.Generator()) for attack in (Copa(), RGap()))
    assert found.solver == "recursion"
    assert found.residual < rgap.residual


def test_it_does_not_blow_up_where_rgap_does():
    image = Symbols(test_per_class=1, size=32)("test").images[4]
    seen = attempt(cnn3_model(2, "leaky-relu", 0), image, 4).seen
    found, rgap = Copa().inversion(seen), RGap().inversion(seen)
    assert rgap.blew_up
    assert not found.blew_up
    assert error(found, image) < 0.1 * error(rgap, image)


def test_the_pull_back_constraint_lets_the_first_layer_agree():
    seen = leak(net(SECOND_OPEN), picture())
    bound, free = Copa().inversion(seen), Copa(pull_back=False).inversion(seen)
    assert bound.residuals[0] < 0.5 * free.residuals[0]
    assert max(bound.residuals[1], free.residuals[1]) < 1e-2


def test_the_papers_condition_leaves_the_constraint_out_where_the_weight_before_folds():
    model = net(SECOND_OPEN)
    whole = chain_of(leak(model, picture())).stages[0]
    assert has_pull_back(whole)
    assert not folds(whole)
    with torch.no_grad():
        first = next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
        first.weight[:, 2] = 0  # a channel that nothing sees
    seen = leak(model, picture())
    assert folds(chain_of(seen).stages[0])
    paper, free, ours = (
        Copa(full_rank=full, pull_back=bound).inversion(seen)
        for full, bound in ((True, True), (False, False), (False, True))
    )
    assert torch.equal(paper.image, free.image)
    assert not torch.equal(paper.image, ours.image)
    assert ours.residuals[0] < free.residuals[0]


def test_it_leaves_a_start_where_a_leaky_relu_bends():
    plan, size = [(1, 9, 1, 1), (1, 3, 2, 1)], (9, 9)
    for seed in (7, 11):
        model = net(plan, nn.LeakyReLU, size=size, seed=seed)
        found = Copa().inversion(leak(model, picture(size, seed=seed)))
        assert found.residual < 0.3  # 1 at the start


def test_recovered_values_are_ones_that_the_activation_can_make():
    chain = chain_of(leak(net(SECOND_OPEN), picture()))
    met = []

    solver = through_activation(Search(steps=20, inner=200), pull_back=True)

    def solve(equations, before):
        found = solver(equations, before)
        met.append((before, found))
        return found

    invert(chain, 1, solve, silent)
    before, found = met[0]
    x = before.activation.value(found.unknown)
    assert torch.allclose(before.activation.inverse(x), found.unknown, atol=1e-6)
