import pytest
from typer.testing import CliRunner

from semsim.attacks.as_text import read_attack
from semsim.campaign.vertical import VerticalRun, attack_vertical
from semsim.cli.main import app
from semsim.errors import SettingsError
from semsim.images import read_images
from semsim.sets.reader import read_set

SYMBOLS = "symbols:size=16,test_per_class=1"


def test_cafe_ends_in_a_reconstruction_set(tmp_path):
    asked = ["--name", "split", "--dataset", SYMBOLS, "--images", "4", "--batch-size", "2"]
    asked += ["--attack", "cafe:steps=300", "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(app, ["campaign", "vertical", *asked])
    assert done.exit_code == 0, done.output
    assert "4 ok / 0 failed" in done.output
    found = read_set(tmp_path / "runs/split/quartered__cafe")
    assert found.run["attack"]["settings"]["steps"] == 300
    pairs = found.pairs
    assert not pairs["worse_than_grey"].any()
    originals, pictures = (read_images(list(pairs[c])) for c in ("original", "reconstruction"))
    # 17 dB on average: as told apart as in the tests of the attack; grey has about 8 dB.
    assert (originals - pictures).square().mean() < 0.02


def test_a_trained_vertical_target_is_attacked_under_its_strategy(tmp_path):
    run = VerticalRun(
        name="trained",
        dataset="symbols:size=16,train_per_class=2,test_per_class=1",
        attack="cafe:steps=20",
        images=4,
        batch=2,
        strategy="crop-flip",
        train="epochs=2,lr=0.01",
    )
    found = read_set(attack_vertical(run, tmp_path))
    assert found.folder.name.startswith("quartered-8__crop-flip")
    assert found.model == "quartered-8/crop-flip/cafe"
    assert found.run["target"]["trained"]
    assert found.run["target"]["strategy"]["name"] == "crop-flip"
    manifest = found.manifest
    moved = manifest["shift_x"].ne(0) | manifest["shift_y"].ne(0) | manifest["flipped"]
    assert moved.any()
    originals, attacked = (read_images(list(found.pairs[c])) for c in ("original", "attacked"))
    assert (originals != attacked).flatten(1).any(1).tolist() == moved.tolist()


def test_too_few_rounds_are_a_failure_with_its_reason(tmp_path):
    run = VerticalRun(name="few", dataset=SYMBOLS, images=4, batch=2, rounds=2)
    manifest = read_set(attack_vertical(run, tmp_path)).manifest
    assert (manifest["status"] == "failed").all()
    assert manifest["error"].str.contains("2 rounds do not tell 4 images apart").all()


def test_a_batch_larger_than_all_images_is_refused():
    with pytest.raises(SettingsError, match="1 to 4 images"):
        VerticalRun(name="x", images=4, batch=5)


def test_clipping_each_image_of_a_batch_is_refused(tmp_path):
    run = VerticalRun(name="x", dataset=SYMBOLS, images=2, batch=1, strategy="dp-sgd")
    with pytest.raises(SettingsError, match="DP-SGD cuts that of each image"):
        attack_vertical(run, tmp_path)


def test_a_grid_says_where_cafe_is():
    with pytest.raises(SettingsError, match="campaign vertical"):
        read_attack("cafe:steps=2")
