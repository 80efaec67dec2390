"""The SemSim paper's reproduction: plan, studies, and tables from simulated votes."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import typer
from made_campaign import grid_in_this_process, one_shuffle, quick_jury
from made_judged import judged_labels, judged_votes
from made_papers import check_kept
from PIL import Image
from study_factory import START, answer_to, joined
from typer.testing import CliRunner

from annotation.cli.main import app as human
from annotation.store import Store
from annotation.store.studies import all_studies
from annotation.study.exports import read_study
from annotation.study.labelling import next_items, vote
from benchmarks.papers import read_semsim
from semsim.attacks.as_text import read_attack
from semsim.base.errors import DataError, SettingsError
from semsim.base.sets.reader import read_set
from semsim.base.storage.places import PROGRAM
from semsim.cli.reproduce import app
from semsim.datasets.digits import Digits
from semsim.images import write_png
from semsim.learning.ablations_run import Material, Workplace, read_materials
from semsim.papers import semsim as command
from semsim.papers.semsim import _panels as panels
from semsim.papers.semsim import cells, next_steps, results, table_text
from semsim.papers.semsim_scales import (
    DATA_SETS,
    METRICS,
    StudiesScale,
    in_mixed_precision,
    plan_text,
    scale_of,
    works_of,
)
from semsim.targets.train_settings import TrainSettings as TargetTraining
from semsim.targets.train_settings import read_training


@pytest.fixture(scope="module")
def grid():
    """A cluster in this process and quick trainings, for all runs of this file."""
    with grid_in_this_process(), quick_jury(), one_shuffle():
        yield


@pytest.fixture(scope="module")
def made(grid, tmp_path_factory):
    """A folder with the sets and studies of the smoke scale, made in this process, and the run."""
    folder = tmp_path_factory.mktemp("semsim")
    return folder, typed(folder, "--json")


def typed(folder: Path, *words: str, preset: str = "smoke"):
    places = ["--data-dir", str(folder / "data"), "--out", str(folder / "out")]
    places += ["--checkpoints", str(folder / "checkpoints"), "--device", "cpu"]
    return CliRunner().invoke(app, ["semsim", "--preset", preset, *places, *words])


def asked_of_people(folder: Path, *words: object):
    """A command of the human half, which must go well."""
    done = CliRunner().invoke(
        human, [*map(str, words), "--data-dir", str(folder / "data")], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done


# The studies of the smoke scale, by the row of the paper's tables that each stands in for.
ROWS = {
    "CIFAR-100": "semsim-smoke-cifar-100",
    "CelebA": "semsim-smoke-celeba",
    "DLG": "semsim-smoke-dlg",
    "CAFE": "semsim-smoke-cafe",
    "GradAttack": "semsim-smoke-gradattack",
}
# Every figure of the paper that a reproduction draws; Figure 3 once for each metric.
VARIED = {"figure7A", "figure7B", "figure7C", "figure9"}  # a training a point
FIGURES = {"figure3-matrix", "figure3-psnr", "figure3-semsim", "figure5", "figure6"} | VARIED


def check_figures(folder: Path, names: set[str], *, simulated: bool) -> None:
    """Each is there as picture, drawing and table, none is empty, and all say whose votes."""
    for name in names:
        path = folder / name
        assert Image.open(path.with_suffix(".png")).size[0] > 1000
        frame = pd.read_csv(path.with_suffix(".csv"))
        assert len(frame) > 0, name
        assert ("simulated" in frame) is simulated, name
        # The text of a drawing is outlines, with the words themselves as a comment.
        drawn = path.with_suffix(".svg").read_text(encoding="utf-8")
        assert ("Simulated votes" in drawn) is simulated, name
        assert "No agreement is defined" not in drawn, name
    for name in names & VARIED:
        frame = pd.read_csv(folder / f"{name}.csv")
        assert len(frame) >= 2
        known = frame["SemSim |τ|"].dropna()
        assert len(known), name
        assert known.between(0, 1).all(), name


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
    assert "CAFE's equations need up to 24 GB of memory a worker." in said
    small = plan_text(scale_of("small"))
    assert "CAFE's equations" not in small
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


@pytest.mark.parametrize("preset", ["smoke", "small", "paper"])
def test_mixed_precision_is_asked_of_all_that_can_have_it_under_other_names(preset):
    plain = scale_of(preset)
    for before, part in zip(plain.parts, in_mixed_precision(plain).parts, strict=True):
        assert part.name == f"{before.name}-mixed"  # a campaign's name belongs to its settings
        assert part.campaign.train.mixed_precision
        assert not before.campaign.train.mixed_precision
        for text in part.campaign.attacks:
            if part.vertical:
                continue
            attack = read_attack(text)
            asked = attack.settings.get("mixed_precision", False)
            assert asked == (attack.name in ("invgrad", "gradattack"))
        for run in part.vertical:
            assert read_training(run.train, TargetTraining()).mixed_precision


def test_the_papers_plan_names_every_row_on_its_own(tmp_path):
    scale = scale_of("paper")
    works = works_of(scale, tmp_path)
    for part in scale.parts:
        own = [one for one in works if one.part == part.row and not one.trains]
        assert sum(one.cells for one in own) == 14 * part.campaign.images
    trained = {one.part: one.cells for one in works if one.what == "train targets"}
    # What is trained for Table 1 is trained once.
    assert trained == {one.dataset: 14 for one in DATA_SETS}
    assert sum(one.done for one in works) == 0


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
    for people in ([], ["a.parquet"]):  # nobody tells people how long to learn
        with pytest.raises(SettingsError, match="--jury-epochs is for simulated annotators"):
            command.check_votes(people, jury_epochs=20)
    command.check_votes(["simulated"], jury_epochs=20)


def test_commands_that_are_to_be_typed_may_name_folders_with_spaces():
    scale, data = scale_of("smoke"), Path("my data")
    studies = [data / f"{part.name}.yaml" for part in scale.parts]
    again = ["--data-dir", str(data)]
    lines = next_steps(scale, studies, data, data, again).splitlines()
    typed = [shlex.split(line) for line in lines if line.startswith(f"{PROGRAM} ")]
    assert len(typed) == 3 * len(studies) + 1
    for words in typed:
        assert words[words.index("--data-dir") + 1] == "my data"
    made = [words[words.index("--file") + 1] for words in typed if "--file" in words]
    assert made == [str(one) for one in studies]
    given = [after for word, after in pairwise(typed[-1]) if word == "--votes"]
    assert given == [str(data / "votes" / f"{part.name}.parquet") for part in scale.parts]


def test_it_ends_with_studies_for_people(made):
    folder, first = made
    assert first.exit_code == 0, first.output
    assert [row["row"] for row in json.loads(first.stdout)["studies"]] == list(ROWS)
    studies = folder / "out" / "smoke" / "studies"
    assert {one.stem for one in studies.glob("*.yaml")} == set(ROWS.values())
    for name in ROWS.values():
        assert f"--file {studies / name}.yaml" in first.output
        assert f"{PROGRAM} study export {name} --out" in first.output
    # Without them the command would look for the sets and studies elsewhere.
    places = f"--data-dir {folder / 'data'} --out {folder / 'out'}"
    assert f"{PROGRAM} reproduce semsim --preset smoke {places} --votes " in first.output


@pytest.fixture(scope="module")
def dry(made):
    """Where it was made, and what it says with programs' votes."""
    folder, _ = made
    done = typed(folder, "--votes", "simulated")
    assert done.exit_code == 0, done.output
    return folder, done


