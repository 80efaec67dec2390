"""Triplets come from one original each, and no original is on both sides of a split."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from semsim.base.errors import DataError
from semsim.images import write_png
from semsim.learning.triplets import (
    ImageIndex,
    is_simulated,
    learnable,
    require_usable,
    split,
    take_stock,
)

# One study: for each original, the verdicts on its reconstructions.
STUDIES = st.dictionaries(
    st.tuples(st.sampled_from(["symbols", "faces"]), st.integers(0, 9).map(str)),
    st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6),
    min_size=1,
    max_size=12,
)
SEEDS = st.integers(0, 2**16)


def study(verdicts):
    rows = [
        {
            "dataset": dataset,
            "image_id": image,
            "original": f"/{dataset}/{image}/original.png",
            "reconstruction": f"/{dataset}/{image}/{verdict}-{number}.png",
            "recognisable": verdict,
        }
        for (dataset, image), answers in verdicts.items()
        for number, verdict in enumerate(answers)
    ]
    return pd.DataFrame(rows).astype({"recognisable": "boolean"})


def named(index, triplets):
    return [[index.paths[number] for number in row] for row in triplets]


def check_kinds(a, p, n):
    assert a.name == "original.png"
    assert p.name.startswith("True")
    assert n.name.startswith("False")
    assert a.parent == p.parent == n.parent  # one data set, one original


@given(STUDIES)
def test_every_original_is_sorted_once_by_the_kinds_it_has(verdicts):
    stock = take_stock(study(verdicts))
    assert stock.n_originals == len(verdicts)
    assert {o.key for o in stock.usable} == {
        key for key, answers in verdicts.items() if {True, False} <= set(answers)
    }
    assert {o.key for o in stock.only_recognisable} == {
        key for key, answers in verdicts.items() if True in answers and False not in answers
    }
    assert {o.key for o in stock.only_unrecognisable} == {
        key for key, answers in verdicts.items() if False in answers and True not in answers
    }
    assert {o.key for o in stock.undecided} == {
        key for key, answers in verdicts.items() if set(answers) == {None}
    }
    undecided = sum(answers.count(None) for answers in verdicts.values())
    parts = (stock.usable, stock.only_recognisable, stock.only_unrecognisable, stock.undecided)
    assert sum(o.undecided for part in parts for o in part) == undecided


@given(STUDIES)
def test_all_triplets_are_those_of_the_loop(verdicts):
    stock = take_stock(study(verdicts))
    index = ImageIndex(stock.usable)
    found = [tuple(row) for row in named(index, index.every(stock.usable))]
    for row in found:
        check_kinds(*row)
    assert len(found) == len(set(found)) == stock.n_triplets
    assert stock.n_triplets == sum(a.count(True) * a.count(False) for a in verdicts.values())


@given(STUDIES, st.floats(0, 0.99), SEEDS)
def test_no_original_is_on_both_sides_of_a_split(verdicts, fraction, seed):
    usable = take_stock(study(verdicts)).usable
    training, held_out = split(usable, fraction, np.random.default_rng(seed))
    assert {o.key for o in training}.isdisjoint(o.key for o in held_out)
    assert {o.key for o in training} | {o.key for o in held_out} == {o.key for o in usable}
    images = {p for o in training for p in (o.image, *o.recognisable, *o.unrecognisable)}
    assert images.isdisjoint(o.image for o in held_out)
    if len(usable) >= 2:
        assert training
        assert bool(held_out) == (fraction > 0)


def test_one_picture_under_two_names_is_on_one_side_of_a_split():
    labels = study({("symbols", str(i)): [True, False] for i in range(10)})
    both = [labels, labels.assign(dataset="copies")]  # as if brought in once more
    usable = take_stock(pd.concat(both, ignore_index=True)).usable
    for seed in range(5):
        training, held_out = split(usable, 0.3, np.random.default_rng(seed))
        assert {o.image for o in training}.isdisjoint(o.image for o in held_out)
        assert (len(training), len(held_out)) == (14, 6)


def test_different_seeds_split_differently():
    usable = take_stock(study({("symbols", str(i)): [True, False] for i in range(20)})).usable
    splits = {split(usable, 0.3, np.random.default_rng(seed))[1] for seed in range(5)}
    assert len(splits) > 1
    assert {len(held_out) for held_out in splits} == {6}


def test_two_data_sets_may_use_the_same_id():
    both = study({("symbols", "7"): [True], ("faces", "7"): [False]})
    assert take_stock(both).usable == ()


def test_one_name_for_two_pictures_is_refused_and_copies_of_one_are_not(tmp_path):
    coarse = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    pictures = torch.nn.functional.interpolate(coarse, 16, mode="bilinear")
    for name, shown in (("a", 0), ("copy", 0), ("b", 1)):
        write_png(pictures[shown], tmp_path / f"{name}.png")
    Image.open(tmp_path / "a.png").save(tmp_path / "compressed.jpg", quality=95)
    table = study({("unknown", "0001"): [True, False]})
    for other in ("copy.png", "compressed.jpg"):
        table["original"] = [str(tmp_path / name) for name in ("a.png", other)]
        assert take_stock(table).usable[0].image == tmp_path / "a.png"
    table["original"] = [str(tmp_path / name) for name in ("a.png", "b.png")]
    with pytest.raises(DataError, match=r"'0001' of the data set 'unknown'.*name of its own"):
        take_stock(table)


def test_nothing_usable_says_what_is_needed():
    stock = take_stock(study({("s", "1"): [True], ("s", "2"): [False], ("s", "3"): [None]}))
    with pytest.raises(DataError) as caught:
        require_usable(stock)
    text = str(caught.value)
    for part in ("Of 3 originals none", "1 has only recognisable", "1 only unrec", "more votes"):
        assert part in text


def test_missing_columns_are_named():
    with pytest.raises(DataError, match="image_id, recognisable"):
        take_stock(pd.DataFrame({"dataset": [], "original": [], "reconstruction": []}))


@pytest.mark.parametrize("column", ["recognisable", "n_votes", "n_recognised", "votes_per_item"])
def test_words_in_the_place_of_numbers_and_verdicts_are_named(column):
    labels = study({("s", "1"): [True, False]}).assign(n_votes=5, n_recognised=3, votes_per_item=5)
    labels[column] = labels[column].astype(object)
    labels.loc[1, column] = "word"
    with pytest.raises(DataError, match=f"column {column} must hold"):
        take_stock(labels)


def test_simulated_votes_are_told_or_refused():
    assert is_simulated(pd.DataFrame({"simulated": [False, True]}))
    assert not is_simulated(pd.DataFrame({"simulated": [False, False]}))
    with pytest.raises(DataError, match="simulated"):
        is_simulated(pd.DataFrame({"item": [1]}))


def counted(n_recognised, n_votes=5, verdict=None):
    rows = [
        {
            "dataset": "d",
            "image_id": "1",
            "original": "/o.png",
            "reconstruction": f"/{number}.png",
            "recognisable": verdict,
            "n_recognised": n,
            "n_votes": n_votes,
            "votes_per_item": 5,
        }
        for number, n in enumerate(n_recognised)
    ]
    return pd.DataFrame(rows).astype({"recognisable": "boolean"})


def test_votes_order_reconstructions_and_say_by_how_much():
    (original,) = learnable(take_stock(counted([5, 3, 3, 1], verdict=True)), "votes")
    found = {(p.stem, n.stem): weight for p, n, weight in original.ordered("votes")}
    assert found == pytest.approx(
        {("0", "1"): 0.4, ("0", "2"): 0.4, ("0", "3"): 0.8, ("1", "3"): 0.4, ("2", "3"): 0.4}
    )
    with pytest.raises(DataError, match="none has both"):
        learnable(take_stock(counted([5, 3, 3, 1], verdict=True)), "majority")


def test_too_few_votes_order_nothing():
    assert take_stock(counted([2, 0], n_votes=3)).undecided[0].ordered("votes")
    with pytest.raises(DataError, match="different shares"):
        learnable(take_stock(counted([2, 0], n_votes=2)), "votes")


def test_labels_without_counts_say_what_votes_need():
    labels = counted([5, 0]).drop(columns="n_votes")
    with pytest.raises(DataError, match="n_votes, n_recognised"):
        learnable(take_stock(labels), "votes")


def test_the_majority_reads_no_image_that_it_does_not_use():
    labels = counted([5, 2, 0]).assign(recognisable=pd.array([True, None, False], "boolean"))
    (original,) = learnable(take_stock(labels), "majority")
    assert [path.stem for path in original.images] == ["o", "0", "2"]


def test_judged_pairs_are_those_on_which_a_majority_agrees():
    labels = counted([5, 2, 0]).assign(recognisable=pd.array([True, None, False], "boolean"))
    usable = take_stock(labels).usable
    index = ImageIndex(usable)
    pairs, recognisable = index.judged(usable)
    assert [[index.paths[n].stem for n in pair] for pair in pairs] == [["o", "0"], ["o", "2"]]
    assert recognisable.tolist() == [True, False]


def test_triplets_by_votes_are_those_that_are_learned_from():
    usable = learnable(take_stock(counted([5, 3], verdict=True)), "votes")
    index = ImageIndex(usable)
    assert index.every(usable).shape == (0, 3)  # a majority recognises both
    (row,) = index.every(usable, "votes")
    assert [index.paths[n].stem for n in row] == ["o", "0", "1"]
