"""What runs is told beside every page, with the page that shows it."""

import pytest

from annotation.web.frame import STUDY
from semsim.base.jobs import folders as jobs
from semsim.cli.job import KINDS
from semsim.ui.jobpanel import changed, running
from semsim.ui.pages import links

# No page starts these.
ON_THE_COMMAND_LINE = {"judge", "learn-leave-out"}
PAGES = {address for group in {**STUDY, **links()}.values() for _, address in group}


@pytest.mark.parametrize("kind", sorted({*KINDS} - ON_THE_COMMAND_LINE))
def test_what_a_page_has_started_leads_back_to_it(kind, tmp_path):
    jobs.create(tmp_path, kind=kind, title=f"A job of {kind}")
    (told,) = running(tmp_path)
    assert (told.words, told.share) == (f"A job of {kind}", 0)
    assert told.address.removeprefix("/studio/").partition("?")[0] in PAGES


def test_what_only_a_command_has_started_leads_home(tmp_path):
    for kind in ON_THE_COMMAND_LINE:
        jobs.create(tmp_path, kind=kind, title=kind)
    assert {told.address for told in running(tmp_path)} == {"/studio/"}


def test_a_job_or_a_drop_that_comes_or_goes_is_a_change_and_progress_is_none(tmp_path):
    seen = [changed(tmp_path)]
    job = jobs.create(tmp_path / "jobs", kind="learn", title="A training")
    seen.append(changed(tmp_path))
    (job.folder / "progress.jsonl").touch()
    begun = changed(tmp_path)
    with open(job.folder / "progress.jsonl", "a") as file:
        file.write("{}\n")
    assert changed(tmp_path) == begun
    (job.folder / "error.txt").write_text("It failed.")
    seen.append(changed(tmp_path))
    (tmp_path / "runs/own").mkdir(parents=True)
    seen.append(changed(tmp_path))
    (tmp_path / "runs/own").rmdir()
    seen.append(changed(tmp_path))
    assert len({*seen}) == len(seen)
    assert seen[0] == 0
