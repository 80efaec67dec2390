"""Libraries that only some parts need: who lacks one is told the extra that brings it."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from semsim.base.errors import MissingExtraError


def need(library: str, part: str, extra: str) -> None:
    """`MissingExtraError` where `part` of the product lacks `library`, which `extra` brings."""
    if find_spec(library) is None:
        raise MissingExtraError(part, extra)


def arrow() -> Any:
    """pyarrow, by which Parquet is read and written; `MissingExtraError` where it is missing."""
    need("pyarrow", "Parquet", "attacks")
    return import_module("pyarrow")


def matplotlib() -> Any:
    """matplotlib, which draws figures and has a font; `MissingExtraError` where it is missing."""
    need("matplotlib", "What is drawn", "attacks")
    return import_module("matplotlib")
