"""What the People page shows, from values made here."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from made_results import shown_study as study

from annotation.domain import AnnotatorRow, AnnotatorStatus
from annotation.spec import StudySpec, Task
from annotation.ui import people_view
from annotation.votes.exclusion import Effect, ModelRate

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NASTY = '<img src=x onerror="alert(1)">'
ADA = AnnotatorRow(
    name="Ada", done=1234, median_rt_ms=2345.0, none_rate=0.25, last_seen=NOW, simulated=False
)
EFFECT = Effect(
    annotator="Ada",
    n_votes=8,
    n_short=1,
    n_flipped=0,
    n_undecided=3,
    models=(ModelRate(model="m", before=0.5, after=None, decided_before=2, decided_after=0),),
)


def test_a_row_tells_all():
    page = people_view.people_table(study(), [ADA], "", NOW)
    for text in (">Ada</button>", ">active<", ">1,234<", ">2.3 s<", ">25%<", "just now"):
        assert text in page
    assert "simulated" not in page
    assert "aria-current" not in page


def test_only_the_chosen_row_is_marked():
    page = people_view.people_table(study(), [ADA, replace(ADA, name="Ben")], "Ben", NOW)
    assert page.count("aria-current") == 1
    assert page.index("aria-current") > page.index("Ada")


def test_who_fails_catch_trials_is_marked_with_figures():
    calm = replace(ADA, name="Ben", catch_answered=9, catch_failed=1)
    failing = replace(ADA, catch_answered=9, catch_failed=2, warned=True)
    page = people_view.people_table(study(), [calm, failing], "", NOW)
    assert page.count('data-kind="warning"') == 1
    assert page.index(">Ada</button>") < page.index(">failed 2 of 9 catch trials<")
    assert "failed 2 of 9 catch trials" in people_view.person_head(failing)
    head = people_view.person_head(calm)
    assert "Failed 1 of 9 catch trials." in head
    assert "warning" not in head


def test_a_pause_that_nobody_made_is_told_from_others():
    by_hand = replace(ADA, status=AnnotatorStatus.PAUSED)
    by_itself = replace(by_hand, paused_by_itself=True)
    pages = [people_view.person_head(one) for one in (by_hand, by_itself)]
    assert [">paused by itself<" in page for page in pages] == [False, True]
    assert ["Nobody paused them" in page for page in pages] == [False, True]


def test_excluded_votes_and_simulated_people_are_marked():
    row = replace(ADA, done=0, excluded=7, status=AnnotatorStatus.EXCLUDED, simulated=True)
    page = people_view.people_table(study(), [row], "", NOW)
    assert ">0 + 7 excluded<" in page
    assert 'data-kind="excluded">excluded<' in page
    assert ">simulated<" in page


def test_what_is_not_known_is_a_dash():
    row = replace(ADA, median_rt_ms=None, none_rate=None)
    assert people_view.people_table(study(), [row], "", NOW).count(">–<") == 2


def test_an_empty_study_says_how_people_come():
    assert 'href="/join/link"' in people_view.people_table(study(), [], "", NOW)
    simulated = study(spec=StudySpec(name="x", task=Task.RECOGNITION, simulated=True))
    assert "/join/" not in people_view.people_table(simulated, [], "", NOW)
    assert 'href="/studio/"' in people_view.NO_STUDY


def test_names_are_never_markup():
    nasty = replace(ADA, name=NASTY)
    pages = [
        people_view.people_table(study(), [nasty], NASTY, NOW),
        people_view.person_head(nasty),
        people_view.effect(
            replace(EFFECT, annotator=NASTY, models=(replace(EFFECT.models[0], model=NASTY),))
        ),
    ]
    for page in pages:
        assert "<img" not in page
        assert 'x onerror="' not in page
        assert "&lt;img" in page


@pytest.mark.parametrize("status", AnnotatorStatus)
def test_every_status_is_explained(status):
    assert "st-facts" in people_view.person_head(replace(ADA, status=status))


def test_the_effect_in_words():
    page = people_view.effect(EFFECT)
    assert "8 votes would count no more" in page
    assert "1 item would no longer" in page
    assert "3 majority labels would become undecided, 0 would" in page
    assert "50.0% of 2 decided" in page
    assert "no item decided" in page
    assert "it would have no rank" in page
    calm = replace(EFFECT, models=(replace(EFFECT.models[0], after=0.5, decided_after=1),))
    assert "would stay as it is" in people_view.effect(calm)
