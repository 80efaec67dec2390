import io

import pandas as pd
import pytest

from annotation.formats.plain import write_csv
from semsim.base.columns import SCORE_COLUMNS, VOTE_COLUMNS, ScoreColumn
from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.importers import plan_import
from semsim.importers.table import Table, facts_of, scores_of

WIDE = """model,id,truth,p0,p1,p2,ok,bad,psnr
m1,1,0,0,-1,0,1,1,9.5
m1,2,1,0,-1,,0,0,8
m2,1,0,-1,-1,-1,0,1,7
m2,2,1,1,1,1,1,0,
"""
SETTINGS = {
    "image_id": "id",
    "class_name": "truth",
    "annotators": "p0, p1, p2",
    "none": "-1",
    "given": "released=ok",
    "scores": "psnr=psnr/2",
    "flags": "bad",
}
LONG = """model,image_id,class_name,annotator,answer
m1,1,cat,A,cat
m1,1,cat,B,none
m2,1,cat,A,dog
"""


PAPER = """model,cifar100_test_index0,class_id,ann0,ann1,ann2,ann3,ann4,released_recognizable,\
released_label_inferred,psnr,mse_uint8
m,1,0,0,0,0,-1,-1,1,0,9,100
m,2,1,1,-1,-1,-1,-1,1,1,8,200
"""


def columns(text):
    """Those that a setting names, as `a,b`, `name=a,…` or `name=a/number,…`."""
    return [part.rpartition("=")[2].partition("/")[0] for part in text.split(",") if part]


def example(importer, folder):
    """Two images of a model, seen by one of the annotators, with every column that is asked for."""
    others = columns(",".join((importer.given, importer.scores, importer.flags)))
    people = columns(importer.annotators) or [importer.answer]
    rows = [
        dict.fromkeys(others, 1)
        | {importer.model: "m", importer.image_id: number, importer.class_name: number}
        | dict.fromkeys(people, importer.none)
        | {people[0]: number}
        | ({} if importer.annotators else {importer.annotator: "A"})
        for number in (1, 2)
    ]
    path = folder.with_suffix(".csv")
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.fixture
def read(tmp_path):
    def from_text(text, **settings):
        path = tmp_path / "votes.csv"
        path.write_text(text)
        return Table(**settings)(path, "paper")

    return from_text


def test_wide_rows_become_votes_labels_and_scores(read):
    found = read(WIDE, **SETTINGS)
    assert found.unread == ()
    votes = found.tables.votes
    said = votes.set_index(["model", "image_id", "annotator"])
    assert said.loc[("m1", "1", "p1"), "answer"] == "none"
    assert said["recognised"].sum() == 5
    assert len(votes) == 11
    assert found.notes == (
        "Votes per image taken as 3, the most one has.",
        "1 empty cell is no vote.",
    )
    labels = found.tables.labels
    assert labels["human:released"].tolist() == [True, False, False, True]
    assert labels["n_votes"].tolist() == [3, 2, 3, 3]
    assert labels["recognisable"].tolist() == [True, False, False, True]
    assert found.tables.scores["value"].tolist() == [4.75, 4, 3.5]
    assert found.counts["bad"] == 2


def test_the_paper_s_file_has_both_labels(tmp_path):
    (tmp_path / "paper.csv").write_text(PAPER)
    tables = plan_import("semsim-cifar100", tmp_path / "paper.csv", "n").found.tables
    assert tables.labels["human:released"].tolist() == [True, True]
    assert tables.labels["n_recognised"].tolist() == [3, 1]
    assert tables.headline == "released"
    mse = tables.scores.loc[tables.scores["metric"] == "mse", "value"]
    assert mse.tolist() == pytest.approx([100 / 65025, 200 / 65025])


SHARES = """model,image_id,class_name,people,people_error,psnr
clutter_light,1,cat,0.9,0.01,20
clutter_light,2,dog,0.9,0.01,22
blur,1,cat,0.2,0.04,9
blur,2,dog,0.2,0.04,8
"""


