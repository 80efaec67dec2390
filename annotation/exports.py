"""Votes and labels of a study as tables, the form in which they leave the study."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.domain import Study
from annotation.errors import AnnotationError
from annotation.images import path_of
from annotation.store import Store, reports, studies
from annotation.votes import aggregate

VOTE_COLUMNS: Mapping[str, str] = {
    "study": "str",
    "task": "str",
    "item": "str",
    "kind": "str",
    "model": "str",
    "dataset": "str",
    "attack": "str",
    "image_id": "str",
    "class_name": "str",
    "annotator": "str",
    "answer": "str",
    "reason": "str",
    "recognised": "bool",
    "rt_ms": "float64",
    "client_ts": "datetime64[us, UTC]",
    "server_ts": "datetime64[us, UTC]",
    "status": "str",
    "vote_id": "str",
    "simulated": "bool",
    "votes_per_item": "int64",
    "headline": "str",
}


def export_votes(store: Store, study_id: str) -> pd.DataFrame:
    """Every vote of a study with the columns `VOTE_COLUMNS`, in the order they came.

    `recognised` is whether the answer names the true class or says "same"; for a decoy it says
    that the annotator was misled. Raises `NotFoundError`.
    """
    return store.read(lambda tx: _votes(reports.vote_rows(tx, studies.study_of(tx, study_id))))


def export_labels(store: Store, study_id: str, images: Path) -> pd.DataFrame:
    """One row a reconstruction with `aggregate.LABEL_COLUMNS`; decoys are not in it.

    `images` is the folder the study's images lie in; `original`, `reconstruction` and, where it is
    known, `attacked` are absolute paths of PNG files in it. Raises `NotFoundError`.
    """

    def read(tx: Any) -> tuple[Study, list[dict[str, Any]], list[dict[str, Any]]]:
        study = studies.study_of(tx, study_id)
        return study, reports.item_rows(tx, study), reports.vote_rows(tx, study)

    study, items, rows = store.read(read)
    return aggregate.labels(
        _items(items, Path(images).resolve()),
        _votes(rows),
        votes_per_item=study.spec.votes_per_item,
        simulated=study.spec.simulated,
    )


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as CSV or Parquet, whichever `path` ends in; else raises `AnnotationError`."""
    writers: dict[str, Callable[[], object]] = {
        ".csv": lambda: table.to_csv(path, index=False),
        ".parquet": lambda: table.to_parquet(path, index=False),
    }
    if path.suffix not in writers:
        raise AnnotationError(f"{path} should end in .csv or .parquet; got {path.suffix!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    writers[path.suffix]()


def _votes(rows: list[dict[str, Any]]) -> pd.DataFrame:
    # Types are said outright: a table without votes must have the same ones as a full table.
    return pd.DataFrame(rows, columns=list(VOTE_COLUMNS)).astype(dict(VOTE_COLUMNS))


def _items(rows: list[dict[str, Any]], images: Path) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(aggregate.ITEM_COLUMNS)).astype("str")
    for column in ("original", "reconstruction", "attacked"):
        paths = [None if pd.isna(d) else str(path_of(images, d)) for d in table[column]]
        table[column] = pd.Series(paths, dtype="str")
    return table
