"""Content of the Results page, as pure functions of `Results`. Every text is escaped."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotation.spec import HeadlineRule
from annotation.study.results import Results
from annotation.tasks.kind import Scale
from annotation.texts import agreeing, counted
from annotation.votes.aggregate import BOOTSTRAPS
from annotation.votes.agreement import Coding
from annotation.votes.annotators import NOT_ANSWERED
from annotation.votes.rates import likely_confusions
from annotation.web.templates import fill
from semsim.base.plain_names import plain_name
from semsim.base.stats.intervals import RULE
from semsim.base.words import percent

MODERATE = 100  # decided items: with fewer, the interval of a rate of one half exceeds ± 10 points
DASH = "–"
MOST_CLASSES = 12  # up to which all answers to all are shown
_MEANS = {"mean_response": "Mean response", "mean_rating": "Mean rating"}
_CODINGS = {
    Coding.ANSWER: "Answers",
    Coding.RECOGNISED: "Recognised or not",
    Coding.NONE: "None or not",
}
# What a table or a part of it is called → the word that the glossary explains it by.
TERMS = {
    **dict.fromkeys(
        ("Fleiss' κ", "mean Cohen's κ", "mean weighted κ", "Every two people"), "kappa"
    ),
    "Every two simulated annotators": "kappa",
    **dict.fromkeys(("Mean κ", "Cohen's κ", "Repeat κ"), "kappa"),
    **dict.fromkeys(("Krippendorff's α", "Krippendorff's ordinal α"), "alpha"),
    **{"Target on its test": "target model", "τ without": "tau", "Gold": "gold item"},
    **{
        "Known answers": "gold item",
        "Repeats": "blind repeat",
        "Guessing from the lists": "no-image baseline",
    },
    **{"Carry-over between views": "carry-over", "d′ [95%]": "d prime", "Band": "band"},
    "Attacker": "attacker",
}
# Column of trials → the setting that asks for them.
_RATES = {
    "clear_accuracy": "catch_rate",
    "nothing_accuracy": "catch_rate",
    "gold_accuracy": "gold_rate",
    "repeat_kappa": "repeat_rate",
}


class Range(NamedTuple):
    """Positions of a value and of the ends of its interval on a line from 0 to 1."""

    at: float
    low: float
    high: float


Cell = str | Range


def facts(results: Results) -> str:
    """Return a line on how much has been collected."""
    study = results.study
    found = [
        f"{counted(results.n_votes, 'vote')} of {counted(results.n_people, 'annotator')}",
        f"{results.n_items:,} of {counted(study.n_reconstructions, 'reconstruction')} seen",
        f"{results.n_full:,} with all {counted(study.spec.votes_per_item, 'vote')}",
        f"{results.n_items - results.n_decided:,} undecided",
    ]
    return " · ".join(found)


def remarks(results: Results) -> list[str]:
    """Return what a reader has to know before they believe any share."""
    found = []
    if results.n_full < results.study.n_reconstructions:
        found.append(
            "Votes are still missing. Rates are of decided items, and items on which people agree "
            "are decided first, so they can still move by more than their intervals."
        )
    few = int((results.rates["n_decided"] < MODERATE).sum())
    if few:
        found.append(
            f"{few} of {counted(len(results.rates), 'model')} {agreeing(few, 'has', 'have')} fewer "
            f"than {MODERATE} decided items: margin of error above ±10 points near 50%."
        )
    return found


def rates(results: Results) -> str:
    """Rates and ranks of models."""
    kind = results.study.kind
    mean = "mean_rating" if kind.scale else "mean_response"
    shown = number if kind.scale else percent
    by = mean if kind.scale else "rate"
    attackers = any(test.attacker for test in results.study.targets.values())
    rows = [
        (
            shown_name(row["model"]),
            results.study.target_of(row["model"]).text,
            *((results.study.target_of(row["model"]).attacker or "–",) if attackers else ()),
            interval(row[by], row[f"{by}_low"], row[f"{by}_high"], kind.scale),
            percent(row["rate"], row["rate_low"], row["rate_high"]) + why(row["reason"]),
            shown(row[mean], row[f"{mean}_low"], row[f"{mean}_high"]),
            f"{row['n_decided']:,} / {row['n_items']:,}",
            _rank(row),
        )
        for row in results.rates.to_dict("records")
    ]
    heads = (
        "Model",
        "Target on its test",
        *(("Attacker",) if attackers else ()),
        _MEANS[by] if kind.scale else "Recognised",
        f"{kind.decides.capitalize()} recognised",
        _MEANS[mean],
        "Decided / seen",
        "Rank (95%)",
    )
    note = (
        "Models at chance are little evidence about trained ones. "
        "Rank 1 leaks most; the range of a rank holds 95% of those in "
        f"{BOOTSTRAPS:,} resamples of the originals. {RULE}"
    )
    note += "".join(f" Items are {term}." for term in kind.terms[:2])
    if results.study.spec.headline is HeadlineRule.AS_ORIGINAL_NAMED:
        note += (
            " By the protocol, an answer counts as recognised if more than half of the votes on "
            "the original gave it; without such a majority, items are undecided."
        )
    guess = None if results.lists is None or kind.scale else results.lists.most.rate
    if guess is not None:
        note += f" Dotted line: guessing from the lists ({guess:.1%})."
    return section("Recognised, by model", grid("Rates", heads, rows, guess=guess), note)


def shown_name(model: str) -> str:
    """A model's name without its attack behind it where the name says so itself."""
    name, _, attack = model.rpartition(" · ")
    return name if name.endswith(f"/{attack}") else model


