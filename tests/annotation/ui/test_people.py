"""The People page: the list, somebody in it, what is said of them and can be done to them."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_ballots import random_votes
from made_results import Page, shown_study, write_import
from study_factory import START, answer_all, answer_to, joined, small_study

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step, VoteStatus
from annotation.spec import StudySpec, Task
from annotation.store.tables import EventRow
from annotation.study import labelling, participants
from annotation.ui import people
from annotation.votes.exclusion import Effect, ModelRate

PAGE = people.PAGE
NASTY = '<img src=x onerror="alert(1)">'
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
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


@pytest.fixture
def client(context):
    return reader(context)


def reader(context) -> TestClient:
    app = FastAPI()
    app.include_router(people.router(replace(context, account=lambda request: "Rosa")))
    return TestClient(app)


def shown(client, study, **query) -> str:
    answer = client.get(PAGE, params={"study": study.id, **query})
    assert answer.status_code == 200
    return answer.text


def links(page: str, words: str) -> list[str]:
    return [a["href"] for name, a in Page(page).tags if name == "a" and words in a.get("href", "")]


def test_without_a_study_or_anybody_the_page_says_what_to_do(client, make_study):
    assert 'href="/studio/new"' in client.get(PAGE).text
    study = make_study()
    page = shown(client, study)
    assert f'href="/studio/overview?study={study.id}"' in page
    assert "Get the link for people" in page
    assert study.token not in page
    simulated = make_study(name="simulated", simulated=True)
    assert "/join/" not in shown(client, simulated)


def test_everybody_is_listed_with_marks(client, store, study):
    for person in joined(store, study, "Ada", NASTY):
        answer_all(store, person, n=2)
    page = shown(client, study)
    assert "2 annotators, 4 votes." in page
    assert NASTY not in page
    assert NASTY in str(Page(page))
    assert "aria-current" not in page
    chosen = shown(client, study, person="Ada")
    assert chosen.count('aria-current="true"') == 1
    assert "Gets items and may vote." in chosen
    assert "Pause" in chosen
    assert "Resume" not in chosen


def test_a_long_list_has_pages(client, store, study):
    names = [f"P{n:02}" for n in range(people.ROWS + 3)]
    joined(store, study, *names)
    first, second, beyond = (shown(client, study, at=at) for at in (1, 2, 99))
    assert "Page 1 of 2" in first
    assert "P00" in first
    assert "P16" not in first
    assert "P16" in second
    assert beyond == second
    assert links(first, "at=2")


def test_a_step_is_taken_and_leads_back(client, store, study):
    joined(store, study, "Ada")
    form = {"person": "Ada", "at": "1"}
    for step, status in (
        ("pause", "paused"),
        ("resume", "active"),
        ("exclude", "excluded"),
        ("include", "active"),
    ):
        answer = client.post(f"{PAGE}/{study.id}/{step}", data=form)
        assert answer.status_code == 200
        assert answer.url.params["person"] == "Ada"
        assert participants.list_people(store, study.id)[0].status.value == status
    participants.exclude(store, study.id, "Ada", datetime.now(UTC))
    again = client.post(f"{PAGE}/{study.id}/pause", data=form)
    assert again.status_code == 409
    assert "Ada is excluded" in again.json()["error"]
    assert client.post(f"{PAGE}/{study.id}/pause", data={}).status_code == 404


def test_votes_of_who_is_excluded_count_again_once_they_are_included(client, store, study):
    for person in joined(store, study, "Ada", "Ben"):
        answer_all(store, person)
    page = shown(client, study, person="Ada", ask="exclude")
    assert "8 majority labels would become undecided" in page
    for step, coverage, words in (
        ("exclude", [0, 8, 0], "0 + 8 excluded"),
        ("include", [0, 0, 8], "Gets items and may vote."),
    ):
        answer = client.post(f"{PAGE}/{study.id}/{step}", data={"person": "Ada"})
        assert labelling.progress(store, study.id).coverage == coverage
        assert words in str(Page(answer.text))


def test_whoever_has_lost_their_link_gets_a_new_one(client, store, study):
    (ada,) = joined(store, study, "Ada")
    assert f'action="{PAGE}/{study.id}/link"' in shown(client, study, person="Ada")
    told = client.post(f"{PAGE}/{study.id}/link", data={"person": "Ada"})
    (link,) = re.findall(r"http://testserver(/me/[-\w]+)<", told.text)
    assert "Only this computer" not in told.text
    assert labelling.come_back(store, link).annotator.id == ada.id
    events = store.read(lambda tx: tx.query(EventRow).filter_by(kind="link_made").all())
    assert [one.annotator_id for one in events] == [ada.id]
    here = TestClient(client.app, base_url="http://127.0.0.1:7860")
    told = here.post(f"{PAGE}/{study.id}/link", data={"person": "Ada"})
    assert "Only this computer can open this link.</strong> To let others in" in told.text
    participants.erase(store, study.id, "Ada", datetime.now(UTC), keep_votes=True)
    (erased,) = participants.list_people(store, study.id)
    assert "/link" not in shown(client, study, person=erased.name)
    assert client.post(f"{PAGE}/{study.id}/link", data={"person": erased.name}).status_code == 409


def test_votes_through_a_link_of_a_researcher_are_left_out_until_they_are_included(
    client, store, study
):
    """Whoever holds the link can answer in that name, and others fill the slots meanwhile."""
    ada, ben, cleo = joined(store, study, "Ada", "Ben", "Cleo")
    told = client.post(f"{PAGE}/{study.id}/link", data={"person": "Ada"})
    assert "their votes are left out until you press Include" in told.text
    (link,) = re.findall(r"http://testserver(/me/[-\w]+)<", told.text)
    answer_all(store, ada, n=1)
    assert labelling.progress(store, study.id).coverage == [7, 1, 0]
    came = labelling.come_back(store, link).annotator
    given = answer_all(store, came)
    assert {one.status for one in given} == {VoteStatus.EXCLUDED}
    assert len(given) == 7
    assert answer_all(store, came) == []
    assert labelling.progress_of(store, came).over
    assert labelling.progress(store, study.id).coverage == [7, 1, 0]
    page = shown(client, study, person="Ada")
    assert "1 + 7 excluded" in str(Page(page))
    assert "a personal link made by Rosa was opened" in page
    events = store.read(lambda tx: tx.query(EventRow).filter_by(kind="vote").all())
    assert [one.data.get("link_by") for one in events] == [None] + ["Rosa"] * 7

    item = labelling.undo(store, came, given[0].id, START).item  # and is given again
    labelling.vote(store, came, answer_to(item, "none"), START)
    (free,) = labelling.next_items(store, ben, "tab", 1, START)
    labelling.vote(store, ben, answer_to(free.item, "none"), START)
    participants.pause(store, study.id, "Ada", datetime.now(UTC))
    participants.resume(store, study.id, "Ada", datetime.now(UTC))
    assert answer_all(store, came) == []

    client.post(f"{PAGE}/{study.id}/include", data={"person": "Ada"})
    assert labelling.progress(store, study.id).coverage == [0, 7, 1]
    assert "Rosa" not in shown(client, study, person="Ada")
    assert labelling.come_back(store, link).annotator.link_by is None
    assert answer_all(store, cleo)


def test_a_link_of_ones_own_leaves_no_vote_out(store, study):
    (ada,) = joined(store, study, "Ada")
    came = labelling.come_back(store, labelling.new_link(store, ada)).annotator
    assert {one.status for one in answer_all(store, came)} == {VoteStatus.COUNTED}


def test_what_an_exclusion_would_do_is_shown_before_it(client, store, study):
    answer_all(store, joined(store, study, "Ada")[0])
    page = shown(client, study, person="Ada", ask="exclude")
    assert "8 votes would count no more" in page
    assert "Exclude now" in page
    assert participants.list_people(store, study.id)[0].status.value == "active"


def test_erasing_takes_the_name_once_more(client, store, study):
    answer_all(store, joined(store, study, "Ada")[0])
    page = shown(client, study, person="Ada", ask="erase")
    assert "Backups, files that were downloaded before and the votes that trainings" in page
    assert 'data-ask-word="Ada"' in page
    address, form = f"{PAGE}/{study.id}/erase", {"person": "Ada", "votes": "keep"}
    for typed in ("", "ada", "Ada B"):
        assert client.post(address, data={**form, "typed": typed}).status_code == 409
    answer = client.post(address, data={**form, "typed": "Ada"})
    assert answer.url.params["person"].startswith("erased-")
    assert "Ada" not in str(Page(answer.text))
    assert labelling.progress(store, study.id).coverage[1] == 8


def test_erasing_somebody_of_another_account_names_it(client, store, tmp_path):
    for maker, asks in (("Rosa", ""), ("Ada", "Ada made this study. ")):
        made = small_study(store.by(maker), tmp_path / maker)
        joined(store, made, "Eve")
        page = shown(client, made, person="Eve", ask="erase")
        assert f'data-ask-text="{asks}This cannot be undone."' in page


def test_imported_annotators_are_marked_and_nothing_can_be_done_to_them(context, tmp_path):
    imports = write_import(tmp_path / "imports", random_votes())
    page = reader(replace(context, imports=imports)).get(PAGE, params={"study": "import:paper"})
    assert page.text.count('data-kind="imported"') == 5
    assert "5 annotators, 300 votes, 5 done." in page.text
    assert "<form" not in page.text
    assert not links(page.text, "person=")


# ------------------------------------------------------------------ from values made here


def test_who_fails_catch_trials_is_told_with_figures():
    calm = replace(ADA, name="Ben", catch_answered=9, catch_failed=1)
    failing = replace(ADA, catch_answered=9, catch_failed=2, warned=True)
    assert people.caught(failing) == "failed 2 of 9 catch trials"
    assert "Failed 1 of 9 catch trials." in people.person_facts(calm)
    assert "1 of them failed catch trials" in people.lead(shown_study(), [calm, failing])
    assert "catch trials" not in people.lead(shown_study(), [calm])


def test_a_pause_that_nobody_made_is_told_from_others():
    by_hand = replace(ADA, status=AnnotatorStatus.PAUSED)
    by_itself = replace(by_hand, paused_by_itself=True)
    told = [" ".join(people.person_facts(one)) for one in (by_hand, by_itself)]
    assert ["Nobody paused them" in one for one in told] == [False, True]


def test_the_lead_counts_people_votes_and_who_is_done():
    done = replace(ADA, name="Ben", step=Step.DONE)
    assert people.lead(shown_study(), [ADA, done]) == "2 annotators, 2,468 votes, 1 done."
    simulated = shown_study(spec=StudySpec(name="x", task=Task.RECOGNITION, simulated=True))
    assert people.lead(simulated, [ADA]) == "1 simulated annotator, 1,234 votes."
    assert people.lead(shown_study(), []) == ""


def test_what_can_be_done_depends_on_where_somebody_stands():
    may = {status: people.may(replace(ADA, status=status)) for status in AnnotatorStatus}
    assert may[AnnotatorStatus.ACTIVE] == ("pause", "exclude", "link", "erase")
    assert may[AnnotatorStatus.PAUSED] == ("resume", "exclude", "link", "erase")
    assert may[AnnotatorStatus.EXCLUDED] == ("include", "link", "erase")
    assert may[AnnotatorStatus.ERASED] == ("erase",)  # of kept votes, or of traces in the files
    assert people.may(replace(ADA, status=AnnotatorStatus.ERASED, done=0)) == ("erase",)
    assert "let-in" in people.may(replace(ADA, step=Step.FAILED))


def test_names_are_never_markup():
    models = (replace(EFFECT.models[0], model=NASTY),)
    page = people.effect(replace(EFFECT, annotator=NASTY, models=models))
    assert "<img" not in page
    assert 'x onerror="' not in page
    assert "&lt;img" in page


@pytest.mark.parametrize("status", AnnotatorStatus)
def test_every_status_is_explained(status):
    assert people.person_facts(replace(ADA, status=status))[0].endswith(".")


def test_the_effect_in_words():
    page = people.effect(EFFECT)
    assert "8 votes would count no more" in page
    assert "1 item would no longer" in page
    assert "3 majority labels would become undecided, 0 would" in page
    assert "50.0% of 2 decided" in page
    assert "no item decided" in page
    assert "it would have no rank" in page
    calm = replace(EFFECT, models=(replace(EFFECT.models[0], after=0.5, decided_after=1),))
    assert "would stay as it is" in people.effect(calm)