NAMED = {"given": "people=people", "errors": "people=people_error"}


@pytest.mark.parametrize("settings", [{}, NAMED])
def test_shares_of_people_need_no_votes(read, settings):
    found = read(SHARES, **settings, scores="psnr=psnr")
    assert found.unread == ()
    assert found.tables.headline == "people"
    assert len(found.tables.votes) == 0
    labels = found.tables.labels.set_index(["model", "image_id"])
    assert labels["human:people"].tolist() == [0.2, 0.2, 0.9, 0.9]
    assert labels["human_error:people"].tolist() == [0.04, 0.04, 0.01, 0.01]
    assert labels["class_name"].tolist() == ["cat", "dog", "cat", "dog"]
    assert (found.counts["models"], found.counts["annotators"], found.counts["votes"]) == (2, 0, 0)
    assert any("no ceiling" in note for note in found.notes)
    assert found.tables.scores["value"].tolist() == [20, 22, 9, 8]


def test_shares_have_the_class_names_of_a_list(read, tmp_path, reasons):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    numbered = SHARES.replace("cat", "0").replace("dog", "1").replace("blur,2,1", "blur,2,7")
    found = read(numbered, classes=tmp_path / "classes.txt")
    assert found.tables.labels["class_name"].tolist() == ["cat", "", "cat", "dog"]
    assert reasons(found) == {"votes.csv line 5": "class_name 7 is not in the list of classes"}


def test_a_share_that_is_none_is_named(read, reasons):
    found = read(SHARES.replace("0.2,0.04,9", "1.2,0.04,9"))
    assert reasons(found) == {"people of image 1 of blur": "cannot be read: 1.2"}


def test_errors_belong_to_a_given_label(read):
    with pytest.raises(SettingsError, match="no given label is called 'crowd'"):
        read(SHARES, given="people=people", errors="crowd=people_error")


def test_a_table_names_the_network_of_its_models(read):
    text = SHARES.replace("psnr\n", "architecture\n", 1).replace(",20", ",resnet")
    labels = read(text).tables.labels.set_index(["model", "image_id"])
    assert labels["architecture"].dropna().to_dict() == {
        ("clutter_light", "1"): "resnet",
        ("clutter_light", "2"): "resnet",
        ("blur", "1"): "9",
        ("blur", "2"): "9",
    }


def test_long_rows_become_votes(read):
    found = read(LONG, dataset="pets", attack="dlg")
    assert found.unread == ()
    votes = found.tables.votes
    assert votes["recognised"].tolist() == [True, False, False]
    assert set(votes["dataset"]) == {"pets"}
    assert set(votes["attack"]) == {"dlg"}
    assert found.tables.scores is None
    assert found.counts == {
        "models": 2,
        "originals": 1,
        "reconstructions": 2,
        "annotators": 2,
        "votes": 3,
    }


def test_long_rows_may_say_recognised_without_an_answer(read):
    found = read("model,image_id,annotator,seen\nm,1,A,1\nm,1,B,0\n", recognised="seen")
    assert found.tables.votes["recognised"].tolist() == [True, False]


