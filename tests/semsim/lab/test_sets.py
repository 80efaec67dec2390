"""The sets of a run on a page: what is done, what came back, what is above the baseline."""

import os
from pathlib import Path

from made_splits import written

from semsim.base.jobs.folders import JobState
from semsim.base.sets.reader import read_set
from semsim.base.sets.set_format import RUN
from semsim.lab import sets
from semsim.sets.no_attack_baseline import NOTHING, Shown


def steps_of(*folders, state=JobState.DONE):
    return sets.in_turn([(folder.name, folder) for folder in folders], state)


def test_images_stand_below_their_originals(tmp_path):
    folders = [written(tmp_path), written(tmp_path, "none")]
    html = sets.line_up_html(steps_of(*folders), [("SSIM 0.10",), ("SSIM 0.20",)])
    assert html.count("<img") == 3 * 2
    assert html.index("Originals") < html.index("single") < html.index("SSIM 0.10")
    assert html.index("none") < html.index("SSIM 0.20")
    for folder in folders:  # as the page Pictures serves them
        assert f"/image/{sets.key_of(folder)}/1/reconstruction.png" in html


def test_a_set_that_was_deleted_is_said_to_be_gone(tmp_path):
    there, gone = written(tmp_path), tmp_path / "nothing"
    html = sets.sets_html(steps_of(there, gone))
    assert html.count("<td>not there</td>") == 1
    assert sets.line_up_html(steps_of(gone)) == ""
    waiting = steps_of(there, gone, tmp_path / "later", state=JobState.RUNNING)
    assert [one.state for one in waiting] == [sets.DONE, sets.RUNNING, sets.WAITING]
    assert steps_of(gone, state=JobState.STOPPED)[0].state == sets.WAITING


def test_the_strip_shows_the_newest_sets_first_and_all_of_them(tmp_path):
    folders = [written(tmp_path, f"way-{n}") for n in range(3)]
    for n, folder in enumerate(folders):
        os.utime(folder / RUN, (n, n))
    html = sets.strip_html(steps_of(*folders))
    assert html.count("<figure") == 3 * 2
    assert html.index("way-2") < html.index("way-1") < html.index("way-0")


def test_what_is_clearer_than_a_guess_is_counted_set_by_set(tmp_path):
    folder = written(tmp_path)
    assert sets.shown_in(folder) == (NOTHING, NOTHING)  # plain
    rows = read_set(folder).pairs
    Path(rows["reconstruction"][1]).write_bytes(Path(rows["original"][1]).read_bytes())
    os.utime(folder / RUN, (1, 1))
    assert sets.shown_in(folder) == (NOTHING, Shown(True, True))
    html = sets.verdict_html(["Answer.", "More."], steps_of(folder), "How.")
    assert '<p class="st-lead">Answer.</p><p>More.</p>' in html
    assert "1 of 2</span>" in html
