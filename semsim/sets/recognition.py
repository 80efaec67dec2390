"""Numbers and words of what a reference classifier recognises in what came back, without torch.

It is the lead of every verdict of the lab. That a picture is above the baseline is a statistic,
`semsim.sets.no_attack_baseline`, and says nothing of what can be made out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from semsim.base.stats.intervals import share_words
from semsim.base.words import counted, jury_words

NOT_YET = "Recognition is judged when all attacks are done."
STATISTIC = "Statistic, not recognition: "
CLEARER = "Statistic: above the no-attack baseline"  # above a column of counts


class Recognised(NamedTuple):
    """Count the pictures that a reference classifier names rightly; failed attacks show none.

    Attributes:
        over: The pictures.
        grey, originals: Its controls, of as many grey pictures and the originals.
        units: The originals; of several sets those of the largest, as most sets share theirs.
    """

    recognised: int
    grey: int
    originals: int
    over: int
    units: int

    @classmethod
    def of(cls, sets: Iterable[Mapping[str, int]]) -> "Recognised":
        """The sum over sets, as `semsim.metrics.reference_classifier.recognition` has them."""
        kept = list(sets)
        sums = {name: sum(one[name] for one in kept) for name in cls._fields[:-1]}
        return cls(**sums, units=max(one["over"] for one in kept))

    def words(self, where: str = "") -> str:
        """Return the count, its share over originals and its controls, to end a sentence.

        Args:
            where: Which pictures they are, with a space in front.
        """
        share = share_words(self.recognised / max(1, self.over), self.units)
        return (
            f"{self.recognised} of {counted(self.over, 'picture')}{where}, {share} (controls: "
            f"{self.grey} of {self.over} grey pictures, {self.originals} of {self.over} originals)"
        )


def recognised_words(found: Mapping[str, Any] | None, names: Iterable[str], where: str = "") -> str:
    """Return the lead: how many pictures a reference classifier recognises, or why it is unknown.

    Args:
        found: As `semsim.metrics.reference_classifier.recognition`, None while it is not there yet.
        names: Of the sets that count.
        where: Which pictures they are, with a space in front.
    """
    if found is None:
        return NOT_YET
    if found["why"]:
        return f"What can be recognised is not known: {found['why']}"
    sets = [found["sets"][name] for name in names if name in found["sets"]]
    if not sets:
        return "What can be recognised is not known: nothing came back."
    return lead_words(Recognised.of(sets).words(where), found["right"])


def lead_words(share: str, right: float | None = None) -> str:
    """Return a share with its controls as the lead, and how classifiers err against people.

    Args:
        right: Of a classifier that was made, the share of other pictures that it names.
    """
    made = "" if right is None else f" that learned other pictures here ({right:.0%} right)"
    return f"A reference classifier{made} recognises {share}. {jury_words('classifier')}"
