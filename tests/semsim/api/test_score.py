"""`semsim.score` against the command line, number by number."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import torch
from helpers import ROOT
from torchmetrics import Metric
from torchmetrics.image import PeakSignalNoiseRatio
from typer.testing import CliRunner

import semsim
from semsim.base.errors import DataError, UnknownNameError, WeightsError
from semsim.base.metric_spec import MetricSpec
from semsim.base.sets.reader import read_set
from semsim.cli.main import app
from semsim.images import read_images
from semsim.metrics import METRICS
from semsim.metrics.base import Scores
from semsim.metrics.network import ModelSettings
from semsim.metrics.scoring import match_folders

SETS = sorted((ROOT / "data" / "demo" / "sets").iterdir())[:2]
FOLDERS = (SETS[0] / "originals", SETS[0] / "reconstructions")
NAMES = ["mse", "psnr", "ssim", "psnr-registered", "ssim-registered"]
DEMO = ["semsim:demo", "semsim:demo.start", "semsim:demo.calibrated"]


SPEC = MetricSpec(name="own", title="Own", higher_means_more_leakage=False, per_image=True)


class Own:
    """A metric of somebody's own, of a class as plain as can be: it answers `of` the pairs."""

    def __init__(self, of, spec=SPEC):
        self.of, self.spec = of, spec

    def files(self, resources):
        return ()

    def prepare(self, resources):
        return lambda pairs: Scores(values=self.of(pairs))


def farther(pairs):
    return (pairs.originals - pairs.reconstructions).abs().amax((1, 2, 3)).double().numpy()


def in_memory():
    """The pictures of `FOLDERS` as tensors."""
    table = match_folders(*FOLDERS).pairs
    return tuple(read_images(table[side].tolist()) for side in ("original", "reconstruction"))


def run(*arguments):
    done = CliRunner().invoke(app, ["score", *map(str, arguments)])
    assert done.exit_code == 0, done.output


def test_two_folders_are_scored_as_on_the_command_line(tmp_path):
    out = tmp_path / "scores.parquet"
    folders = (FOLDERS[0], FOLDERS[1])
    run(*folders, "--metrics", ",".join([*NAMES, "semsim:demo"]), "--out", out)
    expected = pd.read_parquet(out)
    found = semsim.score(FOLDERS, [*NAMES, *DEMO])
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert found.attrs == expected.attrs


def test_sets_are_scored_as_on_the_command_line(tmp_path):
    out = tmp_path / "scores.parquet"
    asked = [part for one in SETS for part in ("--set", one)]
    run(*asked, "--metrics", "mse,psnr", "--out", out, "--cache-dir", tmp_path / "kept")
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


def test_the_same_weights_in_another_network_do_not_get_kept_scores(tmp_path):
    one, other = (
        semsim.SemSim(ModelSettings(backbone="lenet", normalize=unit), name="mine")
        for unit in (False, True)
    )
    other.network.load_state_dict(one.network.state_dict())
    first, second = (semsim.score(SETS[:1], [it], kept=tmp_path) for it in (one, other))
    assert second.equals(semsim.score(SETS[:1], [other]))
    assert not second.equals(first)


def test_a_plain_object_is_a_metric_of_tensors_folders_and_sets():
    for pairs in (in_memory(), FOLDERS):
        found = semsim.score(pairs, [Own(farther), "mse"])
        assert found["own"].between(0, 1, inclusive="right").all()
        assert found.attrs["metrics"]["own"]["settings"] == {}
    of_set = semsim.score(SETS[0], [Own(farther), "mse"])
    assert of_set.loc[of_set["metric"] == "own", "value"].tolist() == found["own"].tolist()

    @dataclass  # not frozen: nothing can be looked up by it
    class Made(Own):
        of: object
        spec: MetricSpec = SPEC

    same = semsim.score(SETS[0], [Made(farther), "mse"])
    assert same.equals(of_set)


