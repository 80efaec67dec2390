"""Sections of the Results page on trials, on repeated views and on models of the votes."""

from collections.abc import Hashable, Mapping
from typing import Any

from annotation.domain import Study
from annotation.spec import HeadlineRule
from annotation.ui.results_data import Results
from annotation.ui.results_view import DASH, grid, number, percent, section, why
from annotation.votes.agreement import Coding
from annotation.votes.annotators import EVERYBODY, NO_REPEATS, Check
from semsim.base.stats.intervals import RULE, too_few

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
        "Who says none of clear originals is too strict, who names classes of noise guesses: both "
        "shift the rates of every model alike."
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
    heads = ("Reconstruction", "Shows", "Recognised by", "Majority", "One coin says")
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
