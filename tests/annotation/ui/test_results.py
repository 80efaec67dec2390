"""The Results page, without a browser."""

import uuid
from datetime import UTC, datetime

import gradio as gr
from study_factory import answer_all, joined

from annotation.domain import Answer
from annotation.errors import NotFoundError
from annotation.study.labelling import join, next_items, vote
from annotation.tasks.kind import NONE
from annotation.ui import results
from annotation.ui.results_data import ResultsCache


def look(context, chosen=""):
    return results._look(context, ResultsCache(context.store, context.fit), chosen)


def test_the_page_never_refreshes_by_itself(context):
    with gr.Blocks(analytics_enabled=False) as demo:
        results.render(context)
    assert not [block for block in demo.blocks.values() if isinstance(block, gr.Timer)]


def test_without_a_study_the_page_says_where_to_make_one(context):
    selector, head, body, *_ = look(context)
    assert selector.value is None
    assert "No study yet" in head
    assert body.visible is False


def test_without_votes_nothing_but_that_is_shown(context, study):
    selector, head, body, *rest = look(context)
    assert selector.value == study.id
    assert "There are no votes yet" in head
    assert body.visible is False
    assert rest == [gr.skip()] * len(rest)


def test_votes_are_shown(context, store, study):
    now = datetime.now(UTC)
    anna = join(store, study.token, "Anna").annotator
    for item in next_items(store, anna, "tab", 8, now):
        answer = Answer(id=str(uuid.uuid4()), item=item.item, answer=NONE, tab="tab")
        vote(store, anna, answer, now)
    _, head, body, _, rates, agreement, annotators, kappas, *rest = look(context)
    quality, views, carry_over, models, detection, *_ = rest
    assert "8 votes of 1 annotator" in head
    assert body.visible is True
    assert "0 / 8" not in rates
    assert "only one annotator has voted" in agreement
    assert kappas.visible is False
    assert "Anna" in annotators
    assert "No catch trials or gold items in this study" in quality
    assert views.visible is True  # each original came once by each of two models
    assert "Carry-over" in carry_over
    assert "every vote says the same" in models
    assert detection.visible is False


def test_people_come_before_simulations_and_a_choice_before_both(context, make_study):
    people, simulated = make_study(name="people"), make_study(name="simulated", simulated=True)
    assert look(context)[0].value == people.id
    assert look(context, simulated.id)[0].value == simulated.id
    assert look(context, "nowhere")[0].value == people.id


def test_the_page_opens_on_what_people_have_voted_on(context, store, make_study):
    voted, _, silent = (make_study(name=name) for name in ("voted", "tried", "silent"))
    answer_all(store, joined(store, voted, "Anna")[0])
    assert look(context)[0].value == voted.id
    assert look(context, silent.id)[0].value == silent.id


def test_what_goes_wrong_is_said_on_the_page(context, study, monkeypatch):
    def fail(self, study_id):
        raise NotFoundError("It is <gone>.")

    monkeypatch.setattr(ResultsCache, "get", fail)
    _, head, body, *_ = look(context)
    assert "It is &lt;gone&gt;." in head
    assert body.visible is False
