"""Results of a model beside those of people on the same pictures: a tab of the Results page."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.study.results import Results
from annotation.texts import counted
from annotation.ui.results_data import ResultsCache
from annotation.ui.results_view import DASH, grid, number, section, shown_name, why
from annotation.votes.agreement import Coding
from annotation.votes.beside import beside_table, differing
from annotation.web.templates import fill
from semsim.base.stats.intervals import RULE
from semsim.base.words import capital

MOST_LISTED = 12
_ALONE = (
    "Make a study of the same sets for people, and one that a model answers: on the page New study "
    "under People, or with `semsim-studio study create NAME --set … --voter MODEL`. The same seed "
    "gives both the same candidate lists.",
    "Let the model answer: `semsim-studio study simulate NAME --with vlm`.",
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A study of people and one of a model, and what both say of the pictures they share."""

    people: Results
    model: Results
    pictures: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """Agreement, as `votes.beside.beside_table`."""
        return beside_table(self.pictures, self.people.study.kind)

    @property
    def among_people(self) -> float:
        """The mean κ of two people on whether they recognise a picture: what to hold it against."""
        known = self.people.agreement
        mean = known["statistic"].isin(["mean Cohen's κ"])
        found = known[mean & (known["coding"] == Coding.RECOGNISED.value)]["value"]
        return float(found.iloc[0]) if len(found) else float("nan")


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A study beside all those of the other kind that have pictures of it."""

    pairs: tuple[Pair, ...]

    @property
    def table(self) -> pd.DataFrame:
        """Agreement with each, who is who by the names of the studies."""
        tables = [
            one.table.assign(
                people_study=one.people.study.name,
                model_study=one.model.study.name,
                voter=one.model.study.spec.voters,
            )
            for one in self.pairs
        ]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def shown(self) -> tuple[str, str]:
        """The sentence and the body of the tab."""
        if not self.pairs:
            title = "No study of people and one of a model have the same pictures yet."
            return "", fill("results_missing.html", title=title, lines=_ALONE, link="")
        leads = [_lead(one) for one in self.pairs]
        return " ".join(leads), "".join(_body(one) for one in self.pairs)


def found(cache: ResultsCache, results: Results) -> Beside:
    """The study of `results` beside all of the other kind."""
    of_model = bool(results.study.spec.voter)
    return Beside(
        pairs=tuple(
            Pair(people=other, model=results, pictures=pictures)
            if of_model
            else Pair(people=results, model=other, pictures=pictures)
            for other, pictures in cache.beside(results)
        )
    )


def _lead(pair: Pair) -> str:
    table = pair.table
    row = table[table["model"].isna() & (table["coding"] == Coding.RECOGNISED.value)].iloc[0]
    of = f"the model {pair.model.study.spec.voter} and the people of “{pair.people.study.name}”"
    if pd.isna(row["value"]):
        return f"How far {of} agree is not known: {row['reason']}."
    pictures = counted(int(row["n_items"]), "picture")
    same = (row["both"] + row["neither"]) / row["n_items"]
    human = pair.among_people
    beside = "" if pd.isna(human) else f"; two people among themselves have {number(human)}"
    return (
        f"{capital(of)} agree on {same:.0%} of {pictures} whether they are recognised, "
        f"κ = {number(row['value'], row['low'], row['high'])}{beside}."
    )


def _body(pair: Pair) -> str:
    table = pair.table
    title = f"{pair.model.study.spec.voter} beside {pair.people.study.name}"
    rows = [
        (
            "all" if pd.isna(row["model"]) else shown_name(str(row["model"])),
            "Recognised or not" if row["coding"] == Coding.RECOGNISED.value else "Answers",
            f"{row['n_items']:,}",
            number(row["value"], row["low"], row["high"]) + why(row["reason"]),
            *(_count(row[name]) for name in ("both", "people_only", "model_only", "neither")),
        )
        for row in table.to_dict("records")
    ]
    heads = (
        *("Model", "Of", "Pictures", "Cohen's κ", "Both recognise", "People only"),
        *(f"{pair.model.study.spec.voter} only", "Neither"),
    )
    note = (
        "Verdicts of both on the same pictures: the majority of people's votes, the majority of "
        f"the model's. κ is 0 by chance, 1 is perfect agreement. {RULE} Pictures that one side "
        "leaves undecided are left out."
    )
    return section(title, grid(title, heads, rows), note) + _apart(pair)


def _count(value: Any) -> str:
    return DASH if pd.isna(value) else f"{int(value):,}"


def _apart(pair: Pair) -> str:
    if not pair.people.study.kind.lists:
        return ""
    table = differing(pair.pictures)
    rows = [
        (row["class_name"], row["people"], row["model_says"], f"{row['pictures']:,}")
        for row in table.head(MOST_LISTED).to_dict("records")
    ]
    heads = ("Shown", "Most people answer", f"{pair.model.study.spec.voter} answers", "Pictures")
    note = f"The {MOST_LISTED} most frequent." if len(table) > MOST_LISTED else ""
    title = "Where their answers differ"
    return section(title, grid(title, heads, rows) if rows else "", note or "By their most "
                   "frequent answers.")  # fmt: skip
