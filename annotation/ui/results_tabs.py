"""The five tabs of the Results page: one sentence with the answer, then what it rests on."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from annotation.domain import StudyStatus, VoteStatus
from annotation.study.imported import PREFIX
from annotation.texts import agreeing, counted
from annotation.ui.results_data import CLEAR, Results
from annotation.ui.results_quality import carry_over, known_answers, reliability, repeats, unsettled
from annotation.ui.results_view import (
    agreement,
    annotators,
    confusions,
    detection,
    heat,
    number,
    percent,
    rates,
    remarks,
    section,
    shown_name,
)
from annotation.votes.agreement import Coding
from annotation.votes.annotators import EVERYBODY, Check
from annotation.votes.rates import ALL_VOTES
from annotation.web.root_path import rooted
from annotation.web.templates import fill
from semsim.base.words import first_of

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
    if not results.n_decided:
        return ""
    running = results.n_full < results.study.n_reconstructions
    who = f"So far {voters(results)}" if running else voters(results).capitalize()
    kind = "decided one" if running else "reconstruction"
    found = (
        f"{who} recognised {results.n_recognised:,} of {counted(results.n_decided, kind)} "
        f"({percent(*results.rate)})"
    )
    guess = ""
    if results.lists is not None:
        guess = f"; somebody who sees only the lists names {results.lists.most.rate:.0%}"
    first = f"{_how_far(results)} " if running else ""
    return f"{first}{found}{_span(results)}{guess}.{_undecided_models(results)}"


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
    told = first_of([shown_name(name) for name in names], NAMED, last=", {} more")
    return f" No picture is decided of {told}."


def _span(results: Results) -> str:
    known = results.rates[results.rates["rate"].notna()]
    if len(known) < 2:
        return ""
    low, high = (_models_at(results, known, known["rate"].agg(end)) for end in ("min", "max"))
    return f": from {low} to {high}"


def _models_at(results: Results, known: pd.DataFrame, rate: float) -> str:
    at = known[(known["rate"] - rate).abs() < MANY_AT]
    if len(at) > 1:
        return f"{rate:.0%} of {counted(len(at), 'model')}"
    only = at.iloc[0]
    test = results.study.target_of(only["model"])
    right = f" (its target is {test.text})" if test.accuracy is not None else ""
    share = percent(rate, only["rate_low"], only["rate_high"])
    return f"{share} of {shown_name(only['model'])}{right}"


def controls(results: Results) -> list[str]:
    """Return what a guesser, random words and a useless target would make of the same numbers."""
    random = results.lists.random if results.lists else ""
    return [line for line in (_guesser(results), random, _at_chance(results)) if line]


def _guesser(results: Results) -> str:
    if results.lists is None:
        return ""
    guess, rates, items = results.lists.most.rate, results.rates, results.items
    items = items[items["mean_response"].notna()]  # the others nobody can judge yet
    if not len(items):
        return ""
    right = items["n_recognised"].sum() / items["n_votes"].sum()
    below = int((~(rates["mean_response_low"] > guess)).sum())  # also what has no interval
    said = f"Of single answers {right:.0%} are right; the lists alone give {guess:.1%}"
    if not below:
        return f"{said}, less than on any model."
    return f"{said}, from which {below:,} of {counted(len(rates), 'model')} cannot be told."


def _at_chance(results: Results) -> str:
    names = results.rates["model"]
    n = sum(results.study.target_of(name).at_chance is True for name in names)
    if not n:
        return ""
    of = f"{n:,} of {counted(len(names), 'model')} {agreeing(n, 'has', 'have')}"
    return f"{of} a target that only guesses: what such leaks says little of one that works."


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
        return _missing(results, "Too few votes to say what is recognised.", lines)
    pictures = fill(
        "results_share.html",
        **{"study": results.study.id, "seen": results.seen, "unseen": results.unseen},
        clear=CLEAR,
    )
    more = fill("results_more.html", title="What was taken for what", body=confusions(results))
    told = fill("results_remarks.html", lines=[*controls(results), *remarks(results)])
    return f"{pictures}{told}{rates(results)}{more}"


def voters(results: Results) -> str:
    """Return the noun for those who answered, to use in a sentence."""
    return "simulated annotators" if results.study.spec.simulated else "people"


def agreement_answer(results: Results) -> str:
    """Return how far people agree on whether they recognise a picture, and what that bounds."""
    of = results.agreement[results.agreement["coding"] == Coding.RECOGNISED.value]
    value = dict(zip(of["statistic"], of["value"], strict=True))
    raw, alpha = value.get("raw agreement"), value.get("Krippendorff's α")
    if pd.isna(raw):
        return ""
    found = f"Two {voters(results)} agree on {raw:.0%} of the pictures whether they recognise them"
    if not pd.isna(alpha):
        found += f"; beyond chance α is {number(alpha)}, where 1 is perfect"
    limit = results.ceiling
    if limit.rho is None:
        return f"{found}."
    first, second = limit.sizes
    return (
        f"{found}. The models in the order of {first} of them and in that of {second} others "
        f"correlate with ρ = {number(limit.rho)}: no metric can be expected to do better."
    )


def agreement_tab(results: Results) -> str:
    """Statistics and ceiling, pairs, and models of the votes."""
    if not agreement_answer(results):
        reasons = results.agreement["reason"]
        lines = [f"{one[:1].upper()}{one[1:]}." for one in dict.fromkeys(reasons) if one]
        return _missing(results, "How far people agree cannot be said yet.", lines)
    left = agreement(results) + ceiling(results)
    right = pairs(results)
    columns = f'<div class="rs-columns"><div>{left}</div><div>{right}</div></div>'
    trust = fill("results_more.html", title="Who is reliable", body=reliability(results))
    return columns + trust


def ceiling(results: Results) -> str:
    """Return how well people predict each other's ranking of the models, or why it is unknown."""
    limit = results.ceiling
    text = f"Not known: {limit.undefined}."
    if limit.rho is not None:
        low, high = (
            float("nan") if end is None else end for end in (limit.rho_low, limit.rho_high)
        )
        first, second = limit.sizes
        text = (
            f"ρ = {number(limit.rho, low, high)}, mean over {counted(limit.n_splits, 'split')} of "
            f"the {voters(results)} into {first} and {second}. A metric is compared with all of "
            "them, so it may come out a little above."
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
    return f"{text}The lists of words {gives} ({reach})."


def checks(results: Results) -> str:
    """Known answers and repeats, what lists tell, what became of votes, views, open items."""
    told = results.lists.said if results.lists else ()
    lines = fill("results_remarks.html", lines=told)
    lists = section("What the lists tell", lines, "") if told else ""
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
    return section("What became of the votes", "", f"{'; '.join(lines)}.")


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
        f"{voters(results).capitalize()} {tells} a match from a decoy: “same” said of "
        f"{row['hits']:,} of "
        f"{row['n_matched']:,} matches and of {row['false_alarms']:,} of {row['n_decoys']:,} "
        f"decoys, d′ = {number(row['d_prime'], row['d_prime_low'], row['d_prime_high'])}; they "
        f"{leans}."
    )


def detection_tab(results: Results) -> str:
    """Sensitivity and criterion, or why this study has none."""
    if results.detection is None:
        lines = ["Make a study of pairs with decoys: whoever calls a decoy “same” was misled."]
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
