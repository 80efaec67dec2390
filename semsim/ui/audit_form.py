"""The layer table of the page Audit: rows of numbers to layers and back."""

from collections.abc import Sequence
from typing import Any

from semsim.attacks.security.index import (
    Convolution,
    FullyConnected,
    Layer,
    Shape,
    convolutions,
    square,
)
from semsim.errors import SettingsError

COLUMNS = ("kernel", "channels", "stride", "padding")
CLASSES = 10
_MOST = 12  # layers, and
_LARGEST = 512  # any number in the table: a page answers at once


def rows_of(layers: Sequence[Layer]) -> list[list[int]]:
    """One row a convolution, in the order of `COLUMNS`."""
    return [_row(one) for one in convolutions(layers)]


def layers_of(rows: Sequence[Sequence[Any]]) -> tuple[Layer, ...]:
    """The layers that the table means, empty rows left out, with ten classes at the end.

    Raises `SettingsError` that names the row and what is wrong with it.
    """
    filled = [
        (number, row) for number, row in enumerate(rows, start=1) if any(map(_is_filled, row))
    ]
    if len(filled) > _MOST:
        raise SettingsError(f"The table takes {_MOST} convolutions; got {len(filled)}.")
    layers = [square(*(_whole(number, *cell) for cell in _cells(row))) for number, row in filled]
    return (*layers, FullyConnected(outputs=CLASSES))


def shape_from(text: str) -> Shape:
    """(C, H, W) from 3x32x32; `SettingsError` for anything else, or a side above 512."""
    parts = (text or "").lower().replace("×", "x").split("x")
    good = len(parts) == 3 and all(part.strip().isdecimal() for part in parts)
    shape = tuple(int(part) for part in parts) if good else ()
    if not shape or max(shape) > _LARGEST or min(shape) < 1:
        raise SettingsError(
            f"Input is channels x height x width, each 1 to {_LARGEST}, as 3x32x32; got {text!r}."
        )
    return shape


def _row(one: Convolution) -> list[int]:
    return [one.kernel[0], one.channels, one.stride[0], one.padding[0]]


def _cells(row: Sequence[Any]) -> list[tuple[str, Any]]:
    return list(zip(COLUMNS, row, strict=True))


def _is_filled(value: Any) -> bool:
    return value not in (None, "") and value == value


def _whole(number: int, name: str, value: Any) -> int:
    low = 0 if name == "padding" else 1
    if name == "padding" and not _is_filled(value):
        return 0
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not found.is_integer() or not low <= found <= _LARGEST:
        raise SettingsError(
            f"Row {number}: {name} is a whole number from {low} to {_LARGEST}; got {value!r}."
        )
    return int(found)
