"""The settings of a study as they lie in its row, or in that of a version of them."""

import json
from functools import lru_cache

from annotation.errors import StoreError, StudyError
from annotation.spec import StudySpec, stored
from annotation.store.engine import RESTORE
from annotation.store.tables import ProtocolRow, StudyRow


def settings_of(row: StudyRow | ProtocolRow) -> StudySpec:
    """The settings in `row`; raises `StoreError` for a row that somebody has damaged."""
    try:
        return _made_of(json.dumps(row.spec))
    except (StudyError, AttributeError, TypeError, ValueError) as error:
        study = row.id if isinstance(row, StudyRow) else row.study_id
        raise StoreError(
            f"The settings of the study {study} in the database cannot be read: {error}. {RESTORE}"
        ) from error


@lru_cache(maxsize=256)  # every vote asks, and checking them takes longer than finding them
def _made_of(values: str) -> StudySpec:
    return stored(json.loads(values))
