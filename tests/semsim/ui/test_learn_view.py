"""What the page Train SemSim draws from plain values."""

from dataclasses import replace
from pathlib import Path

import pytest

from semsim.base.jobs.folders import JobState
from semsim.learning.splits import HoldOut, SplitCounts
from semsim.learning.triplets import Inventory, JudgedOriginal
from semsim.ui.learn_view import (
    TrainingRow,
    auc_chart,
    charts,
    distance_chart,
    loss_chart,
    result_html,
    split_html,
    stock_html,
    trainings_html,
    verdict_html,
    when,
)

SIZES = ("n_images", "n_originals", "n_models")
EVIL = "<script>alert(1)</script>"
DEMO = {"s1": "The demo"}
SCOPES = {"pooled": {"auc": 0.81, "low": 0.7, "high": 0.9}}
TEST = {
    **{"n_images": 24, "n_originals": 8, "n_models": 3, "left_out": {"lpips": "no <file>; there"}},
    **{"sample": "held-out", "loss": "pooled", "against": [], "absent": {}},
    **{"moved": True, "shuffled": None, "scale_differs": []},
    "metrics": [
        {
            **{"metric": "semsim:mine", "title": "SemSim", "auc": SCOPES},
            **{"rho": 0.5, "rho_low": None, "rho_high": None},
            **{"tau": None, "tau_low": None, "tau_high": None},
        }
    ],
}
JUDGED = {
    "split": {"hold_out": "architecture=net", "words": "the architecture net"},
    "held_out": TEST,
    "in_sample": {**TEST, "n_images": 48},
}
RESULT = {
    "name": "mine",
    "study": "The demo",
    "checkpoint": "/there/mine.safetensors",
    "simulated": False,
    "n_triplets": 162,
    "n_originals": 19,
    "epochs": 40,
    "warnings": [],
    "results": {"validation_accuracy": 0.914, "n_held_out": 5.0},
    "settings": {
        "patience": 0,
        "loss": "pooled",
        "weights": "scratch",
        "backbone": "lenet",
        "seed": 7,
    },
    **JUDGED,
}


def original(image_id, plus=2, minus=3):
    return JudgedOriginal(
        dataset="symbols",
        image_id=image_id,
        image=Path("o.png"),
        recognisable=(Path("p.png"),) * plus,
        unrecognisable=(Path("n.png"),) * minus,
        undecided=0,
    )


def stock(usable=(), plus=(), minus=(), undecided=()):
    return Inventory(
        usable=tuple(usable),
        only_recognisable=tuple(plus),
        only_unrecognisable=tuple(minus),
        undecided=tuple(undecided),
    )


def batch(epoch, loss):
    return {"epoch": epoch, "loss": loss}


def end(epoch, **values):
    return {"epoch": epoch, **values}


def row(**changes):
    facts = {"name": "mine", "study": "Demo", "simulated": False}
    state = {"created": "2026-01-31T14:05:59+00:00", "state": JobState.DONE, "result": RESULT}
    return TrainingRow(**{**facts, **state, **changes})


def test_counts_and_what_is_missing_are_in_plain_words():
    html = stock_html(
        stock(usable=[original("1"), original("2")], plus=[original("cat 7")]), simulated=False
    )
    assert "2 of 3 originals" in html
    assert "12 triplets" in html
    assert "1 has no unrecognisable reconstruction: cat 7" in html
    assert "no recognisable" not in html
    assert "simulated" not in html


def test_a_long_list_of_originals_is_cut_and_counted():
    html = stock_html(stock(undecided=[original(f"img{i}") for i in range(20)]), simulated=False)
    assert "20 have no reconstruction on which a majority agrees" in html
    assert "img11 and 8 more" in html


def test_nothing_usable_says_what_to_do():
    html = stock_html(stock(minus=[original("1")]), simulated=False)
    assert "0 of 1 original" in html
    assert "Collect more votes" in html


@pytest.mark.parametrize(
    "html",
    [
        stock_html(stock(usable=[original("1")]), simulated=True),
        result_html({**RESULT, "simulated": True}, DEMO),
        trainings_html([row(simulated=True)]),
    ],
)
def test_simulated_votes_are_marked_everywhere(html):
    assert ">simulated</span>" in html


