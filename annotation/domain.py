"""The nouns of a human study, as frozen values, and of who runs it. Identifiers are opaque strings.

A *study* asks one question (its task) about *items*. An item is one reconstruction shown to
people, alone (recognition) or with an original (pair, rating). An item that needs K votes has K
*slots*; an *annotator* holds a slot under a lease while looking at the item and fills it with
a *vote*.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from annotation.spec import StudySpec, Task
from annotation.tasks import KINDS
from annotation.tasks.kind import Kind
from semsim.base.words import words_of_test

LONGEST_NAME = 80
SHORTEST_PASSWORD = 12
IDLE = timedelta(days=30)  # a session nobody uses for so long is over
LONGEST_SESSION = timedelta(days=90)
INVITATION = timedelta(days=7)
SESSION_LASTS = timedelta(days=30)  # a study may take weeks; people should not sign in daily


class StudyStatus(StrEnum):
    """Status of a study: whether it hands out items; a closed one also counts no more votes."""

    RUNNING = "running"
    PAUSED = "paused"
    CLOSED = "closed"


class VoteStatus(StrEnum):
    """Status of a vote; no vote is ever deleted."""

    COUNTED = "counted"
    SUPERSEDED = "superseded"  # undone by the annotator who gave it
    SURPLUS = "surplus"  # came when the item needed no more votes
    EXCLUDED = "excluded"  # given by somebody whose votes do not count (any more, or as yet)
    QUALITY = "quality"  # answers a trial (practice, catch, gold, repeat): never in the majority


class AnnotatorStatus(StrEnum):
    """Status of an annotator in a study; only an active one gets items and may vote."""

    ACTIVE = "active"
    PAUSED = "paused"  # the votes given so far count
    EXCLUDED = "excluded"  # no vote counts until they are included again
    ERASED = "erased"  # the name is gone for good


class Step(StrEnum):
    """Steps of an annotator through a study, in this order; kept in the database."""

    CONSENT = "consent"
    INSTRUCTIONS = "instructions"
    PRACTICE = "practice"  # items with feedback, which never count
    CHECK = "check"  # questions on the instructions
    MAIN = "main"
    DONE = "done"  # all asked of them has been answered
    DECLINED = "declined"  # did not consent
    FAILED = "failed"  # did not pass the check


class StimulusKind(StrEnum):
    """Kind of an item. Only the first three have slots; the others are shown as trials."""

    RECONSTRUCTION = "reconstruction"
    DECOY = "decoy"  # the reconstruction of something else beside an original
    ORIGINAL = "original"  # what people say of the image that was attacked
    PRACTICE = "practice"
    CATCH = "catch"  # a clear original, or noise: the answer is known
    GOLD = "gold"  # a reconstruction whose answer the researcher gave


class TrialKind(StrEnum):
    """Reason for showing an annotator an item besides those that are counted."""

    PRACTICE = "practice"
    CATCH = "catch"
    GOLD = "gold"
    REPEAT = "repeat"  # an item they have answered before, under another name


class SlotState(StrEnum):
    """State of one of an item's K slots."""

    FREE = "free"
    LEASED = "leased"
    DONE = "done"


class NoneReason(StrEnum):
    """Reason for which an annotator answered none; the paper merges the two."""

    CANNOT_MAKE_OUT = "cannot_make_out"
    NOT_IN_LIST = "not_in_list"


@dataclass(frozen=True, kw_only=True)
class TargetTest:
    """Test of a target model at its own task, on images it had not seen.

    Attributes:
        accuracy: Share of right answers.
        n_classes: Among so many.
        at_chance: Whether guessing does as well, by the test its maker used. None, each, where the
            set does not say.
        delta: The δ at which `epsilon` is what its training gives away of any one image; None where
            nothing was to be hidden, as `epsilon` is where nothing is.
        chance: What guessing gets, or always saying the commonest class; every accuracy has one.
        attacker: Of the set, as `semsim.base.threat.attacker_words` has it.
    """

    accuracy: float | None = None
    n_classes: int | None = None
    at_chance: bool | None = None
    epsilon: float | None = None
    delta: float | None = None
    chance: float | None = None
    attacker: str = ""

    @property
    def text(self) -> str:
        """Such as "71% right (chance 2%), ε = 8.1 at δ = 1e-05", "3% right: at chance (2%)", or
        "not kept".
        """
        return words_of_test(asdict(self))


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
    protocol: str  # SHA-256 over settings, items and candidate lists, of the version below
    n_originals: int = 0  # items that show an original, to be named like the others
    version: int = 1  # of the protocol: 1 at the start, one more at each change of settings
    targets: Mapping[str, TargetTest] = field(default_factory=dict)  # by model, where known
    judges: tuple[str, ...] = ()  # SHA-256 of the weights that ranked the words of its lists
    by: str = ""  # the account that made it, where there are accounts

    @property
    def kind(self) -> Kind:
        """Kind of question that people are asked."""
        return KINDS[self.task].of(vars(self.spec))

    def target(self, model: str) -> TargetTest:
        """Return the test of that model; of one without a record, nothing is known."""
        return self.targets.get(model, TargetTest())

    def target_of(self, name: str) -> TargetTest:
        """The same of a model by the name that `stats.evidence.model_names` gives it."""
        while name and name not in self.targets:
            name = name.rpartition(" · ")[0]
        return self.target(name)

    @property
    def n_reconstructions(self) -> int:
        """The items that are judged."""
        return self.n_items - self.n_decoys - self.n_originals


