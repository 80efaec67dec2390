"""The sentence of each tab of Results, and what it says where votes are missing."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from made_ballots import random_votes, table, vote, votes_of
from made_results import NASTY, Page, empty, full, results_of, study

from annotation.design.candidates import RANDOM_LISTS, CandidateList, list_facts
from annotation.domain import TargetTest
from annotation.spec import Task
from annotation.study.results import examples
from annotation.ui import results as results_page
from annotation.ui import results_view
from annotation.ui.results import TABS, shown
from annotation.votes.annotators import SAME_ANSWER
from semsim.base.stats.standstill import Standstill


@cache
def four():
    return results_of(study(), votes_of({"m/1": "c", "m/2": "d", "n/1": "c", "n/2": "n"}))


LISTS = list_facts(
    [CandidateList(classes=("a", "x", "y"), true_position=0, true_rank=1, forced=False)] * 2
)


def test_the_answer_is_a_share_from_which_model_to_which_and_what_a_guesser_has():
    tests = {"m1": TargetTest(accuracy=0.71, n_classes=47, chance=1 / 47, at_chance=False)}
    found = results_of(study(targets=tests), random_votes(), lists=LISTS)
    said = results_page.answer(found)
    share, low, high = found.rate
    assert share == pytest.approx(found.n_recognised / found.n_decided)
    assert low < share < high
    ends = f"[{100 * low:.0f}, {100 * high:.0f}]"
    recognised = f"People recognised {found.n_recognised} of 60 reconstructions"
    assert said.startswith(f"{recognised} ({share:.0%} {ends}): from ")
    most = found.rates.iloc[0]
    ends = f"[{100 * most['rate_low']:.0f}, {100 * most['rate_high']:.0f}]"
    assert f"to {most['rate']:.0%} {ends} of m1 (its target is 71% right (chance 2%))" in said
    assert f"candidate lists alone: {LISTS.most.rate:.0%} correct" in said


def test_while_votes_are_missing_how_far_the_study_is_comes_first():
    """Three pictures of each of three models; K is 5."""
    votes = {"m0/1": "ccc", "m0/2": "ccccc", "m1/1": "ddd", "m2/1": "cd", "m1/2": "c"}
    found = results_of(study(n_items=9), votes_of(votes))
    said = results_page.answer(found)
    assert said.startswith(
        "14 of 45 votes; 6 of 9 pictures undecided. So far people recognised 2 of 3 decided ones "
        "(67% [no interval: 2 originals, fewer than 6]): from 0% of m1 to 100% of m0"
    )
    assert said.endswith(". No picture is decided of m2.")
    # Also a model that nobody was shown a picture of.
    few = results_of(study(n_items=9), votes_of({"m0/1": "ccc"}))
    assert results_page.answer(few).endswith("No picture is decided of m1, m2.")
    assert "undecided" not in results_page.answer(full())


def test_models_that_are_alike_are_counted():
    same = results_of(study(), votes_of({"a/1": "ccc", "b/1": "ccc", "c/1": "ddd"}))
    assert "from 0% of c to 100% of 2 models" in results_page.answer(same)
    said = {f"{model}/{n}": "ddd" if model == "c" else "ccc" for model in "abc" for n in range(7)}
    many = results_page.answer(results_of(study(n_items=21), votes_of(said)))
    assert re.search(r"to 100% \[\d+, 100\] of 2 models", many), many


def test_simulated_annotators_are_no_people():
    said = results_page.answer(replace(full(), study=study(simulated=True)))
    assert said.startswith("Simulated annotators recognised")


def test_a_control_that_is_not_beaten_is_said():
    lines = results_page.controls(replace(full(), lists=LISTS))
    assert "of 3 models" in lines[0] or "Every model is above guessing" in lines[0]
    sure = replace(LISTS, guesses=tuple(replace(one, rate=1.0) for one in LISTS.guesses))
    line = results_page.controls(replace(full(), lists=sure))[0]
    assert "3 of 3 models are not distinguishable from guessing" in line
    guessing = {"m0": TargetTest(accuracy=0.02, n_classes=47, chance=1 / 47, at_chance=True)}
    found = replace(full(), study=study(targets=guessing))
    assert results_page.controls(found)[0].startswith("1 of 3 models has a target at chance.")
    assert results_page.controls(full()) == []


def test_a_model_without_an_interval_is_not_said_to_beat_the_lists():
    """Of one original nothing is resampled; nobody recognised what m made of it."""
    found = results_of(study(), votes_of({"m/1": "ddd", "n/1": "ccd"}), lists=LISTS)
    assert "2 of 2 models are not distinguishable from guessing" in results_page.controls(found)[0]


def test_single_answers_are_counted_one_by_one():
    found = results_of(study(), votes_of({"m/1": "ccc", "m/2": "d"}), lists=LISTS)
    lead = results_page.controls(found)[0]
    assert lead.startswith("75% [no interval: 2 originals, fewer than 6] of answers are correct (")


def test_single_answers_of_one_original_go_together():
    """Of ten originals people name all or nothing, so that fifty answers say what ten do."""
    apart = {f"m/{n}": "ccccc" if n < 5 else "ddddd" for n in range(10)}
    even = {f"m/{n}": "ccddd" if n % 2 else "cccdd" for n in range(10)}
    leads = [
        results_page.controls(results_of(study(n_items=10), votes_of(votes), lists=LISTS))[0]
        for votes in (apart, even)
    ]
    ends = [re.match(r"50% \[(\d+), (\d+)\] of answers are correct", one) for one in leads]
    wide, narrow = (int(one[2]) - int(one[1]) for one in ends if one)
    assert wide > 1.5 * narrow


def test_agreement_leads_with_intervals_or_why_there_are_none():
    lead = results_page.agreement_answer(results_of(study(), random_votes()))
    assert re.match(r"Two people agree on \d+% \[\d+, \d+\] of the pictures", lead)
    assert re.search(r"Krippendorff's α −?0\.\d\d \[−?0\.\d\d, 0\.\d\d\]\)", lead)
    few = results_of(study(), votes_of({"m/1": "ccc", "m/2": "cd"}))
    why = "[no interval: 2 originals, fewer than 6]"
    assert f"agree on 50% {why} of the pictures" in results_page.agreement_answer(few)


def test_answers_that_nobody_can_judge_yet_are_not_wrong():
    votes = votes_of({"m/1": "ccd", "m/2": "ccc"})
    by_names = votes.assign(headline="as-original-named", original_answer=None)
    found = results_of(study(), by_names, lists=LISTS)
    assert not any("of answers are correct" in line for line in results_page.controls(found))
    first = by_names["image_id"] == "1"
    by_names.loc[first, "original_answer"] = "cat"
    found = results_of(study(), by_names, lists=LISTS)
    assert results_page.controls(found)[0].startswith("67% [no interval: 1 original")


@pytest.mark.parametrize(
    ("hits", "alarms", "leans"),
    [
        (15, 4, "cannot be shown to lean towards either answer"),
        (19, 17, "lean towards “same”"),
        (3, 1, "lean towards “different”"),
    ],
)
def test_people_lean_only_where_their_criterion_is_not_0(hits, alarms, leans):
    kinds = {"reconstruction": hits, "decoy": alarms}
    votes = table(
        vote(f"m/{number}", "p0", "same" if number < same else "different", kind=kind)
        for kind, same in kinds.items()
        for number in range(19)
    )
    votes["item"] += votes["kind"]
    assert f"; they {leans}." in results_page.detection_answer(results_of(study(Task.PAIR), votes))


def test_that_words_are_random_is_said_above_the_shares_and_by_the_checks():
    random = replace(LISTS, n_random=1)
    said = f"{RANDOM_LISTS} (1 of 2 lists.)"
    assert said in results_page.controls(replace(full(), lists=random))
    text = str(Page(shown(replace(full(), lists=random), "share")[1]))
    assert text.index(said) < text.index("Recognised, by model")
    assert said in str(Page(shown(replace(full(), lists=random), "checks")[1]))
    assert RANDOM_LISTS not in str(Page(shown(replace(full(), lists=LISTS), "share")[1]))


@pytest.mark.parametrize("tab", TABS)
def test_four_votes_say_what_is_missing_instead_of_empty_tables(tab):
    lead, body = shown(four(), tab)
    page = Page(body)
    if tab in ("share", "agreement", "detection"):
        assert lead == ("4 of 300 votes; 60 of 60 pictures undecided." if tab == "share" else "")
        assert [tag for tag, _ in page.tags if tag == "table"] == []
        assert "li" in {tag for tag, _ in page.tags}
    assert "nan" not in str(page).lower()


def test_what_simulated_annotators_agree_on_is_not_said_of_people():
    lead, body = shown(replace(full(), study=study(simulated=True)), "agreement")
    assert lead.startswith("Two simulated annotators agree on")
    assert "Every two simulated annotators" in body
    assert "of the simulated annotators into" in body
    assert "people" not in lead + body
    many = replace(full(), study=study(simulated=True), n_people=results_page.MOST_PEOPLE + 1)
    assert "26 simulated annotators are too many" in results_page.pairs(many)


def test_what_is_missing_is_named():
    assert "4 votes on 4 pictures" in shown(four(), "share")[1]
    assert "Only one annotator has voted" in shown(four(), "agreement")[1]
    assert "needs two people" in shown(empty(), "share")[1]
    assert "/studio/overview?study=s1" in shown(empty(), "share")[1]
    simulated = replace(empty(), study=study(simulated=True))
    assert "/studio/overview" not in shown(simulated, "share")[1]


def test_agreement_leads_with_the_human_ceiling():
    lead, body = shown(full(), "agreement")
    assert f"ρ = {full().ceiling.rho:.2f}" in lead
    assert "rank the models alike" in lead
    assert "Human ceiling" in body
    assert "Every two people" in body
    alone = results_of(study(), random_votes(annotators=2))
    assert "Every two people" not in shown(alone, "agreement")[1]
    many = replace(full(), n_people=results_page.MOST_PEOPLE + 1)
    assert "too many for a matrix" in results_page.pairs(many)


def test_people_are_counted_with_their_pace():
    lead, body = shown(full(), "people")
    assert lead.startswith("5 annotators gave 300 votes, 60 each; half of their answers")
    assert re.search(r"less than \d\.\d to \d\.\d s\.", lead)
    assert "p4" in body
    one = results_of(study(), random_votes(annotators=1))
    assert shown(one, "people")[0].startswith("1 annotator gave 60 votes")


def test_what_became_of_the_votes():
    votes = random_votes()
    votes.loc[:3, "status"] = "excluded"
    text = str(Page(results_page.became(results_of(study(), votes))))
    assert (
        "296 count; 4 are of somebody who is excluded, or came in by a researcher's link." in text
    )
    votes.loc[:2, "status"] = ["quality", "superseded", "surplus"]
    text = str(Page(results_page.became(results_of(study(), votes))))
    assert "1 answers a trial, which never counts; 1 is of somebody who is excluded" in text
    assert "1 came when no more were needed; 1 was taken back by whoever gave it." in text


def test_examples_are_clear_and_as_different_as_can_be():
    table = full().items
    digests = {"original": table["image_id"], "reconstruction": table["item"]}
    pictures = pd.DataFrame({"item": table["item"], **digests})
    for recognised in (True, False):
        found = examples(table, pictures, recognised=recognised)
        assert len(found) == 4
        assert len({one.original for one in found}) == 4
        shares = [one.n_recognised / one.n_votes for one in found]
        assert min(shares) >= 0.8 if recognised else max(shares) <= 0.2
    assert len({one.class_name for one in examples(table, pictures, recognised=False)}) > 1


def test_two_of_five_votes_are_no_clear_no():
    items = results_of(
        study(), votes_of({"m/1": "ccddd", "m/2": "cdddd", "m/3": "cccdd", "m/4": "ccccd"})
    ).items
    digests = {"original": items["image_id"], "reconstruction": items["item"]}
    pictures = pd.DataFrame({"item": items["item"], **digests})
    shown = {
        recognised: [one.original for one in examples(items, pictures, recognised=recognised)]
        for recognised in (True, False)
    }
    assert shown == {True: ["4"], False: ["2"]}


def test_detection_is_said_only_of_pairs():
    assert "here none can" in shown(full(), "detection")[1]
    pairs = results_of(study(Task.PAIR), votes_of({"m/1": "c"}, kind="reconstruction"))
    assert "decoys" in shown(pairs, "detection")[1]


# ------------------------------------------------------------------ trials, views and models


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
def no_votes():
    return results_of(study(catch_rate=0.1, set_aside=2), votes_of({}))


@cache
def pairs():
    votes = [
        vote("m/1", "Al", "same"),
        vote("n/1", "Al", "different"),
        trial("catch", "Al", "same", "different"),
    ]
    return results_of(study(Task.PAIR), table(votes))


@pytest.mark.parametrize("results", [trials, plain, no_votes, pairs])
def test_no_tab_shows_what_is_not_a_number(results):
    text = "".join("".join(shown(results(), tab)) for tab in TABS)
    assert "nan" not in str(Page(text)).lower()


def test_known_answers_and_the_bias_they_show():
    text = str(Page(results_page.checks(trials())))
    for words in (
        "p0 catch, clear original 2 / 4 no interval: 4 trials, fewer than 6",
        "p0 catch, noise 1 / 2 no interval: 2 trials, fewer than 6",
        "p0 gold 1 / 1 no interval: 1 trial, fewer than 6",
        "p0 25% (no interval: 4 trials, fewer than 6) 50% (no interval: 2 trials, fewer than 6)",
    ):
        assert words in text


def test_repeats_of_one_and_of_all():
    text = str(Page(results_page.repeats(trials())))
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
        Page(results_view.annotators(no_votes()))
    )


def test_who_is_excluded_keeps_a_row_for_their_trials():
    votes = with_trials()
    votes.loc[(votes["annotator"] == "p0") & (votes["status"] == "counted"), "status"] = "excluded"
    text = str(Page(results_view.annotators(results_of(study(), votes))))
    assert "p0 0 – – – of 0 – – (no vote counts) – 50% 50% 100% 1.00 p1" in text


def test_what_is_not_in_a_study_is_said_in_words():
    text = results_page.checks(plain())
    assert "No catch trials or gold items in this study" in text
    assert "No repeats in this study" in text
    assert "No catch trials have been answered yet" in results_page.checks(no_votes())
    assert "no repeat has been answered yet" in results_page.checks(no_votes())
    assert results_page.carry_over(no_votes()) == ""


def test_pairs_have_no_none():
    text = str(Page(results_page.checks(pairs())))
    assert "catch, different 0 / 1" in text
    assert "none" not in text.lower().replace("none of these trials", "")


def test_views_have_rates_or_a_word_on_why_not():
    text = str(Page(results_page.carry_over(plain())))
    assert "Views View Votes" not in text
    assert "1 100 20" in text
    assert "3 100 20" in text
    once = results_of(study(), votes_of({"m/1": "cc", "m/2": "dd"}))
    assert "nothing can carry over" in results_page.carry_over(once)


def test_models_and_what_is_not_settled():
    votes = random_votes(missing=0.3)
    found = results_of(study(), votes)
    text = str(Page(results_page.reliability(found) + results_page.unsettled(found)))
    people = found.reliability.people.iloc[0]
    assert f"p0 {people['n_votes']} {people['one_coin']:.0%} {people['full']:.0%}" in text
    assert f"{len(found.reliability.disagreements)} of {found.reliability.n_compared}" in text
    assert f"no majority yet {found.open_questions['too_few']}" in text
    assert "all votes are equal" in results_page.reliability(
        results_of(study(), votes_of({"m/1": "ccc"}))
    )


def test_items_without_a_name_for_their_original_have_a_row_where_that_decides():
    by_names = study(label_originals=True, headline="as-original-named")
    counts = {**plain().open_questions, "unnamed": 7}
    found = replace(plain(), study=by_names, open_questions=counts)
    text = str(Page(results_page.unsettled(found)))
    assert "No name for its original that most agree on 7" in text
    assert "No name" not in results_page.unsettled(plain())


def test_every_text_from_people_is_escaped():
    rows = [
        {**row, "annotator": NASTY, "model": NASTY, "image_id": f"{NASTY}{row['image_id']}"}
        for row in with_trials().query("annotator == 'p0'").to_dict("records")
    ]
    nasty = results_of(replace(study(), name=NASTY), table(rows))
    page = Page("".join("".join(shown(nasty, tab)) for tab in TABS))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert NASTY in str(page)


def timed(votes):
    """The votes with a time each, in the order of their rows."""
    return votes.assign(
        server_ts=pd.date_range("2026-03-01", periods=len(votes), freq="s", tz="UTC")
    )


def standing(votes=None, **spec):
    votes = timed(random_votes().sample(frac=1, random_state=0)) if votes is None else votes
    return str(Page(results_page.standstill(results_of(study(**spec), votes))))


def test_a_ranking_stands_still_or_not_and_the_rule_of_the_study_is_met_or_not():
    """Sixty pictures, five votes each: a look each 15 votes."""
    found = results_of(study(), timed(random_votes().sample(frac=1, random_state=0))).standstill
    names, watch = found
    assert names == ("m0", "m1", "m2")
    assert watch.votes.tolist() == list(range(15, 301, 15))
    assert "This study has no rule for an early end" in standing()
    quiet = int(watch.quiet[-1])
    assert (f"since vote {watch.since:,}, for {quiet} look" in standing()) == bool(quiet)
    most = int(watch.quiet.max())
    assert most > 0
    met = f"{most} quiet look{'s' * (most > 1)} in a row, was met at vote {watch.met(most)}"
    assert met in standing(quiet_looks=most)
    assert f"is not met: so far {quiet}" in standing(quiet_looks=most + 1)


def test_votes_without_times_or_too_few_of_them_do_not_stand_still():
    assert "do not have the times" in standing(random_votes())
    assert "the first look, one each 5% of the votes asked for, has not come" in standing(
        timed(votes_of({"m0/1": "c"}))
    )


@pytest.mark.parametrize(
    ("bands", "words"),
    [
        ([[1, 1], [1, 1]], "No: the look at vote 20 separates no two models."),
        ([[1, 2]], "Not known yet: vote 10 was the first look."),
        ([[1, 2], [2, 1]], "No: the look at vote 20 found other bands than the one before."),
        ([[1, 2], [1, 2]], "It has not changed since vote 10, for 1 look, one each 5% of"),
    ],
)
def test_the_sentence_is_true_of_the_last_look(bands, words):
    watch = Standstill(votes=10 * np.arange(1, len(bands) + 1), bands=np.array(bands))
    found = replace(full(), standstill=(("m0", "m1"), watch))
    assert words in str(Page(results_page.standstill(found)))


def test_names_of_models_in_one_band_are_told_apart():
    names = tuple(f"cnn4:activation=silu/none/{attack}" for attack in ("prior", "invgrad"))
    watch = Standstill(votes=np.array([10]), bands=np.array([[1, 1]]))
    shown = str(Page(results_page.standstill(replace(full(), standstill=(names, watch)))))
    assert "small smooth net, no defence, our attack; small smooth net, no defence" in shown
