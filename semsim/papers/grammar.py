"""A small grammar of English sentences and their German translations, drawn from a seed.

Articles and adjectives agree with gender and case, and the verb of a subordinate clause goes to its
end, so that a translation is not made word by word. Earlier words of each list are drawn more
often, as in a language (Zipf 1935).
"""

import random
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from semsim.base.errors import SettingsError

T = TypeVar("T")
Words = tuple[str, ...]


class Pair(NamedTuple):
    """A sentence and its translation, word by word."""

    english: Words
    german: Words


class Noun(NamedTuple):
    """A noun. gender: of the German word, m, f or n. pronoun: the English one."""

    english: str
    german: str
    gender: str
    pronoun: str = "it"


_NOMINATIVE, _ACCUSATIVE = "nominative", "accusative"
_WHO = (
    Noun("girl", "Mädchen", "n", "she"),
    Noun("man", "Mann", "m", "he"),
    Noun("woman", "Frau", "f", "she"),
    Noun("dog", "Hund", "m"),
    Noun("child", "Kind", "n"),
    Noun("teacher", "Lehrer", "m", "he"),
    Noun("cat", "Katze", "f"),
    Noun("dancer", "Tänzerin", "f", "she"),
    Noun("horse", "Pferd", "n"),
    Noun("baker", "Bäcker", "m", "he"),
    Noun("nurse", "Pflegerin", "f", "she"),
    Noun("goat", "Ziege", "f"),
)
_WHAT = (
    Noun("ball", "Ball", "m"),
    Noun("book", "Buch", "n"),
    Noun("bag", "Tasche", "f"),
    Noun("letter", "Brief", "m"),
    Noun("picture", "Bild", "n"),
    Noun("flower", "Blume", "f"),
    Noun("hat", "Hut", "m"),
    Noun("knife", "Messer", "n"),
    Noun("lamp", "Lampe", "f"),
    Noun("coat", "Mantel", "m"),
    Noun("bicycle", "Fahrrad", "n"),
    Noun("cup", "Tasse", "f"),
)
_ADJECTIVES = {  # German ones without their ending
    "young": "jung",
    "small": "klein",
    "happy": "fröhlich",
    "tall": "groß",
    "tired": "müd",
    "strong": "stark",
    "wet": "nass",
    "clever": "klug",
}
_INTRANSITIVE = {
    "sleeps": "schläft",
    "runs": "läuft",
    "waits": "wartet",
    "dances": "tanzt",
    "sings": "singt",
    "smiles": "lächelt",
    "skates": "skatet",
    "works": "arbeitet",
}
_TRANSITIVE = {
    "sees": "sieht",
    "holds": "hält",
    "carries": "trägt",
    "draws": "zeichnet",
    "finds": "findet",
    "buys": "kauft",
    "cleans": "putzt",
    "loves": "liebt",
}
_PLACES = {
    "on the street": "auf der Straße",
    "in the park": "im Park",
    "at the beach": "am Strand",
    "in the kitchen": "in der Küche",
    "near the river": "beim Fluss",
    "behind the house": "hinter dem Haus",
}
_ARTICLES = {  # (English article, case) → German article by gender
    ("a", _NOMINATIVE): {"m": "ein", "f": "eine", "n": "ein"},
    ("a", _ACCUSATIVE): {"m": "einen", "f": "eine", "n": "ein"},
    ("the", _NOMINATIVE): {"m": "der", "f": "die", "n": "das"},
    ("the", _ACCUSATIVE): {"m": "den", "f": "die", "n": "das"},
}
_ENDINGS = {  # of an adjective behind that article
    ("a", _NOMINATIVE): {"m": "er", "f": "e", "n": "es"},
    ("a", _ACCUSATIVE): {"m": "en", "f": "e", "n": "es"},
    ("the", _NOMINATIVE): {"m": "e", "f": "e", "n": "e"},
    ("the", _ACCUSATIVE): {"m": "en", "f": "e", "n": "e"},
}
_PRONOUNS = {"m": "er", "f": "sie", "n": "es"}
_DESCRIBED, _WITH_OBJECT, _PLACED, _JOINED = 0.6, 0.6, 0.5, 0.7  # how often there is such a part
LONGEST = 16  # words of a sentence, at most, in either language
# What a sentence is about: without these nothing is known of it.
CONTENT = frozenset(
    chain(
        (noun.english for noun in (*_WHO, *_WHAT)),
        (*_ADJECTIVES, *_INTRANSITIVE, *_TRANSITIVE),
        (place.split()[-1] for place in _PLACES),
    )
)


