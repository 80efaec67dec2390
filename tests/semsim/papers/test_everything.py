"""The map of everything: what it is made of, what cannot be, and its smallest scale whole."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from made_campaign import grid_in_this_process, quick_jury
from made_marks import marked, unmarked
from PIL import Image
from typer.testing import CliRunner

from benchmarks.cheap_claims import cells_of_the_map
from semsim.attacks import ATTACKS
from semsim.base.errors import SettingsError
from semsim.base.sets.reader import read_set
from semsim.cli.reproduce import app
from semsim.defences import DEFENCES, NAMED_STRATEGIES
from semsim.images import read_image
from semsim.papers import everything
from semsim.papers.everything import (
    MapCell,
    cells_of,
    plans_of,
    refused,
    scale_of,
    strategies,
    with_ranges,
)
from semsim.papers.judged import Found
from semsim.papers.simulated_votes import write_controls
from semsim.types import LabelledImages

LINEAR = ("spear", "imprint")  # no network here begins with a linear layer


def typed(*words: str):
    return CliRunner().invoke(app, ["everything", "--device", "cpu", *words])


def test_all_that_is_registered_is_asked_for():
    for name in ("small", "paper"):
        asked = [cell for _, one in scale_of(name).parts for cell, _, _ in cells_of(one)]
        assert {key.attack for key in asked} == {*ATTACKS}
        assert {key.strategy for key in asked} >= {*NAMED_STRATEGIES, "resized-crop-flip"}
        assert asked[0].strategy == "none"
        assert len(asked) == len(set(asked))
    with pytest.raises(SettingsError, match="smoke, small, paper"):
        scale_of("large")


def test_a_defence_that_no_strategy_has_is_a_strategy_of_its_own(monkeypatch):
    monkeypatch.setattr(everything, "DEFENCES", {**DEFENCES, "newest": object})
    assert strategies()[-1] == "newest"
    assert "gradient-noise" not in strategies()  # `noise` is made of it


def test_what_does_not_go_together_is_known_before_anything_is_computed():
    scale = scale_of("smoke")
    campaigns = [one for _, one in scale.parts]
    tried, plans = [refused(one) for one in campaigns], plans_of(scale)
    unfit = {
        key: why
        for one in tried
        for key, attack, strategy in cells_of(one.campaign)
        if (why := one.why(attack, strategy))
    }
    assert {key.network for key in unfit if key.attack not in LINEAR} == {"cnn-small"}
    assert "cannot undo BatchNorm2d" in unfit[MapCell("cnn-small", "none", "rgap")]
    # Both refuse: the strategy's reason stands there, since without it there is no target.
    assert "DP-SGD" in unfit[MapCell("cnn-small", "dp-sgd", "copa")]
    computed = [everything.key_of(one) for plan in plans.values() for one in plan.sets]
    every = [cell for one in campaigns for cell, _, _ in cells_of(one)]
    assert sorted([*computed, *unfit]) == sorted(every)
    first = campaigns[0]
    assert len(plans[first.name].sets) == (len(first.attacks) - len(LINEAR)) * len(first.strategies)
    lines = [line for one in tried for line in one.lines()]
    assert {line.partition(":")[0] for line in lines} == {
        "cnn4 without spear",
        "cnn4 without imprint",
        "cnn-small without rgap, copa and copa-prior",
        "cnn-small without spear",
        "cnn-small without imprint",
        "cnn-small without dp-sgd",
    }


def test_controls_are_what_they_are_called(tmp_path):
    images = LabelledImages(
        dataset="toy",
        classes=("a", "b"),
        ids=("x", "y"),
        images=torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)),
        labels=torch.tensor([1, 0]),
    )
    train = replace(images, images=torch.stack([torch.zeros(3, 8, 8), torch.ones(3, 8, 8) * 0.5]))
    grey, mean, same = (read_set(one) for one in write_controls(images, train, tmp_path).values())
    for found, value in ((grey, 128), (mean, 64)):
        for path in found.pairs["reconstruction"]:
            assert set(np.asarray(Image.open(path)).flatten()) == {value}
    for row in same.pairs.itertuples():
        shown, original = (read_image(Path(p)) for p in (row.reconstruction, row.original))
        assert torch.equal(shown, original)
    assert same.pairs["class_name"].tolist() == ["b", "a"]


def test_data_that_is_not_here_is_said_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no data lie
    done = typed("--preset", "paper", "--out", str(tmp_path / "work"))
    assert done.exit_code == 2
    assert "cifar100" in done.stderr.lower().replace("-", "")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_has_cells_and_steps_and_computes_nothing(tmp_path):
    done = typed("--preset", "smoke", "--plan", "--json", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["works"]
    attacked = [row for row in rows if row["what"].startswith("attack ")]
    # Two originals in 3 × 8 cells, and in 2 × 5 on the second network.
    assert sum(row["cells"] for row in attacked) == 2 * 34
    few = dict.fromkeys(ATTACKS, "fast,steps=2") | {"copa-prior": "fast,steps=2,inner=4"}
    for one in LINEAR:
        few.pop(one)
    assert {row["what"] for row in attacked} == {f"attack {name}:{few[name]}" for name in few}
    assert all(row["steps"] == 2 * row["cells"] for row in attacked)
    assert [row for row in rows if row not in attacked] == [
        {
            "part": rows[0]["part"],
            "what": "train targets",
            "cells": 5,
            "done": 0,
            "steps": 5,
        }
    ]
    assert "73 cells, 0 of them done" in done.stderr
    assert "34 cells to compute, 2 originals each; 26 that cannot be" in done.stderr
    assert not list(tmp_path.glob("smoke/runs/everything*"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The smallest scale, on a cluster in this process; `test_deployed` carries one out twice."""
    folder = tmp_path_factory.mktemp("map")
    with grid_in_this_process(), quick_jury():
        done = typed("--preset", "smoke", "--json", "--workers", "1", "--out", str(folder))
    assert done.exit_code == 0, done.output
    return folder / "smoke", done


