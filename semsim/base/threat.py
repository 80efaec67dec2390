"""Threat models: the knowledge and the powers of an attacker, in one vocabulary.

Letters A to H, their names and what each has are the table "Threat Models" of Carletti, Foggia,
Mazzocca, Parrella and Vento 2025, "SoK: Gradient Inversion Attacks in Federated Learning" (USENIX
Security), as its authors keep it at github.com/gparrella12/sok_gias_fl.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from semsim.base.errors import SettingsError
from semsim.base.words import listed, percent

LABELS = "+labels"  # behind a letter
_WORDS = {
    "basic": "basic knowledge of pictures",
    "local_steps": "the clients' local steps",
    "auxiliary_data": "auxiliary data",
    "statistics": "batch norm statistics",
    "changes_model": "to change the model",
    "chooses_clients": "to choose the clients",
    "labels": "the labels",
}


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """Knowledge and powers beyond the model and what clients share of it, which every attacker has.

    Attributes:
        basic: "Basic Knowledge": of pictures in general, as their range and smoothness.
        local_steps: "Training Details": number, length and batch of the clients' steps.
        auxiliary_data: "Surrogate Data": pictures like those of the clients.
        statistics: "Client Data Distribution": batch norm statistics to match.
        changes_model: "Active Manipulation"; without it the attacker is honest but curious.
        chooses_clients: "Client Selection".
        labels: Of the clients' pictures; the table marks it beside the letters.
        system: The letters are of horizontal federated learning alone.
    """

    basic: bool = False
    local_steps: bool = False
    auxiliary_data: bool = False
    statistics: bool = False
    changes_model: bool = False
    chooses_clients: bool = False
    labels: bool = False
    system: Literal["horizontal", "vertical", "split"] = "horizontal"

    @property
    def letter(self) -> str:
        """The first letter whose attacker has all of it, labels aside; "" where none has."""
        asked = replace(self, labels=False)
        return next((one for one, (_, known) in LETTERS.items() if not known.lacks(asked)), "")

    @property
    def words(self) -> str:
        """Such as "B, labels known"; the system in place of a letter that there is none of."""
        return (self.letter or self.system) + (", labels known" if self.labels else "")

    @property
    def limit(self) -> str:
        """The limit that allows it, as "B+labels"; "" where no letter does."""
        return self.letter and self.letter + (LABELS if self.labels else "")

    def lacks(self, needed: "ThreatModel") -> list[str]:
        """Return in words what is `needed` and not here."""
        found = [words for name, words in _WORDS.items() if needed.has(name) and not self.has(name)]
        return found + ([f"{needed.system} learning"] if needed.system != self.system else [])

    def has(self, name: str) -> bool:
        """Tell whether the fact called `name` holds."""
        return bool(getattr(self, name))

    def beside(self, other: "ThreatModel") -> "ThreatModel":
        """Return what both have together."""
        facts: dict[str, Any] = {name: self.has(name) or other.has(name) for name in _WORDS}
        return replace(self, **facts)

    def record(self) -> dict[str, Any]:
        """Return all facts with letter and name, as `run.json` has them."""
        name = LETTERS[self.letter][0] if self.letter else ""
        return {"letter": self.letter, "name": name, "words": self.words, **asdict(self)}


_C = ThreatModel(basic=True, local_steps=True)
_D = replace(_C, auxiliary_data=True)
LETTERS: Mapping[str, tuple[str, ThreatModel]] = {
    "A": ("Eavesdropper", ThreatModel()),
    "B": ("Informed Eavesdropper", ThreatModel(basic=True)),
    "C": ("Parameter-Aware Eavesdropper", _C),
    "D": ("Data-Enhanced Eavesdropper", _D),
    "E": ("Statistical-Informed Eavesdropper", replace(_D, statistics=True)),
    "F": ("Active Manipulator", replace(_C, changes_model=True)),
    "G": ("Data-Enhanced Manipulator", replace(_D, changes_model=True)),
    "H": ("Active Client Manipulator", replace(_D, changes_model=True, chooses_clients=True)),
}


def check_threat(needed: ThreatModel, limit: str, who: str) -> None:
    """`SettingsError` where an attacker of kind `limit` lacks what is needed.

    Args:
        limit: A letter, as B, or with the labels, as B+labels; "" sets no limit.
        who: What needs it, in words.
    """
    letter, labels, rest = limit.partition(LABELS)
    if letter not in ("", *LETTERS) or rest or (labels and not letter):
        raise SettingsError(
            f"threat must be a letter from A to H, alone or as B{LABELS}, or empty for no limit; "
            f"got {limit!r}."
        )
    if not letter:
        return
    name, known = LETTERS[letter]
    if lacking := replace(known, labels=bool(labels)).lacks(needed):
        raise SettingsError(
            f"{who} needs {listed(lacking)}, which attacker {limit} ({name}) lacks. "
            f"Take {f'threat={needed.limit}' if needed.limit else 'no threat'}, or another attack."
        )


def attacker_words(run: Mapping[str, Any]) -> str:
    """Say of a set's `run.json` who attacked, how much was seen, and what a client could notice.

    "" where nothing of it is known.
    """
    threat, seen = (
        found if isinstance(found := run.get(name), Mapping) else {} for name in ("threat", "seen")
    )
    parts = str(threat.get("words", "")), seen_words(seen), noticed_words(run.get("noticed"))
    return " · ".join(filter(None, parts))


def noticed_words(noticed: object) -> str:
    """Say what warns a client of a changed model; "" where no sign was looked for.

    Args:
        noticed: The signs of `run.json`, each with `what` and `warns`.
    """
    if not isinstance(noticed, list):
        return ""
    warned = [str(one["what"]).partition(",")[0] for one in noticed if one["warns"]]
    return f"a client could notice {listed(warned)}" if warned else "no sign warns a client"


def seen_words(seen: Mapping[str, Any]) -> str:
    """Say how many parameters' gradients were seen: "650 of 81,280 parameters (0.8%)"; "" if not.

    Args:
        seen: The number of `parameters` seen, and `of` how many.
    """
    part, whole = seen.get("parameters"), seen.get("of")
    if not isinstance(part, int) or not isinstance(whole, int) or whole < 1:
        return ""
    return f"{part:,} of {whole:,} parameters ({percent(part / whole)})"
