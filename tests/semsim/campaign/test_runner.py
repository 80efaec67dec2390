"""Campaigns on Dask: complete, resumable, and the same however many workers there are."""

import os
import signal
from dataclasses import asdict, replace
from pathlib import Path

import copies
import numpy as np
import pytest
from distributed import Client
from helpers import until
from made_campaign import one_thread_cluster, results_in, toy_campaign

from semsim.base.errors import JobError, SettingsError, StopRequestedError
from semsim.base.sets.reader import read_set
from semsim.campaign import work
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.forecast import Estimate
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder
from semsim.grid.machines import connect
from semsim.grid.previews import STEPS, Preview
from semsim.images import png_of
from semsim.targets.noticed import signs_of
from semsim.targets.train_settings import TrainSettings

ROOT = Path(__file__).resolve().parents[3]
CPU = HowToRun(device="cpu")
RETRY = replace(CPU, retry=True)
CAMPAIGN = toy_campaign(attacks=("invgrad:steps=40",), images=2, together=1)


@pytest.fixture(scope="module")
def client():
    with one_thread_cluster() as cluster, Client(cluster, set_as_default=False) as opened:
        yield opened


class StopWhen:
    """A report that asks for a stop once `notes` says so, as a job's reporter does."""

    def __init__(self, holds):
        self.holds = holds

    def __call__(self, progress):
        if self.holds(progress):
            raise StopRequestedError("asked")


def test_a_stopped_campaign_goes_on_and_does_nothing_twice(client, tmp_path):
    plan = plan_of(toy_campaign())
    store, keys = PieceStore(tmp_path), [cell.key for cell in plan.cells]
    with pytest.raises(StopRequestedError):
        run_plan(plan, tmp_path, client, CPU, StopWhen(lambda p: "3 of 6" in p.note))
    before = {key: store.cells.path(key).stat().st_mtime_ns for key in keys if key in store.cells}
    assert len(before) >= 3
    assert not list((tmp_path / "runs/toy").glob("*/run.json"))
    told = []
    result = run_plan(plan, tmp_path, client, CPU, told.append)
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert told[-1].done == told[-1].total
    assert told[-1].note == "6 of 6 images attacked"
    assert not any(one.paced for one in told if "training" in one.note)
    assert any(one.note.startswith("attacking: ") for one in told)
    assert (result["n_ok"], result["n_failed"]) == (6, 0)
    assert result["reused"] == len(before)
    assert result["computed"] == 6 - len(before)
    assert {key: store.cells.path(key).stat().st_mtime_ns for key in before} == before

    again = run_plan(plan, tmp_path, client, CPU)
    assert (again["computed"], again["trained"], again["reused"]) == (0, 0, 6)
    assert again["sets"] == result["sets"]
    sets = [read_set(Path(folder)) for folder in result["sets"]]
    assert [one.model for one in sets] == ["cnn-small/none/invgrad", "cnn-small/crop-flip/invgrad"]
    for one in sets:
        assert one.run["n_ok"] == 3
        assert 0 <= one.run["target"]["accuracy"] <= 1
        assert (one.manifest["residual"] > 0).all()
        assert {Path(p).suffix for p in one.pairs["attacked"]} == {".png"}
    assert (sets[0].manifest["attacked"] == sets[0].manifest["original"]).all()
    assert not (sets[1].manifest["attacked"] == sets[1].manifest["original"]).all()


def test_an_attack_is_seen_while_it_runs_and_its_result_is_the_same(client, tmp_path):
    long = toy_campaign(strategies=("none",), images=1, attacks=("invgrad:steps=150",))
    plan, folder, seen = plan_of(long), RunFolder(tmp_path, "toy"), []
    (planned,) = plan.sets
    (cell,) = planned.cells

    def stop_when_seen(progress):
        if (found := folder.seen()) is not None:
            seen.append(found)
            raise StopRequestedError("asked")

    with pytest.raises(StopRequestedError):
        run_plan(plan, tmp_path, client, CPU, stop_when_seen)
    assert seen[0].key == cell.key
    assert 1 <= len(seen[0].steps) <= STEPS
    assert [path.name for path in folder.path.iterdir()] == ["campaign.json"]

    # As a run that was killed leaves it: the next one does not show what is not so any more.
    folder.show(cell.key, (Preview(place=0, share=0.9, png=png_of(np.zeros((4, 4, 3), np.uint8))),))
    told = []
    run_plan(plan, tmp_path, client, CPU, lambda progress: told.append(folder.seen()))
    assert told[0] is None
    assert not (folder.path / "seen.json").exists()
    images = plan.images[planned.target.dataset]
    asked = work.Assault(
        images=images,
        defence=planned.target.plan.defence,
        attack=planned.attack,
        draws=(cell.draw,),
    )
    store = PieceStore(tmp_path)
    (unseen,) = work.attack(store.weights.read(planned.target.key), asked, "cpu")
    kept = store.cells.read(cell.key).result
    assert np.array_equal(kept.picture, unseen.result.picture)
    assert kept.objective == unseen.result.objective


