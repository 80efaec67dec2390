"""Every triplet there is, none that is not, and the images that belong to them."""

import itertools
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_tables import read_typed

from annotation.errors import StudyError
from annotation.formats.triplets import triplets, write_triplets

IMAGES, MODELS = st.sampled_from(["a", "b"]), st.sampled_from(["p", "q", "r"])
VERDICTS = st.lists(
    st.tuples(IMAGES, MODELS, st.none() | st.booleans()), unique_by=lambda row: row[:2]
)


def labels(rows):
    table = pd.DataFrame(
        [
            {
                "study": "s",
                "dataset": "d",
                "image_id": image,
                "class_name": "cat",
                "original": f"/{image}.png",
                "item": f"{image}{model}",
                "model": model,
                "reconstruction": f"/{image}{model}.png",
                "recognisable": verdict,
                "simulated": False,
                "voter": "people",
            }
            for image, model, verdict in rows
        ],
        columns=["study", "dataset", "image_id", "class_name", "original", "item", "model",
                 "reconstruction", "recognisable", "simulated", "voter"],
    )  # fmt: skip
    return table.astype({"recognisable": "boolean"})


@given(VERDICTS)
def test_the_triplets_are_those_of_a_slow_loop(rows):
    expected = {
        (f"/{image}.png", f"/{image}{yes}.png", f"/{image}{no}.png", yes, no)
        for (image, yes, good), (other, no, bad) in itertools.product(rows, rows)
        if image == other and good is True and bad is False
    }
    table = triplets(labels(rows))
    columns = ["anchor", "positive", "negative", "positive_model", "negative_model"]
    got = list(table[columns].itertuples(index=False, name=None))
    assert len(got) == len(expected)
    assert set(got) == expected


def test_both_files_hold_them_with_the_images(data, out):
    assert write_triplets(data, out) == "4 triplets"
    parquet = pd.read_parquet(out / "triplets.parquet")
    types = {name: str(kind) for name, kind in parquet.dtypes.items()}
    pd.testing.assert_frame_equal(read_typed(out / "triplets.csv", types), parquet)
    assert (parquet["positive_model"] == "convnet8").all()
    assert (parquet["negative_model"] == "resnet20-4").all()
    assert not parquet["simulated"].any()
    known = data.labels.set_index("item")
    for row in parquet.itertuples():
        kept = known.loc[row.positive_item]
        assert (out / row.anchor).read_bytes() == Path(kept["original"]).read_bytes()
        assert (out / row.positive).read_bytes() == Path(kept["reconstruction"]).read_bytes()
        kept = known.loc[row.negative_item]
        assert (out / row.negative).read_bytes() == Path(kept["reconstruction"]).read_bytes()
    assert len(list((out / "images").iterdir())) == 4 + 8


def test_no_triplet_is_a_problem_and_not_an_empty_file(make_study, answer, out):
    data = answer(make_study(votes_per_item=1), lambda stimulus: "none", names=["Anna"])
    with pytest.raises(StudyError, match="no triplet"):
        write_triplets(data, out)
