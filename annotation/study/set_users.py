"""Studies and the sets they ask about, although each study has its own copy of the pictures."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from annotation import images as kept
from annotation.domain import Study
from annotation.store import Store, studies
from annotation.study.sets import SetFolder, read_set
from semsim.base.errors import SemsimError
from semsim.base.picture_files import read_pixels


def users_of(store: Store, images: kept.Shelf, folder: Path) -> list[str]:
    """Names of the studies that ask about the set in `folder`; of one that is broken, none.

    images: where studies keep their images. A set that has the names of another and other
    pictures is not that other set.
    """
    try:
        found = read_set(folder)
        if not found.images:
            return []
        first = found.images[0]
        pixels = read_pixels(first.reconstruction)
    except SemsimError:
        return []
    named = (found.dataset, found.model, found.attack, first.image_id)
    asking = store.read(lambda tx: studies.asking_about(tx, *named))
    return [name for name, digest in asking if _shows(images, digest, pixels)]


def sets_of(
    store: Store, images: kept.Shelf, study: Study, known: Mapping[str, SetFolder]
) -> dict[str, list[str]]:
    """The names of those `known` sets that a study may have been made of, by target model.

    They have the data set, model and attack; where several do, those that show what it shows.
    """
    found: dict[str, list[str]] = {model: [] for model in study.models}
    for model, attack, image_id, digest in store.read(lambda tx: studies.one_of_each(tx, study.id)):
        alike = {
            name: one
            for name, one in known.items()
            if (one.dataset, one.model, one.attack) == (study.dataset, model, attack)
        }
        some = len(alike) > 1
        found[model] = [
            name for name, one in alike.items() if not some or _has(images, one, image_id, digest)
        ]
    return found


def _has(images: kept.Shelf, found: SetFolder, image_id: str, digest: str) -> bool:
    """Return whether a set's reconstruction of an original is that picture, or may be."""
    for one in found.images:
        if one.image_id == image_id:
            try:
                return _shows(images, digest, read_pixels(one.reconstruction))
            except SemsimError:
                return False
    return False


def _shows(images: kept.Shelf, digest: str, pixels: np.ndarray) -> bool:
    """Return whether a picture is just these pixels; one that cannot be had may be."""
    try:
        kept.fetch(images, [digest])
        return np.array_equal(read_pixels(kept.path_of(images, digest)), pixels)
    except SemsimError:
        return True