def test_classes_get_their_names(read, tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    found = read(WIDE, **SETTINGS, classes=tmp_path / "classes.txt")
    assert set(found.tables.votes["class_name"]) == {"cat", "dog"}
    assert set(found.tables.votes["answer"]) == {"cat", "dog", "none"}


def test_rows_that_cannot_be_read_are_named(read, reasons):
    text = LONG + "m1,2,dog,A\nm1,,dog,A,dog\nm1,3,dog,,dog\nm1,4,dog,A,\n"
    assert reasons(read(text)) == {
        "votes.csv line 5": "has 4 cells, the header has 5",
        "votes.csv line 6": "has no image_id",
        "votes.csv line 7": "has no annotator",
        "votes.csv line 8": "does not say if it was recognised: "
        "no answer, or no true class to compare it with",
    }


def test_whole_numbers_that_a_gap_made_floats_are_read_as_numbers(read, tmp_path, reasons):
    numbers = dict.fromkeys(("truth", "p0", "p1", "p2", "bad"), float)
    floats = pd.read_csv(io.StringIO(WIDE)).astype(numbers).to_csv(index=False)
    assert "-1.0" in floats
    plain, same = read(WIDE, **SETTINGS), read(floats, **SETTINGS)
    assert same.counts == plain.counts
    pd.testing.assert_frame_equal(same.tables.votes, plain.tables.votes)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    listed = read(floats, **SETTINGS, classes=tmp_path / "names.txt")
    assert listed.tables.votes["recognised"].sum() == 5
    long = "model,image_id,annotator,recognised,votes_per_item\nm,1,A,1.0,2.0\nm,1,B,0.0,2.0\n"
    found = read(long)
    assert found.tables.votes["recognised"].tolist() == [True, False]
    assert reasons(found) == {}


def test_unknown_answers_of_a_wide_table_are_named_with_who_gave_them(read, tmp_path, reasons):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    found = read(WIDE.replace("m1,1,0,0", "m1,1,0,5"), **SETTINGS, classes=tmp_path / "classes.txt")
    assert reasons(found) == {"votes.csv line 2, p0": "answer 5 is not in the list of classes"}


@pytest.mark.parametrize("order", [(4, 3, 2, 1), (2, 1, 4, 3), (3, 1, 4, 2), (1, 4, 2, 3)])
def test_the_order_of_rows_does_not_matter(order, tmp_path):
    path = tmp_path / "votes.csv"
    lines = WIDE.splitlines()
    tables = []
    for rows in (range(1, 5), order):
        path.write_text("\n".join([lines[0], *(lines[row] for row in rows)]))
        tables.append(Table(**SETTINGS)(path, "paper").tables)
    first, second = tables
    pd.testing.assert_frame_equal(first.labels, second.labels)
    assert set(first.votes["vote_id"]) == set(second.votes["vote_id"])
    assert first.scores["value"].sum() == second.scores["value"].sum()


def test_a_column_that_has_a_usual_name_but_another_meaning_is_left_alone(read):
    text = WIDE.replace("model,id", "image_id,id").replace("psnr\n", "model\n")
    settings = {**SETTINGS, "model": "image_id", "scores": "psnr=model"}
    found = read(text, **settings)
    assert set(found.tables.votes["model"]) == {"m1", "m2"}
    assert set(found.tables.labels["image_id"]) == {"1", "2"}
    assert found.tables.scores["value"].tolist() == [9.5, 8, 7]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"model": "net"}, DataError, "lacks the columns net"),
        ({"annotator": "who"}, DataError, "lacks the columns who"),
        ({"answer": "x", "recognised": "y"}, DataError, "lacks the columns x, y"),
        ({"annotators": "p0"}, DataError, "lacks the columns p0"),
        ({"given": "a"}, SettingsError, "name=column"),
        ({"given": "a=b"}, DataError, "lacks the columns b"),
        ({"scores": "psnr=answer/x"}, SettingsError, "column/number"),
        ({"scores": "psnr=answer/0"}, SettingsError, "column/number"),
        ({"votes_per_item": 1}, SettingsError, "1 vote an image is too few: one has 2"),
        ({"scores": "nonsense=answer"}, UnknownNameError, "No metric is called"),
        ({"headline": "nonsense"}, SettingsError, "No human score"),
    ],
)
def test_settings_that_do_not_fit_are_refused(read, settings, error, message):
    with pytest.raises(error, match=message):
        read(LONG, **settings)


@pytest.mark.parametrize(("n", "refused"), [(4, False), (5, True)])
def test_an_odd_number_of_votes_leaves_room_for_an_extra_one(read, n, refused):
    votes = "".join(f"m,1,p{i},a,a\n" for i in range(n))
    text = f"model,image_id,annotator,answer,class_name\n{votes}"
    if refused:
        with pytest.raises(SettingsError, match="3 votes an image are too few: one has 5"):
            read(text, votes_per_item=3)
    else:
        labels = read(text, votes_per_item=3).tables.labels
        assert labels[["n_votes", "votes_per_item"]].to_numpy().tolist() == [[4, 3]]


