"""Attacks written as text, as in `invgrad:fast,steps=200`."""

from collections.abc import Sequence

from semsim.attacks import ATTACKS, VERTICAL_ATTACKS
from semsim.attacks.presets import PRESETS
from semsim.errors import SettingsError
from semsim.registry import Plugin, read_plugin


def read_attack(text: str) -> Plugin:
    """An attack, as in `invgrad`, `invgrad:fast` or `invgrad:paper,steps=100`."""
    name = text.partition(":")[0].strip()
    if name in VERTICAL_ATTACKS:
        raise SettingsError(
            f"{name!r} attacks rounds of vertical federated learning, and a campaign's targets "
            f"share the gradient of one image. Use `python -m semsim campaign vertical`."
        )
    return read_plugin(ATTACKS, text, PRESETS.get(name, {}))


def with_preset(attacks: Sequence[str], preset: str | None) -> list[str]:
    """The attacks, those that have `preset` and name none of their own under it."""
    if preset is None:
        return list(attacks)
    return [_under(text, preset) for text in attacks]


def _under(text: str, preset: str) -> str:
    name, _, rest = text.partition(":")
    words = [word for word in rest.split(",") if word]
    named = any("=" not in word for word in words)
    if named or preset not in PRESETS.get(name, {}):
        return text
    return f"{name}:{','.join([preset, *words])}"
