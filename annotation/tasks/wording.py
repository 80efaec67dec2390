"""Every sentence that annotators read, and what a study has in its place.

The usual ones stand in `wording.toml`, those about a kind of task with the kind. A text has a name
such as "join.start"; a study may replace any, so that it can be held in any language.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from annotation.tasks import KINDS
from annotation.tasks.kind import Key, Kind, Question
from annotation.texts import flaw_of_class, is_fit
from semsim.base.alike import alike
from semsim.base.storage.places import files_of

LONGEST_TEXT = 5000  # letters
_FILE = files_of("annotation.tasks") / "wording.toml"
_FILLED = re.compile(r"\{(\w+)\}")  # the page's scripts fill in by the same rule


def _usual() -> Iterator[tuple[str, str]]:
    sections = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    for section, texts in sections.items():
        yield from ((f"{section}.{name}", text) for name, text in texts.items())
    for kind in KINDS.values():
        yield from _of_kind(kind())


def _of_kind(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield the texts of a kind with their names; the ends of a scale are settings, not texts."""
    yield f"{kind.name}.question", kind.question
    yield f"{kind.name}.about", kind.about
    yield f"{kind.name}.rules", "\n".join(kind.rules)
    for key in () if kind.scale else kind.keys:
        yield f"{kind.name}.key.{key.reason or key.answer}", key.label
    for question in kind.check:
        for name, text in _of_question(question):
            yield f"{kind.name}.check.{question.name}.{name}", text


def _of_question(question: Question) -> Iterator[tuple[str, str]]:
    yield "text", question.text
    yield "reminder", question.reminder
    yield from question.options


USUAL: Mapping[str, str] = MappingProxyType(dict(_usual()))


def flaws(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the texts, by name, that a study has in place of usual ones."""
    if not isinstance(texts, Mapping):
        yield f"Texts are given by name; got {texts!r}."
        return
    unknown = sorted(str(name) for name in texts if name not in USUAL)
    if unknown:
        yield (
            f"There are no texts called {', '.join(map(repr, unknown))}. "
            "`semsim-studio study texts` lists all that there are."
        )
    for name, text in texts.items():
        if name in USUAL and (flaw := _flaw(text, USUAL[name])):
            yield f"The text {name!r} {flaw}"


def flaws_of_names(classes: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the shown names of classes."""
    pairs = classes.items() if isinstance(classes, Mapping) else [(None,)]
    if not all(isinstance(one, str) for pair in pairs for one in pair):
        yield f"Shown names of classes are texts by class; got {classes!r}."
        return
    if len({alike(name) for name in classes.values()}) < len(classes):
        yield "Two classes are shown under the same name; annotators could not choose between them."
    for name, words in classes.items():
        if flaw := flaw_of_class(words):
            yield f"The shown name of the class {name!r}: {flaw}"


def _flaw(text: Any, usual: str) -> str:
    if not isinstance(text, str) or not text.strip():
        return f"should be words; got {text!r}. Leave it out to have the usual one."
    if len(text) > LONGEST_TEXT or not is_fit(text):
        return f"should have at most {LONGEST_TEXT} letters and no control characters."
    known = set(_FILLED.findall(usual))
    strange = set(_FILLED.findall(text)) - known
    return f"is filled in with {_braced(known)}; got {_braced(strange)}." if strange else ""


def _braced(names: Collection[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "nothing"


@dataclass(frozen=True, kw_only=True)
class Wording:
    """Texts that annotators of one study read: its own, and the usual ones for the rest.

    Attributes:
        classes: What classes are shown as, where that is not their name.
    """

    own: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, name: str, /, **values: Any) -> str:
        """The text of that name with `values` filled in."""
        return _FILLED.sub(lambda found: str(values[found[1]]), self.text(name))

    def text(self, name: str) -> str:
        """Return the text of that name as it stands."""
        return self.own.get(name, USUAL[name])

    def section(self, *sections: str) -> dict[str, str]:
        """All texts of some sections by name."""
        return {name: self.text(name) for name in USUAL if name.split(".")[0] in sections}

    def told(self, error: Exception) -> str:
        """Return an error's text, in the words of the study where annotators are to read it."""
        name, values = getattr(error, "said", ("", {}))
        return self(name, **values) if name else str(error)

    def class_name(self, name: str) -> str:
        """A class as people read it."""
        return self.classes.get(name, name.replace("_", " "))

    def keys(self, kind: Kind) -> tuple[Key, ...]:
        """The answers that every item offers, as they are called here."""
        named = lambda key: f"{kind.name}.key.{key.reason or key.answer}"  # noqa: E731
        return tuple(replace(key, label=self.own.get(named(key), key.label)) for key in kind.keys)

    def rules(self, kind: Kind) -> tuple[str, ...]:
        """Return the rules to know before the first answer, one a line of the text."""
        return tuple(filter(None, map(str.strip, self(f"{kind.name}.rules").splitlines())))

    def question(self, kind: Kind, question: Question) -> Question:
        """A question on the instructions."""
        say = lambda part: self(f"{kind.name}.check.{question.name}.{part}")  # noqa: E731
        return replace(
            question,
            text=say("text"),
            reminder=say("reminder"),
            options=tuple((name, say(name)) for name, _ in question.options),
        )


PLAIN = Wording()
