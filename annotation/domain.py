"""The nouns of a human study, as frozen values. Names of identifiers: all are opaque strings.

A *study* asks one question (its task) about *items*. An item is one reconstruction shown to
people, alone (recognition) or beside an original (pair). An item that needs K votes has K
*slots*; an *annotator* holds a slot under a lease while looking at the item and fills it with
a *vote*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from annotation.errors import StudyError

NONE = "none"  # the answer "I do not see any of these"
SAME = "same"
DIFFERENT = "different"

MAX_LIST_SIZE = 20  # one key each on the 4 × 5 block of the keyboard


class Task(StrEnum):
    """What people are asked about an item."""

    RECOGNITION = "recognition"  # which of these classes is it?
    PAIR = "pair"  # do these two show the same?


class HeadlineRule(StrEnum):
    """How votes become the human score that metrics are judged by; fixed before the first vote."""

    MAJORITY = "majority"  # more than half of the K votes recognised it
    MEAN_RESPONSE = "mean-response"  # the share of votes that recognised it
    IGNORING_NONE = "ignoring-none"  # that share among the votes that named a class
    DAWID_SKENE = "dawid-skene"  # annotators weighted by how reliable they seem


class StudyStatus(StrEnum):
    """Whether a study hands out items; a closed one also counts no more votes."""

    RUNNING = "running"
    PAUSED = "paused"
    CLOSED = "closed"


class VoteStatus(StrEnum):
    """What became of a vote; no vote is ever deleted."""

    COUNTED = "counted"
    SUPERSEDED = "superseded"  # undone by the annotator who gave it
    SURPLUS = "surplus"  # came when the item needed no more votes
    EXCLUDED = "excluded"  # given by somebody whose votes do not count (any more)


class AnnotatorStatus(StrEnum):
    """Whether somebody takes part in a study; only who is active gets items and may vote."""

    ACTIVE = "active"
    PAUSED = "paused"  # the votes given so far count
    EXCLUDED = "excluded"  # no vote counts until they are included again
    ERASED = "erased"  # the name is gone for good


class StimulusKind(StrEnum):
    """Whether the reconstruction beside an original is a reconstruction of that original."""

    RECONSTRUCTION = "reconstruction"
    DECOY = "decoy"


class SlotState(StrEnum):
    """Where one of an item's K slots stands."""

    FREE = "free"
    LEASED = "leased"
    DONE = "done"


class NoneReason(StrEnum):
    """Why an annotator answered none; the paper merges the two."""

    CANNOT_MAKE_OUT = "cannot_make_out"
    NOT_IN_LIST = "not_in_list"


@dataclass(frozen=True, kw_only=True)
class StudySpec:
    """What a researcher decides before a study starts; it does not change afterwards.

    Raises `StudyError` for a value that no study can have.
    """

    name: str
    task: Task
    votes_per_item: int = 5  # K: how many people judge each item
    list_size: int = MAX_LIST_SIZE  # recognition: candidate classes offered, true one included
    decoy_rate: float = 0.0  # pair: decoys per matched item; 0.5 is one decoy to two matched
    headline: HeadlineRule = HeadlineRule.MAJORITY
    seed: int = 0
    simulated: bool = False  # answered by simulated annotators only
    image_scale: int = 8  # CSS pixels per image pixel on screen
    lease_seconds: int = 600  # how long an item is reserved for one annotator
    password: str | None = field(default=None, repr=False)  # kept only as a salted hash

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", Task(self.task))
        object.__setattr__(self, "headline", HeadlineRule(self.headline))
        problems = [message for wrong, message in self._checks() if wrong]
        if problems:
            raise StudyError("\n".join(problems))

    def _checks(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not self.name.strip(), "A study needs a name; got an empty one."),
            (
                not 1 <= self.votes_per_item <= 100,
                f"Votes per item must be 1 to 100; got {self.votes_per_item}.",
            ),
            (
                not 2 <= self.list_size <= MAX_LIST_SIZE,
                f"The list size must be 2 to {MAX_LIST_SIZE}, a key each; got {self.list_size}.",
            ),
            (
                not 0 <= self.decoy_rate <= 1,
                f"The decoy rate must be 0 to 1 per matched item; got {self.decoy_rate}.",
            ),
            (
                self.decoy_rate > 0 and self.task is not Task.PAIR,
                "Decoys belong to the pair task; set the decoy rate to 0 or choose task pair.",
            ),
            (
                not 1 <= self.image_scale <= 64,
                f"The image scale must be 1 to 64; got {self.image_scale}.",
            ),
            (
                self.lease_seconds < 1,
                f"The lease must be at least 1 second; got {self.lease_seconds}.",
            ),
            (self.password == "", "An empty password protects nothing; leave it out instead."),
        )


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study as it stands; `spec.password` is never filled in, `protected` says there is one."""

    id: str
    name: str
    task: Task
    status: StudyStatus
    spec: StudySpec
    token: str  # the secret part of the link that annotators open
    created: datetime
    protected: bool
    dataset: str
    models: tuple[str, ...]
    n_items: int  # decoys included
    n_decoys: int
    n_failed: int  # reconstructions left out because the attack failed
    images: Path  # folder of <sha256>.png
    protocol: str  # SHA-256 over settings, items and candidate lists


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """One person, or one simulated person, in one study."""

    id: str
    study_id: str
    name: str
    simulated: bool = False
    status: AnnotatorStatus = AnnotatorStatus.ACTIVE  # when this was read


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """The secret a browser keeps in its cookie, and who it stands for."""

    session_token: str = field(repr=False)
    annotator: Annotator


@dataclass(frozen=True, kw_only=True)
class TaskItem:
    """All an annotator's browser learns of an item.

    `images` are opaque tokens: (reconstruction,) for recognition, (original, shown beside it)
    for pair. `candidates` are class names in display order, empty for pair.
    """

    item: str
    images: tuple[str, ...]
    candidates: tuple[str, ...]
    lease_until: datetime


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an annotator's browser sends: `id` is a UUID it made, the same on every retry.

    `answer` is a candidate class or "none" (with an optional `NoneReason`) for recognition,
    "same" or "different" for pair. `rt_ms` is the time from first paint to key, None if not
    measured. `display` holds what the image looked like on screen (size, zoom, ...).
    """

    id: str
    item: str
    answer: str
    reason: str | None = None
    rt_ms: float | None = None
    client_ts: datetime | None = None
    display: Mapping[str, Any] = field(default_factory=dict)
    tab: str = ""


@dataclass(frozen=True, kw_only=True)
class VoteReceipt:
    """Proof that a vote is in the database, and whether it counts."""

    id: str
    status: VoteStatus


@dataclass(frozen=True, kw_only=True)
class AnnotatorProgress:
    """How far one annotator is; `left` counts the items that still have room for them."""

    done: int
    left: int
    total: int
    median_rt_ms: float | None


@dataclass(frozen=True, kw_only=True)
class AnnotatorRow:
    """One annotator as the researcher sees them.

    Rates and medians are over counted votes and excluded ones.
    """

    name: str
    done: int  # counted votes
    median_rt_ms: float | None
    none_rate: float | None  # None without votes, and in the pair task
    last_seen: datetime
    simulated: bool
    status: AnnotatorStatus = AnnotatorStatus.ACTIVE
    excluded: int = 0  # votes that do not count


@dataclass(frozen=True, kw_only=True)
class StudyProgress:
    """`coverage[j]` items (decoys included) have exactly j counted votes; length K + 1."""

    n_items: int
    coverage: list[int]
    annotators: list[AnnotatorRow]
