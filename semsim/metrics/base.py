"""Basis of every metric: its facts, the pairs of images it judges, and its scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from semsim.base.errors import DataError
from semsim.base.metric_spec import MetricSpec
from semsim.base.registry import Registry
from semsim.base.storage.places import DEMO
from semsim.device import in_float64
from semsim.weights import CHECKPOINTS

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

T = TypeVar("T")
SUFFIX = "@attacked"  # of the name of a metric whose reference is the attacked image
ROUNDING = 1e-3  # by which values may leave [0, 1]; they are clamped
PART = 256  # pairs in memory at once; a multiple of every batch, so that parts change no number

# Networks of SemSim: whether the stem suits small images, to the network and its features.
BACKBONES: Registry[Callable[[bool], tuple[nn.Module, int]]] = Registry(
    "backbone",
    {
        name: f"semsim.metrics.backbones:{name}"
        for name in ("resnet50", "resnet34", "resnet18", "resnet8", "lenet")
    },
)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Folders of a metric's weights, and the device that it computes on.

    Attributes:
        classifiers: Folders searched, after `checkpoints`, for the product's own classifiers.
    """

    checkpoints: Path = CHECKPOINTS
    classifiers: tuple[Path, ...] = (DEMO,)
    device: torch.device | str = "cpu"
    _loaded: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def shared(self, key: Any, load: Callable[[], T]) -> T:
        """Return what `load` makes, once for all metrics that have these resources."""
        if key not in self._loaded:
            self._loaded[key] = load()
        found: T = self._loaded[key]
        return found


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Originals and their reconstructions, image by image.

    Attributes:
        originals, reconstructions: (N, 3, H, W) RGB in [0, 1], float32 after `checked_pairs`.
        class_names: What each original shows, or None where it is unknown.
    """

    originals: Tensor
    reconstructions: Tensor
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        both = checked_pairs(self.originals, self.reconstructions)
        for name, images in zip(("originals", "reconstructions"), both, strict=True):
            object.__setattr__(self, name, images)
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
    """Scores that a metric gives.

    Attributes:
        values: Float64, (N,) for a metric of images, (1,) for a metric of a set.
        standard_error: Of the one value of a set, where the metric knows it.
        notes: What a reader of the numbers must be told.
    """

    values: np.ndarray
    standard_error: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A column of scores in a line; infinite values are counted and kept out of mean and sd.

    Attributes:
        mean: Of the finite values, None where there is none.
        sd: With n - 1, None below two.
    """

    mean: float | None
    sd: float | None
    n: int
    n_inf: int


Judge = Callable[[Pairs], Scores]


@runtime_checkable
class JudgeOfParts(Protocol):
    """A judge of sets that need not see all of a set at once."""

    def __call__(self, pairs: Pairs) -> Scores: ...

    def of_parts(self, parts: Iterable[Pairs]) -> Scores:
        """The scores of all pairs in `parts`, which are asked for one after another."""
        ...


@runtime_checkable
class Metric(Protocol):
    """Maker of a judge of pairs; one of the registry is its settings, a frozen dataclass."""

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


class OfImages:
    """A metric of images that is called as its function is, and needs no weights."""

    @abstractmethod
    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        """Score each pair, (N, C, H, W) in [0, 1] twice to (N,), differentiable in both."""

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        def judge(pairs: Pairs) -> Scores:
            values = as_array(self, pairs)
            return Scores(values=values, notes=self.notes(values))

        return judge

    def notes(self, values: np.ndarray) -> tuple[str, ...]:
        """Remarks for a reader of `values`, (N,)."""
        del values
        return ()


def as_array(
    function: Callable[[Tensor, Tensor], Tensor], pairs: Pairs, device: torch.device | str = "cpu"
) -> np.ndarray:
    """Return what `function` gives to pairs on a device, as (N,) float64."""
    import torch  # what a metric says of itself needs none

    with torch.inference_mode():
        found = function(pairs.originals.to(device), pairs.reconstructions.to(device))
    return np.asarray(found.cpu().double())


def with_gradient(
    values: np.ndarray,
    smooth: Callable[[Tensor, Tensor], Tensor],
    originals: Tensor,
    reconstructions: Tensor,
) -> Tensor:
    """Make `values`, computed without torch, a tensor that has a gradient where one is asked for.

    Args:
        values: (N,) float64, what counts.
        smooth: The same in torch, of float64 images in [0, 1], up to rounding; it gives the
            gradient.
        originals: (N, C, H, W), uint8 or floats in [0, 1].
        reconstructions: As the originals.

    Returns:
        (N,) on the device of the originals, see `as_exact`.
    """
    import torch

    found = torch.from_numpy(values)
    if torch.is_grad_enabled() and (originals.requires_grad or reconstructions.requires_grad):
        peaks = [1 if one.is_floating_point() else 255 for one in (originals, reconstructions)]
        path = smooth(in_float64(originals) / peaks[0], in_float64(reconstructions) / peaks[1])
        # Infinite less infinite is no number.
        found = path + (found.to(path) - path).detach().nan_to_num(nan=0.0)
    return as_exact(found, originals.device)