def test_simulated_votes_give_both_tables_and_every_figure_marked_as_such(dry):
    folder, done = dry
    marked = "Simulated annotators: no evidence about people."
    assert done.output.count(marked) == 4  # Tables 1, 2, controls, and Figures 3, 5 and 6
    assert "is not made" not in done.output
    out = folder / "out" / "smoke"
    table = pd.read_csv(out / "tables.csv")
    assert set(table["row"]) == set(ROWS)
    assert table["simulated"].all()
    assert set(table["metric"]) == set(METRICS)
    assert (table.loc[table["metric"] == "PSNR", "models"] == 4).all()
    own = table[(table["metric"] == "SemSim") & (table["table"] == 1)]
    assert (own["models"] == 4).all()
    assert own["rho_low"].isna().all()  # four models have no interval
    # Who voted stands on every table: what they recognise, and where they see what is not there.
    for row in ROWS:
        assert f"{row}: these programs recognise " in done.output
    assert done.output.count("There these programs recognise ") == 4  # Figures 7 and 9
    assert done.output.count("Simulated votes: no evidence about people.") == 4
    for title in ("7A. Label budget.", "7B. Network.", "7C. Loss.", "9. Margin."):
        assert f"Figure {title}" in done.output
    assert (table["jury_originals"] > 0.5).all()
    assert (table[["jury_grey", "jury_mean"]].max(axis=1) < table["jury_originals"]).all()
    check_figures(out / "figures", FIGURES, simulated=True)
    votes = pd.read_parquet(out / "simulated" / "semsim-smoke-celeba.parquet")
    assert set(votes["answer"]) <= {"same", "different"}
    assert votes["simulated"].all()
    assert votes.groupby(["model", "image_id"])["annotator"].nunique().eq(5).all()
    # Tables by programs lie as those by people do, and are read in the same way.
    written = out / "simulated"
    votes = [written / f"{name}.parquet" for name in ROWS.values()]
    read = read_materials([*map(command.labels_beside, votes)], votes)
    assert set(read.labels["study"]) == set(ROWS.values())
    assert (read.votes["kind"] == "reconstruction").sum() == 5 * len(read.labels)
    assert set(read.votes["kind"]) == {"reconstruction", "original", "grey", "mean"}


