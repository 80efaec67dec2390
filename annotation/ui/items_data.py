"""The items of a study as a table with filters, and all that was said of one."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from annotation.domain import StimulusKind, VoteStatus
from annotation.formats.study_data import StudyData
from annotation.images import Shelf, here
from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.labelling import events_so_far
from annotation.votes.aggregate import goes_by_names, recognising

RECOGNISED, UNRECOGNISED, OPEN, NONE = "recognised", "not recognised", "undecided", "no vote"
NOT_JUDGED = "not judged"  # what is no reconstruction: decoys, originals, trials
VERDICTS = (RECOGNISED, UNRECOGNISED, OPEN, NONE, NOT_JUDGED)
KEPT = 4  # studies whose tables stay in memory
MOST_ANSWERS = 3  # that a row of the table tells
State = tuple[int, int]  # of `events_so_far`


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What the table is narrowed to; an empty text narrows nothing.

    split: "yes" for items of which some votes recognise the original and some do not. by: the name
    of somebody who answered.
    """

    model: str = ""
    class_name: str = ""
    verdict: str = ""
    kind: str = ""
    split: str = ""
    by: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Filters":
        """Those of an address."""
        return cls(**{one.name: str(query.get(one.name, "")) for one in fields(cls)})

    @property
    def given(self) -> dict[str, str]:
        """Those that narrow something."""
        return {name: value for name, value in vars(self).items() if value}

    def address(self, path: str, **more: Any) -> str:
        """`path` with these filters."""
        query = {**more, **self.given}
        return f"{path}?{urlencode(query)}" if query else path


def items_table(data: StudyData) -> pd.DataFrame:
    """One row an item, in the order of model and picture.

    Columns: item, kind, model, attack, image_id, class_name; original, shown: SHA-256 of pictures;
    n_votes, n_recognised of counted votes, as the headline has it, the second None where that goes
    by a name there is not; verdict; split; answers: how often each was given, the commonest first.
    """
    table = data.stimuli.drop(columns="candidates").copy()
    for column in ("original", "shown"):
        table[column] = [Path(one).stem for one in table[column]]
    counted = data.counted
    votes = counted.assign(recognising=recognising(counted)).groupby("item")
    table["n_votes"] = table["item"].map(votes.size()).fillna(0).astype(int)
    recognised = table["item"].map(votes["recognising"].sum(min_count=1))
    table["n_recognised"] = _known(recognised.mask(table["n_votes"] == 0, 0).astype("Int64"))
    table["split"] = (recognised > 0) & (recognised < table["n_votes"])
    decided = data.labels.set_index("item")["recognisable"]
    table["verdict"] = [
        (_verdict(decided.get(item)) if n else NONE)
        if kind == StimulusKind.RECONSTRUCTION
        else NOT_JUDGED
        for item, kind, n in zip(table["item"], table["kind"], table["n_votes"], strict=True)
    ]
    said = {item: _counted(group["answer"]) for item, group in votes}
    answers = [said.get(item, []) for item in table["item"]]
    table["answers"] = pd.Series(answers, index=table.index, dtype=object)
    return table.reset_index(drop=True)


def _verdict(value: Any) -> str:
    if value is None or pd.isna(value):
        return OPEN
    return RECOGNISED if value else UNRECOGNISED


def _counted(answers: pd.Series) -> list[tuple[str, int]]:
    counts = answers[answers != ""].value_counts()
    return [(str(answer), int(n)) for answer, n in counts.items()]


def narrowed(table: pd.DataFrame, votes: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """The rows of `table` that pass; those somebody answered carry `own`, what they said."""
    for name in ("model", "class_name", "verdict", "kind"):
        if wanted := getattr(filters, name):
            table = table[table[name] == wanted]
    if filters.split:
        table = table[table["split"]]
    if filters.by:
        theirs = votes[(votes["annotator"] == filters.by) & (votes["status"] == VoteStatus.COUNTED)]
        own = dict(zip(theirs["item"], theirs["answer"], strict=True))
        table = table[table["item"].isin(own)]
        table = table.assign(own=[own[item] for item in table["item"]])
    return table


def votes_of(data: StudyData, item: str) -> list[dict[str, Any]]:
    """Everything said of an item, the first answer first; what is not known is None."""
    rows = data.votes[data.votes["item"] == item]
    if goes_by_names(rows):
        rows = rows.assign(recognised=recognising(rows))
    rows = rows.apply(_known)
    return [{str(name): value for name, value in one.items()} for one in rows.to_dict("records")]


def _known(column: pd.Series) -> pd.Series:
    """What is missing as None."""
    return column.astype(object).where(column.notna(), None)


class Kept:
    """The tables of some studies, made anew when something has happened in a study."""

    def __init__(self, store: Store, images: Shelf) -> None:
        self._store, self._images = store, images
        self._known: OrderedDict[str, tuple[State, StudyData, pd.DataFrame]] = OrderedDict()
        self._lock = Lock()

    def of(self, study: str) -> tuple[StudyData, pd.DataFrame]:
        """A study and `items_table` of it; raises `NotFoundError`."""
        now = events_so_far(self._store, study)
        with self._lock:
            known = self._known.get(study)
        if known is None or known[0] != now:
            data = read_study(self._store, study, here(self._images))
            known = (now, data, items_table(data))
        with self._lock:
            self._known[study] = known
            self._known.move_to_end(study)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known[1], known[2]
