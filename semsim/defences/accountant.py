"""Privacy loss ε of a training on clipped, noised gradients of sampled images.

Rényi differential privacy of the sampled Gaussian mechanism (Mironov, Talwar and Zhang 2019,
arXiv:1908.10530, §3) is added up over the steps, and turned into (ε, δ) as in Balle, Barthe,
Gaboardi, Hsu and Sato 2020, arXiv:1905.09982, Theorem 21. Neighbours differ by one image added or
left out. As every account of this kind it is an upper bound.
"""

import math

import numpy as np

from semsim.base.errors import SettingsError

# Real orders near 1 for little noise, whole ones for much, as opacus and dp-accounting try them.
_ORDERS = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(11, 64), 80, 128, 256, 512)
_LITTLE = 0.1  # noise below which sampling is left out of account: the bound is astronomical anyway


def epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """ε of `steps` steps at `delta`, 0 or more; infinity without noise.

    noise: standard deviation of the noise on the sum of gradients, over the norm that each is
    clipped to. rate: chance of each image to be in a step, by itself (Poisson sampling), 0 to 1.
    Raises `SettingsError` for what cannot be.
    """
    if not (noise >= 0 and 0 <= rate <= 1 and steps >= 0 and 0 < delta < 1):
        raise SettingsError(
            "An account needs noise of 0 or more, a rate from 0 to 1, no fewer than 0 steps and a "
            f"delta between 0 and 1; got {noise}, {rate}, {steps} and {delta}."
        )
    if rate == 0 or steps == 0:
        return 0.0
    if noise == 0:
        return math.inf
    return max(0.0, min(_at_order(order, noise, rate, steps, delta) for order in _ORDERS))


def renyi(order: float, noise: float, rate: float) -> float:
    """Rényi divergence of one step at `order` above 1, as Mironov et al. 2019, Eq. 4.

    log E[((1 − q) + q e^((2z−1)/2σ²))^α] / (α − 1) over z of N(0, σ²), by the trapezoid rule: its
    step is so small beside the distance of the integrand's poles, πσ², that its error is rounding.
    """
    plain = order / (2 * noise**2)
    if rate == 1 or noise < _LITTLE:
        return plain
    step = min(noise / 8, noise**2 / 2)
    z = np.arange(-12 * noise, order + 12 * noise, step)
    drawn = np.log(rate) + (2 * z - 1) / (2 * noise**2)
    logs = order * np.logaddexp(np.log1p(-rate), drawn) - z**2 / (2 * noise**2)
    total = np.logaddexp.reduce(logs) + math.log(step / (noise * math.sqrt(2 * math.pi)))
    return float(min(plain, max(total, 0.0) / (order - 1)))


def _at_order(order: float, noise: float, rate: float, steps: int, delta: float) -> float:
    spent = steps * renyi(order, noise, rate)
    return spent + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
