"""Scoring and fetching are jobs that outlive the page and are never started twice."""

import shutil
from dataclasses import replace

from helpers import ended
from made_study import MODELS

from semsim.base.jobs import folders as jobs
from semsim.ui.compare_data import ComparisonView, opened
from semsim.ui.compare_files import (
    live_download,
    missing_weights,
    scoring_job,
    start_download,
)
from semsim.weights import read_manifest

VIEW = ComparisonView(study="1")


def test_missing_scores_are_computed_by_one_job_that_is_not_repeated(made_context):
    context = made_context(models=MODELS[:4], n_images=3, scored=())
    before = opened(context, VIEW)
    assert {name for _, name in before.book.missing} >= {"mse", "psnr", "ssim"}
    job = scoring_job(context, before)
    assert scoring_job(context, before).id == job.id  # a second page finds it
    assert ended(job) is jobs.JobState.DONE, jobs.error_text(job)
    after = opened(context, VIEW)
    assert after.book.missing == ()
    assert scoring_job(context, after) is None
    shutil.rmtree(context.data / "scores")
    # it was tried and the scores are not there: a person decides, not a loop
    assert scoring_job(context, before).id == job.id
    assert len(jobs.list_jobs(context.data / "jobs")) == 1


def test_the_attacked_image_is_scored_where_it_was_chosen_as_the_reference(made_context):
    def attacked(labels):  # what the attack saw was what it gave back
        return labels.assign(attacked=labels["reconstruction"])

    context = made_context(models=MODELS[:4], n_images=3, scored=(), change=attacked)
    view = ComparisonView(study="1", reference="attacked")
    job = scoring_job(context, opened(context, view))
    assert ended(job) is jobs.JobState.DONE, jobs.error_text(job)
    found = opened(context, view)
    assert found.book.missing == ()
    assert (found.analysis.evidence.scores["mse@attacked"] == 0).all()


def test_a_download_is_a_job_and_its_failure_stays_visible(made_context, monkeypatch):
    context = made_context(n_images=2)
    assert live_download(context) is None
    assert {entry.name for entry in missing_weights(context)} == set(read_manifest())
    # no web server answers at a proxy that is not there: nothing leaves this machine
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    job = start_download(context, "squeezenet1_1")
    assert ended(job) is jobs.JobState.FAILED
    assert "could not be fetched" in jobs.error_text(job)
    assert live_download(context).id == job.id


def test_scoring_that_was_stopped_after_a_part_is_there_to_be_resumed(made_context, monkeypatch):
    context = made_context(models=MODELS[:4], n_images=3, scored=())
    before = opened(context, VIEW)
    monkeypatch.setattr(jobs, "start", lambda job: None)
    job = scoring_job(context, before)

    def found(missing):
        return scoring_job(context, replace(before, book=replace(before.book, missing=missing)))

    whole = before.book.missing
    monkeypatch.setattr(jobs, "state", lambda one: jobs.JobState.STOPPED)
    assert found(whole[1:]).id == job.id
    other = found((*whole, ("a model more", "mse")))
    assert other.id != job.id
    assert found(whole[1:]).id == other.id  # the newest of those that would do it
    monkeypatch.setattr(jobs, "state", lambda one: jobs.JobState.DONE)
    assert found(whole[1:]).id not in (job.id, other.id)  # what was lost since is made again


def test_a_weight_file_is_fetched_once_at_a_time(made_context, monkeypatch):
    context = made_context(n_images=2)
    monkeypatch.setattr(jobs, "start", lambda job: None)
    first, second = (start_download(context, name) for name in ("squeezenet1_1", "alexnet"))
    assert start_download(context, "squeezenet1_1").id == first.id != second.id
    state = {first.id: jobs.JobState.RUNNING, second.id: jobs.JobState.DONE}
    monkeypatch.setattr(jobs, "state", lambda job: state[job.id])
    assert live_download(context).id == first.id
