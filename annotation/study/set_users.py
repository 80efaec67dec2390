"""Which studies ask about a reconstruction set, although each has its own copy of the pictures."""

from pathlib import Path

import numpy as np

from annotation import images as kept
from annotation.errors import AnnotationError, StudyError
from annotation.store import Store, studies
from annotation.study.sets import read_set


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
        pixels = kept.read_pixels(first.reconstruction)
    except StudyError:
        return []
    named = (found.dataset, found.model, found.attack, first.image_id)
    asking = store.read(lambda tx: studies.asking_about(tx, *named))
    return [name for name, digest in asking if _shows(images, digest, pixels)]


def _shows(images: kept.Shelf, digest: str, pixels: np.ndarray) -> bool:
    """Whether a picture is just these pixels; one that cannot be had may be."""
    try:
        kept.fetch(images, [digest])
        return np.array_equal(kept.read_pixels(kept.path_of(images, digest)), pixels)
    except AnnotationError:
        return True
