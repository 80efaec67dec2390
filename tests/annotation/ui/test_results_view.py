"""What the Results page says, from votes made here."""

import csv
import io
from dataclasses import replace
from functools import cache
from html import unescape

import numpy as np
import pandas as pd
import pytest
from made_ballots import random_votes, table, vote, votes_of
from made_results import NASTY, Page, empty, full, results_of, study

from annotation.design.candidates import CandidateList, list_facts
from annotation.domain import TargetTest
from annotation.formats.plain import as_csv
from annotation.spec import Task
from annotation.tasks.kind import Scale
from annotation.ui import results as results_page
from annotation.ui import results_view
from annotation.ui.results import TABS
from semsim.reporting.glossary import glossary


def pair_votes():
    kinds, draw = ("reconstruction", "reconstruction", "decoy"), np.random.default_rng(0)
    return table(
        vote(
            f"m/{n}", who, str(draw.choice(["same", "different"])), kind=kinds[n % 3], stratum=n % 4
        )
        for n in range(30)
        for who in ("Al", "Bea", "Carl")
    )


@cache
def pairs():
    return results_of(study(Task.PAIR, n_items=30, n_decoys=10, votes_per_item=3), pair_votes())


LISTS = list_facts(
    [
        CandidateList(classes=("a", "x"), true_position=0, true_rank=1, forced=False),
        CandidateList(classes=("b", "x"), true_position=0, true_rank=1, forced=False),
    ]
)


SECTIONS = (
    *(lambda results, tab=tab: "".join(results_page.shown(results, tab)) for tab in TABS),
    results_view.confusions,
)


def test_the_facts_count_what_has_been_collected():
    text = results_view.facts(full())
    for words in ("300 votes of 5 annotators", "60 of 60 reconstructions seen"):
        assert words in text
    assert "60 with all 5 votes" in text
    assert "Votes are still missing" not in str(results_view.remarks(full()))


@pytest.mark.parametrize("simulated", [True, False])
def test_every_table_of_simulated_votes_says_so_row_by_row(simulated):
    spec = replace(pairs().study.spec, simulated=simulated)
    results = replace(pairs(), study=replace(pairs().study, spec=spec))
    for name, frame in results_view.tables(results).items():
        again = pd.read_csv(io.StringIO(as_csv(frame)))
        assert ("simulated" in again and again["simulated"].all()) == simulated, name


def test_few_items_and_missing_votes_are_said():
    assert "3 of 3 models have fewer than 100 decided items" in str(results_view.remarks(full()))
    more = replace(full(), study=study(n_items=61))
    assert "Votes are still missing" in str(results_view.remarks(more))


def test_decoys_are_not_missing_from_the_rates():
    assert "20 of 20 reconstructions seen" in results_view.facts(pairs())
    assert "Votes are still missing" not in str(results_view.remarks(pairs()))


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("results", [full, pairs, empty])
def test_no_section_shows_what_is_not_a_number(section, results):
    text = str(Page(section(results())))
    assert "nan" not in text.lower()
    assert "None [" not in text


def test_rates_have_intervals_and_ranks_ranges():
    text = str(Page(results_view.rates(full())))
    row = full().rates.iloc[0]
    assert f"{row['model']} not kept {row['rate']:.0%} [{100 * row['rate_low']:.0f}, " in text
    assert "20 / 20" in text
    assert f"1 ({row['rank_low']:g} to {row['rank_high']:g})" in text


def test_each_model_says_how_good_its_target_is():
    tests = {"m": TargetTest(accuracy=0.71, n_classes=47, chance=1 / 47, at_chance=False)}
    seen = votes_of({f"m/{n}": "ddd" for n in range(24)})
    text = str(Page(results_view.rates(results_of(study(targets=tests), seen))))
    assert "m 71% right (chance 2%) 0%" in text
    two = pd.concat(
        [seen, seen.assign(attack="prior", item="again " + seen["item"])], ignore_index=True
    )
    text = str(Page(results_view.rates(results_of(study(targets=tests), two))))
    assert text.count("71% right (chance 2%) 0%") == 2


