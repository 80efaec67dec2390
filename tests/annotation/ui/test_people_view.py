"""What the People page shows, from values made here."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from made_results import shown_study as study

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step
from annotation.spec import StudySpec, Task
from annotation.ui import people as people_page
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


def test_who_fails_catch_trials_is_told_with_figures():
    calm = replace(ADA, name="Ben", catch_answered=9, catch_failed=1)
    failing = replace(ADA, catch_answered=9, catch_failed=2, warned=True)
    assert people_page.caught(failing) == "failed 2 of 9 catch trials"
    assert "Failed 1 of 9 catch trials." in people_page.person_facts(calm)
    assert "1 of them failed catch trials" in people_page.lead(study(), [calm, failing])
    assert "catch trials" not in people_page.lead(study(), [calm])


def test_a_pause_that_nobody_made_is_told_from_others():
    by_hand = replace(ADA, status=AnnotatorStatus.PAUSED)
    by_itself = replace(by_hand, paused_by_itself=True)
    told = [" ".join(people_page.person_facts(one)) for one in (by_hand, by_itself)]
    assert ["Nobody paused them" in one for one in told] == [False, True]


def test_the_lead_counts_people_votes_and_who_is_done():
    done = replace(ADA, name="Ben", step=Step.DONE)
    assert people_page.lead(study(), [ADA, done]) == "2 annotators, 2,468 votes, 1 done."
    simulated = study(spec=StudySpec(name="x", task=Task.RECOGNITION, simulated=True))
    assert people_page.lead(simulated, [ADA]) == "1 simulated annotator, 1,234 votes."
    assert people_page.lead(study(), []) == ""


def test_what_can_be_done_depends_on_where_somebody_stands():
    may = {status: people_page.may(replace(ADA, status=status)) for status in AnnotatorStatus}
    assert may[AnnotatorStatus.ACTIVE] == ("pause", "exclude", "link", "erase")
    assert may[AnnotatorStatus.PAUSED] == ("resume", "exclude", "link", "erase")
    assert may[AnnotatorStatus.EXCLUDED] == ("include", "link", "erase")
    assert may[AnnotatorStatus.ERASED] == ("erase",)  # of kept votes, or of traces in the files
    assert people_page.may(replace(ADA, status=AnnotatorStatus.ERASED, done=0)) == ("erase",)
    assert "let-in" in people_page.may(replace(ADA, step=Step.FAILED))


def test_names_are_never_markup():
    models = (replace(EFFECT.models[0], model=NASTY),)
    page = people_page.effect(replace(EFFECT, annotator=NASTY, models=models))
    assert "<img" not in page
    assert 'x onerror="' not in page
    assert "&lt;img" in page


@pytest.mark.parametrize("status", AnnotatorStatus)
def test_every_status_is_explained(status):
    assert people_page.person_facts(replace(ADA, status=status))[0].endswith(".")


def test_the_effect_in_words():
    page = people_page.effect(EFFECT)
    assert "8 votes would count no more" in page
    assert "1 item would no longer" in page
    assert "3 majority labels would become undecided, 0 would" in page
    assert "50.0% of 2 decided" in page
    assert "no item decided" in page
    assert "it would have no rank" in page
    calm = replace(EFFECT, models=(replace(EFFECT.models[0], after=0.5, decided_after=1),))
    assert "would stay as it is" in people_page.effect(calm)
