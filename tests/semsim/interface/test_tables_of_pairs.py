"""`semsim.score` against the command line, number by number."""

import pandas as pd
import pytest
import torch
from studio import ROOT
from typer.testing import CliRunner

import semsim
from semsim.cli.main import app
from semsim.errors import DataError, UnknownNameError, WeightsError
from semsim.images import read_images
from semsim.scores.folder_pairs import match_folders
from semsim.sets.reader import read_set

SETS = sorted((ROOT / "data" / "demo" / "sets").iterdir())[:2]
FOLDERS = (SETS[0] / "originals", SETS[0] / "reconstructions")
NAMES = ["mse", "psnr", "ssim", "psnr-registered", "ssim-registered"]
DEMO = ["semsim:demo", "semsim:demo.start", "semsim:demo.shuffled"]


def run(*arguments):
    done = CliRunner().invoke(app, ["score", *map(str, arguments)])
    assert done.exit_code == 0, done.output


def test_two_folders_are_scored_as_on_the_command_line(tmp_path):
    out = tmp_path / "scores.parquet"
    folders = ("--originals", FOLDERS[0], "--reconstructions", FOLDERS[1])
    run(*folders, "--metrics", ",".join([*NAMES, "semsim:demo"]), "--out", out)
    expected = pd.read_parquet(out)
    found = semsim.score(FOLDERS, [*NAMES, *DEMO])
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert found.attrs == expected.attrs


def test_sets_are_scored_as_on_the_command_line(tmp_path):
    out = tmp_path / "scores.parquet"
    asked = [part for one in SETS for part in ("--set", one)]
    run(*asked, "--metrics", "mse,psnr", "--out", out, "--scores", tmp_path / "kept")
    found = semsim.score(SETS, ["mse", "psnr"])
    pd.testing.assert_frame_equal(found, pd.read_parquet(out), check_exact=True)


def test_a_semsim_in_memory_scores_as_its_checkpoint_does(tmp_path):
    metric = semsim.SemSim.from_pretrained(ROOT / "checkpoints" / "demo")
    by_name, by_module = (semsim.score(FOLDERS, [one]) for one in ("semsim:demo", metric))
    pd.testing.assert_frame_equal(by_name, by_module, check_exact=True)
    of_sets = [semsim.score(SETS, [one], kept=tmp_path) for one in ("semsim:demo", metric)]
    assert of_sets[0]["value"].tolist() == of_sets[1]["value"].tolist()


def test_another_semsim_of_the_same_name_does_not_get_kept_scores(tmp_path):
    metric = semsim.SemSim.from_pretrained(ROOT / "checkpoints" / "demo")
    first = semsim.score(SETS[:1], [metric], kept=tmp_path)
    assert semsim.score(SETS[:1], [metric], kept=tmp_path).equals(first)
    with torch.no_grad():
        next(metric.parameters()).mul_(2)
    assert not semsim.score(SETS[:1], [metric], kept=tmp_path).equals(first)


def test_tensors_have_the_scores_of_their_files():
    table = match_folders(*FOLDERS).pairs
    tensors = tuple(read_images(table[side].tolist()) for side in ("original", "reconstruction"))
    found, expected = (semsim.score(given, [*NAMES, *DEMO]) for given in (tensors, FOLDERS))
    for name in [*NAMES, *DEMO]:
        assert found[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_tensors_give_the_same_numbers(name):
    table = match_folders(*FOLDERS).pairs
    tensors = [read_images(table[side].tolist()) for side in ("original", "reconstruction")]
    found = getattr(semsim.metrics, name.replace("-", "_"))(*tensors)
    assert found.dtype == torch.float64
    assert found.tolist() == semsim.score(FOLDERS, [name])[name].tolist()


def test_a_frame_of_pairs_is_scored_model_by_model():
    one = read_set(SETS[0])
    frame = one.pairs.assign(dataset="a", attack="b", model="c")
    found = semsim.score(frame, ["mse"])
    assert found["value"].tolist() == semsim.score(SETS[0], ["mse"])["value"].tolist()
    assert set(found["model"]) == {"c"}


def test_what_is_missing_is_told_before_anything_is_computed(tmp_path):
    with pytest.raises(WeightsError, match="No SemSim called 'gone'"):
        semsim.score(FOLDERS, ["semsim:gone"])
    with pytest.raises(UnknownNameError, match="nonsense"):
        semsim.score(FOLDERS, ["nonsense"])
    with pytest.raises(UnknownNameError):
        semsim.score(FOLDERS, "nonsense")


def test_what_cannot_be_judged_is_told():
    small = torch.rand(2, 3, 8, 8)
    with pytest.raises(DataError, match="ssim cannot be computed"):
        semsim.score((small, small), ["ssim"])
    with pytest.raises(DataError, match="attacked"):
        semsim.score((small, small), ["mse@attacked"])
    with pytest.raises(DataError, match="one of each"):
        semsim.score((small, FOLDERS[1]), ["mse"])
    frame = read_set(SETS[0]).pairs.assign(dataset="a", attack="b", model="c")
    with pytest.raises(DataError, match="ms-ssim of c on a by b cannot be computed"):
        semsim.score(frame, ["ms-ssim"])


def test_an_image_without_a_partner_is_left_out_with_a_warning(tmp_path):
    for folder, count in (("a", 3), ("b", 2)):
        (tmp_path / folder).mkdir()
        for path in sorted(FOLDERS[0].iterdir())[:count]:
            (tmp_path / folder / path.name).write_bytes(path.read_bytes())
    with pytest.warns(UserWarning, match="1 left out"):
        found = semsim.score((tmp_path / "a", tmp_path / "b"), ["mse"])
    assert found["mse"].tolist() == [0, 0]
    assert len(found.attrs["left_out"]) == 1
