"""The items of the study in hand: a table to look through, and a page for each."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import pandas as pd
from fastapi import APIRouter, Request, Response

from annotation.domain import StimulusKind, VoteStatus
from annotation.errors import NotFoundError
from annotation.formats.study_data import StudyData
from annotation.images import Shelf, here
from annotation.store import Store
from annotation.study.exports import read_study
from annotation.study.labelling import events_so_far
from annotation.texts import counted
from annotation.ui import StudyContext
from annotation.votes.aggregate import goes_by_names, recognising
from annotation.web.api import routes
from annotation.web.templates import page

ROWS = 10  # of a page of the table
RECOGNISED, UNRECOGNISED, OPEN, NONE = "recognised", "not recognised", "undecided", "no vote"
NOT_JUDGED = "not judged"  # what is no reconstruction: decoys, originals, trials
VERDICTS = (RECOGNISED, UNRECOGNISED, OPEN, NONE, NOT_JUDGED)
KEPT = 4  # studies whose tables stay in memory
MOST_ANSWERS = 3  # that a row of the table tells
State = tuple[int, int]  # of `events_so_far`


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of the table; an empty text narrows nothing.

    Attributes:
        split: "yes" for items of which some votes recognise the original and some do not.
        by: The name of an annotator who answered.
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
    """Return the rows of `table` that pass; with `by`, their `own` is that annotator's answer."""
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
    """Return the column with None for what is missing."""
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


def router(context: StudyContext) -> APIRouter:
    """The routes below /studio/items."""
    made = _Items(context=context, kept=Kept(context.store, context.images))
    return routes(get={"/studio/items": made.table, "/studio/items/{item}": made.item})


@dataclass(frozen=True, kw_only=True)
class _Items:
    context: StudyContext
    kept: Kept

    def table(self, request: Request) -> Response:
        study = self.context.in_hand(request)
        if not study:
            return page("items.html", study=None, title="Items")
        data, table = self.kept.of(study)
        filters = Filters.of(request.query_params)
        found = narrowed(table, data.votes, filters)
        pages = max(1, -(-len(found) // ROWS))
        number = min(pages, _number(request.query_params.get("page", "1")))
        shown = found.iloc[(number - 1) * ROWS : number * ROWS]
        return page(
            "items.html",
            title="Items",
            study=data.study,
            lead=lead(table, found, filters),
            filters=filters,
            choices=_choices(data, table),
            rows=shown.to_dict("records"),
            number=number,
            pages=pages,
            most=MOST_ANSWERS,
        )

    def item(self, request: Request, item: str) -> Response:
        study = self.context.in_hand(request)
        data, table = self.kept.of(study)
        row = table[table["item"] == item]
        if row.empty:
            raise NotFoundError("The current study has no such item.")
        filters = Filters.of(request.query_params)
        among = narrowed(table, data.votes, filters)
        order = list(among["item"])
        place = order.index(item) if item in order else -1
        return page(
            "item.html",
            title="Item",
            study=data.study,
            one=row.iloc[0].to_dict(),
            attacked=_attacked(data, item),
            votes=votes_of(data, item),
            filters=filters,
            place=place + 1,
            total=len(order),
            before=order[place - 1] if place > 0 else "",
            after=order[place + 1] if 0 <= place < len(order) - 1 else "",
            back=max(0, place) // ROWS + 1,
        )


def lead(table: pd.DataFrame, found: pd.DataFrame, filters: Filters) -> str:
    """Return a sentence on the items that the table holds."""
    counts = found["verdict"].value_counts()
    parts = [f"{counts[one]:,} {one}" for one in VERDICTS if counts.get(one)]
    of = f" of {len(table):,}" if filters.given else ""
    return f"{counted(len(found), 'item')}{of}{': ' if parts else ''}{', '.join(parts)}."


def _choices(data: StudyData, table: pd.DataFrame) -> dict[str, list[str]]:
    people = data.votes["annotator"].dropna().unique()
    return {
        "model": sorted(one for one in table["model"].unique() if one),
        "class_name": sorted(one for one in table["class_name"].unique() if one),
        "verdict": [one for one in VERDICTS if one in set(table["verdict"])],
        "kind": sorted(table["kind"].unique()),
        "by": sorted(people),
    }


def _attacked(data: StudyData, item: str) -> str:
    """SHA-256 of what the attacker saw, where that is not the original; "" elsewhere."""
    rows = data.labels[data.labels["item"] == item]
    if rows.empty or pd.isna(rows["attacked"].iloc[0]):
        return ""
    digest, original = (str(rows[one].iloc[0])[-68:-4] for one in ("attacked", "original"))
    return digest if digest != original else ""


def _number(text: Any) -> int:
    return max(1, int(text)) if str(text).isdecimal() and len(str(text)) < 8 else 1
