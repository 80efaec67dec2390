import pandas as pd
import pytest

from semsim.base.columns import LABEL_COLUMNS, VOTE_COLUMNS
from semsim.base.errors import SettingsError
from semsim.importers.human_tables import (
    tables_of_labels,
    tables_of_votes,
    vote_table,
)

KEY = {"dataset": "d", "attack": "x", "model": "m"}
ROWS = pd.DataFrame(
    [
        {**KEY, "image_id": image, "annotator": who, "recognised": said}
        for image, answers in (("a", (1, 1, 0)), ("b", (0, 0, 1)), ("c", (1, 0, None)))
        for who, said in zip("ABC", answers, strict=True)
        if said is not None
    ]
).astype({"recognised": "boolean"})


def tables(facts=None, headline="majority", rows=ROWS):
    votes = vote_table(rows, name="n", headline=headline, k=3)
    facts = rows[[*KEY, "image_id"]].drop_duplicates() if facts is None else facts
    return tables_of_votes(votes, facts, None, name="n", headline=headline)


def test_votes_have_the_columns_and_types_of_an_export():
    votes = tables().votes
    assert {name: str(kind) for name, kind in votes.dtypes.items()} == dict(VOTE_COLUMNS)
    assert votes["client_ts"].isna().all()
    assert votes["rt_ms"].isna().all()
    assert set(votes["status"]) == {"counted"}
    assert set(votes["kind"]) == {"reconstruction"}
    assert set(votes["answer"]) == {""}


def test_ids_of_votes_are_unique_and_the_same_each_time():
    first = tables().votes["vote_id"]
    assert first.is_unique
    shuffled = tables(rows=ROWS.sample(frac=1, random_state=0)).votes["vote_id"]
    assert set(shuffled) == set(first)
    other = vote_table(ROWS, name="other", headline="majority", k=3)["vote_id"]
    assert not set(other) & set(first)


def test_a_superseded_vote_has_an_id_of_its_own():
    twice = pd.concat([ROWS.assign(status="superseded"), ROWS.assign(status="counted")])
    assert vote_table(twice, name="n", headline="majority", k=3)["vote_id"].is_unique


def test_what_a_row_says_is_kept():
    rows = ROWS.assign(answer="cat", task=None, status="surplus", vote_id=range(len(ROWS)))
    votes = vote_table(rows, name="n", headline="majority", k=3)
    assert set(votes["answer"]) == {"cat"}
    assert set(votes["status"]) == {"surplus"}
    assert set(votes["task"]) == {"recognition"}
    assert votes["vote_id"].tolist() == [str(n) for n in range(len(ROWS))]


def test_same_and_different_are_the_pair_task():
    rows = ROWS.assign(answer=["same", "different"] * 4)
    assert set(vote_table(rows, name="n", headline="majority", k=3)["task"]) == {"pair"}


def test_labels_are_one_row_a_reconstruction():
    labels = tables().labels
    paths = {"original", "reconstruction", "attacked"}
    assert list(labels.columns) == [name for name in LABEL_COLUMNS if name not in paths]
    assert labels["n_votes"].tolist() == [3, 3, 2]
    assert labels["n_recognised"].tolist() == [2, 1, 1]
    assert labels["mean_response"].tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 2])
    assert labels["recognisable"].tolist() == [True, False, pd.NA]
    assert set(labels["votes_per_item"]) == {3}
    assert labels["item"].tolist() == ["d/x/m/a", "d/x/m/b", "d/x/m/c"]


def test_the_headline_decides_what_is_recognisable():
    labels = tables(headline="ignoring-none").labels
    assert labels["recognisable"].tolist() == [True, False, pd.NA]
    facts = (
        ROWS[[*KEY, "image_id"]].drop_duplicates().assign(**{"human:given": [False, True, None]})
    )
    labels = tables(facts, headline="given").labels
    assert labels["recognisable"].tolist() == [False, True, pd.NA]
    assert labels["human:given"].dtype == "boolean"
    with pytest.raises(SettingsError, match=r"'other' here. Known: majority.*given"):
        tables(facts, headline="other")


def test_shares_stay_shares():
    facts = ROWS[[*KEY, "image_id"]].drop_duplicates().assign(**{"human:given": [0.2, 1, None]})
    assert tables(facts).labels["human:given"].tolist() == pytest.approx(
        [0.2, 1.0, float("nan")], nan_ok=True
    )


def test_labels_with_images_have_the_columns_of_an_export():
    paths = {"original": "o", "reconstruction": "r", "attacked": None}
    facts = ROWS[[*KEY, "image_id"]].drop_duplicates().assign(**paths)
    assert list(tables(facts).labels.columns) == list(LABEL_COLUMNS)


def test_labels_may_come_without_votes():
    rows = pd.DataFrame(
        [{**KEY, "image_id": "a", "class_name": "cat", "original": "o", "human:released": True}]
    )
    found = tables_of_labels(rows, name="n", headline="released")
    assert found.votes.empty
    assert {name: str(kind) for name, kind in found.votes.dtypes.items()} == dict(VOTE_COLUMNS)
    (label,) = found.labels.to_dict("records")
    assert (label["n_votes"], label["recognisable"], label["original"]) == (0, True, "o")
    assert not found.simulated


def test_simulated_votes_stay_so():
    rows = ROWS.assign(simulated=True)
    found = tables(rows=rows)
    assert found.simulated
    assert found.labels["simulated"].all()