def test_votes_of_people_are_not_marked():
    assert "simulated" not in result_html(RESULT, DEMO)
    assert "simulated" not in trainings_html([row()])


def test_a_result_says_how_good_it_is_where_it_is_and_what_next():
    html = result_html(RESULT, DEMO)
    assert "5 originals kept out of training" in html
    assert "<strong>91%</strong>" in html
    assert "/there/mine.safetensors" in html
    assert 'href="compare?study=s1&amp;semsim=mine">Use it in Compare</a>' in html


def test_originals_that_chose_the_epoch_are_no_test():
    html = result_html({**RESULT, "settings": {**RESULT["settings"], "patience": 10}}, DEMO)
    assert "On 5 originals that chose the epoch (no test)" in html
    assert "kept out of training" not in html


def test_a_training_on_several_studies_links_to_each():
    html = result_html(RESULT, {"s1": "The <demo>", "s2": "More"})
    assert 'href="compare?study=s1&amp;semsim=mine">The &lt;demo&gt;</a>' in html
    assert 'href="compare?study=s2&amp;semsim=mine">More</a>' in html


def test_a_training_on_a_study_that_is_gone_still_links_to_compare():
    assert 'href="compare?semsim=mine">' in result_html(RESULT, {})


def test_a_result_without_validation_claims_nothing_of_it():
    html = result_html({**RESULT, "results": {"loss": 0.0, "n_held_out": 0.0}}, DEMO)
    assert "kept out of training" not in html


def test_a_warning_of_the_training_is_shown():
    html = result_html({**RESULT, "warnings": ["The features collapsed"]}, DEMO)
    assert 'role="alert"' in html
    assert "The features collapsed" in html


@pytest.mark.parametrize(
    "html",
    [
        stock_html(stock(plus=[original(EVIL)]), simulated=False),
        result_html({**RESULT, "name": EVIL, "checkpoint": EVIL, "warnings": [EVIL]}, DEMO),
        trainings_html([row(name=EVIL, study=EVIL)]),
    ],
)
def test_nothing_a_person_wrote_becomes_html(html):
    assert "<script" not in html
    assert "&lt;script" in html


def test_the_list_shows_each_training_in_words():
    html = trainings_html(
        [
            row(name="b", state=JobState.RUNNING, result={}),
            row(name="a", result={**RESULT, "warnings": ["x"]}),
            row(name="c", state=JobState.LOST, result={}),
        ]
    )
    assert html.index(">b<") < html.index(">a ⚠<") < html.index(">c<")
    assert "2026-01-31 14:05" in html
    assert html.count(">0.81<") == 1
    assert ">architecture=net<" in html
    assert "interrupted, can be resumed" in html
    assert html.count("<tr>") == 4


def test_no_training_yet_is_said():
    assert "No SemSim has been trained" in trainings_html([])


def test_a_control_that_was_not_run_is_told_in_the_list():
    held_out = JUDGED["held_out"]
    quick = held_out | {"absent": {"shuffled": "not run, since it takes much longer"}}
    assert "not run" in trainings_html([row(result=RESULT | {"held_out": quick})])
    assert "not run" not in trainings_html([row(result=RESULT)])


def test_the_loss_curve_is_that_of_the_batches():
    (curve,) = loss_chart([batch(0.5, 2.0), batch(1.5, 1.0)]).curves
    assert list(curve.x) == [0.5, 1.5]
    assert list(curve.y) == [2.0, 1.0]


def test_distances_are_drawn_for_training_and_held_out():
    ends = [
        end(1, d_plus=1.0, d_minus=2.0, validation_d_plus=90.0, validation_d_minus=91.0),
        end(2, d_plus=1.5, d_minus=4.0, validation_d_plus=1.2, validation_d_minus=5.0),
    ]
    chart = distance_chart(ends)
    assert [list(curve.y) for curve in chart.curves] == [[1, 1.5], [2, 4], [90, 1.2], [91, 5]]
    # The held-out distances of the first epoch would flatten the rest.
    assert chart.highest == pytest.approx(5.75)


def test_auc_is_drawn_of_the_epochs_that_have_one():
    ends = [
        end(1, d_plus=1.0, d_minus=2.0),
        end(2, d_plus=1.0, d_minus=2.0, validation_auc=0.75),
    ]
    (curve,) = auc_chart(ends).curves
    assert (list(curve.x), list(curve.y)) == ([2], [0.75])


