"""The SemSim paper's reproduction: plan, cost, studies, and tables from simulated votes."""

import json
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import torch
import typer
from made_campaign import one_thread_cluster
from typer.testing import CliRunner

from annotation.cli.main import app as human
from semsim.cli.reproduce import app
from semsim.errors import DataError, SettingsError
from semsim.reproduce import semsim as command
from semsim.reproduce.semsim_cost import Share, noise, plan_text, shares_text
from semsim.reproduce.semsim_paper import DATA_SETS, METRICS
from semsim.reproduce.semsim_scales import scale_of
from semsim.reproduce.semsim_tables import cells, table_text


@pytest.fixture(scope="module")
def cluster():
    with one_thread_cluster() as found, found.get_client() as client:
        yield client


@pytest.fixture
def here(monkeypatch, cluster):
    """Campaigns run in this process: nothing to start."""

    @contextmanager
    def connected(*asked, **wanted):
        yield cluster

    monkeypatch.setattr(command, "connect", connected)


def typed(folder: Path, *words: str):
    places = ["--data-dir", str(folder / "data"), "--out", str(folder / "out")]
    places += ["--checkpoints", str(folder / "checkpoints"), "--device", "cpu"]
    return CliRunner().invoke(app, ["semsim", "--preset", "smoke", *places, *words])


def test_the_papers_scale_is_its_plan():
    scale = scale_of("paper")
    assert scale.absent == ()
    main = scale.of_table(1)
    assert sum(len(p.campaign.architectures) * len(p.campaign.strategies) for p in main) == 70
    assert [p.campaign.images for p in main] == [one.images for one in DATA_SETS]
    first, *others = (p for p in scale.parts if p.campaign.datasets == ("cifar100",))
    assert [p.row for p in others] == ["DLG", "CAFE", "GradAttack"]
    assert len({(run.width, run.strategy) for run in others[1].vertical}) == 14
    for other in others[::2]:  # the same targets, which are trained once
        assert other.campaign.train == first.campaign.train
        assert other.campaign.strategies == first.campaign.strategies
        assert other.campaign.attacks != first.campaign.attacks
    said = plan_text(scale)
    assert "84 targets" in said  # 70, and 14 vertical ones for CAFE
    assert "42,000" in said  # votes on CIFAR-100: five on 14 times 600
    small = plan_text(scale_of("small"))
    assert "Not run at this scale: Imagenette, Stanford Dogs." in small


def test_folders_stand_in_for_the_first_data_set_alone(tmp_path):
    for name in ("smoke", "small", "paper"):
        plain, own = scale_of(name), scale_of(name, tmp_path)
        changed = [
            (a.row, b.campaign.datasets[0].partition(":")[0])
            for a, b in zip(plain.parts, own.parts, strict=True)
            if a.campaign.datasets != b.campaign.datasets
        ]
        assert {source for _, source in changed} == {"folder"}
        assert {row for row, _ in changed} <= {"CIFAR-100", "DLG", "CAFE", "GradAttack"}
        assert changed[0][0] == "CIFAR-100"
    with pytest.raises(SettingsError, match="smoke, small, paper"):
        scale_of("large")


def test_noise_has_the_sizes_of_the_data_set():
    part = scale_of("paper").parts[2]
    found = noise(part, "test")
    assert found.images.shape == (100, 3, 112, 112)
    assert len(found.classes) == 10
    assert len(noise(part, "train")) == 4 * 8
    assert torch.equal(noise(part, "test").images, found.images)


def test_costs_are_summed_and_the_longest_stands_first():
    shares = [
        Share(part="a", what="train x", count=2, seconds=86_400),
        Share(part="b", what="attack x", count=100, seconds=3 * 86_400),
    ]
    lines = shares_text(shares, 2_000_000_000).splitlines()
    first, second = (line.split() for line in lines if line[:2] in ("a ", "b "))
    assert (first[0], first[-3:]) == ("b", ["2,592.0", "3.00", "75%"])
    assert (second[0], second[-3:]) == ("a", ["43,200.0", "1.00", "25%"])
    assert "About 4.0 core-days, 2.00 GB" in "\n".join(lines)
    assert "GPU-hours are not told" in "\n".join(lines)


def test_without_votes_a_row_says_that_it_was_not_run():
    table = cells(1, "CelebA", "faces", None)
    assert table["metric"].tolist() == list(METRICS)
    text = table_text(1, table)
    assert "– (0.8263)" in text
    assert "CelebA: PSNR, MSE, SSIM, LPIPS, FID, SemSim: not run." in text


def test_votes_that_cannot_be_are_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(SettingsError, match="either simulated or"):
        command.check_votes(["simulated", "a.parquet"])
    with pytest.raises(DataError, match="No votes at"):
        command.check_votes([str(tmp_path / "a.parquet")])
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="No labels at"):
        command.check_votes([str(tmp_path / "a.parquet")])


def test_it_goes_from_the_plan_to_tables_and_figures(tmp_path, here):
    first = typed(tmp_path, "--json")
    assert first.exit_code == 0, first.output
    assert [row["row"] for row in json.loads(first.stdout)] == [
        "CIFAR-100",
        "CelebA",
        "DLG",
        "CAFE",
    ]
    folder = tmp_path / "out" / "smoke"
    studies = sorted((folder / "studies").glob("*.yaml"))
    assert [one.stem for one in studies] == [
        *("semsim-smoke-cafe", "semsim-smoke-celeba"),
        *("semsim-smoke-cifar-100", "semsim-smoke-dlg"),
    ]
    assert f"--file {studies[0]}" in first.output
    for one in studies:  # the other half makes studies of them
        asked = ["create", "--file", str(one), "--data-dir", str(tmp_path / "data")]
        made = CliRunner().invoke(human, asked)
        assert made.exit_code == 0, made.output
    second = typed(tmp_path, "--votes", "simulated")
    assert second.exit_code == 0, second.output
    assert second.output.count("Simulated votes: these numbers say nothing about people.") == 2
    table = pd.read_csv(folder / "tables.csv")
    assert set(table["row"]) == {"CIFAR-100", "CelebA", "DLG", "CAFE"}
    assert table["simulated"].all()
    assert set(table["metric"]) == set(METRICS)
    assert (table.loc[table["metric"] == "PSNR", "models"] == 4).all()
    drawn = {path.stem for path in (folder / "figures").glob("*.png")}
    assert {"figure3-matrix", "figure3-psnr", "figure5"} <= drawn
    for path in (folder / "figures").glob("*.svg"):
        assert path.with_suffix(".csv").exists()
    votes = pd.read_parquet(folder / "simulated" / "semsim-smoke-celeba.parquet")
    assert set(votes["answer"]) <= {"same", "different"}
    assert votes["simulated"].all()
    assert votes.groupby(["model", "image_id"])["annotator"].nunique().eq(5).all()
    # Tables by programs lie as those by people do, and are read in the same way.
    written = folder / "simulated"
    read = command.material_of([written / f"{one.stem}.parquet" for one in studies])
    assert set(read.labels["study"]) == {one.stem for one in studies}
    assert len(read.votes) == 5 * len(read.labels)


def test_a_command_without_its_folder_is_told(tmp_path):
    done = typed(tmp_path, "--images", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert "Error:" in done.output
    assert isinstance(app, typer.Typer)