@pytest.fixture
def export():
    """Votes as a study exports them, undone and surplus ones and a decoy among them."""
    usual = {
        "study": "mine",
        "task": "pair",
        "kind": "reconstruction",
        "dataset": "symbols",
        "attack": "invgrad",
        "class_name": "star",
        "expected": "",
        "reason": "",
        "stratum": 2,
        "rt_ms": 812.5,
        "display": '{"scale": 8}',
        "protocol": 2,
        "client_ts": pd.Timestamp("2026-01-01 10:00:00.123456", tz="UTC"),
        "server_ts": pd.Timestamp("2026-01-01 10:00:01", tz="UTC"),
        "status": "counted",
        "simulated": True,
        "votes_per_item": 3,
        "headline": "mean-response",
        "judges": "0f",
        "lists": "Drawn at random.",
        "voter": "jury",
    }
    rows = [
        ("i1", "m1", "1", "Anna", "same", True, {}),
        ("i1", "m1", "1", "Ben", "different", False, {"rt_ms": None, "stratum": None}),
        ("i2", "m2", "1", "Anna", "different", False, {"status": "superseded"}),
        ("i2", "m2", "1", "Anna", "same", True, {"class_name": ""}),
        ("i3", "m2", "1", "Anna", "same", True, {"kind": "decoy", "class_name": "sun"}),
    ]
    table = [
        {
            **usual,
            "views": "squares smooth",
            "item": item,
            "model": model,
            "image_id": image,
            "annotator": who,
            "answer": said,
            "recognised": recognised,
            "vote_id": f"v{index}",
            **changes,
        }
        for index, (item, model, image, who, said, recognised, changes) in enumerate(rows)
    ]
    return pd.DataFrame(table)[list(VOTE_COLUMNS)].astype(dict(VOTE_COLUMNS))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_our_own_export_comes_back_as_it_went(export, tmp_path, suffix):
    path = tmp_path / f"votes.{suffix}"
    getattr(export, f"to_{suffix}")(path, index=False)
    found = Table()(path, "again")
    assert found.unread == ()
    pd.testing.assert_frame_equal(
        found.tables.votes, export.assign(study="again").astype(VOTE_COLUMNS)
    )
    assert found.tables.simulated
    assert found.tables.headline == "mean-response"
    labels = found.tables.labels
    assert labels["item"].tolist() == ["i1", "i2"]
    assert labels["n_votes"].tolist() == [2, 1]
    assert set(labels["votes_per_item"]) == {3}
    assert found.counts["kept but not counted (decoys, superseded, surplus)"] == 2


def test_what_is_written_for_spreadsheets_comes_back_as_it_went(export, tmp_path):
    signs = {"model": "@", "image_id": "-d", "annotator": "'="}
    risky = export.assign(**{name: sign + export[name] for name, sign in signs.items()})
    write_csv(risky, tmp_path / "votes.csv")
    votes = Table()(tmp_path / "votes.csv", "again").tables.votes
    for name in signs:
        assert votes[name].tolist() == risky[name].tolist()


def test_several_studies_in_one_table_are_refused(export, tmp_path):
    export.loc[0, "study"] = "other"
    export.to_csv(tmp_path / "votes.csv", index=False)
    with pytest.raises(DataError, match="several values of study: mine, other"):
        Table()(tmp_path / "votes.csv", "again")


