"""The tasks have the structure that Label Studio documents, and fit the labelling interface."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from annotation.formats.label_studio import ADDRESS, write_label_studio
from annotation.spec import Task


def exported(data, folder):
    words = write_label_studio(data, folder)
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    n = sum(len(task["annotations"]) for task in tasks)
    assert words == f"{len(tasks)} tasks with {n} annotations"
    return tasks, ET.fromstring((folder / "config.xml").read_text(encoding="utf-8"))


def check_task(task, config, folder):
    """What "Label Studio JSON format of annotated tasks" says of the fields that are there."""
    assert isinstance(task["id"], int)
    images = {tag.get("name"): tag.get("value") for tag in config.iter("Image")}
    for value in images.values():
        address = task["data"][value.removeprefix("$")]
        assert address.startswith(ADDRESS)
        assert (folder / address.removeprefix(ADDRESS)).is_file()
    (choices,) = config.iter("Choices")
    offered = [one["value"] for one in task["data"][choices.get("value").removeprefix("$")]]
    for annotation in task["annotations"]:
        assert isinstance(annotation["id"], int)
        assert annotation["was_cancelled"] is annotation["ground_truth"] is False
        assert annotation["lead_time"] == 1.5
        (result,) = annotation["result"]
        assert result["from_name"] == choices.get("name")
        assert result["to_name"] == choices.get("toName")
        assert result["to_name"] in images
        assert result["type"] == "choices"
        assert set(result["value"]) == {"choices"}
        (said,) = result["value"]["choices"]
        assert said in offered


def test_recognition(data, out):
    tasks, config = exported(data, out)
    assert len(tasks) == 8
    for task in tasks:
        check_task(task, config, out)
        assert task["data"]["choices"][-1] == {"value": "none"}
    assert len({task["id"] for task in tasks}) == 8
    ids = [annotation["id"] for task in tasks for annotation in task["annotations"]]
    assert len(set(ids)) == 24


def test_every_vote_is_the_annotation_of_its_annotator(data, out):
    tasks, _ = exported(data, out)
    got = {
        (task["data"]["item"], result["meta"]["text"][0], result["value"]["choices"][0])
        for task in tasks
        for annotation in task["annotations"]
        for result in annotation["result"]
    }
    assert got == {(v.item, v.annotator, v.answer) for v in data.votes.itertuples()}


def test_votes_that_do_not_count_are_no_annotation(data, out):
    undone = data.votes["vote_id"].iloc[0]
    status = data.votes["status"].where(data.votes["vote_id"] != undone, "superseded")
    tasks, _ = exported(replace(data, votes=data.votes.assign(status=status)), out)
    ids = {one["result"][0]["id"] for task in tasks for one in task["annotations"]}
    assert ids == set(data.votes["vote_id"]) - {undone}


def test_each_task_shows_the_picture_of_its_item(data, out):
    tasks, _ = exported(data, out)
    known = data.labels.set_index("item")
    for task in tasks:
        shown = (out / task["data"]["image"].removeprefix(ADDRESS)).read_bytes()
        label = known.loc[task["data"]["item"]]
        assert shown == Path(label["reconstruction"]).read_bytes()
        assert label["class_name"] in [one["value"] for one in task["data"]["choices"]]


def test_pairs_show_two_pictures_and_decoys_are_named(make_study, answer, out):
    study = make_study(task=Task.PAIR, decoy_rate=0.5, votes_per_item=1)
    data = answer(study, lambda stimulus: "different", names=["Anna"])
    tasks, config = exported(data, out)
    for task in tasks:
        check_task(task, config, out)
        assert [one["value"] for one in task["data"]["choices"]] == ["same", "different"]
        assert task["data"]["original"] != task["data"]["image"]
    kinds = sorted(task["data"]["kind"] for task in tasks)
    assert kinds == ["decoy"] * 4 + ["reconstruction"] * 8
    assert len(list(config.iter("Image"))) == 2


@pytest.mark.parametrize("who", ["data", "simulated"])
def test_simulated_votes_are_marked(who, request, out):
    write_label_studio(request.getfixturevalue(who), out)
    tasks = json.loads((out / "tasks.json").read_text())
    assert {task["data"]["simulated"] for task in tasks} == {who == "simulated"}