def test_what_leaked_is_warm_and_what_stayed_private_cool():
    values = {"d_plus": 1.0, "d_minus": 2.0, "validation_d_plus": 1.0, "validation_d_minus": 2.0}
    ends = [end(1, **values, validation_auc=0.75)]
    drawn = [curve.colour for curve in distance_chart(ends).curves]
    assert drawn == ["leaked", "private", "leaked", "private"]
    courses = [loss_chart([batch(0.5, 1.0)]).curves[0].colour, auc_chart(ends).curves[0].colour]
    assert not {"leaked", "private"} & set(courses)


def test_without_held_out_originals_two_curves_are_left():
    assert len(distance_chart([end(1, d_plus=1.0, d_minus=2.0)]).curves) == 2


def test_before_the_first_report_the_figures_are_empty():
    assert not distance_chart([]).curves
    assert not loss_chart([]).curves[0].x


def test_times_are_short():
    assert when("2026-01-31T14:05:59+00:00") == "2026-01-31 14:05"


def test_a_judged_result_shows_what_it_has_not_seen_before_what_it_has():
    html = result_html(RESULT, DEMO)
    assert "0.81 [0.70, 0.90]" in html
    assert html.index("Held out: the architecture net") < html.index("on the training set")
    assert "24 reconstructions of 8 originals by 3 models" in html
    assert "lpips is left out: no &lt;file&gt;<" in html


def test_a_split_says_what_is_missing():
    usable = stock(usable=[original("1")])
    counts = SplitCounts(
        training=usable,
        n_test_originals=8,
        n_test_models=3,
        recognisable=10,
        unrecognisable=14,
        unused=72,
        lacking=("12 originals have no <unrecognisable> reconstruction",),
    )
    html = split_html(counts, HoldOut(kind="architecture", value="<net>"), "Takes 7 min.")
    assert "6 triplets of 1 original" in html
    assert "10 recognisable and 14 unrecognisable" in html
    assert "12 originals have no &lt;unrecognisable&gt; reconstruction" in html
    assert "&lt;net&gt;" in html
    assert "<p>Takes 7 min.</p>" in html
    assert "are less than the paper&#39;s smallest study had" in html


def test_a_result_says_how_it_learned_and_what_counts_in_the_baseline():
    results = {"weight of pixels": 0.5, "weight of structure": 1.5, "n_pairs": 31.0}
    settings = {"loss": "triplet", "backbone": "lenet", "weights": "scratch", "seed": 7}
    judged = {
        "sample": "held-out",
        "metrics": [],
        "left_out": {},
        "absent": {},
        "scale_differs": [],
        **dict.fromkeys(SIZES, 3),
    }
    split = {"words": "originals it has not seen"}
    made = {**RESULT, "results": results, "settings": settings, "split": split}
    html = result_html({**made, "held_out": judged, "in_sample": judged}, DEMO)
    assert "The calibrated baseline: 2 weights, fitted to 31 pairs" in html
    assert "pixels 25% (weight 0.50), structure 75% (weight 1.50)" in html
    learned = "An untrained LeNet of seed 7, learned by the triplet loss from 162 triplets"
    assert learned in html
    assert "calibrated baseline" not in result_html(RESULT, DEMO)


def test_a_single_epoch_has_no_curve():
    alone = [end(1, d_plus=1.0, d_minus=2.0)]
    assert charts({"batches": [], "ends": alone}) == []
    more = [*alone, end(2, d_plus=1.0, d_minus=2.0)]
    titles = [one.title for one in charts({"batches": [batch(0.5, 2.0)], "ends": more})]
    assert titles == ["Mean distance to the original"]  # one point is no curve
    several = {"batches": [batch(0.5, 2.0), batch(1, 1.0)], "ends": []}
    assert [one.y for one in charts(several)] == ["loss"]


def test_the_verdict_is_a_sentence_and_then_the_rest():
    html = verdict_html(RESULT)
    assert html.startswith('<p class="st-lead learn-verdict">')


def test_the_promoted_one_is_marked():
    html = trainings_html([replace(row(name="a"), promoted=True), row(name="b")])
    assert html.count("★") == 1
    assert "a ★" in html
