import functools
import http.server
import json
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
import torch
import typer
from helpers import ROOT
from made_study import MODELS, make_labels
from made_weights import CLASSES, make_classifier, put_in_manifest
from typer.testing import CliRunner

from semsim.base.jobs import folders as jobs
from semsim.cli.job import job
from semsim.cli.main import app as program
from semsim.cli.score import _names, score, weights
from semsim.images import write_png
from semsim.metrics import Resources
from semsim.metrics.pixel import mse
from semsim.metrics.scoring import LABELS_FILE, SCORE_JOB, ScoreOrder

app = typer.Typer()
app.command("job")(job)
app.command("score")(score)
app.command("weights")(weights)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders of four images, and the tensors in them; one stands in a third."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    x, y = (torch.rand(2, 4, 3, 16, 16, generator=torch.Generator().manual_seed(0)) * 255).round()
    for folder, images in (("a", x), ("b", y)):
        for name, image in zip(CLASSES, images, strict=True):
            write_png(image / 255, tmp_path / folder / f"{name}.png")
    return tmp_path / "a", tmp_path / "b", x / 255, y / 255


def test_two_folders_give_a_table_and_a_file(folders, tmp_path):
    a, b, x, y = folders
    done = run("score", a, b, "--device", "cpu")
    assert done.exit_code == 0, done.output
    table = pd.read_parquet("b-scores.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "here"}  # no table beside them
    assert table["image_id"].tolist() == sorted(CLASSES)
    assert table["mse"].tolist() == pytest.approx(mse(x, y).tolist())
    summary = table.attrs["metrics"]["mse"]
    assert summary["mean"] == pytest.approx(mse(x, y).mean())
    assert (summary["n"], summary["n_inf"]) == (4, 0)
    (line,) = [line for line in done.output.splitlines() if line.startswith("mse ")]
    assert f"{summary['mean']:.6g}" in line
    printed = json.loads(run("score", a, b, "--json").stdout)["metrics"]
    assert [row["metric"] for row in printed] == ["mse", "psnr", "ssim"]
    assert printed[0]["mean"] == summary["mean"]
    assert not list(b.glob("*.parquet"))


def test_infinite_values_are_counted_in_the_table(folders, tmp_path):
    a, _, _, _ = folders
    out = tmp_path / "deep" / "out.parquet"
    done = run(*("score", a, a, "--metrics", "psnr", "--out", out))
    assert done.exit_code == 0
    assert "PSNR is infinite where reconstructions equal their original" in done.output
    assert pd.read_parquet(out).attrs["metrics"]["psnr"]["mean"] is None


def test_the_ending_says_what_is_written(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b, _, _ = folders
    asked = ("score", a, b, "--metrics", "mse,psnr", "--out")
    assert run(*asked, "x.parquet").exit_code == run(*asked, "x.csv").exit_code == 0
    exact, table = pd.read_parquet("x.parquet"), pd.read_csv("x.csv")
    assert list(table) == list(exact)
    assert table[["image_id", "mse", "psnr"]].equals(exact[["image_id", "mse", "psnr"]])
    printed = run(*asked, "-")
    assert printed.exit_code == 0
    assert printed.stdout == Path("x.csv").read_text()
    both = run(*asked, "-", "--json")
    assert (both.exit_code, "both print" in both.stderr) == (2, True)
    assert "metric" in printed.stderr
    assert "Wrote" not in printed.stderr
    for name in ("x.xlsx", "x", "x.csv.gz"):
        refused = run(*asked, name)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("Error: --out ends in .parquet or .csv")
        assert not Path(name).exists()
    assert not Path("-").exists()


def test_left_out_images_are_named_and_the_exit_code_says_so(folders):
    a, b, _, _ = folders
    (b / "cat.png").write_bytes(b"broken")
    (b / "cow.png").unlink()
    write_png(torch.zeros(3, 4, 4), b / "mouse.png")
    done = run("score", a, b)
    assert done.exit_code == 1
    for words in ("cat.png is not a readable image", "cow.png has no reconstruction", "is 4×4"):
        assert words in done.output.replace("\n", " ")
    assert pd.read_parquet("b-scores.parquet")["image_id"].tolist() == ["snowman"]


def test_an_unavailable_metric_has_a_reason_and_no_column(folders, tmp_path):
    a, b, _, _ = folders
    done = run(
        *("score", a, b, "--metrics", "mse,lpips-alex"),
        *("--checkpoints", tmp_path / "none"),
    )
    assert done.exit_code == 1
    assert "alexnet-owt-7be5be79.pth is missing" in done.output
    table = pd.read_parquet("b-scores.parquet")
    assert "lpips-alex" not in table
    assert "missing" in table.attrs["metrics"]["lpips-alex"]["unavailable"]


def test_two_folders_have_no_attacked_images(folders, tmp_path):
    a, b, _, _ = folders
    done = run("score", a, b, "--metrics", "mse,mse@attacked")
    assert done.exit_code == 1
    assert "4 of 4 images come without the attacked image" in done.output
    table = pd.read_parquet("b-scores.parquet")
    assert "attacked" not in table
    assert "mse" in table
    assert "mse@attacked" not in table


def test_folders_named_after_classes_feed_the_recogniser(folders, tmp_path):
    a, b, _, _ = folders
    for folder in (a, b):
        for name in CLASSES:
            (folder / name).mkdir()
            (folder / f"{name}.png").rename(folder / name / "1.png")
    make_classifier(tmp_path / "checkpoints" / "recogniser.safetensors")
    done = run(
        *("score", a, b),
        *("--metrics", "recogniser,fd:recogniser", "--checkpoints", tmp_path / "checkpoints"),
    )
    assert done.exit_code == 0, done.output
    table = pd.read_parquet("b-scores.parquet")
    assert set(table["recogniser"]) <= {0.0, 1.0}
    assert "fd:recogniser" not in table  # a metric of sets has no value an image
    assert table.attrs["metrics"]["fd:recogniser"]["mean"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give one of"),
        (("a",), "after a"),
        (("nowhere", "nowhere"), "nowhere does not exist"),
        ((Path(__file__), "b"), "test_score.py is not a folder"),
        (("--metrics", "mes", "a", "b"), "No metric"),
        (("--metrics", " , ", "a", "b"), "is empty"),
        (("--labels", "nowhere.parquet"), "No labels at"),
        (("--device", "abacus", "a", "b"), "abacus"),
    ],
)
def test_unusable_input_ends_with_two_and_the_reason(words, message):
    done = run("score", *words)
    assert done.exit_code == 2
    assert message in done.output


def test_sets_whose_attacker_is_known_have_a_column_of_it(tmp_path):
    known, unknown = make_labels(tmp_path / "known"), make_labels(tmp_path / "unknown")
    known["attacker"] = "B, labels known"
    tables = []
    for name, labels in (("known", known), ("unknown", unknown)):
        labels.to_parquet(tmp_path / f"{name}.parquet")
        given = ["--labels", tmp_path / f"{name}.parquet", "--metrics", "mse"]
        tables.append(run("score", *given, "--cache-dir", tmp_path / "cache").stdout)
        sets = json.loads(run("score", *given, "--cache-dir", tmp_path / "cache", "--json").stdout)
        words = {"known": {"B, labels known"}, "unknown": {""}}[name]
        assert {one["attacker"] for one in sets["sets"]} == words
    assert "B, labels known" in tables[0]
    assert "attacker" not in tables[1]


def test_labels_as_a_job_keep_scores_progress_and_result(tmp_path):
    asked = {"scores": tmp_path / "scores", "checkpoints": tmp_path / "none"}
    made = jobs.create(
        tmp_path / "jobs",
        kind=SCORE_JOB,
        title="Scoring",
        order=ScoreOrder(metrics=("mse", "fid"), **asked),
        files={LABELS_FILE: make_labels(tmp_path / "images", models=MODELS[:2])},
    )
    done = run("job", made.folder, "--json")
    assert done.exit_code == 1  # FID has no weights here
    assert jobs.state(made) is jobs.JobState.DONE
    result = jobs.result(made)
    assert json.loads(done.stdout) == {"sets": result["rows"]}
    assert result["computed"] == 2
    assert "fid is unavailable: " in done.stderr
    words = ("score", "--labels", made.folder / LABELS_FILE, "--metrics", "mse,fid")
    places = ["--cache-dir", asked["scores"], "--checkpoints", asked["checkpoints"]]
    assert list(result["unavailable"]) == ["fid"]
    assert (jobs.latest(made).done, jobs.latest(made).total) == (20, 20)  # pairs, once a metric
    assert len(list((tmp_path / "scores").iterdir())) == 2
    again = run(*words, *places, "--out", tmp_path / "all.parquet")
    assert again.exit_code == 1
    assert len(pd.read_parquet(tmp_path / "all.parquet")) == 10
    rows = json.loads(run(*words, *places, "--json").stdout)["sets"]
    assert [(row["model"], row["metric"], row["n"]) for row in rows] == [
        (model, "mse", 5) for model in sorted(MODELS[:2])
    ]


def test_weights_lists_what_is_here_and_what_is_not(tmp_path):
    (tmp_path / "net.pth").write_bytes(b"weights")
    put_in_manifest(tmp_path, {"net": tmp_path / "net.pth"})
    listed = run("weights", "--checkpoints", tmp_path)
    assert listed.exit_code == 0
    assert "net" in listed.output
    assert "ok" in listed.output
    (tmp_path / "net.pth").unlink()
    listed = run("weights", "net", "--checkpoints", tmp_path)
    assert listed.exit_code == 1
    assert "net.pth is missing" in listed.output


def test_weights_are_fetched_only_when_named_and_asked_for(tmp_path):
    source = tmp_path / "web"
    source.mkdir()
    (source / "net.pth").write_bytes(b"weights")
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    put_in_manifest(folder, {"net": source / "net.pth"})

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=source)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        manifest = json.loads((folder / "manifest.json").read_text())
        address = f"http://127.0.0.1:{server.server_port}/net.pth"
        manifest["files"]["net"]["url"] = address
        (folder / "manifest.json").write_text(json.dumps(manifest))
        assert run("weights", "net", "--checkpoints", folder).exit_code == 1
        assert not (folder / "net.pth").exists()
        assert run("weights", "--download", "--checkpoints", folder).exit_code == 2
        fetched = run("weights", "net", "--download", "--checkpoints", folder)
        server.shutdown()
    assert fetched.exit_code == 0, fetched.output
    assert (folder / "net.pth").read_bytes() == b"weights"


