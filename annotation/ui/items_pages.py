"""The items of the study in hand: a table to look through, and a page for each."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request, Response

from annotation.errors import NotFoundError
from annotation.formats.study_data import StudyData
from annotation.texts import counted
from annotation.ui import StudyContext, items_data
from annotation.ui.items_data import Filters, Kept
from annotation.web.api import routes
from annotation.web.templates import page

ROWS = 10  # of a page of the table


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
        found = items_data.narrowed(table, data.votes, filters)
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
            most=items_data.MOST_ANSWERS,
        )

    def item(self, request: Request, item: str) -> Response:
        study = self.context.in_hand(request)
        data, table = self.kept.of(study)
        row = table[table["item"] == item]
        if row.empty:
            raise NotFoundError("The study in hand has no such item.")
        filters = Filters.of(request.query_params)
        among = items_data.narrowed(table, data.votes, filters)
        order = list(among["item"])
        place = order.index(item) if item in order else -1
        return page(
            "item.html",
            title="Item",
            study=data.study,
            one=row.iloc[0].to_dict(),
            attacked=_attacked(data, item),
            votes=items_data.votes_of(data, item),
            filters=filters,
            place=place + 1,
            total=len(order),
            before=order[place - 1] if place > 0 else "",
            after=order[place + 1] if 0 <= place < len(order) - 1 else "",
            back=max(0, place) // ROWS + 1,
        )


def lead(table: pd.DataFrame, found: pd.DataFrame, filters: Filters) -> str:
    """What the table holds, in a sentence."""
    counts = found["verdict"].value_counts()
    parts = [f"{counts[one]:,} {one}" for one in items_data.VERDICTS if counts.get(one)]
    of = f" of {len(table):,}" if filters.given else ""
    return f"{counted(len(found), 'item')}{of}{': ' if parts else ''}{', '.join(parts)}."


def _choices(data: StudyData, table: pd.DataFrame) -> dict[str, list[str]]:
    people = data.votes["annotator"].dropna().unique()
    return {
        "model": sorted(one for one in table["model"].unique() if one),
        "class_name": sorted(table["class_name"].unique()),
        "verdict": [one for one in items_data.VERDICTS if one in set(table["verdict"])],
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
