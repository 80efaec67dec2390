"""What the Studies page shows, from values made here."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from made_results import Page
from made_results import shown_study as study

from annotation.domain import AnnotatorRow, ProtocolVersion, StudyProgress, StudyStatus
from annotation.spec import StudySpec, Task
from annotation.ui import study_view

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NASTY = "<img src=x onerror=alert(1)>"


def annotator(**changes) -> AnnotatorRow:
    row = AnnotatorRow(
        name="Ada", done=12, median_rt_ms=2345.0, none_rate=0.25, last_seen=NOW, simulated=False
    )
    return replace(row, **changes)


PROGRESS = StudyProgress(n_items=48, coverage=[40, 5, 2, 0, 0, 1], annotators=[annotator()])


def test_votes_are_counted_from_the_coverage():
    assert PROGRESS.votes_done == 5 * 1 + 2 * 2 + 1 * 5
    assert PROGRESS.votes_wanted == 48 * 5


def test_simulated_people_are_marked():
    assert "simulated" in study_view.people_table([annotator(simulated=True)], NOW)
    assert "simulated" not in study_view.people_table([annotator()], NOW)


def test_the_facts_state_the_settings():
    text = " · ".join(study_view.facts(study(n_failed=2)))
    for words in ("48 items of 2 target models", "5 votes each", "seed 7", "2 failed"):
        assert words in text


def test_decoys_and_candidates_belong_to_one_task_each():
    pair = study(task=Task.PAIR, n_decoys=16)
    assert "16 of them decoys" in study_view.facts(pair)
    single = study_view.facts(study(task=Task.PAIR, n_decoys=1, n_originals=1, n_failed=1))
    assert {"1 of them a decoy", "1 of them an original"} < set(single)
    assert "1 failed reconstruction left out" in single
    assert "candidates" not in " ".join(study_view.facts(pair))
    assert "up to 20 candidates, balanced" in study_view.facts(study())


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
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(hours=24), "2026-02-28"),
    ],
)
def test_times_change_at_most_once_a_minute(ago, words):
    assert study_view.when(NOW - ago, NOW) == words


def test_every_text_from_people_is_escaped():
    nasty = study(name=NASTY, dataset=NASTY, token=NASTY)
    html = study_view.people_table([annotator(name=NASTY)], NOW) + study_view.versions_table(
        [], [nasty.name]
    )
    assert not [tag for tag, _ in Page(html).tags if tag == "img"]


FRAMED = replace(study().spec, framed_by="https://a.org https://b.org")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "Everybody with the link can"),
        ({"protected": True}, "and the password"),
        ({"status": StudyStatus.PAUSED}, "Paused"),
        ({"status": StudyStatus.CLOSED}, "do not count"),
        ({}, "No page of another site may show it."),
        ({"spec": FRAMED}, "Pages of https://a.org https://b.org may"),
    ],
)
def test_the_link_says_what_it_does(changes, word):
    assert word in study_view.link_note(study(**changes))


FIRST = ProtocolVersion(
    version=1,
    sha256="a" * 64,
    spec=StudySpec(name="S", task=Task.RECOGNITION, consent="x"),
    why="",
    by="",
    at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    changed=(),
)


def test_the_first_version_is_as_made():
    text = study_view.versions_table([FIRST])
    assert "as made" in text
    assert "2026-01-02 03:04 UTC" in text
    assert "a" * 12 in text


def test_a_change_says_what_why_and_by_whom_and_is_escaped():
    spec = replace(FIRST.spec, lease_seconds=900, check=True, consent="")
    second = replace(
        FIRST,
        version=2,
        spec=spec,
        why="<b>slow</b> people",
        by="Ada",
        changed=("lease_seconds", "check", "consent"),
    )
    text = study_view.versions_table([FIRST, second])
    assert "lease_seconds = 900, check = yes, consent = (empty)" in text
    assert "(Ada)" in text
    assert "&lt;b&gt;slow" in text
    assert "<b>" not in text
