"""Names of trainings and what their folders say."""

import pytest

from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.storage.atomic import write_json
from semsim.learning.orders import checkpoint_path, read_facts


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "<b>", "x" * 81])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="cannot name a checkpoint"):
        checkpoint_path(tmp_path, name)


def test_a_job_of_another_kind_has_no_facts(tmp_path):
    job = jobs.create(tmp_path, kind="compare", title="c")
    with pytest.raises(JobError, match=r"training\.json"):
        read_facts(job)
    write_json(job.folder / "training.json", {"colour": "red"})
    with pytest.raises(JobError, match="colour"):
        read_facts(job)
