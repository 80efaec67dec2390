import pytest
import torch
from made_pictures import blocky
from typer.testing import CliRunner

from semsim.attacks.as_text import read_attack
from semsim.attacks.cafe import QuarteredNet
from semsim.base.errors import SettingsError
from semsim.base.sets.reader import read_set
from semsim.campaign import vertical
from semsim.campaign.vertical import VerticalRun, attack_vertical, vertical_sets
from semsim.cli.main import app
from semsim.images import read_images

SYMBOLS = "symbols:size=16,test_per_class=1"


def test_cafe_ends_in_a_reconstruction_set(tmp_path):
    asked = ["--name", "split", "--dataset", SYMBOLS, "--images", "4"]
    asked += ["--attack", "cafe:steps=150", "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(app, ["campaign", "vertical", *asked])
    assert done.exit_code == 0, done.output
    assert "4 ok / 0 failed" in done.output
    found = read_set(tmp_path / "runs/split/quartered__cafe")
    assert found.run["attack"]["settings"]["steps"] == 150
    pairs = found.pairs
    assert not pairs["worse_than_grey"].any()
    originals, pictures = (read_images(list(pairs[c])) for c in ("original", "reconstruction"))
    # 17 dB on average: as told apart as in the tests of the attack; grey has about 8 dB.
    assert (originals - pictures).square().mean() < 0.02
    other = CliRunner().invoke(app, ["campaign", "vertical", *asked, "--seed", "5"])
    assert other.exit_code == 2
    assert "Another run is called 'split'" in " ".join(other.output.split())
    none = [*asked[2:], "--name", "none", "--rounds", "2"]
    assert CliRunner().invoke(app, ["campaign", "vertical", *none]).exit_code == 3
    assert CliRunner().invoke(app, ["campaign", "vertical", *none, "--rounds", "-1"]).exit_code == 2


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


@pytest.mark.parametrize("batch", [-1, 4, 5])
def test_a_batch_is_some_of_all_images(batch):
    """Rounds of all images are one equation, however many there are."""
    with pytest.raises(SettingsError, match=r"1 to 3 of 4 images, .* take a smaller batch"):
        VerticalRun(name="x", images=4, batch=batch)


@pytest.mark.parametrize(("images", "batch"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (9, 4)])
def test_without_a_batch_a_round_has_half_of_the_images(images, batch):
    assert VerticalRun(name="x", images=images).in_a_round == batch
    assert VerticalRun(name="x", images=images, batch=1).in_a_round == 1


def test_no_image_is_no_run():
    with pytest.raises(SettingsError, match="At least one image"):
        VerticalRun(name="x", images=0)


def test_a_set_of_a_folder_that_has_changed_is_made_again(tmp_path):
    for number, name in enumerate(("train/a/x", "train/b/x", "test/a/x", "test/b/x")):
        blocky(tmp_path / f"pictures/{name}.png", number, (8, 8))
    run = VerticalRun(
        name="own",
        dataset=f"folder:root={tmp_path / 'pictures'},size=8",
        attack="cafe:steps=1",
        images=2,
        width=2,
        hidden=4,
    )

    def written():
        (folder,) = vertical_sets([run], tmp_path / "data")
        return (folder / "run.json").stat().st_mtime_ns

    first = written()
    assert written() == first
    blocky(tmp_path / "pictures/train/a/z.png", 9, (8, 8))
    assert written() != first


def test_the_memory_of_the_equations_is_that_of_both_sides_and_their_copies():
    run = VerticalRun(name="x", images=2, batch=1, rounds=5, width=3, hidden=7)
    inputs = QuarteredNet(2, size=(4, 6), width=3, hidden=7).joint.in_features
    both = torch.empty(5 * 7, 2 + inputs, dtype=torch.float64)
    assert vertical.vertical_memory(run, (4, 6)) == 2 * both.numel() * both.element_size()


def test_clipping_each_image_of_a_batch_is_refused(tmp_path):
    run = VerticalRun(name="x", dataset=SYMBOLS, images=2, batch=1, strategy="dp-sgd")
    with pytest.raises(SettingsError, match="DP-SGD cuts that of each image"):
        attack_vertical(run, tmp_path)


def test_a_grid_says_where_cafe_is():
    with pytest.raises(SettingsError, match="campaign vertical"):
        read_attack("cafe:steps=2")