def test_a_kept_target_that_is_broken_is_named_and_trained_again_once_it_is_deleted(tmp_path):
    one = toy_campaign(strategies=("none",), images=1)
    run_plan(plan_of(one), tmp_path, None, CPU)
    more = plan_of(replace(one, name="more", images=2))
    kept = PieceStore(tmp_path).weights.path(more.targets[0].key)
    kept.write_bytes(kept.read_bytes()[:-100])
    (why,) = run_plan(more, tmp_path, None, CPU)["undone"]
    assert f"{kept} is not a readable weight file" in why
    assert why.endswith("Delete it, and it is trained again.")
    kept.unlink()
    result = run_plan(more, tmp_path, None, CPU)
    assert (result["trained"], result["n_ok"], result["undone"]) == (1, 2, {})


def test_what_cannot_be_done_is_recorded_with_its_reason(client, tmp_path):
    # The noise drives the weights to infinity in the first epoch.
    noisy = toy_campaign(strategies=("gradient-noise:std=1e38",), train=TrainSettings(epochs=2))
    plan = plan_of(noisy)
    result = run_plan(plan, tmp_path, client, CPU)
    assert (result["n_ok"], result["n_failed"], result["n_crashed"]) == (0, 3, 3)
    (found,) = [read_set(Path(folder)) for folder in result["sets"]]
    assert found.run["n_failed"] == 3
    assert found.manifest["error"].str.contains("could not be trained").all()
    assert found.manifest["error"].str.contains("Traceback").all()
    assert run_plan(plan, tmp_path, client, CPU)["computed"] == 0
    again = run_plan(plan, tmp_path, client, RETRY)
    assert (again["computed"], again["n_crashed"], again["trained"]) == (3, 3, 0)


def spoilt(plan):
    """The plan, its second image of no class of the target: the loss itself breaks."""
    text, images = next(iter(plan.images.items()))
    labels = images.labels.clone()
    labels[1] = 10_000
    subjects = tuple(images.shown(place) for place in range(len(images)))
    return replace(plan, images={text: replace(images, labels=labels, subjects=subjects)})


def test_one_image_that_breaks_does_not_take_the_others_along(client, tmp_path):
    plan = plan_of(toy_campaign(strategies=("none",)))
    result = run_plan(spoilt(plan), tmp_path, client, CPU)
    assert (result["n_ok"], result["n_failed"], result["n_crashed"]) == (2, 1, 1)
    manifest = read_set(Path(result["sets"][0])).manifest
    assert manifest["status"].tolist() == ["ok", "failed", "ok"]
    assert "Traceback" in manifest["error"][1]


def retried_and_stopped(plan, data, client):
    with pytest.raises(StopRequestedError):
        run_plan(plan, data, client, RETRY, StopWhen(lambda p: "3 of 3" in p.note))


def retried_elsewhere(plan, data, client):
    other = replace(plan, campaign=replace(plan.campaign, name="other"))
    assert run_plan(other, data, client, RETRY)["n_ok"] == 3


@pytest.mark.parametrize("retried", [retried_and_stopped, retried_elsewhere])
def test_a_set_is_written_again_where_what_crashed_has_come_since(retried, client, tmp_path):
    plan = plan_of(toy_campaign(strategies=("none",)))
    (folder,) = run_plan(spoilt(plan), tmp_path, client, CPU)["sets"]
    assert read_set(Path(folder)).run["n_crashed"] == 1
    retried(plan, tmp_path, client)
    done = run_plan(plan, tmp_path, client, CPU)
    assert (done["computed"], done["n_ok"], done["sets"]) == (0, 3, [folder])
    found = read_set(Path(folder))
    assert (found.run["n_ok"], found.run["n_crashed"]) == (3, 0)
    assert found.manifest["status"].tolist() == ["ok"] * 3


