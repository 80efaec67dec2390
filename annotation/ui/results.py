"""The Results page: what the votes of the study in hand say, and how sure that is.

Five tabs, each one sentence with the answer, then what it rests on.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from fastapi import APIRouter, Request, Response

from annotation.domain import Study, StudyStatus, VoteStatus
from annotation.errors import NotFoundError
from annotation.formats.plain import as_csv
from annotation.spec import HeadlineRule
from annotation.study import imported
from annotation.study.imported import PREFIX
from annotation.study.results import CLEAR, Results
from annotation.texts import agreeing, counted
from annotation.ui import StudyContext, results_beside, results_view
from annotation.ui.results_data import ResultsCache
from annotation.ui.results_view import (
    DASH,
    agreement,
    annotators,
    confusions,
    detection,
    grid,
    heat,
    number,
    rates,
    remarks,
    section,
    told_name,
    why,
)
from annotation.votes.agreement import Coding
from annotation.votes.annotators import EVERYBODY, NO_REPEATS, Check
from annotation.votes.rates import ALL_VOTES
from annotation.web.api import routes
from annotation.web.root_path import rooted
from annotation.web.templates import fill, page
from semsim.base.errors import SemsimError
from semsim.base.stats.intervals import RULE, error, left_out, share_ends, too_few
from semsim.base.stats.standstill import BANDS, STEP, Standstill, evidence
from semsim.base.words import capital, first_of, percent, voters_words

MOST_LISTED = 12
_REPEATED = {Coding.ANSWER.value: "answers", Coding.RECOGNISED.value: "recognised or not"}


def known_answers(results: Results) -> str:
    """Catch trials and gold items, annotator by annotator, or why there are none."""
    title, (clear, noise) = "Known answers", results.study.kind.caught
    if not len(results.checks):
        return section(title, "", _no_checks(results.study))
    names = {
        Check.CLEAR.value: f"catch, {clear[1]}",
        Check.NOTHING.value: f"catch, {noise[1]}",
        Check.GOLD.value: "gold",
    }
    rows = [
        (
            row["annotator"],
            names[row["check"]],
            f"{row['n_right']:,} / {row['n']:,}",
            too_few(row["n"], "trial") or f"{row['low']:.0%} to {row['high']:.0%}",
        )
        for row in results.checks.to_dict("records")
    ]
    heads = ("Annotator", "Trials", "Right", "95% interval")
    note = (
        "None of these trials counts for any model. Intervals are Wilson's, of the shares in the "
        "table of annotators."
    )
    return section(title, grid(title, heads, rows), note) + _none_bias(results)


def _no_checks(study: Study) -> str:
    asked = [name for name, rate in (("catch trials", study.spec.catch_rate),
                                     ("gold items", study.spec.gold_rate)) if rate]  # fmt: skip
    if asked:
        return f"No {' or '.join(asked)} have been answered yet."
    return (
        "No catch trials or gold items in this study. They tell who looks and who guesses; set "
        "their rates when you make a study."
    )


def _none_bias(results: Results) -> str:
    if not results.study.kind.has_none:
        return ""
    named = results.checks[results.checks["check"] == Check.NOTHING.value]
    wrong = {row["annotator"]: row for row in named.to_dict("records")}
    none = {row["annotator"]: row for row in results.none_bias.to_dict("records")}
    rows = [
        (str(name), _rate(none.get(name), 0), _rate(wrong.get(name), 1))
        for name in sorted({*wrong, *none})
    ]
    if not rows:
        return ""
    heads = ("Annotator", "None of a clear original [95%]", "A class of noise [95%]")
    note = (
        "None for a clear original is too strict; a class for noise is a guess. Both shift the "
        "rates of all models alike."
    )
    return section("Bias towards none", grid("Bias towards none", heads, rows), note)


def _rate(row: Mapping[Hashable, Any] | None, of_others: int) -> str:
    """Return how often trials, if there are any, were answered right, with of_others=1 wrong."""
    if row is None:
        return DASH
    share, *ends = (abs(of_others - row[name]) for name in ("accuracy", "low", "high"))
    return percent(share, *sorted(ends)) + why(too_few(row["n"], "trial"))


def repeats(results: Results) -> str:
    """Return the section on how far annotators agree with themselves, or why it is not known."""
    title, study = "Repeats", results.study
    if not study.spec.repeat_rate and not results.repeats["n"].sum():
        return section(title, "", "No repeats in this study: nobody was asked the same twice.")
    if not results.repeats["n"].sum():
        return section(title, "", f"So far {NO_REPEATS}.")
    rows = [
        (
            row["annotator"] or "all annotators",
            _REPEATED[row["coding"]],
            f"{row['n_same']:,} / {row['n']:,}",
            percent(row["agreement"], row["low"], row["high"]) + why(too_few(row["n"], "trial")),
            _kappa(row),
        )
        for row in results.repeats.to_dict("records")
    ]
    heads = ("Annotator", "Of", "The same again", "Agreement [95%]", "Cohen's κ")
    note = (
        f"Items shown again at least {study.spec.repeat_lag} votes later, under another name. "
        "Nobody agrees with others better than with themselves."
    )
    if study.kind.scale:
        note += " κ of ratings is weighted by the square of how far two are apart."
    return section(title, grid(title, heads, rows), note)


def _kappa(row: Mapping[Hashable, Any]) -> str:
    if row["annotator"] != EVERYBODY and row["coding"] == Coding.ANSWER.value:
        return "see Annotators"
    return number(row["kappa"]) + why(row["reason"])


def carry_over(results: Results) -> str:
    """Return the section on what a second look at an original does; "" without any view."""
    table = results.carry_over
    if not len(table):
        return ""
    rows = [
        (
            f"{row['view']}",
            f"{row['n_votes']:,}",
            f"{row['n_originals']:,}",
            percent(row["share"], row["low"], row["high"]) + why(row["reason"]),
        )
        for row in table.to_dict("records")
    ]
    heads = ("View", "Votes", "Originals", "Recognised [95%]")
    note = (
        "Whether somebody recognises a reconstruction more often when they have seen others of the "
        "same original. Without target models in balanced turns, models that come late and "
        f"views that come late are one. {RULE}"
    )
    if int(table["view"].max()) == 1:
        note = "Nobody has seen an original twice, so nothing can carry over."
    return section("Carry-over between views", grid("Views", heads, rows), note)


def reliability(results: Results) -> str:
    """Dawid and Skene's models: who is reliable, and where they contradict the majority."""
    found = results.reliability
    rows = [
        (row["annotator"], f"{row['n_votes']:,}", percent(row["one_coin"]), percent(row["full"]))
        for row in found.people.to_dict("records")
    ]
    heads = ("Annotator", "Votes", "One coin", "Full")
    reasons = "".join(f" {name}: {reason}." for name, reason in found.reasons.items())
    note = (
        "How often each annotator gives the true answer, as models of Dawid and Skene estimate it "
        "from the votes alone. Full has a matrix of confusions for each annotator and needs many "
        f"votes for each class.{reasons}"
    )
    shown = section("Reliability by Dawid and Skene", grid("Reliability", heads, rows), note)
    return shown + _disagreements(results)


