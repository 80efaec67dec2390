import json
import os
import pickle

import numpy as np
import pytest

from semsim.base.errors import DataError
from semsim.importers.annotator_files import AnnotatorFiles

ANSWERS = {"1_49_gt.txt": [49, -1, 49, 3, 49], "2_0_gt.txt": [0, 0, -1, -1, 7]}


def example(folder):
    folder.mkdir()
    (folder / "m.json").write_text(json.dumps({"1_0": [0, -1], "2_1": [1, 1]}))
    return folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "answers").mkdir()
    return tmp_path / "answers"


def said(found):
    votes = found.tables.votes
    keys = zip(votes["model"], votes["image_id"], votes["annotator"], strict=True)
    return dict(zip(keys, votes["answer"], strict=True))


def test_one_table_a_person(folder):
    (folder / "Anna.csv").write_text("image,answer\nresnet/1_49_rec.png,49\nresnet/2_0.png,none\n")
    (folder / "Ben.csv").write_text("image,answer\nresnet/1_49_rec.png,-1\n")
    found = AnnotatorFiles(dataset="cifar100")(folder, "x")
    assert found.unread == ()
    assert said(found) == {
        ("resnet", "1", "Anna"): "49",
        ("resnet", "2", "Anna"): "none",
        ("resnet", "1", "Ben"): "none",
    }
    votes = found.tables.votes
    assert votes["recognised"].tolist() == [True, False, False]
    assert votes["class_name"].tolist() == ["49", "0", "49"]
    assert set(votes["dataset"]) == {"cifar100"}


def write_json(path, content):
    path.with_suffix(".json").write_text(json.dumps(content))


def write_pickle(path, content):
    path.with_suffix(".pkl").write_bytes(pickle.dumps(content))


def write_array_pickle(path, content):
    arrays = {image: np.array(answers) for image, answers in content.items()}
    path.with_suffix(".pickle").write_bytes(pickle.dumps(arrays))


def write_texts(path, content):
    path.mkdir()
    for image, answers in content.items():
        (path / image).write_text(" ".join(map(str, answers)))


@pytest.mark.parametrize("write", [write_json, write_pickle, write_array_pickle, write_texts])
def test_a_mapping_has_the_answers_of_all_people(folder, write):
    write(folder / "resnet", ANSWERS)
    found = AnnotatorFiles()(folder, "x")
    assert found.unread == ()
    assert said(found) == {
        ("resnet", image.split("_")[0], f"ann{person}"): "none" if answer < 0 else str(answer)
        for image, answers in ANSWERS.items()
        for person, answer in enumerate(answers)
    }
    assert found.tables.labels["recognisable"].tolist() == [True, False]
    assert found.counts["votes"] == 10


def test_one_file_is_enough_and_keys_may_name_the_model(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"resnet/1_49": [49, 49], "convnet/1_49": [0, 49]}))
    found = AnnotatorFiles(model="unused")(path, "x")
    assert {model for model, _, _ in said(found)} == {"resnet", "convnet"}


def test_a_model_may_be_given(folder):
    (folder / "Anna.csv").write_text("image,answer\n1_49_rec.png,49\n")
    assert {model for model, _, _ in said(AnnotatorFiles(model="vgg")(folder, "x"))} == {"vgg"}


def test_classes_go_by_name_where_they_have_names(folder, tmp_path, reasons):
    (tmp_path / "classes.txt").write_text("apple\nfish\n")
    (folder / "Anna.csv").write_text("image,answer\nm/1_0,fish\nm/2_1,1\nm/3_1,bird\nm/4_2,0\n")
    found = AnnotatorFiles(classes=tmp_path / "classes.txt")(folder, "x")
    assert said(found) == {("m", "1", "Anna"): "fish", ("m", "2", "Anna"): "fish"}
    assert found.tables.votes["class_name"].tolist() == ["apple", "fish"]
    assert reasons(found) == {
        "Anna.csv line 4": "Anna answered 'bird', which is no class",
        "Anna.csv line 5": "'m/4_2' does not say a known class; expected <id>_<label>",
    }


def test_answers_that_a_gap_made_floats_are_classes(folder, reasons):
    (folder / "Anna.csv").write_text("image,answer\nm/1_49,49.0\nm/2_0,-1.0\nm/3_0,\n")
    found = AnnotatorFiles()(folder, "x")
    assert said(found) == {("m", "1", "Anna"): "49", ("m", "2", "Anna"): "none"}
    assert list(reasons(found)) == ["Anna.csv line 4"]


