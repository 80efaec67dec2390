"""The reproduction of PBPFL's tables, at the smallest size."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from made_papers import check_kept
from typer.testing import CliRunner

from benchmarks.finding import indexed
from benchmarks.papers import read_pbpfl
from semsim.base.errors import SettingsError
from semsim.base.progress import Progress
from semsim.cli.reproduce import app
from semsim.grid.executor import make_files
from semsim.images import write_png
from semsim.papers.pbpfl import (
    AGAIN,
    CLASSES,
    CLIENTS,
    PRESETS,
    ROWS,
    TABLE_5,
    VALUES,
    LeakPlan,
    commonest_share,
    cost_figures,
    costs,
    costs_text,
    leak_pieces,
    leak_text,
    mean_error,
    reproduced,
    table_parts,
    trainings,
    with_own,
)
from semsim.systems.federated.comparison import load
from semsim.systems.federated.settings import ARMS, REFERENCE, RESCALED
from tests.made_campaign import one_thread_cluster


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The smallest preset, its folder and its text."""
    chosen, folder = PRESETS["smoke"], tmp_path_factory.mktemp("pbpfl")
    return chosen, folder, reproduced(chosen, folder)


def test_what_benchmarks_keep_of_it_lies_in_its_folder(made):
    """Smoke attacks one network and few arms; others stand in with its figures."""
    read = read_pbpfl(made[1])
    leak = read.tables["leak"]
    plain = leak[leak["arm"] == REFERENCE]
    arms = [plain.assign(arm=one) for one in (RESCALED, "server-zero-sum")]
    own = pd.concat([leak, *arms]).drop_duplicates(["where", "arm"])
    other = own.assign(where=own["where"].str.replace("mlp-3", "lenet"))
    every = pd.concat([other, own])
    read.tables["leak"] = indexed(every, every["where"] + ", " + every["arm"])
    check_kept("pbpfl", read)
    check_kept("pbpfl-smoke", read_pbpfl(made[1]))


def test_all_tables_are_made_and_an_interrupted_run_goes_on(made):
    chosen, tmp_path, text = made
    for number in (2, 4, 5, 6):
        assert f"Table {number}." in text
    assert all(f"K={clients}" in text for clients in CLIENTS)
    gaps = [float(gap) for gap in re.findall(r"end (\S+) apart", text)]
    assert len(gaps) == 2
    assert max(gaps) < 1e-9
    moved = [float(least) for least in re.findall(r"changed by (\S+) or more", text)]
    assert len(moved) == 2
    assert min(moved) > 1e-4  # else that nothing was trained would pass for agreement
    assert "0.059 / 0.079 / 0.097" in text  # the paper's, of bank marketing
    assert f"The training mean for every example: {mean_error(chosen.table):.3f}" in text
    parts = json.loads(json.dumps(table_parts(chosen, tmp_path)))
    assert {*parts} == {"leak", *(f"table_{number}" for number in (2, 4, 5, 6))}
    assert {row["clients"] for row in parts["table_2"]} == set(CLIENTS)
    assert {"perturb", "forward"} <= set(parts["table_5"][0])
    kept = next(tmp_path.glob("breast-cancer-*.json"))
    cells = json.loads(kept.read_text())["cells"]
    assert {cell["scheme"] for cell in cells} == {"FedAvg-MSE", "PBPFL"}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert reproduced(chosen, tmp_path) == text
    again = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert {path for path in again if again[path] != before[path]} <= {
        tmp_path / name for name in ("leak.json", "preset.json")
    }
    with pytest.raises(SettingsError, match="Choose another folder"):
        reproduced(replace(chosen, table_epochs=2), tmp_path)


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, str, str]:
    """A table with the target y, and the data texts of images with a number and in classes."""
    bank, eyes, skin = tmp_path / "bank.csv", tmp_path / "eyes", tmp_path / "skin"
    bank.write_text("age,y\n" + "\n".join(f"{row},{row % 2}" for row in range(60)))
    for place in range(48):
        image = torch.full((3, 8, 8), place / 48)
        for folder, name in ((eyes, "all"), (skin, "ab"[place % 2])):
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_png(image, folder / name / f"{place}.png")
    (eyes / "train.csv").write_text("id,grade\n" + "\n".join(f"{p},{p % 5}" for p in range(48)))
    retina = f"table:path={eyes / 'train.csv'},target=grade,images={eyes / 'all'},size=8"
    return bank, retina, f"folder:root={skin},size=8"


