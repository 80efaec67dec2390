"""The exports are read by the libraries they are for: datasets, label-studio-sdk, crowd-kit."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import ROOT
from programs import skip_without
from study_factory import of_convnet8

from annotation.formats import export

OWN = ROOT / ".venv" / "formats" / "bin" / "python"
PYTHON = os.environ.get("SEMSIM_FORMATS_PYTHON", str(OWN) if OWN.exists() else "")


@pytest.fixture
def read(tmp_path):
    """What the function of `real_libraries` with this name makes of what was exported."""
    if not PYTHON:
        skip_without("readers of the exports")

    def read(name, path):
        cache = tmp_path / "cache" / name
        cache.mkdir(parents=True)
        done = subprocess.run(
            [PYTHON, str(Path(__file__).with_name("real_libraries.py")), name, str(path), cache],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return read


@pytest.fixture
def five(answer, make_study):
    """Eight reconstructions, each with the votes of five people."""
    names = ["Anna", "Ben", "Cem", "Dora", "Eva"]
    return answer(make_study(votes_per_item=5), of_convnet8, names=names)


def test_datasets_reads_pictures_labels_and_votes(five, out, read):
    data = five
    export(data, out / "hf", "hf")
    found = read("hugging_face", out / "hf")
    assert len(found["rows"]) == 8
    for name in ("image", "original"):
        assert found["features"][name].startswith("Image(")
        assert {tuple(row[name]) for row in found["rows"]} == {(6, 6)}
    said = {
        (row["item"], vote["annotator"], vote["answer"], vote["recognised"])
        for row in found["rows"]
        for vote in row["votes"]
    }
    told = data.votes[["item", "annotator", "answer", "recognised"]]
    assert [len(row["votes"]) for row in found["rows"]] == [5] * 8
    assert said == set(told.itertuples(index=False))
    assert {row["recognisable"] for row in found["rows"]} == {True, False}


def test_the_hub_reads_licence_and_task_from_the_card(data, out, read):
    export(replace(data, licence="cc-by-4.0"), out / "hf", "hf")
    found = read("card", out / "hf")
    assert found["license"] == "cc-by-4.0"
    assert found["task_categories"] == ["image-classification"]
    assert found["pretty_name"] == data.study.name


def test_label_studio_takes_the_tasks_and_knows_the_annotator(data, out, read):
    export(data, out / "ls", "label-studio")
    found = read("label_studio", out / "ls")
    said = {(row["item"], row["annotator"], row["answer"]) for row in found["rows"]}
    assert said == set(data.votes[["item", "annotator", "answer"]].itertuples(index=False))
    assert found["tasks"] == [True] * 8
    assert found["annotations"] == [True] * 24


def test_crowd_kit_finds_the_majority(data, out, read):
    export(data, out / "votes.csv", "crowd-kit")
    found = read("crowd_kit", out / "votes.csv")
    most = data.votes.groupby("item")["answer"].agg(lambda said: said.mode()[0]).to_dict()
    assert found["majority"] == most
    assert set(found["dawid_skene"]) == set(most)
