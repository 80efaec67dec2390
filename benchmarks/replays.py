"""The paper's votes replayed: fewer of them, and in other orders; for `benchmarks.statistics`."""

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from benchmarks.cheap_claims import PUBLISHED
from benchmarks.keeping import Finds
from benchmarks.measuring import judge
from semsim.base.stats.correlation import kendall_rows
from semsim.base.stats.intervals import of_means
from semsim.base.stats.pairwise_accuracy import LEVEL, bands
from semsim.base.stats.standstill import model_leads, watched
from semsim.base.stats.verdict import adjusted
from semsim.base.stats.votes import ratio

# Votes an image, and the τ with the full ranking that adjusted scores should reach.
LENIENCY = {1: 0.84, 2: 0.87, 3: 0.94}
UNEVEN = 1.0  # standard deviation of the logarithm of an annotator's weight at a model
FINE = 40  # looks of a replayed order, of which rules take each, each second or each fourth
EVERY = (1, 2, 4)
PATIENCE = (1, 2, 3, 4, 5, 6, 8, 10, 12)
LEVELS = (LEVEL, 0.01, 0.001, 0.0001)
SHARE, WELL, WRONG = 0.5, 0.95, 0.05  # of the votes; of orders with the final bands, with others
RESAMPLES = 200
QUIET = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Votes of M models on O originals by A annotators.

    Attributes:
        said: (R, A) 1 recognised, 0 not.
        model, original: (R,) int, of each image.
    """

    said: np.ndarray
    model: np.ndarray
    original: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(M, O)."""
        return int(self.model.max()) + 1, int(self.original.max()) + 1


def released(path: Path = PUBLISHED) -> Votes:
    """Return the 42,000 votes that the paper's authors released; docs/how-to/published.md."""
    table = pd.read_csv(path)
    answers = table[[name for name in table if str(name).startswith("ann")]].to_numpy()
    return Votes(
        said=(answers == table[["class_id"]].to_numpy()).astype(float),
        model=pd.factorize(table["model"], sort=True)[0],
        original=pd.factorize(table["cifar100_test_index0"])[0],
    )


# ------------------------------------------------------------------ fewer votes


def of_leniency(votes: Votes, repeats: int, finds: Finds) -> None:
    """Keep τ of few votes with the full ranking, raw and adjusted, kept unevenly and evenly.

    Uneven: at each model each annotator has a weight of their own, log-normal. The control keeps
    the votes of all annotators alike, where leniency is no matter.
    """
    heads = ("votes an image", "kept", "raw τ", "adjusted τ", "gain [95%]", "adjusted is better")
    row = finds.table("leniency", *heads, "target")
    for k, target in LENIENCY.items():
        for uneven in (True, False):
            draws = (np.random.default_rng([k, one]) for one in range(repeats))
            raw, ours = np.transpose([_kept(votes, k, UNEVEN * uneven, one) for one in draws])
            gain = ours - raw
            reach, _ = of_means(gain, noun="repeat")
            ends = f"{gain.mean() - reach:+.3f}, {gain.mean() + reach:+.3f}"
            found = float(ours.mean())
            said = judge(round(found, 2), least=target) if uneven else "control"
            better = f"{np.mean(gain > 0):.0%}"
            words = (f"{raw.mean():.3f}", f"{found:.3f}", f"{gain.mean():+.3f} [{ends}]", better)
            row(k, "unevenly by model" if uneven else "evenly", *words, said)
            if uneven:
                finds.figure(f"leniency.{k}.raw", float(raw.mean()), n=f"{repeats} repeats")
                finds.figure(f"leniency.{k}.adjusted", found, n=f"{repeats} repeats")


def _kept(votes: Votes, k: int, uneven: float, draw: np.random.Generator) -> tuple[float, float]:
    """τ with the full ranking of `k` votes an image, raw and adjusted."""
    models, people = votes.shape[0], votes.said.shape[1]
    weight = uneven * draw.normal(size=(models, people))
    kept = np.argsort(-(weight[votes.model] + draw.gumbel(size=votes.said.shape)))[:, :k]
    item, annotator = np.repeat(np.arange(len(kept)), k), kept.ravel()
    said, model = votes.said[item, annotator], votes.model[item]
    score, why = adjusted(item, annotator, said, model)
    assert not why, why
    full, raw = (
        _of_models(one, votes.model)
        for one in (votes.said.mean(axis=1), said.reshape(-1, k).mean(axis=1))
    )
    ours = _of_models(score, votes.model)
    return tuple(kendall_rows(np.stack([raw, ours]), np.stack([full, full])).tolist())


