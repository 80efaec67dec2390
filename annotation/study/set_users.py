"""Which studies ask about a reconstruction set, although each has its own copy of the pictures."""

from pathlib import Path

import numpy as np

from annotation import images as kept
from annotation.errors import StudyError
from annotation.store import Store, studies
from annotation.study.sets import read_set


def users_of(store: Store, images: Path, folder: Path) -> list[str]:
    """Names of the studies that ask about the set in `folder`; of one that is broken, none.

    images: the folder the studies' images lie in. A set that has the names of another and other
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
    return [name for name, digest in asking if _shows(kept.path_of(images, digest), pixels)]


def _shows(path: Path, pixels: np.ndarray) -> bool:
    """Whether a picture is just these pixels; one that is gone may be."""
    try:
        return np.array_equal(kept.read_pixels(path), pixels)
    except StudyError:
        return True
