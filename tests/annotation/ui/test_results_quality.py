"""What the Results page says of trials, views and models, from votes made here."""

from dataclasses import replace
from functools import cache

import pytest
from made_ballots import random_votes, table, vote, votes_of
from made_results import NASTY, Page, results_of, study

from annotation.spec import Task
from annotation.ui import results_quality, results_tabs, results_view
from annotation.votes.annotators import SAME_ANSWER


def trial(kind, annotator, answer, expected=None, item="x/1", **more):
    made = {"kind": kind, "status": "quality", "expected": expected, **more}
    return vote(item, annotator, answer, **made)


def with_trials(name="p0"):
    again = random_votes().query("annotator == 'p0'").head(12).to_dict("records")
    return table(
        [
            *random_votes().replace({"annotator": {"p0": name}}).to_dict("records"),
            *[trial("catch", name, said, "cat") for said in ("cat", "cat", "none", "cow")],
            *[trial("catch", name, said, "none") for said in ("none", "cow")],
            trial("gold", name, "cow", "cow"),
            *[dict(row, annotator=name, kind="repeat", status="quality") for row in again],
        ]
    )


@cache
def trials():
    return results_of(study(repeat_lag=30), with_trials())


@cache
def plain():
    return results_of(study(repeat_rate=0), random_votes())


@cache
def empty():
    return results_of(study(catch_rate=0.1, set_aside=2), votes_of({}))


@cache
def pairs():
    votes = [
        vote("m/1", "Al", "same"),
        vote("n/1", "Al", "different"),
        trial("catch", "Al", "same", "different"),
    ]
    return results_of(study(Task.PAIR), table(votes))


SECTIONS = (
    results_tabs.checks,
    results_quality.carry_over,
    results_quality.reliability,
    results_view.annotators,
)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("results", [trials, plain, empty, pairs])
def test_no_section_shows_what_is_not_a_number(section, results):
    assert "nan" not in str(Page(section(results()))).lower()


def test_known_answers_and_the_bias_they_show():
    text = str(Page(results_tabs.checks(trials())))
    for words in (
        "p0 catch, clear original 2 / 4 no interval: 4 trials, fewer than 6",
        "p0 catch, noise 1 / 2 no interval: 2 trials, fewer than 6",
        "p0 gold 1 / 1 no interval: 1 trial, fewer than 6",
        "p0 25% (no interval: 4 trials, fewer than 6) 50% (no interval: 2 trials, fewer than 6)",
    ):
        assert words in text


def test_repeats_of_one_and_of_all():
    text = str(Page(results_quality.repeats(trials())))
    assert "all annotators answers 12 / 12 100%" in text
    assert "p0 recognised or not 12 / 12 100% [71, 100] 1.00" in text
    assert "p0 answers 12 / 12 100% [71, 100] see Annotators" in text
    assert "at least 30 votes later" in text


def test_the_table_of_annotators_has_trials_in_its_last_columns():
    text = str(Page(results_view.annotators(trials())))
    assert "Clear Noise Gold Repeat κ" in text
    assert "50% 50% 100% 1.00 p1" in text
    assert "Largest change Different Al" in str(Page(results_view.annotators(pairs())))


def test_a_share_or_kappa_that_is_missing_says_why():
    none = "– (none answered)"
    assert f"points {none} {none} {none} {none} p2" in str(Page(results_view.annotators(trials())))
    one_answer = [row for row in with_trials().query("annotator == 'p0'").to_dict("records")
                  if row["kind"] != "repeat"] + [trial("repeat", "p0", "cat", item="m/9"),
                                                 vote("m/9", "p0", "cat")]  # fmt: skip
    text = str(Page(results_view.annotators(results_of(study(), table(one_answer)))))
    assert f"100% – ({SAME_ANSWER})" in text
    text = str(Page(results_view.annotators(plain())))
    assert "points p1" in text
    assert "Gold: not in this study. Repeat κ: not in this study." in text
    assert "Noise: none answered yet. Gold: not in this study." in str(
        Page(results_view.annotators(empty()))
    )


def test_who_is_excluded_keeps_a_row_for_their_trials():
    votes = with_trials()
    votes.loc[(votes["annotator"] == "p0") & (votes["status"] == "counted"), "status"] = "excluded"
    text = str(Page(results_view.annotators(results_of(study(), votes))))
    assert "p0 0 – – – of 0 – – (no vote counts) – 50% 50% 100% 1.00 p1" in text


def test_what_is_not_in_a_study_is_said_in_words():
    text = results_tabs.checks(plain())
    assert "No catch trials or gold items in this study" in text
    assert "No repeats in this study" in text
    assert "No catch trials have been answered yet" in results_tabs.checks(empty())
    assert "no repeat has been answered yet" in results_tabs.checks(empty())
    assert results_quality.carry_over(empty()) == ""


def test_pairs_have_no_none():
    text = str(Page(results_tabs.checks(pairs())))
    assert "catch, different 0 / 1" in text
    assert "none" not in text.lower().replace("none of these trials", "")


def test_views_have_rates_or_a_word_on_why_not():
    text = str(Page(results_quality.carry_over(plain())))
    assert "Views View Votes" not in text
    assert "1 100 20" in text
    assert "3 100 20" in text
    once = results_of(study(), votes_of({"m/1": "cc", "m/2": "dd"}))
    assert "nothing can carry over" in results_quality.carry_over(once)


def test_models_and_what_is_not_settled():
    votes = random_votes(missing=0.3)
    found = results_of(study(), votes)
    text = str(Page(results_quality.reliability(found) + results_quality.unsettled(found)))
    people = found.reliability.people.iloc[0]
    assert f"p0 {people['n_votes']} {people['one_coin']:.0%} {people['full']:.0%}" in text
    assert f"{len(found.reliability.disagreements)} of {found.reliability.n_compared}" in text
    assert f"no majority yet {found.open_questions['too_few']}" in text
    assert "every vote says the same" in results_quality.reliability(
        results_of(study(), votes_of({"m/1": "ccc"}))
    )


def test_items_without_a_name_for_their_original_have_a_row_where_that_decides():
    by_names = study(label_originals=True, headline="as-original-named")
    counts = {**plain().open_questions, "unnamed": 7}
    found = replace(plain(), study=by_names, open_questions=counts)
    text = str(Page(results_quality.unsettled(found)))
    assert "No name for its original that most agree on 7" in text
    assert "No name" not in results_quality.unsettled(plain())


def test_every_text_from_people_is_escaped():
    rows = [
        {**row, "annotator": NASTY, "model": NASTY, "image_id": f"{NASTY}{row['image_id']}"}
        for row in with_trials().query("annotator == 'p0'").to_dict("records")
    ]
    nasty = results_of(replace(study(), name=NASTY), table(rows))
    page = Page("".join(section(nasty) for section in SECTIONS))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert NASTY in str(page)
