"""The job that fetches a source: it goes on, and what cannot be fetched is an error."""

from dataclasses import replace

import pytest
from made_people import MAKERS

from semsim.base.errors import DataError
from semsim.base.progress import silent
from semsim.base.sets.imports import read_import
from semsim.people import SOURCES, get_job
from semsim.people.get_job import PeopleOrder, brought, do_people, fetched

pytestmark = pytest.mark.usefixtures("unpinned")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """`fetch_all` finds a copy that is here already; how often it was asked."""
    asked = []

    def fetch_all(files, folder, report):
        asked.append([one.name for one in files])
        return MAKERS["recurrent"](folder) if not folder.exists() else folder

    monkeypatch.setattr(get_job, "fetch_all", fetch_all)
    return asked


def test_a_source_becomes_an_import_once(tmp_path, here):
    order = PeopleOrder(name="recurrent", data=tmp_path)
    done = do_people(order, tmp_path / "job", silent)
    assert here == [[one.name for one in SOURCES["recurrent"].files]]
    study = read_import(tmp_path / "imports" / "recurrent")
    assert study.name == SOURCES["recurrent"].title
    assert "original" in study.labels
    assert str(tmp_path / "imports" / "recurrent") in brought(done)
    assert do_people(order, tmp_path / "job", silent) == done
    assert len(here) == 1


def test_a_source_without_files_says_what_to_name(tmp_path):
    bare = replace(SOURCES["recurrent"], files=())
    with pytest.raises(DataError, match="--from FOLDER"):
        fetched(bare, tmp_path)
