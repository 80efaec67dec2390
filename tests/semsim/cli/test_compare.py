import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from made_tables import made_tables
from typer.testing import CliRunner

from semsim.base.columns import SCORE_COLUMNS
from semsim.base.errors import DataError, SettingsError
from semsim.base.sets.imports import places_of
from semsim.cli.compare import compare, report
from semsim.cli.imports import app as imports
from semsim.comparison.frames import read_table
from semsim.comparison.metric_facts import specs_of
from semsim.importers import plan_import
from semsim.importers.import_folder import carry_out

RELEASED = Path(__file__).resolve().parents[4] / "shared" / "data" / "semsim_cifar100_labels.csv"
FEW = ("--bootstraps", 20, "--permutations", 99)

app = typer.Typer()
app.command("compare")(compare)
app.command("report")(report)
app.add_typer(imports, name="import")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    votes, scores = made_tables()
    votes.to_csv(tmp_path / "votes.csv", index=False)
    scores.to_parquet(tmp_path / "scores.parquet", index=False)
    return tmp_path / "votes.csv", tmp_path / "scores.parquet"


KNOWN = ("--higher-leaks", "mine", "--lower-leaks", "set")


def test_the_agreement_of_every_metric_is_printed(files):
    done = run("compare", *files, *KNOWN, *FEW)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    (psnr,) = [line for line in lines if line.startswith("PSNR")]
    assert psnr.split()[1:3] == ["5", "1.0000"]
    (own,) = [line for line in lines if line.startswith("set (custom) ")]
    assert own.split()[2:4] == ["5", "1.0000"]
    assert "Note: Only 5 models" in done.stdout
    assert "human score 'Share of votes'" in done.stdout
    assert any(line.startswith("Human ceiling: ρ ") for line in lines)
    rows = json.loads(run("compare", *files, *KNOWN, *FEW, "--json").stdout)["metrics"]
    assert {row["metric"]: row["rho"] for row in rows}["psnr"] == 1.0
    assert not any(row["simulated"] for row in rows)
    orders = {row["metric"]: (row["soft_accuracy"], row["n_originals"]) for row in rows}
    assert orders["psnr"][0] > 0.5
    assert orders["set"][0] is None
    (order,) = [line for line in lines if line.split()[1:2] == ["PSNR"]]
    assert f"{orders['psnr'][0]:.3f}" in order
    assert any(line.startswith("Order of these 5 models by") for line in lines)


@pytest.mark.parametrize(
    ("models", "interval"), [(6, "[0.38, 1.00]"), (4, "[no interval: 4 models, fewer than 6]")]
)
def test_few_models_ranked_alike_are_not_called_certain(
    files, tmp_path, models, interval, one_figure
):
    votes, scores = made_tables(models, 60)
    votes.to_csv(files[0], index=False)
    scores.to_parquet(files[1])
    done = run("compare", *files, *KNOWN, *FEW, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    (psnr,) = [line for line in lines if line.startswith("PSNR")]
    assert f"1.000 {interval}" in psnr
    assert "[1.00, 1.00]" not in done.stdout
    assert "Intervals: 95% over models, of ρ after Bonett and Wright" in done.stdout
    p = read_table(tmp_path / "out" / "tables" / "differences.csv")["p"]
    assert not (p < 2 / 720).any()  # what no exact test of 6 models could go below


def test_another_human_score_than_the_protocols_is_said(files):
    done = run("compare", *files, *KNOWN, *FEW, "--headline", "majority")
    assert "The protocol fixed the human score 'Share of votes'" in done.stdout
    assert "human score 'Majority of votes'" in done.stdout


def test_an_undefined_metric_says_why(files):
    _, scores = made_tables()
    scores.loc[scores["metric"] == "mine", "value"] = 1.0
    scores.to_parquet(files[1])
    done = run("compare", *files, *KNOWN, *FEW)
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("mine")]
    assert "undefined: metric: the same value for every model" in line


def test_out_writes_everything_and_leaves_other_folders_alone(files, tmp_path):
    out = tmp_path / "out"
    _, scores = made_tables()
    scores[scores["metric"] == "psnr"].to_parquet(files[1])
    done = run("compare", *files, *FEW, "--seed", 7, "--width", 89, "--out", out)
    assert done.exit_code == 0, done.output
    assert f"Wrote {out}" in done.stderr
    record = json.loads((out / "settings.json").read_text())
    assert record["analysis"] == {
        **{"headline": "mean-response", "bootstraps": 20, "permutations": 99, "seed": 7},
    }
    assert (out / "tables" / "agreement.tex").exists()
    drawing = (out / "figures" / "scatter-psnr.svg").read_text()
    assert 'width="252.28' in drawing  # points
    again = run("compare", *files, *FEW, "--out", out)
    assert again.exit_code == 2
    assert "not empty" in again.stderr