@pytest.mark.parametrize(
    "same",
    [
        {"attacks": ("invgrad:steps=3", "invgrad:paper,steps=3")},
        {"architectures": ("cnn-small:width=4", "cnn-small: width=4")},
        {"trainings": ("", "epochs=1")},
    ],
)
def test_sets_that_differ_in_words_alone_share_their_images(same, tmp_path):
    asked = {"attacks": ("invgrad:steps=3",), "strategies": ("none",), **same}
    plan = plan_of(toy_campaign(images=2, train=TrainSettings(epochs=1), **asked))
    first, second = plan.sets
    assert first.cells == second.cells
    assert first.model != second.model
    done = run_plan(plan, tmp_path, None, CPU)
    assert (done["trained"], done["computed"], len(done["sets"])) == (1, 2, 2)
    one, other = (read_set(Path(folder)) for folder in done["sets"])
    assert one.manifest.equals(other.manifest)


def test_a_training_that_two_sets_share_is_told_once(tmp_path):
    campaign = toy_campaign(
        attacks=("invgrad:steps=3",),
        strategies=("none",),
        trainings=("", "epochs=1"),
        images=2,
        train=TrainSettings(epochs=1),
    )
    plan = plan_of(campaign)
    assert len({target.key for target in plan.targets}) == 1
    assert len(plan.targets) == 2
    measured = Estimate(trainings={plan.targets[0].key: 10.0})
    told = []
    run_plan(plan, tmp_path, None, replace(CPU, estimate=measured), told.append)
    assert (told[0].done, told[0].total) == (0, 12_000)
    assert (told[-1].done, told[-1].total) == (12_000, 12_000)


def test_updates_of_clients_become_sets_that_say_what_was_shared(client, tmp_path):
    ways = ("gradient", "update:steps=2,batch=2,lr=0.1,momentum=0.5")
    campaign = toy_campaign(
        strategies=("crop-flip",), attacks=("invgrad:steps=20",), shares=ways, images=4
    )
    plan = plan_of(campaign)
    result = run_plan(plan, tmp_path, client, CPU)
    assert (result["n_ok"], result["n_failed"]) == (8, 0)
    plain, updates = (read_set(Path(folder)) for folder in result["sets"])
    assert plain.run["shared"] == {
        "name": "gradient",
        "settings": {"parameters": "all"},
        "pictures": 1,
    }
    whole = plain.run["seen"]["of"]
    assert plain.run["seen"] == updates.run["seen"] == {"parameters": whole, "of": whole}
    assert [one.run["threat"]["letter"] for one in (plain, updates)] == ["B", "C"]
    assert plain.attacker_words == f"B, labels known · {whole:,} of {whole:,} parameters (100%)"
    assert updates.run["shared"] == {
        "name": "update",
        "settings": {
            "parameters": "all",
            "steps": 2,
            "batch": 2,
            "held": 0,
            "lr": 0.1,
            "momentum": 0.5,
            "batch_norm": "train",
        },
        "pictures": 2,
        "assigned": "least sum of pixel MSE (scipy.optimize.linear_sum_assignment)",
    }
    # A client augments its pictures as one that shares a gradient of each.
    for column in ("image_id", "shift_x", "shift_y", "flipped"):
        assert updates.manifest[column].tolist() == plain.manifest[column].tolist()
    objectives = updates.manifest["objective"].tolist()
    assert objectives[0] == objectives[1] != objectives[2] == objectives[3]

    # Half a client's pictures cannot be computed: where one is lost all come again, and the same.
    (_, planned), store = plan.sets, PieceStore(tmp_path)
    before = [store.cells.read(cell.key).result.picture for cell in planned.cells]
    store.cells.forget(planned.cells[1].key)
    again = run_plan(plan, tmp_path, client, CPU)
    assert (again["computed"], again["reused"]) == (2, 6)
    after = [store.cells.read(cell.key).result.picture for cell in planned.cells]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


