"""The methods text of a report: what was measured, how, and where each method comes from."""

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

import pandas as pd

from semsim.base.columns import ATTACKER
from semsim.base.errors import UnknownNameError
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.agreement import EXACT_UP_TO
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.intervals import FEWEST, RULE
from semsim.base.stats.resampling import FEWEST_BOOTSTRAPPED
from semsim.base.stats.verdict import rules_of_votes, title_of
from semsim.base.words import capital, counted, jury_words
from semsim.metrics import find_metric
from semsim.metrics.base import settings_of
from semsim.reporting.tables import Table
from semsim.reporting.writing import TEMPLATES

_BY_PROGRAMS = "{}: not human data. The numbers below are no evidence about people."


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of an analysis, as far as it is known.

    Attributes:
        protocol: The human score the study's protocol fixed.
        collection: How votes were collected.
        weights: Sha256 of the weight files that were used, by file.
        versions: Of the software.
    """

    protocol: str | None = None
    collection: str = ""
    weights: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: analysis_versions())


def analysis_versions() -> dict[str, str]:
    """Versions of what computes the statistics and draws the figures."""
    names = ("numpy", "scipy", "pandas", "matplotlib")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def by_programs(evidence: Evidence) -> str:
    """Return the warning that programs voted; "" where people did."""
    mark = evidence.mark
    said = [_BY_PROGRAMS.format(capital(mark)), *([] if evidence.model else [jury_words()])]
    return " ".join(said) if mark else ""


def warnings(analysis: Analysis, origin: Origin) -> list[str]:
    """Return the warnings that a reader must know before any number, the worst first."""
    said = [by_programs(analysis.evidence)] if analysis.evidence.simulated else []
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
    images, sizes, by = evidence.images, _sizes(analysis), evidence.model or "simulated"
    given = ", ".join(evidence.given) or "none"
    known = sorted({*images.get(ATTACKER, pd.Series(dtype=str)).dropna()})
    return {
        "Study": evidence.name,
        "Votes by": f"programs ({by})" if evidence.simulated else "people",
        "Reconstructions": str(sizes["reconstruction"]),
        "Originals": str(sizes["original"]),
        "Models": str(sizes["model"]),
        "Data sets": ", ".join(sorted(images["dataset"].astype(str).unique())),
        "Attacks": ", ".join(sorted(images["attack"].astype(str).unique())),
        **({"Attackers": "; ".join(known)} if known else {}),
        "Annotators": str(sizes["annotator"]),
        "Counted votes": str(sizes["counted vote"]),
        "Votes asked for each reconstruction": str(evidence.votes_per_item),
        "Answers 'none'": str(int(evidence.none.values.sum())),
        "Labels that came with the data": given,
        "Human score": analysis.score_title,
        "Metrics": ", ".join(spec.title for spec in analysis.specs) or "none",
    }


def _sizes(analysis: Analysis) -> dict[str, int]:
    """Return the counts of an analysis, by the noun for one of each."""
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
    evidence, settings = analysis.evidence, analysis.settings
    seen, images = int((evidence.recognised.counts > 0).sum()), len(evidence.images)
    text = TEMPLATES.get_template("methods.txt.jinja").render(
        words={noun: counted(n, noun) for noun, n in _sizes(analysis).items()},
        asked=counted(evidence.votes_per_item, "vote was", "votes were"),
        some="" if seen == images else f"{seen:,} of ",
        ratings=evidence.ratings,
        has_votes=evidence.has_votes,
        errors=settings.headline in evidence.given_errors,
        score_title=analysis.score_title,
        rule=RULE,
        meanings=_meanings(analysis),
        settings=settings,
        exact_up_to=EXACT_UP_TO,
        fewest=FEWEST,
        fewest_bootstrapped=FEWEST_BOOTSTRAPPED,
        ceiling=analysis.ceiling,
        label_words=analysis.label_words,
        response_words=evidence.response_words,
    )
    parts = re.split("^## (.*)$", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    found = [(head, body.strip().split("\n\n")) for head, body in pairs]
    found[0][1].extend([origin.collection] if origin.collection else [])
    return found


def _meanings(analysis: Analysis) -> list[str]:
    """Explain what each shown human score says of an image."""
    rules = rules_of_votes(analysis.evidence)
    names = dict.fromkeys([analysis.settings.headline, *analysis.rules["rule"]])
    return [
        f"'{rules[name].title}' is {rules[name].meaning}"
        if name in rules
        else f"'{name}' is a label that came with the data"
        for name in names
    ]


def metric_table(analysis: Analysis) -> Table:
    """Return the table of metrics: direction, unit of judgement, reference image, every setting."""
    rows = [_metric_row(spec) for spec in analysis.specs]
    columns = ["Metric", "Name", "More leakage", "Unit", "Compared with", "Settings"]
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
