"""Coverage of each printed 95 % interval over originals, in made studies.

python -m benchmarks.coverage [--draws N] [--only rates,agreement,raw,detection,aucs,pictures]

People and metric see how much of a picture can be made out, each with noise of their own. A kind of
study says for whom originals differ besides: for nobody, for people, for the metric, for both, or
for the metric strongly, whose distances of different originals then cannot be compared. The true
value is that of the same kind of study with endless originals. What a part finds is kept in
results/coverage-PART.json, the table of `docs/numbers.md` in results/coverage.json; `python -m
benchmarks.claims` writes the page.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
import pandas as pd
import scipy

from annotation.votes.agreement import Coding, agreement_table, pairs_of
from annotation.votes.ballots import ballots_of
from annotation.votes.detection import DETECTION_KINDS, detection_table
from annotation.votes.rates import rate_table
from benchmarks.claims import Claim, keep, kept
from benchmarks.measuring import begin, judge
from semsim.analysis.correlation import weighted_kendall, weighted_spearman
from semsim.analysis.roc import contest_of, originals_of_kinds, pooled_auc
from semsim.base.intervals import error, fisher, left_out, pairs_ends, student, wilson

KINDS = {  # by how much originals differ for people and for the metric, in spreads of the noise
    "nothing": (0.0, 0.0),
    "people": (1.0, 0.0),
    "metric": (0.0, 1.0),
    "both": (1.0, 1.0),
    "metric strongly": (0.0, 3.0),
}
ORIGINALS = (6, 8, 12, 24, 60)
MODELS = np.linspace(-1.5, 1.5, 14)
FEW_MODELS = np.array([-3.0, -1.0, 0.0, 1.5])  # a rate of few, of some, of half and of many
ANNOTATORS, MANY = 5, 40_000  # originals that stand for endless ones
COMMAND = "python -m benchmarks.coverage"
WANTED, MOST_ERRORS = 0.93, 0.06
TYPE_I = "type I error of a difference of AUCs"
# number, kind of study, originals, whether its interval held the truth (of TYPE_I, erred)
Row = tuple[str, str, int, bool | None]
Study = tuple[np.ndarray, np.ndarray, np.ndarray]


def study_of(n: int, models: np.ndarray, kind: str, draw: np.random.Generator) -> Study:
    """(n, M) each: votes that recognise a picture, of five, and two metrics of equal worth."""
    of_people, of_metric = KINDS[kind]
    seen = models + draw.normal(size=(n, len(models)))
    chance = scipy.special.expit(seen + of_people * draw.normal(size=(n, 1)))
    votes = draw.binomial(ANNOTATORS, chance)
    first, second = (
        seen + draw.normal(size=seen.shape) + of_metric * draw.normal(size=(n, 1)) for _ in "ab"
    )
    return votes, first, second


def held(ends: tuple[object, object], truth: float) -> bool | None:
    """Return whether the interval holds the truth; None where there is no interval."""
    low, high = (float(np.asarray(end)) for end in ends)
    return None if np.isnan(low) else bool(low <= truth <= high)


def of_rates(draws: int) -> Iterator[Row]:
    """Rates and mean responses from the table of Results, in which each made study is a model."""
    for kind in ("nothing", "people"):
        draw = np.random.default_rng(0)
        for level in FEW_MODELS:
            votes = study_of(MANY, np.array([level]), kind, draw)[0]
            share = f"{kind}, {(votes / ANNOTATORS).mean():.2f} of votes"
            truths = {"rate": (votes > 2).mean(), "mean_response": votes.mean() / ANNOTATORS}
            for n in ORIGINALS:
                studies = [study_of(n, np.array([level]), kind, draw)[0] for _ in range(draws)]
                made = ballots_of(_table(np.hstack(studies), draw), draw, bootstraps=1)
                table = rate_table(made, ANNOTATORS)
                for name, truth in truths.items():
                    for ends in table[[f"{name}_low", f"{name}_high"]].to_numpy():
                        yield name.replace("_", " "), share, n, held(tuple(ends), truth)


def of_agreement(draws: int) -> Iterator[Row]:
    """Agreement beyond chance of five annotators over four models, from the table of Results."""
    for kind in ("nothing", "people"):
        draw = np.random.default_rng(1)
        votes = study_of(MANY, FEW_MODELS, kind, draw)[0]
        agree, yes = agreeing(votes).mean(), votes.mean() / ANNOTATORS
        chance = yes**2 + (1 - yes) ** 2
        kappa = (agree - chance) / (1 - chance)  # annotators are alike, so all kinds of κ are
        names = ("Fleiss' κ", "Krippendorff's α", "mean Cohen's κ")
        for n in ORIGINALS:
            for _ in range(draws):
                votes = study_of(n, FEW_MODELS, kind, draw)[0]
                made = ballots_of(_table(votes, draw), draw, bootstraps=1)
                pairs = [pairs_of(made, Coding.RECOGNISED)]
                rows = agreement_table(made, pairs).set_index("statistic")
                for name in names:
                    yield name, kind, n, held(tuple(rows.loc[name, ["low", "high"]]), kappa)


def of_raw_agreement(draws: int) -> Iterator[Row]:
    """Raw agreement of the same studies: the mean over pictures of the share of agreeing pairs."""
    for kind in ("nothing", "people"):
        draw = np.random.default_rng(4)
        truth = agreeing(study_of(MANY, FEW_MODELS, kind, draw)[0]).mean()
        for n in ORIGINALS:
            for _ in range(draws):
                weights = left_out(n)
                shares = agreeing(study_of(n, FEW_MODELS, kind, draw)[0]).mean(axis=1)
                found = weights @ shares / weights.sum(axis=1)
                ends = pairs_ends(found[0], error(found, n), n)
                yield "raw agreement", kind, n, held(ends, truth)


def agreeing(votes: np.ndarray) -> np.ndarray:
    """The share of pairs of five votes that agree, as `votes` of them recognise a picture."""
    return (votes * (votes - 1) + (5 - votes) * (4 - votes)) / 20


def _table(votes: np.ndarray, draw: np.random.Generator, **more: object) -> pd.DataFrame:
    """Counted votes of a pair task; votes: (n, M) how many of five say same."""
    n, models = votes.shape
    original, model, who = np.indices((n, models, ANNOTATORS)).reshape(3, -1)
    place = draw.permuted(np.tile(np.arange(ANNOTATORS), (n * models, 1)), axis=1)
    said = (place < votes.reshape(-1, 1)).ravel()
    return pd.DataFrame(
        {
            "task": "pair",
            "item": [f"m{a}/{b:03}" for a, b in zip(model, original, strict=True)],
            "kind": "reconstruction",
            "model": np.char.add("m", model.astype(str)),
            "dataset": "d",
            "attack": "a",
            "image_id": [f"{one:03}" for one in original],
            "class_name": "",
            "annotator": np.char.add("p", who.astype(str)),
            "answer": np.where(said, "same", "different"),
            "recognised": said,
            "status": "counted",
            "votes_per_item": ANNOTATORS,
            "headline": "majority",
            "stratum": np.nan,
            **more,
        }
    )


def of_detection(draws: int) -> Iterator[Row]:
    """d′ and criterion of five people, each original once a match and once beside a decoy.

    Each made study is a model of the table of Results.
    """
    for kind in ("nothing", "people"):
        draw = np.random.default_rng(2)
        matches, decoys = (study_of(MANY, np.array([at]), kind, draw)[0] for at in (1.0, -1.5))
        z = [scipy.special.ndtri(one.mean() / ANNOTATORS) for one in (matches, decoys)]
        truths = {"d_prime": z[0] - z[1], "criterion": -(z[0] + z[1]) / 2}
        for n in ORIGINALS:
            match, decoy = (
                _table(
                    np.hstack([study_of(n, np.array([at]), kind, draw)[0] for _ in range(draws)]),
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


def of_aucs(draws: int) -> Iterator[Row]:
    """AUC in its three scopes, and the difference of two metrics of equal worth, pooled."""
    for kind in KINDS:
        draw = np.random.default_rng(2)
        votes, values, _ = study_of(MANY, MODELS, kind, draw)
        true = _true_aucs(votes > ANNOTATORS / 2, values)
        for n in ORIGINALS:
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
                found = {scope: pooled_auc(one, weights) for scope, one in contests.items()}
                for scope, aucs in found.items():
                    units = min(originals_of_kinds(contests[scope]))
                    ends = pairs_ends(aucs[0], error(aucs, units), units)
                    yield f"AUC, {scope}", kind, n, held(ends, true[scope])
                other = contest_of(second.ravel(), yes, groups["pooled"], original)
                units, apart = (
                    min(originals_of_kinds(other)),
                    found["pooled"] - pooled_auc(other, weights),
                )
                ends = student(apart[0], error(apart, units), units)
                missed = held(ends, 0.0)
                yield TYPE_I, kind, n, None if missed is None else not missed


def _true_aucs(yes: np.ndarray, values: np.ndarray) -> dict[str, float]:
    def auc(yes: np.ndarray, values: np.ndarray) -> float:
        n = yes.sum()
        ranks = scipy.stats.rankdata(values)[yes].sum()
        return float((ranks - n * (n + 1) / 2) / (n * (yes.size - n)))

    higher = values[:, :, None] > values[:, None, :]
    pairs = yes[:, :, None] & ~yes[:, None, :]
    both = pairs.any(axis=(1, 2))
    each = (higher & pairs).sum(axis=(1, 2))[both] / pairs.sum(axis=(1, 2))[both]
    return {
        "pooled": auc(yes.ravel(), values.ravel()),
        "within models": float(np.mean([auc(*one) for one in zip(yes.T, values.T, strict=True)])),
        "within originals": float(each.mean()),
    }


def of_pictures(draws: int) -> Iterator[Row]:
    """ρ and τ over the pictures of four models, and the mean of a metric of one."""
    for kind in KINDS:
        draw = np.random.default_rng(3)
        correlations = {"ρ over pictures": weighted_spearman, "τ over pictures": weighted_kendall}
        votes, values, _ = (one.ravel() for one in study_of(MANY, FEW_MODELS, kind, draw))
        true = {
            "ρ over pictures": scipy.stats.spearmanr(votes, values).statistic,
            "τ over pictures": scipy.stats.kendalltau(votes, values).statistic,
        }
        for n in ORIGINALS:
            original, weights = np.repeat(np.arange(n), len(FEW_MODELS)), left_out(n)
            for _ in range(draws):
                votes, values, _ = (one.ravel() for one in study_of(n, FEW_MODELS, kind, draw))
                for name, correlate in correlations.items():
                    drawn = correlate(values, votes.astype(float), weights[:, original])
                    yield name, kind, n, held(fisher(drawn[0], error(drawn, n), n), true[name])
                means = weights @ values.reshape(n, -1)[:, 0] / weights.sum(axis=1)
                ends = student(means[0], error(means, n), n)
                yield "mean of a metric", kind, n, held(ends, FEW_MODELS[0])


PARTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "rates": of_rates,
    "agreement": of_agreement,
    "raw": of_raw_agreement,
    "detection": of_detection,
    "aucs": of_aucs,
    "pictures": of_pictures,
}
FEWER = {"agreement": 500, "detection": 500}  # their tables take longest
DRAWS = 2000


def measure(part: str, draws: int) -> dict[str, Claim]:
    """Return how often each number's interval held the truth, by "number / kind / originals"."""
    hits: dict[str, list[bool]] = defaultdict(list)
    asked: Counter[str] = Counter()
    for name, kind, n, hit in PARTS[part](draws):
        key = f"{name} / {kind} / {n}"
        asked[key] += 1
        hits[key] += [] if hit is None else [hit]
    # What mostly has no interval has nothing that could hold.
    return {key: _held(hits[key]) for key in asked if 2 * len(hits[key]) >= asked[key]}


