import os
from pathlib import Path

import pytest
from made_splits import COST, GUESSES, ROW, row, written

from semsim.base.jobs.folders import JobState
from semsim.base.sets.reader import read_set
from semsim.base.sets.set_format import RUN
from semsim.sets.no_attack_baseline import NOTHING, Count, Shown
from semsim.sets.recognition import STATISTIC
from semsim.systems.split.summary import answer_words, verdict_words
from semsim.ui import lab_sets, pictures_data, split


def test_scores_are_told_with_their_spread_and_words_are_escaped():
    html = split.scores_html([{**ROW, "shadow_low": 0.33, "shadow_high": 0.824}])
    assert "0.500 ± 0.100" in html
    assert "33–82 %" in html
    assert "95.0% (-2.0 points)" in html
    assert "needs the originals" in html
    assert "<b>" not in html
    assert "invalid" not in html


def test_an_invalid_system_is_marked_and_explained():
    bare = {**ROW, "valid": False, "attack": "", "choice": "", "ssim_mean": None, "n": 0}
    html = split.scores_html([{**bare, "psnr_mean": None, "recognised": None}])
    assert "not attacked" in html
    assert "not trained enough" in html


def steps_of(*folders, state=JobState.DONE):
    return lab_sets.in_turn([(folder.name, folder) for folder in folders], state)


def test_images_stand_below_their_originals(tmp_path):
    folders = [written(tmp_path), written(tmp_path, "none")]
    html = lab_sets.line_up_html(steps_of(*folders), [("SSIM 0.10",), ("SSIM 0.20",)])
    assert html.count("<img") == 3 * 2
    assert html.index("Originals") < html.index("single") < html.index("SSIM 0.10")
    assert html.index("none") < html.index("SSIM 0.20")
    for folder in folders:  # as the page Pictures serves them
        assert f"/image/{pictures_data.key_of(folder)}/1/reconstruction.png" in html


def test_a_set_that_was_deleted_is_said_to_be_gone(tmp_path):
    there, gone = written(tmp_path), tmp_path / "nothing"
    html = lab_sets.sets_html(steps_of(there, gone))
    assert html.count("<td>not there</td>") == 1
    assert lab_sets.line_up_html(steps_of(gone)) == ""
    waiting = steps_of(there, gone, tmp_path / "later", state=JobState.RUNNING)
    assert [one.state for one in waiting] == [lab_sets.DONE, lab_sets.RUNNING, lab_sets.WAITING]
    assert steps_of(gone, state=JobState.STOPPED)[0].state == lab_sets.WAITING


def test_the_strip_shows_the_newest_sets_first_and_all_of_them(tmp_path):
    folders = [written(tmp_path, f"way-{n}") for n in range(3)]
    for n, folder in enumerate(folders):
        os.utime(folder / RUN, (n, n))
    html = lab_sets.strip_html(steps_of(*folders))
    assert html.count("<figure") == 3 * 2
    assert html.index("way-2") < html.index("way-1") < html.index("way-0")


def test_what_is_clearer_than_a_guess_is_counted_set_by_set(tmp_path):
    folder = written(tmp_path)
    assert lab_sets.shown_in(folder) == (NOTHING, NOTHING)  # plain
    rows = read_set(folder).pairs
    Path(rows["reconstruction"][1]).write_bytes(Path(rows["original"][1]).read_bytes())
    os.utime(folder / RUN, (1, 1))
    assert lab_sets.shown_in(folder) == (NOTHING, Shown(True, True))
    html = lab_sets.verdict_html(["Answer.", "More."], steps_of(folder), "How.")
    assert '<p class="st-lead">Answer.</p><p>More.</p>' in html
    assert "1 of 2</span>" in html


def test_costs_are_told():
    html = split.costs_html([COST])
    assert "1.00 MFLOP, 1.2 ms" in html
    assert "4,096 bytes" in html


def test_a_chosen_metric_is_a_column_of_its_own():
    html = split.scores_html([{**ROW, "semsim:mine_mean": 0.75, "semsim:mine_sd": 0.25}])
    assert "semsim:mine</th>" in html
    assert "0.750 ± 0.250" in html


def test_the_verdict_says_from_what_the_server_still_gets_pictures():
    rows = [
        row("none", 9),
        row("single", 6),
        row("ensembler", 1, 0.2),
        row("dr-single", 0, 0.1, valid=False),
    ]
    words = verdict_words(rows)
    assert words.startswith(
        f"{STATISTIC}without a defence it is {Count(9, 0, 10).words} (SSIM 0.40, PSNR 12.0 dB)."
    )
    assert "clearer on most of them under ensembler (1 of 10; SSIM 0.20, PSNR 12.0 dB)." in words
    assert "Most are still clearer under single (6 of 10;" in words
    assert "dr-single cannot be judged" in words
    assert "needs 3 runs" not in words
    assert "needs 3 runs" in verdict_words([row("none", 9, n=2)])


@pytest.mark.parametrize(("right", "warned"), [(0.1, True), (0.27, True), (0.29, False)])
def test_a_network_that_learned_little_is_said_before_the_answer(right, warned):
    """Kappa of 0.2 against a guesser among ten."""
    result = {
        "summary": [row("none", 9) | {"accuracy": right}, row("single", 9) | {"accuracy": 0.0}],
        "baselines": GUESSES,
    }
    words = " ".join(answer_words(result))
    assert words.endswith(verdict_words(result["summary"]))
    assert words.startswith("Not trained enough to be judged") == warned
    assert (f"the undefended network has {right:.0%} right (chance 10%)" in words) == warned


def test_what_a_classifier_recognises_leads_with_its_controls():
    rows = [row("none", 9) | {"recognised": 0.6}, row("single", 6) | {"recognised": 0.25}]
    lead, rest = answer_words({"summary": rows, "baselines": GUESSES})
    assert lead == (
        "A reference classifier recognises 60% of pictures without a defence and 25% of pictures "
        "under single (controls: 10% of grey pictures, 95% of originals)."
    )
    assert rest == verdict_words(rows)


@pytest.mark.parametrize("clearer", [0, 5])
def test_an_attack_that_fails_on_the_undefended_system_says_nothing_of_a_defence(clearer):
    """However high its SSIM is: it must beat the guesses on most pictures."""
    words = verdict_words([row("none", clearer, 0.6, 20.0), row("single", 0)])
    assert words.startswith(f"{STATISTIC}the attacks failed on the undefended system")
    assert Count(clearer, 0, 10).words in words
    assert words.endswith("Nothing can be said of a defence.")
    assert "nothing can be said" in verdict_words([row("single", 9)])


def test_a_defence_counts_by_the_strongest_attack_a_server_can_make():
    rows = [row("none", 9), row("single", 0, 0.5), row("single", 8, attack="adaptive-aligned")]
    assert "still clearer under single" in verdict_words(rows)
    for unable in ({"attack": "oracle"}, {"attack": "one-body", "choice": "best SSIM"}):
        rows[2] = row("single", 8, **unable)
        assert "clearer on most of them under single" in verdict_words(rows)


def test_small_pictures_are_judged_without_ssim():
    rows = [row("none", 9, None, 20.0), row("single", 1, None, 11.0)]
    assert "under single (1 of 10; PSNR 11.0 dB)" in verdict_words(rows)