def test_the_papers_data_take_the_place_of_what_stands_in_for_them(tmp_path: Path, own):
    bank, retina, lesions = own
    usual = replace(PRESETS["smoke"], leak=LeakPlan(networks=()), image_network="resnet20")
    chosen = with_own(usual, f"table:path={bank},target=y", retina, lesions)
    text = reproduced(chosen, tmp_path / "out")
    tables = (bank, bank.with_name("eyes"))
    assert [text.count(f"examples of table:path={path}") for path in tables] == [1, 1]
    assert f"test images of {lesions}" in text
    assert text.count("resnet20 ") >= 5  # two schemes of numbers, three of classes
    parts = table_parts(chosen, tmp_path / "out")
    trained = [*parts["table_2"], *parts["table_4"]]
    assert {row["data"] for row in trained} == {chosen.table, retina, lesions}
    ours = [row for row in trained if row["scheme"] == "PBPFL"]
    assert len(ours) == len(CLIENTS) * (len(chosen.networks) + 2)
    assert max(row["gap"] for row in ours) < 1e-9  # of FedAvg's parameters
    assert min(row["moved"] for row in ours) > 1e-6
    for wrong, words in (
        ({"table": lesions}, "holds images"),
        ({"images": retina}, "no classes"),
        ({"valued": lesions}, "has classes"),
    ):
        with pytest.raises(SettingsError, match=words):
            with_own(usual, **wrong)


def test_a_table_that_has_changed_is_not_taken_for_what_it_was(tmp_path: Path, own):
    bank, _, _ = own
    usual = replace(PRESETS["smoke"], leak=LeakPlan(networks=()))
    chosen = with_own(usual, f"table:path={bank},target=y")
    text = reproduced(chosen, tmp_path / "out")
    assert reproduced(chosen, tmp_path / "out") == text
    bank.write_text(bank.read_text().replace("7,1", "7,0"))
    with pytest.raises(SettingsError, match="of other settings or data"):
        reproduced(chosen, tmp_path / "out")


def test_the_papers_data_are_named_as_the_page_types_them(tmp_path: Path, own):
    bank, retina, lesions = own
    typed = ["pbpfl", "--preset", "smoke", "--plan", "--json", "--out", tmp_path / "out"]
    named = ["--table", bank, "--target", "y", "--abd", retina, "--ldc", lesions]
    done = CliRunner().invoke(app, [str(word) for word in typed + named])
    assert done.exit_code == 0, done.output
    parts = {row["part"] for row in json.loads(done.stdout)["works"]}
    assert parts >= {"Table 2", "Table 2, images", "Table 4"}  # smoke has no images of its own
    half = CliRunner().invoke(app, [str(word) for word in typed + named[:2]])
    assert half.exit_code == 2
    assert "needs --table and --target" in half.output


def test_two_tables_of_ones_own_are_kept_in_files_of_their_own(tmp_path: Path, own):
    bank, retina, _ = own
    chosen = with_own(PRESETS["smoke"], f"table:path={bank},target=y", retina)
    assert chosen.image_network in chosen.networks  # of which both tables have one
    made = trainings(chosen, tmp_path)
    pieces = [*made[ROWS], *made[VALUES]]
    assert len({piece.key for piece in pieces}) == len(pieces) > 0
    small = trainings(PRESETS["small"], tmp_path)
    names = {
        Path(piece.key).name for piece in [*small[ROWS], *small[CLASSES]]
    }  # as they always were
    assert {"breast-cancer-mlp-3-k1-seed0.json", "digits-resnet20-k5-seed1.json"} <= names


def test_small_predicts_classes_and_numbers_of_images_with_the_papers_network():
    small = PRESETS["small"]
    assert small.image_network == "resnet20"
    assert load(small.valued).data.input_shape == (3, 8, 8)
    assert small.leak.networks == ("lenet", "mlp-3")
    assert small.leak.arms == tuple(ARMS)


def test_controls_are_what_can_be_said_without_looking_at_an_example():
    digits, values = load("digits").data, load("digit-values").data
    train, test = (split.targets.flatten().tolist() for split in (values.train, values.test))
    mean = sum(train) / len(train)
    slow = sum((one - mean) ** 2 for one in test) / len(test)
    assert mean_error("digit-values") == pytest.approx(slow)
    labels = [split.labels.tolist() for split in (digits.train, digits.test)]
    most = max(range(10), key=labels[0].count)
    assert commonest_share("digits") == pytest.approx(labels[1].count(most) / len(labels[1]))
    with pytest.raises(SettingsError, match="no classes"):
        commonest_share("breast-cancer")


