"""Number of people a study needs, computed before labelling, and effects of having fewer."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from annotation.design.study_plan import StudyPlan
from annotation.domain import StimulusKind
from annotation.spec import Lists, StudySpec
from annotation.texts import counted

SECONDS_PER_VOTE = 3.0  # what a practised person takes, where nobody has answered yet; a median
# Standard deviations of the logarithm of seconds: of people's paces, and of one person's answers.
PACE, JITTER = 0.4, 0.5
# What many answers take on average, over what one usually takes: slow ones are slower by more.
MEAN_OVER_MEDIAN = math.exp((PACE**2 + JITTER**2) / 2)


@dataclass(frozen=True, kw_only=True)
class Load:
    """Load of a study: items that there are to look at.

    Attributes:
        n_items: Items that want votes.
        least, most: Of the original that has most of them, what it has at least and at most; one
            number as soon as the items are known.
        gold: Gold items of one original, at most.
    """

    n_items: int
    least: int
    most: int
    gold: int = 0


def load_of(plan: StudyPlan) -> Load:
    """Compute the `Load` of a study."""
    items = Counter(item.image_id for item in plan.items)
    gold = Counter(item.image_id for item in plan.quality if item.kind is StimulusKind.GOLD)
    most = max(items.values())
    return Load(n_items=len(plan.items), least=most, most=most, gold=max(gold.values(), default=0))


def load_before(
    spec: StudySpec, *, n_reconstructions: int, n_originals: int, n_models: int, n_decoys: int
) -> Load:
    """Compute the `Load` of a study before it is drawn whose originals the decoys show."""
    n_items = n_reconstructions + n_decoys + spec.label_originals * n_originals
    most = n_models * (2 if n_decoys else 1) + spec.label_originals
    return Load(n_items=n_items, least=min(most, _ceil(n_items, n_originals)), most=most)


@dataclass(frozen=True, kw_only=True)
class Feasibility:
    """Number of people a study needs, and effects of having as many as there will be.

    Attributes:
        annotators_needed: With fewer, items lack votes whoever does what.
        annotators_enough: With so many who each label all they get, every item has its votes,
            whoever comes when; None where no number is sure to be enough.
        views_each: How often people meet the same original if all do the same amount.
        risk: What may follow, in words.
    """

    annotators_needed: int
    annotators_enough: int | None
    views_each: int
    risk: str

    @property
    def people(self) -> str:
        """Number of people needed, in words."""
        needed = f"{self.annotators_needed:,} annotator{'s' * (self.annotators_needed != 1)} needed"
        if self.annotators_enough is None:
            return f"At least {needed}"
        if self.annotators_enough == self.annotators_needed:
            return needed
        return f"{needed}, {self.annotators_enough:,} to be sure"


def feasibility(spec: StudySpec, load: Load, n_annotators: int | None = None) -> Feasibility:
    """Compute the `Feasibility` of a study; `n_annotators` None are as many as are enough."""
    needed, enough = _needed(spec, load), _enough(spec, load)
    people = max(1, (enough or needed) if n_annotators is None else n_annotators)
    limits = (load.most, spec.max_views, spec.items_per_person)
    most_views = min(n for n in limits if n is not None)
    views = min(most_views, _ceil(spec.votes_per_item * load.least, people))
    return Feasibility(
        annotators_needed=needed,
        annotators_enough=enough,
        views_each=views,
        risk=" ".join(
            [
                *_shortage(spec, people, needed, enough),
                _carry_over(spec, views, most_views),
                *_shared_lists(spec, views),
            ]
        ),
    )


def _shared_lists(spec: StudySpec, views: int) -> Iterator[str]:
    """Yield a warning where a list gives away an original that an annotator meets again."""
    if spec.kind.lists and spec.lists is Lists.ORIGINAL and views > 1:
        yield (
            "All pictures of an original share one list of words, which tells that they belong "
            "together; with wrong words drawn anew for each item none does."
        )


def _needed(spec: StudySpec, load: Load) -> int:
    """The votes wanted, on one original and in all, over what one person may give of them."""
    k = spec.votes_per_item
    of_original = _ceil(k * load.least, spec.max_views) if spec.max_views else k
    of_all = _ceil(k * load.n_items, spec.items_per_person) if spec.items_per_person else k
    return max(k, of_original, of_all)


def _enough(spec: StudySpec, load: Load) -> int | None:
    """One more than can be there while an item lacks a vote.

    Whoever has not had such an item has used up their views of its original, or answered all that
    was asked of them. Both take votes from the other items, and those have only so many to give.
    """
    k = spec.votes_per_item + spec.extra_vote
    quota = spec.items_per_person or load.n_items
    views = load.most if spec.max_views is None else spec.max_views - load.gold
    if views < 1:
        return None
    out_of_views = k * (load.most - 1) // views if views < min(load.most, quota) else 0
    left = k * (load.n_items - 1) - out_of_views * views
    out_of_quota = left // quota if quota < load.n_items else 0
    return k + out_of_views + out_of_quota


def _shortage(spec: StudySpec, people: int, needed: int, enough: int | None) -> list[str]:
    """Describe what to expect of the number of votes; empty where all is well."""
    k = spec.votes_per_item
    if people < k:
        return [
            f"With fewer than {k} people no item gets all its votes: nobody judges an item twice."
        ]
    limits = []
    if spec.max_views is not None:
        limits.append(f"see an original more than {_times(spec.max_views)}")
    if spec.items_per_person is not None:
        limits.append(f"label more than {counted(spec.items_per_person, 'item')}")
    why = f"nobody may {' or '.join(limits)}"
    if people < needed:
        return [f"Items will lack votes: {why}. Invite more people, or allow more."]
    if enough is None:
        return [f"Items may lack votes, as gold items are views as well and {why}."]
    if people < enough:
        return [f"Items may lack votes, depending on who labels what first: {why}."]
    return []


def _carry_over(spec: StudySpec, views: int, most_views: int) -> str:
    if most_views == 1:
        if spec.decoy_rate:
            return (
                "Nobody meets an original twice, but a decoy shows a reconstruction of another, "
                "which somebody may meet beside its own original, too."
            )
        but = " except in blind repeats" if spec.repeat_rate else ""
        return f"Nobody meets an original twice{but}, so there is no carry-over."
    how_often = _times(views) if views == most_views else f"about {_times(views)}"
    at_most = "" if views == most_views else f", at most {_times(most_views)}"
    return (
        f"Each person meets the same original {how_often}{at_most}. What they recognised once "
        "helps them the next time (carry-over), so later views look more recognisable than they "
        "are; the page Results shows how much."
    )


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _ceil(n: int, parts: int) -> int:
    return -(-n // parts)
