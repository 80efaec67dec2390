"""A study's settings in force, version by version: what may still change, and the record of it.

The settings a study was made with are version 1. What decides the items, the question, the number
of votes or the headline never changes; anything else may, as a new version with a reason, and every
vote says under which version its item was shown.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from annotation.domain import ProtocolVersion, Study, StudySpec
from annotation.errors import StudyError
from annotation.store import Store, studies

AMENDABLE = frozenset(
    {
        "title",
        "lease_seconds",
        "min_rt_ms",
        "max_views",
        "min_lag",
        "items_per_person",
        "catch_rate",
        "catch_warn_after",
        "catch_pause_after",
        "gold_rate",
        "repeat_rate",
        "repeat_lag",
        "consent",
        "instructions",
        "check",
        "check_attempts",
        "completion_code",
        "completion_url",
        "image_scale",
        "interpolation",
        "background",
    }
)


def amend(store: Store, study_id: str, changes: Mapping[str, Any], why: str, by: str = "") -> Study:
    """The study with other settings from now on, as the next version of its protocol.

    changes: by name of setting, of those in `AMENDABLE`. why: the reason, for whoever reads the
    record. by: who did it. Raises `StudyError` for a setting that may not change, a value no study
    can have, no change at all or no reason, `ConflictError` if the study is closed, and
    `NotFoundError`.
    """
    if not why.strip():
        raise StudyError(
            "Say why the settings change; whoever reads the results will want to know."
        )
    _refuse_unknown(changes)
    now = datetime.now(UTC)
    return store.write(
        lambda tx: studies.amend(
            tx, study_id, lambda spec: amended(spec, changes), why.strip(), by, now
        )
    )


def amended(spec: StudySpec, changes: Mapping[str, Any]) -> StudySpec:
    """`spec` with `changes`, checked as always; raises `StudyError` if nothing would change."""
    values = {field.name: getattr(spec, field.name) for field in fields(StudySpec)}
    after = StudySpec(**{**values, **changes})
    if after == spec:
        raise StudyError("Nothing would change: the study has these settings already.")
    return after


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    fixed = sorted(set(changes) - AMENDABLE)
    if fixed:
        raise StudyError(
            f"{', '.join(fixed)} cannot change once a study exists; make a new study. "
            f"What may change is {', '.join(sorted(AMENDABLE))}."
        )


def protocol_versions(store: Store, study_id: str) -> list[ProtocolVersion]:
    """Every version of a study's settings, the first one first; raises `NotFoundError`."""
    return store.read(lambda tx: studies.protocol_versions(tx, study_id))
