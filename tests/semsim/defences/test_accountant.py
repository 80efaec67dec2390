import math

import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from semsim.base.errors import SettingsError
from semsim.defences.accountant import epsilon, renyi


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