def test_each_model_says_who_attacked_where_that_is_known():
    seen = votes_of({f"m/{n}": "ddd" for n in range(24)})
    assert "Attacker" not in str(Page(results_view.rates(results_of(study(), seen))))
    known = {"m": TargetTest(attacker="B · 1 of 4 parameters (25%)")}
    text = str(Page(results_view.rates(results_of(study(targets=known), seen))))
    assert "m not kept B · 1 of 4 parameters (25%) 0%" in text


def test_a_rate_of_nothing_is_not_certain_and_the_note_says_how():
    nobody = results_of(study(), votes_of({f"m/{n}": "ddd" for n in range(24)}))
    text = str(Page(results_view.rates(nobody)))
    assert "m not kept 0% [0, 15] 0% [0, 15] 24 / 24" in text
    assert "Wilson's score interval" in text


def test_agreement_is_a_row_a_statistic_and_a_column_a_coding():
    page = Page(results_view.agreement(full()))
    assert len([tag for tag, _ in page.tags if tag == "tr"]) == 5
    for words in ("Answers", "Recognised or not", "None or not", "Krippendorff's α", "60 items"):
        assert words in str(page)
    assert "None or not" not in results_view.agreement(pairs())


def test_reasons_stand_below_the_table_once():
    text = results_view.agreement(results_of(study(), random_votes(missing=0.3)))
    assert unescape(text).count("Fleiss' κ needs the same number of votes") == 1
    assert "–" in text


def test_annotators_of_pairs_have_no_none():
    assert "None" in results_view.annotators(full())
    assert "None" not in results_view.annotators(pairs())


def test_detection_is_for_pairs():
    assert results_view.detection(full()) == ""
    text = str(Page(results_view.detection(pairs())))
    for words in ("all votes", "annotator: Al", "model: m", "stratum: 3", "d′", "/ 10"):
        assert words in text


def test_what_programs_tell_apart_is_not_said_of_people():
    assert results_page.detection_answer(pairs()).startswith("People ")
    simulated = replace(pairs(), study=replace(pairs().study, spec=study(simulated=True).spec))
    assert results_page.detection_answer(simulated).startswith("Simulated annotators ")


def test_intervals_by_variance_are_marked():
    sure = table(
        vote(f"m/{n}", "Al", "different" if n % 2 else "same", kind=kind)
        for n, kind in enumerate(["reconstruction", "decoy"] * 10)
    )
    marked = results_view.detection(results_of(study(Task.PAIR), sure))
    assert "]*" in marked
    assert "]*" not in results_view.detection(pairs())


def test_confusions_name_what_is_taken_for_what():
    found = results_of(study(), votes_of({"m/1": "ddd", "m/2": "cnn"}))
    text = str(Page(results_view.confusions(found)))
    assert "cat dog 3 50%" in text
    assert "decoy" in results_view.confusions(pairs())


def test_every_text_from_people_is_escaped():
    rows = [{**row, "annotator": NASTY, "model": NASTY, "class_name": NASTY, "answer": NASTY}
            for row in random_votes(annotators=1).to_dict("records")]  # fmt: skip
    nasty = results_of(replace(study(), name=NASTY), table(rows))
    page = Page("".join(section(nasty) for section in SECTIONS))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert NASTY in str(page)


def test_downloads_are_the_tables():
    found = results_view.tables(pairs())
    assert list(found)[-1] == "signal-detection"
    content = as_csv(found["rates"])
    assert list(pd.read_csv(io.StringIO(content)).columns) == list(pairs().rates.columns)
    assert "decoy,same," in as_csv(found["confusion"])