def test_what_benchmarks_keep_of_it_lies_in_its_folder(dry):
    folder, _ = dry
    cells = {f"Caltech-101, {one}": f"CIFAR-100, {one}" for one in METRICS}
    lacking = {"rows": {"Caltech-101": "CIFAR-100"}, "learned": {"symbols": "digits"}}
    check_kept("semsim", read_semsim(folder / "out" / "smoke"), {"cells": cells, **lacking})


PEOPLE = ("Anna", "Ben", "Cleo", "Dana", "Emil")


def recognised(row) -> bool:
    """What people of the test make out: less and less of one target after the other."""
    return row["place"] < (4, 3, 1, 0)[row["rank"]]


def test_votes_of_people_come_back_as_both_tables(dry, monkeypatch):
    """What the command says to type is typed; between, five people answer every question."""
    folder, _ = dry
    out, given = folder / "out" / "smoke", []
    for name in ROWS.values():
        asked_of_people(folder, "create", "--file", out / "studies" / f"{name}.yaml")
        with Store(f"sqlite:///{folder / 'data' / 'studies.db'}") as store:
            (study,) = (one for one in store.read(all_studies) if one.name == name)
            let_people_answer(store, folder / "data" / "images", study)
        votes = out / "votes" / f"{name}.parquet"
        asked_of_people(folder, "export", name, "--out", votes)
        labels = votes.with_name(f"{name}-labels.parquet")
        asked_of_people(folder, "labels", name, "--out", labels)
        assert not pd.read_parquet(votes)["simulated"].any()
        given += ["--votes", str(votes)]
    # Figures 7 and 9 see no more than the votes, and are drawn of the programs' above.
    shutil.rmtree(out / "figures")
    monkeypatch.setattr(command, "scale_of", lambda *asked: replace(scale_of(*asked), figures=()))
    done = typed(folder, *given)
    assert done.exit_code == 0, done.output
    assert "imulated" not in done.output
    table = pd.read_csv(out / "tables.csv").set_index(["row", "metric"])
    assert set(table.index.get_level_values(0)) == set(ROWS)
    assert not table["simulated"].any()
    # People rank four targets without a tie; a metric of pixels ranks them too.
    for row in ROWS:
        assert table.loc[(row, "PSNR"), "models"] == 4
        assert 0 <= table.loc[(row, "PSNR"), "tau"] <= table.loc[(row, "PSNR"), "rho"] <= 1
        assert table.loc[(row, "PSNR"), "paper_tau"] > 0
    for row in ("CIFAR-100", "CelebA"):
        assert table.loc[(row, "SemSim"), "models"] == 4
    check_figures(out / "figures", FIGURES - VARIED, simulated=False)
    # What learned from the programs' votes before is not taken for what learned from people's.
    cards = [path.read_text("utf-8") for path in (out / "trained").glob("*/leave-out/*/arm.json")]
    assert {json.loads(one)["held_out"]["simulated"] for one in cards} == {True, False}


def let_people_answer(store: Store, images: Path, study) -> None:
    """Everybody answers all items by `recognised`, decoys as what they are."""
    known = read_study(store, study.id, images).stimuli.set_index("item")
    models, originals = sorted(known["model"].unique()), sorted(known["image_id"].unique())
    known = known.assign(
        rank=known["model"].map(models.index), place=known["image_id"].map(originals.index)
    )
    for person in joined(store, study, *PEOPLE):
        while items := next_items(store, person, "tab", 100, START):
            for item in items:
                row = known.loc[item.item]
                right = "same" if study.spec.task == "pair" else row["class_name"]
                wrong = "different" if study.spec.task == "pair" else "none"
                seen = row["kind"] == "reconstruction" and recognised(row)
                said = answer_to(item.item, right if seen else wrong, rt_ms=1500.0)
                vote(store, person, said, START)


def class_folders(root: Path) -> Path:
    """Digits as people keep pictures: <root>/<split>/<class>/<name>.png."""
    for split in ("train", "test"):
        found = Digits(count=150)(split)
        for image, name, label in zip(found.images, found.ids, found.labels, strict=True):
            path = root / split / found.classes[label] / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_png(image, path)
    return root


