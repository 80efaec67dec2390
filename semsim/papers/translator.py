"""A small encoder-decoder of which the client keeps the embeddings of both languages.

Ensembler paper, Appendix A.1, after PyTorch's tutorial on translation with a transformer (Vaswani
et al. 2017): what crosses are the embedded words of the sentence and of its translation so far,
side by side. Words are numbers; padding is a word like any other, so that no length is sent. In
shapes S and T are the places of a sentence and of its translation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.papers.grammar import LONGEST, Pair, Words, vocabularies
from semsim.systems.split.networks import Unit, task_of

PAD, BEGIN, END = 0, 1, 2
PLACES = LONGEST + 1  # of words in either language: a sentence and its end
_FIRST = 3  # the number of the first word
_IGNORED = -100  # by `torch.nn.functional.cross_entropy`
_FASTEST = 10_000.0  # of the sines and cosines that tell places apart


@dataclass(frozen=True, kw_only=True)
class SentenceTask:
    """Sentences to translate. channels, classes: words of either language. size: places of both."""

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

    source, target: (N, `PLACES`) int64. pairs: the same in words.
    """

    source: Tensor
    target: Tensor
    pairs: tuple[Pair, ...]

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
    the decoder. t: always 1, what makes words of the decoder's answer.

    width: of an embedding. layers: of encoder and decoder each. drop: dropout while training.
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
        """Embedding, encoder, decoder, linear layer. channels, classes: words of either language.
        size: places of both.
        """
        width, last = self.width, self.layers - 1
        turns = [(kind, n == last) for kind in (Encoding, Decoding) for n in range(self.layers)]
        return [
            Unit(inputs=channels, make=lambda words: Embedding(words, classes, size, width)),
            *[_layer(kind, self, size[0], final) for kind, final in turns],
            Unit(inputs=width, make=lambda found: nn.Conv1d(found, classes, 1)),
        ]


class Embedding(nn.Module):
    """Words of both languages to vectors, to which those of their places are added.

    words, answers: of the language and of its translation. size: places of both.
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


class Encoding(nn.Module):
    """A layer of the encoder; it leaves the translation as it is. final: the last such layer."""

    def __init__(self, width: int, heads: int, drop: float, split: int, final: bool) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, drop, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width) if final else nn.Identity()
        self.split = split

    def forward(self, features: Tensor) -> Tensor:
        """(N, width, S + T) to the same shape."""
        rows = features.transpose(1, 2)
        source = self.norm(self.layer(rows[:, : self.split]))
        return torch.cat([source, rows[:, self.split :]], dim=1).transpose(1, 2)


class Decoding(nn.Module):
    """A layer of the decoder, which sees of the translation what is there before each place.

    final: the last such layer, which gives the translation's places only.
    """

    def __init__(self, width: int, heads: int, drop: float, split: int, final: bool) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(
            width, heads, 4 * width, drop, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width) if final else nn.Identity()
        self.split, self.final = split, final

    def forward(self, features: Tensor) -> Tensor:
        """(N, width, S + T) to the same shape, or to (N, width, T) of the last."""
        rows = features.transpose(1, 2)
        source, target = rows[:, : self.split], rows[:, self.split :]
        later = torch.ones(target.shape[1], target.shape[1], device=rows.device).triu(1).bool()
        target = self.norm(self.layer(target, source, tgt_mask=later))
        kept = target if self.final else torch.cat([source, target], dim=1)
        return kept.transpose(1, 2)


def waves(places: int, width: int) -> Tensor:
    """(places, width): sines and cosines of a place (Vaswani et al. 2017, §3.5); width is even."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(_FASTEST) / width))
    angles = torch.arange(places)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def numbered(pairs: Sequence[Pair]) -> Sentences:
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

    network: rows for the head, (N, S + places), to logits, (N, words, places).
    """
    target = torch.full((len(source), places), PAD, device=source.device)
    over = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for place in range(places):
        likeliest = network(joined(source, target))[:, :, place].argmax(dim=1)
        target[:, place] = likeliest.masked_fill(over, PAD)
        over = over | (target[:, place] == END)
    return target


def _layer(
    kind: type[Encoding] | type[Decoding], network: Translator, split: int, final: bool
) -> Unit:
    heads, drop = network.heads, network.drop
    return Unit(inputs=network.width, make=lambda width: kind(width, heads, drop, split, final))


def _rows(sentences: Sequence[Sequence[int]]) -> Tensor:
    rows = [[*words, END, *[PAD] * (LONGEST - len(words))] for words in sentences]
    return torch.tensor(rows).reshape(len(rows), PLACES)
