"""The tables of a source are the known files, or an error names the one that is not."""

import json
from pathlib import Path

import pytest
from made_people import MAKERS

from semsim.base.errors import DataError
from semsim.base.sets.imports import places_of
from semsim.importers.import_folder import carry_out
from semsim.people import SOURCES
from semsim.weights import sha256_of

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
KNOWN = [name for name, one in SOURCES.items() if any(one.tables.values())]


@pytest.mark.parametrize("name", KNOWN)
def test_another_table_than_the_known_one_is_refused(name, tmp_path):
    folder = MAKERS[name](tmp_path / "copy")
    (wrong,) = [one for one in SOURCES[name].marks[0] if (folder / one).is_file()]
    with pytest.raises(DataError, match="is not the known file") as told:
        SOURCES[name].plan(folder)
    assert str(folder / wrong) in str(told.value)
    assert SOURCES[name].tables[wrong] in str(told.value)


def test_an_import_records_the_checksums_of_its_tables(tmp_path):
    folder = MAKERS["things-mooney"](tmp_path / "copy")
    places = places_of("things-mooney", tmp_path / "data")
    carry_out(SOURCES["things-mooney"].plan(folder), places)
    record = json.loads((places.tables / "import.json").read_text(encoding="utf-8"))
    table = "things_mooney.csv"
    assert record["settings"]["sha256"] == {table: sha256_of(folder / table)}


def test_every_source_names_its_tables_and_what_is_fetched_its_size():
    for one in SOURCES.values():
        assert one.tables
        assert bool(one.megabytes) == bool(one.files)


@pytest.mark.skipif(not (SHARED / "people").is_dir(), reason="needs copies of the sources")
@pytest.mark.parametrize("name", KNOWN)
def test_the_public_copies_have_the_known_tables(name):
    one = SOURCES[name]
    place = one.found_in(SHARED / "people")
    found = one.checked(place)
    assert found == {table: digest for table, digest in one.tables.items() if digest}
