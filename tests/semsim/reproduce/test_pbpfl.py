"""The reproduction of PBPFL's tables, at the smallest size."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from semsim.errors import SettingsError
from semsim.progress import Progress
from semsim.reproduce.pbpfl import CLIENTS, PRESETS, carry_out_all, costs, reproduced
from semsim.reproduce.pbpfl_leak import LeakPlan, leak_pieces, leak_text


def test_all_tables_are_made_and_an_interrupted_run_goes_on(tmp_path: Path):
    chosen = replace(PRESETS["smoke"], seeds=1, leak=LeakPlan(networks=()))
    text = reproduced(chosen, tmp_path)
    for number in (2, 4, 5, 6):
        assert f"Table {number}." in text
    assert all(f"K={clients}" in text for clients in CLIENTS)
    gaps = [float(gap) for gap in re.findall(r"end (\S+) apart", text)]
    assert len(gaps) == 2
    assert max(gaps) < 1e-9
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
    carry_out_all(tasks[:1])
    carry_out_all(tasks, report=told.append)
    done = [progress.done for progress in told]
    assert (done[0], done[-1]) == (1, 12)
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
    carry_out_all(leak_pieces(plan, tmp_path / "here"))
    carry_out_all(leak_pieces(plan, tmp_path / "there"), workers=2)
    assert leak_text(plan, tmp_path / "here") == leak_text(plan, tmp_path / "there")


def test_a_failure_is_not_swallowed(tmp_path: Path):
    plan = replace(PRESETS["smoke"].leak, data="breast-cancer")
    with pytest.raises(SettingsError, match="is a table"):
        carry_out_all(leak_pieces(plan, tmp_path))
