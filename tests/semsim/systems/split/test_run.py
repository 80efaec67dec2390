import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from made_campaign import one_thread_cluster

from semsim.base.errors import JobError, StopRequestedError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState
from semsim.base.sets.reader import read_set
from semsim.images import read_images
from semsim.metrics.pixel import psnr
from semsim.systems.split.plan import (
    ShadowAttack,
    SplitJob,
    SplitPlace,
    SplitPlan,
    SplitTrainSettings,
    plan_of,
    queue_split,
)
from semsim.systems.split.run import (
    FeatureLeak,
    SplitStore,
    check_shared,
    run_split,
    write_split_set,
)
from semsim.types import LabelledImages

PLAN = SplitPlan(
    name="tiny",
    dataset="digits:size=12,count=180",
    networks=("small:width=2",),
    defences=("none", "ensembler:bodies=2,selected=1"),
    attacks=("adaptive", "one-body", "oracle"),
    train=SplitTrainSettings(epochs=1, ensemble_epochs=1, batch_size=256),
    shadow=ShadowAttack(epochs=1, decoder_epochs=1, batch_size=256),
    attack_seeds=(0, 1),
    images=4,
    attack_invalid=True,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder, the outcome and the reports of one finished experiment."""
    folder, told = tmp_path_factory.mktemp("split"), []
    return folder, run_split(PLAN, place(folder), told.append), told


def place(folder):
    return SplitPlace(data=folder, checkpoints=folder / "checkpoints", device="cpu")


def test_every_attack_has_a_row_and_progress_reaches_its_end(done):
    _, outcome, told = done
    found = [(r["defence"][:4], r["attack"], r["body"], r["attack_seed"]) for r in outcome["rows"]]
    ensemble = [("ense", "adaptive", -1), *(("ense", "one-body", b) for b in (0, 1))]
    expected = [("none", "adaptive", -1), *ensemble, ("ense", "oracle", -1)]
    assert found == [(*one, seed) for one in expected for seed in (0, 1)]
    assert told[-1].done == told[-1].total
    assert [p.done for p in told] == sorted(p.done for p in told)


def test_what_was_there_before_is_counted(done, tmp_path):
    folder, outcome, _ = done
    assert outcome["reused"] == 0
    again = run_split(replace(PLAN, name="again"), place(folder))
    # The recogniser, two systems, and five attacks with two seeds.
    assert again["reused"] == 1 + 2 + 5 * 2


def test_other_test_images_are_classified_anew(tmp_path):
    few, many = (
        replace(
            PLAN,
            dataset=f"symbols:train_per_class=2,test_per_class={count}",
            networks=("small:width=4",),
            defences=("none",),
            attacks=("adaptive",),
            train=SplitTrainSettings(epochs=4, batch_size=64),
            attack_seeds=(0,),
        )
        for count in (1, 4)
    )
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    run_split(few, place(shared))
    again, fresh = run_split(many, place(shared)), run_split(many, place(alone))
    right = fresh["rows"][0]["accuracy"]
    assert 47 * right != int(47 * right)  # what the few test images could not have said
    assert again["rows"][0]["accuracy"] == right
    assert again["reused"] == 2  # the recogniser and the system, which learned the same images


def test_a_set_holds_what_was_scored(done):
    _, outcome, _ = done
    assert len(outcome["sets"]) == 5  # of the first attack seed
    for folder in outcome["sets"]:
        found = read_set(folder)
        pairs = found.pairs
        assert len(pairs) == PLAN.images
        assert found.run["target"]["valid"] in (True, False)
    first = read_set(outcome["sets"][0]).pairs
    scores = psnr(
        read_images(first["original"].tolist()), read_images(first["reconstruction"].tolist())
    )
    # Originals are rounded to bytes on disk.
    np.testing.assert_allclose(scores.mean(), outcome["rows"][0]["psnr"], atol=0.1)


def test_a_row_counts_the_pictures_that_its_set_calls_worse_than_grey(done):
    _, outcome, _ = done
    rows = [row for row in outcome["rows"] if row["attack_seed"] == 0]
    for row, folder in zip(rows, outcome["sets"], strict=True):
        made = read_set(folder).manifest
        worse = [not r < g for r, g in zip(made["residual"], made["grey_residual"], strict=True)]
        assert list(made["worse_than_grey"]) == worse
        assert row["worse_than_grey"] == np.mean(worse)


def test_what_needs_no_feature_is_told(done):
    known = done[1]["baselines"]
    assert {"grey_ssim", "grey_psnr", "mean_ssim", "mean_psnr"} < set(known)
    assert known["mean_psnr"] > known["grey_psnr"]
    assert known["chance"] == 7 / 40  # the commonest of the ten digits


def test_an_ensemble_costs_the_server_twice_and_the_client_nothing_more_to_send(done):
    plain, ensemble = done[1]["costs"]
    assert ensemble["server"] == 2 * plain["server"]
    assert ensemble["sent"] == plain["sent"]
    assert ensemble["returned"] == 2 * plain["returned"]


def test_a_finished_experiment_is_not_computed_again(done):
    folder, outcome, _ = done
    told = []
    again = run_split(PLAN, place(folder), told.append)
    assert again["rows"] == outcome["rows"]
    assert [progress.note for progress in told] == ["done"]


def test_workers_of_a_scheduler_find_what_this_process_finds(done, tmp_path):
    told = []
    with one_thread_cluster() as cluster:
        address = cluster.scheduler_address
        spread = run_split(PLAN, place(tmp_path), told.append, scheduler=address)
    pd.testing.assert_frame_equal(
        pd.DataFrame(spread["rows"]), pd.DataFrame(done[1]["rows"]), atol=1e-3
    )
    # All was there already when it was put together.
    assert spread["reused"] == done[1]["reused"] + 1 + 2 + 5 * 2
    assert {"systems trained: 2 of 2", "attacks made: 10 of 10"} <= {p.note for p in told}


def test_workers_that_keep_what_they_make_elsewhere_are_told(done, tmp_path):
    made = SplitStore(done[0]).systems
    keys = [path.stem for path in made.folder.glob("*.pt")]
    check_shared(made, keys)
    with pytest.raises(JobError, match="one that all machines share"):
        check_shared(SplitStore(tmp_path).systems, keys)


def test_two_processes_find_what_one_finds(done, tmp_path):
    told = []
    spread = run_split(PLAN, place(tmp_path), told.append, 2)
    pd.testing.assert_frame_equal(
        pd.DataFrame(spread["rows"]), pd.DataFrame(done[1]["rows"]), atol=1e-3
    )
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert told[-1].done == told[-1].total
    assert {"systems trained: 2 of 2", "attacks made: 10 of 10"} <= {p.note for p in told}


def test_a_stop_ends_the_processes(tmp_path):
    def stop(progress):
        raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        run_split(replace(PLAN, defences=("none",)), place(tmp_path), stop, 2)


def test_an_under_trained_defence_is_marked_and_not_scored(done, monkeypatch):
    from semsim.systems.split import run

    monkeypatch.setattr(run, "VALID_POINTS", -0.01)  # every system falls short of that
    outcome = run_split(replace(PLAN, attack_invalid=False), place(done[0]))
    assert [row["valid"] for row in outcome["rows"]] == [False, False]
    assert all(row["psnr"] is None for row in outcome["rows"])
    assert outcome["sets"] == []


def test_a_stopped_experiment_goes_on_to_the_same_numbers(done, tmp_path):
    reports = []

    def stop(progress):
        reports.append(progress)
        if len(reports) == 4:
            raise StopRequestedError("enough")

    plan = replace(PLAN, attacks=("adaptive",), attack_seeds=(0,))
    with pytest.raises(StopRequestedError):
        run_split(plan, place(tmp_path), stop)
    resumed = run_split(plan, place(tmp_path))["rows"]
    keys = [(r["defence"], r["attack"], r["attack_seed"]) for r in resumed]
    whole = [r for r in done[1]["rows"] if (r["defence"], r["attack"], r["attack_seed"]) in keys]
    assert resumed == whole


def test_a_plan_becomes_a_job_that_names_its_file(tmp_path):
    job = queue_split(PLAN, place(tmp_path))
    assert plan_of(job) == PLAN
    assert jobs.state(job) is JobState.QUEUED
    assert jobs.read_order(job, SplitJob) == SplitJob(plan=PLAN, place=place(tmp_path))
    with pytest.raises(JobError, match="under way"):
        queue_split(PLAN, place(tmp_path))


def test_a_recogniser_reads_the_originals(done):
    assert done[1]["baselines"]["recogniser"] in (0, 0.25, 0.5, 0.75, 1)  # of four images


RESIDUALS = (0.1, 0.5, 0.9, math.nan)
PICTURES = torch.full((4, 3, 8, 8), 0.25)
IMAGES = LabelledImages(
    dataset="made",
    classes=("a",),
    ids=("p", "q", "r", "s"),
    images=PICTURES,
    labels=torch.zeros(4, dtype=torch.long),
)
RECORD = {"model": "small", "attack": {"name": "adaptive"}}


@pytest.fixture
def leak():
    return FeatureLeak(
        images=PICTURES,
        ssim=np.zeros(4),
        psnr=np.zeros(4),
        residuals=np.array(RESIDUALS),
        grey_residuals=np.full(4, 0.5),
        shadow_accuracy=1.0,
        decoder_error=0.0,
    )


def test_no_better_than_grey_and_undefined_are_worse_than_grey(leak, tmp_path):
    assert leak.worse_than_grey == [False, True, True, True]
    rows = read_set(write_split_set(tmp_path / "set", RECORD, IMAGES, leak)).manifest
    assert list(rows["worse_than_grey"]) == [False, True, True, True]


def test_the_measure_is_the_attacks_own_and_not_the_likeness(leak):
    better = replace(leak, residuals=np.full(4, 0.2), psnr=np.full(4, -5.0))
    assert better.worse_than_grey == [False] * 4
