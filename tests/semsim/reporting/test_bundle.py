import json

import pandas as pd
import pytest
from made_analysis import SPECS, TESTED, TESTS, made_analysis, with_targets
from PIL import Image

from semsim.base.errors import DataError
from semsim.reporting import bundle as bundles
from semsim.reporting import canvas
from semsim.reporting.bundle import write_bundle
from semsim.reporting.export import png, svg
from semsim.reporting.figures import figures
from semsim.reporting.report import report_html
from semsim.reporting.tables import tables

SMALL = with_targets(made_analysis(specs=SPECS[:1]))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return write_bundle(SMALL, tmp_path_factory.mktemp("bundle") / "new")


def test_every_table_and_figure_is_there_in_every_form(bundle):
    found = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    drawn = {f"figures/{f.stem}.{end}" for f in figures(SMALL) for end in ("svg", "png", "csv")}
    written = {f"tables/{t.name}.{end}" for t in tables(SMALL) for end in ("csv", "tex", "md")}
    assert found == {"report.html", "settings.json"} | drawn | written


def test_files_hold_what_they_are_called_after(bundle):
    assert (bundle / "report.html").read_text(encoding="utf-8") == report_html(SMALL)
    forest = pd.read_csv(bundle / "figures" / "forest.csv")
    assert forest["rho"].tolist() == [0.6703, 0.9]
    agreement = pd.read_csv(bundle / "tables" / "agreement.csv")
    assert agreement["p_rho"].tolist() == [0.0104]
    for end in ("md", "tex"):
        models = (bundle / "tables" / f"models.{end}").read_text(encoding="utf-8")
        for tex, plain in (("\\%", "%"), ("$\\varepsilon$", "ε"), ("$\\delta$", "δ")):
            models = models.replace(tex, plain)
        assert all(said in models for said in TESTED)
    assert pd.read_csv(bundle / "tables" / "models.csv")["target_accuracy"].tolist()[:2] == [
        accuracy for accuracy, *_ in TESTS
    ]
    assert Image.open(bundle / "figures" / "forest.png").info["dpi"] == pytest.approx((300, 300), 1)
    assert json.loads((bundle / "settings.json").read_text())["analysis"]["seed"] == 3


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty"):
        write_bundle(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_overwriting_replaces_an_older_bundle_and_nothing_else(tmp_path, one_figure):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "scatter-old.png").write_text("old")
    (tmp_path / "report.html").write_text("old")
    seen = []
    write_bundle(SMALL, tmp_path, overwrite=True, report=seen.append)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert not (tmp_path / "figures" / "scatter-old.png").exists()
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")
    assert (seen[-1].done, seen[-1].total) == (1 + 1, 1 + 1)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file.*another folder"):
        write_bundle(SMALL, tmp_path / "file" / "folder")


@pytest.mark.parametrize("name", [r"$\\foo$", "cost $5_$", r"$$\\catcode$$", "a $b$ c"])
def test_a_name_that_looks_like_a_formula_is_drawn_as_it_is(name):
    def paint(frame, width):
        figure = canvas.blank(width, 30)
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], label=name)
        canvas.rows_axis(axes, [name])
        canvas.label(axes, x=name, y=name, title=name)
        canvas.note(axes, 0, 0, name)
        canvas.legend(figure, axes, width)
        return figure

    frame = pd.DataFrame({"model": [name]})
    drawn = canvas.Drawn(title=name, caption=name, frame=frame, paint=paint)
    assert png(drawn)
    assert svg(drawn, live=True).count(name) >= 6


def test_a_bundle_that_cannot_be_finished_leaves_nothing_and_keeps_the_older(
    tmp_path, monkeypatch, one_figure
):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/report.html").write_text("old")

    def fails(*_):
        raise DataError("no report")

    monkeypatch.setattr(bundles, "report_html", fails)
    for overwrite, folder in ((True, "out"), (False, "new")):
        with pytest.raises(DataError, match="no report"):
            write_bundle(SMALL, tmp_path / folder, overwrite=overwrite)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "report.html"]
    assert (tmp_path / "out/report.html").read_text() == "old"
