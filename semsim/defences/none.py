"""No defence: the vanilla strategy."""

from dataclasses import dataclass

from semsim.defences.base import Defence


@dataclass(frozen=True, kw_only=True)
class NoDefence(Defence):
    """Train on the images as they are and share the gradient as it is."""
