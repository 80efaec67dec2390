"""One image of a reconstruction set, on its way from an attack or an import to its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from semsim.base.errors import AttackFailedError
from semsim.images import to_uint8
from semsim.types import LabelledImages, Reconstruction, worse_than_grey

if TYPE_CHECKING:
    from torch import Tensor

Picture = np.ndarray | Path
_KEPT = (  # of an attack's result, as it is
    *("attacked", "error", "objective", "shift_x", "shift_y", "flipped", "residual"),
    *("grey_residual", "worse_than_grey", "blown_up", "solver"),
)
_FILE = 4096  # bytes a file takes at least
_PICTURES = 6  # original, attacked and reconstruction, each in the store and in the set


def picture_bytes(values: int) -> int:
    """Return the bytes of all that is kept of an attacked picture, as if none compressed.

    Args:
        values: Numbers of the picture.
    """
    return _PICTURES * (values + _FILE)


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """One attacked image: a picture, or the reason why there is none.

    Attributes:
        picture: (H, W, 3) uint8, or None.
        attacked: (H, W, 3) uint8, the original as training augmentation left it, which is what the
            attack could get back at best.
        residual, grey_residual, blown_up, solver: See `Reconstruction`.
        found_shift: The (x, y) shift the attack itself estimated, where it does; shift_x, shift_y
            and flipped are the truth.
    """

    picture: np.ndarray | None
    attacked: np.ndarray
    error: str = ""
    objective: float = float("nan")
    shift_x: int = 0
    shift_y: int = 0
    flipped: bool = False
    residual: float = float("nan")
    grey_residual: float = float("nan")
    found_shift: tuple[int, int] | None = None
    blown_up: bool = False
    solver: str = ""

    @property
    def ok(self) -> bool:
        """True if there is a picture."""
        return self.picture is not None

    @property
    def worse_than_grey(self) -> bool:
        """True if there is a picture that shows nothing, see `semsim.types.worse_than_grey`."""
        return self.ok and worse_than_grey(self.residual, self.grey_residual)


def result_of(
    found: Reconstruction | AttackFailedError,
    attacked: Tensor,
    shift_x: int = 0,
    shift_y: int = 0,
    flipped: bool = False,
) -> AttackResult:
    """Return what is kept of an attack on `attacked`, (3, H, W) in [0, 1].

    Args:
        shift_x, shift_y, flipped: How it was moved and whether it was flipped.
    """
    outcome: dict[str, Any]
    if isinstance(found, AttackFailedError):
        outcome = {"picture": None, "error": str(found)}
    else:
        outcome = {
            "picture": to_uint8(found.image),
            "objective": found.objective,
            "residual": found.residual,
            "grey_residual": found.grey_residual,
            "found_shift": found.shift,
            "blown_up": found.blown_up,
            "solver": found.solver,
        }
    moved: dict[str, Any] = {"shift_x": shift_x, "shift_y": shift_y, "flipped": flipped}
    return AttackResult(attacked=to_uint8(attacked), **moved, **outcome)


@dataclass(frozen=True, kw_only=True)
class SetImage:
    """The row of one image and its pictures; None says that a fact is not known.

    Attributes:
        original, reconstruction, attacked: (H, W, 3) uint8 or an image file, None where there is
            none.
        error: Why there is no reconstruction. The others: see `semsim.base.sets.set_format`.
    """

    image_id: str
    class_id: int | None
    class_name: str
    original: Picture | None
    reconstruction: Picture | None
    attacked: Picture | None = None
    error: str = ""
    objective: float | None = None
    shift_x: int | None = None
    shift_y: int | None = None
    flipped: bool | None = None
    residual: float | None = None
    grey_residual: float | None = None
    worse_than_grey: bool | None = None
    blown_up: bool | None = None
    solver: str | None = None
    found_shift_x: int | None = None
    found_shift_y: int | None = None

    @property
    def ok(self) -> bool:
        """True if there is a reconstruction that may be judged."""
        return self.reconstruction is not None and not self.error


def set_images(images: LabelledImages, results: Sequence[AttackResult]) -> Iterator[SetImage]:
    """The rows of `images`, attacked with `results`."""
    for place, found in enumerate(results):
        shown = images.shown(place)
        yield set_image(
            image_id=images.ids[place],
            class_id=images.names.index(shown),
            class_name=shown,
            original=to_uint8(images.images[place]),
            found=found,
        )


def set_image(
    *, image_id: str, class_id: int, class_name: str, original: np.ndarray, found: AttackResult
) -> SetImage:
    """The row of one attacked image;

    Args:
        original: (H, W, 3) uint8.
    """
    shift_x, shift_y = found.found_shift or (None, None)
    return SetImage(
        image_id=image_id,
        class_id=class_id,
        class_name=class_name,
        original=original,
        reconstruction=found.picture,
        found_shift_x=shift_x,
        found_shift_y=shift_y,
        **{name: getattr(found, name) for name in _KEPT},
    )
