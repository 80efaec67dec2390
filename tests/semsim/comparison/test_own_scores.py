"""Scores of one's own metrics: read whole or not at all, kept for a study, and joined to it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from semsim.base.columns import ScoreColumn
from semsim.base.errors import DataError, SettingsError
from semsim.comparison import own_scores
from semsim.comparison.own_scores import (
    COLUMNS,
    fitted,
    joined,
    keep_own,
    kept_of,
    read_own,
    remove_own,
)
from semsim.comparison.study_tables import StudyTables
from semsim.importers.table import score_columns

STUDY = ("id-1", "Cats")


@pytest.fixture
def table(tmp_path):
    """Write rows as a file of scores."""

    def write(rows, name="own.csv"):
        frame = pd.DataFrame(rows)
        path = tmp_path / name
        frame.to_parquet(path) if name.endswith(".parquet") else frame.to_csv(path, index=False)
        return path

    return write


def rows(**more):
    return [
        {"model": m, "image_id": f"0{i}", "sharp": 10 * i + len(m), **more}
        for m in ("a", "bb")
        for i in range(2)
    ]


def of(metric, value=1.0, leaks="lower", **more):
    """Scores of the pictures of `rows` by one metric."""
    keys = pd.DataFrame(rows(**{"dataset": None, "attack": None, **more}))
    return keys.assign(metric=metric, value=value, leaks=leaks)[list(COLUMNS)]


def metrics_of(data, *names):
    return [one.metric for one in kept_of(data, names)]


@pytest.fixture
def study():
    keys = [("d", "x", row["model"], row["image_id"]) for row in rows()]
    labels = pd.DataFrame(keys, columns=["dataset", "attack", "model", "image_id"])
    return StudyTables(votes=labels.head(0), labels=labels, name="Cats")


@pytest.mark.parametrize("name", ["own.csv", "own.parquet"])
def test_what_is_kept_is_found_by_id_and_by_name(tmp_path, table, study, name):
    found = read_own(table(rows(), name), score_columns("edges=sharp:lower"))
    (kept,) = keep_own(tmp_path, STUDY, found)
    assert (kept.metric, kept.leaks, kept.n) == ("edges", "lower", 4)
    assert kept_of(tmp_path, ["Cats"]) == kept_of(tmp_path, ["id-1"]) == [kept]
    assert kept_of(tmp_path, ["Dogs"]) == []
    for one in (joined(study, tmp_path), joined(replace(study, name="Renamed"), tmp_path, "id-1")):
        assert one.own == ("edges",)
        assert one.scores["image_id"].tolist() == ["00", "01", "00", "01"]
        assert one.scores["value"].tolist() == [1, 11, 2, 12]
        assert set(one.scores["dataset"]) == {"d"}
        assert one.remarks == ()
    assert joined(replace(study, name="Dogs"), tmp_path).scores is None


def test_a_metric_that_comes_again_replaces_the_old_one_and_the_others_stay(tmp_path, table):
    path = table(rows(blur=1.5))
    keep_own(tmp_path, STUDY, read_own(path, score_columns("edges=sharp:lower,blur=blur/2:higher")))
    kept = keep_own(
        tmp_path, ["Cats"], read_own(table(rows()[:1]), score_columns("edges=sharp:higher"))
    )
    assert [(one.metric, one.leaks, one.n) for one in kept] == [
        ("blur", "higher", 4),
        ("edges", "higher", 1),
    ]
    remove_own(tmp_path, ["Cats"], "edges")
    assert [one.metric for one in kept_of(tmp_path, ["Cats"])] == ["blur"]
    with pytest.raises(DataError, match="no scores of 'edges'"):
        remove_own(tmp_path, ["Cats"], "edges")


def test_many_who_keep_scores_at_once_lose_none(tmp_path):
    metrics = [f"m{n}" for n in range(8)]
    with ThreadPoolExecutor(len(metrics)) as together:
        list(together.map(lambda metric: keep_own(tmp_path, STUDY, of(metric)), metrics))
    assert metrics_of(tmp_path, *STUDY) == metrics


def test_who_waits_too_long_for_another_process_is_told_and_nothing_changes(tmp_path, monkeypatch):
    keep_own(tmp_path, STUDY, of("edges"))
    monkeypatch.setattr(own_scores, "_WAIT", 0.1)
    with FileLock(tmp_path / "scores/own/.lock"):
        for change in (
            lambda: keep_own(tmp_path, STUDY, of("blur")),
            lambda: remove_own(tmp_path, STUDY, "edges"),
        ):
            with pytest.raises(
                DataError, match=r"Somebody else has been keeping scores.*Try again"
            ):
                change()
        assert metrics_of(tmp_path, *STUDY) == ["edges"]


def test_a_full_disk_takes_nothing_away(tmp_path, monkeypatch):
    keep_own(tmp_path, ["Cats"], of("edges"))

    def full(*args, **settings):
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="No space left"):
        keep_own(tmp_path, STUDY, of("blur"))
    assert metrics_of(tmp_path, *STUDY) == ["edges"]


def test_a_table_that_is_replaced_while_somebody_reads_is_read_anew(tmp_path, monkeypatch):
    keep_own(tmp_path, ["Cats"], of("edges"))

    def replaced(path):
        monkeypatch.undo()
        keep_own(tmp_path, STUDY, of("blur"))
        return path.read_bytes()

    monkeypatch.setattr(Path, "read_bytes", replaced)
    assert metrics_of(tmp_path, "Cats") == ["blur", "edges"]


@pytest.mark.parametrize("second", [["id-1"], ["Cats"], ["id-1", "Cats of 2020"]])
def test_a_study_keeps_every_name_that_it_has_been_given(tmp_path, second):
    keep_own(tmp_path, STUDY, of("edges"))
    keep_own(tmp_path, second, of("blur"))
    for names in ({"id-1"}, {"Cats"}, {second[-1]}, STUDY):
        assert metrics_of(tmp_path, *names) == ["blur", "edges"]
    assert len(list((tmp_path / "scores/own").glob("*.parquet"))) == 1


def test_two_studies_of_one_name_have_scores_of_their_own(tmp_path, study):
    keep_own(tmp_path, ["1", "Study"], of("edges"))
    keep_own(tmp_path, ["2", "Study"], of("blur"))
    remove_own(tmp_path, ["2", "Study"], "blur")
    keep_own(tmp_path, ["2", "Study"], of("blur", 2.0))
    assert metrics_of(tmp_path, "1", "Study") == metrics_of(tmp_path, "1") == ["edges"]
    assert metrics_of(tmp_path, "2", "Study") == metrics_of(tmp_path, "2") == ["blur"]
    called = replace(study, name="Study")
    assert joined(called, tmp_path, "1").own == ("edges",)
    assert joined(called, tmp_path, "3").own == ()
    assert set(joined(called, tmp_path).own) == {"edges", "blur"}


def test_a_name_that_several_studies_have_is_refused_and_an_id_is_not(tmp_path):
    for study_id in "12":
        keep_own(tmp_path, [study_id, "Study"], of("edges"))
    with pytest.raises(SettingsError, match=r"Several studies are called Study.*: [12], [12]\."):
        keep_own(tmp_path, ["Study"], of("blur"))
    keep_own(tmp_path, ["2"], of("blur"))
    assert metrics_of(tmp_path, "1", "Study") == ["edges"]
    assert metrics_of(tmp_path, "2", "Study") == ["blur", "edges"]


def test_what_was_kept_by_a_name_alone_is_of_the_study_that_is_called_so(tmp_path):
    keep_own(tmp_path, ["Study"], of("edges"))
    assert metrics_of(tmp_path, "1", "Study") == ["edges"]
    keep_own(tmp_path, ["1", "Study"], of("edges", leaks="higher"))
    assert [(one.leaks, one.n) for one in kept_of(tmp_path, ["Study"])] == [("higher", 4)]
    remove_own(tmp_path, ["1", "Study"], "edges")
    assert metrics_of(tmp_path, "Study") == metrics_of(tmp_path, "1") == []


def test_the_newest_of_two_scores_of_one_picture_counts(tmp_path, study):
    keep_own(tmp_path, ["Cats"], of("edges", 1.0))
    keep_own(tmp_path, ["id-1"], of("edges", 2.0, attack="x"))
    found = joined(study, tmp_path, "id-1")
    assert found.scores["value"].tolist() == [2.0] * 4
    assert found.remarks == ()


def test_what_came_with_a_study_stays_beside_ones_own(tmp_path, table, study):
    keep_own(tmp_path, STUDY, read_own(table(rows()), score_columns("edges=sharp:lower")))
    given = study.labels.assign(metric="psnr", value=1.0)
    one = joined(replace(study, scores=given), tmp_path)
    assert one.scores["metric"].value_counts().to_dict() == {"psnr": 4, "edges": 4}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sharp": "x"}, r"line 3, column sharp: 'x' is no number"),
        ({"model": None}, r"line 3: has no model"),
        ({"image_id": "00"}, r"line 3: image 00 of a has a score by edges already"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_kept(table, change, why):
    bad = rows()
    bad[1] = {**bad[1], **change}
    with pytest.raises(DataError, match=f"Nothing of own.csv was kept[^$]*{why}"):
        read_own(table(bad), score_columns("edges=sharp:lower"))


def test_many_bad_rows_are_counted(table):
    path = table([{"model": "a", "image_id": str(i), "sharp": "x"} for i in range(20)])
    with pytest.raises(DataError, match="and 12 more") as error:
        read_own(path, score_columns("e=sharp:lower"))
    assert len(str(error.value).splitlines()) == 10


def test_an_empty_cell_is_no_score_and_infinity_is_one(table):
    some = rows()
    some[0]["sharp"], some[1]["sharp"] = None, np.inf
    assert read_own(table(some), score_columns("edges=sharp:lower"))["value"].tolist() == [
        np.inf,
        2,
        12,
    ]
    with pytest.raises(DataError, match="no score in it"):
        read_own(
            table([{**row, "sharp": None} for row in some]), score_columns("edges=sharp:lower")
        )


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ("psnr=sharp:higher", "psnr is computed here already"),
        ("human=sharp:higher", "No metric can be called human"),
        ("people=sharp:higher", "No metric can be called people"),
        ("edges=sharp", "edges"),
        ("edges=sharp:up", "should be column or column/number"),
        ("semsim:x=sharp:lower", "semsim:x is computed here already"),
        ("", "Name a column"),
    ],
)
def test_a_metric_needs_a_name_and_a_direction(table, scores, why):
    with pytest.raises((SettingsError, LookupError), match=why):
        read_own(table(rows()), score_columns(scores))


def test_a_column_that_is_not_there_is_named(table):
    with pytest.raises(DataError, match=r"lacks the columns blur.*It has: model, image_id, sharp"):
        read_own(table(rows()), score_columns("edges=blur:lower"))


def test_scores_of_other_pictures_are_left_out_and_counted(tmp_path, table, study):
    more = [*rows(), {"model": "a", "image_id": "99", "sharp": 1}]
    keep_own(tmp_path, STUDY, read_own(table(more), score_columns("edges=sharp:lower")))
    one = joined(study, tmp_path)
    assert len(one.scores) == 4
    assert one.remarks == ("Left out of edges: 1 score of pictures that this study does not have.",)


def test_where_a_model_is_several_the_table_must_say_which(table, study):
    twice = pd.concat([study.labels, study.labels.assign(attack="y")])
    with pytest.raises(DataError, match="need the columns dataset and attack"):
        fitted(read_own(table(rows()), score_columns("edges=sharp:lower")), twice)
    found, _ = fitted(read_own(table(rows(attack="y")), score_columns("edges=sharp:lower")), twice)
    assert set(found["attack"]) == {"y"}
    assert len(found) == 4


def test_each_score_is_placed_by_the_keys_that_it_says(tmp_path, study):
    """The model a is two of the study, bb is one."""
    a = study.labels[study.labels["model"] == "a"]
    twice = replace(study, labels=pd.concat([study.labels, a.assign(attack="y")]))
    bb = of("blur")
    for table in (of("edges", attack="y"), bb[bb["model"] == "bb"]):
        fitted(table, twice.listed)  # the page takes each
        keep_own(tmp_path, STUDY, table)
    one = joined(twice, tmp_path)
    assert set(one.own) == {"edges", "blur"}
    placed = one.scores.groupby(["metric", "model"])["attack"].agg(list).to_dict()
    assert placed == {("edges", "a"): ["y"] * 2, ("blur", "bb"): ["x"] * 2}
    assert one.remarks == (
        "Left out of edges: 2 scores of pictures that this study does not have.",
    )
    partly = of("edges").assign(attack=["y", "y", None, None])
    assert fitted(partly, twice.listed)[0]["attack"].tolist() == ["y", "y", "x", "x"]


@pytest.mark.parametrize("name", ["human", "label", "backbone", "n_images", "people"])
def test_no_metric_is_called_as_a_column_of_the_table_of_models(table, name):
    with pytest.raises(SettingsError, match=f"No metric can be called {name}"):
        read_own(table(rows()), {name: ScoreColumn(name="sharp", leaks="lower")})


def test_columns_of_any_name_can_be_chosen(table):
    path = table([{"model": "a", "image_id": "0", "a=b:c,d": 1}])
    found = read_own(path, {"edges": ScoreColumn(name="a=b:c,d", leaks="lower")})
    assert found["value"].tolist() == [1]
    for metric, leaks in (("edges", "up"), ("", "lower"), ("a:b", "lower"), ("x" * 61, "lower")):
        with pytest.raises(SettingsError):
            read_own(path, {metric: ScoreColumn(name="a=b:c,d", leaks=leaks)})


@pytest.mark.parametrize("content", [b"PAR1 broken", b"", b"PAR1" * 9, "other"])
def test_a_broken_file_among_the_scores_is_left_out_by_name(tmp_path, content):
    keep_own(tmp_path, STUDY, of("mine"))
    bad = tmp_path / "scores/own/bad.parquet"
    if content == "other":
        pd.DataFrame({"a": [1]}).to_parquet(bad)
    else:
        bad.write_bytes(content)
    assert metrics_of(tmp_path, *STUDY) == ["mine"]
    labels = pd.DataFrame(rows(dataset="d", attack="a"))
    votes = labels.assign(annotator="x")
    study = joined(StudyTables(votes=votes, labels=labels, name="Cats"), tmp_path, "id-1")
    assert any("bad.parquet" in one and "Left out" in one for one in study.remarks)
    keep_own(tmp_path, STUDY, of("further"))
    assert metrics_of(tmp_path, *STUDY) == ["further", "mine"]
