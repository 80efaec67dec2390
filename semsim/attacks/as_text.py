"""Attacks written as text, as in `invgrad:fast,steps=200`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from semsim.attacks import ATTACKS, SHARED, VERTICAL_ATTACKS
from semsim.base.errors import SettingsError
from semsim.base.registry import Plugin, read_plugin
from semsim.base.threat import ThreatModel, check_threat
from semsim.base.words import listed

ONE_GRADIENT = Plugin(name="gradient")


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


def threat_of(attack: Plugin, shared: Plugin = ONE_GRADIENT) -> ThreatModel:
    """Return what an attacker knows who carries out `attack`, with its settings, on what is shared.

    Args:
        attack: With the settings that are given, those of a preset too.
        shared: As `read_shared` has it.
    """
    of = VERTICAL_ATTACKS if attack.name in VERTICAL_ATTACKS else ATTACKS
    found: ThreatModel = of.needs(attack.name).threat.beside(SHARED.needs(shared.name).threat)
    label = attack.settings.get("label", "known" if found.labels else "")
    matched = attack.settings.get("statistics", "none") != "none"
    return replace(found, labels=label == "known", statistics=matched)


def check_attack(attack: Plugin, shared: Plugin, threat: str = "") -> None:
    """`SettingsError` where the attack cannot work on what is shared, or not for such an attacker.

    Args:
        attack: As for `threat_of`.
        shared: As for `threat_of`.
        threat: As `limit` of `check_threat`.
    """
    name, on = attack.name, "" if shared == ONE_GRADIENT else f" on {shared.name}"
    check_threat(threat_of(attack, shared), threat, f"{name}{on}")
    if shared.name == ONE_GRADIENT.name:
        return
    if not ATTACKS.needs(name).several:
        several = listed([one for one in ATTACKS if ATTACKS.needs(one).several])
        raise SettingsError(
            f"{name} works on the gradient of one picture alone. What a client shares of several "
            f"pictures or steps is attacked by {several}."
        )
    if attack.settings.get("batch_norm", "eval") != "eval":
        raise SettingsError(
            "How batch norm works is said with what is shared, as batch_norm=train there; leave it "
            f"out of {name}'s settings."
        )
    if attack.settings.get("max_shift", 0):
        raise SettingsError(
            f"{name} looks for a shift of one picture alone; with several pictures or steps, take "
            "max_shift=0."
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
