"""The jury: what simulated annotators say, worked out from what five classifiers see.

They exist so that the product can be tried before people have labelled anything. Each answers by
what it sees itself; they share neither a classifier nor an opinion.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotation.tasks.kind import NONE

_ROUNDING = 1e-6  # by which probabilities may sum to more than 1


@dataclass(frozen=True, kw_only=True)
class Sight:
    """Class probabilities of one juror for one picture.

    Attributes:
        logs: Its log-probability of each class; what is left to 1 is that there is nothing to be
            named.
        threshold: The certainty from which it names the class it finds most likely.
    """

    juror: str
    logs: Mapping[str, float]
    threshold: float


def said(sight: Sight, offered: Sequence[str]) -> str:
    """The likeliest of the classes `offered`, or "none" where the juror is not certain enough.

    Its certainty is the probability of that class among those offered and nothing at all. Where two
    are likeliest it says "none" as well: their order on a list must decide nothing.
    """
    seen = {name: math.exp(sight.logs.get(name, -math.inf)) for name in offered}
    best = max(offered, key=lambda name: sight.logs.get(name, -math.inf))
    nothing = max(0.0, 1 - sum(map(math.exp, sight.logs.values())))
    among = sum(seen.values()) + (nothing if nothing > _ROUNDING else 0.0)
    alone = list(seen.values()).count(seen[best]) == 1
    return best if alone and among > 0 and seen[best] / among >= sight.threshold else NONE


def answers(jury: Sequence[Sight], offered: Sequence[str]) -> dict[str, str]:
    """Return the answer of each juror to a picture, by the juror's name."""
    return {sight.juror: said(sight, offered) for sight in jury}
