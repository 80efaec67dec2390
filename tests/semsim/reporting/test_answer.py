"""The sentence with the answer says what is so, and when it is not so, that."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_analysis import empty_analysis, made_analysis

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.ceiling import Ceiling
from semsim.reporting.answer import answer_of, remarks_of

TITLES = {"a": "Alpha", "b": "Beta", "c": "Gamma", "d": "Delta", "e": "Epsilon", "f": "Zeta"}


def spec_of(name: str, title: str) -> MetricSpec:
    return MetricSpec(name=name, title=title, higher_means_more_leakage=True, per_image=True)


def analysis(rhos, p=None, low=0.2, **changes):
    """An analysis with these ρ; p: of each metric's difference from the first, after Holm."""
    full = made_analysis(14)
    rows = [
        {"metric": name, "title": TITLES.get(name, name), "n": 14, "rho": rho, "rho_bw_low": low}
        for name, rho in rhos.items()
    ]
    best = next(iter(rhos))
    pairs = [
        {"metric_a": name, "metric_b": best, "difference": -0.1, "p_holm": one}
        for name, one in (p or {}).items()
    ]
    return replace(
        full,
        agreement=pd.DataFrame(rows).assign(mark="", rho_bw_high=0.99, undefined=None),
        differences=pd.DataFrame(pairs, columns=["metric_a", "metric_b", "difference", "p_holm"]),
        **{"order": full.order[:0], **changes},
    )


def test_what_is_decided_and_what_is_not_and_what_people_reach():
    found = answer_of(analysis({"a": 0.95, "b": 0.91, "c": 0.6}, {"b": 0.4, "c": 0.01}))
    assert found.text == (
        "Alpha ranks the 14 models most like people do (ρ 0.95; human ceiling 0.90). "
        "Its lead over Beta is not significant (14 models); over Gamma it is. "
        "Next comes Beta, 0.04 behind (ρ 0.91)."
    )
    assert found.best == "a"
    assert ("Alpha", True) in found.lead
    assert ("not significant", True) in found.lead


NEXT = " Next comes Beta, 0.04 behind (ρ 0.91)."


@pytest.mark.parametrize(
    ("p", "said"),
    [
        ({"b": 0.3, "c": 0.2}, "Its lead over the other 2 is not significant (14 models)."),
        ({"b": 0.01, "c": 0.02}, "Its lead over every other metric is significant."),
        ({"b": np.nan, "c": np.nan}, "0.90)."),
    ],
)
def test_all_or_nothing_is_decided(p, said):
    assert answer_of(analysis({"a": 0.95, "b": 0.91, "c": 0.6}, p)).text.endswith(f"{said}{NEXT}")


def test_many_metrics_are_counted():
    others = dict(zip("bcdef", (0.9, 0.8, 0.7, 0.6, 0.5), strict=True))
    p = {"b": 0.3, "c": 0.3, "d": 0.3, "e": 0.3, "f": 0.3, "g": 0.01}
    said = answer_of(analysis({"a": 0.95, **others, "g": 0.1}, p)).text
    assert "over Beta, Gamma, Delta and 2 more is not significant" in said


def test_a_tie_names_all_who_are_best():
    said = answer_of(analysis({"a": 0.95, "b": 0.95})).text
    assert said.startswith("Alpha and Beta rank the 14 models most like people do")


def test_a_difference_that_points_the_other_way_decides_no_lead():
    """Alpha has scores of fewer models, and on those Beta is ahead of it."""
    found = analysis({"a": 0.95, "b": 0.6}, {"b": 0.001})
    found = replace(
        found,
        agreement=found.agreement.assign(n=[12, 20]),
        differences=found.differences.assign(difference=0.15),
    )
    said = answer_of(found).text
    assert "Its lead over Beta is not significant (12 models)." in said
    assert said.endswith("Next comes Beta (ρ 0.60, of 20 models).")


@pytest.mark.parametrize(("p", "said"), [(0.3, "not significant"), (0.01, "significant")])
def test_of_several_that_share_the_top_each_must_be_ahead(p, said):
    found = analysis({"a": 0.95, "b": 0.95, "c": 0.6}, {"c": 0.001})
    of_b = {"metric_a": "b", "metric_b": "c", "difference": 0.1, "p_holm": p}
    found = replace(found, differences=pd.concat([found.differences, pd.DataFrame([of_b])]))
    assert f"Their lead over Gamma is {said}" in answer_of(found).text


def test_what_chance_could_do_is_no_answer():
    said = answer_of(analysis({"a": 0.4}, low=-0.1)).text
    assert "Alpha comes nearest to how people rank the 14 models (ρ 0.40 [−0.10, 0.99]" in said
    assert "which is not significant." in said


def test_where_no_metric_agrees_that_is_said():
    said = answer_of(analysis({"a": -0.2, "b": -0.5})).text
    assert said.startswith("No metric ranks the 14 models as people do: the best of 2, Alpha,")


def test_simulated_votes_are_no_people():
    found = answer_of(
        replace(analysis({"a": 0.95}), evidence=made_analysis(simulated=True).evidence)
    )
    assert "like simulated annotators do" in found.text
    assert "people" not in found.text
    assert "nothing here is about people" in found.beside[0]


def test_without_a_ceiling_or_a_ranking_the_reason_is_said():
    found = answer_of(analysis({"a": 0.95}, ceiling=Ceiling(undefined="1 annotator")))
    assert "themselves" not in found.text
    assert found.beside == ("How well people agree among themselves is not known: 1 annotator.",)
    rows = {
        "metric": "a",
        "title": "Alpha",
        "mark": "",
        "n": 2,
        "rho": np.nan,
        "undefined": "2 models",
    }
    short = replace(analysis({"a": 0.9}), agreement=pd.DataFrame([rows]))
    assert answer_of(short).text == "No metric can be compared with people yet: 2 models."
    assert answer_of(empty_analysis()).text.startswith("No metric has scores yet")


