"""The one rule for intervals: below six units there is none, whoever prints it, and it says why."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_leaks import made_images
from made_tables import made_tables

from annotation.tasks.pair import Pair
from annotation.votes.aggregate import ballots_of
from annotation.votes.agreement import Coding, agreement_table, pair_table, pairs_of
from annotation.votes.annotators import carry_over_table, check_table, none_bias_table, repeat_table
from annotation.votes.rates import DETECTION_KINDS, detection_table, rate_table, whole_rate
from benchmarks.coverage import rated_votes, votes_table
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.stats.intervals import FEWEST, too_few
from semsim.base.stats.roc import auc_differences, picture_agreement
from semsim.learning.evaluation import human_auc
from semsim.metrics.inception import kernel_distance
from semsim.papers.ensembler_sentences import sentence_verdicts
from semsim.sets.no_attack_baseline import Count
from semsim.sets.recognition import Recognised
from semsim.systems.federated.settings import REFERENCE
from semsim.systems.federated.verdict import ArmPictures, over_seeds, scored
from semsim.systems.split.summary import verdict

ROOT = Path(__file__).resolve().parents[2]
DRAW = np.random.default_rng(0)

# What an interval is made of, and where the product may use it: file, name → what it is there.
SOURCES = {
    ("semsim/base/stats/intervals.py", "stdtrit"): "the rule",
    ("semsim/base/stats/intervals.py", "ndtri"): "the rule",
    ("semsim/base/stats/intervals.py", "gammaincinv"): "the rule",
    ("annotation/votes/rates.py", "ndtri"): "d′ is a difference of quantiles",
    ("annotation/votes/rates.py", "percentile"): "a range of ranks, from six originals on",
    ("semsim/base/stats/resampling.py", "percentile"): "a range of resamples",
    ("semsim/targets/imprint.py", "quantile"): "thresholds of a layer",
    ("semsim/reporting/figures.py", "percentile"): "a box of the data themselves",
    ("annotation/design/workload.py", "quantile"): "a range of simulated studies",
}
MADE_OF = {
    *("ppf", "isf", "stdtrit", "ndtri", "gammaincinv", "sem", "confidence_interval"),
    *("percentile", "nanpercentile", "quantile", "nanquantile", "proportion_confint"),
    *("errorbar", "yerr", "xerr", "bootstrap"),
}
# Modules that make intervals by the rule, each held below by what it prints.
MAKERS = {
    *("annotation.votes.agreement", "annotation.votes.rates", "annotation.votes.annotators"),
    *("annotation.votes.rates", "annotation.votes.aggregate", "annotation.ui.results"),
    *(
        f"semsim.base.stats.{name}"
        for name in ("agreement", "ceiling", "correlation", "measures", "roc")
    ),
    *(
        "semsim.systems.federated.verdict",
        "semsim.systems.federated.summary",
        "semsim.systems.split.summary",
    ),
    "semsim.papers.ensembler_sentences",
    "semsim.papers.threats",
    "semsim.sets.recognition",
    "semsim.sets.no_attack_baseline",
}
WORDS = {"RULE", "FEWEST", "left_out"}  # importing these alone makes no interval


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the product in which there is anything to find: to parse all takes seconds."""
    files = [*ROOT.glob("semsim/**/*.py"), *ROOT.glob("annotation/**/*.py"), ROOT / "app.py"]
    some = re.compile(rf"\b(?:{'|'.join(MADE_OF)}|intervals)\b|1\.[69]")
    texts = {str(one.relative_to(ROOT)): one.read_text("utf-8") for one in files}
    return {file: ast.parse(text) for file, text in texts.items() if some.search(text)}


def used(tree: ast.Module) -> Iterator[str]:
    """Names that are called, imported or given as arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg


def test_no_other_file_of_the_product_makes_an_interval():
    found = {(file, name) for file, tree in trees().items() for name in used(tree)}
    assert {one for one in found if one[1] in MADE_OF} == set(SOURCES)


def test_no_file_has_a_quantile_of_the_normal_distribution_of_its_own():
    typed = {
        (file, node.value)
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
        if 1.959 < node.value < 1.961 or 1.644 < node.value < 1.646
    }
    assert typed == set()


def test_every_module_that_makes_intervals_is_known():
    found = {
        file.removesuffix(".py").replace("/", ".")
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "semsim.base.stats.intervals"
        if not {one.name for one in node.names} <= WORDS
    }
    assert found == MAKERS


def ends_of(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns that hold ends of intervals."""
    marks = ("low", "high")
    return {name: table[name].to_numpy(float) for name in table if str(name).endswith(marks)}


