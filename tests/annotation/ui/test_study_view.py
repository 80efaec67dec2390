"""What the Studies page shows, from values made here."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from made_results import Page
from made_results import shown_study as study

from annotation.domain import AnnotatorRow, StudyProgress, StudyStatus, TargetTest
from annotation.spec import StudySpec, Task
from annotation.ui import study_view
from annotation.web.downloads import DOWNLOADS

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NASTY = "<img src=x onerror=alert(1)>"


def annotator(**changes) -> AnnotatorRow:
    row = AnnotatorRow(
        name="Ada", done=12, median_rt_ms=2345.0, none_rate=0.25, last_seen=NOW, simulated=False
    )
    return replace(row, **changes)


PROGRESS = StudyProgress(n_items=48, coverage=[40, 5, 2, 0, 0, 1], annotators=[annotator()])


def test_a_study_is_chosen_by_id_or_name_else_people_come_before_simulations():
    simulated = study(id="s2", name="Sim", spec=replace(study().spec, simulated=True))
    known = [simulated, study(id="s3", name="New"), study()]
    assert [study_view.current(known, chosen).id for chosen in ("s1", "Symbols", "s2", "Sim")] == [
        *("s1", "s1", "s2", "s2")
    ]
    assert study_view.current(known, "nowhere").id == "s3"
    assert study_view.current(known, "").id == "s3"
    assert study_view.current([], "Symbols") is None


def test_the_head_lists_how_good_each_target_is():
    tests = {"convnet8/none": TargetTest(accuracy=0.02, n_classes=47, at_chance=True)}
    head = study_view.study_head(study(targets=tests))
    assert "1 target model at chance" in head
    assert "<li>convnet8/none: 2% right: at chance (2%)</li>" in head
    assert "<li>resnet20-4/none: not kept</li>" in head


def test_votes_are_counted_from_the_coverage():
    assert study_view.votes_done(PROGRESS) == 5 * 1 + 2 * 2 + 1 * 5
    assert study_view.votes_wanted(PROGRESS) == 48 * 5


def test_a_row_of_the_table_is_a_button_with_status_and_progress():
    html = study_view.studies_table([(study(), PROGRESS)], "s1")
    text = Page(html)
    assert ("button", {"type": "button", "class": "st-pick", "data-study": "s1"}) in text.tags
    assert ("tr", {"aria-current": "true"}) in text.tags
    assert "running" in str(text)
    assert "14 / 240" in str(text)
    assert next(a for _, a in text.tags if a.get("role") == "progressbar")["aria-valuenow"] == "14"


def test_only_the_chosen_study_is_marked():
    html = study_view.studies_table([(study(), PROGRESS)], "another")
    assert "aria-current" not in html


def test_no_study_is_said_in_words():
    assert "No study yet" in study_view.studies_table([], "")


def test_simulated_studies_and_people_are_marked():
    simulated = study(spec=replace(study().spec, simulated=True))
    assert "simulated" in study_view.studies_table([(simulated, PROGRESS)], "")
    assert "simulated" in study_view.study_head(simulated)
    assert "simulated" in study_view.people_table([annotator(simulated=True)], NOW)
    assert "simulated" not in study_view.studies_table([(study(), PROGRESS)], "")


def test_the_head_states_the_settings():
    text = str(Page(study_view.study_head(study(n_failed=2))))
    for words in ("48 items of 2 target models", "5 votes each", "seed 7", "2 failed"):
        assert words in text


def test_decoys_and_candidates_belong_to_one_task_each():
    pair = study(task=Task.PAIR, n_decoys=16)
    assert "16 of them decoys" in study_view.study_head(pair)
    assert "candidates" not in study_view.study_head(pair)
    assert "up to 20 candidates" in study_view.study_head(study())


def test_people_are_shown_with_pace_and_none_rate():
    text = str(Page(study_view.people_table([annotator()], NOW)))
    assert "Ada 12 2.3 s 25% just now" in text


def test_what_is_not_known_is_a_dash():
    row = annotator(median_rt_ms=None, none_rate=None)
    assert "Ada 12 – – just now" in str(Page(study_view.people_table([row], NOW)))


def test_nobody_yet_is_said_in_words():
    assert "Nobody has joined yet" in study_view.people_table([], NOW)


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=1), "2026-03-01 11:00 UTC"),
    ],
)
def test_times_change_at_most_once_a_minute(ago, words):
    assert study_view.when(NOW - ago, NOW) == words


def test_every_text_from_people_is_escaped():
    nasty = study(name=NASTY, dataset=NASTY, token=NASTY)
    html = (
        study_view.studies_table([(nasty, PROGRESS)], "")
        + study_view.study_head(nasty)
        + study_view.people_table([annotator(name=NASTY)], NOW)
        + study_view.problems(NASTY)
        + study_view.problems(f"{NASTY}\n{NASTY}")
        + study_view.downloads(NASTY)
    )
    assert not [tag for tag, _ in Page(html).tags if tag == "img"]


def test_the_bars_are_the_coverage():
    bars = study_view.coverage_figure(PROGRESS).data[0]
    assert list(bars.x) == ["0", "1", "2", "3", "4", "5"]
    assert list(bars.y) == PROGRESS.coverage


def test_there_is_a_link_for_each_download():
    links = [a["href"] for tag, a in Page(study_view.downloads("s1")).tags if tag == "a"]
    assert links == [f"/studio/download/s1/{file}" for file in DOWNLOADS]
    assert "/studio/download/s1/votes.csv" in links


PAPER = study_view.Size(
    spec=StudySpec(name="s", task=Task.PAIR, decoy_rate=0.5),
    n_reconstructions=8400,
    n_decoys=4200,
    n_originals=600,
    n_models=14,
    people=5,
)


def asking(people=5, **settings):
    """The size of the published study with other settings."""
    return replace(PAPER, people=people, spec=replace(PAPER.spec, **settings))


def test_the_preview_counts_items_votes_and_hours():
    text = study_view.preview(PAPER)
    for words in ("8,400 reconstructions", "4,200 decoys", "12,600 items", "63,000 votes"):
        assert words in text
    assert "about 52.5 hours of work in all" in text


def test_the_preview_says_how_many_people_are_needed_and_what_too_few_would_mean():
    text = study_view.preview(PAPER)
    assert "5 annotators needed; 5 are expected" in text
    # 12,600 items of 600 originals; nobody knows yet which has two for each of the 14 models.
    assert "meets the same original about 21 times, at most 28 times" in text
    strict = study_view.preview(asking(max_views=1))
    assert "105 annotators needed, 140 to be sure; 5 are expected. Items will lack votes" in strict
    some = study_view.preview(asking(max_views=1, people=105))
    assert "Items may lack votes" in some
    enough = study_view.preview(asking(max_views=1, people=140))
    assert "140 are expected. Nobody meets an original twice" in enough
    for text, mark in ((strict, "false"), (some, "false"), (enough, "true")):
        assert f'data-enough="{mark}"' in text


def test_the_preview_counts_originals_that_are_items():
    spec = StudySpec(name="s", task=Task.RECOGNITION, label_originals=True, votes_per_item=1)
    one = replace(
        PAPER, spec=spec, n_reconstructions=1, n_decoys=0, n_models=1, n_originals=1, people=1
    )
    text = study_view.preview(one)
    assert "1 reconstruction of 1 target model and 1 original: 2 items. With 1 vote each" in text


def test_an_empty_preview_says_what_to_do():
    assert "Choose at least one" in study_view.preview_nothing()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "1 minute"), (150, "2 minutes"), (5340, "89 minutes"), (5400, "1.5 hours")],
)
def test_durations_are_said_like_people_say_them(seconds, words):
    assert study_view.duration(seconds) == words


def test_problems_are_announced_one_line_each():
    assert study_view.problems("") == ""
    assert study_view.problems("One.").count("<li>") == 0
    assert study_view.problems("One.\nTwo.").count("<li>") == 2
    assert 'role="alert"' in study_view.problems("One.")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "Whoever has this link can"),
        ({"protected": True}, "and the password"),
        ({"status": StudyStatus.PAUSED}, "Paused"),
        ({"status": StudyStatus.CLOSED}, "do not count"),
    ],
)
def test_the_link_says_what_it_does(changes, word):
    assert word in study_view.link_note(study(**changes))


@pytest.mark.parametrize("rows", [0, 1], ids=["no study", "a study"])
def test_the_page_says_what_is_going_on_above_the_studies(rows):
    given = [(study(), PROGRESS)] * rows
    table = study_view.studies_table(given, "", "Being <made>.")
    assert table.startswith('<p class="st-empty" role="status">Being &lt;made&gt;.</p>')
    assert ("<table" in table) == bool(rows)
    assert "Being" not in study_view.studies_table(given, "")


def test_a_list_of_studies_says_once_that_votes_are_simulated():
    assert study_view.choice(study()) == ("Symbols (running, 2026-03-01)", "s1")
    simulated = study(spec=replace(study().spec, simulated=True))
    assert study_view.choice(simulated)[0] == "Symbols (running, simulated, 2026-03-01)"
    told = replace(simulated, name="Made by simulated people")
    assert study_view.choice(told)[0] == "Made by simulated people (running, 2026-03-01)"