def short(scale: StudiesScale) -> StudiesScale:
    """The scale without Figures 7 and 9, and attacks of two steps."""
    parts = []
    for part in scale.parts:
        attacks = tuple(re.sub(r"steps=\d+", "steps=2", one) for one in part.campaign.attacks)
        runs = tuple(replace(run, attack=attacks[0]) for run in part.vertical)
        campaign = replace(part.campaign, attacks=attacks)
        parts.append(replace(part, campaign=campaign, vertical=runs))
    return replace(scale, parts=tuple(parts), figures=())


@pytest.fixture(scope="module")
def own(grid, tmp_path_factory):
    """The smoke scale, `short` and undrawn, on class folders in bfloat16: its folder and sets."""
    folder = tmp_path_factory.mktemp("own")
    pictures = class_folders(folder / "pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "scale_of", lambda *given: short(scale_of(*given)))
        patch.setattr(command, "_figures", lambda analysis: {})
        asked = ["--image-dir", str(pictures), "--mixed-precision", "--votes", "simulated"]
        done = typed(folder, *asked, "--jury-epochs", "1")
    assert done.exit_code == 0, done.output
    sets: dict[str, list[dict]] = {}
    for one in (folder / "data" / "runs").glob("*/*/run.json"):
        sets.setdefault(one.parts[-3], []).append(read_set(one.parent).run)
    return folder, sets


def test_class_folders_are_attacked_and_judged_in_place_of_the_first_data_set(own):
    folder, sets = own
    faces = f"{ROWS['CelebA']}-mixed"
    assert set(sets) == {faces, *(f"{ROWS[row]}-folder-mixed" for row in ROWS if row != "CelebA")}
    for name, runs in sets.items():
        data = "faces" if name == faces else "pictures"
        assert [run["dataset"]["name"] for run in runs] == [data] * 4
    table = pd.read_csv(folder / "out" / "smoke" / "tables.csv").set_index("row")
    assert (table.loc[table["metric"] == "PSNR", "models"] == 4).all()
    asked = {row: {"faces" if row == "CelebA" else "folder"} for row in ROWS}
    assert {row: set(table.loc[row, "data"]) for row in ROWS} == asked


def test_what_was_computed_in_mixed_precision_says_so(own):
    _, sets = own
    trained = [run for runs in sets.values() for run in runs]
    for run in trained:
        if "vertical" in run:
            assert read_training(run["vertical"]["train"], TargetTraining()).mixed_precision
            continue
        assert run["target"]["train"]["mixed_precision"] is True
        attack = run["attack"]
        mixed = attack["settings"].get("mixed_precision", False)
        assert mixed == (attack["name"] != "dlg"), attack["name"]
    assert {run["attack"]["name"] for run in trained} == {"invgrad", "dlg", "gradattack", "cafe"}


@pytest.mark.parametrize(("preset", "below"), [("smoke", ""), ("paper", "small")])
def test_a_plan_says_what_would_run_and_how_much_more_that_is(preset, below, tmp_path):
    done = typed(tmp_path, "--plan", "--json", preset=preset)
    assert done.exit_code == 0, done.output
    for part in scale_of(preset).parts:
        assert f"{part.table}: {part.row}" in done.stderr
        assert f"attack {part.campaign.attacks[0]}" in done.stderr
    assert ("Against" in done.stderr) == bool(below)
    if below:
        rows = json.loads(done.stdout)["works"]
        mine = sum(row["steps"] for row in rows if row["what"].startswith("attack"))
        less = sum(one.steps for one in works_of(scale_of(below), tmp_path) if not one.trains)
        said = f"and {mine / less:,.0f} times the steps of its attacks; counted, not measured."
        assert said in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []  # nothing was computed


def test_a_plan_says_what_is_done(made):
    folder, _ = made
    works = works_of(scale_of("smoke"), folder / "data")
    assert all(one.done == one.cells > 0 for one in works)


def test_a_command_without_its_folder_is_told(tmp_path):
    done = typed(tmp_path, "--image-dir", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert "Error:" in done.output
    assert isinstance(app, typer.Typer)


def material(folder, names) -> Material:
    """A toy study a name, each of a data set and pictures of its own."""
    tables = []
    for number, name in enumerate(names):
        labels = judged_labels(folder / name, originals=5, seed=number)
        tables.append(labels.assign(study=name, dataset=f"textures-{number}"))
    labels = pd.concat(tables, ignore_index=True)
    return Material(labels=labels, votes=judged_votes(labels))


def ordered_share(ranked: pd.DataFrame) -> float:
    """Count how often what was recognised stands before what was not, by a loop over a figure."""
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
    assert found.text.count("Simulated votes: no evidence about people.") == 1
    varied = [row for row in found.parts["figures"] if row["figure"] == "9"]
    assert [float(row["value"]) for row in varied] == [0.5, 1.0]
    assert len(found.parts["tables"]) == len(table)
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
