"""Items that never count: which there are, and when an annotator is shown one.

Practice items come with feedback before the study begins. Catch trials show what every annotator
should see, or what no annotator can. Gold items are reconstructions whose answer the researcher
gave. Repeats are items that the annotator has answered before. Practice and catch trials use
originals that the study does not ask about. So no annotator learns from them what a counted item
shows.

Gold items and repeats may be of originals that the study asks about, so what one person may see of
an original (`StudySpec.max_views`, `min_lag`, `label_originals`) holds for them as well, with one
exception: a gold item is a view like any other, but a repeat, which is a second look by its nature,
comes on top of the views. Where no item fits, the trial is left out.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.design.study_plan import (
    Original,
    PlannedItem,
    Reconstruction,
    StudyPlan,
    list_key,
    strata_within_models,
)
from annotation.domain import StimulusKind, TrialKind
from annotation.errors import StudyError
from annotation.spec import StudySpec

CLEAR_SHARE = 5  # one in so many practice items is an original: what a clear picture looks like
MOST_AHEAD = 400  # items that somebody holds at most, among which their trials lie already
NOTHING = ""  # class of a picture that has none


@dataclass(frozen=True, kw_only=True)
class Gold:
    """Researcher's answer to one reconstruction; `where` names the row for messages."""

    model: str
    image_id: str
    answer: str
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class Material:
    """Material of items, and the part of it that is kept out of the count.

    Attributes:
        aside: Ids of originals that are set aside.
        noise: SHA-256 by id of those originals with their pixels in random order.
    """

    originals: Sequence[Original]
    reconstructions: Sequence[Reconstruction]
    aside: Sequence[str]
    noise: Mapping[str, str]
    gold: Sequence[Gold]


def set_aside(
    spec: StudySpec, originals: Sequence[Original], gold: Sequence[Gold] = ()
) -> list[str]:
    """The ids of `spec.set_aside` originals to keep out of the study, none of a gold item.

    Classes take turns in a seeded order, and the last original of a class stays in the study as
    long as another class has one to spare. Raises `StudyError` where nothing would be left, and
    where all of a pair task would be of one label, which has no pair that differs.
    """
    barred = {one.image_id for one in gold}
    rng = random.Random(f"aside/{spec.seed}")
    order = rng.sample(range(len(originals)), len(originals))
    free: dict[str, list[str]] = defaultdict(list)
    for original in (originals[index] for index in order):
        if original.image_id not in barred:
            free[original.class_name].append(original.image_id)
    left = Counter(original.class_name for original in originals)
    if spec.set_aside >= len(originals) or spec.set_aside > sum(map(len, free.values())):
        raise StudyError(
            f"{spec.set_aside} of {len(originals)} originals cannot be set aside: at least one "
            "must be left to ask about, and those of gold items stay. Set fewer aside."
        )
    taken: Counter[str] = Counter()
    chosen = []
    for _ in range(spec.set_aside):
        name = min((c for c in free if free[c]), key=lambda c: (left[c] < 2, taken[c]))
        chosen.append(free[name].pop())
        left[name] -= 1
        taken[name] += 1
    if spec.kind.decoys and chosen and len(taken) < 2:
        raise StudyError(
            f"All originals set aside show {min(taken)!r}; pairs that differ need two labels. Set "
            "more originals aside."
        )
    return chosen


def counted(material: Material) -> list[Reconstruction]:
    """The reconstructions that are asked about: not those set aside, and no gold items.

    Raises `StudyError` if none is left, and for gold rows that name no reconstruction or one twice.
    """
    gold = _by_reconstruction(material)
    left = [
        one
        for one in material.reconstructions
        if one.image_id not in material.aside and (one.model, one.image_id) not in gold
    ]
    if not left:
        raise StudyError(
            "No reconstruction is left to ask about: all are gold items or of originals that are "
            "set aside. Set fewer aside."
        )
    return left


def _by_reconstruction(material: Material) -> dict[tuple[str, str], Gold]:
    known = {(one.model, one.image_id) for one in material.reconstructions}
    found: dict[tuple[str, str], Gold] = {}
    for row in material.gold:
        key = (row.model, row.image_id)
        if key not in known:
            raise StudyError(
                f"{row.where}The sets hold no reconstruction of {row.image_id!r} by {row.model!r}."
            )
        if key in found:
            raise StudyError(
                f"{row.where}{row.image_id!r} by {row.model!r} has an answer already "
                f"({found[key].where.strip() or found[key].answer}); expected one row each."
            )
        found[key] = row
    return found


