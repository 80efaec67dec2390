"""The answer of a comparison in sentences: which metric agrees best, and what is not decided."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from semsim.base.metric_spec import checkpoint_of, is_start
from semsim.base.stats.agreement import holm
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.pairwise_accuracy import LEVEL
from semsim.base.words import counted, first_of, listed
from semsim.metrics import MetricSpec
from semsim.reporting.notation import interval, number, p_value, reason

_ZERO = 1e-9  # accuracies that differ by less are equal
_NAMED = 3  # metrics named one by one; of more the rest is counted
Said = tuple[str, bool]  # a piece of a sentence, and whether it stands out


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Answer of a comparison.

    Attributes:
        lead: The sentences with the answer, in pieces.
        beside: What must be known with it.
        best: The name of the metric that agrees best, "" where none can be ranked.
    """

    lead: tuple[Said, ...]
    beside: tuple[str, ...]
    best: str = ""

    @property
    def text(self) -> str:
        """The lead without what stands out in it."""
        return "".join(text for text, _ in self.lead)


def answer_of(analysis: Analysis) -> Answer:
    """Return a comparison's answer. A SemSim's controls are no candidates; they judge the SemSim.

    Neither is a metric with a mark: it is named beside, with what its mark says.
    """
    table = analysis.candidates.dropna(subset=["rho"])
    beside = [*_who_voted(analysis), *_behind(analysis), *_ceiling_unknown(analysis)]
    beside += [*_verdict(analysis, table), *_within_originals(analysis)]
    if table.empty:
        return Answer(lead=(_nothing(analysis),), beside=tuple(beside))
    top = table[table["rho"] == table["rho"].max()]
    said = _agrees_best(top, len(table), analysis)
    lead = (*said, *_lead_over(top, table, analysis), *_next(top, table), *_on_these(analysis))
    return Answer(lead=lead, beside=tuple(beside), best=str(top["metric"].iloc[0]))


def remarks_of(analysis: Analysis, spec: MetricSpec) -> list[str]:
    """Return the notes of an analysis on one metric, without its name in front."""
    start = f"{spec.title}: "
    return [note.removeprefix(start) for note in analysis.notes if note.startswith(start)]


def _who_voted(analysis: Analysis) -> list[str]:
    evidence = analysis.evidence
    who = f"The model {evidence.model}" if evidence.model else "A program"
    said = f"{who} voted in this study: nothing here is about people."
    return [said] if evidence.simulated else []


def _behind(analysis: Analysis) -> list[str]:
    """The metrics with a mark that would be candidates without it; their titles say the mark."""
    rows = analysis.agreement.dropna(subset=["rho"])
    titles = rows["title"][rows["mark"].ne("") & ~rows["metric"].map(is_start).astype(bool)]
    return [f"Not in the lead: {_some(titles)}."] if len(titles) else []


def _ceiling_unknown(analysis: Analysis) -> list[str]:
    why = analysis.ceiling.undefined
    return [f"How well people agree among themselves is not known: {why}."] if why else []


def _verdict(analysis: Analysis, table: pd.DataFrame) -> list[str]:
    """Return the verdict of the controls on the SemSim that agrees best."""
    specs = {spec.name: spec for spec in analysis.specs}
    learned = [specs[name] for name in table["metric"] if checkpoint_of(name)]
    said = remarks_of(analysis, learned[0]) if learned else []
    return [f"{learned[0].title}: {' '.join(said)}"] if said else []


def _nothing(analysis: Analysis) -> Said:
    if _behind(analysis):
        return "No metric can be judged by these votes.", False
    whys = [why for why in map(reason, analysis.agreement["undefined"]) if why]
    if not whys:
        return "No metric has scores yet, so none can be compared with people.", False
    return f"No metric can be compared with people yet: {whys[0]}.", False


def _agrees_best(top: pd.DataFrame, n_metrics: int, analysis: Analysis) -> list[Said]:
    row, people = top.iloc[0], analysis.evidence.voters
    models, rho = counted(int(row["n"]), "model"), number(row["rho"], 2)
    if row["rho"] <= 0:
        return [
            (f"No metric ranks the {models} as {people} do: the best of {n_metrics}, ", False),
            *_listed(top["title"]),
            (f", reaches ρ {rho}.", False),
        ]
    ceiling = analysis.ceiling
    limit = "" if ceiling.rho is None else f"; human ceiling {number(ceiling.rho, 2)}"
    if not row["rho_bw_low"] > 0:
        ends = interval(row["rho_bw_low"], row["rho_bw_high"])
        between = "" if pd.isna(row["rho_bw_low"]) else f" {ends}"
        verb = "comes" if len(top) == 1 else "come"
        chance = (
            f"and {models} are too few for an interval."
            if pd.isna(row["rho_bw_low"])
            else "which is not significant."
        )
        nearest = f" {verb} nearest to how {people} rank the {models} (ρ {rho}{between}{limit}), "
        return [*_listed(top["title"]), (nearest + chance, False)]
    verb = "ranks" if len(top) == 1 else "rank"
    like = f" {verb} the {models} most like {people} do (ρ {rho}{limit})."
    return [*_listed(top["title"]), (like, False)]


