"""`--plan` of what is not on this machine: on noise, which it says; without it the error stays."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from semsim.cli.reproduce import app
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import present
from semsim.registry import build, read_plugin
from semsim.reproduce import deployed_plan, ensembler_paper, everything_plan, stand_in
from semsim.reproduce.ensembler_paper import FIGURES, TABLES, plan_of_figure, plan_of_table
from semsim.reproduce.semsim_paper import DATA_SETS
from semsim.reproduce.stand_in import SIZES, Sizes, noise, source_of

TEXTS = {"ensembler": "folder:root=cifar10", "deployed": "cifar100", "everything": "cifar100"}


@pytest.fixture
def absent(monkeypatch, tmp_path):
    """The smallest presets on the paper's data, which are not here, and a few pictures of noise."""
    monkeypatch.chdir(tmp_path)
    for text, pixels in (("folder:root=cifar10", 12), ("cifar100", 32)):
        monkeypatch.setattr(stand_in, "SIZES", {**stand_in.SIZES, text: Sizes(4, pixels, 60, 20)})
    smoke = replace(ensembler_paper.PRESETS["smoke"], dataset=TEXTS["ensembler"])
    monkeypatch.setattr(ensembler_paper, "PRESETS", {"smoke": smoke})
    scale = replace(deployed_plan.scale_of("smoke"), dataset="cifar100")
    monkeypatch.setitem(deployed_plan._SCALES, "smoke", scale)
    networks, campaign, *rest = everything_plan._SCALES["smoke"]
    mapped = (networks, replace(campaign, datasets=("cifar100",)), *rest)
    monkeypatch.setitem(everything_plan._SCALES, "smoke", mapped)
    monkeypatch.setattr("semsim.datasets.cifar.Cifar100.present", lambda data: False)


def typed(name, folder, *words):
    place = "--data-dir" if name == "ensembler" else "--out"
    return CliRunner().invoke(app, [name, "--preset", "smoke", place, str(folder), *words])


@pytest.mark.parametrize("name", TEXTS)
def test_a_plan_needs_no_pictures_and_says_so(name, absent, tmp_path):
    done = typed(name, tmp_path / "out", "--plan", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert all(row["seconds"] > 0 for row in rows if row["count"])
    said = " ".join(done.stderr.split())
    assert f"Measured on noise: {TEXTS[name]} is not here." in said
    assert "4 classes, 60 pictures" in said


@pytest.mark.parametrize("name", TEXTS)
def test_without_a_plan_they_are_still_missed(name, absent, tmp_path):
    done = typed(name, tmp_path / "out")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert ("as --images, or put it at" if name == "ensembler" else "'cifar100' is not in") in said
    assert not (tmp_path / "out").exists()


def test_what_is_here_is_no_noise():
    source = source_of("digits:size=12,count=60", planned=True)
    assert source.notes == ()
    digits = read_plugin(DATASETS, "digits:size=12,count=60")
    assert source.load(digits, "train").dataset == "digits"


def test_noise_stands_in_for_one_data_set_alone(absent):
    source = source_of("cifar100", planned=True)
    assert source.load(read_plugin(DATASETS, "cifar100"), "test").dataset == "noise for cifar100"
    digits = read_plugin(DATASETS, "digits:size=12,count=60")
    assert source.load(digits, "test").dataset == "digits"


def test_the_sizes_of_all_that_paper_scales_need_are_known():
    plans = [plan_of_table(number, "paper") for number in TABLES]
    plans += [plan_of_table(1, "paper", vgg16=True)]
    plans += [plan_of_figure(number, "paper") for number in FIGURES]
    scales = deployed_plan.scale_of("paper"), everything_plan.scale_of("paper")
    assert {one.dataset for one in (*plans, *scales)} == set(SIZES)
    assert SIZES["cifar100"][:3] == (DATA_SETS[0].classes, DATA_SETS[0].pixels, 50_000)
    for number, table in TABLES.items():
        assert SIZES[plan_of_table(number, "paper").dataset].pixels == table.size


def test_much_noise_takes_little_memory_and_no_two_pictures_are_alike():
    made = noise("faces", "train", 24_000, 300, 64)
    assert made.images.shape == (24_000, 3, 64, 64)
    assert made.images.untyped_storage().nbytes() < 1e6
    assert len(made) == len(set(made.ids)) == 24_000
    assert sorted(set(made.labels.tolist())) == list(range(300))
    first, last = made.images[0], made.images[-1]
    assert not torch.equal(first, last)
    assert torch.equal(noise("faces", "train", 2, 300, 64).images[0, 0, 0, :9], first[0, 0, :9])


def test_a_folder_is_here_where_it_is(tmp_path):
    def asked(root):
        return present(build(DATASETS, "folder", {"root": str(root)}))

    assert asked(tmp_path)
    assert not asked(tmp_path / "nowhere")
    assert present(build(DATASETS, "symbols", {}))
