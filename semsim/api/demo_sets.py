"""The demo that comes with the product, for who imports it."""

from pathlib import Path

from semsim.base.registry import unknown
from semsim.base.storage.places import DEMO, demo_sets


def demo(name: str = "") -> Path:
    """Return the folder of the demo that comes with the product, or of one of its sets.

    Args:
        name: A set, as activation-strategy-attack; in paths `demo/NAME` says the same, unless
            something else lies there.

    Raises:
        UnknownNameError: That lists the names there are.

    >>> import semsim
    >>> pictures = semsim.demo("silu-none-invgrad")
    >>> semsim.score((pictures / "originals", pictures / "reconstructions"), ["mse"]).shape
    (12, 5)
    """
    sets = demo_sets()
    if name and name not in sets:
        raise unknown("set of the demo", name, sets)
    return sets[name] if name else DEMO
