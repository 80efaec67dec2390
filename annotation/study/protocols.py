"""A study's settings in force, version by version: what may still change, and the record of it.

The settings a study was made with are version 1. What decides the items, the question, the number
of votes or the headline never changes; anything else may, as a new version with a reason, and every
vote says under which version its item was shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from annotation.domain import Study
from annotation.errors import StudyError
from annotation.spec import SETTINGS, HeadlineRule, StudySpec
from annotation.store import Store, reading, studies
from semsim.base.alike import alike

AMENDABLE = frozenset(name for name, one in SETTINGS.items() if one.amendable)
_NO_FURTHER_VOTE = (
    "A further vote goes to items that are split on the true class. The human score "
    f"{HeadlineRule.AS_ORIGINAL_NAMED.value} uses the names that people give the originals. Leave "
    "the further vote out (extra_vote), or choose another human score."
)

protocol_versions = reading(studies.protocol_versions)


def amend(store: Store, study_id: str, changes: Mapping[str, Any], why: str) -> Study:
    """The study with other settings from now on, as the next version of its protocol.

    Raises `StudyError` for a setting that may not change, a value no study can have, no change at
    all or no reason, `ConflictError` if the study is closed, and `NotFoundError`.

    Args:
        changes: By name of setting, of those in `AMENDABLE`.
        why: The reason, for whoever reads the record.
    """
    if not why.strip():
        raise StudyError("Give the reason for the change; it is shown with the results.")
    _refuse_unknown(changes)
    now = datetime.now(UTC)
    change = partial(amended, changes=changes)
    return store.write(lambda tx: studies.amend(tx, study_id, change, why.strip(), now))


def amended(spec: StudySpec, changes: Mapping[str, Any]) -> StudySpec:
    """`spec` with `changes`, checked as always; raises `StudyError` if nothing would change."""
    after = replace(spec, **changes)
    if after == spec:
        raise StudyError("Nothing would change: the study has these settings already.")
    if wrong := problems_of(after):
        raise StudyError("\n".join(wrong))
    return after


def problems_of(spec: StudySpec) -> list[str]:
    """Say why no study can have these settings."""
    by_names = spec.headline is HeadlineRule.AS_ORIGINAL_NAMED
    further = [_NO_FURTHER_VOTE] if by_names and spec.extra_vote else []
    return [*further, *_alike(spec)]


def _alike(spec: StudySpec) -> Iterator[str]:
    """Yield problems of answers, or of a question's options, that people could not tell apart."""
    say, kind = spec.wording, spec.kind
    told = {"Two answers": [key.label for key in say.keys(kind)]}
    for one in kind.check:
        asked = say.question(kind, one)
        told[f"Two options of “{asked.text}”"] = [words for _, words in asked.options]
    for what, words in told.items():
        if len({alike(one) for one in words}) < len(words):
            yield f"{what} have the same words, so they look alike."


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    fixed = sorted(set(changes) - AMENDABLE)
    if fixed:
        raise StudyError(
            f"{', '.join(fixed)} cannot change once a study exists; make a new study. "
            f"Settings that can change: {', '.join(sorted(AMENDABLE))}."
        )
