"""`reproduce ensembler`: what it says before it computes, and its smallest preset whole."""

import json
from dataclasses import fields
from inspect import signature
from typing import get_args

import pytest
from made_papers import check_kept
from PIL import Image
from typer.testing import CliRunner

from benchmarks.papers import PARTS
from benchmarks.papers_split import read_trainings
from semsim.base.errors import SettingsError
from semsim.cli.reproduce import app
from semsim.papers.ensembler import (
    FIGURES,
    ROWS,
    TABLES,
    plan_of_figure,
    plan_of_table,
    reproduce_ensembler,
)
from semsim.systems.split.plan import PRESETS, ShadowAttack, check


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--preset", "paper"), "as --image-dir, or put it at cifar10"),
        (("--preset", "paper", "--paper-table", "3"), "as --image-dir, or put it at celeba-hq"),
        (("--preset", "huge"), "small, paper"),
        (("--shadow-start", "zero"), "start must be random or identity; got 'zero'"),
        (
            ("--shadow-start", "zero", "--paper-table", "4"),
            "start must be random or identity; got 'zero'",
        ),
        (("--vgg16", "--paper-table", "2"), "--vgg16 is of Table 1"),
        (("--vgg16", "--paper-table", "4"), "leave --image-dir, --size and --vgg16 out"),
        (("--vgg16", "--paper-figure", "2"), "leave it out of a figure"),
        (("--paper-table", "5"), "--paper-table is one of 1, 2, 3, 4"),
        (("--paper-figure", "4"), "--paper-figure is one of 2, 3"),
        (("--size", "64"), "--size is of the images of --image-dir"),
        (("--image-dir", "nowhere"), "/nowhere. Expected"),  # from whatever folder it is resumed
        (("--workers", "0"), "greater than or equal to 1"),
        (
            ("--preset", "smoke", "--paper-table", "4", "--scheduler", "nonsense://x"),
            "No Dask scheduler answers",
        ),
    ],
)
def test_what_cannot_be_done_says_why(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["ensembler", *words, "--data-dir", str(tmp_path)])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_the_start_of_a_shadow_is_told_in_the_words_of_its_setting():
    (text,) = (one.metadata["text"] for one in fields(ShadowAttack) if one.name == "start")
    _, option = get_args(signature(reproduce_ensembler).parameters["shadow_start"].annotation)
    assert option.help == text


@pytest.mark.parametrize(("table", "psnr"), [(1, 68.555), (2, 23.4422), (3, 64.6264)])
def test_the_paper_s_tables_are_whole(table, psnr):
    cells = TABLES[table].cells
    assert set(cells) < set(ROWS)
    assert sum(cell.psnr for cell in cells.values()) == pytest.approx(psnr)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_stands_beside_a_table_or_a_figure_can_be_run(preset):
    names = set()
    for number, table in TABLES.items():
        plan = check(plan_of_table(number, preset))
        defences = {text.partition(":")[0] for text in plan.defences}
        assert {ROWS[row].defence for row in table.cells} | {"none"} == defences
        assert ("pool=false" in plan.networks[0]) == (number > 1)
        if number > 1 or preset != "small":  # which has two of four, as many as two cores can
            assert f"selected={table.selected}" in plan.defences[-1]
        names.add(plan.name)
    vgg16 = check(plan_of_table(1, preset, vgg16=True))
    assert "selected=4" in vgg16.defences[-1]
    assert [text.partition(":")[0] for text in vgg16.defences] == [
        text.partition(":")[0] for text in plan_of_table(1, preset).defences
    ]
    names.add(vgg16.name)
    for number in FIGURES:
        names.add(check(plan_of_figure(number, preset)).name)
    assert len(names) == len(TABLES) + 1 + len(FIGURES)
    with pytest.raises(SettingsError, match="small, paper"):
        plan_of_figure(2, "huge")


def reproduced(folder, *words):
    place = ["--data-dir", str(folder), "--device", "cpu"]
    done = CliRunner().invoke(app, ["ensembler", "--preset", "smoke", *words, *place, "--json"])
    assert done.exit_code == 0, done.output
    ((_, rows),) = json.loads(done.stdout).items()
    return done, rows


@pytest.mark.parametrize(("table", "more"), [(1, ()), (1, ("vgg16",)), (2, ()), (3, ())])
def test_the_smallest_preset_has_every_row_of_a_table_and_its_pictures(table, more, tmp_path):
    done, rows = reproduced(tmp_path, "--paper-table", str(table), *(f"--{one}" for one in more))
    found = {row["row"]: row for row in rows}
    assert {*TABLES[table].cells, "NONE"} <= set(found)
    for name, row in found.items():
        assert row["here"]["n"] == 1, name
        assert row["here"]["psnr_mean"] > 0
    assert found["Single"]["paper"]["ssim"] == TABLES[table].cells["Single"].ssim
    assert found["Ensembler, adaptive"]["aligned"]["n"] == 1
    assert f"The paper's Table {table}: {TABLES[table].data}" in done.stderr
    assert ("vgg16:" in done.stderr) == ("vgg16" in more)  # the network that was cut
    name = "-".join(["ensembler-smoke", f"table{table}", *more])
    picture = tmp_path / "split" / f"{name}.png"
    assert f"Wrote {picture}" in done.stderr
    width, height = Image.open(picture).size
    assert width > 1000
    assert height > 1000
    part = f"ensembler-{'vgg16' if more else f'table-{table}'}"
    check_kept(part, PARTS[part].read(tmp_path))
    for other in ("trainings", "photographs") if more else ():
        check_kept(f"ensembler-{other}", read_trainings(tmp_path, name))


@pytest.mark.parametrize(("figure", "network"), [(2, "vgg16"), (3, "resnet18")])
def test_the_smallest_preset_draws_a_figure_of_split_points(figure, network, tmp_path):
    _, rows = reproduced(tmp_path, "--paper-figure", str(figure))
    found = {row["network"].partition(",h=")[::2] for row in rows}
    assert found == {(f"{network}:width=2", "1,t=1"), (f"{network}:width=2", "2,t=1")}
    for attack in ("adaptive", "adaptive-aligned"):
        name = f"ensembler-smoke-figure{figure}-{attack}"
        assert "h=2, t=1" in (tmp_path / "split" / f"{name}.svg").read_text()
    deeper = ("2, 2", "4, 1", "4, 2") if figure == 2 else ("3, 2",)
    copies = {f"{cuts}, aligned": "2, 1, aligned" for cuts in deeper}
    part = f"ensembler-figure-{figure}"
    check_kept(part, PARTS[part].read(tmp_path), {"cuts": copies})
