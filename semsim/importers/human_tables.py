"""Votes and labels of other people in the form in which a study exports its own."""

import json
import uuid

import numpy as np
import pandas as pd

from semsim.base.columns import (
    ARCHITECTURE,
    IMAGE_KEY,
    LABEL_COLUMNS,
    LEAKS,
    ORIGINAL_ANSWER,
    RATED,
    SCORE_COLUMNS,
    VOTE_COLUMNS,
)
from semsim.base.errors import SettingsError
from semsim.base.stats.evidence import GIVEN, GIVEN_ERROR, Evidence, gather
from semsim.base.stats.verdict import recognised_by, rules_of, verdict
from semsim.base.stats.vote_rows import DIFFERENT, SAME, Sieve, is_counted
from semsim.base.words import counted, voters_of
from semsim.importers.import_plan import Findings, HumanTables

_NO_SCORES = pd.DataFrame(columns=list(SCORE_COLUMNS))
_VOTE = uuid.UUID("6f0d2c1e-5b0a-4d0e-9a53-2f3c7e0b8d41")  # namespace of ids made here


def vote_table(rows: pd.DataFrame, *, name: str, headline: str, k: int) -> pd.DataFrame:
    """`rows` with the columns `VOTE_COLUMNS`; ids are the same each time the same votes come.

    What a source does not say is empty, NaN or NaT. Rows of ratings have `RATED` too, those that
    have names of originals `ORIGINAL_ANSWER`.

    Args:
        rows: Dataset, attack, model, image_id, annotator, recognised, and of the others those that
            are known; a missing value is taken as one that is not known.
    """
    table, answers = rows.copy(), set(rows["answer"].dropna() if "answer" in rows else ())
    key = table[[*IMAGE_KEY, "annotator"]].astype(str)
    table["study"] = name
    table["votes_per_item"], table["headline"] = k, headline
    by_programs = pd.Series(table.get("simulated", False), table.index).fillna(False).astype(bool)
    known = {
        "task": "pair" if answers and answers <= {SAME, DIFFERENT} else "recognition",
        "item": _key_in_words(key),
        "kind": "reconstruction",
        "status": "counted",
        "simulated": False,
        "voter": by_programs.map(voters_of),
        "vote_id": _vote_ids(key, name),
        "protocol": 1,
        **dict.fromkeys(("class_name", "expected", "answer", "reason", "display"), ""),
        **dict.fromkeys(
            ("stratum", "rt_ms", "client_ts", "server_ts", "views", "judges", "lists"), None
        ),
    }
    for column, value in known.items():
        default = pd.Series(value, index=table.index, dtype=object)
        given = table.get(column, default)
        table[column] = given.astype(object).where(given.notna(), default)
    types = dict(VOTE_COLUMNS)
    for more in (RATED, {ORIGINAL_ANSWER: "str"}):
        types |= more if set(more) <= set(rows) else {}
    return table[list(types)].astype(types).reset_index(drop=True)


def _vote_ids(key: pd.DataFrame, name: str) -> list[str]:
    again = key.groupby(list(key)).cumcount()  # a superseded vote and the one in its place
    rows = key.assign(again=again).to_numpy().tolist()
    return [str(uuid.uuid5(_VOTE, json.dumps([name, *row]))) for row in rows]


def tables_of_votes(
    votes: pd.DataFrame,
    facts: pd.DataFrame,
    scores: pd.DataFrame | None,
    *,
    name: str,
    headline: str,
) -> HumanTables:
    """Votes and, from them, one label a reconstruction.

    Args:
        votes: As from `vote_table`.
        facts: One row a reconstruction with its key and what else is known of it: labels that came
            with it (`human:<name>`), paths.

    Raises:
        SettingsError: For a headline that is no rule and no label.
    """
    labels = _label_table(votes, facts, name=name, headline=headline)
    return HumanTables(
        votes=votes,
        labels=labels,
        scores=None if scores is None else scores[[*SCORE_COLUMNS, *({LEAKS} & {*scores})]],
        headline=headline,
        simulated=bool(labels["simulated"].any()),
    )


def tables_of_labels(
    rows: pd.DataFrame, scores: pd.DataFrame | None = None, *, name: str, headline: str
) -> HumanTables:
    """Return labels that came without votes; `rows` as `facts` of `tables_of_votes`."""
    nobody = pd.DataFrame(columns=[*IMAGE_KEY, "annotator", "recognised"], dtype=object)
    votes = vote_table(nobody, name=name, headline=headline, k=0)
    return tables_of_votes(votes, rows, scores, name=name, headline=headline)


def labels_found(
    rows: pd.DataFrame, scores: pd.DataFrame | None, *, name: str, headline: str
) -> Findings:
    """Return the findings on labels without votes, arguments as of `tables_of_labels`."""
    tables = tables_of_labels(rows, scores, name=name, headline=headline)
    return Findings(
        tables=tables,
        counts=_counts(tables, annotators=0, votes=0),
        unread=(),
        notes=("Shares without single votes: no ceiling and no agreement among people.",),
    )