def test_the_part_that_is_shared_is_attacked_named_and_counted(client, tmp_path):
    ways = ("gradient", "gradient:parameters=last", "update:steps=2,batch=2,parameters=last")
    campaign = toy_campaign(
        strategies=("none",), attacks=("invgrad:steps=3",), shares=ways, images=2
    )
    result = run_plan(plan_of(campaign), tmp_path, client, CPU)
    assert (result["n_ok"], result["n_failed"]) == (6, 0)
    whole, last, update = (read_set(Path(folder)) for folder in result["sets"])
    assert last.run["seen"] == update.run["seen"]
    assert 0 < last.run["seen"]["parameters"] < last.run["seen"]["of"] == whole.run["seen"]["of"]
    assert last.run["shared"]["settings"] == {"parameters": "last"}
    assert "gradient:parameters=last" in last.model
    assert set(last.run["cells"]).isdisjoint(whole.run["cells"])
    residuals = [one.manifest["grey_residual"].tolist() for one in (whole, last)]
    assert residuals[0] != residuals[1]


def test_signs_for_a_client_stand_beside_an_attack_that_changes_the_model_alone(client, tmp_path):
    campaign = toy_campaign(
        architectures=("imprint:network=lenet,bins=16",),
        strategies=("none",),
        attacks=("imprint", "invgrad:steps=1"),
        shares=("batch-gradient:batch=2",),
        images=2,
    )
    result = run_plan(plan_of(campaign), tmp_path, client, CPU)
    trap, plain = (read_set(Path(folder)) for folder in result["sets"])
    assert "noticed" not in plain.run
    weights = PieceStore(tmp_path).weights.path(plan_of(campaign).targets[0].key)
    images = plan_of(campaign).images[campaign.datasets[0]]
    assert trap.run["noticed"] == [asdict(one) for one in signs_of(weights, images)]
    assert "a client could notice equal rows in a layer" in trap.attacker_words
    assert "client" not in plain.attacker_words


def test_another_campaign_of_the_same_name_is_refused(client, tmp_path):
    run_plan(plan_of(toy_campaign(images=1)), tmp_path, client, CPU)
    with pytest.raises(SettingsError, match="Another campaign is called 'toy'"):
        run_plan(plan_of(toy_campaign(images=2)), tmp_path, client, CPU)


def test_nobody_at_the_address():
    with (
        pytest.raises(JobError, match="No Dask scheduler answers"),
        connect("tcp://127.0.0.1:9", patience=1),
    ):
        pass


def test_what_is_no_address_is_said_and_nothing_else_is():
    wrong = ["nonsense", "nonsense://x", "tcp://a:b:1"]
    code = f"""
import sys
from semsim.base.errors import JobError
from semsim.grid.machines import connect
for one in {wrong}:
    try:
        with connect(one, patience=0.1):
            pass
    except JobError as error:
        print(error, file=sys.stderr)
"""
    done = copies.run(["-c", code], cwd=ROOT, env=os.environ)
    said = done.stderr.splitlines()  # of a client that dies as Python ends, words would follow
    assert len(said) == len(wrong)
    for one, line in zip(wrong, said, strict=True):
        assert line.startswith(f"No Dask scheduler answers at {one!r}")
        assert "as tcp://host:8786" in line


def test_a_worker_that_dies_costs_nothing(client, tmp_path):
    """One worker, then two of which one, a process, is killed: the same bytes, each cell once."""
    alone = run_plan(plan_of(CAMPAIGN), tmp_path / "one", client, CPU)
    worker = ["-m", "distributed.cli.dask_worker", client.scheduler.address, "--nthreads", "1"]
    with (tmp_path / "worker.log").open("wb") as log:
        words = [*worker, "--no-nanny", "--no-dashboard"]
        dies = copies.begin(words, cwd=ROOT, env=os.environ, out=log)
    try:
        until(lambda: len(client.scheduler_info()["workers"]) == 2, 60)
        result = run_plan(plan_of(CAMPAIGN), tmp_path / "two", client, CPU, kill_at(dies, "1 of 4"))
    finally:
        dies.kill()
        dies.wait()
    assert dies.returncode == -signal.SIGKILL
    for done in (alone, result):
        assert (done["n_ok"], done["computed"], done["trained"], done["reused"]) == (4, 4, 2, 0)
    one, two = (results_in(tmp_path / name) for name in ("one", "two"))
    assert len(one) == 2 + 4 + 4 + 2 + 2  # weights, originals, pictures, attacked, tables
    assert one == two


def kill_at(process: copies.Copy, words: str):
    """A report that kills `process` once the note has `words`."""

    def report(progress):
        if progress.note.startswith(words):
            process.kill()

    return report
