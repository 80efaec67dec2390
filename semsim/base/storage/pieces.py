"""Results kept under the key of what decides them: one that is there is not computed again."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from semsim.base.errors import DataError
from semsim.base.storage.records import guarded

T = TypeVar("T")


def key_of(settings: Any, digits: int = 64) -> str:
    """The first hexadecimal `digits` of the SHA-256 of `settings` as JSON with sorted names.

    Args:
        settings: Anything JSON can say; a dataclass counts as its fields, a tuple as a list.
    """
    text = json.dumps(settings, default=asdict, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


class Pieces(Generic[T]):
    """The finished pieces of one kind: a file each in `folder`, its key with `ending`.

    Attributes:
        read, write: How a file becomes a piece and a piece a file, which `write` writes whole.
    """

    def __init__(
        self,
        folder: Path,
        ending: str,
        *,
        read: Callable[[Path], T],
        write: Callable[[Path, T], object],
    ) -> None:
        self.folder, self.ending = Path(folder), ending
        self._read, self._write = read, write

    def path(self, key: str) -> Path:
        """Return the path where the piece is, or will be."""
        return self.folder / f"{key}{self.ending}"

    def __contains__(self, key: str) -> bool:
        return self.path(key).exists()

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of `keys` that are not kept, from one look at the folder."""
        names = self.folder.glob(f"*{self.ending}") if self.folder.is_dir() else ()
        there = {path.name.removesuffix(self.ending) for path in names}
        return [key for key in keys if key not in there]

    def write(self, key: str, piece: T) -> None:
        """Keep a piece, in the place of an older one."""
        self._write(self.path(key), piece)

    def read(self, key: str) -> T:
        """The kept piece; `DataError` where it is missing or broken."""
        with guarded(
            self.path(key), DataError, "cannot be read ({}); delete it, and it is made again."
        ):
            return self._read(self.path(key))

    def forget(self, key: str) -> None:
        """The piece will be computed again."""
        self.path(key).unlink(missing_ok=True)