def test_standard_output_is_no_folder(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("compare", *files, *KNOWN, *FEW, "--out", "-")
    assert done.exit_code == 2
    assert "--out is a folder here; give one, not -" in done.stderr
    assert not (tmp_path / "-").exists()


def test_a_report_on_standard_output_is_all_there_is(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("report", *files, *KNOWN, *FEW, "--out", "-")
    assert done.exit_code == 0
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stdout.rstrip().endswith("</html>")
    assert "Wrote" not in done.stderr
    assert not (tmp_path / "-").exists()


def test_report_writes_one_file(files, tmp_path):
    out = tmp_path / "new" / "report.html"
    done = run("report", *files, *KNOWN, *FEW, "--out", out)
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "seed 0" in text
    assert "20 bootstraps over models" in text
    blocked = run("report", *files, *KNOWN, *FEW, "--out", out / "inside.html")
    assert blocked.exit_code == 2
    assert "cannot be written" in blocked.stderr


def test_custom_metrics_need_a_direction(files):
    done = run("compare", *files, *FEW)
    assert done.exit_code == 2
    assert "mine, set" in done.stderr
    assert "--higher-leaks NAME or --lower-leaks NAME" in done.stderr


def test_an_import_of_ones_own_metric_needs_no_direction_again(tmp_path):
    votes, scores = made_tables()
    mine = scores[scores["metric"] == "mine"].rename(columns={"value": "mine"})
    key = ["dataset", "attack", "model", "image_id"]
    votes.merge(mine[[*key, "mine"]], on=key).to_csv(tmp_path / "own.csv", index=False)
    settings = {"scores": "mine=mine:higher"}
    places = places_of("own", tmp_path / "data")
    carry_out(plan_import("table", tmp_path / "own.csv", "own", settings), places)
    done = run("compare", places.tables, *FEW)
    assert done.exit_code == 0, done.output
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("mine (custom) ")]
    assert line.split()[2] == "5"
    assert "Note: mine is a custom metric" in done.stdout


def test_scores_of_ones_own_are_kept_for_a_study_and_go_through_everything(
    files, tmp_path, one_figure
):
    votes, scores = made_tables()
    mine = scores[scores["metric"] == "mine"].rename(columns={"value": "sharp"})
    mine[["model", "image_id", "sharp"]].to_csv(tmp_path / "own.csv", index=False)
    data = ("--data-dir", tmp_path / "data")
    asked = ("--study", str(votes["study"].iloc[0]), "--scores", "edges=sharp:lower")
    done = run("import", "scores", tmp_path / "own.csv", *asked, *data)
    assert done.exit_code == 0, done.output
    assert [line.split() for line in done.stdout.splitlines()] == [
        *(["metric", "scores", "leaks", "more"], ["edges", str(len(mine)), "lower"])
    ]
    again = run("import", "scores", tmp_path / "own.csv", *asked, *data, "--json")
    (row,) = json.loads(again.stdout)["scores"]
    assert row == {"metric": "edges", "leaks": "lower", "n": len(mine)}
    told = run("compare", *files, *KNOWN, *FEW, *data, "--out", tmp_path / "out")
    assert told.exit_code == 0, told.output
    lines = {line.split(" (custom)")[0]: line.split() for line in told.stdout.splitlines()}
    assert lines["edges"][3:5] == lines["mine"][3:5]  # the same values
    assert lines["edges"][5] == f"−{lines['mine'][5]}"  # the other way
    assert "Note: edges is a custom metric" in told.stdout
    assert "edges (custom)" in (tmp_path / "out/report.html").read_text()
    agreement = pd.read_csv(tmp_path / "out/tables/agreement.csv")
    assert "edges (custom)" in agreement.astype(str).to_numpy()
    elsewhere = run("compare", *files, *KNOWN, *FEW, "--data-dir", tmp_path / "other")
    assert "edges" not in elsewhere.stdout


def test_directions_that_cannot_be_right_are_refused():
    _, scores = made_tables()
    with pytest.raises(SettingsError, match="both ways"):
        specs_of(scores, ["mine"], ["mine", "set"])
    with pytest.raises(SettingsError, match=r"No scores of mien.*psnr, mine, set"):
        specs_of(scores, ["mien", "mine"], ["set"])
    with pytest.raises(SettingsError, match="its higher values leak more"):
        specs_of(scores, ["mine"], ["set", "psnr"])
    for column in ("metric", "image_id"):
        with pytest.raises(DataError, match=f"lacks the columns {column}"):
            specs_of(scores.drop(columns=column), ["mine"], ["set"])
    found = {spec.name: spec for spec in specs_of(scores, ["mine", "psnr"], ["set"])}
    assert list(found) == ["psnr", "mine", "set"]
    assert found["psnr"].title == "PSNR"
    assert found["mine"].higher_means_more_leakage
    assert not found["set"].higher_means_more_leakage
    assert (found["mine"].per_image, found["set"].per_image) == (True, False)


def test_what_cannot_be_read_is_named(files, tmp_path):
    (tmp_path / "bad.parquet").write_text("no")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "scores.xlsx").write_text("")
    for name in ("bad.parquet", "bad.csv", "scores.xlsx", "absent.csv"):
        done = run("compare", files[0], tmp_path / name)
        assert done.exit_code == 2, name
        assert name in done.stderr
    alone = run("compare", files[0])
    assert alone.exit_code == 2
    assert "VOTES SCORES" in alone.stderr
    unknown = run("compare", *files, *KNOWN, "--headline", "best")
    assert unknown.exit_code == 2
    assert "mean-response" in unknown.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_too_many_rows_is_refused_before_it_is_read(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("semsim.comparison.frames.MOST_ROWS", 3)
    table, path = pd.DataFrame({"model": list("abcd")}), tmp_path / f"scores.{ending}"
    getattr(table, f"to_{ending}")(path, index=False)
    with pytest.raises(DataError, match="more than 3 rows"):
        read_table(path)
    getattr(table[:3], f"to_{ending}")(path, index=False)
    assert read_table(path)["model"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_of_scores_only_what_is_needed_is_read(files, tmp_path, ending):
    votes, scores = files
    wide = pd.read_parquet(scores).assign(remark="x", more=1)
    getattr(wide, f"to_{ending}")(tmp_path / f"wide.{ending}", index=False)
    found = read_table(tmp_path / f"wide.{ending}", SCORE_COLUMNS)
    assert set(found) == set(SCORE_COLUMNS)
    assert {str(found[name].dtype) for name in ("model", "metric", "image_id")} == {"category"}
    narrow, also = run("compare", votes, scores, *KNOWN, *FEW), tmp_path / f"wide.{ending}"
    assert run("compare", votes, also, *KNOWN, *FEW).stdout == narrow.stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scores_with_a_column_a_metric_are_read_as_in_python(files, tmp_path, ending):
    _, scores = made_tables()
    of_images = scores[scores["metric"] != "set"]
    keys = ["dataset", "attack", "model", "image_id"]
    wide = of_images.pivot(index=keys, columns="metric", values="value").reset_index()
    path, told = tmp_path / f"wide.{ending}", ("--higher-leaks", "mine")
    getattr(wide, f"to_{ending}")(path, index=False)
    of_images.to_parquet(files[1], index=False)
    long = run("compare", *files, *told, *FEW)
    found = run("compare", files[0], path, *told, *FEW)
    assert (found.exit_code, found.stdout) == (0, long.stdout), found.output
    undirected = run("compare", files[0], path, *FEW)
    assert "Columns that are no metric were not read: mine;" in undirected.stdout
    getattr(wide.drop(columns=keys[:3]), f"to_{ending}")(path, index=False)
    nobodys = run("compare", files[0], path, *FEW)
    assert "lacks the column model, and the votes are on 5 models" in nobodys.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_direction_may_stand_in_the_table_of_scores(files, tmp_path, ending):
    _, scores = made_tables()
    known = run("compare", *files, *KNOWN, *FEW)
    ways = scores["metric"].map({"mine": "higher", "set": "lower"})
    path = tmp_path / f"told.{ending}"
    getattr(scores.assign(leaks=ways), f"to_{ending}")(path, index=False)
    told = run("compare", files[0], path, *FEW)
    assert (told.exit_code, told.stdout) == (0, known.stdout), told.output


def test_votes_of_two_protocols_are_refused(files):
    votes, _ = made_tables()
    votes.loc[0, "headline"] = "majority"
    votes.to_csv(files[0], index=False)
    done = run("compare", *files, *KNOWN)
    assert done.exit_code == 2
    assert "headline must be one for a study; got majority, mean-response" in done.stderr


@pytest.mark.parametrize("columns", [None, ("model", "image_id", "metric", "value")])
def test_csv_keeps_names_that_look_like_numbers_or_nothing(tmp_path, columns):
    path = tmp_path / "t.csv"
    path.write_text("model,image_id,metric,value\nNone,007,a,inf\nNA,008,a,\n")
    table = read_table(path, columns)
    assert table["model"].tolist() == ["None", "NA"]
    assert table["image_id"].tolist() == ["007", "008"]
    assert table["value"][0] == np.inf
    assert np.isnan(table["value"][1])


def test_csv_and_parquet_give_the_same(files, tmp_path):
    votes, scores = made_tables()
    votes.to_parquet(tmp_path / "votes.parquet")
    scores.to_csv(tmp_path / "scores.csv", index=False)
    first = run("compare", *files, *KNOWN, *FEW)
    second = run("compare", tmp_path / "votes.parquet", tmp_path / "scores.csv", *KNOWN, *FEW)
    assert first.exit_code == 0
    assert first.stdout == second.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The votes behind the paper's CIFAR-100 row, imported."""
    if not RELEASED.exists():
        pytest.skip("the released votes are not on this machine")
    data = tmp_path_factory.mktemp("data")
    plan = plan_import("semsim-cifar100", RELEASED, "paper")
    places = places_of("paper", data)
    carry_out(plan, places)
    return places.tables


def test_the_papers_own_cells_from_an_import(released):
    done = run("compare", released, *FEW)
    assert done.exit_code == 0, done.output
    cells = {line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines() if line}
    assert cells["PSNR"] == ["14", "0.6703", "0.4725"]
    assert cells["MSE"] == ["14", "0.6176", "0.4286"]
    assert "protocol fixed" not in done.stdout


def test_the_majority_of_the_released_votes_departs_from_the_papers_protocol(released):
    done = run("compare", released, *FEW, "--headline", "majority")
    assert "The protocol fixed the human score" in done.stdout
    cells = {line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines() if line}
    assert cells["PSNR"] == ["14", "0.7451", "0.5385"]


def test_an_import_without_scores_asks_for_them(released, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("import.json", "votes.parquet", "labels.parquet"):
        (alone / name).write_bytes((released / name).read_bytes())
    done = run("compare", alone, *FEW)
    assert done.exit_code == 2
    assert "without scores" in done.stderr
    given = run("compare", alone, released / "scores.parquet", *FEW)
    assert given.exit_code == 0, given.output


def one_study(votes_ids, scores_ids):
    votes = pd.DataFrame(
        [(m, i, who) for m in "abcd" for i in range(3) for who in ("Ann", "Bob")],
        columns=["model", "image_id", "annotator"],
    )
    votes["recognised"] = votes["image_id"] < votes["model"].map("dcba".index)
    scores = votes[["model", "image_id"]].drop_duplicates()
    scores = scores.assign(psnr=scores["model"].map({"a": 30.0, "b": 24, "c": 22, "d": 9}))
    return (
        votes.assign(image_id=votes["image_id"].map(votes_ids)),
        scores.assign(image_id=scores["image_id"].map(scores_ids)),
    )


def test_tables_with_nothing_in_common_are_refused_and_zeros_are_matched_if_wanted(tmp_path):
    tables = one_study("{:03}".format, str)
    files = [tmp_path / "v.csv", tmp_path / "s.csv"]
    for table, path in zip(tables, files, strict=True):
        table.to_csv(path, index=False)
    done = run("compare", *files, *FEW)
    assert done.exit_code == 2
    assert "for example, '0', the votes '000'" in done.stderr
    assert "add --match-ids" in done.stderr
    done = run("compare", *files, *FEW, "--match-ids")
    assert done.exit_code == 0
    assert "PSNR    4  1.0000" in done.stdout


def test_models_that_no_vote_is_of_are_refused(tmp_path):
    votes, scores = one_study(str, str)
    files = [tmp_path / "v.csv", tmp_path / "s.csv"]
    votes.to_csv(files[0], index=False)
    scores.assign(model="net-" + scores["model"]).to_csv(files[1], index=False)
    done = run("compare", *files, *FEW)
    assert done.exit_code == 2
    assert "No model of the scores is one of the votes" in done.stderr


@pytest.mark.parametrize("how", [{"sep": ";", "decimal": ","}, {"sep": "\t", "encoding": "utf-16"}])
def test_votes_and_scores_may_come_out_of_a_spreadsheet(tmp_path, how):
    votes, scores = one_study(str, str)
    votes["recognised"] = votes["recognised"].map({True: "ja", False: "nein"})
    votes.assign(model=" " + votes["model"]).to_csv(tmp_path / "v.csv", index=False, **how)
    scores.assign(model=scores["model"] + "\u00a0", psnr=scores["psnr"] + 0.5).to_csv(
        tmp_path / "s.csv", index=False, **how
    )
    done = run("compare", tmp_path / "v.csv", tmp_path / "s.csv", *FEW)
    assert "PSNR    4  1.0000" in done.stdout
