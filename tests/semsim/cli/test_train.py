"""`semsim-studio train …`: judged runs, studies, counts, promotion."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from made_judged import judged_labels, judged_votes
from safetensors.torch import load_file
from typer.testing import CliRunner

from semsim.base.jobs import folders as jobs
from semsim.base.storage.records import write_record
from semsim.cli.main import app as program
from semsim.cli.train import app, read_settings
from semsim.learning import PRESETS
from semsim.learning.card import FORMAT, card_paths, read_card
from semsim.learning.default_checkpoint import PROMOTED_FILE, promoted
from semsim.metrics.network import load_semsim
from semsim.metrics.provenance import read_training

QUICK = "triplet:backbone=lenet,epochs=1,batch_size=8,triplets_per_original=2"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    labels = judged_labels(folder / "images", originals=6)
    labels.to_parquet(folder / "labels.parquet")
    judged_votes(labels).to_parquet(folder / "votes.parquet")
    return folder


@pytest.fixture
def files(tables, tmp_path, monkeypatch):
    """Options of most commands; two shuffles stand beside each training."""
    return [
        *("--labels", str(tables / "labels.parquet"), "--votes", str(tables / "votes.parquet")),
        *("--checkpoints", str(tmp_path / "checkpoints"), "--data-dir", str(tmp_path / "data")),
        *("--metrics", "mse", "--device", "cpu", "--train", QUICK),
    ]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_run_prints_held_out_numbers_and_leaves_a_card(files, tmp_path):
    asked = [*files, "--name", "mine", "--hold-out", "architecture=net1", "--licence", "CC0"]
    asked += ["--shuffles", "2"]
    outcome = run("run", *asked, "--json")
    assert outcome.exit_code == 0, outcome.output
    parts = json.loads(outcome.stdout)  # what else is said is on standard error
    assert {"MSE", "SemSim (mine)"} <= {row["title"] for row in parts["held_out"]}
    assert parts["in_sample"]
    assert "the architecture net1, which it has not seen" in outcome.output
    assert "In sample (no measure of its worth)" in outcome.output
    assert "simulated votes" in outcome.output
    assert "are less than the paper's smallest study had" in " ".join(outcome.output.split())
    assert "Calibrated baseline (mine)" in outcome.output
    checkpoints = tmp_path / "checkpoints"
    assert read_card(checkpoints / "mine.safetensors")["licence"] == "CC0"
    assert promoted(checkpoints) is None
    assert "its initial weights (the same network, not trained on votes)" in outcome.output
    assert "the same training on shuffled votes" in outcome.output
    chosen = run("promote", "mine", "--checkpoints", str(checkpoints), "--yes")
    assert "mine.safetensors is the SemSim of this workspace" in chosen.output.replace("\n", "")
    assert promoted(checkpoints) == "mine"
    (checkpoints / "mine.safetensors").unlink()
    assert promoted(checkpoints) is None
    (checkpoints / PROMOTED_FILE).write_text("broken")
    assert promoted(checkpoints) is None


def test_promote_asks_once_more_where_it_lost(files, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    assert run("run", *files, "--name", "mine", "--controls", "start").exit_code == 0
    card = read_card(checkpoints / "mine.safetensors")
    assert card["held_out"]["shuffled"] is None
    for row in card["held_out"]["against"]:
        row["difference"] = -0.1 if row["control"] else 0.1
    write_record(card_paths(checkpoints / "mine.safetensors")[1], FORMAT, card)
    asked = ["promote", "mine", "--checkpoints", str(checkpoints)]
    outcome = CliRunner().invoke(app, asked, input="n\n")
    assert outcome.exit_code == 1
    assert "mine lost to SemSim (mine, initial weights)" in outcome.output.replace("\n", " ")
    assert promoted(checkpoints) is None
    assert CliRunner().invoke(app, asked, input="y\n").exit_code == 0
    assert promoted(checkpoints) == "mine"


def test_a_control_there_is_not_is_refused(files):
    outcome = run("run", *files, "--name", "mine", "--controls", "none")
    assert outcome.exit_code == 2
    assert "controls must be one of all, start; got 'none'" in outcome.output


def test_a_study_prints_a_line_a_value(files, tmp_path):
    outcome = run("study", "budget", *files, "--values", "2,all", "--json")
    assert outcome.exit_code == 0, outcome.output
    parts = json.loads(outcome.stdout)
    found = parts["values"]
    assert parts["failures"] == []
    assert [(row["value"], row["n_originals"]) for row in found] == [("2", 1), ("all", 3)]
    assert "Label budget (Fig. 7A)" in outcome.output
    lines = [line.split() for line in outcome.output.splitlines()]
    assert [line[:2] for line in lines if line[:1] in (["2"], ["all"])] == [
        ["2", "1"],
        ["all", "1"],
    ]
    (job,) = jobs.list_jobs(tmp_path / "data" / "jobs", "learn-study")
    rows = jobs.result(job)["rows"]
    assert [row["n_originals"] for row in rows] == [1, 3]  # one more of each is for validation
    again = CliRunner().invoke(program, ["job", str(job.folder)])
    assert "is done; its result is" in again.output.replace("\n", " ")


def assert_left_out(outcome, values, *, models):
    """Each value was judged by as many models, beside MSE, by a SemSim that never saw it."""
    assert outcome.exit_code == 0, outcome.output
    rows = [row for row in json.loads(outcome.stdout)["metrics"] if row["metric"] == "mse"]
    assert [(row["left_out"], row["n_models"]) for row in rows] == [(v, models) for v in values]
    assert "Simulated votes: no evidence about people." in outcome.output
    told = [line.split()[:2] for line in outcome.output.splitlines() if line]
    for metric in ("MSE", "SemSim"):
        assert {one[0] for one in told if one[1:] == [metric]} == {*values}


def test_each_architecture_is_left_out_over_the_tables_of_two_studies(files, tables, tmp_path):
    """Halves of one study, as two: commands take as many tables as there are studies."""
    labels = pd.read_parquet(tables / "labels.parquet")
    first = labels["model"].str.startswith("net0")
    for name, part in (("one", labels[first]), ("two", labels[~first])):
        part.to_parquet(tmp_path / f"{name}.parquet")
    asked = files[files.index("--checkpoints") :]
    halves = [*("--labels", str(tmp_path / "one.parquet"))]
    halves += ["--labels", str(tmp_path / "two.parquet")]
    outcome = run("leave-out", "architecture", *halves, *asked, "--json")
    assert_left_out(outcome, ["net0", "net1"], models=2)
    alone = run("leave-out", "dataset", *halves, *asked)
    assert alone.exit_code == 2
    assert "There is only one dataset in these labels" in alone.output


def test_each_data_set_is_left_out_over_two_studies_and_their_votes(files, tmp_path):
    """Which is what `leave-out` does where nothing else is named."""
    other = judged_labels(tmp_path / "other", originals=6, seed=1)
    other = other.assign(study="other", dataset="other")
    other.to_parquet(tmp_path / "labels.parquet")
    judged_votes(other).to_parquet(tmp_path / "votes.parquet")
    second = ["--labels", str(tmp_path / "labels.parquet")]
    second += ["--votes", str(tmp_path / "votes.parquet")]
    outcome = run("leave-out", *files, *second, "--json")
    assert_left_out(outcome, ["other", "textures"], models=4)
    (job,) = jobs.list_jobs(tmp_path / "data" / "jobs", "learn-leave-out")
    for row in jobs.result(job)["rows"]:
        assert row["n_originals"] == 5  # of the other study's six; one is for its curves
        assert row["held_out"]["n_originals"] == 6
        assert load_semsim(Path(row["checkpoint"]))


def test_counts_train_nothing(files, tables, tmp_path):
    labels = str(tables / "labels.parquet")
    outcome = run("counts", "--labels", labels, "--hold-out", "architecture=net0")
    assert outcome.exit_code == 0
    assert "Learns from 4 triplets of 4 originals." in outcome.output
    assert "Missing: the test has 2 models" in outcome.output
    as_json = run("counts", "--labels", labels, "--hold-out", "architecture=net0", "--json")
    row = json.loads(as_json.stdout)["counts"]
    assert (row["n_triplets"], row["n_originals"], row["n_test_models"]) == (4, 4, 2)
    assert as_json.stderr == outcome.stdout
    assert not (tmp_path / "data").exists()


def test_labels_with_a_word_for_a_verdict_are_refused_in_words(tables, tmp_path):
    table = pd.read_parquet(tables / "labels.parquet")
    table["recognisable"] = ["perhaps", *table["recognisable"].astype(str)[1:]]
    table.to_parquet(tmp_path / "odd.parquet")
    outcome = run("counts", "--labels", str(tmp_path / "odd.parquet"))
    assert outcome.exit_code == 2
    assert "column recognisable must hold True, False or nothing" in outcome.output


def test_a_semsim_starts_from_a_classifier_whose_averages_stay(files, tmp_path):
    """`pretrain`, then `run` from its file with frozen batch normalisation."""
    start = tmp_path / "weights" / "start.safetensors"
    outcome = run(
        *("pretrain", "--out", str(start), "--device", "cpu"),
        *("--dataset", "symbols:train_per_class=1,test_per_class=1"),
        *("--train", "backbone=mobilenet_v3_small,small_stem=false,epochs=1,batch_size=16"),
    )
    assert outcome.exit_code == 0, outcome.output
    assert "Of the test images it names" in outcome.output
    assert "at chance (2%)" in outcome.output
    assert "It has learned nothing to start from" in outcome.output
    assert [path.name for path in start.parent.iterdir()] == [start.name]

    preset = f"{QUICK},weights={start},batch_norm=frozen,small_stem=false"
    asked = preset.replace("backbone=lenet", "backbone=mobilenet_v3_small")
    outcome = run("run", *files, "--name", "mine", "--train", asked, "--controls", "start")
    assert outcome.exit_code == 0, outcome.output
    checkpoint = tmp_path / "checkpoints" / "mine.safetensors"
    began_with = read_training(checkpoint).versions["initial weights"]
    assert began_with.endswith("at chance")
    assert "a classifier of the training split of symbols, seed 7" in began_with
    kept, trained = load_file(start), load_semsim(checkpoint).body.state_dict()
    same = {name: torch.equal(kept[name], trained[name]) for name in kept if name in trained}
    assert all(same[name] for name in same if "running" in name)
    assert not all(same.values())


def test_settings_are_a_preset_with_some_replaced(tmp_path, monkeypatch):
    found = read_settings("triplet:epochs=3,backbone=lenet,normalize=true")
    assert (found.epochs, found.backbone, found.normalize) == (3, "lenet", True)
    assert found.lr == PRESETS["triplet"].lr
    assert read_settings("paper") == PRESETS["paper"]
    monkeypatch.chdir(tmp_path)  # a job may be resumed from another folder
    assert read_settings("triplet:weights=a.pth").weights == str(tmp_path / "a.pth")
    assert read_settings("triplet:weights=imagenet").weights == "imagenet"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--hold-out", "architecture=vgg", "--name", "a"], "Known: net0, net1"),
        (["run", "--hold-out", "sky", "--name", "a"], "Hold out one of"),
        (
            ["run", "--labels", "nowhere.parquet", "--votes", "nowhere.parquet", "--name", "a"],
            "No labels at nowhere.parquet",
        ),
        (["run", "--labels", "nowhere.parquet", "--name", "a"], "2 tables of labels and 1 of"),
        (["run", "--name", "a/b"], "cannot name a checkpoint"),
        (["run", "--train", "triplet:epochs=0", "--name", "a"], "epochs must be at least 1"),
        (["run", "--train", "huge", "--name", "a"], "No training preset is called 'huge'"),
        (["run", "--train", "triplet:colour=1", "--name", "a"], "no setting 'colour'"),
        (["run", "--metrics", "nothing", "--name", "a"], "nothing"),
        (["pretrain", "--out", "a.safetensors", "--dataset", "nothing"], "nothing"),
        (["pretrain", "--out", "a.safetensors", "--train", "colour=1"], "no setting 'colour'"),
        (["pretrain", "--out", "a.pt"], "--out ends in .safetensors"),
        (["study", "depth"], "No study is called 'depth'"),
        (["study", "budget", "--values", "99"], "more than the"),
        (["promote", "gone"], "no SemSim called 'gone'"),
    ],
)
def test_mistakes_are_told_in_one_line(files, tmp_path, arguments, message):
    command, *asked = arguments
    own = {"promote": ["--checkpoints", str(tmp_path)], "pretrain": []}.get(command, files)
    first, rest = ([asked[0]], asked[1:]) if command != "run" else ([], asked)
    outcome = run(command, *first, *own, *rest)
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output
    assert not list(tmp_path.glob("data/jobs/*"))


def test_a_network_there_is_not_is_told_by_the_training_itself(files):
    outcome = run("run", *files, "--name", "a", "--train", "triplet:backbone=vgg")
    assert outcome.exit_code == 2
    assert "No backbone is called 'vgg'" in outcome.output
    assert "Traceback" not in outcome.output