def told_name(model: str) -> str:
    """A model's name in a sentence: in words where it has some."""
    return plain_name(shown_name(model))


def interval(at: float, low: float, high: float, scale: Scale | None = None) -> Range | str:
    """A value with its interval on a line that is as long as all values there are."""
    if pd.isna(at):
        return DASH
    least, most = (1.0, float(scale.levels)) if scale else (0.0, 1.0)
    ends = (at if pd.isna(end) else end for end in (low, high))
    places = ((one - least) / (most - least) for one in (at, *ends))
    return Range(*(round(float(one), 4) for one in places))


def agreement(results: Results) -> str:
    """Agreement beyond chance: a row for each statistic, a column for each coding."""
    table = results.agreement
    codings = list(table["coding"].unique())
    rows = []
    for statistic, found in table.groupby("statistic", sort=False):
        of = {row["coding"]: row for row in found.to_dict("records")}
        cells = (of.get(coding) for coding in codings)
        rows.append(
            (
                str(statistic),
                *(number(c["value"], c["low"], c["high"]) if c else DASH for c in cells),
            )
        )
    heads = ("Statistic [95%]", *(_CODINGS[Coding(coding)] for coding in codings))
    n = int(table["n_items"].max())
    note = (
        f"Of {counted(n, 'item')} with at least two votes. 0 is chance, 1 perfect agreement. "
        f"Raw agreement is a share of pairs of votes. {RULE}"
    )
    missing = table[table["reason"] != ""].groupby("reason", sort=False)["statistic"].unique()
    reasons = [f" {', '.join(names)}: {reason}." for reason, names in missing.items()]
    shown = grid("Agreement", heads, rows)
    return section("Agreement between annotators", shown, note + "".join(reasons))


def annotators(results: Results) -> str:
    """Each annotator beside the others."""
    kind, absent = results.study.kind, _absent(results)
    rows = [
        (
            row["annotator"],
            f"{row['n_votes']:,}",
            DASH if pd.isna(row["median_rt_ms"]) else f"{row['median_rt_ms'] / 1000:.1f} s",
            *((percent(row["none_rate"]),) if kind.has_none else ()),
            percent(row["agreement"]) + f" of {row['n_compared']:,}",
            number(row["mean_kappa"]),
            number(row["tau_without"]) + why(row["reason"]),
            _moved(row["largest_change"], kind.scale),
            *_trials(row, absent),
        )
        for row in results.annotators.to_dict("records")
    ]
    heads = ["Annotator", "Votes", "Median time", *(("None",) if kind.has_none else ())]
    heads += ["With the others' majority", "Mean κ", "τ without", "Largest change"]
    of_trials = (*(head for head, _ in kind.caught), "Gold", "Repeat κ")
    names = dict(zip(_RATES, of_trials, strict=True))
    heads += [words for column, words in names.items() if column not in absent]
    note = (
        "τ without: how much of the ranking of the models stays when this annotator is left out, "
        "1 is all of it. Largest change: how far any model's mean "
        f"{'rating' if kind.scale else 'response'} moves then. "
        f"{', '.join(of_trials[:2])}: catch trials answered right. Gold: gold items answered "
        "right. Repeat κ: of their answers with their own to the same items."
    )
    note += "".join(f" {names[column]}: {reason}." for column, reason in absent.items())
    return section("Annotators", grid("Annotators", heads, rows), note)


def _absent(results: Results) -> dict[str, str]:
    """Return each column of trials that no annotator has answered, and why."""
    answered = {f"{check}_accuracy" for check in results.checks["check"]}
    answered |= {"repeat_kappa"} if results.repeats["n"].any() else set()
    return {
        column: "none answered yet" if getattr(results.study.spec, rate) else "not in this study"
        for column, rate in _RATES.items()
        if column not in answered
    }


def _trials(row: Mapping[Hashable, Any], absent: Mapping[str, str]) -> list[str]:
    """The cells of one annotator's trials, each missing value with its reason."""
    cells = []
    for column in [one for one in _RATES if one not in absent]:
        kappa = column == "repeat_kappa"
        text = number(row[column]) if kappa else percent(row[column])
        if pd.isna(row[column]):
            text += why(row["repeat_reason"] if kappa else NOT_ANSWERED)
        cells.append(text)
    return cells


