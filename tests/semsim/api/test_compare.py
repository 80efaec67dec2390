"""`semsim.compare` of frames as people have them, and what it says of those that do not fit."""

import pandas as pd
import pytest
import torch
from made_tables import made_tables

import semsim
from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.base.stats.agreement import AGREEMENT_COLUMNS
from semsim.base.stats.analysis import AnalysisSettings

FEW = AnalysisSettings(bootstraps=20, permutations=99)
KEYS = ["model", "image_id"]


@pytest.fixture(scope="module")
def tables():
    votes, scores = made_tables()
    return votes, scores[scores["metric"] == "psnr"]


def compared(tmp_path, votes, scores, **more):
    return semsim.compare(votes, scores, settings=FEW, data=tmp_path, **more)


def same(one, other):
    columns = ["metric", "n", "rho", "tau", "p_rho"]
    pd.testing.assert_frame_equal(one.agreement[columns], other.agreement[columns])


def test_the_analysis_prints_draws_and_writes_itself(tables, tmp_path, one_figure):
    found = compared(tmp_path, *tables)
    assert tuple(found.agreement) == AGREEMENT_COLUMNS
    assert found.agreement["rho"].tolist() == [1.0]
    printed = str(found).splitlines()
    assert [line for line in printed if line.startswith("PSNR    5  1.0000")] != []
    assert printed[-1].startswith("Metrics of one band do not differ significantly")
    drawn = found.figures()
    assert [one.stem for one in drawn][:3] == ["forest", "order", "auc"]
    assert drawn[0].draw(89).get_size_inches()[0] == pytest.approx(89 / 25.4)
    text = found.report(tmp_path / "new" / "report.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert (found.write(tmp_path / "all") / "tables/agreement.csv").exists()
    with pytest.raises(SettingsError, match=r"ends in \.html"):
        found.report(tmp_path / "report.pdf")
    with pytest.raises(DataError, match="cannot be written"):
        found.report(tmp_path / "new" / "report.html" / "inside.html")


def test_answers_are_recognised_where_they_are_the_true_class(tables, tmp_path):
    votes, scores = tables
    whole = compared(tmp_path, votes, scores)
    headline = {"headline": whole.origin.protocol}
    least = votes[[*KEYS, "annotator", "answer", "class_name"]]
    same(compared(tmp_path, least, scores, **headline), whole)
    labels = votes[[*KEYS, "class_name"]].drop_duplicates()
    same(compared(tmp_path, least.drop(columns="class_name"), scores, labels=labels, **headline),
         whole)  # fmt: skip
    said = votes[[*KEYS, "annotator", "recognised"]]
    same(compared(tmp_path, said, scores, **headline), whole)
    # The control: another answer is another ranking.
    wrong = least.assign(answer="none")
    assert compared(tmp_path, wrong, scores, **headline).agreement["rho"].isna().all()


def test_ids_may_be_numbers_on_one_side_and_texts_on_the_other(tables, tmp_path):
    votes, scores = tables
    whole = compared(tmp_path, votes, scores)
    numbers = votes.assign(image_id=votes["image_id"].astype(int))
    same(
        compared(tmp_path, numbers, scores.assign(image_id=[str(int(i)) for i in scores.image_id])),
        whole,
    )


def test_scores_with_a_column_a_metric_are_those_with_a_row_a_metric(tables, tmp_path):
    votes, scores = tables
    whole = compared(tmp_path, votes, scores)
    wide = scores[[*KEYS, "value"]].rename(columns={"value": "psnr"})
    same(compared(tmp_path, votes, wide.assign(class_name="cat")), whole)
    own = compared(tmp_path, votes, wide.assign(mine=wide["psnr"]), higher_leaks=["mine"])
    assert set(own.agreement["metric"]) == {"psnr", "mine"}
    undirected = compared(tmp_path, votes, wide.assign(mine=wide["psnr"]))
    assert [note for note in undirected.analysis.notes if "were not read: mine;" in note] != []
    assert [note for note in own.analysis.notes if "was not read" in note] == []


def test_scores_of_tensors_are_compared_model_by_model(tmp_path):
    votes, _ = made_tables()
    draw = torch.Generator().manual_seed(0)
    originals = torch.rand(8, 3, 16, 16, generator=draw)
    parts = []
    for place, model in enumerate(sorted(votes["model"].unique())):
        noise = torch.rand(8, 3, 16, 16, generator=draw)
        mixed = originals.lerp(noise, place / 10)
        parts.append(semsim.score((originals, mixed), ["mse", "psnr"]).assign(model=model))
    numbered = votes.assign(image_id=votes["image_id"].astype(int).astype(str))
    found = compared(tmp_path, numbered, pd.concat(parts))
    assert found.agreement.set_index("metric")["rho"].to_dict() == {"mse": 1.0, "psnr": 1.0}
    one_model = numbered[numbered["model"] == "net/0"]
    alone = compared(tmp_path, one_model, parts[0].drop(columns="model"))
    assert alone.agreement["undefined"].notna().all()


@pytest.mark.parametrize("absent", ["model", "image_id", "annotator"])
def test_an_absent_column_of_votes_is_named(tables, tmp_path, absent):
    votes, scores = tables
    with pytest.raises(DataError, match=rf"votes lacks the columns {absent}\. It has: "):
        compared(tmp_path, votes.drop(columns=absent), scores)


def test_what_does_not_fit_is_told(tables, tmp_path):
    votes, scores = tables
    with pytest.raises(DataError, match="lacks the columns answer, recognised"):
        compared(tmp_path, votes[[*KEYS, "annotator"]], scores)
    with pytest.raises(DataError, match=r"no true class to compare it with"):
        compared(tmp_path, votes[[*KEYS, "annotator", "answer"]].replace("none", "dog"), scores)
    with pytest.raises(DataError, match="neither a column metric nor one that is called"):
        compared(tmp_path, votes, scores[[*KEYS, "value"]])
    with pytest.raises(DataError, match="lacks the column model, and the votes are on 5 models"):
        compared(tmp_path, votes, pd.DataFrame({"image_id": ["000"], "psnr": [1.0]}))
    with pytest.raises(DataError, match="lacks the columns value"):
        compared(tmp_path, votes, scores.drop(columns="value"))
    with pytest.raises(SettingsError, match="mine"):
        compared(tmp_path, votes, scores.assign(metric="mine"))
    with pytest.raises(UnknownNameError, match="best"):
        compared(tmp_path, votes, scores, headline="best")


def test_a_model_that_several_attacks_share_needs_the_attack(tables, tmp_path):
    votes, scores = tables
    both = pd.concat([scores, scores.assign(attack="b")])
    with pytest.raises(DataError, match=r"lacks the column attack, and net/0 has several: a, b"):
        compared(tmp_path, votes.drop(columns="attack"), both)
    assert compared(tmp_path, votes, both).agreement["n"].tolist() == [5]
    nobody_voted = both[(both["model"] == "net/0") | (both["attack"] == "a")]
    others = votes[votes["model"] != "net/0"].drop(columns="attack")
    assert compared(tmp_path, others, nobody_voted).agreement["n"].tolist() == [4]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_may_be_files(tables, tmp_path, ending):
    files = [tmp_path / f"{name}.{ending}" for name in ("votes", "scores")]
    for table, file in zip(tables, files, strict=True):
        table.to_csv(file, index=False) if ending == "csv" else table.to_parquet(file, index=False)
    whole = compared(tmp_path, *tables)
    same(compared(tmp_path, *map(str, files)), whole)
    same(compared(tmp_path, files[0], tables[1]), whole)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("gone.csv", "gone.csv does not exist"),
        ([1, 2], r"pandas frame or a path; got list \[1, 2\]"),
    ],
)
def test_what_is_no_table_is_told(tables, tmp_path, wrong, words):
    for given in ((wrong, tables[1]), (tables[0], wrong)):
        with pytest.raises(DataError, match=words):
            compared(tmp_path, *given)
    with pytest.raises(DataError, match=words):
        compared(tmp_path, *tables, labels=wrong)


