"""Reading a client's sentences from the embedded words that it sends.

The attack on images, word by word (Ensembler paper, Appendix A.1): a shadow embedding is trained
through the server's frozen bodies, then a decoder of what it makes, which is applied to what the
client has sent. Nothing is asked of the client. `counted` needs no network at all.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.progress import Report
from semsim.systems.split.attacks import ShadowNetwork, learned
from semsim.systems.split.networks import task_of
from semsim.systems.split.system import FeatureObservation
from semsim.systems.split.train_settings import ShadowAttack
from semsim.systems.split.translator import END

_DECIMALS = 4  # by which what crosses is the same vector again


class SentenceDecoder(nn.Module):
    """Features of a sentence back to its words, each place with two neighbours on either side.

    split: places of the sentence, before those of its translation.
    """

    def __init__(self, inputs: int, words: int, split: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(inputs, inputs, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(inputs, inputs, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(inputs, words, 1),
        )
        self.split = split

    def forward(self, features: Tensor) -> Tensor:
        """(N, C, S + T) to logits, (N, words, S)."""
        found: Tensor = self.layers(features[:, :, : self.split])
        return found

    @torch.no_grad()
    def read(self, features: Tensor) -> Tensor:
        """The likeliest words, (N, S), of features, (N, C, S + T)."""
        parts = [self(part).argmax(dim=1) for part in features.split(256)]
        return torch.cat(parts)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Result of a reading attack. words: (N, S), one sentence a query.

    shadow, decoder: the attacker's own, in eval mode, to see whether each does its work.
    """

    words: Tensor
    shadow: ShadowNetwork
    decoder: SentenceDecoder


def read_sentences(
    attack: ShadowAttack, seen: FeatureObservation, rng: torch.Generator, report: Report
) -> Reading:
    """One sentence a query, from a decoder of the features of a shadow embedding.

    seen.public: `semsim.systems.split.translator.Sentences`. Raises `SettingsError` for a body that
    the server does not have, and where a training diverges.
    """
    task = task_of(seen.public)
    split = task.size[0]

    def fresh() -> SentenceDecoder:
        return SentenceDecoder(seen.features.shape[1], task.channels, split)

    def misread(found: Tensor, inputs: Tensor) -> Tensor:
        return F.cross_entropy(found, inputs[:, :split])

    shadow, decoder, _ = learned(attack, seen, fresh, misread, rng, report)
    return Reading(words=decoder.read(seen.features), shadow=shadow, decoder=decoder)


def counted(features: Tensor, public: Tensor) -> Tensor:
    """Words, (N, S), by how often each vector is sent at a place: a cipher read by counting.

    The commonest vector of a place is taken for the commonest word there of the public sentences,
    the next for the next. Where noise is drawn anew for every sentence no vector comes twice.
    features: (N, C, S + T). public: sentences, (M, S).
    """
    columns = []
    for place in range(public.shape[1]):
        sent = features[:, :, place].mul(10**_DECIMALS).round()
        _, which, counts = torch.unique(sent, dim=0, return_inverse=True, return_counts=True)
        ranks = counts.argsort(descending=True, stable=True).argsort()
        words = public[:, place].bincount().argsort(descending=True, stable=True)
        columns.append(words[ranks[which].clamp(max=len(words) - 1)])
    return torch.stack(columns, dim=1)


def guesses(public: Tensor, count: int, rng: torch.Generator) -> dict[str, Tensor]:
    """Return the guesses of an attacker who sees no feature, (count, S) each.

    public: sentences, (M, S). "commonest word": it, everywhere. "commonest word of each
    place": as the mean is of pictures. "another sentence": one of the public ones, drawn.
    """
    words = public[public > END]  # neither ends nor padding
    places = public.mode(dim=0).values
    drawn = torch.randint(len(public), (count,), generator=rng)
    return {
        "commonest word": torch.full((count, public.shape[1]), int(words.mode().values)),
        "commonest word of each place": places.repeat(count, 1),
        "another sentence": public[drawn],
    }