def test_a_semsim_brings_the_controls_that_lie_beside_it(tmp_path):
    resources = Resources()  # of the repository, where the demo's lies with both
    assert _names("psnr,semsim:demo@attacked", resources) == [
        "psnr",
        "semsim:demo@attacked",
        "semsim:demo.start@attacked",
        "semsim:demo.calibrated@attacked",
    ]
    assert _names("semsim:demo.start", resources) == ["semsim:demo.start"]
    alone = Resources(checkpoints=tmp_path)
    assert _names("semsim:demo", alone) == ["semsim:demo"]
    (tmp_path / "demo.safetensors").write_bytes(b"broken")
    assert _names("semsim:demo", alone) == ["semsim:demo"]


@pytest.mark.parametrize("of_sets", [False, True])
def test_the_way_of_a_score_leads_through_few_files(tmp_path, of_sets):
    """Files, without `semsim.base`, whose functions run; with metrics of one file."""
    one = sorted((ROOT / "data/demo/sets").iterdir())[0]
    pairs = (one / "originals", one / "reconstructions")
    words = ("--set", one, "--cache-dir", tmp_path / "kept") if of_sets else pairs
    words = ("score", *words, "--metrics", "mse,psnr", "--out", tmp_path / "scores.parquet")
    CliRunner().invoke(program, ["score", "--help"])  # imports what commands need
    seen = set()

    def called(frame, event, _):
        place = Path(frame.f_code.co_filename)
        if event == "call" and place.is_relative_to(ROOT / "semsim"):
            seen.add(place.relative_to(ROOT / "semsim").as_posix())

    sys.setprofile(called)
    threading.setprofile(called)
    try:
        done = CliRunner().invoke(program, [str(word) for word in words])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert (done.exit_code, "psnr" in done.stdout) == (0, True), done.output
    assert (tmp_path / "scores.parquet").is_file()
    path = {name for name in seen if not name.startswith("base/")}
    shared = {"cli/score.py", "device.py", "images.py"}
    shared |= {f"metrics/{name}.py" for name in ("__init__", "base", "pixel", "scoring")}
    assert path == shared | ({"weights.py"} if of_sets else set())