def test_zeros_that_a_spreadsheet_took_are_given_back_where_asked(tables, tmp_path):
    votes, scores = tables
    bare = scores.assign(image_id=[f"{int(one)}.0" for one in scores["image_id"]])
    padded = votes.assign(image_id=votes["image_id"].astype(str).str.zfill(4))
    with pytest.raises(DataError, match="match_ids=True"):
        compared(tmp_path, padded, bare)
    same(compared(tmp_path, padded, bare, match_ids=True), compared(tmp_path, votes, scores))


def test_a_row_that_stands_twice_counts_once_and_it_is_said(tables, tmp_path):
    votes, scores = tables
    twice = [pd.concat([table, table.head(3)]) for table in (votes, scores)]
    found = compared(tmp_path, *twice)
    same(found, compared(tmp_path, votes, scores))
    assert "3 rows repeat votes of the same person" in str(found)
    assert " of one picture by " in str(found)


def test_a_score_that_is_no_number_is_named_by_picture_and_metric(tables, tmp_path):
    votes, scores = tables
    wrong = scores.astype({"value": object})
    wrong.iloc[2, wrong.columns.get_loc("value")] = "12,5"
    with pytest.raises(DataError, match=r"of image .* is '12,5', which is no number"):
        compared(tmp_path, votes, wrong)
