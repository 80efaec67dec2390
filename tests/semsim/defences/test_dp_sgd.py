import math

import pytest
import torch
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from semsim.base.errors import SettingsError
from semsim.defences import make
from semsim.defences.base import of_one
from semsim.defences.dp_sgd import DpSgd, epsilon, renyi

RNG = torch.Generator().manual_seed(0)
EACH = (torch.randn(6, 4, 3, generator=RNG), torch.randn(6, 4, generator=RNG))


def length(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients]).norm().item()


def test_each_image_is_cut_to_the_norm_over_all_parameters_and_short_ones_are_left():
    norms = [length([part[place] for part in EACH]) for place in range(6)]
    clip = sorted(norms)[3]  # two are longer
    wanted = [sum(part[place] * min(1, clip / norms[place]) for place in range(6)) for part in EACH]
    for found, one in zip(DpSgd(clip=clip).clipped_sum(EACH), wanted, strict=True):
        assert torch.allclose(found, one, atol=1e-6)


def test_one_image_more_moves_the_sum_by_the_clip_at_most():
    for private in (DpSgd(clip=0.3), DpSgd(clip=0.3, noise=0)):
        with_it, without = (private.clipped_sum([part[:n] for part in EACH]) for n in (6, 5))
        moved = [a - b for a, b in zip(with_it, without, strict=True)]
        assert length(moved) == pytest.approx(0.3, rel=1e-5)  # all are longer


def test_a_vanished_gradient_stays_one():
    (found,) = DpSgd().clipped_sum([torch.zeros(2, 3)])
    assert torch.equal(found, torch.zeros(3))


def test_noise_is_that_multiple_of_the_clip_over_the_batch():
    (found,) = DpSgd(clip=2.0, noise=0.5).noised_mean(
        [torch.zeros(200, 50)], 4, torch.Generator().manual_seed(0), "train"
    )
    assert found.std().item() == pytest.approx(0.25, rel=0.03)  # 10,000 draws: ±0.7%


def test_what_one_image_shares_is_clipped_before_later_parts_see_it():
    gradient = (torch.tensor([3.0, 4.0]),)
    (shared,) = of_one(make("dp-sgd:clip=1,noise=0"), gradient, torch.Generator(), "attack")
    assert torch.allclose(shared, torch.tensor([0.6, 0.8]))
    for text in (
        "gradient-pruning:rate=0.5 & dp-sgd:clip=1,noise=0",
        "dp-sgd:clip=1,noise=0 & gradient-pruning:rate=0.5",
    ):
        (shared,) = of_one(make(text), gradient, torch.Generator(), "attack")
        assert torch.allclose(shared, torch.tensor([0.0, 0.8]))


def test_the_promise_counts_every_batch_of_every_epoch():
    promised = DpSgd(noise=1.1, delta=1e-4).promise(1400, 64, 7)
    assert promised == {"epsilon": epsilon(1.1, 64 / 1400, 7 * 22, 1e-4), "delta": 1e-4}
    whole = DpSgd(noise=2.0).promise(50, 64, 3)  # a batch is all images at most
    assert whole["epsilon"] == epsilon(2.0, 1.0, 3, 1e-5)


@pytest.mark.parametrize("settings", [{"noise": 0.0}, {"apply_at": "attack"}])
def test_without_noise_in_training_nothing_is_promised(settings):
    assert DpSgd(**settings).promise(100, 10, 1) == {"epsilon": None, "delta": 1e-5}


def test_a_delta_that_lets_an_image_go_is_refused():
    with pytest.raises(SettingsError, match=r"one of 100 training images .* below 0.01"):
        DpSgd(delta=0.01).promise(100, 10, 1)


