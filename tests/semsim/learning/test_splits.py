"""What is learned from and what is judged by: never the same original."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsim.base.errors import DataError, SettingsError
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign
from semsim.learning.splits import (
    KINDS,
    HoldOut,
    choices,
    count,
    divide,
    hold_out_text,
    join_labels,
    originals_of,
    parse_hold_out,
)

MODELS = ("resnet/none", "resnet/crop", "conv/none")
SEED = 0  # under which the first of four originals is not in the test
ROW = st.tuples(
    st.sampled_from(["a", "b"]),  # data set
    st.sampled_from(["x", "y"]),  # attack
    st.sampled_from(MODELS),
    st.integers(0, 5),  # image
    st.integers(0, 8),  # file of the original, so that pictures have several names
    st.sampled_from([True, False, None]),
)


def table(rows) -> pd.DataFrame:
    columns = ["dataset", "attack", "model", "image_id", "original", "recognisable"]
    made = pd.DataFrame(rows, columns=columns)
    made["image_id"] = made["image_id"].astype(str)
    made["original"] = [f"/pictures/{number}.png" for number in made["original"]]
    made["reconstruction"] = [f"/made/{number}.png" for number in range(len(made))]
    return made.astype({"recognisable": "boolean"})


def grid(n=8, models=MODELS, datasets=("a",)) -> pd.DataFrame:
    rows = [
        (dataset, "x", model, image, 10 * place + image, model.endswith("none"))
        for place, dataset in enumerate(datasets)
        for image in range(n)
        for model in models
    ]
    return table(rows)


def pictures(rows) -> set:
    """Every name an original goes by: its id and its file."""
    return {(d, i) for d, i in zip(rows["dataset"], rows["image_id"], strict=True)} | set(
        rows["original"]
    )


def names_closed(rows, labels) -> set:
    """The names of the originals in `rows`, followed through `labels` until nothing is new."""
    names = pictures(rows)
    while True:
        more = set(names)
        for _, row in labels.iterrows():
            own = {(row["dataset"], row["image_id"]), row["original"]}
            if own & more:
                more |= own
        if more == names:
            return names
        names = more


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ROW, min_size=1, max_size=25),
    st.sampled_from(KINDS),
    st.floats(0.05, 0.95),
    st.integers(0, 99),
)
def test_no_original_is_on_both_sides_under_any_name(rows, kind, fraction, seed):
    labels = table(rows)
    value = "" if kind == "original" else _first_value(labels, kind)
    try:
        split = divide(labels, HoldOut(kind=kind, value=value, fraction=fraction, seed=seed))
    except DataError:  # one side would be empty, which other tests look at
        return
    assert not names_closed(split.train, labels) & names_closed(split.test, labels)
    assert len(split.train) + len(split.test) + split.unused == len(labels)


def _first_value(labels, kind):
    model = labels["model"].iloc[0]
    own = {"architecture": model.split("/")[0], "strategy": model.split("/")[1]}
    return own.get(kind) or labels[kind].iloc[0]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("architecture=resnet", {"conv/none"}),
        ("strategy=none", {"resnet/crop"}),
        ("attack=x", None),
        ("dataset=b", set(MODELS)),
        ("original", set(MODELS)),
    ],
)
def test_what_is_left_out_is_not_learned_from(text, left):
    labels = grid(datasets=("a", "b"))
    if left is None:
        with pytest.raises(DataError, match="nothing to learn from"):
            divide(labels, parse_hold_out(text))
        return
    split = divide(labels, parse_hold_out(text))
    assert set(split.train["model"]) == left
    if text.startswith("dataset"):
        assert set(split.test["dataset"]) == {"b"}
        assert split.unused == 0
        assert len(split.test) == 8 * 3  # a data set goes as a whole


@pytest.mark.parametrize(("fraction", "tested"), [(0.01, 1), (0.25, 2), (0.5, 4), (0.99, 7)])
def test_the_share_is_of_originals_and_leaves_one_on_each_side(fraction, tested):
    split = divide(grid(8), HoldOut(fraction=fraction))
    assert split.n_test_originals == tested
    assert split.train["image_id"].nunique() == 8 - tested


def test_the_order_of_rows_does_not_matter_and_the_seed_does():
    labels = grid(12)
    asked = parse_hold_out("architecture=conv", 0.25, 3)
    first = divide(labels, asked)
    mixed = divide(labels.sample(frac=1, random_state=0), asked)
    assert set(first.test["image_id"]) == set(mixed.test["image_id"])
    others = [divide(labels, parse_hold_out("original", 0.25, seed)) for seed in range(6)]
    assert len({tuple(sorted(set(o.test["image_id"]))) for o in others}) > 1


def test_one_picture_under_two_names_is_one_original():
    labels = table(
        [
            ("a", "x", "resnet/none", 1, 7, True),
            ("b", "x", "resnet/none", 2, 7, True),
            ("b", "x", "resnet/none", 3, 8, True),
        ]
    )
    first, second, third = originals_of(labels)
    assert first == second != third


def test_counts_say_what_is_missing_before_anything_starts():
    labels = grid(4)
    labels.loc[labels["image_id"] == "0", "recognisable"] = True
    split = divide(labels, HoldOut(seed=SEED))
    assert "0" not in set(split.test["image_id"])  # or the test would be of something else
    found = count(labels, HoldOut(seed=SEED))
    assert len(found.training.usable) == 2
    assert (found.recognisable, found.unrecognisable, found.n_test_models) == (2, 1, 3)
    assert found.lacking == ("1 original has no unrecognisable reconstruction",)
    bare = count(labels, parse_hold_out("architecture=conv", 0.25, SEED))
    assert "the test has no unrecognisable reconstruction, so it has no AUC" in bare.lacking
    assert "the test has 1 model; ρ and τ need at least 3" in bare.lacking
    none = count(labels.assign(recognisable=True), HoldOut())
    assert none.lacking[0] == "no original has both kinds, so there is nothing to learn from"


def test_choices_are_what_there_are_two_of():
    labels = grid(2)
    assert choices(labels, "architecture") == ["conv", "resnet"]
    assert choices(labels, "strategy") == ["crop", "none"]
    assert choices(labels, "attack") == choices(labels, "dataset") == []
    assert choices(labels, "original") == []
    assert (
        choices(labels.assign(model=["resnet", "resnet/"] * (len(labels) // 2)), "strategy") == []
    )


def test_no_attack_on_the_model_of_a_strategy_that_is_held_out_is_learned_from():
    rows = [
        ("symbols", attack, f"cnn4/{strategy}/{attack}", str(i), f"/p/{i}.png", strategy == "none")
        for i in range(8)
        for strategy in ("none", "crop-flip")
        for attack in ("invgrad", "prior")
    ]
    columns = ["dataset", "attack", "model", "image_id", "original", "recognisable"]
    labels = pd.DataFrame(rows, columns=columns)
    assert choices(labels, "strategy") == ["crop-flip", "none"]
    split = divide(labels, HoldOut(kind="strategy", value="none"))
    assert set(split.test["model"]) == {"cnn4/none/invgrad", "cnn4/none/prior"}
    assert set(split.train["model"]) == {"cnn4/crop-flip/invgrad", "cnn4/crop-flip/prior"}


@pytest.mark.parametrize("datasets", [("digits",), ("digits", "symbols:test_per_class=1")])
@pytest.mark.parametrize("attacks", [("invgrad:fast",), ("invgrad:fast", "invgrad", "prior")])
def test_targets_of_one_network_or_strategy_are_left_out_together(datasets, attacks):
    """However a campaign calls its sets: what a plan trains alike has one name, and no other."""
    campaign = Campaign(
        name="x",
        images=4,
        datasets=datasets,
        architectures=("cnn4:batch_norm=true", "cnn4:batch_norm=false", "lenet"),
        strategies=("none", "gradient-pruning:rate=0.5", "crop-flip"),
        trainings=("", "until=0.5"),
        seeds=(0, 1),
        shares=("gradient", "update:steps=2,batch=2,lr=0.1"),
        attacks=attacks,
    )
    sets = plan_of(campaign).sets
    table = pd.DataFrame(
        {
            "dataset": one.target.dataset.partition(":")[0],
            "attack": one.attack.name,
            "model": one.model,
            "network": str(one.target.plan.architecture),
            "defence": str(one.target.plan.defence),
        }
        for one in sets
    )
    assert choices(table, "strategy") == ["crop-flip", "gradient-pruning:rate=0.5", "none"]
    assert choices(table, "architecture") == [
        "cnn4:batch_norm=false",
        "cnn4:batch_norm=true",
        "lenet",
    ]
    for kind, column in (("architecture", "network"), ("strategy", "defence")):
        for value in choices(table, kind):
            labels = table.assign(image_id="0", original="/0.png", recognisable=True)
            two = pd.concat([labels, labels.assign(image_id="1", original="/1.png")])
            split = divide(two, HoldOut(kind=kind, value=value))
            assert not set(split.test[column]) & set(split.train[column])


@pytest.mark.parametrize("text", ["original", "architecture=conv", "strategy=crop-flip"])
def test_text_and_hold_out_say_the_same(text):
    assert hold_out_text(parse_hold_out(text)) == text


@pytest.mark.parametrize("text", ["picture=1", "original=3", "architecture", "attack="])
def test_a_hold_out_that_means_nothing_is_refused(text):
    with pytest.raises(SettingsError):
        parse_hold_out(text)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_that_leaves_a_side_empty_is_refused(fraction):
    with pytest.raises(SettingsError, match="share"):
        HoldOut(fraction=fraction)


def test_a_seed_that_draws_nothing_is_refused():
    with pytest.raises(SettingsError, match="seed of the split must be 0 or more; got -1"):
        HoldOut(seed=-1)


def test_what_is_not_there_is_told_with_what_is():
    with pytest.raises(DataError, match="Known: conv, resnet"):
        divide(grid(), parse_hold_out("architecture=vgg"))
    with pytest.raises(DataError, match="lacks the columns model"):
        divide(grid().drop(columns="model"), HoldOut())
    with pytest.raises(DataError, match="nothing to test on"):
        divide(grid(1), HoldOut())


def test_studies_are_joined_unless_they_judge_the_same():
    first, second = grid(2), grid(2, datasets=("b",))
    joined = join_labels([("one", first), ("two", second)])
    assert len(joined) == len(first) + len(second)
    assert np.array_equal(joined.index, range(len(joined)))
    with pytest.raises(DataError, match="one and again have 6 of the same"):
        join_labels([("one", first), ("again", first)])


def test_one_picture_in_two_files_is_not_on_both_sides(tmp_path):
    rows = []
    for i in range(8):
        for dataset in ("symbols", "glyphs"):
            path = tmp_path / f"{dataset}-{i}.png"
            path.write_bytes(b"picture %d" % i)
            rows += [(dataset, "a", "net", str(i), str(path), good) for good in (True, False)]
    columns = ["dataset", "attack", "model", "image_id", "original", "recognisable"]
    labels = pd.DataFrame(rows, columns=columns)
    split = divide(labels, HoldOut(kind="original", fraction=0.5))
    assert set(split.train["image_id"]).isdisjoint(split.test["image_id"])
    assert split.test["image_id"].nunique() == 4
    with pytest.raises(DataError, match="leaves nothing to learn from"):
        divide(labels, HoldOut(kind="dataset", value="glyphs"))