def test_a_metric_whose_code_was_mended_gets_no_scores_of_before(tmp_path):
    told = []
    asked = ["psnr", Own(lambda pairs: np.zeros(len(pairs))), "mse"]
    wrong = semsim.score(SETS, asked, kept=tmp_path, report=told.append)
    assert wrong["metric"].drop_duplicates().tolist() == ["psnr", "own", "mse"]
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert (told[-1].done, {one.total for one in told}) == (72, {72})  # 2 sets of 12 pairs
    assert len(list(tmp_path.iterdir())) == 4  # none of its own
    asked[1] = Own(farther)
    mended = semsim.score(SETS, asked, kept=tmp_path)
    assert mended.equals(semsim.score(SETS, asked))
    assert not mended.equals(wrong)
    # One that is only called as the registry's is not taken for it, either way.
    false = replace(SPEC, name="mse")
    assert semsim.score(SETS, [Own(farther, false)], kept=tmp_path)["value"].tolist() == (
        mended.loc[mended["metric"] == "own", "value"].tolist()
    )
    own, by_name = (
        semsim.score(SETS, [one], kept=tmp_path / "new") for one in (METRICS["mse"], "mse")
    )
    assert own.equals(by_name)
    assert len(list((tmp_path / "new").iterdir())) == 2


@pytest.mark.parametrize(
    ("of", "per_image", "words"),
    [
        (lambda pairs: np.full(len(pairs), np.nan), True, r"Own: \d+ of \d+ scores are NaN"),
        (lambda pairs: np.zeros(1), True, r"Own must answer .* \(\d+,\), one an image; got \(1,\)"),
        (lambda pairs: np.zeros((len(pairs), 1)), True, r"one an image; got \(\d+, 1\)"),
        (lambda pairs: np.zeros(len(pairs)), False, r"shape \(1,\), one for the set; got"),
        (lambda pairs: np.array([np.nan]), False, "Own: 1 of 1 scores are NaN"),
    ],
)
def test_what_is_no_score_of_these_pairs_is_refused_with_the_metrics_name(of, per_image, words):
    mine = Own(of, replace(SPEC, per_image=per_image))
    images = torch.rand(2, 3, 16, 16)
    for pairs in (SETS[0], FOLDERS, (images, images)):
        with pytest.raises(DataError, match=words):
            semsim.score(pairs, [mine])


def test_an_infinite_score_and_whole_numbers_are_scores():
    mine = Own(lambda pairs: [float("inf"), *range(len(pairs) - 1)])
    for pairs in (SETS[0], FOLDERS):
        found = semsim.score(pairs, [mine])
        values = found["value"] if "value" in found else found["own"]
        assert (values[0], values[1], values.dtype) == (np.inf, 0, np.float64)


def test_tensors_and_functions_have_the_scores_of_the_files():
    tensors = in_memory()
    found, expected = (semsim.score(given, [*NAMES, *DEMO]) for given in (tensors, FOLDERS))
    for name in [*NAMES, *DEMO]:
        assert found[name].tolist() == expected[name].tolist()
    for name in NAMES:
        values = getattr(semsim.metrics, name.replace("-", "_"))(*tensors)
        assert values.dtype == torch.float64
        assert values.tolist() == expected[name].tolist()


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


def test_what_rounding_left_outside_is_clamped_and_more_is_told_with_its_digits():
    grey = torch.full((1, 3, 16, 16), 0.5)
    above = torch.full((1, 3, 16, 16), 1.0)
    table = semsim.score((grey, above + 1e-4), ["mse"])
    assert table["mse"].tolist() == [0.25]
    with pytest.raises(DataError, match=r"values from 1\.01 to 1\.01"):
        semsim.score((grey, above + 0.01), ["mse"])


def images(n=300, side=12):
    made = torch.rand(2, n, 3, side, side, generator=torch.Generator().manual_seed(0))
    return made[0], made[1]


def largest_difference(originals, reconstructions):
    return (originals - reconstructions).abs().amax((1, 2, 3))


largest_difference.name, largest_difference.higher_leaks = "largest", False


class Signed(torch.nn.Module):
    """Another on one side than on the other, with a weight that asks for a gradient."""

    name, higher_leaks = "signed", True

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, originals, reconstructions):
        return self.weight * (originals - reconstructions).flatten(1).mean(1)