def _held(hits: list[bool]) -> Claim:
    n = len(hits)
    value = round(float(np.mean(hits)), 4)
    low, high = (round(float(end), 4) for end in wilson(np.array(value), np.array(n), n))
    return Claim(value, low, high, f"{n} studies")


def table() -> dict[str, Claim]:
    """Return the table of `docs/numbers.md`: of each number the least coverage of all kinds."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for part in PARTS:
        for key, one in kept(f"coverage-{part}").items():
            number, _, originals = key.split(" / ")
            found[number][int(originals)].append(float(str(one.value)))
    head = f"| number | {' | '.join(map(str, ORIGINALS))} originals | mean |"
    lines = [head, "| --- " * (len(ORIGINALS) + 2) + "|"]
    for number, by_originals in found.items():
        worst = max if number == TYPE_I else min
        cells = [f"{worst(by_originals[n]):.3f}" if n in by_originals else "–" for n in ORIGINALS]
        mean = np.mean(list(chain.from_iterable(by_originals.values())))
        lines.append(f"| {number} | {' | '.join(cells)} | {mean:.3f} |")
    return {"table": Claim(lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, help=f"studies a row; else {DRAWS}, or as in FEWER")
    parser.add_argument("--only", default=",".join(PARTS), help="with commas")
    asked = parser.parse_args()
    begin()
    for part in asked.only.split(","):
        draws = asked.draws or FEWER.get(part, DRAWS)
        found = measure(part, draws)
        for key, one in found.items():
            value = float(str(one.value))
            said = judge(value, most=MOST_ERRORS) if TYPE_I in key else judge(value, least=WANTED)
            print(f"{key:60} {value:.3f} {said}")
        keep(f"coverage-{part}", f"{COMMAND} --draws {draws} --only {part}", found)
    keep("coverage", COMMAND, table())


if __name__ == "__main__":
    main()
