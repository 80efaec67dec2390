"""What a study consists of, worked out from its reconstruction sets before anything is stored."""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from annotation.design.candidates import CandidateList, candidate_list
from annotation.design.decoys import Pair, decoys, quality_strata
from annotation.design.exposure import cell_of, source_ranks
from annotation.domain import StimulusKind, StudySpec


@dataclass(frozen=True, kw_only=True)
class Original:
    """One attacked image; `ranking` is a classifier's order of the classes, best first.

    `probabilities` by class are what simulated annotators answer from, where it is an item.
    """

    image_id: str
    class_name: str
    sha256: str
    ranking: tuple[str, ...] = ()
    probabilities: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """What one attack on one model made of one original; `error` is the MSE between the two.

    `attacked_sha256` is of the original as training augmentation left it. It is kept for those
    who compare metrics; no annotator sees it, so the protocol does not depend on it.
    """

    image_id: str
    class_name: str
    model: str
    attack: str
    sha256: str
    error: float
    attacked_sha256: str | None = None
    probabilities: Mapping[str, float] | None = None


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
    candidates: Mapping[str, CandidateList]  # by image_id; empty without lists
    items: tuple[PlannedItem, ...]
    quality: tuple[PlannedItem, ...] = ()  # shown, never counted (annotation.tasks.quality)

    @property
    def cells(self) -> tuple[int, ...]:
        """The cell of the Latin square in which each of `items` lies (annotation.design.exposure).

        Originals come in one more cell, the last. Unbalanced studies have only one besides.
        """
        n_models = self.n_cells - self.spec.label_originals
        rank_of = {model: rank for rank, model in enumerate(self.models)}
        sources = source_ranks([o.image_id for o in self.originals], self.spec.seed)
        return tuple(
            n_models
            if item.kind is StimulusKind.ORIGINAL
            else cell_of(sources[item.image_id], rank_of[item.shown.model], n_models)
            for item in self.items
        )

    @property
    def n_cells(self) -> int:
        """How many cells there are, that of the originals included."""
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
    """The items of a study, decoys included, and one candidate list for each original.

    Raises `StudyError` for a true class that `classes` lacks, or decoys that cannot be made.
    """
    return StudyPlan(
        spec=spec,
        dataset=dataset,
        models=tuple(dict.fromkeys(r.model for r in reconstructions)),
        n_failed=n_failed,
        originals=tuple(originals),
        candidates=_lists(spec, classes, originals) if spec.kind.lists else {},
        items=(*_items(spec, reconstructions), *_originals(spec, originals, reconstructions)),
        quality=tuple(quality),
    )


def _lists(
    spec: StudySpec, classes: Sequence[str], originals: Sequence[Original]
) -> dict[str, CandidateList]:
    return {
        original.image_id: candidate_list(
            original.class_name,
            classes,
            spec.list_size,
            original.ranking,
            # Its own generator for each original: one more image must not change other lists.
            rng=random.Random(f"candidates/{spec.seed}/{original.image_id}"),
        )
        for original in originals
    }


def _items(spec: StudySpec, reconstructions: Sequence[Reconstruction]) -> list[PlannedItem]:
    strata = strata_within_models(reconstructions)
    items = [
        PlannedItem(
            image_id=shown.image_id,
            kind=StimulusKind.RECONSTRUCTION,
            shown=shown,
            quality=stratum,
        )
        for shown, stratum in zip(reconstructions, strata, strict=True)
    ]
    pairs = [
        Pair(image_id=r.image_id, label=r.class_name, model=r.model, stratum=stratum)
        for r, stratum in zip(reconstructions, strata, strict=True)
    ]
    rng = random.Random(f"decoys/{spec.seed}")
    return items + [
        PlannedItem(
            image_id=reconstructions[original].image_id,
            kind=StimulusKind.DECOY,
            shown=reconstructions[shown],
            quality=strata[shown],
        )
        for original, shown in (decoys(pairs, spec.decoy_rate, rng=rng) if spec.decoy_rate else ())
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
            shown=Reconstruction(
                image_id=original.image_id,
                class_name=original.class_name,
                model="",
                attack="",
                sha256=original.sha256,
                error=0.0,
                probabilities=original.probabilities,
            ),
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
