"""Tables and figures from votes that teach a SemSim something, on two toy data sets."""

from dataclasses import replace

import pandas as pd
import pytest
from made_campaign import one_shuffle
from made_judged import judged_labels, judged_votes
from PIL import Image

from semsim.learning.ablations_run import Material, Workplace
from semsim.papers.semsim import _panels as panels
from semsim.papers.semsim import results
from semsim.papers.semsim_scales import scale_of


def material(folder, names) -> Material:
    """A toy study a name, each of a data set and pictures of its own."""
    tables = []
    for number, name in enumerate(names):
        labels = judged_labels(folder / name, originals=5, seed=number)
        tables.append(labels.assign(study=name, dataset=f"textures-{number}"))
    labels = pd.concat(tables, ignore_index=True)
    return Material(labels=labels, votes=judged_votes(labels))


def ordered_share(ranked: pd.DataFrame) -> float:
    """How often what was recognised stands before what was not, by a loop over a figure."""
    shares = []
    for _, own in ranked.groupby("original"):
        yes, no = (
            own.loc[own["mark"] == mark, "place"] for mark in ("recognised", "not recognised")
        )
        if len(yes) and len(no):
            shares.append(sum(a < b for a in yes for b in no) / (len(yes) * len(no)))
    return sum(shares) / len(shares)


def test_a_semsim_that_never_saw_a_data_set_stands_beside_the_papers(tmp_path):
    scale = scale_of("smoke")
    names = [part.name for part in scale.of_table(1)]
    place = Workplace(
        checkpoints=tmp_path / "checkpoints",
        scores=tmp_path / "scores",
        device="cpu",
        metrics=("psnr", "mse"),
    )
    # Figure 7's trainings are those of `test_semsim`, of programs' votes.
    margins = tuple(one for one in scale.figures if one[0] == "margin")
    quick = replace(scale, semsim=replace(scale.semsim, device="cpu"), figures=margins)
    with one_shuffle():
        found = results(quick, material(tmp_path / "images", names), place, tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "tables.csv").set_index(["row", "metric"])
    for row in ("CIFAR-100", "CelebA"):
        own = table.loc[(row, "SemSim")]
        assert own["models"] == 4
        assert 0 <= own["tau"] <= own["rho"] <= 1
    assert table.loc[("CIFAR-100", "SemSim"), "paper_tau"] == 0.7143
    assert table.loc[("DLG", "PSNR"), "why"] == "not run"
    assert "Figure 9. Margin." in found.text
    # Figures 3, 5 and 6 in numbers: those of the table, and of what stands in the drawn figure.
    ordered = found.text[found.text.index("Figures 3, 5 and 6 in numbers") :]
    line = next(one for one in ordered.splitlines() if one.startswith("PSNR")).split()
    ranked = pd.read_csv(tmp_path / "out" / "figures" / "figure5.csv")
    assert float(line[4]) == pytest.approx(ordered_share(ranked), abs=0.005)
    assert int(line[-1]) == ranked["original"].nunique()
    assert found.text.count("Simulated votes: this says nothing about people.") == 1
    figures = [row for row in found.rows if "figure" in row]
    assert [float(row["value"]) for row in figures if row["figure"] == "9"] == [0.5, 1.0]
    assert len(found.rows) - len(figures) == len(table)
    drawn = {path.stem for path in (tmp_path / "out" / "figures").glob("*.svg")}
    assert len(drawn) == found.n_figures
    assert {"figure3-matrix", "figure3-semsim", "figure5", "figure6", "figure9"} <= drawn
    for name in drawn:  # each is there as drawing, picture and table, and says whose votes
        path = tmp_path / "out" / "figures" / name
        frame = pd.read_csv(path.with_suffix(".csv"))
        assert len(frame) > 0
        assert frame["simulated"].all()
        assert Image.open(path.with_suffix(".png")).size[0] > 1000
        assert "Simulated votes" in path.with_suffix(".svg").read_text(encoding="utf-8")
    points = pd.read_csv(tmp_path / "out" / "figures" / "figure9.csv")
    assert points["value"].astype(float).tolist() == [0.5, 1.0]
    assert points[["SemSim |τ|", "SemSim |ρ|"]].stack().between(0, 1).all()


def test_figure_9_is_judged_by_both_data_sets_of_the_paper_where_they_are():
    for name in ("small", "paper"):
        found = [(one.figure, one.judged_by.row) for one in panels(scale_of(name))]
        assert found == [
            *((figure, "CIFAR-100") for figure in ("7A", "7B", "7C", "9")),
            ("9B", "Caltech-101"),
        ]
    assert "9B" not in {one.figure for one in panels(scale_of("smoke"))}
