"""A study and a reader of pages, for tests of what the Results page says."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
from made_ballots import random_votes, votes_of

from annotation.domain import Study, StudyStatus
from annotation.spec import StudySpec, Task
from annotation.study import results
from semsim.base.sets.imports import FORMAT
from semsim.base.storage.records import write_record

NO_IMPORTS = (Path("nowhere"),)
results_of = results.results_of
NASTY = "<img src=x onerror=alert(1)>"


def study(task=Task.RECOGNITION, *, n_items=60, n_decoys=0, targets=None, **spec) -> Study:
    return Study(
        id="s1",
        name="Made",
        task=task,
        status=StudyStatus.RUNNING,
        spec=StudySpec(name="Made", task=task, **spec),
        token="link",
        created=datetime(2026, 3, 1, tzinfo=UTC),
        protected=False,
        dataset="d",
        models=("m0", "m1", "m2"),
        n_items=n_items,
        n_decoys=n_decoys,
        n_failed=0,
        protocol="abc",
        targets=targets or {},
    )


@cache
def full() -> results.Results:
    """Results of sixty pictures, each with five votes; made once, to be read."""
    return results_of(study(), random_votes())


@cache
def empty() -> results.Results:
    """Results of a study without votes; made once, to be read."""
    return results_of(study(), votes_of({}))


def shown_study(**changes) -> Study:
    """A study as lists and heads show it: of symbols, made at noon."""
    made = replace(
        study(n_items=48, seed=7),
        name="Symbols",
        created=datetime(2026, 3, 1, 12, tzinfo=UTC),
        dataset="symbols",
        models=("resnet20-4/none", "convnet8/none"),
    )
    return replace(made, **changes)


def write_import(imports: Path, votes: pd.DataFrame) -> tuple[Path]:
    """The import "paper", called Paper, with these votes; returns the folder `imports`, alone."""
    (imports / "paper").mkdir(parents=True)
    told = {"name": "Paper", "kind": "table", "source": "", "headline": "majority", "unread": []}
    counts = {"counts": {"votes": len(votes)}, "simulated": False}
    write_record(imports / "paper/import.json", FORMAT, told | counts)
    for name in ("votes", "labels"):
        votes.to_parquet(imports / f"paper/{name}.parquet", index=False)
    return (imports,)


class Page(HTMLParser):
    """A page's words and tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.feed(html)

    def handle_data(self, data):
        self.words.append(data)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def __str__(self) -> str:
        return " ".join(" ".join(self.words).split())
