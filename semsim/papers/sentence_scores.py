"""Scores of reconstructed sentences: share of words at their place, and BLEU."""

import math
from collections import Counter
from collections.abc import Collection, Sequence

from semsim.papers.grammar import Words

_LONGEST = 4  # words of the runs that BLEU counts


def words_right(
    originals: Sequence[Words], found: Sequence[Words], only: Collection[str] | None = None
) -> float:
    """Share of the originals' words that stand at the same place of what was found, 0 to 1.

    only: counts no others; None for all. NaN where there is none to count.
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
        for length in range(1, _LONGEST + 1):
            wanted, there = _runs(original, length), _runs(own, length)
            right[length] += (wanted & there).total()
            made[length] += there.total()
    lengths = range(1, _LONGEST + 1)
    if not all(right[length] for length in lengths):
        return 0.0
    precision = sum(math.log(right[n] / made[n]) for n in lengths) / _LONGEST
    needed, got = sum(map(len, originals)), sum(map(len, found))
    return math.exp(precision + min(0.0, 1 - needed / got))


def _runs(words: Words, length: int) -> Counter[Words]:
    return Counter(words[n : n + length] for n in range(len(words) - length + 1))
