"""Declarations of pages of the attack lab; `semsim.ui.lab_page` lays them out.

A page is a module with `page(context)`, which returns a `LabPage` or a `FreePage`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.storage.names import free_name
from semsim.base.words import words_for_seconds
from semsim.lab import Effort
from semsim.lab.choices import FormChoice, absent, reasons
from semsim.lab.markup import joined, pieces, rooted, said
from semsim.lab.settings_form import MOST_SEEDS, Given, changed, settings_of

FOLDER = "/studio/lab-files"  # below which forms find their script and what it asks for
_LAB = pieces("lab.html")
T = TypeVar("T")  # the order that a form means
Loads = list[tuple[Callable[..., Any], list[Any]]]  # what a page does when it is loaded


@dataclass(frozen=True)
class ItemList:
    """A list of a form.

    Attributes:
        field: Of the order, which the chosen items fill.
        choices: In it.
        title: What it is called.
        plugins: The registry of its items, as "package.module:NAME", where they have settings to
            show.
        one: Whether one item is chosen, not several.
    """

    field: str
    choices: Sequence[FormChoice]
    title: str
    plugins: str = ""
    one: bool = False

    def chosen(self, order: Any) -> tuple[str, ...]:
        """Return the items that an order has; settings are an item's or the form's.

        Raises `SettingsError` for one that is not offered.
        """
        texts = [getattr(order, self.field)] if self.one else getattr(order, self.field)
        items = [choice.item for choice in self.choices]
        found = tuple(text if text in items else text.partition(":")[0] for text in texts)
        if unknown := [item for item in found if item not in items]:
            raise SettingsError(f"The form has no {unknown[0]!r} among its {self.field}.")
        return found

    def read(self, texts: tuple[str, ...]) -> tuple[str, ...] | str:
        """Return what a form's items are in an order; `SettingsError` where one is needed."""
        if self.one and not texts:
            raise SettingsError(f"Choose one of {self.title}.")
        return texts[0] if self.one else texts


@dataclass(frozen=True)
class NumberField:
    """A field for a whole number that an order has.

    Attributes:
        name: Of the field of the order.
        text: Said below it.
        called: Where it is wrong, its label without one.
        id: Of the element, or "".
        seeds: Whether it says how many seeds there are.
    """

    name: str
    label: str
    text: str = ""
    called: str = ""
    id: str = ""
    least: int = 1
    seeds: bool = False

    def of(self, order: Any) -> str:
        """Return what an order puts into the field."""
        found = getattr(order, self.name)
        return str(len(found) if self.seeds else found)

    def read(self, given: Given) -> int | tuple[int, ...]:
        """Return what an order takes of the form; `SettingsError` in the form's words."""
        called = self.called or self.label
        return given.seeds(self.name, called) if self.seeds else given.whole(self.name, called)

    def html(self, value: object) -> str:
        """Return the field with a value."""
        return _LAB.number(self, value, MOST_SEEDS if self.seeds else None)


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """Two lists of a form crossed: each dot is one thing to run.

    Attributes:
        caption: What a dot is; a word in [[ ]] is explained.
        across, down: The name of a list, and what its items are called.
        fixed: Items down that always run.
        never: Pairs (down, across) that cannot be, for the reason `why`.
        one: Whether one item across is chosen, not several.
    """

    caption: str
    across: tuple[str, str]
    down: tuple[str, str]
    fixed: Sequence[str] = ()
    never: Sequence[tuple[str, str]] = ()
    why: str = ""
    one: bool = False