def _of_models(score: np.ndarray, model: np.ndarray) -> np.ndarray:
    """(M,) the mean score of each model's images."""
    return np.asarray(np.round(np.bincount(model, score) / np.bincount(model), 12))


# ------------------------------------------------------------------ an earlier end


def of_stopping(votes: Votes, orders: int, finds: Finds) -> None:
    """Keep what ending early would have cost: the product's rule, and the best that was found."""
    _own_rule(votes, orders, finds)
    looks = np.arange(1, FINE + 1) / FINE
    seen = [_replayed(votes, np.random.default_rng([7, one])) for one in range(orders)]
    states = {name: np.array([one[name] for one in seen]) for name in seen[0]}
    heads = ("what stands still", "final at half the votes", "at any look up to half")
    rule = ("looks every", "quiet looks", "final by half", "another", "votes")
    row = finds.table("stopping.search", *heads, *rule)
    hindsight, best = [], []
    for name, state in states.items():
        final = states[FINALS.get(name, name)][:, -1]
        same = (state == final[:, None]).all(axis=2)
        early = same[:, looks <= SHARE]
        hindsight.append(float(early.any(axis=1).mean()))
        step, patience, (well, wrong, spent) = _best(state, final, looks)
        best.append((well, wrong))
        shares = (early[:, -1].mean(), hindsight[-1])
        row(
            name,
            *map(_percent, shares),
            f"{100 * step / FINE:g}%",
            patience,
            *map(_percent, (well, wrong, spent)),
        )
    finds.figure("stopping.hindsight", max(hindsight), n=f"{orders} orders")
    finds.figure("stopping.well", max(well for well, _ in best), n=f"{orders} orders")
    print(f"final by half: {judge(max(hindsight), least=WELL)}, with hindsight")


# Kinds of state that are held against the last look of another kind.
FINALS = {"bands, α spent": f"bands at {LEVEL:g}"}


def _best(
    state: np.ndarray, final: np.ndarray, looks: np.ndarray
) -> tuple[int, int, tuple[float, float, float]]:
    """Choose a rule on half of the orders, and return what it does on the others.

    Of the rules that are wrong in few orders the one that is right in most, if any is right; else
    the one that is right in most.
    """
    half = len(state) // 2
    rules = list(itertools.product(EVERY, PATIENCE))
    on = {rule: _outcome(state[:half], final[:half], looks, *rule) for rule in rules}
    good = [rule for rule in rules if on[rule][1] <= WRONG and on[rule][0] > 0]
    step, patience = max(good or rules, key=lambda rule: (on[rule][0], -on[rule][1]))
    return step, patience, _outcome(state[half:], final[half:], looks, step, patience)


def _outcome(
    state: np.ndarray, final: np.ndarray, looks: np.ndarray, step: int, patience: int
) -> tuple[float, float, float]:
    """Shares of orders that end by half with the final state, and early with another; of votes."""
    end = np.array([_end(one, step, patience) for one in state])
    right = (state[np.arange(len(state)), end] == final).all(axis=1)
    wrong = ~right & (looks[end] < 1)
    return (
        float((right & (looks[end] <= SHARE)).mean()),
        float(wrong.mean()),
        float(looks[end].mean()),
    )


def _end(state: np.ndarray, step: int, patience: int) -> int:
    """The look at which a rule ends an order, the last one if it never does."""
    quiet = 0
    for look in range(2 * step - 1, len(state), step):
        quiet = quiet + 1 if np.array_equal(state[look], state[look - step]) else 0
        if quiet >= patience:
            return look
    return len(state) - 1


