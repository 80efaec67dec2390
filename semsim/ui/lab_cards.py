"""What a page of the attack lab begins with: cards that fill its form, and what an order takes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from semsim.errors import SettingsError
from semsim.ui import lab
from semsim.ui.jobpanel import words_for_seconds
from semsim.ui.markup import pieces, rooted, study_address
from semsim.ui.plain_words import Choice
from semsim.words import counted

_LAB = pieces("lab.html")
_NOW = f"{lab.FOLDER}/drawn"
T = TypeVar("T")
Offered = Sequence[tuple[str, str, T]]  # title, line and order of each card


@dataclass(frozen=True, kw_only=True)
class Card:
    """One of the cards a page begins with: an order that fills the form.

    facts: what the last run of it took here, or "". state: what it puts into the form, as JSON.
    why: the reason it cannot be chosen, or "".
    """

    title: str
    line: str
    facts: str
    state: str
    why: str


def cards_of(
    offered: Offered[T],
    absent: Mapping[str, str],
    *,
    took: Callable[[T], float | None],
    state: Callable[[T], str],
    datasets: Callable[[T], Sequence[str]],
) -> list[Card]:
    """Return the cards with what the last run of each took on this machine.

    absent: why data sets cannot be chosen, by name. took, state, datasets: of an order, the seconds
    of the last run like it, what it puts into the form and what it needs.
    """
    return [
        Card(
            title=title,
            line=line,
            facts=_took_here(took(order)),
            state=state(order),
            why=next((absent[one] for one in datasets(order) if one in absent), ""),
        )
        for title, line, order in offered
    ]


def cards_html(form: str, cards: Sequence[Card]) -> str:
    """The cards that fill `form`, drawn anew when the page is loaded."""
    return str(_LAB.cards(cards, now_at(form)))


def now_at(name: str) -> str:
    """Where the part of a page that is called so is, as it is now."""
    return rooted(f"{_NOW}/{name}")


def router(drawn: Mapping[str, Callable[[], str]]) -> APIRouter:
    """The parts of pages that are drawn anew when a page is loaded, cards by their form's name."""
    routes = APIRouter()

    @routes.get(_NOW + "/{name}")
    def now(name: str) -> Response:
        if name not in drawn:
            return PlainTextResponse("No such part.", status_code=404)
        return HTMLResponse(drawn[name]())

    return routes


def state_of(form: str, lists: Mapping[str, Sequence[str]], fields: Mapping[str, str]) -> str:
    """What a card puts into `form`: items chosen of its lists, and values of its fields."""
    return json.dumps({"lists": lists, "fields": fields, "form": form, "then": f"{form}-plan"})


def items_of(
    offered: Mapping[str, Sequence[Choice]], listed: str, texts: Sequence[str]
) -> tuple[str, ...]:
    """Which of a list's items texts are; their settings are the item's or the form's.

    Raises `SettingsError` for one that `offered` does not have.
    """
    items = [choice.item for choice in offered[listed]]
    found = [text if text in items else text.partition(":")[0] for text in texts]
    unknown = [item for item in found if item not in items]
    if unknown:
        raise SettingsError(f"The form has no {unknown[0]!r} among its {listed}.")
    return tuple(found)


def _took_here(seconds: float | None) -> str:
    return "" if seconds is None else f"took {words_for_seconds(seconds)} here"


def disk_words(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1e5) / 1e6:.1f} MB"


def free_name(runs: Path, stem: str, before: str = "") -> str:
    """`stem` with the first number whose folder below `runs`, after `before`, nobody has taken."""
    number = 1
    while (runs / f"{before}{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"


def outlook_html(
    made: str, more: str, attacked: str, disk: int, *notes: str, time: str = ""
) -> str:
    """Return what an order takes before it is started, as HTML.

    made, attacked: counts in words; more: beside what is made. disk: bytes at most. time: in words,
    or "" where nobody foretells it.
    """
    told = " ".join(filter(None, notes))
    return str(_LAB.outlook(made, more, attacked, time, disk_words(disk), told))


def made_html(inside: str, folders: Sequence[str | Path]) -> str:
    """What was made: a study of it is a click away, then `inside`, then where the sets are."""
    sets = counted(len(folders), "reconstruction set")
    return str(_LAB.made(study_address(folders), inside, sets, folders))