def test_costs_are_told_as_the_paper_has_them_beside_a_control():
    figures = cost_figures(TABLE_5["FedAvg"], TABLE_5["PBPFL"])
    told = ["1.00", "2.54", "2.50", "1.04", "0.04", "0.04"]
    assert [f"{figure:.2f}" for figure in figures] == told
    seconds = {name: {"seconds": one} for name, one in TABLE_5.items()}
    seconds[AGAIN] = seconds["FedAvg"]
    facts = {"network": "n", "batch": 4, "side": 32, "rounds": 3, "began": "load 0.5"}
    text = costs_text({**seconds, **facts})
    assert "begun with load 0.5" in text
    rows = [line.split()[-3:] for line in text.splitlines()[2:8]]
    assert [row[0] for row in rows] == [row[2] for row in rows] == told
    assert [row[1] for row in rows] == ["1.00"] * 4 + ["0.00"] * 2


def test_a_cost_that_the_clock_does_not_tell_has_no_ratio():
    nothing = dict.fromkeys(TABLE_5["FedAvg"], 0.0)
    assert all(map(math.isnan, cost_figures(nothing, TABLE_5["PBPFL"])))
    facts = {"network": "n", "batch": 1, "side": 8, "rounds": 1, "began": "load 0.5"}
    seconds = {name: {"seconds": nothing} for name in ("FedAvg", "PBPFL", AGAIN)}
    rows = [line.split()[-3:] for line in costs_text({**seconds, **facts}).splitlines()[2:8]]
    assert [row[:2] for row in rows] == [["–", "–"]] * 6


def test_messages_of_the_papers_resnet56_have_the_papers_numbers():
    chosen = replace(PRESETS["small"], side=8, cost_batch=1, cost_rounds=1)
    found = costs(chosen)
    assert found["parameters"] == 851_312
    plain, masked = found["FedAvg"]["traffic"], found["PBPFL"]["traffic"]
    assert plain["numbers_down"] == plain["numbers_up"] == 851_312
    assert masked["numbers_down"] == 851_312 + 7  # and the noise vector
    last_layer = 64 * 7
    assert masked["numbers_up"] == 3 * 851_312 - last_layer
    # safetensors adds names and shapes to 8 bytes a number
    assert masked["bytes_up"] == pytest.approx(8 * masked["numbers_up"], rel=0.01)


def test_untrained_and_trained_networks_are_attacked_under_several_seeds(tmp_path: Path):
    plan = PRESETS["smoke"].leak
    told: list[Progress] = []
    tasks = leak_pieces(plan, tmp_path)
    assert len(tasks) == 2 * 2 * 3  # rounds, seeds, arms
    make_files(tasks[:1])
    make_files(tasks, report=told.append)
    done = [progress.done for progress in told]
    assert (done[0], done[-1]) == (100, 1200)
    assert done == sorted(done)
    text = leak_text(plan, tmp_path)
    assert "mlp-3, untrained" in text
    assert "mlp-3, after 1 rounds" in text
    found = json.loads((tmp_path / "leak.json").read_text())["found"]
    for one in found:
        solved = next(s for s in one["scores"] if s["arm"] == "uplink-closed-form")
        assert solved["images"] == 4
        assert solved["ssim"] == pytest.approx(1.0, abs=1e-3)  # pictures have 8 bits
        assert solved["verdict"] == "as much"


def test_work_in_other_processes_finds_the_same(tmp_path: Path):
    plan = replace(PRESETS["smoke"].leak, rounds=(2,), seeds=1)
    make_files(leak_pieces(plan, tmp_path / "here"))
    make_files(leak_pieces(plan, tmp_path / "there"), workers=2)
    with one_thread_cluster() as cluster:
        make_files(leak_pieces(plan, tmp_path / "far"), scheduler=cluster.scheduler_address)
    texts = {leak_text(plan, tmp_path / place) for place in ("here", "there", "far")}
    assert len(texts) == 1


def test_a_scheduler_that_is_not_there_is_said(tmp_path: Path):
    words = ["--preset", "smoke", "--scheduler", "nonsense://x", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["pbpfl", *words])
    assert done.exit_code == 2
    assert "No Dask scheduler answers" in " ".join(done.output.split())


def test_a_failure_is_not_swallowed(tmp_path: Path):
    plan = replace(PRESETS["smoke"].leak, data="breast-cancer")
    with pytest.raises(SettingsError, match="is a table"):
        make_files(leak_pieces(plan, tmp_path))
