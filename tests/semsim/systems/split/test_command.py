import json
from dataclasses import replace

from PIL import Image
from typer.testing import CliRunner

from semsim.base.jobs import folders as jobs
from semsim.sets.recognition import STATISTIC
from semsim.systems.split.command import app
from semsim.systems.split.figures import grid
from semsim.systems.split.plan import KIND, SplitPlace, like, plan_in, plan_of, queue_split


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


TINY = ("--dataset", "digits:size=12,count=180", "--epochs", 1, "--shadow-epochs", 1, "--images", 2)


def test_a_run_prints_its_table_and_a_job_is_carried_out_again_from_its_file(tmp_path):
    words = ["run", *TINY, "--name", "cli", "--network", "small:width=2", "--defence", "none"]
    words += ["--attack", "adaptive", "--defence-seed", 0, "--attack-seed", 3]
    done = run(*words, "--data-dir", tmp_path, "--device", "cpu")
    assert done.exit_code == 0, done.output
    lead, statistic, table, guesses = (
        done.output.index(words)
        for words in (
            "A reference classifier recognises",
            STATISTIC,
            "small:width=2  none",
            "Without any feature",
        )
    )
    assert lead < statistic < table < guesses
    (file,) = tmp_path.glob("jobs/*/order.json")
    [job] = jobs.list_jobs(tmp_path / "jobs")
    taken = jobs.last_seconds(tmp_path / "jobs", KIND, like(plan_of(job)))
    assert taken == jobs.seconds_taken(job) > 0
    again = run("run", "--file", file, "--name", "again", "--data-dir", tmp_path)
    assert again.exit_code == 0, again.output
    # The second took over all pieces, and tells nothing.
    assert jobs.last_seconds(tmp_path / "jobs", KIND, like(plan_of(job))) == taken
    row = "small:width=2  none"  # what costs say is measured anew
    table = [line for line in done.output.splitlines() if line.startswith(row)]
    assert table
    assert table == [line for line in again.output.splitlines() if line.startswith(row)]
    plan = replace(plan_in(file), name="third")
    place = SplitPlace(data=tmp_path, checkpoints=tmp_path, device="nonsense")
    job = queue_split(plan, place)
    for begun in (("--job", job.folder), ("--file", file)):
        refused = run("run", *begun, "--preset", "paper", "--data-dir", tmp_path)
        assert refused.exit_code == 2
        assert "--preset is a plan to begin with" in refused.output
    assert jobs.state(job) is jobs.JobState.QUEUED
    typed = run("run", "--job", job.folder, "--device", "cpu", "--images", 1, "--json")
    assert typed.exit_code == 0, typed.output
    assert json.loads(typed.stdout) == {"systems": jobs.result(job)["summary"]}
    assert "Without any feature" in typed.stderr
    assert jobs.result(job)["plan"] == {**jobs.result(job)["plan"], "name": "third", "images": 1}


def test_a_study_compares_cuts(tmp_path):
    words = ["study", *TINY, "--network", "small:width=2", "--h", 1, "--h", 2, "--attack-seed", 0]
    done = run(*words, "--data-dir", tmp_path, "--device", "cpu", "--json")
    assert done.exit_code == 0, done.output
    networks = [row["network"] for row in json.loads(done.stdout)["systems"]]
    assert networks == ["small:width=2,h=1,t=1", "small:width=2,h=2,t=1"]
    assert "small:width=2,h=1,t=1" in done.output
    assert "small:width=2,h=2,t=1" in done.output
    assert Image.open(tmp_path / "split" / "cuts-adaptive.png").size[0] > 1000
    assert "h=2, t=1" in (tmp_path / "split" / "cuts-adaptive.svg").read_text()


def test_mistakes_are_told_without_a_traceback(tmp_path):
    for words, says in (
        (["run", "--defence", "prayer"], "prayer"),
        (["study", "--h", 3, "--t", 2], "4 units"),
        (["run", "--preset", "huge"], "small, paper"),
    ):
        done = run(*words, "--data-dir", tmp_path)
        assert done.exit_code in (1, 2), done.output
        assert says in done.output
        assert "Traceback" not in done.output


def test_a_grid_is_every_pair_of_cuts():
    assert grid("resnet18", [1, 2], [1]) == ["resnet18:h=1,t=1", "resnet18:h=2,t=1"]