def _lead_over(top: pd.DataFrame, table: pd.DataFrame, analysis: Analysis) -> list[Said]:
    """Over which metrics the lead is decided, and over which it is not."""
    others = table[~table["metric"].isin(top["metric"])]
    if others.empty:
        return [(" No other metric has a rank.", False)] if len(top) == 1 else []
    p = _p_of_leads(list(top["metric"]), analysis.differences)
    found = others["metric"].map(p)
    if found.isna().all():
        return []
    decided, open_ = others[found < LEVEL], others[~(found < LEVEL)]
    models = counted(int(top["n"].iloc[0]), "model")
    if open_.empty:
        over = "every other metric" if len(decided) > 1 else str(decided["title"].iloc[0])
        verdict, rest = "significant", "."
    elif decided.empty:
        over = f"the other {len(open_)}" if len(open_) > 1 else str(open_["title"].iloc[0])
        verdict, rest = "not significant", f" ({models})."
    else:
        over, verdict = _some(open_["title"]), "not significant"
        rest = f" ({models}); over {_some(decided['title'])} it is."
    its = "Its" if len(top) == 1 else "Their"
    return [(f" {its} lead over {over} is ", False), (verdict, True), (rest, False)]


def _next(top: pd.DataFrame, table: pd.DataFrame) -> list[Said]:
    """Return the sentence on the next metric and its distance from the best."""
    best, others = float(top["rho"].iloc[0]), table[~table["metric"].isin(top["metric"])]
    if others.empty or best <= 0:
        return []
    row = others.sort_values("rho", ascending=False, kind="stable").iloc[0]
    behind, rho = number(best - row["rho"], 2), number(row["rho"], 2)
    if row["n"] != top["n"].iloc[0]:  # of other models, from which nothing is subtracted
        models = counted(int(row["n"]), "model")
        return [(f" Next comes {row['title']} (ρ {rho}, of {models}).", False)]
    return [(f" Next comes {row['title']}, {behind} behind (ρ {rho}).", False)]


def _on_these(analysis: Analysis) -> list[Said]:
    """Return the sentence on these models and originals, and whether it would hold on others."""
    order = analysis.of_candidates(analysis.order).dropna(subset=["soft_accuracy"])
    if len(order) < 2:
        return []
    first, rest = order[order["band"] == 1], order[order["band"] > 1]
    best, originals = order.iloc[0], counted(int(order["n_originals"].iloc[0]), "original")
    models = counted(int(best["n_models"]), "model")
    begin = (f" On these {models} and {originals}, ", False)
    if len(first) > 1:
        ends = [number(first["soft_accuracy"].iloc[place], 2) for place in (0, -1)]
        between = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        alike = f" order them alike well (soft pairwise accuracy {between})."
        none = f"no metric orders them better than another (soft pairwise accuracy {between})."
        said = (_some(first["title"]) + alike) if len(rest) else none
        return [begin, (said, False)]
    p, others = _p_of_the_next(analysis, str(best["metric"]), str(rest["metric"].iloc[0]))
    values = best["soft_accuracy"], rest["soft_accuracy"].iloc[0]
    every = [[number(value, digits) for value in values] for digits in (2, 3, 4)]
    ours, following = next((pair for pair in every if pair[0] != pair[1]), every[-1])
    accuracy = f"soft pairwise accuracy {ours}, next {following}"
    sure = others < LEVEL
    told = "so it would on others" if sure else "on other models it may not"
    tail = f" orders them best ({accuracy}; p {_equals(p)}); {told} (p {_equals(others)})."
    return [begin, (str(best["title"]), True), (tail, False)]


def _within_originals(analysis: Analysis) -> list[str]:
    """Name the metric that is best within originals where another is best over models."""
    order = analysis.of_candidates(analysis.order).dropna(subset=["tied_accuracy"])
    order = order[order["tied_accuracy"] > order["ties_alone"] + _ZERO]
    if order.empty:
        return []
    best = order.iloc[int(order["tied_accuracy"].to_numpy().argmax())]
    if best["band"] == 1:
        return []
    among = len(analysis.of_candidates(analysis.order).dropna(subset=["soft_accuracy"]))
    found, alone = (number(best[name], 2) for name in ("tied_accuracy", "ties_alone"))
    return [
        f"Pictures of one original are ordered best by {best['title']} (pairwise accuracy {found}; "
        f"calling all equal {alone}), which over models has rank {best['band']} of {among}."
    ]


def _p_of_the_next(analysis: Analysis, best: str, following: str) -> tuple[float, float]:
    """p after Holm of the lead of `best` over the next metric: over originals, and over models.

    The winner is picked among all metrics, so p over models is corrected for all pairs, too.
    """
    leads = analysis.leads
    ours = leads[["metric_a", "metric_b"]].isin([best, following]).all(axis=1).to_numpy()
    over_models = holm(leads["p_models"].to_numpy(dtype=float))
    return float(leads["p_holm"][ours].iloc[0]), float(over_models[ours][0])


def _equals(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _p_of_leads(best: Sequence[str], differences: pd.DataFrame) -> dict[str, float]:
    """p after Holm of the lead of `best`, which share the top, over each other metric.

    The largest of theirs; 1 where one of them is not ahead on the models that both rank, which can
    be where a metric lacks some. Without those that have no p.
    """
    found: dict[str, float] = {}
    pairs = differences[["metric_a", "metric_b", "difference", "p_holm"]]
    for a, b, ahead, p in pairs.dropna(subset=["p_holm"]).itertuples(index=False):
        if (a in best) == (b in best):
            continue
        other, lead = (b, ahead) if a in best else (a, -ahead)
        found[other] = max(found.get(other, 0.0), float(p) if lead > 0 else 1.0)
    return found


def _listed(titles: Sequence[str] | pd.Series) -> list[Said]:
    """The titles standing out, with commas between them and "and" before the last."""
    said: list[Said] = []
    for place, title in enumerate(names := list(titles)):
        if place:
            said.append((" and " if place == len(names) - 1 else ", ", False))
        said.append((str(title), True))
    return said


def _some(titles: pd.Series) -> str:
    names = list(titles)
    return first_of(names, _NAMED) if len(names) > _NAMED + 1 else listed(names)
