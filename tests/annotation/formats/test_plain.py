"""Votes and labels come back from every kind of file as they were."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_tables import read_typed
from study_factory import CLASSES, write_set

from annotation.errors import StudyError
from annotation.formats.plain import read_table, write_csv, write_jsonl, write_parquet
from annotation.spec import StudySpec, Task
from annotation.study.create import create_study
from annotation.study.exports import read_study
from semsim.base.columns import VOTE_COLUMNS

WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}
NASTY = ("=1+1", "'=x", "-7", "NA", 'a "quoted", one', "Größe 猫", "1.0")


def types_of(table):
    return {name: str(kind) for name, kind in table.dtypes.items()}


def back(table, ending, folder):
    path = folder / f"table{ending}"
    WRITERS[ending](table, path)
    return read_typed(path, types_of(table))


@pytest.mark.parametrize("ending", WRITERS)
def test_votes_and_labels_survive(data, tmp_path, ending):
    assert types_of(data.votes) == {**VOTE_COLUMNS}
    for table in (data.votes, data.labels):
        pd.testing.assert_frame_equal(back(table, ending, tmp_path), table)


@pytest.mark.parametrize("ending", WRITERS)
def test_so_do_tables_without_votes(store, make_study, images, tmp_path, ending):
    empty = read_study(store, make_study().id, images)
    for table in (empty.votes, empty.labels):
        pd.testing.assert_frame_equal(back(table, ending, tmp_path), table)


@pytest.mark.parametrize("ending", WRITERS)
def test_names_that_other_programs_would_interpret_survive(store, images, answer, tmp_path, ending):
    folder = write_set(tmp_path / "set", labels=NASTY, classes=(*CLASSES, *NASTY), model="=model")
    spec = StudySpec(name="@study", task=Task.RECOGNITION, votes_per_item=2)
    study = create_study(store, spec, [folder], images)
    data = answer(study, lambda stimulus: stimulus["class_name"], names=("=Anna", "Ben"))
    assert set(data.votes["answer"]) == set(NASTY)
    for table in (data.votes, data.labels):
        pd.testing.assert_frame_equal(back(table, ending, tmp_path), table)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
floats = st.floats(allow_nan=False, allow_infinity=False)
times = st.datetimes(min_value=pd.Timestamp(1700, 1, 1), max_value=pd.Timestamp(2200, 1, 1))
ROWS = st.lists(
    st.tuples(st.none() | texts, st.none() | floats, st.none() | st.booleans(), st.none() | times)
)


@pytest.mark.parametrize("ending", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_any_table_survives(rows, ending, tmp_path):
    table = pd.DataFrame(rows, columns=["text", "number", "truth", "time"]).astype(
        {"text": "str", "number": "float64", "truth": "boolean"}
    )
    table["time"] = pd.to_datetime(table["time"], utc=True).astype("datetime64[us, UTC]")
    pd.testing.assert_frame_equal(back(table, ending, tmp_path), table)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "is missing"),
        ("a.ods", "", r"should end in .csv, .tsv, .xlsx, .jsonl, .parquet; got '.ods'"),
        ("a.parquet", "text", "cannot be read"),
        ("a.csv", "", "cannot be read"),
        ("a.csv", "other\n1\n", r"lacks the columns n\. It has: other"),
        ("a.csv", "n\n1,2\n", "more cells than its header"),
        ("a.csv", "n,m\n1,2\n1,2,3\n", "cannot be read"),
        ("a.jsonl", '{"n": 1}\n{"n": \n', "cannot be read"),
        ("a.jsonl", '{"n": 1}\n[2]\n', "line 2 is not an object"),
        ("a.jsonl", "{}", r"lacks the columns n\. It has: none"),
    ],
)
def test_what_cannot_be_read_is_explained(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(StudyError, match=message):
        read_table(tmp_path / name, ["n"])


def test_json_numbers_become_text_where_text_is_meant(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": 7}\n\n{"t": "b"}\n{"u": 1}\n')
    table = read_table(tmp_path / "a.jsonl", ["t"])
    assert table["t"].tolist()[:2] == ["7", "b"]
    assert table["t"].isna().tolist() == [False, False, True]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfn\n1\n")
    assert read_table(tmp_path / "a.csv", ["n"])["n"].tolist() == ["1"]
