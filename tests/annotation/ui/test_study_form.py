"""The form of the Studies page, without a browser."""

import uuid
from dataclasses import fields
from datetime import UTC, datetime

import gradio as gr
import pytest
from study_factory import SURE, write_set

from annotation.design.list_facts import RANDOM_LISTS
from annotation.domain import Answer
from annotation.errors import StudyError
from annotation.spec import HeadlineRule, StudySpec, Task
from annotation.study.labelling import join, next_items, vote
from annotation.ui import study_form
from annotation.ui.study_form import TOP_LISTS, spec_of


@pytest.fixture(scope="module")
def form():
    with gr.Blocks():
        return study_form.draw()


def values(form, **changes):
    """What a browser sends for the form as it opens: numbers are floats there."""
    given = {name: field.value for name, field in form.settings.items()}
    given = {n: float(v) if type(v) is int else v for n, v in given.items()}
    return {**given, "name": " Symbols ", "seed": 3.0, **changes}


def test_every_setting_that_a_page_can_make_is_on_the_form(form):
    missing = {one.name for one in fields(StudySpec)} - set(form.settings)
    assert missing == {"simulated"}  # such studies are made in a terminal


def test_the_form_as_it_opens_has_the_usual_settings(form):
    assert spec_of(values(form)) == StudySpec(name="Symbols", task=Task.RECOGNITION, seed=3)


def test_the_form_becomes_a_study(form):
    made = spec_of(values(form, task="pair", headline="dawid-skene", password="secret"))
    assert (made.task, made.decoy_rate, made.password) == (Task.PAIR, 0.5, "secret")
    assert made.headline is HeadlineRule.DAWID_SKENE
    assert spec_of(values(form, max_views=2.0)).max_views == 2


def test_what_means_nothing_in_a_task_is_neither_shown_nor_used(form):
    *updates, _ = study_form.by_task("pair", "majority")
    seen = dict(zip(study_form.ONLY_OF, updates, strict=True))
    assert [name for name, update in seen.items() if update["visible"]] == ["decoy_rate"]
    assert spec_of(values(form, task="pair", label_originals=True)).label_originals is False
    assert spec_of(values(form)).decoy_rate == 0


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("before", HeadlineRule)
def test_the_human_scores_on_the_form_are_those_of_the_task(form, task, before):
    assert form.of_one_task[-1] is form.settings["headline"]
    offered = study_form.by_task(task, before)[-1]
    rules = [rule for _, rule in offered["choices"]]
    assert offered["value"] in rules
    assert (offered["value"] == before) == (before in rules)
    for rule in HeadlineRule:  # what is offered is what a study takes
        if rule in rules:
            given = values(form, task=task, headline=rule, label_originals=True)
            assert spec_of(given).headline is rule
        elif rule is not HeadlineRule.MAJORITY:  # which stands for the usual one
            with pytest.raises(StudyError, match="is none of the task"):
                spec_of(values(form, task=task, headline=rule))


def test_values_come_back_by_name(form):
    given = [["a"], 7.0, "model\timage_id\n\n", *(one.value for one in form.settings.values())]
    filled = form.named(given)
    assert (filled.sets, filled.people) == (["a"], 7.0)
    assert filled.settings["votes_per_item"] == 5
    assert filled.gold.read() == "model,image_id"
    assert form.named([[], None, " ", *given[3:]]).gold is None


def test_empty_numbers_are_named_all_at_once(form):
    with pytest.raises(StudyError, match=r"Votes per item is empty.*\nSeed is empty"):
        spec_of(values(form, votes_per_item=None, seed=None))


def test_impossible_values_are_named(form):
    with pytest.raises(StudyError, match="name"):
        spec_of(values(form, name="  "))


def test_only_sets_on_offer_can_be_chosen(context, tmp_path):
    (_, folder), *_ = context.find_sets()
    assert study_form.known_folders(context, [str(folder)]) == [folder]
    with pytest.raises(StudyError, match="No such reconstruction set"):
        study_form.known_folders(context, [str(tmp_path)])


def test_the_preview_counts_what_the_sets_hold(context, form):
    (_, folder), *_ = context.find_sets()
    text = study_form.preview_of(context.store, [folder], 5.0, values(form))
    assert "4 reconstructions of 1 target model" in text
    assert "Choose at least one" in study_form.preview_of(context.store, [], 5.0, values(form))


