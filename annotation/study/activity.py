"""Activity: who did what to which study, and when, as the events keep it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from annotation.spec import SETTINGS
from annotation.store import Store, reports
from annotation.store.events import EXPORTED, note

MOST = 200  # acts shown, the latest first
_STATUS = {"paused": "paused it", "closed": "closed it", "running": "let it go on"}
_PEOPLE = {"active": "let {} take part again", "erased": "erased somebody, now {}"}


@dataclass(frozen=True, kw_only=True)
class Act:
    """One thing that a researcher did.

    Attributes:
        study: The name of the study, as it is now.
        by: The account; "" where there are none, from a terminal, and by the study itself.
        what: In words.
    """

    at: datetime
    study: str
    by: str
    what: str


def exported(store: Store, study_id: str, file: str) -> None:
    """Keep that `file` of a study was taken out."""
    store.write(lambda tx: note(tx, study_id, EXPORTED, datetime.now(UTC), file=file))


def activity(store: Store, study_id: str | None = None) -> list[Act]:
    """List up to `MOST` acts, the latest first: on one study, or on all that there are or were."""
    rows = store.read(partial(reports.acts, study_id=study_id, most=MOST))
    return [
        Act(
            at=row.at,
            study=row.study or row.data.get("name", ""),
            by=row.data.get("by", ""),
            what=_words(row.kind, row.data, row.person or "somebody"),
        )
        for row in rows
    ]


def _words(kind: str, data: dict[str, Any], person: str) -> str:
    after = data.get("after", "")
    if kind == "status":
        return "reopened it" if data["before"] == "closed" else _STATUS[after]
    if kind == "renamed":
        return f"renamed it, from “{data['before']}” to “{after}”"
    if kind == "amended":
        changed = ", ".join(SETTINGS[name].label for name in data["changed"])
        return f"amended {changed}: {data['why']}"
    if kind == "annotator_status":
        return _PEOPLE.get(after, f"{after} {{}}").format(person)
    if kind == "study_deleted":
        return f"deleted “{data['name']}” with {data['votes']:,} votes"
    plain = {"study_created": "made it", "link_made": f"made a personal link for {person}"}
    return plain.get(kind) or f"exported {data['file']}"
