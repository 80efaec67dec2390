"""What a page of the attack lab begins with: cards that fill its form, and what an order takes."""

import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from semsim.campaign.costs import How, Known, known, known_pace, read_table
from semsim.device import cores
from semsim.errors import SemsimError, SettingsError
from semsim.grid.apart import apart
from semsim.jobs import folders as jobs
from semsim.jobs.folders import Job, JobState
from semsim.kept.whole import write_json
from semsim.ui import lab
from semsim.ui.jobpanel import words_for_seconds
from semsim.ui.markup import pieces, rooted, study_address
from semsim.ui.plain_words import Choice
from semsim.words import counted

_LAB = pieces("lab.html")
_NOW = f"{lab.FOLDER}/drawn"
UNKNOWN = "Time not known yet"
_TOLD = "told.json"  # in the folder of a job
_FROM = {
    How.PROBED: "",
    How.SCALED: " (measured on another machine, scaled)",
    How.ELSEWHERE: " (measured on another machine)",
}
_pacing = threading.Lock()  # several pages that are opened at once ask once
T = TypeVar("T")
Offered = Sequence[tuple[str, str, T]]  # title, line and order of each card


@dataclass(frozen=True, kw_only=True)
class Card:
    """One of the cards a page begins with: an order that fills the form.

    state: what it puts into the form, as JSON. why: the reason it cannot be chosen, or "".
    """

    title: str
    line: str
    facts: str
    state: str
    why: str


def cards_of(
    offered: Offered[T],
    data: Path,
    absent: Mapping[str, str],
    *,
    state: Callable[[T], str],
    datasets: Callable[[T], Sequence[str]],
    shared: bool = False,
) -> list[Card]:
    """The cards with what each takes on this machine, by the best that is known.

    absent: why data sets cannot be chosen, by name. state, datasets: of an order, what it puts into
    the form and what it needs. shared: see `time_words`.
    """
    return [
        Card(
            title=title,
            line=line,
            facts=facts_of(known(order, data), shared),
            state=state(order),
            why=next((absent[one] for one in datasets(order) if one in absent), ""),
        )
        for title, line, order in offered
    ]


def measurable(offered: Offered[T], datasets: Callable[[T], Sequence[str]]) -> list[T]:
    """The orders of the cards whose data is on this machine."""
    absent = set(lab.absent())
    return [order for _, _, order in offered if not absent & set(datasets(order))]


def cards_html(form: str, cards: Sequence[Card]) -> str:
    """The cards that fill `form`, drawn anew when the page is loaded."""
    return str(_LAB.cards(cards, now_at(form)))


def once_paced(data: Path, draw: Callable[[Path], str]) -> str:
    """What `draw` makes of the cards once it is known how fast this machine is.

    That is measured once for a data folder, in a process beside this one, which takes seconds.
    """
    with _pacing:
        if data.is_dir() and known_pace(data) is None and read_table() is not None:
            with contextlib.suppress(SemsimError):  # the cards say from where their times are
                apart("semsim.campaign.costs:paced", data)
    return draw(data)


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


def facts_of(found: Known | None, shared: bool = False) -> str:
    """Time and disk of an order and how they are known, or that they are not; shared: see
    `time_words`.
    """
    disk = found.cost.disk if found else 0
    return known_time(found, shared) + (f" · {disk_words(disk)}" if disk else "")


def known_time(found: Known | None, shared: bool = False) -> str:
    """The time of an order and how it is known, or that it is not; shared: see `time_words`."""
    if found is None:
        return UNKNOWN
    cost = found.cost
    if found.how is How.TOOK:
        return f"took {words_for_seconds(cost.alone)} here"
    return f"{time_words(cost.seconds, shared, cost.alone)}{_FROM[found.how]}"


def keep_told(job: Job, time: str) -> None:
    """Keep with a job what was said of its time before it began."""
    write_json(job.folder / _TOLD, {"time": time})


def told_html(job: Job, as_told: Callable[[Job], bool]) -> str:
    """What was said of the time of a job that is done, and what it took; "" where nothing was said.

    as_told: whether its work was all of that which the time was said of, and nothing else.
    """
    if not (job.folder / _TOLD).exists() or jobs.state(job) is not JobState.DONE:
        return ""
    seconds = jobs.seconds_taken(job)
    took = "" if seconds is None else words_for_seconds(seconds)
    said = jobs.read_json(job.folder / _TOLD).get("time", UNKNOWN)
    return str(_LAB.told(said, took, as_told(job)))


def time_words(seconds: float, shared: bool = False, alone: float = 0.0) -> str:
    """Seconds as a span of time; shared: they are of one core, and the cores here share them.

    alone: further seconds that no core shares.
    """
    if not shared:
        return f"about {words_for_seconds(seconds + alone)}"
    return f"about {words_for_seconds(seconds / cores() + alone)} on {cores()} cores"


def disk_words(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size, 1e5) / 1e6:.1f} MB"


def free_name(runs: Path, stem: str, before: str = "") -> str:
    """`stem` with the first number whose folder below `runs`, after `before`, nobody has taken."""
    number = 1
    while (runs / f"{before}{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"


def outlook_html(first: str, more: str, second: str, measuring: bool, **takes: Any) -> str:
    """What an order takes before it is started.

    first, second: what is made, and what is attacked; more: beside the first. takes: `seconds` or
    None, with `shared` and `alone` as in `time_words`, `disk` in bytes, `note` if there is one.
    """
    seconds = takes["seconds"]
    unknown = "being measured on a few steps …" if measuring else "not measured"
    how = {name: takes[name] for name in ("shared", "alone") if name in takes}
    time = unknown if seconds is None else time_words(seconds, **how)
    note = takes.get("note", "")
    return str(_LAB.outlook(first, more, second, time, disk_words(takes["disk"]), note))


def made_html(inside: str, folders: Sequence[str | Path]) -> str:
    """What was made: a study of it is a click away, then `inside`, then where the sets are."""
    sets = counted(len(folders), "reconstruction set")
    return str(_LAB.made(study_address(folders), inside, sets, folders))