def _label_table(
    votes: pd.DataFrame, facts: pd.DataFrame, *, name: str, headline: str
) -> pd.DataFrame:
    evidence = gather(votes, _NO_SCORES, (), labels=facts, name=name)
    if headline not in rules_of(evidence):
        known = ", ".join(rules_of(evidence))
        raise SettingsError(f"No human score is called {headline!r} here. Known: {known}.")
    recognising, human = recognised_by(evidence, headline), verdict(evidence, headline)
    in_two_minds = np.isnan(human) | (human == 0.5)
    known_tasks = votes["task"].unique()
    table = evidence.images.assign(
        study=name,
        task=known_tasks[0] if len(known_tasks) else "recognition",
        item=_items(evidence.images, votes),
        n_votes=evidence.recognised.counts,
        n_recognised=recognising.totals.astype(np.int64),
        mean_response=recognising.means,
        recognisable=pd.Series(human > 0.5, dtype="boolean").mask(in_two_minds),
        votes_per_item=evidence.votes_per_item,
        simulated=evidence.simulated,
        voter=evidence.voter,
        headline=headline,
        **_given(evidence),
        **{GIVEN_ERROR + label: values for label, values in evidence.given_errors.items()},
    )
    if evidence.ratings is not None:
        table["mean_rating"] = evidence.ratings.values.means
    columns = [*LABEL_COLUMNS, ARCHITECTURE, "mean_rating"]
    columns += [GIVEN + label for label in evidence.given]
    columns += [GIVEN_ERROR + label for label in evidence.given_errors]
    return table[[column for column in columns if column in table]]


def _items(images: pd.DataFrame, votes: pd.DataFrame) -> pd.Series:
    """The item each image is in the votes, else its key."""
    real = votes[votes["kind"] == "reconstruction"].drop_duplicates(IMAGE_KEY)
    found = images[IMAGE_KEY].merge(real[[*IMAGE_KEY, "item"]], on=IMAGE_KEY, how="left")["item"]
    return found.fillna(_key_in_words(images)).astype("str")


def _key_in_words(images: pd.DataFrame) -> pd.Series:
    first, *others = IMAGE_KEY
    return images[first].str.cat(images[others], sep="/")


def _given(evidence: Evidence) -> dict[str, pd.Series]:
    """Labels that came with the data: boolean where each is yes or no, else shares."""
    columns = {}
    for name, values in evidence.given.items():
        column = pd.Series(values)
        yes_or_no = column.dropna().isin([0.0, 1.0]).all()
        columns[GIVEN + name] = column.astype("boolean") if yes_or_no else column
    return columns


def votes_found(
    kept: Sieve,
    *,
    name: str,
    headline: str,
    votes_per_item: int | None,
    facts: pd.DataFrame | None = None,
    scores: pd.DataFrame | None = None,
) -> Findings:
    """Return a report's findings on the votes in `kept`, as from `counted_votes`, and their tables.

    Args:
        votes_per_item: K; an image has K counted votes at most, or one more where K is odd and a
            study may have asked for it. None is the most an image has, and a note says so.
        facts, scores: As for `tables_of_votes`; without facts every image voted on has a label.

    Raises:
        SettingsError: Where K is too small.
    """
    real = kept.rows[is_counted(kept.rows)]
    most = int(real.groupby(IMAGE_KEY).size().max()) if len(real) else 0
    k = most if votes_per_item is None else votes_per_item
    if most > (k + 1 if k > 1 and k % 2 else k):  # an odd K that is split may get one vote more
        few = counted(k, "vote an image is", "votes an image are")
        raise SettingsError(f"{few} too few: one has {most} that count.")
    votes = vote_table(kept.rows, name=name, headline=headline, k=k)
    known = real[IMAGE_KEY].drop_duplicates() if facts is None else facts
    tables = tables_of_votes(votes, known, scores, name=name, headline=headline)
    counts = _counts(tables, annotators=int(real["annotator"].nunique()), votes=len(real))
    others = {"kept but not counted (decoys, superseded, surplus)": len(kept.rows) - len(real)}
    taken = () if k == votes_per_item else (f"Votes per image taken as {k}, the most one has.",)
    return Findings(
        tables=tables,
        counts=counts | (others if len(kept.rows) > len(real) else {}),
        unread=kept.unread,
        notes=(*kept.notes, *taken),
    )


def _counts(tables: HumanTables, *, annotators: int, votes: int) -> dict[str, int]:
    return {
        "models": int(tables.labels["model"].nunique()),
        "originals": int(tables.labels["image_id"].nunique()),
        "reconstructions": len(tables.labels),
        "annotators": annotators,
        "votes": votes,
    }
