"""What runs is told beside every page, with the page that shows it."""

import pytest

from annotation.web.frame import STUDY
from semsim.base.jobs import folders as jobs
from semsim.cli.job import KINDS
from semsim.ui.jobpanel import running
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
