"""A judge is trained on its own, says how good it is, and reads sets whole or not at all."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from semsim.base.errors import DataError, SettingsError, WeightsError
from semsim.base.jobs import folders as jobs
from semsim.base.progress import silent
from semsim.base.sets.reader import read_set
from semsim.cli.main import app
from semsim.datasets.symbols import GLYPHS, Symbols
from semsim.distractors.apply import apply_judge
from semsim.distractors.judge_job import JudgeOrder, do_judge, queue_judge, seed_of
from semsim.distractors.registry import find_judge, judge_path, judges
from semsim.images import to_uint8
from semsim.metrics import Resources
from semsim.metrics.recogniser import find_classifier
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set
from semsim.targets.degrade import as_attacks_leave_them
from semsim.targets.train_settings import TrainSettings

TRY = TrainSettings(epochs=1, lr=0.05)


def order(folder, name="one", dataset="symbols:train_per_class=2,test_per_class=2"):
    return JudgeOrder(
        name=name, dataset=dataset, train=TRY, checkpoints=folder, data=folder, device="cpu"
    )


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Two judges of one data set."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in ("one", "two"):
        place = folder / name
        place.mkdir()
        do_judge(order(folder, name), place, silent)
    return folder


def make_set(folder, classes=None, predictor=None):
    test = Symbols(test_per_class=3)("test")
    pictures = [to_uint8(image) for image in test.images[:3]]
    run = {
        "model": "m",
        "attack": {"name": "a"},
        "dataset": {"name": "symbols", "classes": list(classes or test.classes)},
    }
    images = [
        SetImage(
            image_id=str(number),
            class_id=0,
            class_name=test.classes[int(test.labels[number])],
            original=picture,
            reconstruction=None if number == 2 else 255 - picture,
            error="no picture" if number == 2 else "",
        )
        for number, picture in enumerate(pictures)
    ]
    return write_set(folder, run | ({"predictor": predictor} if predictor else {}), images)


def test_the_card_says_how_good_it_is_clean_and_degraded_beside_chance(shelf):
    card = json.loads((shelf / "judges/one.card.json").read_text())
    for kind in ("clean", "degraded"):
        assert 0 <= card[kind]["accuracy"] <= 1
        assert card[kind]["n_classes"] == 47
    text = (shelf / "judges/one.card.md").read_text()
    assert text.count("chance is 2.1%") == 2
    assert card["sha256"][:12] in text
    assert set(judges(shelf)) == {"one", "two"}


def test_two_judges_of_one_data_set_share_no_weights(shelf):
    cards = [
        json.loads((shelf / f"judges/{name}.card.json").read_text()) for name in ("one", "two")
    ]
    assert cards[0]["sha256"] != cards[1]["sha256"]
    assert seed_of(order(shelf, "one")) != seed_of(order(shelf, "two"))


def test_a_name_is_taken_once_and_a_missing_judge_is_named(shelf, tmp_path):
    with pytest.raises(SettingsError, match="another name"):
        queue_judge(order(shelf, "one"), tmp_path / "jobs")
    with pytest.raises(SettingsError, match="cannot name a distractor model"):
        queue_judge(order(shelf, "../one"), tmp_path / "jobs")
    with pytest.raises(WeightsError, match=r"There are: one, two"):
        find_judge("three", shelf)


def test_an_interrupted_training_goes_on_to_the_same_weights(shelf, tmp_path):
    asked = replace(order(tmp_path), train=replace(TRY, epochs=2))

    def stop(progress):
        if progress.values.get("epoch", 0) > 1:
            raise InterruptedError

    work = tmp_path / "job"
    work.mkdir()
    with pytest.raises(InterruptedError):
        do_judge(asked, work, stop)
    assert not judge_path("one", tmp_path).exists()
    again = do_judge(asked, work, silent)
    other = tmp_path / "other"
    other.mkdir()
    straight = do_judge(replace(asked, checkpoints=other), other, silent)
    assert [again[kind] for kind in ("clean", "degraded", "sha256")] == [
        straight[kind] for kind in ("clean", "degraded", "sha256")
    ]
    assert "created" in straight
    assert "created" not in judges(other)["one"]  # or no hash would be another's


def test_predictions_are_written_into_sets_and_said_to_be_overwritten(shelf, tmp_path):
    sets = [make_set(tmp_path / name) for name in "ab"]
    first = apply_judge(find_judge("one", shelf), sets)
    assert [one.before for one in first] == ["", ""]
    table = pd.read_parquet(sets[0] / "predictions.parquet")
    assert table.groupby(["image_id", "subject"]).size().shape == (5,)  # one attack failed
    assert np.exp(table["log_probability"]).groupby(
        [table["image_id"], table["subject"]]
    ).sum().to_numpy() == pytest.approx(1)
    assert read_set(sets[1]).run["predictor"]["name"] == "one"
    assert len(read_set(sets[1]).pairs) == 2

    (second, _) = apply_judge(find_judge("two", shelf), sets)
    assert "predictions of one were overwritten" in second.said
    assert not np.allclose(
        pd.read_parquet(sets[0] / "predictions.parquet")["log_probability"],
        table["log_probability"],
    )


def test_other_classes_are_refused_and_no_set_is_touched(shelf, tmp_path):
    good = make_set(tmp_path / "good")
    strange = make_set(tmp_path / "strange", classes=[*GLYPHS, "yak"])
    with pytest.raises(DataError, match=r"'yak' is known to one of them only.*Nothing was written"):
        apply_judge(find_judge("one", shelf), [good, strange])
    assert not (good / "predictions.parquet").exists()
    assert "predictor" not in read_set(good).run


def test_what_attacks_do_stays_a_picture_and_leaves_some_alone():
    images = torch.rand(64, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    made = as_attacks_leave_them(images, torch.Generator().manual_seed(1))
    assert made.shape == images.shape
    assert 0 <= float(made.min()) <= float(made.max()) <= 1
    same = (made == images).flatten(1).all(dim=1).float().mean()
    assert 0.1 < same < 0.5
    assert torch.equal(made, as_attacks_leave_them(images, torch.Generator().manual_seed(1)))
    spread = (made.amax(dim=1) - made.amin(dim=1)).mean(dim=(1, 2))
    before = (images.amax(dim=1) - images.amin(dim=1)).mean(dim=(1, 2))
    assert (spread < 0.5 * before).any()  # lost colours


def test_the_commands_train_list_and_apply(tmp_path):
    def typed(*words):
        return CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)

    place = ("--checkpoints", tmp_path / "weights")
    nothing = typed("distractors", "list", *place)
    assert "No distractor model in" in nothing.output
    made = typed(
        *("distractors", "train", "--name", "J", "--dataset", "symbols:train_per_class=1"),
        *("--train", "epochs=1", "--data-dir", tmp_path, "--device", "cpu", *place),
    )
    assert made.exit_code == 0, made.output
    assert "Test pictures as attacks leave them" in made.output
    assert "no better than guessing" in typed("distractors", "list", *place).output
    folder = make_set(tmp_path / "set")
    applied = typed("distractors", "apply", "--name", "J", "--set", folder, *place)
    assert "5 pictures judged" in applied.output


def test_the_name_of_the_built_in_classifier_is_taken(tmp_path):
    with pytest.raises(SettingsError, match="choose another name"):
        queue_judge(order(tmp_path, "recogniser"), tmp_path / "jobs")


def test_a_semsim_called_as_a_judge_does_not_stand_for_it(tmp_path):
    resources = Resources(checkpoints=tmp_path, classifiers=())
    judge = judge_path("mine", tmp_path)
    judge.parent.mkdir()
    for path in (tmp_path / "mine.safetensors", judge):
        path.write_bytes(b"")
    assert find_classifier("mine", resources) == judge


def test_the_command_typed_again_goes_on_with_its_job(tmp_path):
    asked = order(tmp_path, "mine")
    root = tmp_path / "jobs"
    stopped = queue_judge(asked, root)
    jobs.request_stop(stopped)
    words = ["distractors", "train", "--dataset", asked.dataset, "--name", "mine"]
    words += ["--train", "epochs=1,lr=0.05", "--device", "cpu"]
    words += ["--checkpoints", str(tmp_path), "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (job,) = jobs.list_jobs(root)
    assert (job.id, jobs.state(job)) == (stopped.id, jobs.JobState.DONE)
