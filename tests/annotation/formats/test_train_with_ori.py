"""What is written is what our importer of the authors' tree reads."""

import csv
from pathlib import Path

import pytest

from annotation.errors import StudyError
from annotation.formats.study_data import StudyData
from annotation.formats.train_with_ori import write_train_with_ori
from semsim.importers.layouts import TrainWithOri

KEYS = ["model", "image_id"]


def read_back(folder):
    """The lists of names lie beside the tree, where the importer looks by itself."""
    return TrainWithOri(dataset="symbols")(folder, "back")


def image_ids(folder):
    with (folder / "ids.csv").open(newline="") as file:
        return {row["id"]: row["image_id"] for row in csv.DictReader(file)}


def test_round_trip_through_the_importer(data, out):
    assert write_train_with_ori(data, out).startswith("8 reconstructions")
    found = read_back(out)
    assert found.unread == ()
    back = found.tables.labels
    back["image_id"] = back["image_id"].map(image_ids(out))
    got = {
        (row.model, row.image_id): (row.class_name, row.recognisable) for row in back.itertuples()
    }
    assert got == {
        (row.model, row.image_id): (row.class_name, row.recognisable)
        for row in data.labels.itertuples()
    }
    assert {one.model for one in found.sets} == {"convnet8", "resnet20-4"}
    known = data.labels.set_index(KEYS)
    for one in found.sets:
        for pair in one.pairs:
            label = known.loc[(one.model, image_ids(out)[pair.image_id])]
            assert pair.original.read_bytes() == Path(label["original"]).read_bytes()
            assert pair.reconstruction.read_bytes() == Path(label["reconstruction"]).read_bytes()


def test_the_names_count_the_votes_that_did_not_recognise_it(data, out):
    write_train_with_ori(data, out)
    tree = out / "train_with_ori"
    names = {p.relative_to(tree).as_posix() for p in tree.rglob("*.png")}
    assert {name for name in names if name.startswith(("1/", "-1/"))} == {
        "1/1_0_ori.png",
        "1/1_0_rec_0_1.png",
        "-1/1_0_rec_3_2.png",
    }


def test_pictures_without_a_class_have_one_that_says_so(data, out):
    labels = data.labels.assign(class_name="")
    write_train_with_ori(StudyData(**{**vars(data), "labels": labels}), out)
    assert (out / "class_names.txt").read_text() == "unknown\n"
    assert read_back(out).unread == ()


def test_ids_that_are_numbers_stay(data, out):
    numbered = data.labels.assign(image_id=data.labels["image_id"].str.removeprefix("image-"))
    renamed = StudyData(study=data.study, votes=data.votes, labels=numbered, stimuli=data.stimuli)
    write_train_with_ori(renamed, out)
    assert (out / "train_with_ori/000/000_0_ori.png").exists()


def test_what_has_no_majority_is_left_out_and_counted(make_study, answer, out):
    study = make_study(votes_per_item=3)
    data = answer(study, lambda stimulus: "none", names=["Anna"])
    with pytest.raises(StudyError, match="None of 8 reconstructions has a majority"):
        write_train_with_ori(data, out)
    data = answer(study, lambda s: "Cat" if s["model"] == "convnet8" else "none", names=["Ben"])
    assert data.labels["recognisable"].isna().sum() == 1  # the cat of convnet8
    assert "(1 without a majority left out)" in write_train_with_ori(data, out)
    assert "1 reconstructions without a majority" in " ".join(
        (out / "README.md").read_text().split()
    )
    assert len(read_back(out).tables.labels) == 7


def test_names_that_a_list_of_lines_cannot_hold_are_refused(data, out):
    broken = data.labels.assign(model="two\nlines")
    with pytest.raises(StudyError, match="one name a line"):
        write_train_with_ori(
            StudyData(study=data.study, votes=data.votes, labels=broken, stimuli=data.stimuli),
            out,
        )


@pytest.mark.parametrize("who", ["data", "simulated"])
def test_simulated_votes_are_marked(who, request, out):
    write_train_with_ori(request.getfixturevalue(who), out)
    first = (out / "README.md").read_text().splitlines()[0]
    assert first.startswith("**Simulated votes") == (who == "simulated")
    back = read_back(out).tables
    assert back.simulated == (who == "simulated")
    assert set(back.labels["simulated"]) == {who == "simulated"}
