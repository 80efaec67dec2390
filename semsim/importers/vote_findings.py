"""What an importer of votes found, with the counts every report of votes has."""

import pandas as pd

from semsim.analysis.evidence import IMAGE_KEY
from semsim.errors import SettingsError
from semsim.importers.findings import Findings
from semsim.importers.human_tables import tables_of_votes, vote_table
from semsim.importers.vote_rows import Sieve, is_counted
from semsim.words import counted


def votes_found(
    kept: Sieve,
    *,
    name: str,
    headline: str,
    votes_per_item: int | None,
    facts: pd.DataFrame | None = None,
    scores: pd.DataFrame | None = None,
) -> Findings:
    """What a report says of the votes in `kept`, as from `counted_votes`, and their tables.

    votes_per_item: K; an image has K counted votes at most, or one more where K is odd and a study
        may have asked for it. None is the most an image has, and a note says so.
    facts, scores: as for `tables_of_votes`; without facts every image voted on has a label.
    Raises `SettingsError` where K is too small.
    """
    real = kept.rows[is_counted(kept.rows)]
    most = int(real.groupby(IMAGE_KEY).size().max()) if len(real) else 0
    k = most if votes_per_item is None else votes_per_item
    if most > _most_allowed(k):
        few = counted(k, "vote an image is", "votes an image are")
        raise SettingsError(f"{few} too few: one has {most} that count.")
    votes = vote_table(kept.rows, name=name, headline=headline, k=k)
    known = real[IMAGE_KEY].drop_duplicates() if facts is None else facts
    tables = tables_of_votes(votes, known, scores, name=name, headline=headline)
    return Findings(
        tables=tables,
        counts={**_counts(real, tables.labels), **_not_counted(kept.rows, real)},
        unread=kept.unread,
        notes=() if k == votes_per_item else (f"Votes per image taken as {k}, the most one has.",),
    )


def _most_allowed(k: int) -> int:
    """The most votes an item of K can have: an odd K that is split may get one vote more."""
    return k + 1 if k > 1 and k % 2 else k


def _counts(real: pd.DataFrame, labels: pd.DataFrame) -> dict[str, int]:
    return {
        "models": int(labels["model"].nunique()),
        "originals": int(labels["image_id"].nunique()),
        "reconstructions": len(labels),
        "annotators": int(real["annotator"].nunique()),
        "votes": len(real),
    }


def _not_counted(rows: pd.DataFrame, real: pd.DataFrame) -> dict[str, int]:
    others = len(rows) - len(real)
    return {"kept but not counted (decoys, superseded, surplus)": others} if others else {}
