"""Coverage of each printed 95% interval over originals, trials and systems, in made studies.

python -m benchmarks.coverage [--draws N] [--only PART,PART] [--kinds K,K] [--originals N,N]

People and metric see how much of a picture can be made out, each with noise of their own. A kind of
study says for whom originals differ besides: for nobody, for people, for the metric, for both, or
for the metric strongly, whose distances of different originals then cannot be compared. Numbers of
votes alone have the first two kinds, as the others leave votes as they are, and a third, in which
originals differ strongly for people. Trials, systems and named pictures are independent; shares
over clients and seeds, and the jury, have kinds of their own. The true value is that of the same
kind of study with endless originals. With --kinds or --originals only those cells are measured, and
the others stay. What a part finds is kept in results/coverage-PART.json, the table of
`docs/numbers.md` in results/coverage.json; `python -m benchmarks.claims` writes the page.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd
import scipy
import torch

from annotation.votes.aggregate import Ballots, ballots_of
from annotation.votes.agreement import Coding, agreement_table, pairs_of
from annotation.votes.annotators import carry_over_table
from annotation.votes.rates import DETECTION_KINDS, detection_table, rate_table, whole_rate
from benchmarks.claims import Claim, keep, kept
from benchmarks.jury import People, held_against
from benchmarks.measuring import begin, judge, judge_errors
from semsim.base.columns import RATED
from semsim.base.stats.correlation import weighted_kendall, weighted_spearman
from semsim.base.stats.intervals import (
    crossed_ends,
    error,
    fisher,
    left_out,
    of_means,
    pairs_ends,
    student,
    wilson,
)
from semsim.base.stats.roc import (
    contest_of,
    originals_of_kinds,
    pooled_auc,
    within_originals_auc,
)
from semsim.people.cifar import CIFAR10

KINDS = {  # by how much originals differ for people and for the metric, in spreads of the noise
    "nothing": (0.0, 0.0),
    "people": (1.0, 0.0),
    "metric": (0.0, 1.0),
    "both": (1.0, 1.0),
    "metric strongly": (0.0, 3.0),
}
OF_VOTES = {"nothing": 0.0, "people": 1.0, "people strongly": 3.0}
ORIGINALS = (6, 8, 12, 24, 60, 100)
MODELS = np.linspace(-1.5, 1.5, 14)
FEW_MODELS = np.array([-3.0, -1.0, 0.0, 1.5])  # a rate of few, of some, of half and of many
OF_PAIRS = {"nothing": (0.0, 0.0), "clients": (1.0, 0.0), "seeds": (0.0, 1.0), "both": (1.0, 1.0)}
BATCH = 8  # pictures of a client
RIGHT = (0.1, 0.35, 0.65)  # share of pictures that a member of the jury names rightly
VOICES, SURE = 50, (4.0, 1.0)  # people of a named picture, and Beta's parameters of who is right
ANNOTATORS, LEVELS = 5, 5  # of a picture, and of a rating
MANY = 40_000  # originals that stand for endless ones
COMMAND = "python -m benchmarks.coverage"
WANTED = 0.93
TYPE_I, APART = "type I error of a difference of AUCs", "difference of AUCs"
DIFFERENCES = {"pooled": "", "within originals": " within originals"}  # scopes → ends of names
_AT_ONCE = 500  # made studies a table
# number, kind of study, originals, whether its interval held the truth (of TYPE_I, erred)
Row = tuple[str, str, int, bool | None]
Study = tuple[np.ndarray, np.ndarray, np.ndarray]


def study_of(n: int, models: np.ndarray, kind: str, draw: np.random.Generator) -> Study:
    """(n, M) each: votes that recognise a picture, of five, and two metrics of equal worth."""
    of_people, of_metric = KINDS[kind]
    seen = models + draw.normal(size=(n, len(models)))
    votes = draw.binomial(ANNOTATORS, _chance(seen, of_people, draw))
    first, second = (
        seen + draw.normal(size=seen.shape) + of_metric * draw.normal(size=(n, 1)) for _ in "ab"
    )
    return votes, first, second


def votes_of(n: int, models: np.ndarray, kind: str, draw: np.random.Generator) -> np.ndarray:
    """(n, M) votes that recognise a picture, of five."""
    seen = models + draw.normal(size=(n, len(models)))
    return draw.binomial(ANNOTATORS, _chance(seen, OF_VOTES[kind], draw))


def ratings_of(n: int, models: np.ndarray, kind: str, draw: np.random.Generator) -> np.ndarray:
    """(n, M, five) ratings from 1 to `LEVELS`."""
    seen = models + draw.normal(size=(n, len(models)))
    chance = _chance(seen, OF_VOTES[kind], draw)[..., None]
    return 1 + draw.binomial(LEVELS - 1, chance, size=(*seen.shape, ANNOTATORS))


def _chance(seen: np.ndarray, of_people: float, draw: np.random.Generator) -> np.ndarray:
    chance = scipy.special.expit(seen + of_people * draw.normal(size=(len(seen), 1)))
    return np.asarray(chance)


def held(ends: tuple[object, object], truth: float) -> bool | None:
    """Return whether the interval holds the truth; None where there is no interval."""
    low, high = (float(np.asarray(end)) for end in ends)
    return None if np.isnan(low) else bool(low <= truth <= high)


def of_rates(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Rates and mean responses from the table of Results, in which each made study is a model."""
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(0)
        for level in FEW_MODELS:
            models = np.array([level])
            votes = votes_of(MANY, models, kind, draw)
            share = f"{kind}, {(votes / ANNOTATORS).mean():.2f} of votes"
            truths = {"rate": (votes > 2).mean(), "mean_response": votes.mean() / ANNOTATORS}
            for n, many in _batches(draws, sizes):
                said = np.hstack([votes_of(n, models, kind, draw) for _ in range(many)])
                yield from _held_by_rates(votes_table(said, draw), draw, truths, share, n)


