"""The classes offered for a reconstruction (recognition task)."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.errors import StudyError


@dataclass(frozen=True, kw_only=True)
class CandidateList:
    """At most 20 classes in display order, the true one among them.

    `true_rank` is the true class's place in the classifier's ranking (1 = first; None without
    one), `forced` says that the ranking alone would have left it out.
    """

    classes: tuple[str, ...]
    true_position: int
    true_rank: int | None
    forced: bool

    @property
    def sha256(self) -> str:
        """Hash of the classes in their order."""
        return hashlib.sha256(json.dumps(self.classes).encode()).hexdigest()


def candidate_list(
    true_class: str,
    classes: Sequence[str],
    size: int,
    ranking: Sequence[str] = (),
    *,
    rng: random.Random,
) -> CandidateList:
    """`size` of `classes` (all, if there are fewer) with `true_class` and its best distractors.

    `ranking` holds classes by falling probability on the *original*, from a classifier other than
    the attacked ones; where it is too short or missing, `rng` draws the rest. Raises `StudyError`
    if `true_class` is not one of `classes`.
    """
    if true_class not in classes:
        raise StudyError(f"Class {true_class!r} is not in the data set's list of classes.")
    known = set(classes)
    ranked = [name for name in dict.fromkeys(ranking) if name in known]
    rest = sorted(known - set(ranked))
    distractors = [name for name in ranked + rng.sample(rest, len(rest)) if name != true_class]
    chosen = sorted([true_class, *distractors[: size - 1]], key=_as_shown)
    true_rank = ranked.index(true_class) + 1 if true_class in ranked else None
    return CandidateList(
        classes=tuple(chosen),
        true_position=chosen.index(true_class),
        true_rank=true_rank,
        forced=bool(ranked) and len(known) > size and (true_rank is None or true_rank > size),
    )


def _as_shown(name: str) -> tuple[str, str]:
    # People read "chess knight" for chess_knight; the order must look alphabetical to them.
    return name.replace("_", " ").casefold(), name
