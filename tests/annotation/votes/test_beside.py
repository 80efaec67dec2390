"""A model beside people: κ of their verdicts against statsmodels, counts, and who is left out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from annotation.tasks.pair import Pair
from annotation.tasks.recognition import Recognition
from annotation.votes.beside import BESIDE_COLUMNS, beside_table, differing, together

N = 60


def said(recognised, answers=None, model=None):
    n = len(recognised)
    return pd.DataFrame(
        {
            "model": model if model is not None else ["a" if i < n // 2 else "b" for i in range(n)],
            "attack": "invgrad",
            "image_id": [f"{i:03}" for i in range(n)],
            "class_name": "cat",
            "original": [f"o{i}" for i in range(n)],
            "reconstruction": [f"r{i}" for i in range(n)],
            "recognisable": pd.array(recognised, dtype="boolean"),
            "plurality": pd.Series(answers or ["cat" if r else "none" for r in recognised]),
        }
    )


def overall(table, coding="recognised"):
    (row,) = table[table["model"].isna() & (table["coding"] == coding)].to_dict("records")
    return row


@given(st.integers(0, 2**31), st.floats(0.1, 0.9))
@settings(max_examples=15, deadline=None)
def test_kappa_is_that_of_statsmodels(seed, agree):
    rng = np.random.default_rng(seed)
    people = rng.random(N) < 0.5
    model = np.where(rng.random(N) < agree, people, rng.random(N) < 0.5)
    row = overall(beside_table(together(said(people), said(model)), Recognition()))
    counts = np.zeros((2, 2))
    np.add.at(counts, (people.astype(int), model.astype(int)), 1)
    oracle = cohens_kappa(counts)
    assert row["value"] == pytest.approx(oracle.kappa)
    assert row["low"] < row["value"] < row["high"]
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * oracle.std_kappa, rel=0.6)
    cells = [row[name] for name in ("both", "people_only", "model_only", "neither")]
    assert cells == [counts[1, 1], counts[1, 0], counts[0, 1], counts[0, 0]]


def test_answers_by_chance_have_a_kappa_around_zero():
    """The control: an interval that holds 0 in about 95 of 100."""
    held = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        both = (rng.random(N) < 0.5, rng.random(N) < 0.5)
        row = overall(beside_table(together(*map(said, both)), Recognition()))
        held.append(row["low"] <= 0 <= row["high"])
    assert 88 <= sum(held) <= 100


def test_each_target_model_has_rows_of_its_own():
    people = np.arange(N) % 2 == 0
    table = beside_table(together(said(people), said(people)), Recognition())
    assert list(table.columns) == list(BESIDE_COLUMNS)
    assert table["model"].fillna("all").tolist() == ["all"] * 2 + ["a"] * 2 + ["b"] * 2
    assert (table["n_items"] == [N] * 2 + [N // 2] * 4).all()
    assert table["value"].tolist() == [1.0] * 6
    binary = beside_table(together(said(people), said(people)), Pair())
    assert set(binary["coding"]) == {"recognised"}


def test_pictures_of_one_side_alone_and_undecided_ones_are_left_out():
    people = said([True, False] * 20)
    people.loc[:4, "recognisable"] = pd.NA
    model = said([True, False] * 20).iloc[10:]
    pictures = together(people, model)
    assert len(pictures) == 30
    assert overall(beside_table(pictures, Recognition()))["n_items"] == 30
    few = beside_table(together(people, model.iloc[:3]), Recognition())
    assert overall(few)["reason"] == "fewer than 10 shared items"
    none = beside_table(together(people.iloc[:5], said([True] * 5)), Recognition())
    assert overall(none)["reason"] == "no picture has a verdict of both"


def test_the_matching_goes_by_the_picture_and_by_no_name():
    people, model = said([True, False] * 20), said([True, False] * 20)
    shuffled = model.sample(frac=1, random_state=1).assign(image_id="x", model="m", class_name="?")
    assert overall(beside_table(together(people, shuffled), Recognition()))["value"] == 1


def test_what_they_answer_otherwise_is_listed():
    people = said([True] * 4, ["cat", "dog", "cat", "cat"])
    model = said([True] * 4, ["cat", "cat", "none", "none"])
    found = differing(together(people, model))
    assert found.to_dict("records") == [
        {"class_name": "cat", "people": "cat", "model_says": "none", "pictures": 2},
        {"class_name": "cat", "people": "dog", "model_says": "cat", "pictures": 1},
    ]
