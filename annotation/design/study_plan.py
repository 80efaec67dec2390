"""Parts of a study, worked out from its reconstruction sets before anything is stored."""

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from annotation.design.candidates import CandidateList, balanced_lists, candidate_list, ranked
from annotation.design.exposure import cell_of, source_ranks
from annotation.design.jury import Sight
from annotation.domain import StimulusKind, TargetTest
from annotation.errors import StudyError
from annotation.spec import Distractors, Lists, StudySpec

STRATA = 4
MOST_USES = 2  # of one reconstruction as a decoy: who meets it often learns what it shows


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A reconstruction that could be shown beside its own original."""

    image_id: str
    label: str  # what "same" means: class or identity
    model: str
    stratum: int  # quality within its model, 0 = best


def quality_strata(errors: Sequence[float], n_strata: int = STRATA) -> list[int]:
    """Return the quantile group of each error, 0 = smallest; equal errors share a group."""
    ordered = sorted(errors)
    first = {error: place for place, error in reversed([*enumerate(ordered)])}
    return [first[error] * n_strata // len(errors) for error in errors]


def n_decoys(n_pairs: int, rate: float) -> int:
    """Return the number of decoys for the pairs of one model."""
    return int(rate * n_pairs + 0.5)


def decoys(pairs: Sequence[Pair], rate: float, *, rng: random.Random) -> list[tuple[int, int]]:
    """Decoys for `rate` of the pairs of each model, as (whose original, whose reconstruction).

    The reconstruction shown has another label (never only another image id), comes from the same
    model and lies in the nearest quality stratum, so that quality gives nothing away; among equals
    the one shown least so far. None is shown more than `MOST_USES` times as long as another one has
    been shown less often. Raises `StudyError` where a model has only one label.
    """
    by_model: dict[str, list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        by_model[pair.model].append(index)
    chosen: list[tuple[int, int]] = []
    for members in by_model.values():
        chosen += _decoys_of_model(pairs, members, rate, rng)
    return chosen


def _decoys_of_model(
    pairs: Sequence[Pair], members: list[int], rate: float, rng: random.Random
) -> list[tuple[int, int]]:
    # In groups of one stratum that were shown as often, so that no pair is set beside all others.
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for member in members:
        groups[pairs[member].stratum, 0].append(member)
    of_label = Counter((pairs[member].stratum, 0, pairs[member].label) for member in members)
    chosen = []
    for index in sorted(rng.sample(members, n_decoys(len(members), rate))):
        pair = pairs[index]
        others = {key: len(one) - of_label[*key, pair.label] for key, one in groups.items()}
        ranked = {key: _unlike(pair, *key) for key, n in others.items() if n}
        if not ranked:
            raise StudyError(
                f"Decoys need reconstructions of at least two classes; model "
                f"{pair.model!r} has only {pair.label!r}."
            )
        best = [key for key, rank in ranked.items() if rank == min(ranked.values())]
        (key,) = rng.choices(best, [others[one] for one in best])
        group = groups[key]
        while pairs[group[place := rng.randrange(len(group))]].label == pair.label:
            continue
        group[place], group[-1] = group[-1], group[place]
        shown, (stratum, used) = group.pop(), key
        groups[stratum, used + 1].append(shown)
        of_label[*key, pairs[shown].label] -= 1
        of_label[stratum, used + 1, pairs[shown].label] += 1
        chosen.append((index, shown))
    return chosen


def _unlike(pair: Pair, stratum: int, used: int) -> tuple[int, int, int]:
    """Return how little a reconstruction of `stratum`, shown `used` times, suits beside a pair."""
    return max(0, used + 1 - MOST_USES), abs(stratum - pair.stratum), used


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """Outcome of one attack on one model and original; `error` is the MSE between the two.

    `attacked_sha256` is of the original as training augmentation left it. It is kept for those
    who compare metrics; no annotator sees it, so the protocol does not depend on it. `jury` is what
    simulated annotators see in it.
    """

    image_id: str
    class_name: str
    model: str
    attack: str
    sha256: str
    error: float
    attacked_sha256: str | None = None
    jury: Sequence[Sight] = ()


@dataclass(frozen=True, kw_only=True)
class Original:
    """One attacked image.

    `logs`, by class, are an independent classifier's log-probabilities. They rank the words of its
    list. `jury` is what simulated annotators see in it, who answer where it is an item.
    """

    image_id: str
    class_name: str
    sha256: str
    logs: Mapping[str, float] | None = None
    jury: Sequence[Sight] = ()

    @property
    def as_shown(self) -> Reconstruction:
        """The original itself where a reconstruction would be: of no model, by no attack."""
        return Reconstruction(
            image_id=self.image_id,
            class_name=self.class_name,
            model="",
            attack="",
            sha256=self.sha256,
            error=0.0,
            jury=self.jury,
        )


@dataclass(frozen=True, kw_only=True)
class PlannedItem:
    """One item: the original it asks about, and the reconstruction it shows."""

    image_id: str
    kind: StimulusKind
    shown: Reconstruction
    quality: int | None  # stratum; None for what is no reconstruction
    expected: str | None = None  # the answer, where it is known beforehand


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """Everything about a study that is fixed from the start."""

    spec: StudySpec
    dataset: str
    models: tuple[str, ...]
    n_failed: int
    originals: tuple[Original, ...]
    candidates: Mapping[str, CandidateList]  # by `list_key`; empty without lists
    items: tuple[PlannedItem, ...]
    quality: tuple[PlannedItem, ...] = ()  # shown, never counted (annotation.design.quality)
    targets: Mapping[str, TargetTest] = field(default_factory=dict)  # by model, where known
    judges: tuple[str, ...] = ()  # SHA-256 of the weights that ranked the words, where known

    @property
    def cells(self) -> tuple[int, ...]:
        """The cell of the Latin square in which each of `items` lies (annotation.design.exposure).

        Of the originals that are asked about alone, as those set aside would leave gaps in it.
        Originals come in one more cell, the last. Unbalanced studies have only one besides.
        """
        n_models = self.n_cells - self.spec.label_originals
        rank_of = {model: rank for rank, model in enumerate(self.models)}
        sources = source_ranks(list({item.image_id for item in self.items}), self.spec.seed)
        return tuple(
            n_models
            if item.kind is StimulusKind.ORIGINAL
            else cell_of(sources[item.image_id], rank_of[item.shown.model], n_models)
            for item in self.items
        )

    @property
    def n_cells(self) -> int:
        """Number of cells, that of the originals included."""
        return (len(self.models) if self.spec.balanced else 1) + self.spec.label_originals

    @property
    def protocol(self) -> str:
        """SHA-256 over the settings, items and candidate lists; the password is not part of it."""
        content = {
            "spec": asdict(replace(self.spec, password=None)),
            "dataset": self.dataset,
            "originals": [(o.image_id, o.class_name, o.sha256) for o in self.originals],
            "candidates": {key: value.classes for key, value in self.candidates.items()},
            "items": [
                (i.image_id, i.kind, i.shown.image_id, i.shown.model, i.shown.sha256)
                for i in self.items
            ],
            "quality": [
                (i.image_id, i.kind, i.shown.image_id, i.shown.model, i.shown.sha256, i.expected)
                for i in self.quality
            ],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def plan_study(
    spec: StudySpec,
    *,
    dataset: str,
    classes: Sequence[str],
    originals: Sequence[Original],
    reconstructions: Sequence[Reconstruction],
    n_failed: int,
    quality: Sequence[PlannedItem] = (),
) -> StudyPlan:
    """The items of a study, decoys included, and their candidate lists.

    Raises `StudyError` for a true class that `classes` lacks, or decoys that cannot be made.
    """
    items = (*_items(spec, reconstructions), *_originals(spec, originals, reconstructions))
    return StudyPlan(
        spec=spec,
        dataset=dataset,
        models=tuple(dict.fromkeys(r.model for r in reconstructions)),
        n_failed=n_failed,
        originals=tuple(originals),
        candidates=_lists(spec, classes, _asked(spec, originals, (*items, *quality))),
        items=items,
        quality=tuple(quality),
    )


def list_key(spec: StudySpec, item: PlannedItem) -> str:
    """Return the key of the list that an item offers: its original, or the item itself."""
    if spec.lists is Lists.ORIGINAL:
        return item.image_id
    return "/".join((item.image_id, item.kind, item.shown.model, item.shown.sha256))


def _asked(
    spec: StudySpec, originals: Sequence[Original], items: Sequence[PlannedItem]
) -> dict[str, Original]:
    """The original that each list is about, by `list_key`; empty without lists."""
    if not spec.kind.lists:
        return {}
    known = {one.image_id: one for one in originals}
    if spec.lists is Lists.ORIGINAL:
        return known
    return {list_key(spec, item): known[item.image_id] for item in items}


def _lists(
    spec: StudySpec, classes: Sequence[str], asked: Mapping[str, Original]
) -> dict[str, CandidateList]:
    if not asked:
        return {}
    # Its own generator for each list: one more image must not change the order of others.
    about = list(asked.values())
    rngs = [random.Random(f"candidates/{spec.seed}/{key}") for key in asked]
    rankings = [ranked(one.logs or {}, rng) for one, rng in zip(about, rngs, strict=True)]
    answers = [one.class_name for one in about]
    if spec.distractors is Distractors.BALANCED:
        rng = random.Random(f"lists/{spec.seed}")
        lists = balanced_lists(answers, classes, spec.list_size, rankings, rng=rng)
    else:
        lists = [
            candidate_list(answer, classes, spec.list_size, ranking, rng=rng)
            for answer, ranking, rng in zip(answers, rankings, rngs, strict=True)
        ]
    return dict(zip(asked, lists, strict=True))


def _items(spec: StudySpec, reconstructions: Sequence[Reconstruction]) -> list[PlannedItem]:
    strata = strata_within_models(reconstructions)

    def item(kind: StimulusKind, asked: int, shown: int) -> PlannedItem:
        image_id, found = reconstructions[asked].image_id, reconstructions[shown]
        return PlannedItem(image_id=image_id, kind=kind, shown=found, quality=strata[shown])

    pairs = [
        Pair(image_id=r.image_id, label=r.class_name, model=r.model, stratum=stratum)
        for r, stratum in zip(reconstructions, strata, strict=True)
    ]
    rng = random.Random(f"decoys/{spec.seed}")
    drawn = decoys(pairs, spec.decoy_rate, rng=rng) if spec.decoy_rate else []
    return [
        *(item(StimulusKind.RECONSTRUCTION, n, n) for n in range(len(reconstructions))),
        *(item(StimulusKind.DECOY, asked, shown) for asked, shown in drawn),
    ]


def _originals(
    spec: StudySpec, originals: Sequence[Original], reconstructions: Sequence[Reconstruction]
) -> list[PlannedItem]:
    """Every original of which a reconstruction is shown, as an item of no model."""
    attacked = {r.image_id for r in reconstructions}
    return [
        PlannedItem(
            image_id=original.image_id,
            kind=StimulusKind.ORIGINAL,
            shown=original.as_shown,
            quality=None,
        )
        for original in (originals if spec.label_originals else ())
        if original.image_id in attacked
    ]


def strata_within_models(reconstructions: Sequence[Reconstruction]) -> list[int]:
    """The quality stratum of each reconstruction among those of its model, 0 = best."""
    strata = [0] * len(reconstructions)
    for model in {r.model for r in reconstructions}:
        members = [i for i, r in enumerate(reconstructions) if r.model == model]
        groups = quality_strata([reconstructions[i].error for i in members])
        for index, stratum in zip(members, groups, strict=True):
            strata[index] = stratum
    return strata
