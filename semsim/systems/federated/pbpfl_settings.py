"""Settings of PBPFL's masks of a model, as plain values; `pbpfl` describes the method."""

import math
from dataclasses import dataclass
from typing import Literal

from semsim.base.errors import SettingsError
from semsim.base.registry import check_settings, setting

NoiseScope = Literal["round", "client"]


@dataclass(frozen=True, kw_only=True)
class Pbpfl:
    """Strength of the server's masks, and the largest error of the recovery.

    r_low, r_high: range of the multiplicative noise, which is drawn uniformly.
    a_high: the additive noise vector is drawn uniformly from 0 to this. gamma_low, gamma_high:
        range of the secret coefficient γ.
    noise_scope: "client" draws anew for every client, as the authors' program does; "round" gives
        all clients of a round the same masked model.
    zero_sum: clients add masks that sum to zero over all of them, so that the server learns only
        the sum (the paper's extension). It needs noise_scope "round": recovery is linear, but
        only under one mask. zero_sum_digits: binary digits after the point that the hidden numbers
        keep, of 62; the others hold what is before it.
    tolerance: largest relative rounding error of the recovered gradient that is accepted.
    """

    r_low: float = 0.5
    r_high: float = 2.0
    a_high: float = setting(1.0, above=0, below=math.inf)
    gamma_low: float = 0.5
    gamma_high: float = 1.5
    noise_scope: NoiseScope = "client"
    zero_sum: bool = False
    zero_sum_digits: int = setting(40, least=1, most=60)
    tolerance: float = setting(1e-6, above=0, below=math.inf)

    def __post_init__(self) -> None:
        check_settings(self)
        _check_range("r_low", self.r_low, "r_high", self.r_high)
        _check_range("gamma_low", self.gamma_low, "gamma_high", self.gamma_high)
        if self.zero_sum and self.noise_scope == "client":
            raise SettingsError(
                "Zero-sum masks cancel only where every client has the same masked model: "
                "take noise_scope='round', or zero_sum=False."
            )


def _check_range(low_name: str, low: float, high_name: str, high: float) -> None:
    if not 0 < low <= high < math.inf:
        raise SettingsError(
            f"{low_name} and {high_name} are positive and in order; got {low} and {high}."
        )