def test_a_function_is_a_metric_of_tensors_folders_and_sets():
    first, second = images()
    found = semsim.score((first, second), [largest_difference, Signed()])
    assert found["largest"].tolist() == largest_difference(first, second).tolist()
    signed = (first - second).flatten(1).mean(1)
    assert np.allclose(found["signed"], signed, rtol=0, atol=1e-6)
    folders = semsim.score(FOLDERS, largest_difference)
    of_set = semsim.score(SETS[0], [largest_difference])
    assert folders["largest"].tolist() == of_set["value"].tolist()


def test_a_metric_of_torchmetrics_scores_each_pair_alone_and_is_left_as_it_was():
    mine = PeakSignalNoiseRatio(data_range=1.0)
    mine.update(*images(2))
    before = mine.compute()
    given = images(3)
    found = semsim.score(given, [mine, "psnr"])
    assert np.allclose(found["PeakSignalNoiseRatio"], found["psnr"], rtol=0, atol=1e-4)
    assert mine.compute() == before


def test_a_metric_of_torchmetrics_gets_reconstructions_first():
    class Brighter(Metric):
        higher_is_better, name = True, "brighter"

        def __init__(self):
            super().__init__()
            self.add_state("value", torch.zeros(()))

        def update(self, reconstructions, originals):
            self.value = (reconstructions - originals).mean()

        def compute(self):
            return self.value

    dark, bright = torch.zeros(2, 3, 8, 8), torch.ones(2, 3, 8, 8)
    assert semsim.score((dark, bright), [Brighter()])["brighter"].tolist() == [1, 1]


def nameless(originals, reconstructions):
    return largest_difference(originals, reconstructions)


class SaysNothing(Metric):
    higher_is_better = True

    def update(self, reconstructions, originals):
        pass

    def compute(self):
        return {"one": 1, "two": 2}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (nameless, "attributes name, a text, and higher_leaks.*got function"),
        (PeakSignalNoiseRatio, "higher_is_better.*got ABCMeta"),
        (METRICS["mse"].__class__, "got type"),
        (3, "got int 3"),
        (SaysNothing(), "SaysNothing gives no number for one pair"),
    ],
)
def test_what_is_no_metric_is_told_what_one_is(wrong, words):
    with pytest.raises(DataError, match=words):
        semsim.score(images(2), [wrong])


def test_progress_is_told_part_by_part():
    told = []
    semsim.score(images(600), ["mse", "ssim"], report=told.append)
    steps = [0, 256, 512, 600]
    assert [one.done for one in told] == [*steps, *(600 + step for step in steps)]
    assert {one.total for one in told} == {1200}
    assert [one.note for one in told] == ["2 of 2 metrics, MSE"] * 4 + ["2 of 2 metrics, SSIM"] * 4


def test_no_metric_of_images_sees_more_than_a_part():
    seen = []

    def looked(originals, reconstructions):
        seen.append(len(originals))
        return torch.zeros(len(originals))

    looked.name, looked.higher_leaks = "looked", True
    semsim.score(images(600), looked)
    assert seen == [256, 256, 88]


def test_arrays_are_refused_by_what_they_are():
    first, second = images(2)
    with pytest.raises(DataError, match=r"ndarray of float32 \(2, 3, 12, 12\), values from 0\.0"):
        semsim.score((first.numpy(), second.numpy()), ["mse"])
    same = semsim.score((first.half(), second.half()), ["mse"])
    assert same.equals(semsim.score((first.half().float(), second.half().float()), ["mse"]))


def test_two_metrics_of_one_name_are_refused():
    def other(originals, reconstructions):
        return torch.zeros(len(originals))

    other.name, other.higher_leaks = "largest", False
    pair = torch.zeros(2, 3, 8, 8), torch.ones(2, 3, 8, 8)
    with pytest.raises(DataError, match="Two metrics are called 'largest'"):
        semsim.score(pair, [largest_difference, other])
    assert list(semsim.score(pair, ["mse", "mse"])) == ["image_id", "mse"]
