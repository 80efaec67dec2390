"""The demo that is committed, and, on a toy scale, the builder that made it."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from semsim.campaign.demo import build_demo
from semsim.campaign.demo_plan import DemoSettings, strategies
from semsim.datasets.symbols import Symbols
from semsim.defences import DEFENCES, STRATEGIES, make
from semsim.errors import SettingsError
from semsim.images import read_image, to_uint8
from semsim.registry import build
from semsim.sets.reader import read_set
from semsim.targets import load_target

DEMO = Path(__file__).resolve().parents[3] / "data/demo"


@pytest.fixture(scope="module")
def sets():
    return [read_set(folder) for folder in sorted((DEMO / "sets").iterdir())]


def test_two_architectures_under_the_seven_strategies_and_the_same_originals(sets):
    assert sorted(found.model for found in sets) == sorted(
        f"{architecture}/{strategy}"
        for architecture in ("resnet20-4", "convnet8")
        for strategy in STRATEGIES["code"]
    )
    for found in sets:
        images = found.run["demo"]["images"]
        assert len(found.manifest) == found.manifest["class_name"].nunique() == images
        assert set(found.manifest["image_id"]) == set(sets[0].manifest["image_id"])


def test_fits_five_megabytes():
    assert sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file()) <= 5_000_000


def test_originals_are_the_data_set_to_the_pixel(sets):
    test = Symbols()("test")
    for row in sets[0].pairs.itertuples():
        expected = test.images[test.ids.index(row.image_id)]
        assert (to_uint8(read_image(Path(row.original))) == to_uint8(expected)).all()


def test_records_say_how_they_were_made(sets):
    for found in sets:
        run = found.run
        assert run["attack"]["name"] == "invgrad"
        assert run["attack"]["settings"]["steps"] == run["demo"]["steps"]
        assert 0 <= run["target"]["accuracy"] <= 1
        assert len(run["target"]["weights_sha256"]) == 64
        assert run["versions"]["torch"]
        assert run["device"]
        assert run["seconds"] > 0
        assert found.manifest["shift_x"].any() != found.model.endswith("/none")


def test_attacked_images_are_what_the_strategy_made_of_the_originals(sets):
    """Worked out again on this machine; the same seed gives the shifts on record."""
    test = Symbols()("test")
    for found in sets:
        strategy, seed = found.run["target"]["strategy"], found.run["seed"]
        defence = build(DEFENCES, strategy["name"], strategy["settings"])
        for place, row in enumerate(found.pairs.itertuples()):
            original = test.images[test.ids.index(row.image_id)]
            rng = torch.Generator().manual_seed(seed * 100_003 + place)
            made = defence.images(original[None], rng)
            assert (int(made.shift_x), int(made.shift_y)) == (row.shift_x, row.shift_y)
            assert bool(made.flipped) == row.flipped
            expected = to_uint8(made.images[0])
            # Another machine may round another way.
            found_levels = to_uint8(read_image(Path(row.attacked))).astype(int)
            assert abs(found_levels - expected).max() <= 1
            assert (row.attacked != row.original) == (expected != to_uint8(original)).any()
        files = list((found.folder / "attacked").glob("*"))
        assert len(files) == (found.manifest["attacked"] != found.manifest["original"]).sum()


def test_quality_spans_from_clear_to_hopeless(sets):
    errors = [
        (read_image(Path(r.original)) - read_image(Path(r.reconstruction))).square().mean().item()
        for found in sets
        for r in found.pairs.itertuples()
    ]
    assert min(errors) < 0.01  # 20 dB
    assert max(errors) > 0.1  # 10 dB


def test_the_recogniser_knows_clean_images_and_is_not_the_predictor(sets):
    recogniser = load_target(DEMO / "recogniser.safetensors")
    test = Symbols()("test")
    share = (recogniser(test.images).argmax(1) == test.labels).float().mean()
    assert share > 0.9
    assert all(found.run["predictor"]["architecture"]["name"] != "cnn-small" for found in sets)


def test_predictions_are_probabilities_over_all_classes(sets):
    table = pd.read_parquet(sets[0].folder / "predictions.parquet")
    assert set(table["subject"]) == {"original", "reconstruction"}
    totals = table.groupby(["image_id", "subject"])["probability"].sum()
    assert len(totals) == len(sets[0].manifest) + len(sets[0].pairs)
    assert ((totals - 1).abs() < 1e-3).all()  # rounded to six digits


COST = ("seconds", "batches_reused")
MODELS = 14
TOY = DemoSettings(
    images=3,
    train_per_class=1,
    narrower=8,
    steps=2,
    judge_epochs=1,
    judge_per_class=1,
    together=2,
    device="cpu",
    workers=1,
)


def test_an_interrupted_build_goes_on_and_ends_in_the_same_files(tmp_path):
    # Judges on 5,640 images would take minutes; one image a class says as much about the builder.
    build_demo(tmp_path / "out", tmp_path / "work", TOY)
    for path in sorted((tmp_path / "work/attacks").iterdir())[::2]:
        path.unlink()
    steps = []
    folders = build_demo(tmp_path / "again", tmp_path / "work", TOY, report=steps.append)
    assert len(folders) == MODELS
    assert digest(tmp_path / "again") == digest(tmp_path / "out")
    assert read_set(folders[0]).run["batches_reused"] == MODELS
    moved = {found.model: found.pairs for found in map(read_set, folders)}["convnet8/crop-flip"]
    assert all(Path(path).is_file() for path in moved["attacked"])
    assert (moved["attacked"] != moved["original"]).any()
    assert steps[-1].done == steps[-1].total == 2 + MODELS + 2 * MODELS


def test_gradient_defences_change_what_leaks_too():
    for name in ("pruning", "noise"):
        defence = make(strategies(TOY)[name])
        gradient = torch.linspace(0.1, 1, 10)
        (shared,) = defence.gradients((gradient,), torch.Generator().manual_seed(0), "attack")
        assert not torch.equal(shared, gradient)


def test_more_images_than_classes_are_refused():
    with pytest.raises(SettingsError, match="47 images"):
        DemoSettings(images=48)


def digest(folder: Path) -> dict[str, str]:
    """Of every file, but for what a build cost."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if path.name == "run.json":
            content = json.dumps({**json.loads(content), **dict.fromkeys(COST)}).encode()
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found