def _disagreements(results: Results) -> str:
    found = results.reliability
    if not found.n_compared:
        return ""
    rows = [
        (
            f"{row['model']}, {row['image_id']}",
            row["class_name"],
            f"{row['n_recognised']} / {row['n_votes']}",
            "recognised" if row["majority"] else "not recognised",
            f"{row['one_coin']} ({row['posterior']:.0%})",
        )
        for row in found.disagreements.head(MOST_LISTED).to_dict("records")
    ]
    heads = ("Reconstruction", "Shows", "Recognised by", "Majority", "One-coin model")
    n = len(found.disagreements)
    note = f"{n:,} of {found.n_compared:,} decided items"
    note += f", the {MOST_LISTED} surest are listed." if n > MOST_LISTED else "."
    title = "Where the one-coin model contradicts the majority"
    return section(title, grid("Contradictions", heads, rows) if rows else "", note)


def unsettled(results: Results) -> str:
    """Ties and missing votes, in numbers."""
    counts = results.open_questions
    rows = [
        ("Fewer votes than asked for, no majority yet", f"{counts['too_few']:,}"),
        ("All votes there, split evenly: no majority", f"{counts['split']:,}"),
        ("Given one vote more because they were split", f"{counts['extra']:,}"),
    ]
    if results.study.spec.headline is HeadlineRule.AS_ORIGINAL_NAMED:
        rows.insert(0, ("No name for its original that most agree on", f"{counts['unnamed']:,}"))
    if results.study.kind.lists:
        rows.append(("With a tie for the most frequent answer", f"{counts['answer_tie']:,}"))
    note = "Nothing is decided by chance: such items stay undecided, and rates leave them out."
    table = grid("Ties and missing votes", ("Reconstructions seen", "How many"), rows)
    return section("Ties and missing votes", table, note)


