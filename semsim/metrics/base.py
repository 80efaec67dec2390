"""What every metric is: its facts, the pairs of images it judges, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from semsim.base.places import DEMO
from semsim.errors import DataError
from semsim.weights import CHECKPOINTS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

T = TypeVar("T")
Reference = Literal["clean", "attacked"]
ROUNDING = 1e-3  # by which sums of floats may leave [0, 1]
PART = 256  # pairs in memory at once; a multiple of every batch, so that parts change no number


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """The facts of a metric.

    higher_means_more_leakage: whether a larger value means that the reconstruction shows more.
    per_image: one value a pair; otherwise one value a set.
    reference: what a reconstruction is compared with: the clean original, or the image that was
        really attacked, which training may have shifted or mirrored.
    weights: names in `checkpoints/manifest.json` of the files it cannot do without.
    libraries: distributions that compute it, besides those every result depends on.
    smallest_side: of an image it can judge, in pixels.
    yes_or_no: each value is 0 or 1, so that the mean over images is a rate.
    classifier: one of the product's own classifiers computes it, as those are that simulate voters.
    """

    name: str
    title: str
    unit: str = ""
    higher_means_more_leakage: bool
    per_image: bool
    reference: Reference = "clean"
    weights: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    smallest_side: int = 1
    yes_or_no: bool = False
    classifier: bool = False


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Where a metric finds its weights and where it computes.

    classifiers: folders searched, after `checkpoints`, for the product's own classifiers.
    """

    checkpoints: Path = CHECKPOINTS
    classifiers: tuple[Path, ...] = (DEMO,)
    device: torch.device | str = "cpu"
    _loaded: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def shared(self, key: Any, load: Callable[[], T]) -> T:
        """What `load` makes, once for all metrics that have these resources."""
        if key not in self._loaded:
            self._loaded[key] = load()
        found: T = self._loaded[key]
        return found


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Originals and their reconstructions, image by image.

    originals, reconstructions: (N, 3, H, W) float32 RGB in [0, 1], checked on creation; what
        rounding left at most `ROUNDING` outside is clamped.
    class_names: what each original shows, or None where nobody said.
    """

    originals: Tensor
    reconstructions: Tensor
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_pairs(self.originals, self.reconstructions)
        for side in ("originals", "reconstructions"):
            object.__setattr__(self, side, within(getattr(self, side)))
        if self.class_names is not None and len(self.class_names) != len(self):
            raise DataError(f"{len(self)} images came with {len(self.class_names)} class names.")

    def __len__(self) -> int:
        return len(self.originals)

    def parts(self, size: int = PART) -> Iterator[Pairs]:
        """The pairs in parts of at most `size`, in their order."""
        for start in range(0, len(self), size):
            part, names = slice(start, start + size), self.class_names
            yield Pairs(
                originals=self.originals[part],
                reconstructions=self.reconstructions[part],
                class_names=None if names is None else names[part],
            )


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a metric answers.

    values: float64, (N,) for a metric of images, (1,) for a metric of a set.
    standard_error: of the one value of a set, where the metric knows it.
    notes: what a reader of the numbers must be told.
    """

    values: np.ndarray
    standard_error: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A column of scores in a line; infinite values are counted and kept out of mean and sd.

    mean: of the finite values, None where there is none; sd: with n - 1, None below two.
    """

    n: int
    n_inf: int
    mean: float | None
    sd: float | None


Judge = Callable[[Pairs], Scores]


@runtime_checkable
class JudgeOfParts(Protocol):
    """A judge of sets that need not see all of a set at once."""

    def __call__(self, pairs: Pairs) -> Scores: ...

    def of_parts(self, parts: Iterable[Pairs]) -> Scores:
        """The scores of all pairs in `parts`, which are asked for one after another."""
        ...


class Metric(Protocol):
    """What makes a judge of pairs; one of the registry is its settings, a frozen dataclass."""

    @property
    def spec(self) -> MetricSpec: ...

    def files(self, resources: Resources) -> tuple[Path, ...]:
        """The weight files it would use, checked; `WeightsError` where one is not usable."""
        ...

    def prepare(self, resources: Resources) -> Judge:
        """Load what it needs and return the judge; `WeightsError` as `files`.

        The judge raises `DataError` for pairs it cannot judge, saying why.
        """
        ...


def settings_of(metric: Metric) -> dict[str, Any]:
    """What a metric is made from, by name; `{}` of one that is no dataclass."""
    return dict(asdict(metric)) if is_dataclass(metric) else {}


def within(images: Tensor) -> Tensor:
    """Images of any shape with what rounding left outside of [0, 1] put on its border.

    The same tensor where nothing is outside; bytes are left alone.
    """
    if not images.is_floating_point() or not images.numel():
        return images
    low, high = (float(bound) for bound in images.detach().aminmax())
    return images if low >= 0 and high <= 1 else images.clamp(0, 1)


def check_pairs(
    originals: Tensor,
    reconstructions: Tensor,
    *,
    channels: tuple[int, ...] = (3,),
    dtypes: tuple[str, ...] = ("float32",),
    sizes_may_differ: bool = False,
) -> None:
    """Raise `DataError` unless both are (N, C, H, W) of one shape, N ≥ 1, floats in [0, 1].

    sizes_may_differ: H and W need not be those of the other.
    """
    import torch  # what a metric says of itself needs none

    for name, images in (("originals", originals), ("reconstructions", reconstructions)):
        if not isinstance(images, torch.Tensor):
            raise DataError(
                f"{name} must be a torch tensor; got {type(images).__name__}. "
                "torch.from_numpy makes one of a numpy array."
            )
        if images.ndim != 4 or images.shape[1] not in channels or 0 in images.shape:
            allowed = " or ".join(map(str, channels))
            raise DataError(f"{name} must be (N, {allowed}, H, W); got {tuple(images.shape)}.")
        if str(images.dtype).removeprefix("torch.") not in dtypes:
            allowed = " or ".join(d if d == "uint8" else f"{d} in [0, 1]" for d in dtypes)
            raise DataError(f"{name} must be {allowed}; got {images.dtype}.")
        if not images.is_floating_point():
            continue
        low, high = (float(bound) for bound in images.detach().aminmax())
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # negated, so that NaN is refused too
            raise DataError(f"{name} must lie in [0, 1]; got values from {low!r} to {high!r}.")
    compared = 2 if sizes_may_differ else 4
    if originals.shape[:compared] != reconstructions.shape[:compared]:
        raise DataError(
            f"Originals are {tuple(originals.shape)} but reconstructions "
            f"{tuple(reconstructions.shape)}; they must pair image by image."
        )


def check_side(images: Tensor, spec: MetricSpec, why: str) -> None:
    """Raise `DataError` where an image is smaller than the metric can judge.

    images: (N, C, H, W). why: what needs that size, in words.
    """
    side = min(images.shape[2:])
    if side < spec.smallest_side:
        raise DataError(
            f"{spec.title} needs images of at least {spec.smallest_side} pixels a side ({why}); "
            f"got {images.shape[3]}×{images.shape[2]}."
        )


def judged(judge: Judge, parts: Iterable[Pairs], spec: MetricSpec) -> Scores:
    """What `judge` says of the pairs in `parts`, of which it holds no more than it must.

    A metric of images judges each alone, and so part by part. Raises as the judge does, and
    `DataError` where it answers other than one number an image, or one for a set; NaN is none.
    """
    if isinstance(judge, JudgeOfParts):
        return _checked(judge.of_parts(parts), 1, spec)
    if not spec.per_image:
        return _checked(judge(_joined(list(parts))), 1, spec)
    found = [_checked(judge(part), len(part), spec) for part in parts]
    notes = dict.fromkeys(note for one in found for note in one.notes)
    return Scores(values=np.concatenate([one.values for one in found]), notes=tuple(notes))


def _checked(scores: Scores, n: int, spec: MetricSpec) -> Scores:
    values = np.asarray(scores.values, dtype=np.float64)
    if values.shape != (n,):
        of = "one an image" if spec.per_image else "one for the set"
        raise DataError(
            f"{spec.title} must answer an array of shape ({n},), {of}; got {values.shape}."
        )
    if np.isnan(values).any():
        raise DataError(f"{spec.title}: {int(np.isnan(values).sum())} of {n} scores are NaN.")
    return replace(scores, values=values)


def _joined(parts: list[Pairs]) -> Pairs:
    import torch

    if len(parts) == 1:
        return parts[0]
    if len({part.originals.shape[1:] for part in parts}) > 1:
        raise DataError("It needs pictures of one size. Score those of each size by themselves.")
    names = [part.class_names for part in parts]
    known = [name for of_part in names if of_part is not None for name in of_part]
    return Pairs(
        originals=torch.cat([part.originals for part in parts]),
        reconstructions=torch.cat([part.reconstructions for part in parts]),
        class_names=None if None in names else tuple(known),
    )


def summarise(values: np.ndarray) -> Summary:
    """Mean and spread of the finite `values`, (N,) float64, and how many are infinite.

    Raises `DataError` where one is NaN: no metric answers that.

    >>> summarise(np.array([20.0, 30.0, np.inf])).mean
    25.0
    """
    if np.isnan(values).any():
        raise DataError(f"{int(np.isnan(values).sum())} of {len(values)} scores are NaN.")
    finite = values[np.isfinite(values)]
    return Summary(
        n=len(values),
        n_inf=len(values) - len(finite),
        mean=float(finite.mean()) if len(finite) else None,
        sd=float(finite.std(ddof=1)) if len(finite) > 1 else None,
    )


def batches(images: Tensor, size: int, device: torch.device | str) -> Iterator[Tensor]:
    """Images, (N, C, H, W), in parts (n, C, H, W) of at most `size`, on `device`."""
    for part in images.split(size):
        yield part.to(device)
