"""What simulated people and metrics say of the same sets, and how metrics rank them beside people.

A set of controls is judged alike, and ranked nowhere.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from semsim.analysis.evidence import Evidence
from semsim.analysis.result import AnalysisSettings
from semsim.analysis.run import analyse
from semsim.learning.evaluation import evidence_of
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.progress import Report, silent
from semsim.reporting import writing
from semsim.reporting.canvas import SIMULATED
from semsim.reporting.notation import interval, number, reason
from semsim.reporting.tables import Table
from semsim.reproduce.simulated_people import CONTROL
from semsim.reproduce.simulated_votes import simulated_votes
from semsim.scores.scoring import pair_sets_of_labels, score_sets
from semsim.terminal import rows_of

# Of single pictures, LPIPS by one of its networks; Fréchet distances need more of them in a set.
METRICS = (
    *("psnr", "ssim", "mse", "psnr-registered", "ssim-registered", "ssim-uniform", "ms-ssim"),
    *("lpips-alex", "recogniser", "semsim:demo"),
)
# Ranked by the share of votes: few images make coarse majorities. Nothing reads a p here.
RANKED = AnalysisSettings(headline="mean-response", permutations=99)


class Judged(NamedTuple):
    """What simulated people and `METRICS` say of the same sets, controls among them.

    labels, votes, scores: as `evidence_of` takes them. specs: of the metrics that have scores.
    absent: why others have none.
    """

    labels: pd.DataFrame
    votes: pd.DataFrame
    scores: pd.DataFrame
    specs: tuple[MetricSpec, ...]
    absent: Mapping[str, str]

    def of(self, models: Sequence[str]) -> "Judged":
        """What is said of the sets with these names."""
        return self._where("model", lambda own: own.isin(list(models)))

    def means(self) -> dict[str, float]:
        """What people, and each metric, say on average.

        Infinite scores are kept out of it, except of a metric that has no others.
        """
        every = self.scores.groupby("metric")["value"].mean()
        finite = self.scores[np.isfinite(self.scores["value"])].groupby("metric")["value"].mean()
        values = finite.combine_first(every)
        people = {"people": float(self.votes["recognised"].mean())}
        return {**people, **{s.name: float(values.get(s.name, np.nan)) for s in self.specs}}

    def evidence(self) -> Evidence:
        """All of it, to be ranked by `RANKED`."""
        return evidence_of(self.labels, self.votes, self.scores, self.specs)

    def agreement(self, columns: Sequence[str]) -> pd.DataFrame:
        """How each metric ranks the sets that an attack made, in `columns` of the analysis."""
        attacked = self._where("attack", lambda own: own != CONTROL)
        found = analyse(attacked.evidence(), self.specs, RANKED).agreement
        return found.reindex(columns=list(columns))

    def _where(self, column: str, wanted: Callable[[pd.Series], pd.Series]) -> "Judged":
        labels, votes, scores = (
            one[wanted(one[column])] for one in (self.labels, self.votes, self.scores)
        )
        return self._replace(labels=labels, votes=votes, scores=scores)


def judge_sets(
    study: str,
    folders: Sequence[Path],
    data: Path,
    jury: Sequence[Path],
    resources: Resources,
    report: Report = silent,
) -> Judged:
    """Ask the `jury` and every metric of the sets in `folders`; scores are kept in `data`/scores.

    study: what the votes are called. jury: of `data_set_jury`.
    """
    seen = simulated_votes(study, "recognition", folders, jury)
    book = score_sets(pair_sets_of_labels(seen.labels), METRICS, resources, data / "scores", report)
    specs = (find_metric(name).spec for name in METRICS)
    return Judged(
        labels=seen.labels,
        votes=pd.DataFrame(seen.votes),
        scores=book.scores,
        specs=tuple(spec for spec in specs if (book.scores["metric"] == spec.name).any()),
        absent={**book.unavailable, **{name: why for (_, name), why in book.refused.items()}},
    )


def agreement_table(
    agreement: pd.DataFrame,
    of: str,
    columns: Mapping[str, str | tuple[str, str]],
    *,
    name: str,
    title: str,
    caption: str,
) -> Table:
    """`Judged.agreement` as a table to read, a line a metric.

    of: what was ranked, such as "sets". columns: by their heads, the statistic that each shows, or
    both ends of an interval.
    """
    lines = [
        [
            *(row["title"], str(row["n"])),
            *(_shown(row, one) for one in columns.values()),
            reason(row["undefined"]) or "",
        ]
        for row in rows_of(agreement)
    ]
    head = ["metric", of, *columns, "undefined"]
    cells = pd.DataFrame(lines, columns=head)
    return Table(name=name, title=title, caption=caption, frame=agreement, cells=cells)


def _shown(row: Mapping[str, Any], column: str | tuple[str, str]) -> str:
    if isinstance(column, str):
        return number(row[column], 2)
    low, high = column
    return interval(row[low], row[high])


def write_tables(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    text: Sequence[str],
    absent: Mapping[str, str],
    folder: Path,
) -> str:
    """Write `frames` as CSV below `folder`, and `text` as NAME.md, which is returned.

    Every row says that its votes are simulated, as all are here.
    absent: why metrics have no column, which it says at its end.
    """
    for stem, frame in frames.items():
        table = writing.csv(frame.assign(**{SIMULATED: True}))
        (folder / f"{stem}.csv").write_text(table, encoding="utf-8")
    missing = [f"{one} has no column: {absent[one]}" for one in METRICS if one in absent]
    whole = "\n".join([*text, *missing])
    (folder / f"{name}.md").write_text(whole + "\n", encoding="utf-8")
    return whole
