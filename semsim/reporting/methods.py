"""The methods text of a report: what was measured, how, and where each method comes from."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

import pandas as pd

from semsim.analysis.agreement import EXACT_UP_TO
from semsim.analysis.evidence import Ratings
from semsim.analysis.human import rules_of_votes, title_of
from semsim.analysis.model_intervals import FEWEST
from semsim.analysis.resampling import FEWEST_BOOTSTRAPPED
from semsim.analysis.result import Analysis
from semsim.base.intervals import RULE
from semsim.errors import UnknownNameError
from semsim.metrics import find_metric
from semsim.metrics.base import MetricSpec, settings_of
from semsim.reporting.tables import Table
from semsim.words import counted

SIMULATED = "Simulated votes: not human data. The numbers below say nothing about people."
SOURCES = (
    "Kendall 1945, The treatment of ties in ranking problems, Biometrika 33 (τ-b).",
    "Bonett and Wright 2000, Sample size requirements for estimating Pearson, Kendall and "
    "Spearman correlations, Psychometrika 65.",
    "Esscher 1924, On a method of determining correlation from the ranks of the variates, "
    "Skandinavisk Aktuarietidskrift 7.",
    "Kendall and Gibbons 1990, Rank Correlation Methods, Arnold (continuity of τ).",
    "Zou 2007, Toward using confidence intervals to compare correlations, Psychological Methods "
    "12.",
    "Phipson and Smyth 2010, Permutation p-values should never be zero, Statistical Applications "
    "in Genetics and Molecular Biology 9.",
    "Efron and Tibshirani 1993, An Introduction to the Bootstrap, Chapman and Hall.",
    "Wilson 1927, Probable inference, the law of succession, and statistical inference, Journal of "
    "the American Statistical Association 22.",
    "Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of "
    "Statistics 6.",
    "Dawid and Skene 1979, Maximum likelihood estimation of observer error-rates using the EM "
    "algorithm, Applied Statistics 28.",
    "Hanley and McNeil 1982, The meaning and use of the area under a receiver operating "
    "characteristic curve, Radiology 143.",
    "Brown, Cai and DasGupta 2001, Interval estimation for a binomial proportion, Statistical "
    "Science 16.",
    "Franco, Little, Louis and Slud 2019, Comparative study of confidence intervals for "
    "proportions in complex sample surveys, Journal of Survey Statistics and Methodology 7.",
)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an analysis comes from, as far as it is known.

    protocol: the human score the study's protocol fixed. collection: how votes were collected.
    weights: sha256 of the weight files that were used, by file. versions: of the software.
    """

    protocol: str | None = None
    collection: str = ""
    weights: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: analysis_versions())


def analysis_versions() -> dict[str, str]:
    """Versions of what computes the statistics and draws the figures."""
    names = ("numpy", "scipy", "pandas", "matplotlib")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def warnings(analysis: Analysis, origin: Origin) -> list[str]:
    """What a reader must know before any number, the worst first."""
    said = [SIMULATED] if analysis.evidence.simulated else []
    headline = analysis.settings.headline
    if origin.protocol is not None and origin.protocol != headline:
        said.append(
            f"The protocol fixed the human score '{title_of(analysis.evidence, origin.protocol)}'; "
            f"this analysis departs from it and ranks by '{analysis.score_title}'."
        )
    return [*said, *analysis.notes]


def facts(analysis: Analysis) -> dict[str, str]:
    """The study in numbers, by what they count."""
    evidence = analysis.evidence
    images, sizes = evidence.images, _sizes(analysis)
    given = ", ".join(evidence.given) or "none"
    return {
        "Study": evidence.name,
        "Votes by": "programs (simulated)" if evidence.simulated else "people",
        "Reconstructions": str(sizes["reconstruction"]),
        "Originals": str(sizes["original"]),
        "Models": str(sizes["model"]),
        "Data sets": ", ".join(sorted(images["dataset"].astype(str).unique())),
        "Attacks": ", ".join(sorted(images["attack"].astype(str).unique())),
        "Annotators": str(sizes["annotator"]),
        "Counted votes": str(sizes["counted vote"]),
        "Votes asked for each reconstruction": str(evidence.votes_per_item),
        "Answers 'none'": str(int(evidence.none.values.sum())),
        "Labels that came with the data": given,
        "Human score": analysis.score_title,
        "Metrics": ", ".join(spec.title for spec in analysis.specs) or "none",
    }


