"""Sentences that a split translator learns: their grammar, the translator, and how they are scored.

English sentences and their German translations are drawn from a seed. Articles and adjectives
agree with gender and case, and the verb of a subordinate clause goes to its end, so that a
translation is not made word by word. Earlier words of each list are drawn more often, as in a
language (Zipf 1935).

The translator is a small encoder-decoder of which the client keeps the embeddings of both languages
(Ensembler paper, Appendix A.1, after PyTorch's tutorial on translation with a transformer, Vaswani
et al. 2017): what crosses are the embedded words of the sentence and of its translation so far,
side by side. Words are numbers; padding is a word like any other, so that no length is sent. In
shapes S and T are the places of a sentence and of its translation.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.base.storage.places import toml_of
from semsim.systems.split.networks import Unit, task_of

T = TypeVar("T")
Words = tuple[str, ...]


class SentencePair(NamedTuple):
    """A sentence and its translation, word by word."""

    english: Words
    german: Words


class Noun(NamedTuple):
    """A noun.

    Attributes:
        gender: Of the German word, m, f or n.
        pronoun: The English one.
    """

    english: str
    german: str
    gender: str
    pronoun: str = "it"


_NOMINATIVE, _ACCUSATIVE = "nominative", "accusative"
_WORDS = toml_of("semsim.papers", "words.toml")
_WHO = tuple(Noun(*one) for one in _WORDS["who"])
_WHAT = tuple(Noun(*one) for one in _WORDS["what"])
_ADJECTIVES: dict[str, str] = _WORDS["adjectives"]  # German ones without their ending
_INTRANSITIVE: dict[str, str] = _WORDS["intransitive"]
_TRANSITIVE: dict[str, str] = _WORDS["transitive"]
_PLACES: dict[str, str] = _WORDS["places"]
# German articles, and endings of the adjective behind them, by case, English article and gender.
_ARTICLES: dict[str, dict[str, dict[str, str]]] = _WORDS["articles"]
_ENDINGS: dict[str, dict[str, dict[str, str]]] = _WORDS["endings"]
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


def sentences(count: int, seed: int) -> list[SentencePair]:
    """So many pairs, of which no two have the same English sentence; the seed decides which.

    Those that are drawn often come early, so that the last ones hold rarer sentences.
    Raises `SettingsError` below one.
    """
    if count < 1:
        raise SettingsError(f"Give at least one sentence; got {count}.")
    rng, found = random.Random(seed), dict[Words, SentencePair]()
    while len(found) < count:
        pair = drawn(rng)
        found.setdefault(pair.english, pair)
    return list(found.values())


def drawn(rng: random.Random) -> SentencePair:
    """Draw one sentence: a subject and an action, perhaps a place, perhaps a second action."""
    who = _often(rng, _WHO)
    parts = [_someone(rng, who, _NOMINATIVE, _DESCRIBED), *_action(rng, _DESCRIBED)]
    if rng.random() < _PLACED:
        place = _often(rng, tuple(_PLACES))
        parts.append(_pair(place, _PLACES[place]))
    if rng.random() < _JOINED:
        verb, thing = _action(rng, 0.0)
        parts.append(_pair(f"while {who.pronoun}", f", während {_PRONOUNS[who.gender]}"))
        parts.append(SentencePair(verb.english + thing.english, thing.german + verb.german))
    return _joined(parts)


def noun_phrase(noun: Noun, article: str, adjective: str, case: str) -> SentencePair:
    """An article, an adjective, "" for none, and a noun;

    Args:
        case: Nominative or accusative.
    """
    german = _ARTICLES[case][article][noun.gender]
    if not adjective:
        return _pair(f"{article} {noun.english}", f"{german} {noun.german}")
    inflected = _ADJECTIVES[adjective] + _ENDINGS[case][article][noun.gender]
    return _pair(f"{article} {adjective} {noun.english}", f"{german} {inflected} {noun.german}")


def vocabularies() -> tuple[Words, Words]:
    """All English and all German words that sentences can have, each in order."""
    nouns = (*_WHO, *_WHAT)
    phrases = [
        noun_phrase(noun, article, adjective, case)
        for noun in nouns
        for case, articles in _ARTICLES.items()
        for article in articles
        for adjective in _ADJECTIVES
    ]
    pairs = (_INTRANSITIVE | _TRANSITIVE | _PLACES).items()
    linked = [_pair(f"while {noun.pronoun}", ", während er sie es") for noun in nouns]
    every = _joined([*phrases, *(_pair(*pair) for pair in pairs), *linked])
    return tuple(sorted(set(every.english))), tuple(sorted(set(every.german)))


def _someone(rng: random.Random, noun: Noun, case: str, described: float) -> SentencePair:
    adjective = _often(rng, tuple(_ADJECTIVES)) if rng.random() < described else ""
    return noun_phrase(noun, _often(rng, ("a", "the")), adjective, case)


def _action(rng: random.Random, described: float) -> tuple[SentencePair, SentencePair]:
    """A verb and its object, which may be empty.

    Args:
        described: How often it has an adjective.
    """
    if rng.random() >= _WITH_OBJECT:
        verb = _often(rng, tuple(_INTRANSITIVE))
        return _pair(verb, _INTRANSITIVE[verb]), SentencePair((), ())
    verb = _often(rng, tuple(_TRANSITIVE))
    noun = _often(rng, (*_WHAT, *_WHO))
    return _pair(verb, _TRANSITIVE[verb]), _someone(rng, noun, _ACCUSATIVE, described)


def _often(rng: random.Random, words: Sequence[T]) -> T:
    """One of `words`, the first twice as often as the second, three times as the third."""
    return rng.choices(words, [1 / rank for rank in range(1, len(words) + 1)])[0]


def _pair(english: str, german: str) -> SentencePair:
    return SentencePair(tuple(english.split()), tuple(german.split()))


def _joined(parts: Sequence[SentencePair]) -> SentencePair:
    return SentencePair(
        tuple(chain.from_iterable(part.english for part in parts)),
        tuple(chain.from_iterable(part.german for part in parts)),
    )


PAD, BEGIN, END = 0, 1, 2
PLACES = LONGEST + 1  # of words in either language: a sentence and its end
_FIRST = 3  # the number of the first word
_IGNORED = -100  # by `torch.nn.functional.cross_entropy`
_FASTEST = 10_000.0  # of the sines and cosines that tell places apart


@dataclass(frozen=True, kw_only=True)
class SentenceTask:
    """Sentences to translate.

    Attributes:
        channels, classes: Words of either language.
        size: Places of both.
    """

    channels: int
    size: tuple[int, int]
    classes: int

    def entrance(self) -> list[nn.Module]:
        """Nothing: words are not normalised."""
        return []

    def blank(self) -> Tensor:
        """Padding only, (1, S + T)."""
        return torch.full((1, sum(self.size)), PAD)


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Sentences and their translations as numbers, each with its end and then padding.

    Attributes:
        source, target: (N, `PLACES`) int64.
        pairs: The same in words.
    """

    source: Tensor
    target: Tensor
    pairs: tuple[SentencePair, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def inputs(self) -> Tensor:
        """(N, 2·PLACES): the sentence, and its translation up to the word before each place."""
        return joined(self.source, self.target)

    @property
    def labels(self) -> Tensor:
        """(N, PLACES): the word of the translation at each place; none where it is over."""
        return self.target.masked_fill(self.target == PAD, _IGNORED)

    def pick(self, places: Sequence[int]) -> "Sentences":
        """Those at `places`, in that order."""
        index, pairs = list(places), tuple(self.pairs[place] for place in places)
        return Sentences(source=self.source[index], target=self.target[index], pairs=pairs)


@task_of.register
def _task_of_sentences(data: Sentences) -> SentenceTask:
    english, german = (_FIRST + len(words) for words in vocabularies())
    return SentenceTask(
        channels=english, size=(data.source.shape[1], data.target.shape[1]), classes=german
    )


@dataclass(frozen=True, kw_only=True)
class Translator:
    """A transformer, pre-norm. h=1: the client embeds; each more is a layer of the encoder, then of
    the decoder.

    Attributes:
        t: Always 1, what makes words of the decoder's answer.
        width: Of an embedding.
        layers: Of encoder and decoder each.
        drop: Dropout while training.
    """

    h: int = 1
    width: int = 64
    layers: int = 1
    heads: int = 4
    drop: float = 0.1

    @property
    def t(self) -> int:
        """Units at the end that the client runs."""
        return 1

    def units(self, channels: int, size: tuple[int, int], classes: int) -> list[Unit]:
        """Embedding, encoder, decoder, linear layer.

        Args:
            channels, classes: Words of either language.
            size: Places of both.
        """
        width, last = self.width, self.layers - 1
        turns = [(decodes, n == last) for decodes in (False, True) for n in range(self.layers)]
        return [
            Unit(inputs=channels, make=lambda words: Embedding(words, classes, size, width)),
            *[
                Unit(inputs=width, make=partial(Layer, of=self, split=size[0], decodes=d, final=f))
                for d, f in turns
            ],
            Unit(inputs=width, make=lambda found: nn.Conv1d(found, classes, 1)),
        ]


class Embedding(nn.Module):
    """Words of both languages to vectors, to which those of their places are added.

    Attributes:
        words, answers: Of the language and of its translation.
        size: Places of both.
    """

    places: Tensor

    def __init__(self, words: int, answers: int, size: tuple[int, int], width: int) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(answers, width)
        for table in (self.source, self.target):
            nn.init.xavier_uniform_(table.weight)
        self.split, self.scale = size[0], math.sqrt(width)
        both = torch.cat([waves(places, width) for places in size])
        self.register_buffer("places", both)

    def forward(self, words: Tensor) -> Tensor:
        """(N, S + T) to (N, width, S + T)."""
        source, target = words[:, : self.split], words[:, self.split :]
        vectors = torch.cat([self.source(source), self.target(target)], dim=1)
        return (self.scale * vectors + self.places).transpose(1, 2)


class Layer(nn.Module):
    """A layer of the encoder, which leaves the translation as it is, or of the decoder.

    Attributes:
        decodes: Of the decoder, which sees of the translation what is there before each place.
        final: The last of its kind; of the decoder it gives the translation's places only.
    """

    def __init__(self, width: int, of: Translator, split: int, decodes: bool, final: bool) -> None:
        super().__init__()
        kind = nn.TransformerDecoderLayer if decodes else nn.TransformerEncoderLayer
        self.layer = kind(*(width, of.heads, 4 * width, of.drop), batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(width) if final else nn.Identity()
        self.split, self.decodes, self.final = split, decodes, final

    def forward(self, features: Tensor) -> Tensor:
        """(N, width, S + T) to the same shape, or to (N, width, T) of the decoder's last."""
        rows = features.transpose(1, 2)
        source, target = rows[:, : self.split], rows[:, self.split :]
        if not self.decodes:
            return torch.cat([self.norm(self.layer(source)), target], dim=1).transpose(1, 2)
        later = torch.ones(target.shape[1], target.shape[1], device=rows.device).triu(1).bool()
        target = self.norm(self.layer(target, source, tgt_mask=later))
        return (target if self.final else torch.cat([source, target], dim=1)).transpose(1, 2)


def waves(places: int, width: int) -> Tensor:
    """(places, width): sines and cosines of a place (Vaswani et al. 2017, §3.5); width is even."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(_FASTEST) / width))
    angles = torch.arange(places)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def numbered(pairs: Sequence[SentencePair]) -> Sentences:
    """The pairs as numbers; `KeyError` for a word that the grammar has not."""
    english, german = ({w: n for n, w in enumerate(words, _FIRST)} for words in vocabularies())
    return Sentences(
        source=_rows([[english[word] for word in pair.english] for pair in pairs]),
        target=_rows([[german[word] for word in pair.german] for pair in pairs]),
        pairs=tuple(pairs),
    )


def in_words(rows: Tensor, vocabulary: Words) -> list[Words]:
    """Sentences, (N, places), as words up to their end; what is no word is left out."""
    found = []
    for row in rows.tolist():
        until = row.index(END) if END in row else len(row)
        found.append(tuple(vocabulary[n - _FIRST] for n in row[:until] if n >= _FIRST))
    return found


def joined(source: Tensor, target: Tensor) -> Tensor:
    """Return the head's input: (N, S) and (N, T) to (N, S + T), the translation one place later."""
    return torch.cat([source, F.pad(target[:, :-1], (1, 0), value=BEGIN)], dim=1)


@torch.no_grad()
def translate(network: Callable[[Tensor], Tensor], source: Tensor, places: int) -> Tensor:
    """Translations of sentences, (N, S) to (N, places), each place by the likeliest word.

    Args:
        network: Rows for the head, (N, S + places), to logits, (N, words, places).
    """
    target = torch.full((len(source), places), PAD, device=source.device)
    over = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for place in range(places):
        likeliest = network(joined(source, target))[:, :, place].argmax(dim=1)
        target[:, place] = likeliest.masked_fill(over, PAD)
        over = over | (target[:, place] == END)
    return target


def _rows(sentences: Sequence[Sequence[int]]) -> Tensor:
    rows = [[*words, END, *[PAD] * (LONGEST - len(words))] for words in sentences]
    return torch.tensor(rows).reshape(len(rows), PLACES)


_RUNS = 4  # words, at most, of the runs that BLEU counts


def words_right(
    originals: Sequence[Words], found: Sequence[Words], only: Collection[str] | None = None
) -> float:
    """Share of the originals' words that stand at the same place of what was found, 0 to 1.

    Args:
        only: Counts no others; None for all. NaN where there is none to count.
    """
    hits = [
        place < len(own) and own[place] == word
        for original, own in zip(originals, found, strict=True)
        for place, word in enumerate(original)
        if only is None or word in only
    ]
    return sum(hits) / len(hits) if hits else math.nan


def bleu(originals: Sequence[Words], found: Sequence[Words]) -> float:
    """BLEU of all sentences together, 0 to 1, of runs of one to four words, not smoothed.

    Papineni et al. 2002, one reference each. 0 where no run of some length is right.
    """
    right, made = Counter[int](), Counter[int]()
    for original, own in zip(originals, found, strict=True):
        for length in range(1, _RUNS + 1):
            wanted, there = _runs(original, length), _runs(own, length)
            right[length] += (wanted & there).total()
            made[length] += there.total()
    lengths = range(1, _RUNS + 1)
    if not all(right[length] for length in lengths):
        return 0.0
    precision = sum(math.log(right[n] / made[n]) for n in lengths) / _RUNS
    needed, got = sum(map(len, originals)), sum(map(len, found))
    return math.exp(precision + min(0.0, 1 - needed / got))


def _runs(words: Words, length: int) -> Counter[Words]:
    return Counter(words[n : n + length] for n in range(len(words) - length + 1))