def test_the_preview_asks_for_people_as_the_settings_do(context, form):
    (_, folder), *_ = context.find_sets()

    def preview(**changes):
        return study_form.preview_of(
            context.store, [folder], 5.0, values(form, votes_per_item=2.0, **changes)
        )

    assert "2 annotators needed; 5 are expected" in preview(name="")
    assert "4 annotators needed" in preview(label_originals=True, max_views=1.0)
    # Two of the four originals are set aside: of four items in all, two for each person.
    aside = preview(label_originals=True, items_per_person=2.0, set_aside=2.0)
    assert "2 reconstructions of 1 target model and 2 originals: 4 items" in aside
    assert "4 annotators needed, 5 to be sure" in aside
    assert "2 decoys" in preview(task="pair")
    with pytest.raises(StudyError, match="cannot be set aside"):
        preview(set_aside=4.0)


def test_the_preview_depends_on_each_setting_it_listens_to(context, form, tmp_path):
    (_, folder), *_ = context.find_sets()
    of_pairs, few = {"task": "pair", "decoy_rate": 1.0}, {"list_size": 4.0}
    changes = {
        "task": ({}, {"task": "pair"}),
        "votes_per_item": ({}, {"votes_per_item": 3.0}),
        "extra_vote": ({"max_views": 1.0, **of_pairs}, {"extra_vote": True}),
        "list_size": ({}, {"list_size": 4.0}),  # of all words there is nothing to draw
        "distractors": (few, {"distractors": "top"}),
        "decoy_rate": (of_pairs, {"decoy_rate": 0.5}),
        "label_originals": ({}, {"label_originals": True}),
        "lists": ({"label_originals": True}, {"lists": "item"}),
        "max_views": (of_pairs, {"max_views": 1.0}),
        "items_per_person": ({}, {"items_per_person": 1.0}),
        "set_aside": ({}, {"set_aside": 1.0}),
    }
    assert set(changes) == set(study_form.DECIDING)
    ranked = write_set(tmp_path / "ranked", model="two", probabilities=SURE)
    for name, (before, change) in changes.items():
        source = ranked if name == "distractors" else folder
        texts = [
            study_form.preview_of(context.store, [source], 5.0, values(form, **given))
            for given in (before, {**before, **change})
        ]
        assert texts[0] != texts[1]


def test_the_preview_takes_people_to_be_as_quick_as_they_were(context, form, make_study):
    (_, folder), *_ = context.find_sets()
    study, now = make_study(votes_per_item=1, min_rt_ms=0), datetime.now(UTC)
    anna = join(context.store, study.token, "Anna").annotator
    items = next_items(context.store, anna, "t", 3, now)
    for item, rt in zip(items, (1000.0, 1600.0, 9000.0), strict=True):
        answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none", rt_ms=rt)
        vote(context.store, anna, answer, now)

    def preview(**given):
        return study_form.preview_of(context.store, [folder], 5.0, values(form, **given))

    assert "20 votes, about 1 minute of work in all at 2 seconds a vote" in preview()
    assert "at 3 seconds a vote" in preview(task="pair")


def test_random_lists_are_said_before_the_study_is_made(context, form, tmp_path):
    given = values(form, list_size=4.0)
    random = [folder for _, folder in context.find_sets()]
    assert RANDOM_LISTS in study_form.preview_of(context.store, random, 5, given)
    assert RANDOM_LISTS not in study_form.preview_of(
        context.store, random, 5, {**given, "task": "rating"}
    )
    ranked = write_set(tmp_path / "sets" / "two", model="two", probabilities=SURE)
    assert RANDOM_LISTS not in study_form.preview_of(context.store, [ranked], 5, given)


def test_lists_of_the_likeliest_words_are_said_to_tell_more(context, form, tmp_path):
    ranked = write_set(tmp_path / "sets" / "two", model="two", probabilities=SURE)

    def preview(**changes):
        given = values(form, **{"list_size": 4.0, **changes})
        return study_form.preview_of(context.store, [ranked], 5, given)

    assert TOP_LISTS in preview(distractors="top")
    assert TOP_LISTS not in preview()
    assert TOP_LISTS not in preview(distractors="top", list_size=20.0)
    assert TOP_LISTS not in preview(distractors="top", task="rating")