def sentences(count: int, seed: int) -> list[Pair]:
    """So many pairs, of which no two have the same English sentence; the seed decides which.

    Those that are drawn often come early, so that the last ones hold rarer sentences.
    Raises `SettingsError` below one.
    """
    if count < 1:
        raise SettingsError(f"Give at least one sentence; got {count}.")
    rng, found = random.Random(seed), dict[Words, Pair]()
    while len(found) < count:
        pair = drawn(rng)
        found.setdefault(pair.english, pair)
    return list(found.values())


def drawn(rng: random.Random) -> Pair:
    """Draw one sentence: a subject and an action, perhaps a place, perhaps a second action."""
    who = _often(rng, _WHO)
    parts = [_someone(rng, who, _NOMINATIVE, _DESCRIBED), *_action(rng, _DESCRIBED)]
    if rng.random() < _PLACED:
        place = _often(rng, tuple(_PLACES))
        parts.append(_pair(place, _PLACES[place]))
    if rng.random() < _JOINED:
        verb, thing = _action(rng, 0.0)
        parts.append(_pair(f"while {who.pronoun}", f", während {_PRONOUNS[who.gender]}"))
        parts.append(Pair(verb.english + thing.english, thing.german + verb.german))
    return _joined(parts)


def noun_phrase(noun: Noun, article: str, adjective: str, case: str) -> Pair:
    """An article, an adjective, "" for none, and a noun; case: nominative or accusative."""
    german = _ARTICLES[article, case][noun.gender]
    if not adjective:
        return _pair(f"{article} {noun.english}", f"{german} {noun.german}")
    inflected = _ADJECTIVES[adjective] + _ENDINGS[article, case][noun.gender]
    return _pair(f"{article} {adjective} {noun.english}", f"{german} {inflected} {noun.german}")


def vocabularies() -> tuple[Words, Words]:
    """All English and all German words that sentences can have, each in order."""
    nouns = (*_WHO, *_WHAT)
    phrases = [
        noun_phrase(noun, article, adjective, case)
        for noun in nouns
        for article, case in _ARTICLES
        for adjective in _ADJECTIVES
    ]
    pairs = (_INTRANSITIVE | _TRANSITIVE | _PLACES).items()
    linked = [_pair(f"while {noun.pronoun}", ", während er sie es") for noun in nouns]
    every = _joined([*phrases, *(_pair(*pair) for pair in pairs), *linked])
    return tuple(sorted(set(every.english))), tuple(sorted(set(every.german)))


def _someone(rng: random.Random, noun: Noun, case: str, described: float) -> Pair:
    adjective = _often(rng, tuple(_ADJECTIVES)) if rng.random() < described else ""
    return noun_phrase(noun, _often(rng, ("a", "the")), adjective, case)


def _action(rng: random.Random, described: float) -> tuple[Pair, Pair]:
    """A verb and its object, which may be empty. described: how often it has an adjective."""
    if rng.random() >= _WITH_OBJECT:
        verb = _often(rng, tuple(_INTRANSITIVE))
        return _pair(verb, _INTRANSITIVE[verb]), Pair((), ())
    verb = _often(rng, tuple(_TRANSITIVE))
    noun = _often(rng, (*_WHAT, *_WHO))
    return _pair(verb, _TRANSITIVE[verb]), _someone(rng, noun, _ACCUSATIVE, described)


def _often(rng: random.Random, words: Sequence[T]) -> T:
    """One of `words`, the first twice as often as the second, three times as the third."""
    return rng.choices(words, [1 / rank for rank in range(1, len(words) + 1)])[0]


def _pair(english: str, german: str) -> Pair:
    return Pair(tuple(english.split()), tuple(german.split()))


def _joined(parts: Sequence[Pair]) -> Pair:
    return Pair(
        tuple(chain.from_iterable(part.english for part in parts)),
        tuple(chain.from_iterable(part.german for part in parts)),
    )
