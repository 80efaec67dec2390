"""The settings of a study as they lie in its row, or in that of a version of them."""

import json
from dataclasses import fields
from functools import lru_cache

from sqlalchemy import Text, cast

from annotation.errors import StudyError
from annotation.spec import StudySpec
from annotation.store.engine import RESTORE
from annotation.store.tables import ProtocolRow, StudyRow
from semsim.base.errors import StoreError

# As they lie there, for `settings_in`: nothing is taken apart that is known already.
WRITTEN = cast(StudyRow.spec, Text)
_STORED = {one.name for one in fields(StudySpec)} - {"password"}  # which is kept as a hash


def settings_of(row: StudyRow | ProtocolRow) -> StudySpec:
    """Return the settings in `row`; raises `StoreError` for a damaged row."""
    study = row.id if isinstance(row, StudyRow) else row.study_id
    return settings_in(json.dumps(row.spec), study)


def settings_in(written: str, study: str) -> StudySpec:
    """The settings that `WRITTEN` gives of a study; raises `StoreError` as `settings_of` does."""
    try:
        return _made_of(written)
    except (StudyError, AttributeError, TypeError, ValueError) as error:
        raise StoreError(
            f"The settings of the study {study} in the database cannot be read: {error}. {RESTORE}"
        ) from error


@lru_cache(maxsize=256)  # every vote asks, and checking them takes longer than finding them
def _made_of(values: str) -> StudySpec:
    found = json.loads(values)
    if other := sorted(_STORED ^ set(found)):
        raise StudyError(f"they lack, or should not have, {', '.join(other)}")
    return StudySpec(**found)