@cache
def named_alike():
    """The tables of a study whose people, models, classes and answers all begin with `NAME`."""
    rows = [
        {**row, "annotator": f"{NAME}{row['annotator']}", "model": f"{NAME}{row['model']}",
         "class_name": NAME, "answer": NAME}
        for row in random_votes(originals=12).to_dict("records")
    ]  # fmt: skip
    return results_view.tables(results_of(study(), table(rows)))


NAME = "named alike"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_command_to_a_spreadsheet(start):
    nasty = f"{start}cmd"
    found = [one.replace(NAME, nasty, regex=True) for one in named_alike().values()]
    contents = [
        as_csv(one.rename(columns=lambda name: str(name).replace(NAME, nasty))) for one in found
    ]
    cells = [cell for text in contents for row in csv.reader(io.StringIO(text, newline=""))
             for cell in row]  # fmt: skip
    assert [cell for cell in cells if cell.startswith(nasty)] == []
    assert len([cell for cell in cells if cell.startswith(f"'{nasty}")]) > 20


def test_an_interval_is_a_place_on_a_line():
    page = results_view.rates(full())
    row = full().rates.iloc[0]
    assert f"--low:{row['rate_low']:.4g}" in page
    assert f"--at:{row['rate']:.4g}" in page
    assert "--guess" not in page
    on_scale = results_view.interval(3.0, 2.0, 4.0, Scale(levels=5, threshold=3.0))
    assert on_scale == (0.5, 0.25, 0.75)
    assert results_view.interval(0.5, float("nan"), float("nan")) == (0.5, 0.5, 0.5)
    assert results_view.interval(float("nan"), 0, 1) == results_view.DASH


def test_a_line_stands_where_somebody_is_who_sees_only_the_lists():
    page = results_view.rates(replace(full(), lists=LISTS))
    assert page.count("--guess:1.0") == len(full().rates)
    assert "guessing from the lists (100.0%)" in page


def test_a_table_of_shares_is_darker_where_there_is_more():
    shares = pd.DataFrame({"cat": [0.75, np.nan], "<b>": [0.25, 1.0]}, index=["cat", "dog"])
    page = results_view.heat("Answers", shares, "{:.0%}")
    assert page.count("--heat") == 3
    assert 'style="--heat:0.75">75%<' in page
    assert "&lt;b&gt;" in page
    square = results_view.heat("Pairs", shares.set_axis(["cat", "dog"], axis=1), "{:.2f}")
    assert "1 · cat" in square
    assert '<th scope="col">2</th>' in square


def test_words_a_student_cannot_know_are_in_the_glossary():
    assert set(results_view.TERMS.values()) <= set(glossary())
    page = results_view.agreement(full())
    assert 'data-term="alpha">Krippendorff&#39;s α<' in page
    assert 'data-term="target model">Target on its test<' in results_view.rates(full())


def test_a_name_that_tells_its_attack_tells_it_once():
    assert results_view.shown_name("a/none/prior · prior") == "a/none/prior"
    assert results_view.shown_name("a/none · prior") == "a/none · prior"
    assert results_view.shown_name("plain") == "plain"


def test_numbers_are_short_and_missing_ones_a_dash():
    nan = float("nan")
    assert results_view.number(-0.414, -0.5, 0.123) == "−0.41 [−0.50, 0.12]"
    assert results_view.number(0.4, nan, nan) == "0.40"
    assert results_view.number(nan, 0, 1) == "–"
    assert results_view.percent(0.726, 0.7, 0.766) == "73% [70, 77]"
    assert results_view.percent(0.726) == "73%"
    assert results_view.percent(nan) == "–"


def test_the_rule_of_the_originals_name_is_said_where_it_holds():
    named = study(headline="as-original-named", label_originals=True)
    votes = random_votes().assign(headline="as-original-named", original_answer="c")
    assert "if more than half" in results_view.rates(results_of(named, votes))
    assert "if more than half" not in results_view.rates(full())
