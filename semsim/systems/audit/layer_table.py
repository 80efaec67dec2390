"""The layers that the table of the page Audit means."""

from collections.abc import Sequence
from typing import Any

from semsim.attacks.linear.rank import Convolution, Shape
from semsim.base.errors import SettingsError
from semsim.systems.audit.security_index import FullyConnected, Layer, convolutions, square

COLUMNS = ("kernel", "channels", "stride", "padding")
SIZE = ("channels", "height", "width")
LARGEST = 512  # any number: a page answers at once
_CLASSES = 10
_MOST = 12  # layers


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
    return (*layers, FullyConnected(outputs=_CLASSES))


def shape_of(size: Sequence[Any]) -> Shape:
    """(C, H, W) from the three numbers of `SIZE`; `SettingsError` names the one that is wrong."""
    channels, height, width = (
        _number("Input", name, value, 1) for name, value in zip(SIZE, size, strict=True)
    )
    return channels, height, width


def _row(one: Convolution) -> list[int]:
    return [one.kernel[0], one.channels, one.stride[0], one.padding[0]]


def _cells(row: Sequence[Any]) -> list[tuple[str, Any]]:
    return list(zip(COLUMNS, row, strict=True))


def _is_filled(value: Any) -> bool:
    return value not in (None, "") and value == value


def _whole(number: int, name: str, value: Any) -> int:
    if name == "padding" and not _is_filled(value):
        return 0
    return _number(f"Row {number}", name, value, 0 if name == "padding" else 1)


def _number(where: str, name: str, value: Any, low: int) -> int:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not found.is_integer() or not low <= found <= LARGEST:
        raise SettingsError(
            f"{where}: {name} is a whole number from {low} to {LARGEST}; got {value!r}."
        )
    return int(found)
