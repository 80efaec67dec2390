"""The seven training strategies of SemSim's 14 target models (two architectures each)."""

from collections.abc import Mapping
from types import MappingProxyType

from semsim.base.registry import Plugin
from semsim.defences.as_text import parse

# The order is that of the model numbers 1…7 and 8…14 in the authors' released data.
# "code": what their program does. Crop and flip come before every policy and every gradient
# defence, and gradient defences act in training only, so that the attacked gradient is clean.
# "paper": what Table 3 says. It names the operations otherwise than the code applies them, gives
# no magnitudes (43-18-18's are taken from the list of ATS) and no crop with the gradient defences;
# these act wherever a gradient is used, as the text describes a defence. Its crop is drawn as the
# code does; the one that Table 3 names is `resized-crop-flip`.
STRATEGIES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "code": MappingProxyType(
            {
                "none": "none",
                "crop-flip": "crop-flip",
                "3-1-7": "crop-flip & ats:3-1-7",
                "43-18-18": "crop-flip & ats:43-18-18",
                "hybrid": "crop-flip & ats:3-1-7+43-18-18",
                "pruning": "crop-flip & gradient-pruning:rate=0.7,apply_at=train",
                "noise": "crop-flip & gradient-noise:std=0.001,apply_at=train",
            }
        ),
        "paper": MappingProxyType(
            {
                "none": "none",
                "crop-flip": "crop-flip",
                "3-1-7": "ops:translateX,invert,translateY",
                "43-18-18": "ops:translateY=0.1511,autocontrast,autocontrast",
                "hybrid": (
                    "ops:translateX,invert,translateY+translateY=0.1511,autocontrast,autocontrast"
                ),
                "pruning": "gradient-pruning:rate=0.7,apply_at=both",
                "noise": "gradient-noise:std=0.001,apply_at=both",
            }
        ),
    }
)

# The paper's strategies, where its words and its code differ each under a name of its own, and what
# is deployed and the paper has not.
NAMED_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        name if STRATEGIES["paper"][name] == spec else f"{name}-{source}": spec
        for source, specs in STRATEGIES.items()
        for name, spec in specs.items()
    }
    | {"dp-sgd": "dp-sgd"}
)


def read_strategy(text: str) -> Plugin:
    """A training strategy: a name in `NAMED_STRATEGIES` or the words of `semsim.defences.parse`."""
    return parse(NAMED_STRATEGIES.get(text.strip(), text))


def strategy_label(text: str) -> str:
    """The strategy's name in `NAMED_STRATEGIES` where it has one, else its text."""
    names = {spec: name for name, spec in NAMED_STRATEGIES.items()}
    return names.get(text.strip(), text.strip())