@pytest.mark.parametrize(
    "settings",
    [{"clip": 0.0}, {"clip": math.inf}, {"noise": -1.0}, {"noise": math.nan}, {"delta": 0.0}],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(SettingsError, match="got"):
        DpSgd(**settings)


def test_clipping_twice_is_refused():
    with pytest.raises(SettingsError, match="say dp-sgd once"):
        make("dp-sgd & crop-flip & dp-sgd:clip=2")


def by_binomials(order, noise, rate):
    """Mironov et al. 2019, Eq. 9: a finite sum for whole orders."""
    terms = [
        gammaln(order + 1)
        - gammaln(k + 1)
        - gammaln(order - k + 1)
        + (order - k) * math.log1p(-rate)
        + k * math.log(rate)
        + (k * k - k) / (2 * noise**2)
        for k in range(order + 1)
    ]
    return logsumexp(terms) / (order - 1)


@pytest.mark.parametrize("noise", [0.3, 1.1, 4.0])
@pytest.mark.parametrize("rate", [0.001, 0.04, 0.5])
@pytest.mark.parametrize("order", [2, 7, 64])
def test_the_integral_is_the_sum_that_whole_orders_have(order, noise, rate):
    wanted = by_binomials(order, noise, rate)
    assert renyi(order, noise, rate) == pytest.approx(wanted, rel=1e-6, abs=1e-13)


def test_every_image_in_every_step_is_the_plain_gaussian_mechanism():
    assert renyi(3.7, 2.0, 1.0) == 3.7 / 8
    assert renyi(3.7, 2.0, 1 - 1e-9) == pytest.approx(3.7 / 8, rel=1e-6)


def test_it_is_an_upper_bound_close_to_the_exact_epsilon_of_one_gaussian():
    """Balle and Wang 2018, arXiv:1805.06530, Theorem 8, has the least δ of an ε."""
    for noise in (0.7, 1.0, 5.0):
        found = epsilon(noise, 1.0, 1, 1e-5)

        def delta(bound, half=1 / (2 * noise), noise=noise):
            tail = math.exp(bound) * norm.cdf(-half - bound * noise)
            return norm.cdf(half - bound * noise) - tail

        assert delta(found) < 1e-5 < delta(0.85 * found)


def test_it_is_what_opacus_1_6_finds():
    assert epsilon(1.1, 64 / 1400, 300, 1e-4) == pytest.approx(4.205, abs=0.005)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "published"),
    [
        (4.0, 0.01, 10_000, 1.26),  # Abadi et al. 2016, arXiv:1607.00133, §3.2
        (1.3, 256 / 60_000, 3_515, 1.19),  # these: the MNIST tutorial of TensorFlow Privacy
        (1.1, 256 / 60_000, 14_062, 3.01),
        (0.7, 256 / 60_000, 10_546, 7.10),
    ],
)
def test_published_accounts_are_met_under_the_conversion_of_their_day(
    noise, rate, steps, published
):
    """ε of Mironov 2017, arXiv:1702.07476, Proposition 3, which is looser than ours."""
    orders = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(11, 64))
    spent = [steps * renyi(order, noise, rate) + math.log(1e5) / (order - 1) for order in orders]
    assert min(spent) == pytest.approx(published, abs=0.01)
    assert 0.8 * published < epsilon(noise, rate, steps, 1e-5) < published


def test_more_noise_fewer_steps_and_a_smaller_share_cost_less():
    base = epsilon(1.0, 0.01, 1000, 1e-5)
    cheaper = [(1.1, 0.01, 1000, 1e-5), (1.0, 0.009, 1000, 1e-5), (1.0, 0.01, 990, 1e-5)]
    assert all(epsilon(*one) < base for one in [*cheaper, (1.0, 0.01, 1000, 1e-4)])


def test_nothing_shown_costs_nothing_and_no_noise_everything():
    assert epsilon(1.0, 0.0, 10, 1e-5) == epsilon(1.0, 0.5, 0, 1e-5) == 0
    assert epsilon(0.0, 0.5, 1, 1e-5) == math.inf
    assert 1e6 < epsilon(0.001, 0.5, 10, 1e-5) < math.inf


@pytest.mark.parametrize(
    "asked",
    [(-1, 0.1, 1, 0.1), (1, 1.1, 1, 0.1), (1, 0.1, -1, 0.1), (1, 0.1, 1, 0), (1, 0.1, 1, 1)],
)
def test_what_cannot_be_is_refused(asked):
    with pytest.raises(SettingsError, match="got"):
        epsilon(*asked)
