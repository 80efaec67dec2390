"""Jobs as real processes: each ends in another way, and the folder alone tells which."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import pandas as pd
import psutil
import pytest
from helpers import ROOT, bytes_read, until
from helpers import ended as ends

from semsim.base.errors import DataError, JobError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState, owner_now, read_recent, sweep_sockets
from semsim.base.progress import Progress
from semsim.base.storage.atomic import write_json

# A command such as `python -m semsim` runs; its first argument says what becomes of it.
COMMAND = """
import sys, time
from pathlib import Path
from semsim.base.errors import DataError
from semsim.base.jobs.folders import run_as_job
from semsim.base.storage.atomic import write_json
from semsim.base.storage.atomic import write_json
from semsim.base.progress import Progress

how, folder = sys.argv[1], Path(sys.argv[-1])

def work(report):
    counter = folder / "counter"
    begun = int(counter.read_text()) if counter.exists() else 0
    print("begins at", begun, flush=True)
    if how == "fail":
        raise DataError("No image at /nowhere.png.")
    for step in range(begun, 3 if how == "done" else 100000):
        counter.write_text(str(step))
        report(Progress(step + 1, 100000 if how == "wait" else 3, "step", {"loss": 1 / (step + 1)}))
        if how == "wait":
            time.sleep(0.01)
            if (folder / "enough").exists():
                break
    return {"began_at": begun}

