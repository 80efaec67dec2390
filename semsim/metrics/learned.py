"""Originals that a SemSim learned from: by pixels, or by names where those are all there is.

A name is a weak witness: another seed or another folder gives other pictures the same names, and
a table may call a data set by another name, or by none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.picture_files import read_pixels
from semsim.metrics.provenance import Provenance, original_keys
from semsim.weights import sha256_of

UNKNOWN = "unknown"  # a data set that no table names
_NO_PIXELS = ""  # in place of a digest: an original known by its name alone

Pictures = Mapping[str, frozenset[str]]  # by the key of an original, the digests of its pictures


@dataclass(frozen=True, kw_only=True)
class SeenOriginals:
    """Of the originals of a table whether a SemSim learned from them.

    Attributes:
        told: By key, whether it did, None where nothing tells; and whether names alone tell it.
        namesakes: Unseen ones with the name of one that it learned from, whose pixels are others.
    """

    told: Mapping[str, tuple[bool | None, bool]]
    namesakes: frozenset[str]

    @property
    def seen(self) -> frozenset[str]:
        return self._that_are(True)

    @property
    def unseen(self) -> frozenset[str]:
        return self._that_are(False)

    @property
    def unknown(self) -> frozenset[str]:
        return self._that_are(None)

    @property
    def by_name(self) -> frozenset[str]:
        return frozenset(key for key, (_, by_name) in self.told.items() if by_name)

    def among(self, keys: Iterable[str]) -> SeenOriginals:
        """The same of the originals `keys` alone."""
        told = {key: self.told[key] for key in keys if key in self.told}
        return SeenOriginals(told=told, namesakes=self.namesakes & told.keys())

    def _that_are(self, wanted: bool | None) -> frozenset[str]:
        return frozenset(key for key, (seen, _) in self.told.items() if seen is wanted)


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Originals that a SemSim learned from."""

    pictures: Pictures

    def record(self) -> dict[str, list[str]]:
        """Return the field `pixels` of a `Provenance`."""
        return {key: sorted(self.pictures[key]) for key in sorted(self.pictures)}

    def and_from(self, labels: pd.DataFrame) -> Learned:
        """The same with the originals in `labels`, which have dataset, image_id and original."""
        both = dict(self.pictures)
        for key, digests in _pictures_of(labels).items():
            both[key] = both.get(key, frozenset()) | digests
        return Learned(pictures=both)

    def among(self, table: pd.DataFrame) -> SeenOriginals:
        """The originals in `table`, columns dataset and image_id, and original where it is known.

        Two of one name are two originals where their pixels differ; a picture of another size may
        be the same one resized, so that its name decides.
        """
        pixels = frozenset[str]().union(*self.pictures.values()) - {_NO_PIXELS}
        named = {key for key, digests in self.pictures.items() if _NO_PIXELS in digests}
        nameless = {False: any(map(_nameless, named)), True: any(map(_nameless, self.pictures))}

        def told(key: str, digests: frozenset[str]) -> tuple[bool | None, bool]:
            theirs, bare = self.pictures.get(key, frozenset()), _NO_PIXELS in digests
            if digests & pixels:
                return True, False
            if theirs and not _comparable(digests, theirs):
                return True, True
            if not (self.pictures if bare else named):
                return False, False
            unknown = _nameless(key) or nameless[bare]
            return (None, False) if unknown else (False, True)

        originals = _pictures_of(table, read=bool(pixels))
        found = {key: told(key, digests) for key, digests in originals.items()}
        others = {key for key, (seen, _) in found.items() if seen is False}
        return SeenOriginals(told=found, namesakes=frozenset(others & self.pictures.keys()))


def learned_by(training: Provenance) -> Learned:
    """Return what the SemSim of a checkpoint learned from."""
    return Learned(pictures={key: frozenset(found) for key, found in training.pixels.items()})


def _pictures_of(table: pd.DataFrame, *, read: bool = True) -> Pictures:
    """By its key the pictures of each original in a table.

    Args:
        read: False for the keys alone.
    """
    files: dict[str, dict[str, str]] = {key: {} for key in original_keys(table)}
    if read and "original" in table:
        for key, path in dict.fromkeys(zip(original_keys(table), table["original"], strict=True)):
            with suppress(OSError):  # none said, gone, or of another machine
                files[key].setdefault(sha256_of(Path(str(path))), str(path))
    return {
        key: frozenset(_digest(*file) for file in of.items()) or frozenset({_NO_PIXELS})
        for key, of in files.items()
    }


@lru_cache(maxsize=65536)
def _digest(sha256: str, path: str) -> str:
    """Width, height and the SHA-256 of the pixels of the file at `path`, whose own is `sha256`."""
    try:
        pixels = read_pixels(Path(path))
    except DataError:
        return _NO_PIXELS
    height, width, _ = pixels.shape
    return f"{width}x{height}:{hashlib.sha256(pixels.tobytes()).hexdigest()}"


def _comparable(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether pixels tell pictures of one name apart: they are known, in the same sizes."""
    sizes, others = ({digest.partition(":")[0] for digest in of} for of in (one, other))
    return _NO_PIXELS not in one | other and sizes <= others


def _nameless(key: str) -> bool:
    return key.startswith(f"{UNKNOWN}/")