def _replayed(votes: Votes, draw: np.random.Generator) -> dict[str, list[np.ndarray]]:
    """The states of a random order of votes, look by look, by kind."""
    cell = np.repeat(votes.model * votes.shape[1] + votes.original, votes.said.shape[1])
    order, said = draw.permutation(len(cell)), votes.said.ravel()
    total, given = np.zeros((2, votes.shape[0] * votes.shape[1]))
    found: dict[str, list[np.ndarray]] = {}
    for look, part in enumerate(np.array_split(order, FINE), 1):
        total += np.bincount(cell[part], said[part], len(total))
        given += np.bincount(cell[part], minlength=len(total))
        shares = ratio(total, given).reshape(votes.shape)
        for name, state in _states(shares, look / FINE).items():
            found.setdefault(name, []).append(state)
    return found


def _states(shares: np.ndarray, time: float) -> dict[str, np.ndarray]:
    """States that may stand still, at one look. α spent: O'Brien and Fleming's bound then."""
    rates, p = model_leads(shares)
    known = ~np.isnan(shares)
    drawn = ratio(
        resamples(shares.shape[1]) @ np.nan_to_num(shares).T, resamples(shares.shape[1]) @ known.T
    )
    ranks = rankdata(-np.round(drawn, 12), axis=1)
    ends = np.percentile(ranks, (2.5, 97.5), axis=0, method="inverted_cdf")
    return {
        **{f"bands at {level:g}": bands(rates, p, level) for level in LEVELS},
        "bands, α spent": bands(rates, p, float(ndtr(ndtri(LEVEL) / np.sqrt(time)))),
        "order of models": np.argsort(-rates, kind="stable"),
        "intervals of ranks": ends.ravel(),
    }


@cache
def resamples(originals: int) -> np.ndarray:
    """(B, O) how often each original is drawn, the same at every look."""
    even = np.full(originals, 1 / originals)
    return np.random.default_rng(0).multinomial(originals, even, RESAMPLES).astype(float)


def _own_rule(votes: Votes, orders: int, finds: Finds) -> None:
    """Keep what the rule of a study does, for several numbers of quiet looks.

    Contrary: of the pairs of models in different bands when it is met, those that all votes put
    into the other order.
    """
    heads = ("quiet looks", "met before the end", "by half the votes", "with the final bands")
    row = finds.table("stopping.rule", *heads, "votes saved", "pairs contrary in the end")
    people = votes.said.shape[1]
    model, original = (np.repeat(one, people) for one in (votes.model, votes.original))
    said, final = votes.said.ravel(), _of_models(votes.said.mean(axis=1), votes.model)
    found: dict[int, list[tuple[float, ...]]] = {quiet: [] for quiet in QUIET}
    for one in range(orders):
        order = np.random.default_rng([7, one]).permutation(len(said))
        watch = watched(model[order], original[order], said[order], len(said))
        for quiet, rows in found.items():
            met = watch.met(quiet) or len(said)
            at = watch.bands[np.flatnonzero(watch.votes == met)[0]]
            same = np.array_equal(at, watch.bands[-1])
            rows.append(
                (
                    met < len(said),
                    met <= SHARE * len(said),
                    same,
                    1 - met / len(said),
                    _contrary(at, final),
                )
            )
    for quiet, rows in found.items():
        early, half, _, saved, contrary = np.mean(rows, axis=0)
        ended = [one[2] for one in rows if one[0]]
        row(
            quiet,
            _percent(early),
            _percent(half),
            _percent(np.mean(ended)) if ended else "none",
            _percent(saved),
            f"{100 * contrary:.2f}%",
        )
        finds.figure(f"stopping.{quiet}.met", float(early), n=f"{orders} orders")
        of = f"{len(ended)} orders"
        finds.figure(f"stopping.{quiet}.final", float(np.mean(ended)) if ended else 0.0, n=of)
        finds.figure(f"stopping.{quiet}.saved", float(saved), n=f"{orders} orders")


def _contrary(bands_then: np.ndarray, final: np.ndarray) -> float:
    """The share of pairs in different bands whose shares of all votes are in the other order."""
    first, second = np.triu_indices(len(final), 1)
    apart = bands_then[second] - bands_then[first]  # above 0 where the first one leads
    told = apart != 0
    return float(np.mean((apart * (final[first] - final[second]) < 0)[told])) if told.any() else 0.0


def _percent(share: np.floating | float) -> str:
    return f"{100 * share:.0f}%"
