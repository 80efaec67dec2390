"""What a researcher does to a study as a whole, beside running, pausing and closing it."""

from datetime import UTC, datetime
from pathlib import Path

from annotation.domain import Study
from annotation.errors import StoreError, StudyError
from annotation.store import Store, backup, removal, studies
from annotation.store.engine import sqlite_file
from annotation.texts import flaw

LONGEST_NAME = 200
STAMP = "%Y%m%dT%H%M%SZ"


def rename(store: Store, study_id: str, name: str) -> Study:
    """The study under another name, which annotators never see; votes and protocol stay.

    Raises `StudyError` for a name no study can have, and `NotFoundError`.
    """
    tidy = " ".join(name.split())
    if wrong := flaw(tidy):
        raise StudyError(f"The name {wrong}")
    if len(tidy) > LONGEST_NAME:
        raise StudyError(f"A name has at most {LONGEST_NAME} letters; got {len(tidy)}.")
    now = datetime.now(UTC)
    return store.write(lambda tx: studies.rename(tx, study_id, tidy, now))


def delete(store: Store, study_id: str, typed: str, backups: Path) -> Path | None:
    """Delete a study with its items, people, votes and events, once its name has been typed.

    A backup of the database comes first, in the folder `backups`, where none of later pushes it
    out; its path is returned, None for databases that have tools of their own for that. Pictures
    stay in the folder of images, where other studies may show them and the backup looks for them.
    Raises `StudyError` for another name, `NotFoundError`, and `StoreError` if the study is deleted
    but the files could not be cleaned.
    """
    study = store.read(lambda tx: studies.study_of(tx, study_id))
    if typed.split() != study.name.split():  # of several spaces a page shows one
        raise StudyError(f"To delete the study, type its name: {study.name}")
    now, made, file = datetime.now(UTC), None, sqlite_file(store.url)
    if file is not None:
        made = backup.back_up(Path(file), backups / f"before-deleting-{study.id}-{now:{STAMP}}.db")
    store.write(lambda tx: removal.delete_study(tx, study_id, now))
    try:
        store.scrub()
    except StoreError as error:
        raise StoreError(f"The study is deleted. {error}") from error
    return made
