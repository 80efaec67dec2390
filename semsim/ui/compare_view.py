"""The frame of the page Compare: what its address asks for, its head, what it says first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.plain_names import plain_name
from semsim.base.stats.verdict import rules_of, title_of
from semsim.comparison.seen_originals import ALL
from semsim.lab.markup import pieces, rooted
from semsim.reporting.notation import number
from semsim.reporting.writing import png_address
from semsim.ui import ScienceContext
from semsim.ui.compare_data import REFERENCES, Comparison, ComparisonView
from semsim.ui.compare_files import live_download
from semsim.ui.jobpanel import RESUMES, JobView
from semsim.weights import WeightFile

HTML = pieces("compare.html", "semsim.ui")
PAGE = "/studio/compare"
TABS = {
    "answer": "Answer",
    "disagreements": "Disagreements",
    "metric": "One metric",
    "solid": "How solid",
    "files": "Files",
}
_NOT_RECORDED = (
    "No set of this study records what was attacked, so everything is measured against the clean "
    "original."
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The address of a view, each part "" where it leaves the choice to the page.

    Attributes:
        originals: Which count, as `semsim.comparison.compared.compared` says.
        way: Which disagreements.
        model: Key of a model.
        shown: What a tab shows of several things.
        row: Of an image.
        at: Where a list begins.
        several: Ids of studies with a space between.
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

    def view(self, study: str) -> ComparisonView:
        """Return the view of a study."""
        return ComparisonView(
            study=study, rule=self.rule, reference=self.reference, unseen_by=self.originals
        )

    def to(self, **changes: Any) -> str:
        """The address of this view with other choices."""
        values = {**vars(self), **{name: str(value) for name, value in changes.items()}}
        given = {name: value for name, value in values.items() if value}
        return rooted(f"{PAGE}?{urlencode(given)}")


def asked_in(query: Mapping[str, str]) -> Asked:
    """Read the query of an address; what is not known of it is left out."""
    names = {field.name for field in fields(Asked)}
    return Asked(**{name: value for name, value in query.items() if name in names})


def not_recorded() -> str:
    """Return a note on why only clean originals can be the reference."""
    return HTML.note(_NOT_RECORDED)


def no_scores(comparison: Comparison, job: Job | None) -> str:
    """Return HTML of the metrics that are computed before the first answer, and of their job."""
    names = {name for _, name in comparison.book.missing}
    titles = [spec.title for spec in comparison.specs if spec.name in names]
    n_models = len(comparison.analysis.models)
    people = comparison.analysis.models.sort_values("human", ascending=False)
    rows = list(zip(people["label"].map(plain_name), people["human"].map(number), strict=True))
    said = comparison.analysis.score_title
    return HTML.no_scores(titles, n_models, scoring(job), unavailable(comparison), said, rows)


def scoring(job: Job | None) -> str:
    """The thin bar of the job that scores a study; nothing where none runs or none failed."""
    shown = job is not None and jobs.state(job) is not JobState.DONE
    return HTML.scoring(JobView.of(job, RESUMES) if job is not None and shown else None)


def head(comparison: Comparison) -> str:
    """The two choices of how people are summed up and what is compared, and what must be known."""
    evidence, view = comparison.analysis.evidence, comparison.view
    protocol = comparison.study.headline
    rules = [
        (rule, title_of(evidence, rule) + (" (protocol)" if rule == protocol else ""))
        for rule in rules_of(evidence)
    ]
    originals = _originals(comparison)
    fixed = title_of(evidence, protocol)
    departs = (
        "" if view.rule == protocol else f"The protocol fixed '{fixed}' before the first vote."
    )
    chosen = (view.rule, view.reference, view.unseen_by or originals[0][0])
    offered = {*REFERENCES} if comparison.knows_attacked else {"clean", view.reference}
    against = [(name, words) for name, words in REFERENCES.items() if name in offered]
    study = comparison.study.id
    return HTML.head(study, chosen, rules, against, originals, evidence.mark, departs)


def _originals(comparison: Comparison) -> list[tuple[str, str]]:
    """Return which originals can be chosen, what the page chooses first."""
    n, every = comparison.n_held_out, comparison.n_originals
    held_out = [("", f"the {n} of {every} that no SemSim here has seen")] if n else []
    left = [
        (name, f"the {k} SemSim ({name}) has not seen") for name, k in comparison.unseen.items()
    ]
    if len(left) == 1 and n:
        left = []  # the same
    return [*held_out, (ALL, f"all {every}, also what a SemSim learned from"), *left]


def unavailable(comparison: Comparison) -> str:
    """Metrics without a number, and why; empty where all have one."""
    reasons = [(spec.title, reason) for spec, reason in comparison.unavailable]
    titles = {spec.name: spec.title for spec in comparison.specs}
    refused: dict[tuple[str, str], list[str]] = {}
    for (title, name), reason in comparison.book.refused.items():
        refused.setdefault((name, reason), []).append(title)
    every = len(comparison.analysis.models)
    for (name, reason), sets in refused.items():
        where = "every model" if len(sets) == every else ", ".join(sets)
        reasons.append((f"{titles[name]} ({where})", reason))
    shared: dict[str, list[str]] = {}
    for title, reason in reasons:
        shared.setdefault(reason, []).append(title)
    return HTML.unavailable(shared.items()) if shared else ""


def weights(context: ScienceContext, missing: Sequence[WeightFile]) -> str:
    """The weight files that can be fetched, and the one that is being fetched."""
    download = live_download(context)
    options = [(entry.name, weight_label(entry)) for entry in missing]
    return HTML.weights(options, None if download is None else JobView.of(download))


def weight_label(entry: WeightFile) -> str:
    """A weight file with its size and what it is for."""
    size = "" if entry.bytes is None else f", {entry.bytes / 1e6:.0f} MB"
    return f"{entry.file}{size}, for {entry.used_by}"


def image_source(path: object) -> str:
    """A PNG as a data: address; a file that has gone leaves an empty image with its alt text."""
    try:
        return png_address(Path(str(path)).read_bytes())
    except OSError:
        return ""