def of_ratings(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Mean ratings, as of rates; agreement beyond chance on ratings, as of votes."""
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(5)
        for level in FEW_MODELS:
            models = np.array([level])
            truths = {"mean_rating": ratings_of(MANY, models, kind, draw).mean()}
            share = f"{kind}, {truths['mean_rating']:.1f} of {LEVELS}"
            for n, many in _batches(draws, sizes):
                said = np.hstack([ratings_of(n, models, kind, draw) for _ in range(many)])
                yield from _held_by_rates(rated_votes(said), draw, truths, share, n)


def _held_by_rates(
    votes: pd.DataFrame, draw: np.random.Generator, truths: dict[str, float], share: str, n: int
) -> Iterator[Row]:
    table = rate_table(ballots_of(votes, draw, bootstraps=1), ANNOTATORS)
    for name, truth in truths.items():
        for ends in table[[f"{name}_low", f"{name}_high"]].to_numpy():
            yield name.replace("_", " "), share, n, held(tuple(ends), truth)


def _among(kinds: Sequence[str], known: Mapping[str, object]) -> list[str]:
    return [kind for kind in known if kind in kinds]


def _batches(draws: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Number of originals of a study, and of studies whose table is made at once."""
    for n in sizes:
        for start in range(0, draws, _AT_ONCE):
            yield n, min(_AT_ONCE, draws - start)


def of_agreement(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Agreement beyond chance of five annotators over four models, from the table of Results."""
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(1)
        votes = votes_of(MANY, FEW_MODELS, kind, draw)
        agree, yes = agreeing(votes).mean(), votes.mean() / ANNOTATORS
        chance = yes**2 + (1 - yes) ** 2
        kappa = (agree - chance) / (1 - chance)  # annotators are alike, so all kinds of κ are
        names = ("Fleiss' κ", "Krippendorff's α", "mean Cohen's κ", "Cohen's κ of two")
        rate = (votes > ANNOTATORS / 2).mean()
        for n in sizes:
            for _ in range(draws):
                made = ballots_of(
                    votes_table(votes_of(n, FEW_MODELS, kind, draw), draw), draw, bootstraps=1
                )
                yield from _held_by_agreement(made, Coding.RECOGNISED, names, kappa, kind, n)
                ends = whole_rate(made, ANNOTATORS)[1:]
                yield "rate of all models", kind, n, held(ends, rate)


def of_rated_agreement(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """The same of ratings, where it counts how far two are apart."""
    names = ("Krippendorff's ordinal α", "mean weighted κ", "weighted κ of two")
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(6)
        alpha, kappa = _of_ratings(ratings_of(MANY, FEW_MODELS, kind, draw))
        for n in sizes:
            for _ in range(draws):
                votes = rated_votes(ratings_of(n, FEW_MODELS, kind, draw))
                made = ballots_of(votes, draw, bootstraps=1)
                yield from _held_by_agreement(made, Coding.ANSWER, names[:1], alpha, kind, n)
                yield from _held_by_agreement(made, Coding.ANSWER, names[1:], kappa, kind, n)


def _held_by_agreement(
    made: Ballots, coding: Coding, names: tuple[str, ...], truth: float, kind: str, n: int
) -> Iterator[Row]:
    pairs = pairs_of(made, coding)
    rows = agreement_table(made, [pairs]).set_index("statistic")
    for name in names:
        ends = (pairs.low[0], pairs.high[0])
        if name in rows.index:
            ends = tuple(rows.loc[name, ["low", "high"]])
        yield name, kind, n, held(ends, truth)


def _of_ratings(said: np.ndarray) -> tuple[float, float]:
    """Krippendorff's ordinal α and weighted κ of (N, M, five) ratings by people who are alike."""
    counts = (said[..., None] == np.arange(1, LEVELS + 1)).sum(axis=2).reshape(-1, LEVELS)
    together = counts.T @ counts - np.diag(counts.sum(axis=0))
    together = together / together.sum()
    share = together.sum(axis=0)
    middle = share.cumsum() - share / 2
    found = []
    for scale in (middle, np.arange(LEVELS)):
        apart = np.subtract.outer(scale, scale) ** 2
        found.append(1 - (together * apart).sum() / (np.outer(share, share) * apart).sum())
    return found[0], found[1]


def of_raw_agreement(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Raw agreement of the same studies: the mean over pictures of the share of agreeing pairs."""
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(4)
        truth = agreeing(votes_of(MANY, FEW_MODELS, kind, draw)).mean()
        for n in sizes:
            for _ in range(draws):
                weights = left_out(n)
                shares = agreeing(votes_of(n, FEW_MODELS, kind, draw)).mean(axis=1)
                found = weights @ shares / weights.sum(axis=1)
                ends = pairs_ends(found[0], error(found, n), n)
                yield "raw agreement", kind, n, held(ends, truth)


def of_carry_over(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """P(recognised | k-th view) of five people who see each original by four models in turn."""
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(7)
        truth = votes_of(MANY, FEW_MODELS, kind, draw).mean() / ANNOTATORS
        for n in sizes:
            for _ in range(draws):
                votes = votes_table(votes_of(n, FEW_MODELS, kind, draw), draw)
                shown = votes.iloc[draw.permutation(len(votes))]
                for ends in carry_over_table(shown)[["low", "high"]].to_numpy():
                    yield "carry-over", kind, n, held(tuple(ends), truth)


def of_trials(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Known answers and repeats: shares of trials that are independent."""
    draw = np.random.default_rng(8)
    for n in sizes:
        for truth in (0.05, 0.25, 0.5, 0.9):
            low, high = wilson(draw.binomial(n, truth, draws) / n, np.full(draws, n), n)
            for ends in zip(low, high, strict=True):
                yield "known answers, repeats", f"{truth} right", n, held(ends, truth)


def of_systems(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Means over trained systems, seeds or pictures, and the difference of two such means."""
    draw = np.random.default_rng(9)
    for n in sizes:
        for spread in (1.0, 3.0):  # of the second side
            for _ in range(draws):
                sides = draw.normal(size=n), spread * draw.normal(size=n)
                for name, given in (("mean", sides[:1]), ("difference of two means", sides)):
                    half, _ = of_means(*given, noun="system")
                    middle = given[0].mean() - (given[1].mean() if len(given) > 1 else 0)
                    kind = f"spreads 1 and {spread:g}"
                    yield f"{name} of systems", kind, n, held((middle - half, middle + half), 0.0)


def of_crossed(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Shares of pictures of clients, each attacked with three or four seeds."""
    draw = np.random.default_rng(10)
    for kind, (of_clients, of_seeds) in OF_PAIRS.items():
        for level in FEW_MODELS:
            seen = level + np.hypot(of_clients, of_seeds) * draw.normal(size=MANY)
            truth = float(scipy.special.expit(seen).mean())
            share = f"{kind}, {truth:.2f} of pictures"
            for n in sizes:
                seeds = 4 if n % 3 else 3
                client, seed, _ = (one.ravel() for one in np.indices((n // seeds, seeds, BATCH)))
                for _ in range(draws):
                    seen = of_clients * draw.normal(size=n)[client]
                    seen = level + seen + of_seeds * draw.normal(size=n)[seed]
                    hits = (draw.random(len(seen)) < scipy.special.expit(seen)).astype(float)
                    ends = crossed_ends(hits, [client, seed])
                    yield "share over clients and seeds", share, n, held(ends, truth)


def of_jury(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """Statistics of `benchmarks.jury`, of five networks and fifty people who name pictures."""
    draw = np.random.default_rng(11)
    names = {"kappa": "κ of majorities", "rho_hard": "ρ of shares of the true word"}
    for right in RIGHT:
        truths = held_against(*named(MANY, right, draw))
        for n in sizes:
            for _ in range(draws):
                found = held_against(*named(n, right, draw))
                for key, name in names.items():
                    ends = found[key].low, found[key].high
                    yield name, f"{right} right", n, held(ends, truths[key].value)


def named(n: int, right: float, draw: np.random.Generator) -> tuple[np.ndarray, People, np.ndarray]:
    """Shares of five voices by word, (n, 10), people's, and (n,) that all pictures are meant.

    A picture that few people name rightly is as much harder for the jury. Half of the wrong words
    are the next one.
    """
    words = len(CIFAR10)
    true, sure = draw.integers(words, size=n), draw.beta(*SURE, size=n)
    mean = SURE[0] / sum(SURE)
    said = []
    for voices, chance in ((ANNOTATORS, right * sure / mean), (VOICES, sure)):
        other = draw.integers(1, words, size=(n, voices))
        wrong = np.where(draw.random(other.shape) < 0.5, 1, other)
        off = np.where(draw.random(other.shape) < chance[:, None], 0, wrong)
        said.append(np.eye(words)[(true[:, None] + off) % words].sum(axis=1))
    people = People(images=torch.empty(n, 0), counts=said[1], true=true)
    return said[0] / ANNOTATORS, people, np.ones(n, bool)


def agreeing(votes: np.ndarray) -> np.ndarray:
    """The share of pairs of five votes that agree, as `votes` of them recognise a picture."""
    return (votes * (votes - 1) + (5 - votes) * (4 - votes)) / 20


def votes_table(votes: np.ndarray, draw: np.random.Generator) -> pd.DataFrame:
    """Counted votes of a pair task; votes: (n, M) how many of five say same."""
    place = draw.permuted(np.tile(np.arange(ANNOTATORS), (votes.size, 1)), axis=1)
    said = (place < votes.reshape(-1, 1)).reshape(*votes.shape, ANNOTATORS)
    answers = np.where(said, "same", "different")
    return _rows(answers, said).assign(task="pair", headline="majority")


def rated_votes(said: np.ndarray) -> pd.DataFrame:
    """Counted votes of a rating task; said: (n, M, five) ratings."""
    table = _rows(said.astype(str), said > LEVELS / 2)
    scale = dict(zip(RATED, (LEVELS, LEVELS / 2), strict=True))
    return table.assign(task="rating", headline="mean-rating", **scale)


def _rows(answers: np.ndarray, recognised: np.ndarray) -> pd.DataFrame:
    """A row for each of (n, M, five) answers."""
    original, model, who = np.indices(answers.shape).reshape(3, -1)
    models = np.array([f"m{one}" for one in range(answers.shape[1])], dtype=object)[model]
    images = np.array([f"{one:03}" for one in range(len(answers))], dtype=object)[original]
    return pd.DataFrame(
        {
            "item": models + "/" + images,
            "kind": "reconstruction",
            "model": models,
            "dataset": "d",
            "attack": "a",
            "image_id": images,
            "class_name": "",
            "annotator": np.array([f"p{one}" for one in range(ANNOTATORS)], dtype=object)[who],
            "answer": answers.ravel(),
            "recognised": recognised.ravel(),
            "status": "counted",
            "votes_per_item": ANNOTATORS,
            "stratum": np.nan,
        }
    )


def of_detection(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """d′ and criterion of five people, each original once a match and once beside a decoy.

    Each made study is a model of the table of Results.
    """
    for kind in _among(kinds, OF_VOTES):
        draw = np.random.default_rng(2)
        matches, decoys = (votes_of(MANY, np.array([at]), kind, draw) for at in (1.0, -1.5))
        z = [scipy.special.ndtri(one.mean() / ANNOTATORS) for one in (matches, decoys)]
        truths = {"d_prime": z[0] - z[1], "criterion": -(z[0] + z[1]) / 2}
        for n in sizes:
            match, decoy = (
                votes_table(
                    np.hstack([votes_of(n, np.array([at]), kind, draw) for _ in range(draws)]),
                    draw,
                )
                for at in (1.0, -1.5)
            )
            decoy = decoy.assign(kind="decoy", item="decoy " + decoy["item"])
            shown = pd.concat([match, decoy])
            made = ballots_of(shown, draw, kinds=DETECTION_KINDS, bootstraps=1)
            table = detection_table(made)
            of_models = table[table["of"] == "model"]
            for name, truth in truths.items():
                for ends in of_models[[f"{name}_low", f"{name}_high"]].to_numpy():
                    yield name.replace("d_prime", "d′"), kind, n, held(tuple(ends), truth)


def of_aucs(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """AUC in its three scopes, and two of them less those of an equal and of a worse metric."""
    aucs = {"pooled": pooled_auc, "within models": pooled_auc}
    aucs["within originals"] = within_originals_auc
    for kind in _among(kinds, KINDS):
        draw = np.random.default_rng(2)
        votes, values, other = study_of(MANY, MODELS, kind, draw)
        true = _true_aucs(votes > ANNOTATORS / 2, values)
        worse = other + 2 * draw.normal(size=other.shape)
        of_worse = _true_aucs(votes > ANNOTATORS / 2, worse)
        for n in sizes:
            original, model = (place.ravel() for place in np.indices((n, len(MODELS))))
            groups = {"pooled": 0 * model, "within models": model, "within originals": original}
            weights = left_out(n)
            for _ in range(draws):
                votes, first, second = study_of(n, MODELS, kind, draw)
                yes = (votes > ANNOTATORS / 2).ravel()
                contests = {
                    scope: contest_of(first.ravel(), yes, group, original)
                    for scope, group in groups.items()
                }
                found = {scope: aucs[scope](one, weights) for scope, one in contests.items()}
                for scope, all_of in found.items():
                    units = min(originals_of_kinds(contests[scope]))
                    ends = pairs_ends(all_of[0], error(all_of, units), units)
                    yield f"AUC, {scope}", kind, n, held(ends, true[scope])
                worse = second + 2 * draw.normal(size=second.shape)
                for scope, ending in DIFFERENCES.items():
                    apart = true[scope] - of_worse[scope]
                    for name, values, truth in ((TYPE_I, second, 0.0), (APART, worse, apart)):
                        rival = contest_of(values.ravel(), yes, groups[scope], original)
                        units = min(originals_of_kinds(rival))
                        gaps = found[scope] - aucs[scope](rival, weights)
                        hit = held(student(gaps[0], error(gaps, units), units), truth)
                        hit = hit if hit is None or name == APART else not hit
                        yield f"{name}{ending}", kind, n, hit


def _auc(yes: np.ndarray, values: np.ndarray) -> float:
    n = yes.sum()
    ranks = scipy.stats.rankdata(values)[yes].sum()
    return float((ranks - n * (n + 1) / 2) / (n * (yes.size - n)))


def _true_aucs(yes: np.ndarray, values: np.ndarray) -> dict[str, float]:
    higher = values[:, :, None] > values[:, None, :]
    pairs = yes[:, :, None] & ~yes[:, None, :]
    both = pairs.any(axis=(1, 2))
    each = (higher & pairs).sum(axis=(1, 2))[both] / pairs.sum(axis=(1, 2))[both]
    return {
        "pooled": _auc(yes.ravel(), values.ravel()),
        "within models": float(np.mean([_auc(*one) for one in zip(yes.T, values.T, strict=True)])),
        "within originals": float(each.mean()),
    }


def of_pictures(draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> Iterator[Row]:
    """ρ and τ over the pictures of four models, and the mean of a metric of one."""
    for kind in _among(kinds, KINDS):
        draw = np.random.default_rng(3)
        correlations = {"ρ over pictures": weighted_spearman, "τ over pictures": weighted_kendall}
        votes, values, _ = (one.ravel() for one in study_of(MANY, FEW_MODELS, kind, draw))
        true = {
            "ρ over pictures": scipy.stats.spearmanr(votes, values).statistic,
            "τ over pictures": scipy.stats.kendalltau(votes, values).statistic,
        }
        for n in sizes:
            original, weights = np.repeat(np.arange(n), len(FEW_MODELS)), left_out(n)
            for _ in range(draws):
                votes, values, _ = (one.ravel() for one in study_of(n, FEW_MODELS, kind, draw))
                for name, correlate in correlations.items():
                    drawn = correlate(values, votes.astype(float), weights[:, original])
                    yield name, kind, n, held(fisher(drawn[0], error(drawn, n), n), true[name])
                means = weights @ values.reshape(n, -1)[:, 0] / weights.sum(axis=1)
                ends = student(means[0], error(means, n), n)
                yield "mean of a metric", kind, n, held(ends, FEW_MODELS[0])


PARTS: dict[str, Callable[[int, Sequence[str], Sequence[int]], Iterator[Row]]] = {
    "rates": of_rates,
    "ratings": of_ratings,
    "carry-over": of_carry_over,
    "agreement": of_agreement,
    "rated": of_rated_agreement,
    "raw": of_raw_agreement,
    "detection": of_detection,
    "trials": of_trials,
    "aucs": of_aucs,
    "pictures": of_pictures,
    "systems": of_systems,
    "crossed": of_crossed,
    "jury": of_jury,
}
# Their tables take longest.
FEWER = dict.fromkeys(("agreement", "rated", "detection", "carry-over"), 500)
DRAWS = 2000


def measure(part: str, draws: int, kinds: Sequence[str], sizes: Sequence[int]) -> dict[str, Claim]:
    """Return how often each number's interval held the truth, by "number / kind / originals"."""
    hits: dict[str, list[bool]] = defaultdict(list)
    asked: Counter[str] = Counter()
    for name, kind, n, hit in PARTS[part](draws, kinds, sizes):
        key = f"{name} / {kind} / {n}"
        asked[key] += 1
        hits[key] += [] if hit is None else [hit]
    # What mostly has no interval has nothing that could hold.
    return {key: _held(hits[key]) for key in asked if 2 * len(hits[key]) >= asked[key]}


def _held(hits: list[bool]) -> Claim:
    n = len(hits)
    value = round(float(np.mean(hits)), 4)
    low, high = (round(float(end), 4) for end in wilson(np.array(value), np.array(n), n))
    return Claim(value, low, high, f"{n} intervals")


def table() -> dict[str, Claim]:
    """Return the table of `docs/numbers.md`: of each number the least coverage of all kinds."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for part in PARTS:
        for key, one in kept(f"coverage-{part}").items():
            number, _, originals = key.split(" / ")
            found[number][int(originals)].append(float(str(one.value)))
    head = f"| number | {' | '.join(map(str, ORIGINALS))} units | mean |"
    lines = [head, "| --- " * (len(ORIGINALS) + 2) + "|"]
    for number, by_originals in found.items():
        worst = max if number.startswith(TYPE_I) else min
        cells = [f"{worst(by_originals[n]):.3f}" if n in by_originals else "–" for n in ORIGINALS]
        mean = np.mean(list(chain.from_iterable(by_originals.values())))
        lines.append(f"| {number} | {' | '.join(cells)} | {mean:.3f} |")
    return {"table": Claim(lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, help=f"studies a row; else {DRAWS}, or as in FEWER")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--kinds", help=f"of {', '.join({**KINDS, **OF_VOTES})}; else all")
    parser.add_argument("--originals", help=f"of {', '.join(map(str, ORIGINALS))}; else all")
    asked = parser.parse_args()
    begin()
    kinds = asked.kinds.split(",") if asked.kinds else [*KINDS, *OF_VOTES]
    sizes = [int(n) for n in asked.originals.split(",")] if asked.originals else ORIGINALS
    whole = not (asked.kinds or asked.originals)
    for part in asked.only.split(","):
        found = measure(part, asked.draws or FEWER.get(part, DRAWS), kinds, sizes)
        for key, one in found.items():
            value = float(str(one.value))
            low = one.low if TYPE_I in key else None
            said = judge(value, least=WANTED) if low is None else judge_errors(low)
            print(f"{key:60} {value:.3f} {said}")
        name = f"coverage-{part}"
        keep(name, f"{COMMAND} --only {part}", found if whole else {**kept(name), **found})
    keep("coverage", COMMAND, table())


if __name__ == "__main__":
    main()