def quality_items(spec: StudySpec, material: Material) -> list[PlannedItem]:
    """Practice, catch and gold items of a study; what is not asked for is left out.

    Raises `StudyError` for more practice items than the originals set aside give, and for gold
    items without a gold rate or the other way round.
    """
    if bool(material.gold) != (spec.gold_rate > 0):
        raise StudyError(
            f"There are {len(material.gold)} gold items and a gold rate of {spec.gold_rate}; "
            "expected both or neither."
        )
    strata = strata_within_models(material.reconstructions)
    stratum = dict(zip(map(_key, material.reconstructions), strata, strict=True))
    items = _practice(spec, material, stratum) if spec.practice else []
    items += _catch(spec, material) if spec.catch_rate else []
    gold = _by_reconstruction(material)
    return items + [
        PlannedItem(
            image_id=one.image_id,
            kind=StimulusKind.GOLD,
            shown=one,
            quality=stratum[_key(one)],
            expected=gold[_key(one)].answer,
        )
        for one in material.reconstructions
        if _key(one) in gold
    ]


def check_expected(plan: StudyPlan) -> None:
    """Raise `StudyError` where the answer expected of an item is none that it offers."""
    for item in plan.quality:
        listed = plan.candidates[list_key(plan.spec, item)].classes if plan.spec.kind.lists else ()
        offered = plan.spec.kind.offered(listed)
        if item.expected not in (*offered, None):
            raise StudyError(
                f"The answer {item.expected!r} to {item.image_id!r} by {item.shown.model!r} is "
                f"not offered; expected one of {', '.join(offered)}."
            )


def _key(one: Reconstruction) -> tuple[str, str]:
    return one.model, one.image_id


def _aside(material: Material) -> list[Original]:
    known = {original.image_id: original for original in material.originals}
    return [known[image_id] for image_id in material.aside]