FEWEST_PEOPLE = 3  # from which a matrix of pairs says more than the mean
MOST_PEOPLE = 25  # up to which it can be read
NAMED = 4  # models by name; of more the rest is counted
MANY_AT = 0.005  # shares that are printed alike
_WORDS_OF = {  # of one vote, of several
    VoteStatus.COUNTED: ("counts", "count"),
    VoteStatus.QUALITY: ("answers a trial, which never counts", "answer trials, which never count"),
    VoteStatus.EXCLUDED: (
        "is of somebody who is excluded, or came in by a researcher's link",
        "are of somebody who is excluded, or came in by a researcher's link",
    ),
    VoteStatus.SURPLUS: ("came when no more were needed",) * 2,
    VoteStatus.SUPERSEDED: (
        "was taken back by whoever gave it",
        "were taken back by whoever gave them",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab: its title, its sentence ("" where it has nothing to say), and what stands below."""

    title: str
    lead: Callable[[Results], str]
    body: Callable[[Results], str]


def shown(results: Results, tab: str) -> tuple[str, str]:
    """Sentence and body of a tab; what is missing, where nothing can be said."""
    if not results.n_votes and results.study.id.startswith(PREFIX):
        return "", fill("no_single_votes.html", study=results.study)
    if not results.n_votes:
        return "", _missing(results, "Nobody has answered yet.", _what_votes_bring(results))
    one = TABS[tab]
    return one.lead(results), one.body(results)


def _missing(results: Results, title: str, lines: list[str]) -> str:
    study = results.study
    asks = not (study.spec.simulated or study.id.startswith(PREFIX))
    asks &= study.status is not StudyStatus.CLOSED
    link = rooted(f"/studio/overview?study={study.id}") if asks else ""
    return fill("results_missing.html", title=title, lines=lines, link=link)


def _what_votes_bring(results: Results) -> list[str]:
    k = results.study.spec.votes_per_item
    return [
        f"The share recognised: needs pictures with a verdict, {counted(k, 'vote')} each.",
        "Agreement: needs two people who have seen the same picture.",
        "The human ceiling: needs two people and three models.",
    ]


def answer(results: Results) -> str:
    """Return the lead: how much is recognised, of which models, and what a blind guesser has.

    While votes are missing, how far the study is comes first.
    """
    running = results.n_full < results.study.n_reconstructions
    if not results.n_decided:
        return _how_far(results) if running else ""
    who = f"So far {voters(results)}" if running else capital(voters(results))
    kind = "decided one" if running else "reconstruction"
    found = (
        f"{who} recognised {results.n_recognised:,} of {counted(results.n_decided, kind)} "
        f"({percent(*results.rate, _few(results.items['recognisable'].notna(), results))})"
    )
    guess = ""
    if results.lists is not None:
        guess = f"; candidate lists alone: {results.lists.most.rate:.0%} correct"
    first = f"{_how_far(results)} " if running else ""
    return f"{first}{found}{_span(results)}{guess}.{_undecided_models(results)}"


def _few(rows: pd.Series, results: Results) -> str | None:
    """Return why a share of these items has no interval, None where it has."""
    return too_few(results.items[rows].groupby("image_id").ngroups)


def _how_far(results: Results) -> str:
    n, wanted = results.study.n_reconstructions, results.study.spec.votes_per_item
    return (
        f"{results.n_votes:,} of {counted(n * wanted, 'vote')}; {n - results.n_decided:,} of "
        f"{counted(n, 'picture')} undecided."
    )


def _undecided_models(results: Results) -> str:
    """The models that the numbers say nothing of."""
    items = results.items
    decided = set(items["model"][items["recognisable"].notna()])
    names = [name for name in results.study.models if name not in decided]
    if not names:
        return ""
    told = first_of([told_name(name) for name in names], NAMED, last=", {} more")
    return f" No picture is decided of {told}."


def _span(results: Results) -> str:
    known = results.rates[results.rates["rate"].notna()]
    if len(known) < 2:
        return ""
    if pd.isna(results.rate[1]):  # the reason stands beside the share of all
        known = known.assign(reason="")
    low, high = (_models_at(results, known, known["rate"].agg(end)) for end in ("min", "max"))
    return f": from {low} to {high}"


def _models_at(results: Results, known: pd.DataFrame, rate: float) -> str:
    at = known[(known["rate"] - rate).abs() < MANY_AT]
    if len(at) > 1:
        widest = percent(rate, at["rate_low"].min(), at["rate_high"].max(), at["reason"].max())
        return f"{widest} of {counted(len(at), 'model')}"
    only = at.iloc[0]
    test = results.study.target_of(only["model"])
    right = f" (its target is {test.text})" if test.accuracy is not None else ""
    share = percent(rate, only["rate_low"], only["rate_high"], only["reason"])
    return f"{share} of {told_name(only['model'])}{right}"


def controls(results: Results) -> list[str]:
    """Return what a guesser, random words and a useless target would make of the same numbers."""
    random = results.lists.random if results.lists else ""
    return [line for line in (_guesser(results), random, _at_chance(results)) if line]


def _guesser(results: Results) -> str:
    if results.lists is None:
        return ""
    guess, rates, items = results.lists.most.rate, results.rates, results.items
    known = items["mean_response"].notna()  # the others nobody can judge yet
    if not known.any():
        return ""
    of = items[known].groupby("image_id")[["n_recognised", "n_votes"]].sum()
    with np.errstate(invalid="ignore"):  # one original left out of one leaves nothing
        right = np.divide(*(left_out(len(of)) @ of.to_numpy()).T)
    ends = share_ends(right[0], error(right, len(of)), len(of))
    share = percent(right[0], float(ends[0]), float(ends[1]), _few(known, results))
    below = int((~(rates["mean_response_low"] > guess)).sum())  # also what has no interval
    said = f"{share} of answers are correct (candidate lists alone: {guess:.1%})"
    if not below:
        return f"{said}. Every model is above guessing."
    models = f"{below:,} of {counted(len(rates), 'model')} {agreeing(below, 'is', 'are')}"
    return f"{said}. {models} not distinguishable from guessing."


def _at_chance(results: Results) -> str:
    names = results.rates["model"]
    n = sum(results.study.target_of(name).at_chance is True for name in names)
    if not n:
        return ""
    of = f"{n:,} of {counted(len(names), 'model')} {agreeing(n, 'has', 'have')}"
    return f"{of} a target at chance. Models at chance are little evidence about trained ones."


def share(results: Results) -> str:
    """Pictures first, then models, then what is taken for what."""
    if not results.n_decided:
        k = results.study.spec.votes_per_item
        lines = [
            f"A picture has a verdict when a majority of its {counted(k, 'vote')} agrees; so far "
            f"{counted(results.n_votes, 'vote')} on {counted(results.n_items, 'picture')}, "
            "no verdict.",
            *_what_votes_bring(results)[1:],
        ]
        return _missing(results, "Too few votes for a share recognised.", lines)
    pictures = fill(
        "results_share.html",
        **{"study": results.study.id, "seen": results.seen, "unseen": results.unseen},
        clear=CLEAR,
    )
    more = fill("results_more.html", title="Confusions", body=confusions(results))
    told = fill("results_remarks.html", lines=[*controls(results), *remarks(results)])
    return f"{pictures}{told}{rates(results)}{standstill(results)}{more}"


def standstill(results: Results) -> str:
    """Return the section on how long the ranking has stood still, and on the rule of the study."""
    title, each = "Has the ranking stood still?", f"one each {STEP:.0%} of the votes asked for"
    if results.standstill is None:
        return section(title, "", "Not known: the votes do not have the times at which they came.")
    names, watch = results.standstill
    if not len(watch.votes):
        return section(title, "", f"Not known yet: the first look, {each}, has not come.")
    told = [_stood(watch, each), _rule_of(results.study.spec.quiet_looks, watch)]
    last = pd.Series(map(told_name, names)).groupby(watch.bands[-1]).agg("; ".join)
    rows = [(str(band), models) for band, models in last.items() if band]
    shown = grid(title, ("Band", f"Models at vote {watch.votes[-1]:,}"), rows)
    lines = fill("results_remarks.html", lines=[" ".join(told)])
    return section(title, lines + shown, f"{BANDS} {evidence(results.study.spec.quiet_looks)}")


def _stood(watch: Standstill, each: str) -> str:
    quiet = int(watch.quiet[-1])
    if watch.bands[-1].max() <= 1:
        return f"No: the look at vote {watch.votes[-1]:,} separates no two models."
    if not quiet and len(watch.votes) == 1:
        return f"Not known yet: vote {watch.votes[-1]:,} was the first look."
    if not quiet:
        return f"No: the look at vote {watch.votes[-1]:,} found other bands than the one before."
    return f"It has not changed since vote {watch.since:,}, for {counted(quiet, 'look')}, {each}."


def _rule_of(looks: int, watch: Standstill) -> str:
    if not looks:
        return "This study has no rule for an early end."
    met = watch.met(looks)
    state = f"is not met: so far {watch.quiet[-1]}" if met is None else f"was met at vote {met:,}"
    return f"The rule of this study, {counted(looks, 'quiet look')} in a row, {state}."


def voters(results: Results) -> str:
    """Return the noun for those who answered, to use in a sentence."""
    return voters_words(results.study.spec.voters)


def agreement_answer(results: Results) -> str:
    """Return how far people agree on whether they recognise a picture, and what that bounds."""
    of = results.agreement[results.agreement["coding"] == Coding.RECOGNISED.value]
    rows = of.set_index("statistic")[["value", "low", "high", "reason"]].to_dict("index")
    raw, alpha = (rows.get(name) for name in ("raw agreement", "Krippendorff's α"))
    if raw is None or pd.isna(raw["value"]):
        return ""
    share = percent(*raw.values())
    found = f"Two {voters(results)} agree on {share} of the pictures whether they recognise them"
    if alpha is not None and not pd.isna(alpha["value"]):
        found += f" (Krippendorff's α {number(*[*alpha.values()][:3])})"
    limit = results.ceiling
    if limit.rho is None:
        return f"{found}."
    first, second = limit.sizes
    return (
        f"{found}. Human ceiling ρ = {number(limit.rho)}: how well groups of {first} and {second} "
        "of them rank the models alike."
    )


def agreement_tab(results: Results) -> str:
    """Statistics and ceiling, pairs, and models of the votes."""
    if not agreement_answer(results):
        reasons = results.agreement["reason"]
        lines = [f"{one[:1].upper()}{one[1:]}." for one in dict.fromkeys(reasons) if one]
        return _missing(results, "Agreement is not known yet.", lines)
    left = agreement(results) + ceiling(results)
    right = pairs(results)
    columns = f'<div class="rs-columns"><div>{left}</div><div>{right}</div></div>'
    trust = fill("results_more.html", title="Reliability", body=reliability(results))
    return columns + trust


def ceiling(results: Results) -> str:
    """Return how well people predict each other's ranking of the models, or why it is unknown."""
    limit = results.ceiling
    text = f"Not known: {limit.undefined}."
    if limit.rho is not None:
        low, high = (
            float("nan") if end is None else end for end in (limit.rho_low, limit.rho_high)
        )
        (first, second), note = limit.sizes, limit.rho_note
        text = (
            f"ρ = {number(limit.rho, low, high)}{f' ({note})' if note else ''}, mean over "
            f"{counted(limit.n_splits, 'split')} of the {voters(results)} into {first} and "
            f"{second}. A metric is compared with all of them, so it may come out a little above."
        )
    return fill("results_ceiling.html", text=text)


def pairs(results: Results) -> str:
    """Cohen's κ of every two people as a matrix, where there are enough and not too many."""
    title = f"Every two {voters(results)}"
    if results.n_people < FEWEST_PEOPLE:
        return ""
    if results.n_people > MOST_PEOPLE:
        who = f"{results.n_people} {voters(results)}"
        note = f"{who} are too many for a matrix; pairwise-kappa.csv has all."
        return section(title, "", note)
    known = results.pairs[results.pairs["coding"] == Coding.RECOGNISED.value]
    names = sorted({*known["first"], *known["second"]})
    table = known.pivot(index="first", columns="second", values="value")
    half = table.reindex(index=names, columns=names)
    note = "Cohen's κ of recognised or not; blank where too few pictures are shared."
    return section(title, heat(title, half.fillna(half.T), "{:.2f}"), note)


def people_answer(results: Results) -> str:
    """Return sentences on how much people did, and how fast."""
    known = results.annotators[results.annotators["n_votes"] > 0]
    speeds = known["median_rt_ms"].dropna() / 1000
    least, most = int(known["n_votes"].min()), int(known["n_votes"].max())
    each = f"{most:,} each" if least == most else f"{least:,} to {most:,} each"
    who = "1 annotator" if len(known) == 1 else f"{len(known):,} annotators"
    said = f"{who} gave {counted(results.n_votes, 'vote')}, {each}"
    if len(speeds):
        pace = f"{speeds.min():.1f} s" if len(speeds) == 1 else (
            f"{speeds.min():.1f} to {speeds.max():.1f} s"
        )  # fmt: skip
        said += f"; half of their answers took less than {pace}"
    moved = known["largest_change"]
    if moved.isna().any():
        return f"{said}."
    of = "points" if results.study.kind.scale is None else "% of the scale"
    by = f"{100 * moved.max():.1f} {of}"
    return f"{said}. Without any one of them no model moves by more than {by}."


def checks_answer(results: Results) -> str:
    """Return sentences on how people did where the answer is known."""
    said = []
    caught = results.checks[results.checks["check"] != Check.GOLD.value]
    for words, table in (
        ("catch trials", caught),
        ("gold items", results.checks[results.checks["check"] == Check.GOLD.value]),
    ):
        if len(table):
            right = int(table["n_right"].sum())
            said.append(f"{right:,} of {int(table['n'].sum()):,} {words} answered right")
    again = results.repeats[results.repeats["annotator"] == EVERYBODY].head(1)
    if again["n"].sum():
        said.append(f"{percent(again['agreement'].iloc[0])} of repeats answered as before")
    asked = [*said] or ["Nobody was asked anything whose answer is known"]
    text = f"{'; '.join(asked)}. "
    if results.lists is None:
        return text.strip()
    most = results.lists.most
    gives = "give the answer away" if most.too_good else "give nothing away"
    reach = f"{most.rate:.1%} by the lists alone, {most.chance:.1%} by chance"
    return f"{text}The candidate lists {gives} ({reach})."


def checks(results: Results) -> str:
    """Known answers and repeats, what lists tell, what became of votes, views, open items."""
    told = results.lists.said if results.lists else ()
    lines = fill("results_remarks.html", lines=told)
    lists = section("Guessing from the lists", lines, "") if told else ""
    left = f"{known_answers(results)}{repeats(results)}{lists}"
    right = f"{became(results)}{unsettled(results)}{carry_over(results)}"
    return f'<div class="rs-columns"><div>{left}</div><div>{right}</div></div>'


def became(results: Results) -> str:
    """Return the section on how many votes count, and on what became of the others."""
    lines = [
        counted(n, *words)
        for status, words in _WORDS_OF.items()
        if (n := results.became.get(status.value, 0))
    ]
    return section("Votes by status", "", f"{'; '.join(lines)}.")


def detection_answer(results: Results) -> str:
    """Return a sentence on whether people tell matches from decoys; "" where it is unknown."""
    if results.detection is None:
        return ""
    row = results.detection[results.detection["of"] == ALL_VOTES].iloc[0]
    if pd.isna(row["d_prime"]):
        return ""
    low, high = row["criterion_low"], row["criterion_high"]
    lean = f"lean towards {'“different”' if low > 0 else '“same”'}"
    leans = lean if low > 0 or high < 0 else "cannot be shown to lean towards either answer"
    tells = "tell" if row["d_prime_low"] > 0 else "cannot be shown to tell"
    return (
        f"{capital(voters(results))} {tells} a match from a decoy: “same” for "
        f"{row['hits']:,} of "
        f"{row['n_matched']:,} matches and for {row['false_alarms']:,} of {row['n_decoys']:,} "
        f"decoys, d′ = {number(row['d_prime'], row['d_prime_low'], row['d_prime_high'])}; they "
        f"{leans}."
    )


def detection_tab(results: Results) -> str:
    """Sensitivity and criterion, or why this study has none."""
    if results.detection is None:
        lines = ["Make a study of pairs with decoys: “same” for a decoy is a false alarm."]
        title = "Signal detection needs answers that can be false alarms, and here none can."
        return _missing(results, title, lines)
    if not detection_answer(results):
        reason = results.detection["reason"].iloc[0]
        lines = [f"{reason[:1].upper()}{reason[1:]}."]
        return _missing(results, "Whether people tell matches from decoys is not known.", lines)
    return detection(results)


TABS = {
    "share": Tab(title="Share recognised", lead=answer, body=share),
    "agreement": Tab(title="Agreement", lead=agreement_answer, body=agreement_tab),
    "people": Tab(title="People", lead=people_answer, body=annotators),
    "checks": Tab(title="Checks", lead=checks_answer, body=checks),
    "detection": Tab(title="Signal detection", lead=detection_answer, body=detection_tab),
}
BESIDE, BESIDE_TITLE = "beside", "Model and people"  # a tab of two studies


PAGE = "/studio/results"


def router(context: StudyContext) -> APIRouter:
    """The page, one tab of it at a time, and its tables.

    Nothing is computed by itself: results are looked at when the page or a table is asked for, and
    computed only if something has happened in the study since.
    """
    cache = ResultsCache(context.store, context.imports)

    def show(request: Request, tab: str = "share") -> Response:
        tab = tab if tab in (*TABS, BESIDE) else "share"
        chosen, imports = request.query_params.get("study", ""), imported.choices(context.imports)
        if not chosen.startswith(imported.PREFIX):
            chosen = context.in_hand(request) or next(iter(imports), "")
        if not chosen:
            return _page(study=None, tab=tab)
        try:
            results = cache.get(chosen)
        except SemsimError as error:
            return _page(study=None, tab=tab, problem=str(error))
        others = {key: one for key, one in imports.items() if key != chosen}
        apart = results_beside.found(cache, results) if tab == BESIDE else None
        lead, body = apart.shown() if apart else shown(results, tab)
        told = {"facts": results_view.facts(results), "lead": lead, "body": body}
        files = list(results_view.tables(results)) if results.n_votes else []
        files += [BESIDE] if apart and apart.pairs else []
        return _page(study=results.study, tab=tab, files=files, imports=others, **told)

    def table(study_id: str, name: str) -> Response:
        results = cache.get(study_id, now=True)
        found = results_view.tables(results)
        if name == BESIDE:
            found[name] = results_beside.found(cache, results).table
        if name not in found:
            raise NotFoundError(f"There is no table {name!r}. Known: {', '.join(found)}.")
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return Response(as_csv(found[name]), media_type="text/csv", headers=headers)

    return routes(get={PAGE: show, PAGE + "/{study_id}/{name}.csv": table})


def _page(**values: Any) -> Response:
    usual = dict.fromkeys(("problem", "facts", "lead", "body", "files", "imports"), "")
    tabs = [*((key, tab.title) for key, tab in TABS.items()), (BESIDE, BESIDE_TITLE)]
    return page("results.html", tabs=tabs, **{**usual, **values})