@dataclass(frozen=True, kw_only=True)
class LabForm(Generic[T]):
    """The form of a page, and what it means.

    Attributes:
        name: Begins the ids of the page's parts.
        kind: Of the jobs that carry orders out.
        offered: Title, line and order of each card.
        lists, numbers: By which an order is chosen.
        crossed: Two of the lists as a table of dots.
        folded: What stands behind "More".
        beside: Whether the fields stand beside the lists of pictures and attacks.
        settings: Names of further fields, by the part of the order that has them, "" for the order
            itself.
        named: What begins the usual name of an order, and its folder; None where it has no name.
        more: What an order has in fields that only the page knows.
        like: What jobs have that carry out the same order.
    """

    name: str
    kind: str
    offered: Sequence[tuple[str, str, T]]
    lists: Mapping[str, ItemList]
    settings: Mapping[str, Sequence[str]]
    like: Callable[[T], Mapping[str, Any]]
    crossed: Crossed
    folded: str
    beside: bool = True
    numbers: Sequence[NumberField] = ()
    named: tuple[str, str] | None = None
    more: Callable[[T], Mapping[str, str]] = lambda order: {}

    @property
    def first(self) -> T:
        """The order that the form opens with, its first card's."""
        return self.offered[0][2]

    def order(self, given: Given, free: str = "") -> T:
        """Return the order that a form means: the first card's with what is given in its place.

        Args:
            free: What it is called where the form does not say.

        Raises:
            SettingsError: In the form's words where a field is empty or cannot be read.
        """
        new: dict[str, Any] = {
            one.field: one.read(given.texts(name)) for name, one in self.lists.items()
        }
        new |= {one.name: one.read(given) for one in self.numbers}
        for part in filter(None, self.settings):
            new[part] = changed(getattr(self.first, part), given.fields, f"{part}.")
        if self.named:
            new["name"] = given.text("name") or free
        order = changed(self.first, given.fields) if "" in self.settings else self.first
        return replace(order, **new)  # type: ignore[type-var]  # a dataclass, as `changed` asks

    def chosen(self, order: T) -> dict[str, tuple[str, ...]]:
        """Return the items of each list that an order has; `SettingsError` for one not offered."""
        return {name: one.chosen(order) for name, one in self.lists.items()}

    def fields(self, order: T) -> dict[str, str]:
        """Return what an order puts into the fields of the form."""
        parts = {
            f"{part}.{one.name}" if part else one.name: one.value
            for part, names in self.settings.items()
            for one in settings_of(getattr(order, part) if part else order, names)
        }
        return {**{one.name: one.of(order) for one in self.numbers}, **self.more(order), **parts}

    def free_name(self, data: Path) -> str:
        """Return a name of which no order below `data` has made anything; "" without names."""
        return free_name(data / "runs", *self.named) if self.named else ""

    def state(self, order: T) -> str:
        """Return what a card puts into the form: items of its lists, and values of its fields."""
        filled = {"lists": self.chosen(order), "fields": self.fields(order)}
        return json.dumps({**filled, "form": self.name, "then": f"{self.name}-plan"})

    def choices(self, name: str) -> str:
        """Return a list with the first card's chosen, of data sets those that are not here off."""
        one = self.lists[name]
        off = reasons() if name == "datasets" else {}
        return _LAB.choices(name, one.title, one.choices, one.chosen(self.first), off, one.one)

    def html(self, inside: str, *row: str) -> str:
        """Return the form with the first card's order.

        Args:
            inside: What is folded, above the settings of what is chosen.
            row: Fields after the name, where an order has one, and the numbers.
        """
        named = [_LAB.named(self.name)] if self.named else []
        fields = [*named, *(one.html(one.of(self.first)) for one in self.numbers), *row]
        side = joined(map(self.choices, ("datasets", "attacks")))
        plugins = [name for name, one in self.lists.items() if one.plugins]
        more = _LAB.more(plugins, inside, f"More: {self.folded}")
        return str(_LAB.plan(self._dots(), side, joined(fields), more, beside=self.beside))

    def _dots(self) -> str:
        of, chosen = self.crossed, self.chosen(self.first)
        named = [(name, self.lists[name].choices, what) for name, what in (of.across, of.down)]
        counts = [f"{len(choices)} {what}" for _, choices, what in named]
        sides = [(name, choices, chosen[name]) for name, choices, _ in named]
        return _LAB.crossed(said(of.caption), *sides, f"All {' and '.join(counts)}", of)

    def settings_html(self, part: str, names: Sequence[str] = ()) -> str:
        """Return the fields of a part of the first card's order, all of them or those named."""
        of = getattr(self.first, part) if part else self.first
        fields = settings_of(of, names or self.settings[part])
        return _LAB.fields(fields, f"{part}." if part else "")

    def cards_html(self, data: Path) -> str:
        """Return the cards with what the last run of each took on this machine.

        One whose data set is not here says why it cannot be chosen.
        """
        off = absent()
        cards = [
            {
                "title": title,
                "line": line,
                "facts": self._took_here(data, order),
                "state": self.state(order),
                "why": next((off[one] for one in self.chosen(order)["datasets"] if one in off), ""),
            }
            for title, line, order in self.offered
        ]
        return str(_LAB.cards(cards, now_at(self.name)))

    def _took_here(self, data: Path, order: T) -> str:
        seconds = jobs.last_seconds(data / "jobs", self.kind, self.like(order))
        return "" if seconds is None else f"took {words_for_seconds(seconds)} here"


def now_at(name: str) -> str:
    """Return the address of the part of a page that is called so, as it is now."""
    return rooted(f"{FOLDER}/drawn/{name}")


@dataclass(frozen=True, kw_only=True)
class PagedPictures:
    """The pictures of a job, of one attack and one page at a time.

    Attributes:
        offered: Of a job, or of none, its attacks and how many pages they have.
        draw: The pictures as HTML, of a job, an attack and a page, from 1.
    """

    offered: Callable[[Job | None], tuple[list[str], int]]
    draw: Callable[[Job | None, str | None, float | None], str]


@dataclass(frozen=True, kw_only=True)
class FreePage:
    """A page that lays out its own parts, between head and foot.

    Attributes:
        intro: What it is for; a word in [[ ]] is explained.
        papers: What it is about, by the names of reproductions.
        body: Lays the parts out where the caller stands.
    """

    title: str
    intro: str
    papers: Sequence[str]
    body: Callable[[], Loads]


@dataclass(frozen=True, kw_only=True)
class LabPage(Generic[T]):
    """A page that attacks: a form, what an order takes, its job, what comes of it.

    Attributes:
        title, intro, papers: As of a `FreePage`.
        called: What one run of it is.
        nothing: What is said where there is no job.
        data: The data folder.
        html: Of the form.
        order_of: What the form means.
        effort: Of an order, at once.
        measured: The same after a few steps, of a page that measures them.
        queued: The job of the form's order, not yet started.
        draw: Of a job, as HTML, the pictures that came last, its progress, the verdict, the result,
            and each of `parts`, which has by name the title that a part is folded under, "" for
            none.
        paged: Its pictures, of a page that shows them by attack.
        drawn_anew: Further parts of the form that are asked for when the page is loaded, by name.
    """

    form: LabForm[T]
    title: str
    intro: str
    papers: Sequence[str]
    called: str
    nothing: str
    data: Path
    html: str
    order_of: Callable[[Given], T]
    effort: Callable[[T], Effort]
    queued: Callable[[Given], Job]
    draw: Callable[[Job], list[str]]
    measured: Callable[[T], Effort] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    paged: PagedPictures | None = None
    drawn_anew: Mapping[str, Callable[[], str]] = field(default_factory=dict)
