"""Attacks written as text, as in `invgrad:fast,steps=200`."""

from collections.abc import Mapping, Sequence
from typing import Any

from semsim.attacks import ATTACKS, SHARED, VERTICAL_ATTACKS
from semsim.base.errors import SettingsError
from semsim.base.registry import Plugin, build, read_plugin


def presets(name: str) -> Mapping[str, Mapping[str, Any]]:
    """The presets of the attack called `name` by theirs; none where there is no such attack."""
    for known in (ATTACKS, VERTICAL_ATTACKS):
        if name in known:
            return getattr(known[name], "presets", {})
    return {}


def read_attack(text: str) -> Plugin:
    """An attack, as in `invgrad`, `invgrad:fast` or `invgrad:paper,steps=100`."""
    name = text.partition(":")[0].strip()
    if name in VERTICAL_ATTACKS:
        raise SettingsError(
            f"{name!r} attacks rounds of vertical federated learning, and a campaign's targets "
            f"share the gradient of one image. Use `semsim-studio campaign vertical`."
        )
    return read_plugin(ATTACKS, text, presets(name))


def read_vertical(text: str) -> Plugin:
    """An attack on vertical federated learning, as in `cafe`, `cafe:fast` or `cafe:steps=500`."""
    return read_plugin(VERTICAL_ATTACKS, text, presets(text.partition(":")[0].strip()))


def read_shared(text: str) -> Plugin:
    """Read what a client shares, as in `gradient`, `batch-gradient:batch=8` or `update:steps=5`."""
    return read_plugin(SHARED, text)


def check_shared(shared: Plugin, attack: Plugin) -> None:
    """`SettingsError` where the attack cannot work on what is shared."""
    from semsim.attacks.observe import check_sharing  # with torch

    check_sharing(
        build(SHARED, shared.name, shared.settings), build(ATTACKS, attack.name, attack.settings)
    )


def with_preset(attacks: Sequence[str], preset: str | None) -> list[str]:
    """The attacks, those that have `preset` and name none of their own under it."""
    if preset is None:
        return list(attacks)
    return [_under(text, preset) for text in attacks]


def _under(text: str, preset: str) -> str:
    name, _, rest = text.partition(":")
    words = [word for word in rest.split(",") if word]
    named = any("=" not in word for word in words)
    if named or preset not in presets(name):
        return text
    return f"{name}:{','.join([preset, *words])}"