def _practice(
    spec: StudySpec, material: Material, stratum: Mapping[tuple[str, str], int]
) -> list[PlannedItem]:
    """Clear originals first, then reconstructions from the best stratum to the worst."""
    clear = _clear(spec, _aside(material), StimulusKind.PRACTICE)
    rough = sorted(
        (one for one in material.reconstructions if one.image_id in material.aside),
        key=lambda one: (stratum[_key(one)], one.error, *_key(one)),
    )
    if spec.practice > len(clear) + len(rough):
        raise StudyError(
            f"{spec.practice} practice items were asked for; {len(material.aside)} originals set "
            f"aside give {len(clear) + len(rough)}. Set more originals aside, or practise less."
        )
    n_clear = max(-(-spec.practice // CLEAR_SHARE), spec.practice - len(rough))
    n_clear = min(n_clear, len(clear))
    items = clear[:n_clear]
    for number, one in enumerate(_spread(rough, spec.practice - n_clear)):
        differs = spec.kind.decoys and number % 2 == 1
        items.append(_beside(spec, material, one, stratum[_key(one)], differs=differs))
    return items


def _spread(ordered: Sequence[Reconstruction], n: int) -> list[Reconstruction]:
    """`n` of the reconstructions at even distances, so from the best to the worst."""
    return [ordered[(2 * index + 1) * len(ordered) // (2 * n)] for index in range(n)]


def _beside(
    spec: StudySpec, material: Material, shown: Reconstruction, quality: int, *, differs: bool
) -> PlannedItem:
    """A practice item of a reconstruction; `differs` puts it beside another label's original."""
    image_id = shown.image_id
    if differs:
        others = [one for one in _aside(material) if one.class_name != shown.class_name]
        image_id = random.Random(f"practice/{spec.seed}/{_key(shown)}").choice(others).image_id
    return PlannedItem(
        image_id=image_id,
        kind=StimulusKind.PRACTICE,
        shown=shown,
        quality=quality,
        expected=spec.kind.expected(shown.class_name, differs=differs, clear=False),
    )


def _clear(spec: StudySpec, aside: Sequence[Original], kind: StimulusKind) -> list[PlannedItem]:
    """Each original as it is; with decoys beside itself and beside one of another label."""
    items = []
    for one in aside:
        same, different = (
            spec.kind.expected(one.class_name, differs=differs) for differs in (False, True)
        )
        items.append(_item(one, kind, _picture(one), same))
        if spec.kind.decoys:
            others = [other for other in aside if other.class_name != one.class_name]
            beside = random.Random(f"{kind}/{spec.seed}/{one.image_id}").choice(others)
            items.append(_item(one, kind, _picture(beside), different))
    return items


def _catch(spec: StudySpec, material: Material) -> list[PlannedItem]:
    """As many with a clear answer as with noise, whose answer is `Kind.nothing`.

    With decoys half of the clear ones are the same, so noise comes once for two of them.
    """
    aside = _aside(material)
    return _clear(spec, aside, StimulusKind.CATCH) + [
        _item(
            one,
            StimulusKind.CATCH,
            _picture(one, class_name=NOTHING, sha256=material.noise[one.image_id]),
            spec.kind.nothing,
        )
        for one in aside
    ]


def _item(
    asked: Original, kind: StimulusKind, shown: Reconstruction, expected: str | None
) -> PlannedItem:
    return PlannedItem(
        image_id=asked.image_id, kind=kind, shown=shown, quality=None, expected=expected
    )


def _picture(one: Original, **other: Any) -> Reconstruction:
    return replace(one.as_shown, jury=(), **other)


def rate_of(spec: StudySpec, kind: TrialKind) -> float:
    """Return the number of trials of a kind for each counted vote; practice has none."""
    rates = {
        TrialKind.CATCH: spec.catch_rate,
        TrialKind.GOLD: spec.gold_rate,
        TrialKind.REPEAT: spec.repeat_rate,
    }
    return rates.get(kind, 0.0)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Settings in force, and from where trials are counted: so many votes, and that ordinal."""

    spec: StudySpec
    votes: int = 0
    ordinal: int = 0


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Schedule of the trials of a kind for the annotator of a seat, whatever has been amended.

    There is one trial in each block of 1 / rate votes, at a place in it drawn for the seat. So no
    annotator can count to the next one, and no two people meet it at once. Repeats begin when
    there is a vote `spec.repeat_lag` other votes back.

    Attributes:
        parts: Settings that were in force one after the other.
    """

    kind: TrialKind
    seat: int
    parts: tuple[Part, ...]

    def place(self, ordinal: int) -> int:
        """After how many counted votes a trial is shown, by the settings that it was made under.

        0 where these have none.
        """
        part = next(part for part in reversed(self.parts) if part.ordinal <= ordinal)
        rate, start = rhythm(part.spec, self.kind)
        if not rate:
            return 0
        name = f"trial/{part.spec.seed}/{self.kind}/{self.seat}/{ordinal}"
        inside = random.Random(name).random()
        return max(start, part.votes) + int((ordinal - part.ordinal + inside) / rate)

    def due(self, n_votes: int) -> int:
        """The ordinal of the first trial whose `place` is not before `n_votes`.

        By the settings in force. Counted from the beginning, so many trials have their place
        before.
        """
        part = self.parts[-1]
        rate, start = rhythm(part.spec, self.kind)
        start = max(start, part.votes)
        if not rate or n_votes <= start:
            return part.ordinal
        # Whole blocks are over; only the trial of the last one has a place to look at.
        number = part.ordinal + max(0, int((n_votes - start) * rate) - 1)
        while self.place(number) < n_votes:
            number += 1
        return number


def schedule(kind: TrialKind, seat: int, *versions: tuple[StudySpec, int]) -> Schedule:
    """The schedule under `versions` of the settings, of which there is at least one.

    Args:
        versions: Each with how many votes the annotator had given when it came into force. From a
            change of rate or lag on trials are counted anew, with ordinals that none has that was
            made before.
    """
    made = Schedule(kind=kind, seat=seat, parts=(Part(spec=versions[0][0]),))
    for spec, votes in versions[1:]:
        before = made.parts[-1]
        if rhythm(spec, kind) != rhythm(before.spec, kind):
            free = made.due(max(votes, before.votes) + MOST_AHEAD)
            made = replace(made, parts=(*made.parts, Part(spec=spec, votes=votes, ordinal=free)))
    return made


def rhythm(spec: StudySpec, kind: TrialKind) -> tuple[float, int]:
    """Return what decides the places of trials: how many a vote, and after how many votes."""
    return rate_of(spec, kind), _start(spec, kind)


def _start(spec: StudySpec, kind: TrialKind) -> int:
    return spec.repeat_lag + 1 if kind is TrialKind.REPEAT else 0


def expected(spec: StudySpec, n_votes: float, n_gold: int) -> float:
    """Estimate how many answers that never count an annotator gives beside `n_votes` that do.

    Args:
        n_gold: How many gold items there are, of which each comes once.
    """
    kinds = (TrialKind.CATCH, TrialKind.GOLD, TrialKind.REPEAT)
    of = {kind: rate_of(spec, kind) * max(0.0, n_votes - _start(spec, kind)) for kind in kinds}
    of[TrialKind.GOLD] = min(of[TrialKind.GOLD], n_gold)
    return spec.practice + sum(of.values())


def drawn(spec: StudySpec, seat: int, ordinal: int, n_items: int) -> int | None:
    """Return which of `n_items` catch items a trial shows, None when there is none.

    Every item comes once before any comes again.
    """
    if not n_items:
        return None
    turn, index = divmod(ordinal, n_items)
    return _shuffled(spec, TrialKind.CATCH, seat, turn, n_items)[index]


def gold_order(spec: StudySpec, seat: int, n_items: int) -> list[int]:
    """The order in which gold items are shown to the annotator of a seat, as limits allow.

    Each comes once, as an answer that is given twice says nothing new.
    """
    return _shuffled(spec, TrialKind.GOLD, seat, 0, n_items)


def _shuffled(spec: StudySpec, kind: TrialKind, seat: int, turn: int, n_items: int) -> list[int]:
    rng = random.Random(f"drawn/{spec.seed}/{kind}/{seat}/{turn}")
    return rng.sample(range(n_items), n_items)


def repeated(spec: StudySpec, seat: int, ordinal: int, free: Sequence[str]) -> str | None:
    """The item to show again, one of `free`; None without one."""
    if not free:
        return None
    # Not the generator's choice of an item, whose random id would make every study different.
    return free[random.Random(f"repeat/{spec.seed}/{seat}/{ordinal}").randrange(len(free))]
