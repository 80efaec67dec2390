"""Votes and labels of a study as tables, the form in which they leave the study."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.design.candidates import ListFacts, list_facts
from annotation.domain import Study
from annotation.formats.study_data import STIMULUS_COLUMNS, StudyData
from annotation.images import Shelf, fetch, here, path_of
from annotation.store import Store, reports, studies
from annotation.votes import aggregate
from semsim.base.columns import (
    AT_CHANCE,
    ATTACKER,
    ITEM_COLUMNS,
    RATED,
    TARGET_COLUMNS,
    VOTE_COLUMNS,
)

Rows = list[dict[str, Any]]

_FACTS: dict[str, ListFacts | None] = {}  # of lists, by study
PICTURES = ("original", "reconstruction", "attacked", "shown")  # columns of SHA-256s


def _at_once(store: Store, study_id: str, *rows: Callable[[Any, Study], Any]) -> Sequence[Any]:
    """A study and what each of `rows` reads of it, all as it is at one moment."""

    def read(tx: Any) -> list[Any]:
        study = studies.study_of(tx, study_id)
        return [study, *(of(tx, study) for of in rows)]

    return store.read(read)


@dataclass(kw_only=True)
class Collected:
    """The votes of a study as they are now; a look after the first reads those that changed."""

    store: Store
    study_id: str
    _seen: tuple[int, int] = (0, 0)  # `reports.events_so_far`
    _table: pd.DataFrame | None = None  # typed, by the number of each vote's event
    _lists: ListFacts | None = None
    _shown: pd.DataFrame | None = None

    def read(self) -> tuple[Study, pd.DataFrame, ListFacts | None, pd.DataFrame]:
        """Read a study as it is at one moment; raises `NotFoundError`.

        Returns:
            The study, its votes as from `export_votes` without what `votes_in_short` leaves out,
            the facts of its lists, and one row a reconstruction with `item` and, as SHA-256,
            `original` and `reconstruction`.
        """
        study, now, changed, (names, rows) = self.store.read(self._news)
        if self._table is None or self._shown is None:
            _, pictures, lists = _at_once(
                self.store, study.id, reports.picture_rows, reports.candidate_lists
            )
            columns = ["item", "original", "reconstruction"]
            self._shown = pd.DataFrame.from_records(pictures, columns=columns)
            self._lists = list_facts(lists)
        table = pd.DataFrame.from_records(rows, columns=list(names), index="came")
        table = _typed(study, table.assign(**reports.constants(study)), self._lists)
        if changed is not None and self._table is not None:
            kept = self._table.drop(table.index, errors="ignore")
            table = pd.concat([kept, table]) if len(table) else kept
        self._table, self._seen = table.sort_index(), now
        votes = _named(study, self._table.reset_index(drop=True))
        return study, votes, self._lists, self._shown

    def _news(self, tx: Any) -> tuple[Study, tuple[int, int], Sequence[str] | None, Any]:
        study = studies.study_of(tx, self.study_id)
        known = self._table is not None
        changed = reports.changed_votes(tx, study.id, self._seen) if known else None
        now = reports.events_so_far(tx, study.id)
        return study, now, changed, reports.votes_in_short(tx, study, changed)


def export_votes(store: Store, study_id: str) -> pd.DataFrame:
    """Every vote of a study with the columns `VOTE_COLUMNS`, in the order they came.

    `recognised` is whether the answer names the true class or says "same"; for a decoy it says
    that the annotator was misled. Of ratings it is whether this one is at or above the threshold,
    and `RATED` are further columns. Where originals are named there is
    `ORIGINAL_ANSWER`. Raises `NotFoundError`.
    """
    both = (reports.vote_rows, reports.candidate_lists)
    study, rows, lists = _at_once(store, study_id, *both)
    return _votes(study, rows, list_facts(lists))


def export_labels(store: Store, study_id: str, images: Shelf) -> pd.DataFrame:
    """One row a reconstruction with `LABEL_COLUMNS`, `TARGET_COLUMNS`, `ATTACKER` and
    the judges of the study's lists; no decoys.

    `images` is where studies keep their images; `original`, `reconstruction` and, where it is
    known, `attacked` are absolute paths of PNG files there, or of copies on this machine, which
    are fetched. Raises `NotFoundError`, and `StoreError` where images do not answer.
    """
    study, items, votes = _at_once(store, study_id, reports.item_rows, reports.vote_rows)
    return _labels(study, items, _votes(study, votes), images)


def read_study(store: Store, study_id: str, images: Shelf) -> StudyData:
    """A study with all its tables, as they are at one moment; images as for `export_labels`."""
    tables = (reports.item_rows, reports.vote_rows, reports.stimulus_rows, reports.candidate_lists)
    study, items, rows, stimuli, lists = _at_once(store, study_id, *tables)
    facts = list_facts(lists)
    votes = _votes(study, rows, facts)
    return StudyData(
        study=study,
        votes=votes,
        labels=_labels(study, items, votes, images),
        stimuli=_with_paths(stimuli, STIMULUS_COLUMNS, images),
        lists=facts.said if facts else (),
    )


def read_items(store: Store, study_id: str) -> Rows:
    """One row an item of any kind, as `reports.stimulus_rows`; raises `NotFoundError`."""
    return list(_at_once(store, study_id, reports.stimulus_rows)[1])


def facts_of_lists(store: Store, study_id: str) -> ListFacts | None:
    """Return the facts of the study's candidate lists; None without any. Raises `NotFoundError`.

    They never change, and are computed once.
    """
    (study,) = _at_once(store, study_id)
    if study.id not in _FACTS:
        _FACTS[study.id] = list_facts(_at_once(store, study_id, reports.candidate_lists)[1])
    return _FACTS[study.id]


def _labels(study: Study, items: Rows, votes: pd.DataFrame, images: Shelf) -> pd.DataFrame:
    labels = aggregate.labels(
        _with_paths(items, ITEM_COLUMNS, images).astype("str"),
        votes,
        votes_per_item=study.spec.votes_per_item,
        voter=study.spec.voters,
    )
    tests = [study.target(model) for model in labels["model"]]
    for name in TARGET_COLUMNS:
        values = [getattr(one, name.removeprefix("target_")) for one in tests]
        kind = "boolean" if name == AT_CHANCE else "float64"
        labels[name] = pd.Series(values, index=labels.index, dtype=kind)
    labels[ATTACKER] = pd.Series([one.attacker or None for one in tests], labels.index, "str")
    labels["judges"] = pd.Series(_judges(study), index=labels.index, dtype="str")
    return labels


def _judges(study: Study) -> str | None:
    return " ".join(study.judges) or None


def _votes(study: Study, rows: Rows | pd.DataFrame, lists: ListFacts | None = None) -> pd.DataFrame:
    return _named(study, _typed(study, rows, lists))


def _typed(study: Study, rows: Rows | pd.DataFrame, lists: ListFacts | None) -> pd.DataFrame:
    scale, types = study.kind.scale, dict(VOTE_COLUMNS)
    # Types are said outright: a table without votes must have the same ones as a full table.
    table = pd.DataFrame(rows, columns=list(VOTE_COLUMNS))
    # An original is of no model: missing in every format, as a CSV file knows no empty text.
    nothing = {name: table[name].mask(table[name] == "") for name in ("model", "attack")}
    if scale is not None:
        types |= RATED
        table = table.assign(rating_levels=scale.levels, rating_threshold=scale.threshold)
    table["judges"], table["lists"] = _judges(study), " ".join(lists.said) if lists else None
    return table.assign(**nothing).astype(types)


def _named(study: Study, votes: pd.DataFrame) -> pd.DataFrame:
    if not study.spec.label_originals:
        return votes
    return aggregate.with_original_answers(votes, study.spec.votes_per_item)


def _with_paths(rows: Rows, columns: Sequence[str], images: Shelf) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(columns))
    named = sorted(set(PICTURES) & set(columns))
    fetch(images, {digest for column in named for digest in table[column].dropna()})
    folder = here(images).resolve()
    for column in named:
        paths = [None if pd.isna(d) else str(path_of(folder, d)) for d in table[column]]
        table[column] = pd.Series(paths, dtype="str")
    return table