@dataclass(frozen=True, kw_only=True)
class ProtocolVersion:
    """A study's settings from some moment on; `changed` names what the version before had not so.

    Attributes:
        sha256: Of version 1 over settings, items and candidate lists, of the others over that of
            version 1 and their settings.
    """

    version: int
    sha256: str
    spec: StudySpec
    why: str
    by: str
    at: datetime
    changed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """One person, or one simulated person, in one study."""

    id: str
    study_id: str
    name: str
    simulated: bool = False
    status: AnnotatorStatus = AnnotatorStatus.ACTIVE  # when this was read
    step: Step = Step.MAIN  # when this was read
    seat: int = 0  # how many had joined before; decides the order of target models
    link_by: str | None = None  # the account whose link let them in; their votes are left out


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """The secret a browser keeps in its cookie, and who it stands for."""

    session_token: str = field(repr=False)
    annotator: Annotator


@dataclass(frozen=True, kw_only=True)
class TaskItem:
    """All an annotator's browser learns of an item.

    `images` are opaque tokens: (reconstruction,) for recognition, (original, shown beside it)
    for others. `candidates` are class names in display order, empty for others.
    """

    item: str
    images: tuple[str, ...]
    candidates: tuple[str, ...]
    lease_until: datetime
    practice: bool = False  # before the study begins; no other trial says what it is


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Answer that an annotator's browser sends: `id` is a UUID it made, the same on every retry.

    `answer` is a candidate class or "none" (with an optional `NoneReason`) for recognition,
    "same" or "different" for pair, a number for rating. `rt_ms` is the time from first paint to
    key, None if not measured. `display` holds what the image looked like on screen (size, zoom,
    ...), `views` which views of it were looked at (`spec.View`), the first first. `version` is that
    of the protocol the item was shown under.
    """

    id: str
    item: str
    answer: str
    reason: str | None = None
    rt_ms: float | None = None
    client_ts: datetime | None = None
    display: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    tab: str = ""
    version: int = 1


@dataclass(frozen=True, kw_only=True)
class VoteReceipt:
    """Proof that a vote is in the database, and whether it counts."""

    id: str
    status: VoteStatus
    feedback: str | None = None  # the expected answer, of practice trials only


@dataclass(frozen=True, kw_only=True)
class AnnotatorProgress:
    """Progress of one annotator; `left` counts the items that they may still be given.

    Attributes:
        waiting: Nothing is left at this moment, but others hold items that may yet come to them.
        trials_done, trials_left: Of the trials that look like any other item. The progress shown to
            the annotator includes them, as does the median, or the numbers would give away which
            item does not count.
    """

    done: int
    left: int
    total: int
    median_rt_ms: float | None
    waiting: bool = False
    trials_done: int = 0
    trials_left: int = 0

    @property
    def over(self) -> bool:
        """True if nothing is left, and nothing may yet come."""
        return not (self.left or self.waiting)


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
    link_by: str | None = None  # the account whose link let them in; further votes are left out
    step: Step = Step.MAIN
    completion_code: str | None = None  # what they were told at the end; None before
    keep_votes: bool | None = None  # whether they agreed that votes outlive them; None: not asked
    catch_answered: int = 0  # catch trials
    catch_failed: int = 0  # of these, answered otherwise than known
    warned: bool = False  # as many as the researcher wants to be warned of
    paused_by_itself: bool = False  # after too many failed catch trials


@dataclass(frozen=True, kw_only=True)
class StudyProgress:
    """`coverage[j]` items (decoys included) have exactly j counted votes; length K + 1.

    The last one has K or more: `extra_wanted` items were split and get one vote more, of which
    `extra_done` are there.
    """

    n_items: int
    coverage: list[int]
    annotators: list[AnnotatorRow]
    extra_wanted: int = 0
    extra_done: int = 0

    @property
    def votes_wanted(self) -> int:
        """K for each item, and one more where they were split and the study says so."""
        return self.n_items * (len(self.coverage) - 1) + self.extra_wanted

    @property
    def votes_done(self) -> int:
        """Counted votes so far."""
        return sum(votes * items for votes, items in enumerate(self.coverage)) + self.extra_done


# ------------------------------------------------------------------ accounts: who runs studies here


class Role(StrEnum):
    """Role of an account; an administrator may do all that a researcher may."""

    ADMINISTRATOR = "administrator"
    RESEARCHER = "researcher"


@dataclass(frozen=True, kw_only=True)
class Account:
    """User who runs studies; annotators have no account. `disabled` is since when, None if not."""

    id: str
    name: str
    role: Role
    created: datetime
    disabled: datetime | None


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A password as it is kept: scrypt's salt and result, both hexadecimal."""

    salt: str
    hash: str


@dataclass(frozen=True, kw_only=True)
class Session:
    """A browser that has just signed in; `token` is told this once and kept only as a hash."""

    token: str
    account: Account


@dataclass(frozen=True, kw_only=True)
class Invitation:
    """A link to be used once: to make an account, or to give `account` a new password.

    `id` is the SHA-256 of the link's token, so that knowing it opens nothing; `note` is whom it is
    for.
    """

    id: str
    role: Role
    note: str
    invited_by: str
    created: datetime
    expires: datetime
    account: Account | None