def of_votes(n: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table of Results that has intervals, of a study of n originals or trials."""
    said = DRAW.binomial(5, 0.4, (n, 4))
    said[0], said[-1] = 1, 4  # so that no number is stuck at 0 or 1
    votes = votes_table(said, DRAW)
    made = ballots_of(votes, DRAW)
    yield "rates", rate_table(made, 5)
    yield "rate of all models", pd.DataFrame([whole_rate(made, 5)], columns=["rate", "low", "high"])
    pairs = pairs_of(made, Coding.RECOGNISED)
    yield "agreement", agreement_table(made, [pairs])
    yield "pairs of annotators", pair_table(made, pairs)
    yield "carry-over", carry_over_table(votes)
    decoys = votes.assign(kind="decoy", item="decoy " + votes["item"])
    shown = ballots_of(pd.concat([votes, decoys]), DRAW, kinds=DETECTION_KINDS)
    found = detection_table(shown)
    yield "d′", found[found["of"] != "stratum"]
    rated = ballots_of(rated_votes(DRAW.integers(1, 6, (n, 4, 5))), DRAW)
    yield "mean ratings", rate_table(rated, 5)
    yield "agreement of ratings", agreement_table(rated, [pairs_of(rated, Coding.ANSWER)])
    first = votes[(votes["model"] == "m0") & (votes["annotator"] == "p0")]
    trials = first.assign(status="quality", expected="same")
    kind = Pair()
    yield "known answers", check_table(trials.assign(kind="catch"), kind)
    yield "none of a clear original", none_bias_table(trials.assign(kind="catch"), kind)
    yield "repeats", repeat_table(pd.concat([first, trials.assign(kind="repeat")]), kind)


def of_metrics(models: int, originals: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table of Compare that has intervals."""
    specs = [
        MetricSpec(name=name, title=name, higher_means_more_leakage=True, per_image=True)
        for name in ("psnr", "mine")
    ]
    votes, scores = made_tables(models, originals)
    evidence = gather(votes, scores[scores["metric"] != "set"], specs)
    settings = AnalysisSettings(bootstraps=20, permutations=20)
    found = analyse(evidence, specs, settings)
    yield "agreement", found.agreement
    yield "differences", found.differences
    yield "ceiling", pd.DataFrame([asdict(found.ceiling)])
    yield "models", found.models
    yield "AUC", found.auc
    yield "stability", found.stability
    yield "pictures", picture_agreement(evidence, specs, settings.headline)
    yield "differences of AUC", auc_differences(specs[0], specs[1:], evidence, settings.headline)
    yield "one annotator's AUC", pd.DataFrame(human_auc(evidence).values())


OVER_MODELS = {"agreement", "differences", "ceiling"}


@pytest.mark.parametrize("n", [1, 2, FEWEST - 1])
def test_results_of_fewer_than_six_units_have_no_interval(n):
    for name, table in of_votes(n):
        assert all(np.isnan(ends).all() for ends in ends_of(table).values()), name
        reasons = table.get("reason", pd.Series(dtype=object))
        few = reasons[reasons.astype(str).str.startswith("no interval")]
        assert set(few) <= {too_few(n)}, name


def test_results_of_six_units_have_intervals():
    for name, table in of_votes(FEWEST):
        if name == "none of a clear original":  # which no pair task asks for
            assert table.empty
        else:
            assert any(np.isfinite(ends).any() for ends in ends_of(table).values()), name


@pytest.mark.parametrize("n", [3, FEWEST - 1])
def test_comparisons_of_fewer_than_six_originals_or_models_have_no_interval(n):
    for name, table in of_metrics(8, n):
        ends = ends_of(table)
        if name in OVER_MODELS:
            ends = {key: one for key, one in ends.items() if "images" in key}
        assert all(np.isnan(one).all() for one in ends.values()), name
    for name, table in of_metrics(n, 12):
        if name in OVER_MODELS:
            ends = {key: one for key, one in ends_of(table).items() if "images" not in key}
            assert all(np.isnan(one).all() for one in ends.values()), name
            assert set(table["interval_undefined"]) == {too_few(n, "model")}, name


def test_comparisons_of_six_originals_and_models_have_intervals():
    found, larger = dict(of_metrics(FEWEST, FEWEST)), dict(of_metrics(FEWEST, 4 * FEWEST))
    alone = "one annotator's AUC"  # of six originals somebody recognises fewer than six
    for name, table in {**found, alone: larger[alone]}.items():
        ends = {key: one for key, one in ends_of(table).items() if "models" not in key}
        assert any(np.isfinite(one).any() for one in ends.values()), name


def split_words(n: int) -> str:
    rows = [
        {
            **{"network": "a", "defence": defence, "defence_seed": seed, "accuracy": 1.0},
            **{"change": 0.0, "valid": True, "attack": "x", "body": -1, "attack_seed": 0},
            **{"ssim": DRAW.random(), "psnr": DRAW.random(), "recognised": 0.0},
            **{"shadow_accuracy": 0.5, "worse_than_grey": False},
            **{"clearer": 1, "by_shapes": 0, "judged": 2},
        }
        for defence in ("none", "single")
        for seed in range(n)
    ]
    return verdict(pd.DataFrame(rows), "single", "none", "x")


def sentence_words(n: int) -> str:
    rows = [
        {"defence": one, "attack": "x", "content": DRAW.random(), "defence_seed": seed}
        for one in ("none", "single")
        for seed in range(n)
    ]
    return " ".join(sentence_verdicts(rows, {"blind": {"content": 0.1}}))


def federated_words(n: int) -> str:
    originals = made_images(n, side=16).images
    arms = [
        ArmPictures(arm=arm, pictures=tuple(share * originals), gradient_difference=None)
        for arm, share in ((REFERENCE, 0.9), ("uplink", 0.6))
    ]
    score = scored(arms, originals)[1]
    return f" ± {score.margin}" if np.isfinite(score.margin) else str(score.no_interval)


def seed_words(n: int) -> str:
    originals = made_images(2, side=16).images
    runs = [
        scored(
            [
                ArmPictures(arm=arm, pictures=tuple(share * originals), gradient_difference=None)
                for arm, share in ((REFERENCE, 0.9), ("uplink", 0.6 + seed / 50))
            ],
            originals,
        )
        for seed in range(n)
    ]
    score = over_seeds(runs)[1]
    return f" ± {score.margin}" if np.isfinite(score.margin) else str(score.no_interval)


def kernel_words(n: int) -> str:
    error = kernel_distance(DRAW.normal(size=(n, 3)), DRAW.normal(size=(n, 3))).standard_error
    return "" if error is None else f" ± {error}"


@pytest.mark.parametrize(
    ("words", "noun"),
    [
        (split_words, "system"),
        (sentence_words, "system"),
        (federated_words, "picture"),
        (seed_words, "seed"),
        (kernel_words, None),
    ],
)
def test_of_systems_seeds_and_pictures_as_well(words: Callable[[int], str], noun: str | None):
    few, enough = words(FEWEST - 1), words(FEWEST)
    assert "±" not in few
    assert "±" in enough
    assert "no interval" not in enough
    if noun:
        assert too_few(FEWEST - 1, noun) in few


@pytest.mark.parametrize(
    "words",
    [
        lambda n: Recognised(n - 1, 0, n, n, n).words(),
        lambda n: Recognised(3 * n - 1, 0, 3 * n, 3 * n, n).words(),
        lambda n: Count(n - 1, 0, n).words,
        lambda n: Count(3 * n - 1, 0, 3 * n, n).words,
    ],
)
def test_shares_that_lead_the_lab_have_intervals_over_originals(words: Callable[[int], str]):
    few = too_few(FEWEST - 1)
    assert few
    assert few in words(FEWEST - 1)
    assert re.search(r", \d+% \[\d+, \d+\]", words(FEWEST))


def test_pictures_of_one_original_are_one_trial():
    """Three attacks on each of six originals say no more than six, whatever they give back."""
    assert Recognised(9, 0, 18, 18, 6).words().partition("(")[0].endswith("50% [14, 86] ")
