"""Judged trainings and studies as jobs: interrupted, resumed, written up."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, ImageOps

from semsim.base.cli.terminal import TerminalBar
from semsim.base.errors import (
    DataError,
    SettingsError,
    StopRequestedError,
    TrainingFailedError,
    UnknownNameError,
    WeightsError,
)
from semsim.base.jobs import folders as jobs
from semsim.cli.train import left_out_parts, left_out_text, study_parts, study_text
from semsim.learning import TrainSettings
from semsim.learning.ablations import AblationPlan, LeaveOut, summary
from semsim.learning.ablations_run import (
    ARM_FILE,
    JudgedOrder,
    Material,
    StudyJob,
    TrainingJob,
    Workplace,
    do_ablation,
    queue_ablation,
    queue_judged,
    read_materials,
    run_ablation,
    train_and_judge,
)
from semsim.learning.baselines import ALL, verdict_of
from semsim.learning.card import card_markdown, read_card
from semsim.learning.settings import STATE_FILE, Order
from semsim.learning.splits import HoldOut
from semsim.learning.train import learn
from semsim.metrics.provenance import original_keys, read_training
from semsim.papers.semsim import learned_text, study_frame
from semsim.ui.learn import study_html

SETTINGS = TrainSettings(
    backbone="lenet", lr=0.005, batch_size=8, epochs=1, triplets_per_original=2, device="cpu"
)
PLAN = AblationPlan(what="margin", values=(0.5, 1.0), settings=SETTINGS)


@pytest.fixture
def place(tmp_path):
    return Workplace(
        checkpoints=tmp_path / "checkpoints",
        scores=tmp_path / "scores",
        device="cpu",
        metrics=("mse", "lpips-alex"),
    )


@pytest.fixture
def asked(place):
    order = Order(name="mine", checkpoints=place.checkpoints, settings=SETTINGS, study="Toy")
    return JudgedOrder(order=order, hold_out=HoldOut(), licence="CC0")


@pytest.fixture
def leaving(quick):
    return LeaveOut(settings=replace(quick, epochs=1))


@pytest.fixture
def two(material, tmp_path):
    """Two studies as files, labels and votes, of two data sets."""
    files = []
    for name, one in (("a", material), ("b", material)):
        own = Material(
            labels=one.labels.assign(dataset=name, study=name),
            votes=one.votes.assign(dataset=name, study=name),
        )
        if name == "b":  # what is one picture is one original, so it has pictures of its own
            own = _mirrored(own, tmp_path / "b")
        own.labels.to_parquet(tmp_path / f"{name}-labels.parquet")
        own.votes.to_parquet(tmp_path / f"{name}.parquet")
        files.append((tmp_path / f"{name}-labels.parquet", tmp_path / f"{name}.parquet"))
    return files


def _mirrored(one: Material, folder) -> Material:
    folder.mkdir()
    moved = {}
    for number, path in enumerate(sorted(set(one.labels["original"]))):
        moved[path] = str(folder / f"{number}.png")
        with Image.open(path) as picture:
            ImageOps.mirror(picture).save(moved[path])
    return replace(one, labels=one.labels.assign(original=one.labels["original"].map(moved)))


def test_a_judged_training_writes_a_checkpoint_and_its_card(asked, material, place, tmp_path):
    told = []
    outcome = train_and_judge(asked, material, place, tmp_path, told.append)
    assert outcome["held_out"]["sample"] == "held-out"
    assert outcome["in_sample"]["sample"] == "in-sample"
    assert outcome["held_out"]["n_originals"] == 2
    assert outcome["in_sample"]["n_originals"] == 6
    tested = set(outcome["split"]["test_originals"])
    assert len(tested) == 2
    assert told[-1].done == told[-1].total
    card = read_card(asked.order.checkpoint)
    assert (card["name"], card["licence"], card["simulated"]) == ("mine", "CC0", True)
    assert card["held_out"]["metrics"] == outcome["held_out"]["metrics"]
    text = card_markdown(card)
    for words in ("Simulated votes", "Licence: CC0", "In sample", card["sha256"], "| MSE |"):
        assert words in text
    assert str(tmp_path) not in text  # a card is made to be handed on


def test_a_study_that_is_stopped_goes_on_without_doing_anything_twice(material, place, tmp_path):
    whole = run_ablation(PLAN, material, place, tmp_path / "whole")
    done = []

    def stop_in_the_second_arm(progress):
        done.append(progress)
        if progress.note.startswith("1.0") and "loss" in progress.note:
            raise StopRequestedError("enough")

    folder = tmp_path / "again"
    with pytest.raises(StopRequestedError):
        run_ablation(PLAN, material, place, folder, stop_in_the_second_arm)
    first = folder / "arms" / "0.5-seed-0" / ARM_FILE
    kept = first.stat().st_mtime_ns
    resumed = run_ablation(PLAN, material, place, folder, done.append)
    assert first.stat().st_mtime_ns == kept
    for row in (*whole["rows"], *resumed["rows"]):
        del row["seconds"]
    assert resumed == whole
    (one, other) = summary(whole["rows"])[["start", "shuffled"]].to_numpy()
    assert np.isfinite([one[0], other[0]]).all()
    assert np.isnan([one[1], other[1]]).all()  # not asked for
    assert done[-1].done == done[-1].total == 2000
    assert [row["value"] for row in whole["rows"]] == [0.5, 1.0]
    assert whole["simulated"] is True


def test_a_training_that_diverges_stops_no_other_of_its_study(material, place, tmp_path):
    """Its reason stands in text, page and rows, and means say of how many trainings they are."""
    plan = replace(PLAN, values=(3e38, 0.5))
    found = run_ablation(plan, material, place, tmp_path)
    first, second = found["rows"]
    assert (first["value"], first["name"]) == (3e38, "3e-38-seed-0")
    assert "The loss became" in first["why"]
    assert (second["value"], second["held_out"]["n_originals"]) == (0.5, 2)
    table = summary(found["rows"])
    assert table[["value", "seeds", "failed"]].to_numpy().tolist() == [
        ["3e+38", 0, 1],
        ["0.5", 1, 0],
    ]
    assert np.isnan(table["auc"][0])
    assert np.isfinite(table["auc"][1])
    for said in (study_text(found), study_html(found)):
        assert f"3e-38-seed-0 is in no number: {first['why']}" in said
        assert "0 of 1" in said
    assert study_parts(found)["failures"][-1] == {"value": 3e38, "seed": 0, "why": first["why"]}
    assert study_frame(found["rows"])["value"].tolist() == ["3e+38", "0.5"]


def test_a_study_has_a_training_on_shuffled_votes_beside_each_of_its_own(material, place, tmp_path):
    plan = replace(PLAN, values=(0.5,), controls=ALL)
    found = run_ablation(plan, material, place, tmp_path)
    assert np.isfinite(summary(found["rows"])["shuffled"]).all()
    assert list(tmp_path.rglob(STATE_FILE)) == []  # each is three times its network


def test_of_a_judged_training_only_the_jobs_own_state_is_left(asked, material, place, tmp_path):
    train_and_judge(replace(asked, controls=ALL), material, place, tmp_path)
    assert list(tmp_path.rglob(STATE_FILE)) == [tmp_path / STATE_FILE]


def test_a_log_has_a_line_an_epoch_of_every_arm(material, place, tmp_path, capsys):
    with TerminalBar() as report:
        plan = replace(PLAN, settings=replace(SETTINGS, epochs=2))
        run_ablation(plan, material, place, tmp_path / "study", report)
    lines = [line.split("% ")[1] for line in capsys.readouterr().err.splitlines()]
    losses = [line.split(" loss ")[0] for line in lines if " loss " in line]
    arms = ("0.5-seed-0, 1 of 2", "1.0-seed-0, 2 of 2")
    assert losses == [f"{arm}, epoch {number} of 2:" for arm in arms for number in (1, 2)]


def test_jobs_remember_what_they_were_asked(asked, material, place, tmp_path):
    root = tmp_path / "jobs"
    job = queue_judged(asked, material, place, root)
    assert job.kind == "learn"
    assert job.title == "Train mine on simulated votes"
    order = TrainingJob(asked=asked, place=place, simulated=True)
    assert jobs.read_order(job, TrainingJob) == order
    with pytest.raises(SettingsError, match="being trained already"):
        queue_judged(asked, material, place, root)
    jobs.request_stop(job)
    people = Material(labels=material.labels.assign(simulated=False))
    assert queue_judged(asked, people, place, root).title == "Train mine"
    study = queue_ablation(PLAN, material, place, root)
    order = jobs.read_order(study, StudyJob)
    outcome = do_ablation(order, study.folder, lambda progress: None)
    assert [row["value"] for row in outcome["rows"]] == [0.5, 1.0]
    assert outcome["hold_out"]["kind"] == "original"


def test_a_name_of_a_checkpoint_is_taken(asked, material, place, tmp_path):
    asked.order.checkpoint.parent.mkdir()
    asked.order.checkpoint.touch()
    with pytest.raises(SettingsError, match="choose another name"):
        queue_judged(asked, material, place, tmp_path / "jobs")


def test_weights_that_saw_votes_of_the_test_are_no_start(asked, material, place, tmp_path):
    train_and_judge(asked, material, place, tmp_path / "first")
    seen = set(read_training(asked.order.checkpoint).pixels)
    settings = replace(SETTINGS, weights=str(asked.order.checkpoint))
    order = replace(asked.order, name="second", settings=settings)
    other = JudgedOrder(order=order, hold_out=HoldOut(fraction=0.5))
    words = r"mine.safetensors, have learned from votes on \d of 4 originals in the test"
    with pytest.raises(DataError, match=words):
        queue_judged(other, material, place, tmp_path / "jobs")
    with pytest.raises(DataError, match=words):
        train_and_judge(other, material, place, tmp_path / "second")
    study = replace(PLAN, settings=settings, hold_out=other.hold_out)
    with pytest.raises(DataError, match=words):
        queue_ablation(study, material, place, tmp_path / "jobs")
    with pytest.raises(DataError, match=words):
        run_ablation(study, material, place, tmp_path / "study")
    # By the same test it can be judged; and what it learns further on, both have learned.
    queue_judged(replace(other, hold_out=asked.hold_out), material, place, tmp_path / "jobs")
    rest = material.labels[~original_keys(material.labels).isin(seen)]
    learn(order, rest, tmp_path / "third", lambda progress: None)
    learned = set(read_training(order.checkpoint).pixels)
    assert learned == seen | set(original_keys(rest))
    assert len(learned) > len(seen)


def test_weights_that_are_not_there_make_no_job(asked, material, two, place, leaving, tmp_path):
    settings, root = replace(SETTINGS, weights=str(tmp_path / "gone.pth")), tmp_path / "jobs"
    changed = replace(asked, order=replace(asked.order, settings=settings))
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        queue_judged(changed, material, place, root)
    both = read_materials([one for one, _ in two], [])
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        queue_ablation(replace(leaving, settings=settings), both, place, root)
    assert jobs.list_jobs(root) == []


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ({"input_size": 8}, r"'lenet' cannot take images of 8×8 \(.+\)\. Set another input_size"),
        ({"backbone": "nobody"}, "No backbone is called 'nobody'"),
    ],
)
def test_a_network_that_cannot_be_makes_no_job(asked, material, place, tmp_path, network, told):
    settings, root = replace(SETTINGS, **network), tmp_path / "jobs"
    changed = replace(asked, order=replace(asked.order, settings=settings))
    drawn = torch.random.get_rng_state()
    with pytest.raises((SettingsError, UnknownNameError), match=told):
        queue_judged(changed, material, place, root)
    with pytest.raises((SettingsError, UnknownNameError), match=told):
        queue_ablation(replace(PLAN, settings=settings), material, place, root)
    assert jobs.list_jobs(root) == []
    queue_judged(asked, material, place, root)
    assert torch.equal(drawn, torch.random.get_rng_state())


def test_votes_may_order_what_no_majority_does(asked, material, place, tmp_path):
    one_kind = material.labels[material.labels.recognisable]
    shares = one_kind.assign(n_recognised=lambda t: 3 + (t.index // 2) % 2)
    settings = replace(SETTINGS, ordering="votes")
    by_votes = replace(asked, order=replace(asked.order, settings=settings))
    assert queue_judged(by_votes, Material(labels=shares), place, tmp_path / "jobs")


def test_what_cannot_be_is_refused_before_a_job_is_made(asked, material, place, tmp_path):
    root = tmp_path / "jobs"
    undecided = Material(labels=material.labels.assign(recognisable=True))
    with pytest.raises(DataError, match="none has both"):
        queue_judged(asked, undecided, place, root)
    budget = AblationPlan(what="budget", values=(7,), settings=SETTINGS)
    with pytest.raises(DataError, match="A budget of 7 originals is more than the 6"):
        queue_ablation(budget, material, place, root)
    away = replace(asked, hold_out=HoldOut(kind="architecture", value="other"))
    with pytest.raises(DataError, match="Known: net"):
        queue_judged(away, material, place, root)
    assert jobs.list_jobs(root) == []


def test_a_control_that_diverges_takes_nothing_from_the_training(
    asked, material, place, tmp_path, monkeypatch
):
    def diverges(order, *arguments):
        if order.settings.shuffle:
            raise TrainingFailedError("The loss became nan in epoch 5.")
        return learn(order, *arguments)

    monkeypatch.setattr("semsim.learning.train.learn", diverges)
    outcome = train_and_judge(replace(asked, controls=ALL), material, place, tmp_path)
    why = outcome["held_out"]["absent"]["shuffled"]
    assert why == "5 shuffles failed. The loss became nan in epoch 5"
    said = " ".join(verdict_of(outcome["held_out"]).sentences)
    assert "Not compared with the same training on shuffled votes: 5 shuffles failed." in said
    assert read_card(asked.order.checkpoint)["held_out"]["metrics"]
    plan = replace(PLAN, values=(0.5,), controls=ALL)
    (row,) = run_ablation(plan, material, place, tmp_path / "study")["rows"]
    assert row["held_out"]["absent"]["shuffled"] == why


def test_studies_that_cannot_be_judged_together_are_refused_before_a_job_is_made(
    asked, material, place, tmp_path
):
    asked_for = np.resize([3, 5], len(material.labels))
    labels = material.labels.assign(votes_per_item=asked_for)
    root = tmp_path / "jobs"
    mixed = replace(material, labels=labels, votes=material.votes.drop(columns="votes_per_item"))
    for queue in (
        lambda: queue_judged(asked, mixed, place, root),
        lambda: queue_ablation(PLAN, mixed, place, root),
    ):
        with pytest.raises(DataError, match=r"do not go together.*got 3, 5"):
            queue()
    assert jobs.list_jobs(root) == []


def test_every_data_set_is_judged_by_a_semsim_that_never_saw_it(
    two, place, leaving, tmp_path, monkeypatch
):
    monkeypatch.setattr("semsim.learning.ablations_run.SHUFFLES", 2)
    material = read_materials([one for one, _ in two], [votes for _, votes in two])
    assert set(material.labels["dataset"]) == {"a", "b"}
    people = material.votes.groupby("dataset")["annotator"].unique()
    assert not set(people["a"]) & set(people["b"])  # a name in two studies is not one person
    leaving = replace(leaving, controls=ALL)
    found = run_ablation(leaving, material, place, tmp_path / "out")
    assert [row["left_out"] for row in found["rows"]] == ["a", "b"]
    assert found["simulated"]
    assert (tmp_path / "out/a/semsim.safetensors").exists()
    for row in found["rows"]:
        assert row["n_originals"] == 6  # of the other one's eight; two are for its curves
        assert row["held_out"]["n_originals"] == 8
        named = {one["metric"] for one in row["held_out"]["metrics"]}
        own = "semsim:semsim"
        assert {"mse", own, f"{own}.start", "shuffled"} <= named
    kept = (tmp_path / "out/a/arm.json").stat().st_mtime_ns
    assert run_ablation(leaving, material, place, tmp_path / "out") == found
    assert (tmp_path / "out/a/arm.json").stat().st_mtime_ns == kept


def test_one_that_leaves_nothing_to_learn_from_stops_no_other(two, place, leaving, tmp_path):
    material = read_materials([one for one, _ in two], ())
    assert material.votes is None
    none = material.labels["dataset"].eq("b")
    labels = material.labels.assign(
        recognisable=material.labels["recognisable"].mask(none, False).astype("boolean")
    )
    found = run_ablation(leaving, Material(labels=labels), place, tmp_path / "out")
    rows = {row["left_out"]: row for row in found["rows"]}
    assert "of 8 originals none has both" in rows["a"]["why"].lower()
    assert "why" not in rows["b"]


def test_a_training_that_diverges_stops_no_other_that_leaves_one_out(two, place, leaving, tmp_path):
    material = read_materials([one for one, _ in two], ())
    run_ablation(leaving, material, place, tmp_path)
    shutil.rmtree(tmp_path / "a")
    wild = replace(leaving, settings=replace(leaving.settings, lr=1e30))
    found = run_ablation(wild, material, place, tmp_path)  # b is there already
    first, second = found["rows"]
    assert first["left_out"] == "a"
    assert "The loss became" in first["why"]
    assert "checkpoint" not in first
    assert (second["left_out"], "why" in second) == ("b", False)
    text = left_out_text(found)
    assert f"Without a: {first['why']}" in text
    assert "Of 2 trainings 1 is judged here." in text
    assert {"left_out": "a", "why": first["why"]} in left_out_parts(found)["failures"]
    learned = learned_text(found["rows"])
    assert f"a: {first['why']}" in learned
    assert "Of 2 trainings 1 is judged here." in learned


def test_names_that_files_cannot_have_are_not_taken_for_one(two, place, leaving, tmp_path):
    found = read_materials([one for one, _ in two], ())
    called = {"a": "数据", "b": "图像"}
    labels = found.labels.assign(dataset=found.labels["dataset"].map(called))
    rows = run_ablation(leaving, Material(labels=labels), place, tmp_path)["rows"]
    assert [row["left_out"] for row in rows] == sorted(called.values())
    assert len({row["checkpoint"] for row in rows}) == 2


def test_one_that_leaves_nothing_to_judge_by_stops_no_other(material, place, leaving, tmp_path):
    labels = material.labels
    first = labels["image_id"] == labels["image_id"].iloc[0]
    rare = labels[first].assign(attack="dlg")  # of one original, which has to be learned from
    both = Material(labels=pd.concat([labels, rare], ignore_index=True))
    found = run_ablation(replace(leaving, kind="attack"), both, place, tmp_path)
    rows = {row["left_out"]: row for row in found["rows"]}
    assert "leaves nothing to test on" in rows["dlg"]["why"]
    assert "of 1 original none has both" not in rows["invgrad"].get("why", "")


def test_a_folder_that_was_moved_says_where_its_checkpoints_are_now(two, place, leaving, tmp_path):
    material = read_materials([one for one, _ in two], ())
    run_ablation(leaving, material, place, tmp_path / "out")
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    found = run_ablation(leaving, material, place, tmp_path / "elsewhere")
    for row in found["rows"]:
        assert row["checkpoint"] == str(
            tmp_path / "elsewhere" / row["left_out"] / "semsim.safetensors"
        )


def test_what_cannot_be_is_told(two, place, leaving, tmp_path):
    (labels, votes), _ = two
    alone = read_materials([labels], [votes])
    with pytest.raises(DataError, match="only one dataset"):
        run_ablation(leaving, alone, place, tmp_path)
    with pytest.raises(DataError, match="1 tables of labels and 2 of votes"):
        read_materials([labels], [votes, votes])
    with pytest.raises(DataError, match=r"No votes at .*gone\.parquet"):
        read_materials([labels], [votes.with_name("gone.parquet")])
    with pytest.raises(DataError, match="the same reconstructions"):
        read_materials([labels, labels], ())
    with pytest.raises(SettingsError, match="Leave out each dataset"):
        replace(leaving, kind="original")