run_as_job(folder, work)
"""
PROGRAM = ("-c", COMMAND)


@pytest.fixture
def make(tmp_path):
    made = []

    def create(how, **more):
        given = {"kind": "test", "title": f"A job to {how}", "program": (*PROGRAM, how)}
        made.append(jobs.create(tmp_path / "jobs", **(given | more)))
        return made[-1]

    yield create
    for job in made:
        if jobs.state(job) is JobState.RUNNING:
            os.kill(pid_of(job), signal.SIGKILL)


def owner(job):
    return json.loads((job.folder / "pid.json").read_text())


def pid_of(job):
    return owner(job)["pid"]


LONG = 47_000_000  # bytes that a training of a day may report


def reports(job):
    """All reports of a job that has made few."""
    return read_recent(job.folder / "progress.jsonl")


def works(job):
    until(lambda: jobs.latest(job) is not None)


def test_a_new_job_waits_and_holds_what_it_was_given(make):
    table = pd.DataFrame({"a": [1, 2]})
    job = make("done", files={"labels.parquet": table})
    assert jobs.state(job) is JobState.QUEUED
    assert job.command == ("job", str(job.folder))
    assert pd.read_parquet(job.folder / "labels.parquet").equals(table)
    assert jobs.open_job(job.folder.parent, job.id) == job


def test_a_job_that_finishes_is_done(make):
    job = make("done")
    jobs.start(job)
    assert ends(job) is JobState.DONE
    assert jobs.result(job) == {"began_at": 0}
    assert jobs.latest(job).done == 3
    assert reports(job)[0].values == {"loss": 1.0}
    assert "begins at 0" in jobs.log_tail(job)
    assert jobs.error_text(job) == ""
    with pytest.raises(JobError, match="done"):
        jobs.start(job)
    with pytest.raises(JobError, match="nothing to resume"):
        jobs.resume(job)


def test_how_long_a_job_took_is_known_of_one_that_was_begun_once(make):
    job = make("wait")
    assert jobs.seconds_taken(job) is None
    jobs.start(job)
    works(job)
    assert jobs.seconds_taken(job) is None  # it is not over
    (job.folder / "enough").touch()
    assert ends(job) is JobState.DONE
    asked = datetime.fromisoformat(job.created).timestamp()
    began = max(asked, owner(job)["started"])
    ended = (job.folder / "result.json").stat().st_mtime
    assert jobs.seconds_taken(job) == pytest.approx(ended - began)
    later = owner(job)["started"] + 100  # as if it had been resumed then
    write_json(job.folder / "pid.json", {**owner(job), "started": later})
    assert jobs.seconds_taken(job) is None


@pytest.fixture
def ended(tmp_path):
    """A job with an order, ended with a result, as if it had taken so many seconds."""

    def end(order, seconds, result=None, kind="split"):
        files = {jobs.ORDER_FILE: order}
        job = jobs.create(tmp_path / "jobs", kind=kind, title="A job", files=files)
        jobs.run_as_job(job.folder, lambda report: result or {})
        began = max(datetime.fromisoformat(job.created).timestamp(), owner(job)["started"])
        os.utime(job.folder / "result.json", (began + seconds, began + seconds))
        return job

    return end


def test_the_last_job_like_one_is_of_its_kind_done_and_asked_for_the_same(ended, make, tmp_path):
    def last(asked, kind="split"):
        return jobs.last_seconds(tmp_path / "jobs", kind, asked)

    asked = {"plan": {"images": 2, "seeds": [0, 1]}, "workers": 1}
    assert last(asked) is None
    ended({**asked, "plan": {**asked["plan"], "name": "first"}}, 20)
    ended({**asked, "plan": {**asked["plan"], "name": "second"}}, 30)
    assert last(asked) == pytest.approx(30)  # the newest, whatever its name
    assert last({"plan": {"images": 2}}) == pytest.approx(30)
    assert last({"plan": {"images": 3}}) is None
    assert last({"plan": {"images": 2, "metrics": []}}) is None
    assert last(asked, "federated") is None
    ended(asked, 1, {"reused": 4})  # it found its pieces done
    jobs.create(tmp_path / "jobs", kind="split", title="Waits", files={jobs.ORDER_FILE: asked})
    make("done", kind="split")  # with a command of its own
    assert last(asked) == pytest.approx(30)


@pytest.mark.parametrize(("how", "level"), [("done", "INFO"), ("fail", "WARNING")])
def test_the_log_says_that_a_job_has_begun_and_how_it_ended(make, caplog, how, level):
    caplog.set_level("INFO", "semsim.base.jobs")
    job = make(how)
    jobs.start(job)

    def told():  # other tests' jobs may end meanwhile
        said = [(one.levelname, one.getMessage()) for one in caplog.records]
        return [one for one in said if job.id in one[1]]

    until(lambda: len(told()) == 2)
    ended = "done" if how == "done" else "failed"
    assert told() == [
        ("INFO", f"Job {job.id}, test, has begun."),
        (level, f"Job {job.id}, test, has ended: {ended}."),
    ]
    assert job.title not in caplog.text


def test_a_job_that_fails_says_why_first_and_where_below(make):
    job = make("fail")
    jobs.start(job)
    assert ends(job) is JobState.FAILED
    first, rest = jobs.error_text(job).split("\n\n", 1)
    assert first == "No image at /nowhere.png."
    assert "Traceback" in rest
    assert "DataError" in rest
    with pytest.raises(JobError, match=r"result\.json"):
        jobs.result(job)


def test_a_job_stops_when_asked_and_goes_on_where_it_was(make):
    job = make("wait")
    jobs.start(job)
    works(job)
    assert jobs.state(job) is JobState.RUNNING
    with pytest.raises(JobError, match="running"):
        jobs.start(job)
    with pytest.raises(JobError, match="running"):
        jobs.resume(job)
    jobs.request_stop(job)
    assert ends(job) is JobState.STOPPED
    assert not jobs.stop_requested(job)

    (job.folder / "enough").touch()
    reached = int((job.folder / "counter").read_text())
    jobs.resume(job)
    assert ends(job) is JobState.DONE
    assert jobs.result(job) == {"began_at": reached}


def test_a_killed_job_is_lost_and_can_be_resumed(make):
    job = make("wait")
    jobs.start(job)
    works(job)
    os.kill(pid_of(job), signal.SIGKILL)
    assert ends(job) is JobState.LOST

    (job.folder / "enough").touch()
    jobs.resume(job)
    assert ends(job) is JobState.DONE
    done = [point.done for point in reports(job)]
    assert done == sorted(done)


def test_a_job_outlives_the_process_that_started_it(make):
    job = make("wait")
    server = (
        "import sys; from pathlib import Path; from semsim.base.jobs import folders as jobs;"
        "jobs.start(jobs.read_job(Path(sys.argv[1])))"
    )
    subprocess.run([sys.executable, "-c", server, job.folder], check=True, cwd=ROOT)
    works(job)
    assert jobs.state(job) is JobState.RUNNING
    assert os.getpgid(pid_of(job)) != os.getpgid(0)  # Ctrl-C at the server does not reach it
    jobs.request_stop(job)
    assert ends(job) is JobState.STOPPED


def test_a_zombie_does_not_live(make):
    job = make("wait")
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    born = psutil.Process(child.pid).create_time()
    write_json(
        job.folder / "pid.json", {"pid": child.pid, "started": born, "booted": psutil.boot_time()}
    )
    assert jobs.state(job) is JobState.RUNNING
    child.stdin.close()
    zombie = psutil.Process(child.pid)
    until(lambda: zombie.status() == psutil.STATUS_ZOMBIE)
    assert jobs.state(job) is JobState.LOST
    child.wait()
    assert jobs.state(job) is JobState.LOST


def test_a_process_that_took_over_the_number_is_not_the_job(make):
    job = make("wait")
    born = psutil.Process().create_time()
    write_json(job.folder / "pid.json", {**owner_now(os.getpid()), "started": born - 100})
    assert jobs.state(job) is JobState.LOST


def test_a_job_that_never_started_stops_at_once(make):
    job = make("done")
    jobs.request_stop(job)
    assert jobs.state(job) is JobState.STOPPED
    jobs.resume(job)
    assert ends(job) is JobState.DONE


def test_a_stop_asked_for_before_the_first_report_counts(make):
    job = make("wait")
    (job.folder / "stop").touch()
    assert jobs.run_as_job(job.folder, lambda report: report(Progress(1, 2)) or {}) is None
    assert jobs.state(job) is JobState.STOPPED


def test_a_stop_that_a_killed_run_never_heard_is_not_meant_for_the_next(make):
    job = make("pass")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    write_json(job.folder / "pid.json", owner_now(ended.pid))
    (job.folder / "stop").touch()
    ended.wait()
    assert jobs.state(job) is JobState.LOST
    told = [Progress(1, 2), Progress(2, 2)]
    outcome = jobs.run_as_job(job.folder, lambda report: {"told": len(list(map(report, told)))})
    assert outcome == {"told": 2}
    assert jobs.state(job) is JobState.DONE


def test_only_one_process_has_a_job(make):
    job = make("wait")
    jobs.start(job)
    works(job)
    with pytest.raises(JobError, match="already runs"):
        jobs.run_as_job(job.folder, lambda report: {})
    assert jobs.state(job) is JobState.RUNNING


def test_servers_that_resume_one_job_at_once_give_it_one_process(make):
    job = make("wait")
    process = multiprocessing.get_context("fork")
    write_json(job.folder / "pid.json", {**owner_now(os.getpid()), "started": 0.0})  # lost
    gate, told = process.Barrier(8), process.SimpleQueue()

    def server():
        gate.wait()
        try:
            jobs.resume(job)
            told.put("")
        except JobError as error:
            told.put(str(error))

    servers = [process.Process(target=server) for _ in range(8)]
    for one in servers:
        one.start()
    answers = [told.get() for _ in servers]
    assert answers.count("") == 1
    assert sum("is running" in one for one in answers) == 7
    works(job)
    (job.folder / "enough").touch()
    assert ends(job) is JobState.DONE
    assert jobs.log_tail(job).count("begins at") == 1
    for one in servers:
        one.join()


def test_work_in_this_process_leaves_the_same_folder(make):
    seen = []
    job = make("done")
    outcome = jobs.run_as_job(
        job.folder, lambda report: report(Progress(1, 1)) or {"a": 1}, also=seen.append
    )
    assert outcome == jobs.result(job) == {"a": 1}
    assert seen == [Progress(1, 1)]
    with pytest.raises(JobError, match="is done"):
        jobs.run_as_job(job.folder, lambda report: {})

    failing = make("fail")

    def fail(report):
        raise DataError("broken")

    with pytest.raises(DataError):
        jobs.run_as_job(failing.folder, fail)
    assert jobs.state(failing) is JobState.FAILED


def test_a_result_that_cannot_be_written_is_a_failure(make):
    job = make("done")
    with pytest.raises(TypeError):
        jobs.run_as_job(job.folder, lambda report: {"a": object()})
    assert jobs.state(job) is JobState.FAILED


def test_ctrl_c_leaves_a_stopped_job(make):
    job = make("done")

    def interrupted(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.run_as_job(job.folder, interrupted)
    assert jobs.state(job) is JobState.STOPPED


def test_the_time_left_ignores_the_pause_before_a_resume(make):
    job = make("wait")
    now = time.time()
    lines = [(0, -1000), (10, -990), (10, 10), (15, 15), (20, 20)]
    text = [json.dumps({"done": d, "total": 100, "at": now + at}) for d, at in lines]
    (job.folder / "progress.jsonl").write_text("\n".join(text) + "\n")
    write_json(job.folder / "pid.json", {**owner_now(os.getpid()), "started": now})
    assert jobs.eta_seconds(job) == pytest.approx(80)


def test_jobs_are_listed_newest_first_and_by_kind(make, tmp_path):
    first, second, other = make("done"), make("done"), make("done", kind="compare")
    assert jobs.list_jobs(tmp_path / "jobs") == [other, second, first]
    assert jobs.list_jobs(tmp_path / "jobs", "test") == [second, first]
    assert jobs.list_jobs(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "job_id", ["", "..", "../other", "a/b", "/etc", "none-like-this", "x" * 300]
)
def test_an_id_that_is_none_is_refused(tmp_path, job_id):
    (tmp_path / "other").mkdir()
    with pytest.raises(JobError):
        jobs.open_job(tmp_path / "jobs", job_id)


_SPEC = {"format": jobs.FORMAT, "kind": "test", "title": "t", "created": "2026-01-01"}
BROKEN_SPECS = (
    *("", "{", "[]", "{}", "\udcff"),
    json.dumps({**_SPEC, "program": [], "format": "semsim-job/0"}),
    json.dumps({**_SPEC, "program": 7}),
    json.dumps({**_SPEC, "program": [7]}),
    json.dumps({**_SPEC, "program": [], "title": 7}),
    json.dumps({**_SPEC, "program": [], "created": None}),
)


@pytest.mark.parametrize("spec", BROKEN_SPECS)
def test_a_broken_spec_is_named(tmp_path, spec):
    (tmp_path / "spec.json").write_text(spec, errors="surrogateescape")
    with pytest.raises(JobError, match=r"spec\.json"):
        jobs.read_job(tmp_path)


@pytest.mark.parametrize("spec", BROKEN_SPECS)
def test_a_damaged_job_does_not_hide_the_others(make, tmp_path, caplog, spec):
    damaged, other = make("done"), make("done")
    (damaged.folder / "spec.json").write_text(spec, errors="surrogateescape")
    assert jobs.list_jobs(tmp_path / "jobs") == [other]
    assert damaged.id in caplog.text
    with pytest.raises(JobError, match=r"spec\.json"):
        jobs.open_job(tmp_path / "jobs", damaged.id)


@pytest.mark.parametrize(
    "owner", ["", "{}", "[]", '{"pid": 1}', '{"pid": "x", "started": 0}', '{"pid": null}']
)
def test_a_job_whose_owner_cannot_be_read_is_lost_and_can_go_on(make, owner):
    job = make("done")
    (job.folder / "pid.json").write_text(owner)
    assert jobs.state(job) is JobState.LOST
    assert jobs.eta_seconds(job) is None
    jobs.resume(job)
    assert ends(job) is JobState.DONE


@pytest.mark.parametrize("result", ["", '{"began_at": ', "[]"])
def test_a_damaged_result_is_a_failure_that_says_so_and_can_be_made_again(make, result):
    job = make("done")
    jobs.start(job)
    assert ends(job) is JobState.DONE
    (job.folder / "result.json").write_text(result)
    assert jobs.state(job) is JobState.FAILED
    assert "result.json" in jobs.error_text(job)
    jobs.resume(job)
    assert ends(job) is JobState.DONE
    assert jobs.error_text(job) == ""


def test_a_clock_set_an_hour_back_or_forth_loses_no_running_job(make):
    job = make("wait")
    jobs.start(job)
    works(job)
    owner = json.loads((job.folder / "pid.json").read_text())
    for shift in (3600, -3600):
        # What the file would hold had it been written before the clock was set.
        moved = {key: owner[key] + shift for key in ("started", "booted")}
        write_json(job.folder / "pid.json", {**owner, **moved})
        assert jobs.state(job) is JobState.RUNNING
    # Another process that has taken the number is still told apart.
    write_json(job.folder / "pid.json", {**owner, "started": owner["started"] - 60})
    assert jobs.state(job) is JobState.LOST
    write_json(job.folder / "pid.json", owner)


def test_a_file_of_a_job_cannot_leave_its_folder(tmp_path):
    with pytest.raises(JobError, match="plain file name"):
        jobs.create(tmp_path, kind="k", title="t", files={"../x.json": {}})


def test_whatever_is_asked_of_a_job_reads_no_more_than_ends_of_its_files(make):
    job = make("done")
    jobs.run_as_job(job.folder, lambda report: report(Progress(1, 1)) or {})
    for name in ("progress.jsonl", "log.txt"):
        path = job.folder / name
        line = path.read_text() if path.exists() else "It went on.\n"
        path.write_text(line * (LONG // len(line)))
        assert path.stat().st_size > 0.99 * LONG
    asks = (jobs.seconds_taken, jobs.latest, jobs.eta_seconds, jobs.log_tail, jobs.state)
    read = {ask.__name__: bytes_read(lambda ask=ask: ask(job)) for ask in asks}
    assert max(read.values()) < LONG / 100, read
    assert jobs.seconds_taken(job) is not None
    assert jobs.latest(job).done == 1


def test_sockets_of_killed_processes_go_and_others_stay():
    with tempfile.TemporaryDirectory() as room, socket.socket(socket.AF_UNIX) as listening:
        for name in ("pymp-dead", "pymp-live", "pymp-young", "pymp-empty", "other-dead"):
            Path(room, name).mkdir()
        listening.bind(f"{room}/pymp-live/s")
        listening.listen()
        for name in ("pymp-dead", "pymp-young", "other-dead"):
            with socket.socket(socket.AF_UNIX) as gone:
                gone.bind(f"{room}/{name}/s")
        for path in Path(room).iterdir():
            if path.name != "pymp-young":
                os.utime(path, (0, 0))
        sweep_sockets(Path(room))
        left = sorted(path.name for path in Path(room).iterdir())
        assert left == ["other-dead", "pymp-empty", "pymp-live", "pymp-young"]