def detection(results: Results) -> str:
    """Sensitivity and criterion, nothing for a study without pairs."""
    if results.detection is None:
        return ""
    rows = [
        (
            row["name"] if row["of"] == row["name"] else f"{row['of']}: {row['name']}",
            f"{row['hits']:,} / {row['n_matched']:,}",
            f"{row['false_alarms']:,} / {row['n_decoys']:,}",
            number(row["d_prime"], row["d_prime_low"], row["d_prime_high"])
            + ("*" if row["interval"] == "Gourevitch-Galanter" else "")
            + why(row["reason"]),
            number(row["criterion"], row["criterion_low"], row["criterion_high"]),
        )
        for row in results.detection.to_dict("records")
    ]
    heads = ("Whose votes", "“Same” on matches", "“Same” on decoys", "d′ [95%]", "Criterion [95%]")
    note = (
        "d′ is 0 for guessing; a criterion above 0 leans towards “different”. Rates are corrected "
        "log-linearly (+0.5, +1). *: a rate of 0 or 1, so the error is at least that of Gourevitch "
        "and Galanter. Stratum 0 is the quarter of each model's reconstructions "
        "closest to their originals; a decoy has the stratum of its picture."
    )
    return section("Signal detection", grid("Signal detection", heads, rows), note)


def confusions(results: Results) -> str:
    """Return sections on what is most often taken for what; of few classes all answers to all."""
    kind, counts = results.study.kind, results.confusion
    if not kind.lists:
        if kind.scale:
            counts = pd.concat([counts, counts.sum().to_frame("all").T])
        rows = [(str(shown), *(f"{n:,}" for n in row)) for shown, *row in counts.itertuples()]
        table = grid("Answers", ("Shown", *map(str, counts.columns)), rows)
        return section(kind.answers_words, table, "")
    found = likely_confusions(counts)
    listed = [
        (row["class_name"], row["answered"], f"{row['votes']:,}", percent(row["share"]))
        for row in found.to_dict("records")
    ]
    heads = ("Shown", "Taken for", "Votes", "Share of its votes")
    note = "Counted votes on reconstructions; the answer none is left out of this list."
    shown = section("Most frequent confusions", grid("Confusions", heads, listed), note)
    if not 0 < len(counts) <= MOST_CLASSES:
        return shown
    shares = counts.div(counts.sum(axis=1), axis=0).where(counts > 0)
    return shown + section(f"Answers by {kind.truth_words}", heat("Answers", shares, "{:.0%}"), "")


def tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return the tables to download, by name of the file; marks simulated votes as exports do."""
    found = {
        "rates": results.rates,
        "agreement": results.agreement,
        "pairwise-kappa": results.pairs,
        "annotators": results.annotators,
        "confusion": results.confusion.melt(value_name="votes", ignore_index=False).reset_index(),
        "known-answers": pd.concat([results.checks, results.none_bias], ignore_index=True),
        "repeats": results.repeats,
        "carry-over": results.carry_over,
        "dawid-skene": results.reliability.people,
        "disagreements": results.reliability.disagreements,
    }
    if results.detection is not None:
        found["signal-detection"] = results.detection
    if results.study.spec.simulated:
        who = results.study.spec.voters
        return {n: table.assign(simulated=True, voter=who) for n, table in found.items()}
    return found


def number(value: float, low: float = float("nan"), high: float = float("nan")) -> str:
    """Such as "0.41 [0.38, 0.45]"; a dash where there is no value, no brackets without an end."""
    if pd.isna(value):
        return DASH
    text = f"{value:.2f}"
    if not (pd.isna(low) or pd.isna(high)):
        text += f" [{low:.2f}, {high:.2f}]"
    return text.replace("-", "−")


def _moved(change: float, scale: Scale | None) -> str:
    of = "% of the scale" if scale else "points"
    return DASH if pd.isna(change) else f"{100 * change:.1f} {of}"


def _rank(row: Mapping[Hashable, Any]) -> str:
    if pd.isna(row["rank"]):
        return DASH
    if pd.isna(row["rank_low"]):
        return f"{row['rank']:g}"
    return f"{row['rank']:g} ({row['rank_low']:g} to {row['rank_high']:g})"


def why(reason: str | None) -> str:
    """A reason in brackets, nothing without one."""
    return f" ({reason})" if reason else ""


def section(title: str, table: str, note: str) -> str:
    """A heading, HTML below it, and a text as its note."""
    return fill("results_section.html", title=title, table=table, note=note, terms=TERMS)


def grid(
    name: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    guess: float | None = None,
) -> str:
    """A table of texts, escaped here, and of intervals; the first column names the row.

    Args:
        guess: Where a line is drawn across all intervals, from 0 to 1.
    """
    return fill(
        "results_grid.html", name=name, heads=heads, rows=list(rows), guess=guess, terms=TERMS
    )


def heat(name: str, table: pd.DataFrame, form: str) -> str:
    """A table of shares, NaN left blank, the larger the darker; columns have the rows' numbers."""
    cells = table.to_numpy(dtype=float)
    rows = [[None if np.isnan(one) else float(one) for one in row] for row in cells]
    return fill(
        "results_heat.html",
        name=name,
        rows=list(zip(map(str, table.index), rows, strict=True)),
        columns=[str(one) for one in table.columns],
        numbered=list(table.index) == list(table.columns),
        form=form,
    )