def _sizes(analysis: Analysis) -> dict[str, int]:
    """How many there are of what, by the noun for one."""
    evidence = analysis.evidence
    return {
        "reconstruction": len(evidence.images),
        "original": len(evidence.images[["dataset", "image_id"]].drop_duplicates()),
        "model": len(analysis.models),
        "annotator": len(evidence.annotators),
        "counted vote": len(evidence.recognised),
    }


def sections(analysis: Analysis, origin: Origin) -> list[tuple[str, list[str]]]:
    """The methods text: headings, each with its paragraphs."""
    return [
        ("Votes", _votes(analysis, origin)),
        ("Human score", _human_score(analysis)),
        ("Agreement over models", _agreement(analysis)),
        ("Human ceiling", _ceiling(analysis)),
        ("Single images", _images(analysis)),
        ("Chance and seeds", _chance(analysis)),
    ]


def metric_table(analysis: Analysis) -> Table:
    """What each metric is: direction, unit of judgement, reference image, every setting."""
    rows = [_metric_row(spec) for spec in analysis.specs]
    columns = ["Metric", "Name", "More leakage", "Judges", "Compared with", "Settings"]
    cells = pd.DataFrame(rows, columns=columns)
    return Table(
        name="metrics",
        title="The metrics and their settings",
        caption=(
            "Compared with: the clean original, or the attacked image, which training may have "
            "shifted, mirrored or changed before the attack saw its gradient."
        ),
        frame=cells,
        cells=cells,
    )


def _metric_row(spec: MetricSpec) -> list[str]:
    try:
        settings = json.dumps(settings_of(find_metric(spec.name)), sort_keys=True, default=str)
    except UnknownNameError:
        settings = "not known: the values came with the scores"
    return [
        f"{spec.title} ({spec.unit})" if spec.unit else spec.title,
        spec.name,
        "higher" if spec.higher_means_more_leakage else "lower",
        "each image" if spec.per_image else "a whole set",
        "attacked image" if spec.reference == "attacked" else "clean original",
        "defaults" if settings == "{}" else settings,
    ]


def _votes(analysis: Analysis, origin: Origin) -> list[str]:
    words = {noun: counted(n, noun) for noun, n in _sizes(analysis).items()}
    asked = counted(analysis.evidence.votes_per_item, "vote was", "votes were")
    seen = int((analysis.evidence.recognised.counts > 0).sum())
    some = "" if seen == len(analysis.evidence.images) else f"{seen:,} of "
    said = (
        f"{words['annotator']} gave {words['counted vote']} on {some}{words['reconstruction']} of "
        f"{words['original']} by {words['model']}; {asked} asked for each. A vote recognises a "
        "reconstruction when it names the true class, or, in the pair task, calls original and "
        f"reconstruction the same. {_rated(analysis.evidence.ratings)}Superseded, surplus and "
        "excluded votes and decoys are not counted."
    )
    return [said, origin.collection] if origin.collection else [said]


def _rated(ratings: Ratings | None) -> str:
    if ratings is None:
        return ""
    return (
        f"Here votes are ratings of how much of the original can be made out, from 1 to "
        f"{ratings.levels:g}; one recognises a reconstruction from {ratings.threshold:g} on, and "
        "all together do when their mean is at or above that threshold. "
    )


def _human_score(analysis: Analysis) -> list[str]:
    headline = analysis.settings.headline
    rules = rules_of_votes(analysis.evidence)
    meanings = [
        f"'{rules[name].title}' is {rules[name].meaning}"
        if name in rules
        else f"'{name}' is a label that came with the data"
        for name in dict.fromkeys([headline, *analysis.rules["rule"]])
    ]
    return [
        f"The human score of an image is '{analysis.score_title}'. The score of a model is the "
        f"mean over its images that have one; undecided images are left out and counted. {RULE}",
        f"{'; '.join(meanings)}.",
    ]