def test_everything_that_does_not_fit_is_named(folder, reasons):
    write_json(folder / "resnet", {**ANSWERS, "3_1": "five", "4_1": [], "5_1": [{}], "six": [1]})
    (folder / "Ben.csv").write_text("picture,answer\n1_49,1\n")
    (folder / "Cleo.csv").write_text("image,answer\n1_49,1\nm/1_49,-2\nm/1_49\n")
    (folder / "list.json").write_text("[1, 2]")
    (folder / "broken.json").write_text("{")
    (folder / "notes.doc").touch()
    (folder / ".DS_Store").touch()
    (folder / "gone.txt").symlink_to(folder / "nothing")
    found = AnnotatorFiles()(folder, "x")
    left = reasons(found)
    expected = {
        "resnet.json: 3_1": "expected a list of answers",
        "resnet.json: 4_1": "expected a list of answers",
        "resnet.json: 5_1": "ann0 answered '{}', which is no class",
        "resnet.json: six": "'six' does not say a known class",
        "Ben.csv": "lacks the columns image",
        "Cleo.csv line 2": "does not say its model",
        "Cleo.csv line 3": "Cleo answered '-2', which is no class",
        "Cleo.csv line 4": "has 1 cell,",
        "list.json": "holds a list, expected {image: [answers]}",
        "broken.json": "is not readable JSON",
        "gone.txt": "does not exist",
        "notes.doc": "expected a file ending in .csv",
    }
    assert left.keys() == expected.keys()
    for where, words in expected.items():
        assert words in left[where]
    assert found.counts["votes"] == 10
    assert "1 hidden file was not looked at." in found.notes


def test_a_pickle_with_a_class_in_it_is_left_out_by_its_name(folder, reasons):
    write_json(folder / "resnet", ANSWERS)
    (folder / "convnet.pkl").write_bytes(pickle.dumps({"1_49": [np.datetime64("now"), eval]}))
    left = reasons(AnnotatorFiles()(folder, "x"))
    assert "refused" in left["convnet.pkl"]


def test_two_answers_of_one_person_count_neither(folder):
    (folder / "Anna.csv").write_text("image,answer\nm/1_49,49\nm/1_49_rec.png,3\nm/2_0,0\n")
    found = AnnotatorFiles()(folder, "x")
    assert said(found) == {("m", "2", "Anna"): "0"}
    assert [one.where for one in found.unread] == ["Anna.csv line 2, Anna", "Anna.csv line 3, Anna"]


def test_nothing_to_read_is_an_error(folder):
    with pytest.raises(DataError, match="holds no answer"):
        AnnotatorFiles()(folder, "x")
    with pytest.raises(DataError, match="neither a file nor a folder"):
        AnnotatorFiles()(folder / "nothing", "x")


def test_files_in_a_folder_that_is_a_link_are_read_and_misnamed_ones_are_told(
    folder, tmp_path, reasons
):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/Anna.csv").write_text("image,answer\nm/1_49,49\n")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    (folder / os.fsdecode(b"Andr\xe9.csv")).write_text("image,answer\nm/1_49,49\n")
    found = AnnotatorFiles()(folder, "x")
    assert said(found) == {("m", "1", "Anna"): "49"}
    assert reasons(found) == {"Andr\\udce9.csv": "its name is not UTF-8; rename it"}


@pytest.mark.parametrize(("name", "text"), [("net.json", '{"1_0": ["Bär"]}'), ("1_0.txt", "Bär")])
def test_answers_from_old_windows_are_read(folder, tmp_path, name, text):
    (tmp_path / "classes.txt").write_text("Bär\nKuh\n", encoding="cp1252")
    (folder / name).write_text(text, encoding="cp1252")
    found = AnnotatorFiles(classes=tmp_path / "classes.txt", model="net")(folder, "x")
    assert set(said(found).values()) == {"Bär"}


def test_the_answer_none_may_be_written_in_any_way(folder):
    (folder / "Anna.csv").write_text("image,answer\nnet/1_0.png, None\nnet/2_0.png,NONE\n")
    assert set(said(AnnotatorFiles()(folder, "x")).values()) == {"none"}
