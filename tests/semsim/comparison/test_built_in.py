"""The studies of people that come with the product, and the command that makes them."""

from pathlib import Path

import numpy as np
import pytest
from made_people import MAKERS
from typer.testing import CliRunner

from semsim.base.errors import DataError
from semsim.base.sets.imports import read_import
from semsim.base.storage.places import DEMO
from semsim.base.storage.records import PEOPLE_ANSWER, read_record
from semsim.cli.demo import app
from semsim.comparison.built_in import ANSWER

pytestmark = pytest.mark.usefixtures("unpinned")

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "data"
NAMES = ("recurrent", "semsim-votes")


def made(copies, out):
    words = ["people", "--out", str(out), "--work", str(out.with_name("work"))]
    words += ["--picture", str(out.with_name("answer.png"))]
    for copy in copies:
        words += ["--from", str(copy)]
    return CliRunner().invoke(app, words)


def test_studies_and_answer_are_made_of_copies(tmp_path):
    copies = [MAKERS[name](tmp_path / name) for name in NAMES]
    out = tmp_path / "people"
    done = made(copies, out)
    assert done.exit_code == 0, done.output
    first = read_import(out / "recurrent")
    assert first.name == "218 people, 16 degradations"
    assert {"original", "reconstruction"}.isdisjoint(first.labels)
    assert {"psnr", "mse", "ssim"} <= set(first.scores["metric"])
    told = read_record(out / ANSWER, PEOPLE_ANSWER, DataError)
    assert (told["study"], told["models"]) == ("recurrent", 16)
    rhos = [one["rho"] for one in told["rows"]]
    assert rhos == sorted(rhos, reverse=True)
    assert told["ceiling"]["rho"] > 0.5
    assert told["cite"].startswith("Cite ")
    assert (tmp_path / "answer.png").stat().st_size > 1000
    second = read_import(out / "semsim-votes")
    assert set(second.labels["image_id"]) == {"all"}
    assert len(second.votes) == 0
    assert second.labels["human_error:people"].notna().all()


def test_an_absent_copy_is_named(tmp_path):
    done = made([MAKERS["recurrent"](tmp_path / "recurrent")], tmp_path / "people")
    assert done.exit_code == 2
    assert "No folder of --from holds a copy of semsim-votes." in done.output
    assert not (tmp_path / "people").exists()


def test_what_comes_with_the_product_is_small_and_has_no_picture():
    files = [path for path in (DEMO / "people").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    assert {path.suffix for path in files} == {".json", ".parquet"}


@pytest.mark.skipif(not (SHARED / "people").is_dir(), reason="needs copies of the sources")
def test_what_comes_with_the_product_is_what_the_sources_give(tmp_path):
    done = made([SHARED / "people", SHARED], tmp_path / "people")
    assert done.exit_code == 0, done.output
    for name in NAMES:
        anew, kept = (read_import(root / name) for root in (tmp_path / "people", DEMO / "people"))
        for table in ("labels", "scores"):
            ours, theirs = (getattr(one, table) for one in (anew, kept))
            assert list(ours) == list(theirs)
            numbers = ours.select_dtypes("number").columns
            assert np.allclose(ours[numbers], theirs[numbers], atol=1e-5, equal_nan=True)
    anew, kept = (
        read_record(root / ANSWER, PEOPLE_ANSWER, DataError)
        for root in (tmp_path / "people", DEMO / "people")
    )
    assert [one["title"] for one in anew["rows"]] == [one["title"] for one in kept["rows"]]
    psnr = next(one for one in kept["rows"] if one["title"] == "PSNR")
    assert psnr["rho"] == pytest.approx(0.5, abs=5e-4)
    assert kept["ceiling"]["rho"] == pytest.approx(0.91, abs=0.01)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/people.md"])
def test_pages_say_no_more_than_the_answer(page):
    told = read_record(DEMO / "people" / ANSWER, PEOPLE_ANSWER, DataError)
    best = max(one["rho"] for one in told["rows"])
    nearest = [one for one in told["rows"] if one["rho"] == best]
    words = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert nearest[0]["title"] == "PSNR"
    firsts = "PSNR ranks the 16 degradations most like them", "the nearest, PSNR"
    assert any(one in words for one in firsts)
    by_chance = nearest[0]["low"] <= 0
    assert (
        any(one in words for one in ("not significant", "distinguishable from chance")) == by_chance
    )
    assert ("which is not significant" in told["lead"]) == by_chance
