"""Training strategies by name or as text, as in `crop-flip & ats:3-1-7`."""

from collections.abc import Mapping
from types import MappingProxyType

from semsim.defences import DEFENCES, STRATEGIES, parse
from semsim.registry import Plugin, build

# The paper's strategies, where its words and its code differ each under a name of its own.
NAMED_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        name if STRATEGIES["paper"][name] == spec else f"{name}-{source}": spec
        for source, specs in STRATEGIES.items()
        for name, spec in specs.items()
    }
)


def read_strategy(text: str) -> Plugin:
    """A training strategy: a name in `NAMED_STRATEGIES` or the words of `semsim.defences.parse`."""
    found = parse(NAMED_STRATEGIES.get(text.strip(), text))
    build(DEFENCES, found.name, dict(found.settings))
    return Plugin(name=found.name, settings=dict(found.settings))


def strategy_label(text: str) -> str:
    """The strategy's name in `NAMED_STRATEGIES` where it has one, else its text."""
    names = {spec: name for name, spec in NAMED_STRATEGIES.items()}
    return names.get(text.strip(), text.strip())
