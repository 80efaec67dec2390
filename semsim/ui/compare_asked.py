"""What an address of Compare asks for: the study and how it is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlencode

from semsim.reporting.gallery import disagreements
from semsim.ui.compare_data import Comparison
from semsim.ui.markup import rooted

PAGE = "/studio/compare"
TABS = {
    "answer": "Answer",
    "disagreements": "Disagreements",
    "metric": "One metric",
    "solid": "How solid",
    "files": "Files",
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The address of a view, each part "" where it leaves the choice to the page.

    originals: which count, as `semsim.comparison.compared.compared` says. way: which disagreements.
    model: key of a model. shown: what a tab shows of several things.
    row: of an image. at: where a list begins. several: ids of studies with a space between.
    """

    study: str = ""
    tab: str = ""
    rule: str = ""
    reference: str = ""
    originals: str = ""
    metric: str = ""
    way: str = ""
    model: str = ""
    shown: str = ""
    row: str = ""
    at: str = ""
    several: str = ""

    @property
    def start(self) -> int:
        return int(self.at) if self.at.isdecimal() else 0

    def to(self, **changes: Any) -> str:
        """The address of this view with other choices."""
        values = {**vars(self), **{name: str(value) for name, value in changes.items()}}
        given = {name: value for name, value in values.items() if value}
        return rooted(f"{PAGE}?{urlencode(given)}")


def asked_in(query: Mapping[str, str]) -> Asked:
    """What the query of an address asks for; what it does not know is left out."""
    names = {field.name for field in fields(Asked)}
    return Asked(**{name: value for name, value in query.items() if name in names})


def first_tab(comparison: Comparison) -> str:
    """Return the tab that opens first: the answer, or, without one, pictures that differ."""
    analysis = comparison.analysis
    if not comparison.n_votes:  # but labels, of which no disagreement is told
        return "answer"
    if analysis.agreement["rho"].notna().any():
        return "answer"
    # With few votes, or on originals that a SemSim has not seen, there can be none either.
    each = (disagreements(analysis, spec) for spec in analysis.specs if spec.per_image)
    some = any(len(rows) for ways in each for rows in ways.values())
    return "disagreements" if some else "answer"