def as_exact(values: Tensor, device: torch.device) -> Tensor:
    """Return (N,) on a device in float64, or in float32 on Apple's GPUs, which have no other."""
    return values.float().to(device) if device.type == "mps" else values.to(device).double()


@dataclass(frozen=True, kw_only=True)
class AgainstAttacked:
    """`metric` with the attacked image, not the clean original, as what is compared with.

    Who makes the pairs chooses them by `MetricSpec.reference`.
    """

    metric: Metric

    @property
    def spec(self) -> MetricSpec:
        inner = self.metric.spec
        return replace(
            inner,
            name=inner.name + SUFFIX,
            title=f"{inner.title}, attacked image as reference",
            reference="attacked",
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return self.metric.files(resources)

    def prepare(self, resources: Resources) -> Judge:
        return self.metric.prepare(resources)


def settings_of(metric: Metric) -> dict[str, Any]:
    """Return the settings of a metric, by name; `{}` of one that is no dataclass."""
    return dict(asdict(metric)) if is_dataclass(metric) else {}


def checked_pairs(
    originals: Tensor,
    reconstructions: Tensor,
    *,
    channels: tuple[int, ...] = (3,),
    dtypes: tuple[str, ...] = ("float32",),
    sizes_may_differ: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return both as `checked_images`; `DataError` unless they are of one shape.

    Args:
        sizes_may_differ: H and W need not be those of the other.
    """
    first = checked_images("originals", originals, channels, dtypes)
    second = checked_images("reconstructions", reconstructions, channels, dtypes)
    compared = 2 if sizes_may_differ else 4
    if first.shape[:compared] != second.shape[:compared]:
        raise DataError(
            f"originals and reconstructions must pair image by image; got {described(originals)} "
            f"and {described(reconstructions)}."
        )
    return first, second


def checked_images(
    name: str, images: Tensor, channels: tuple[int, ...], dtypes: tuple[str, ...] = ("float32",)
) -> Tensor:
    """Return `images` with half precision as float32 and values clamped that rounding moved.

    Raises `DataError` unless they are (N, C, H, W), N ≥ 1, of a dtype in `dtypes`, floats within
    `ROUNDING` of [0, 1]. name: of the argument, for the message. channels: () for one (C, H, W).
    """
    import torch  # what a metric says of itself needs none

    if not isinstance(images, torch.Tensor):
        raise DataError(
            f"{name} must be a torch tensor; got {described(images)}. "
            "torch.from_numpy makes one of a numpy array."
        )
    if images.is_meta or images.layout != torch.strided:
        raise DataError(
            f"{name} must be dense and have values; got {images.layout} on {images.device}."
        )
    shape = f"(N, {' or '.join(map(str, channels))}, H, W)" if channels else "(C, H, W)"
    fits = images.ndim == 4 and images.shape[1] in channels if channels else images.ndim == 3
    if not fits or 0 in images.shape:
        raise DataError(f"{name} must be {shape}; got {described(images)}.")
    taken = images.float() if images.dtype in (torch.float16, torch.bfloat16) else images
    if str(taken.dtype).removeprefix("torch.") not in dtypes:
        allowed = " or ".join(d if d == "uint8" else f"{d} in [0, 1]" for d in dtypes)
        raise DataError(f"{name} must be {allowed}; got {described(images)}.")
    if not taken.is_floating_point():
        return taken
    low, high = (float(bound) for bound in taken.detach().aminmax())
    if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # negated, so that NaN is refused too
        raise DataError(f"{name} must lie in [0, 1]; got {described(images)}.")
    return taken if low >= 0 and high <= 1 else taken.clamp(0, 1)


def described(value: Any) -> str:
    """Return dtype, shape and range of an array or tensor, or else type and value, in words."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return f"{type(value).__name__} {value!r:.60}"
    found = f"{value.dtype} {tuple(value.shape)}"
    if type(value).__name__ != "Tensor":
        found = f"{type(value).__name__} of {found}"
    try:
        low, high = float(value.min()), float(value.max())
    except (RuntimeError, TypeError, ValueError):  # empty, or without an order
        return found
    return f"{found}, values from {low:.7g} to {high:.7g}"


def check_side(images: Tensor, spec: MetricSpec, why: str) -> None:
    """Raise `DataError` where an image is smaller than the metric can judge.

    Args:
        images: (N, C, H, W).
        why: What needs that size, in words.
    """
    side = min(images.shape[2:])
    if side < spec.smallest_side:
        raise DataError(
            f"{spec.title} needs images of at least {spec.smallest_side} pixels a side ({why}); "
            f"got {images.shape[3]}×{images.shape[2]}: {described(images)}."
        )


def judged(judge: Judge, parts: Iterable[Pairs], spec: MetricSpec) -> Scores:
    """Return the scores that `judge` gives to `parts`, of which it holds no more than it must.

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