def test_a_semsim_is_judged_by_its_controls_which_are_no_candidates():
    rhos = {"semsim:x.start": 0.99, "a": 0.9, "semsim:x": 0.8}
    specs = (spec_of("semsim:x", "SemSim (x)"), spec_of("a", "Alpha"))
    notes = ("SemSim (x): It does not beat its initial weights.", "Something else.")
    found = answer_of(analysis(rhos, specs=specs, notes=notes))
    assert found.best == "a"
    assert found.beside == ("SemSim (x): It does not beat its initial weights.",)
    assert remarks_of(analysis(rhos, specs=specs, notes=notes), specs[1]) == []


def test_what_has_a_mark_is_named_with_it_and_leads_nothing():
    found = analysis({"semsim:x": 0.99, "a": 0.9, "b": 0.4})
    marks = {"semsim:x": "trained on 4 of these 6"}
    table = found.agreement.assign(mark=found.agreement["metric"].map(marks).fillna(""))
    table.loc[0, "title"] = "SemSim (x) [trained on 4 of these 6]"
    found = replace(found, agreement=table)
    said = answer_of(found)
    assert said.best == "a"
    assert "SemSim" not in said.text
    assert "Not in the lead: SemSim (x) [trained on 4 of these 6]." in said.beside
    alone = answer_of(replace(found, agreement=table.iloc[:1]))
    assert alone.text == "No metric can be judged by these votes."
    assert "Not in the lead: SemSim (x) [trained on 4 of these 6]." in alone.beside


def ordered(soft, p_holm, p_models=0.4, tied=None):
    """The tables on these models: soft accuracy and band by metric, p of the first two."""
    rows = [
        {"metric": name, "title": TITLES[name], "soft_accuracy": one, "band": band}
        for name, (one, band) in soft.items()
    ]
    order = pd.DataFrame(rows).assign(n_models=14, n_originals=600)
    order = order.assign(tied_accuracy=order["metric"].map(tied or {}), ties_alone=0.4)
    pair = {"metric_a": "b", "metric_b": "a", "p_holm": p_holm, "p_models": p_models}
    return {"order": order, "leads": pd.DataFrame([pair])}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            ordered({"a": (0.7041, 1), "b": (0.7012, 2)}, 0.002),
            "Alpha orders them best (soft pairwise accuracy 0.704, next 0.701; p = 0.002); on "
            "other models it may not (p = 0.400).",
        ),
        (
            ordered({"a": (0.81, 1), "b": (0.7, 2)}, 0.002),
            "Alpha orders them best (soft pairwise accuracy 0.81, next 0.70; p = 0.002); on "
            "other models it may not (p = 0.400).",
        ),
        (
            ordered({"a": (0.81, 1), "b": (0.7, 2)}, 0.0001, 0.01),
            "Alpha orders them best (soft pairwise accuracy 0.81, next 0.70; p < 0.001); so it "
            "would on others (p = 0.010).",
        ),
        (
            ordered({"a": (0.81, 1), "b": (0.80, 1)}, 0.9),
            "no metric orders them better than another (soft pairwise accuracy 0.81 to 0.80).",
        ),
        (
            ordered({"a": (0.81, 1), "b": (0.80, 1), "c": (0.6, 3)}, 0.9),
            "Alpha and Beta order them alike well (soft pairwise accuracy 0.81 to 0.80).",
        ),
    ],
)
def test_these_models_and_others_are_two_questions(tables, said):
    text = answer_of(analysis({"a": 0.95, "b": 0.91, "c": 0.2}, {"b": 0.4}, **tables)).text
    assert text.endswith(f" On these 14 models and 600 originals, {said}")


SOFT = {"a": (0.81, 1), "b": (0.7, 2)}


@pytest.mark.parametrize(
    ("tied", "said"),
    [
        ({"a": 0.5, "b": 0.62}, ["Pictures of one original are ordered best by Beta"]),
        ({"a": 0.62, "b": 0.5}, []),  # best at both
        ({"a": 0.3, "b": 0.4}, []),  # no better than calling all equal
        ({}, []),
    ],
)
def test_the_best_within_originals_is_named_where_it_is_not_the_best_over_models(tied, said):
    found = analysis({"a": 0.95, "b": 0.91}, {"b": 0.4}, **ordered(SOFT, 0.002, tied=tied))
    beside = [one for one in answer_of(found).beside if one.startswith("Pictures of one")]
    assert [one.split(" (")[0] for one in beside] == said
    assert all("0.62; calling all equal 0.40" in one for one in beside)
    assert all(one.endswith("which over models has rank 2 of 2.") for one in beside)


def test_the_lead_over_models_is_corrected_for_all_pairs():
    tables = ordered({"a": (0.81, 1), "b": (0.7, 2), "c": (0.6, 2)}, 0.0001, 0.02)
    others = [{"metric_a": "a", "metric_b": "c"}, {"metric_a": "b", "metric_b": "c"}]
    rows = pd.DataFrame(others).assign(p_holm=0.5, p_models=0.5)
    tables["leads"] = pd.concat([tables["leads"], rows], ignore_index=True)
    text = answer_of(analysis({"a": 0.95, "b": 0.91, "c": 0.2}, {"b": 0.4}, **tables)).text
    assert text.endswith("on other models it may not (p = 0.060).")