def test_every_cell_has_a_number_or_a_reason(made):
    folder, done = made
    table = pd.read_csv(folder / "map.csv", keep_default_na=False, na_values=[""])
    assert len(json.loads(done.stdout)["cells"]) == len(table) == 2 * 3 * len(ATTACKS) + 3
    assert table["simulated"].all()
    numbers = table[["people", "psnr", "ssim", "mse", "recogniser", "semsim:demo"]]
    without = table["status"].isin(["failed", "cannot be"])
    assert numbers[without].isna().all(axis=None)
    assert numbers[~without].notna().all(axis=None)
    assert table.loc[without, "why"].notna().all()
    controls = table[table["status"] == "control"].set_index("attack")
    assert controls.loc["the original itself", "mse"] == 0
    assert np.isinf(controls.loc["the original itself", "psnr"])
    ours = table[table["status"] == "ok"]
    assert ours["target_accuracy"].between(0, 1).all()
    private = ours["strategy"] == "dp-sgd"
    assert (ours["target_epsilon"].notna() == private).all()


def test_the_map_is_marked_as_simulated_wherever_it_is_shown(made):
    folder, _ = made
    text = (folder / "map.md").read_text(encoding="utf-8")
    assert (
        text.count("Simulated annotators: no evidence about people.") == text.count("\n\n| ") - 1
    )  # the table of reasons has no numbers
    assert "cannot undo BatchNorm2d" in text
    columns = pd.read_csv(folder / "map.csv").columns
    assert ("lpips-alex" in columns) != ("lpips-alex has no column: " in text)
    drawn = (folder / "map.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    with Image.open(folder / "map.png") as picture:
        assert picture.width > 1000


def test_the_metric_of_the_voters_kind_is_marked(made):
    folder, _ = made
    for name in ("map.md", "agreement.csv"):
        text = (folder / name).read_text(encoding="utf-8")
        assert marked(text)
        assert unmarked(text) == []


def test_the_rank_agreement_leaves_the_controls_out(made):
    folder, _ = made
    table, agreement = (pd.read_csv(folder / f"{name}.csv") for name in ("map", "agreement"))
    assert (agreement["n"] == (table["status"] == "ok").sum()).all()
    assert agreement["simulated"].all()
    told = agreement["rho"].notna() | agreement["undefined"].notna()
    assert told.all()


def test_cells_that_share_attack_and_target_count_as_one():
    """Each cell twice tells no more of other attacks and targets; an interval over cells would."""
    cells, specs = cells_of_the_map()
    agreement = pd.DataFrame({"metric": [one.name for one in specs]})
    once = with_ranges(Found(cells, agreement, specs, {}))
    twice = with_ranges(Found(pd.concat([cells, cells]), agreement, specs, {}))
    assert twice["low"].tolist() == pytest.approx(once["low"].tolist())
    assert (once["high"] - once["low"] > 0.2).all()


def test_few_attacks_have_no_range():
    cells, specs = cells_of_the_map()
    few = cells[cells["attack"].isin(["invgrad", "prior", "dlg"])]
    found = with_ranges(Found(few, pd.DataFrame({"metric": ["psnr"]}), specs, {}))
    assert found[["low", "high"]].isna().all(axis=None)