def _agreement(analysis: Analysis) -> list[str]:
    boots, shuffles = analysis.settings.bootstraps, analysis.settings.permutations
    return [
        "A metric's value of a model is its mean over the images with a human score; infinite "
        "values (a perfect PSNR) are left out of the mean and counted. A metric of sets has one "
        "value a model. The sign of a metric whose lower values mean more leakage is turned, so "
        "that a positive correlation agrees with people.",
        "Agreement is Spearman's ρ (average ranks for ties) and Kendall's τ-b over models, given "
        f"signed and absolute. p values are two-sided: up to {EXACT_UP_TO} models from all "
        f"permutations of the models (exact), above from {shuffles} random ones (Monte Carlo, "
        "after Phipson and Smyth, so that p is never 0). A metric or "
        "a human score that is the same for all models has no correlation and is called "
        "undefined.",
        "Intervals of ρ and τ are at 95 % and over models: the models are a sample of those that "
        "might have been studied. Of ρ: Fisher's z with the variance of Bonett and Wright; where "
        "|ρ| is 1, or with ties above the next ρ, of one swap of neighbours, the interval of that "
        "one, up to 1. Of τ: every value from which the one seen is at most 1.96 standard errors "
        "away, with Esscher's variance at that value and a correction for continuity. Both need at "
        "least "
        f"{FEWEST} models, take models to be independent, and in simulations of normal scores hold "
        "the true value at least 93 % of the time from there on. The file of the table also has "
        f"percentiles of {boots} bootstraps over models, from {FEWEST_BOOTSTRAPPED} models on: "
        "with fewer they hold it too rarely.",
        f"How steady a ranking is under other images is shown by where 95 % of {boots} cluster "
        "bootstraps over originals lie; they keep all reconstructions of one together and draw "
        "within each data set, and the annotators stay the same. That range is no confidence "
        "interval: every resample adds noise to what has noise, so it lies too near 0. Resamples "
        "that give no ranking are left out and counted, and where all give the same number there "
        "is no range. The leave-one-out range drops each model in turn, the table of backbones "
        "every model of one architecture: models that share one are not independent.",
        "Two metrics are compared by the difference of their ρ over the same models. The null "
        "hypothesis is that among all models of the kind studied both are correlated with people "
        "alike. The 95 % interval is Zou's, of the two intervals after Bonett and Wright and the "
        "correlation of the two ρ, of which (n − 4) / n is counted because n models estimate it "
        "badly; p is the level at which the interval just reaches 0. The p values of all pairs are "
        "corrected after Holm, which holds however the pairs depend on each other.",
    ]


def _ceiling(analysis: Analysis) -> list[str]:
    if analysis.ceiling.undefined is not None:
        return [f"Undefined: {analysis.ceiling.undefined}."]
    first, second = analysis.ceiling.sizes
    return [
        f"The {analysis.ceiling.n_annotators} annotators are split into {first} and {second}; the "
        "models are ranked by the mean response of either group over the images both have judged, "
        "and the two rankings are correlated. The ceiling is the "
        f"mean over {analysis.ceiling.n_splits} splits, its interval the one over models that a "
        "single split would have, which is rather too wide for a mean. A metric that reaches it "
        "agrees with people as well as people with each other; as either group has fewer votes "
        "than all annotators together, a metric compared with all of them may come out a little "
        "above."
    ]


def _images(analysis: Analysis) -> list[str]:
    rated = analysis.evidence.ratings is not None
    of_ratings = (
        " Of ratings, the correlation of single images is Spearman's ρ of a metric with the mean "
        "rating over all images that have both, with the same kind of interval."
    )
    return [
        f"The binary label of an image is {analysis.label_words}. AUC is the probability that a "
        "metric puts a recognised image above one that was not (ties count one half): pooled over "
        "all images, and as the mean over the models, or over the originals, that have images of "
        "both kinds, so that a metric gains nothing by telling models or originals apart. "
        f"Intervals are made as those of models.{of_ratings if rated else ''}",
        "In the gallery, images are ordered by the metric and by the "
        f"{analysis.evidence.response_words}, both as rank shares from 0 (leaks least) to 1 (leaks "
        "most); the images with the widest gap are shown, at most one of an original each way.",
    ]


def _chance(analysis: Analysis) -> list[str]:
    settings = analysis.settings
    return [
        f"{settings.bootstraps} bootstraps and {settings.permutations} permutations, drawn from "
        f"NumPy's default generator with seed {settings.seed}: the same data and settings give "
        "the same numbers."
    ]