def test_broken_times_and_truths_are_named(export, tmp_path, reasons):
    table = export.astype(dict.fromkeys(("stratum", "rt_ms", "client_ts", "simulated"), object))
    table.loc[2, "stratum"] = 1.5
    table.loc[0, "rt_ms"], table.loc[1, "client_ts"], table.loc[3, "simulated"] = "x", "y", "z"
    table.to_csv(tmp_path / "votes.csv", index=False)
    assert reasons(Table()(tmp_path / "votes.csv", "again")) == {
        "votes.csv line 2": "rt_ms cannot be read: x",
        "votes.csv line 3": "client_ts cannot be read: y",
        "votes.csv line 4": "stratum cannot be read: 1.5",
        "votes.csv line 5": "simulated cannot be read: z",
    }


ROWS = pd.DataFrame(
    [
        ("a", "1", "9.5", "13005"),
        ("a", "1", "9.5", "13005"),
        ("b", "no", "inf", None),
        ("c", "0.25", "x", "65025"),
        ("d", "2", None, "0"),
        ("e", "0", "1", "1"),
        ("e", "1", "1", "1"),
        ("f", None, "nan", "1"),
    ],
    columns=["image_id", "label", "psnr", "mse"],
    dtype=object,
).assign(dataset="d", attack="x", model="m")


def test_labels_that_came_with_the_data():
    facts, unread = facts_of(ROWS, ROWS, {"given": "label"})
    assert facts["image_id"].tolist() == list("abcdef")
    assert facts["human:given"].tolist() == pytest.approx(
        [1, 0, 0.25, *[float("nan")] * 3], nan_ok=True
    )
    assert [str(one) for one in unread] == [
        "label of image d of m: cannot be read: 2",
        "label of image e of m: 0 is not its only value",
        "label of image e of m: 1 is not its only value",
    ]


def test_scores_are_divided_and_broken_ones_named():
    scores, unread = scores_of(
        ROWS,
        ROWS,
        {"psnr": ScoreColumn(name="psnr"), "mse": ScoreColumn(name="mse", divisor=65025)},
    )
    assert list(scores.columns) == list(SCORE_COLUMNS)
    values = {(row["metric"], row["image_id"]): row["value"] for row in scores.to_dict("records")}
    assert values["psnr", "a"] == 9.5
    assert values["psnr", "b"] == float("inf")
    assert values["mse", "a"] == pytest.approx(0.2)
    assert values["mse", "c"] == 1
    assert len(values) == 3 + 5
    assert [str(one) for one in unread] == [
        "psnr of image c of m: cannot be read: x",
        "psnr of image f of m: cannot be read: nan",
    ]


def test_without_metrics_there_are_no_scores():
    assert scores_of(ROWS, ROWS, {}) == (None, ())


def test_an_empty_column_gives_no_value():
    facts, _ = facts_of(ROWS, ROWS.assign(label=None), {"given": "label"})
    assert facts["human:given"].isna().all()


OWN = """model,image_id,class_name,annotator,answer,mine,other
m1,1,cat,A,cat,0.1,5
m1,2,cat,A,cat,0.2,6
m2,1,cat,A,none,0.8,7
m2,2,cat,A,none,0.9,8
"""


def test_scores_of_ones_own_come_with_their_direction(tmp_path):
    (tmp_path / "own.csv").write_text(OWN)
    found = Table(scores="mine=mine:lower,other=other/2:higher,psnr=other:higher")
    scores = found(tmp_path / "own.csv", "n").tables.scores
    ways = scores[["metric", "leaks"]].drop_duplicates().astype(object).where(pd.notna, None)
    assert ways.to_numpy().tolist() == [["mine", "lower"], ["other", "higher"], ["psnr", None]]
    assert scores.loc[scores["metric"] == "other", "value"].tolist() == [2.5, 3, 3.5, 4]
    for wrong, message in (
        ("psnr=other:lower", "its higher values leak more"),
        ("mine=mine:sideways", "with :higher or :lower behind it"),
    ):
        with pytest.raises(SettingsError, match=message):
            Table(scores=wrong)(tmp_path / "own.csv", "n")
    with pytest.raises(UnknownNameError):
        Table(scores="mine=mine")(tmp_path / "own.csv", "n")
