"""What the statistics of a study of the published size cost, and whether its intervals hold.

python -m benchmarks.statistics [--quick] [--only time,models,difference,ceiling,images,swaps]
python -m benchmarks.statistics --only leniency,stopping  # of the paper's votes
"""

import argparse
import itertools
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy.stats  # noqa: F401  loaded before the clock runs: a studio has it

from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin, judge, judge_errors
from benchmarks.replays import of_leniency, of_stopping, released
from semsim.base.metric_spec import MetricSpec
from semsim.base.progress import Progress
from semsim.base.stats import pairwise_accuracy
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.correlation import (
    bonett_wright,
    difference_interval,
    difference_p,
    kendall_rows,
    kendall_score,
    spearman_rows,
)
from semsim.base.stats.evidence import gather
from semsim.base.stats.intervals import FEWEST, wilson
from semsim.base.stats.pairwise_accuracy import (
    differences,
    lead_p,
    model_swap_test,
    sign_flips,
    swap_test,
)
from semsim.base.stats.resampling import FEWEST_BOOTSTRAPPED, varied_interval

MODELS, METRICS, ANNOTATORS = 14, 10, 5  # annotators of an image
BOOTSTRAPS = 1000
# Votes, people who gave them, seconds and MB that all numbers of such a study may take.
STUDIES = ((42_000, 5, 1.0, None), (1_000_000, 500, 20.0, 2000))
FEW = range(FEWEST, 15)  # models of the simulations
SHARED = (0.0, 0.6, 0.9)  # Pearson's r of the normal values that are ranked
# r of metric A with people, of B with people, and of A with B: low, middle and high where they can.
EQUAL = (
    *((0.0, 0.0, 0.0), (0.0, 0.0, 0.6), (0.0, 0.0, 0.9)),
    *((0.6, 0.6, 0.0), (0.6, 0.6, 0.4), (0.6, 0.6, 0.9)),
    *((0.9, 0.9, 0.65), (0.9, 0.9, 0.75), (0.9, 0.9, 0.9)),
)
UNEQUAL = ((0.9, 0.6, 0.4), (0.9, 0.6, 0.7), (0.9, 0.0, 0.0), (0.6, 0.0, 0.0))
# Models, originals, and how far metrics A and B err by model, each in its own way.
SWAPPED = tuple(
    (n, originals, *errs)
    for n, originals in ((6, 40), (14, 100), (14, 600))
    for errs in ((0.0, 0.0), (0.3, 0.3), (0.0, 0.6))
)
_SLACK = 1e-9  # an end may differ from the true value by rounding


def made_study(
    n_votes: int, people: int, metrics: int
) -> tuple[pd.DataFrame, pd.DataFrame, list[MetricSpec]]:
    """Five votes an image, and metrics that follow what people see with noise.

    Names among the scores are categories, as the command reads them.
    """
    draw = np.random.default_rng(0)
    originals = -(-n_votes // (ANNOTATORS * MODELS))
    images = pd.DataFrame(
        {
            "dataset": "made",
            "attack": "made",
            "model": np.repeat([f"model{i:02}_made" for i in range(MODELS)], originals),
            "image_id": np.tile([f"{i:05}" for i in range(originals)], MODELS),
        }
    )
    leak = np.repeat(np.linspace(0.2, 0.9, MODELS), originals) + draw.normal(0, 0.2, len(images))
    names = np.array([f"p{one:03}" for one in range(people)], dtype=object)
    votes = []
    for annotator in range(ANNOTATORS):
        said = draw.random(len(images)) < leak
        who = (7 * np.arange(len(images)) + 101 * annotator) % people
        votes.append(
            images.assign(
                annotator=names[who],
                answer=np.where(said, "cat", "none"),
                recognised=said,
                votes_per_item=ANNOTATORS,
            )
        )
    specs = [
        MetricSpec(name=f"m{i}", title=f"M{i}", higher_means_more_leakage=True, per_image=True)
        for i in range(metrics)
    ]
    scores = [
        images.astype("category").assign(
            metric=pd.Categorical([s.name], [one.name for one in specs]).repeat(len(images)),
            value=leak + draw.normal(0, 0.3, len(leak)),
        )
        for s in specs
    ]
    return pd.concat(votes), pd.concat(scores), specs


def time_study(
    n_votes: int, people: int, most: float, most_held: float | None, metrics: int = METRICS
) -> list[str]:
    """Return votes, time and memory beside their targets `most` in s and `most_held` in MB."""
    votes, scores, specs = made_study(n_votes, people, metrics)
    start, spent = time.perf_counter(), time.process_time()
    evidence = gather(votes, scores, specs)
    gathered = time.perf_counter()
    since, doing = gathered, ""

    def report(step: Progress) -> None:
        nonlocal since, doing
        now = time.perf_counter()
        if doing:
            print(f"  {doing:14}{now - since:8.3f} s")
        since, doing = now, step.note

    print(f"{len(votes):,} votes of {people} people, {metrics} metrics, {BOOTSTRAPS:,} bootstraps")
    print(f"  {'gathering':14}{gathered - start:8.3f} s")
    analyse(evidence, specs, AnalysisSettings(bootstraps=BOOTSTRAPS), report)
    took, spent = time.perf_counter() - start, time.process_time() - spent
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times, targets = f"{took:.2f} s, {spent:.2f} CPU s", judge(took, most=most, unit="s")
    memory = judge(held, most=most_held, unit="MB")
    return [f"{len(votes):,} of {people} people", times, targets, f"{held:.0f} MB", memory]


def true_rho(r: float) -> float:
    """Spearman's ρ of normal pairs with Pearson's r."""
    return float(6 / np.pi * np.arcsin(r / 2))


def true_tau(r: float) -> float:
    """Kendall's τ of normal pairs with Pearson's r."""
    return float(2 / np.pi * np.arcsin(r))


def normal(r: np.ndarray, repeats: int, n: int, draw: np.random.Generator) -> np.ndarray:
    """(k, repeats, n) normal values with the (k, k) correlations `r`."""
    mixed = np.linalg.cholesky(r + _SLACK * np.eye(len(r)))
    return np.einsum("ij,jrn->irn", mixed, draw.normal(size=(len(r), repeats, n)))


def held(
    truth: float, values: np.ndarray, ends: Callable[..., tuple[float, float] | None]
) -> float:
    """The share of `values`, (repeats, k), whose interval holds the truth."""
    different, back = np.unique(np.round(values, 12), axis=0, return_inverse=True)
    hit = np.zeros(len(different))
    for at, value in enumerate(different):
        found = ends(*(float(one) for one in value))
        assert found is not None
        hit[at] = found[0] - _SLACK <= truth <= found[1] + _SLACK
    return float(hit[back.ravel()].mean())


def over_models(repeats: int) -> Iterator[tuple[object, ...]]:
    """n, r, coverage of the intervals of ρ and τ, and of their bootstraps where there are any."""
    draw = np.random.default_rng(0)
    for n in FEW:
        for r in SHARED:
            x, y = normal(np.array([[1, r], [r, 1]]), repeats, n, draw)
            rho, tau = spearman_rows(x, y)[:, None], kendall_rows(x, y)[:, None]
            analytic = (
                held(true_rho(r), rho, lambda one, n=n: bonett_wright(one, n)),
                held(true_tau(r), tau, lambda one, n=n: kendall_score(one, n)),
            )
            few = repeats // 4
            yield n, r, *analytic, *_bootstrapped(x[:few], y[:few], r, draw)


def _bootstrapped(
    x: np.ndarray, y: np.ndarray, r: float, draw: np.random.Generator
) -> tuple[float, float]:
    """Coverage of the bootstrap over models of ρ and of τ, among the studies that have one."""
    n = x.shape[1]
    if n < FEWEST_BOOTSTRAPPED:
        return np.nan, np.nan
    hits: list[list[bool]] = [[], []]
    for one, other in zip(x, y, strict=True):
        picks = draw.integers(0, n, (BOOTSTRAPS // 2, n))
        for at, (correlate, truth) in enumerate(
            ((spearman_rows, true_rho(r)), (kendall_rows, true_tau(r)))
        ):
            low, high, why = varied_interval(correlate(one[picks], other[picks]))
            if why is None:
                hits[at].append(bool(low <= truth <= high))
    return float(np.mean(hits[0])), float(np.mean(hits[1]))


def of_differences(repeats: int) -> Iterator[tuple[object, ...]]:
    """n, r of A and of B with people, r of A with B, coverage, share of p at or below 0.05."""
    draw = np.random.default_rng(1)
    for n in FEW:
        for first, second, between in (*EQUAL, *UNEQUAL):
            r = np.array([[1, first, second], [first, 1, between], [second, between, 1]])
            people, a, b = normal(r, repeats, n, draw)
            seen = np.stack(
                [spearman_rows(people, a), spearman_rows(people, b), spearman_rows(a, b)], axis=1
            )
            truth = true_rho(first) - true_rho(second)
            covered = held(truth, seen, lambda a, b, ab, n=n: difference_interval(a, b, ab, n))
            p = cache(lambda a, b, ab, n=n: difference_p(a, b, ab, n))
            small = np.mean([p(*rhos) <= 0.05 for rhos in np.round(seen, 12).tolist()])
            yield n, first, second, between, covered, float(small)


def of_ceilings(repeats: int) -> Iterator[tuple[object, ...]]:
    """n, noise of an annotator, coverage for ρ and τ of 2 against 3 annotators, all 10 splits."""
    draw = np.random.default_rng(2)
    groups = [(i, j) for i in range(ANNOTATORS) for j in range(i)]
    for n in FEW:
        for noise in (0.3, 1.0, 3.0):
            model = draw.normal(size=(repeats, n))
            said = model + noise * draw.normal(size=(ANNOTATORS, repeats, n))
            found = []
            for group in groups:
                rest = [one for one in range(ANNOTATORS) if one not in group]
                sides = said[list(group)].mean(axis=0), said[rest].mean(axis=0)
                found.append([spearman_rows(*sides), kendall_rows(*sides)])
            rho, tau = np.mean(found, axis=0)
            r = 1 / np.sqrt((1 + noise**2 / 2) * (1 + noise**2 / 3))
            yield (
                *(n, noise),
                held(true_rho(r), rho[:, None], lambda one, n=n: bonett_wright(one, n)),
                held(true_tau(r), tau[:, None], lambda one, n=n: kendall_score(one, n)),
            )


def of_images(repeats: int) -> Iterator[tuple[object, ...]]:
    """n, originals, r, how often the range over resampled originals holds these models' own ρ.

    That is ρ of what people and a metric would say of these models after endless originals.
    """
    draw = np.random.default_rng(3)
    for n in (4, 8, 14):
        for originals in (24, 100):
            for r in SHARED:
                hits = []
                for x, y in zip(
                    *normal(np.array([[1, r], [r, 1]]), repeats // 8, n, draw), strict=True
                ):
                    own = draw.normal(size=(originals, 1))
                    people = 0.8 * x + 0.7 * own + draw.normal(size=(originals, n)) > 0
                    metric = y + own + draw.normal(size=(originals, n))
                    drawn = draw.multinomial(originals, np.full(originals, 1 / originals), 300)
                    low, high, why = varied_interval(spearman_rows(drawn @ people, drawn @ metric))
                    if why is None:
                        hits.append(low - _SLACK <= spearman_rows(x[None], y[None])[0] <= high)
                yield n, originals, r, float(np.mean(hits))


def of_swaps(repeats: int, finds: Finds) -> None:
    """Keep how often the tests of two metrics have p ≤ 0.05, and what all pairs of ten cost.

    Both metrics are noisy copies of one that has an error by model. Where neither errs by model
    beyond it, they are equal on these models. Where both err as far, they are equal over models.
    Both are on one scale, so that a swap of what is not standardised is the control of what
    standardising does. Where one alone errs there is no type I error, and an eighth of the repeats.
    """
    heads = ("models", "originals", "A errs by model", "B errs by model", "repeats")
    tests = ("originals", "models", "models, not standardised")
    row = finds.table("swaps", *heads, *(f"p ≤ 0.05 over {test}" for test in tests))
    errors: dict[str, list[tuple[float, float]]] = {test: [] for test in tests}
    for n, originals, *errs in SWAPPED:
        equal = errs[0] == errs[1]
        many = repeats // (1 if equal else 8)
        draws = (np.random.default_rng(one) for one in range(many))
        small = np.mean([_swapped(draw, n, originals, errs) for draw in draws], axis=0)
        ends = wilson(small, np.full(len(small), many), many)
        cells = list(zip(small.tolist(), *(end.tolist() for end in ends), strict=True))
        row(n, originals, *errs, many, *(f"{one:.3f} [{a:.3f}, {b:.3f}]" for one, a, b in cells))
        for test, (one, low, _) in zip(tests, cells, strict=True):
            errors[test] += [(one, low)] if equal and (test != "originals" or not any(errs)) else []
    for test, found in errors.items():
        name = test.replace(", ", "-").replace(" ", "-")
        of = f"{repeats} studies a row, {len(found)} rows"
        finds.figure(f"swaps.least.{name}", min(found)[0], n=of)
        finds.figure(f"swaps.most.{name}", max(found)[0], n=of)
    highest = max(low for found in errors.values() for _, low in found)
    print(f"type I error: {judge_errors(highest)}")
    finds.figure("swaps.cost", _cost_of_swaps(), unit="CPU s", n="14 models, 600 originals")


def _swapped(
    draw: np.random.Generator, n: int, originals: int, errs: Sequence[float]
) -> list[bool]:
    """Return whether p ≤ 0.05 by each of the tests of `of_swaps`, in one made study."""
    model, own = np.linspace(0, 1, n)[:, None], draw.normal(size=(1, originals))
    leak = model + 0.5 * own + 0.5 * draw.normal(size=(n, originals))
    people = (leak + 0.3 * draw.normal(size=leak.shape) > 0.5).astype(float)
    shared = leak + 0.3 * draw.normal(size=(n, 1))
    a, b = (shared + draw.normal(size=leak.shape) + err * draw.normal(size=(n, 1)) for err in errs)
    of_people = lead_p(differences(people), sign_flips(originals, 300, draw))
    found = [test(of_people, (a, b), draw, 300) for test in (swap_test, model_swap_test)]
    with (
        patch.object(pairwise_accuracy, "standardised", lambda scores: scores),
        patch.object(pairwise_accuracy, "_widening", lambda both: np.zeros(1)),
    ):
        found.append(model_swap_test(of_people, (a, b), draw, 300))
    return [one.p <= 0.05 for one in found]


def _cost_of_swaps(n: int = MODELS, originals: int = 600, metrics: int = METRICS) -> float:
    """CPU seconds of every pair of ten metrics with 1,000 swaps each, and of people's p."""
    draw = np.random.default_rng(0)
    people, *scores = draw.normal(size=(1 + metrics, n, originals))
    start = time.process_time()
    of_people = lead_p(differences(people), sign_flips(originals, 1000, draw))
    for pair in itertools.combinations(scores, 2):
        swap_test(of_people, pair, draw)
        model_swap_test(of_people, pair, draw)
    return time.process_time() - start


SIMULATIONS: dict[str, tuple[Callable[[int], Iterator[tuple[object, ...]]], tuple[str, ...]]] = {
    "models": (over_models, ("n", "r", "ρ", "τ", "ρ bootstrap", "τ bootstrap")),
    "difference": (of_differences, ("n", "r A", "r B", "r AB", "coverage", "p ≤ 0.05")),
    "ceiling": (of_ceilings, ("n", "noise", "ρ", "τ")),
    "images": (of_images, ("n", "originals", "r", "ρ")),
}


REPLAYS = {"leniency": of_leniency, "stopping": of_stopping}
Rows = list[tuple[object, ...]]


def simulate(name: str, repeats: int) -> Rows:
    """Print how often the 95% intervals of one kind hold the true value, and return the rows."""
    rows, heads = SIMULATIONS[name]
    start = time.perf_counter()
    print(f"{name}: {repeats} repeats")
    print(" ".join(f"{head:>12}" for head in heads))
    found = []
    for row in rows(repeats):
        found.append(row)
        cells = (f"{one:.3f}" if isinstance(one, float) else str(one) for one in row)
        print(" ".join(f"{cell:>12}" for cell in cells), flush=True)
    print(f"  {time.perf_counter() - start:.0f} s{_targets(found, heads, repeats)}")
    return found


def summary(found: Mapping[str, Rows], finds: Finds, repeats: int) -> None:
    """Keep of all simulations what their page shows: by models, and the worst."""
    every, fewer, fewest = (f"{repeats // part} studies a row" for part in (1, 4, 8))
    frames = {
        name: pd.DataFrame(rows, columns=SIMULATIONS[name][1]) for name, rows in found.items()
    }
    models, ceiling = frames["models"], frames["ceiling"]
    differences = frames["difference"]
    same = differences["r A"] == differences["r B"]
    equal = differences[same].groupby(["n", "r A"])
    covered, small = equal["coverage"].min(), equal["p ≤ 0.05"].max()
    unequal = differences[~same].groupby("n")["coverage"].min()
    heads = ("ρ, Bonett-Wright", "τ, score", "difference, equal", "difference, unequal, worst")
    row = finds.table("models", "models", *heads, "type I error at 0.05", "ceiling: ρ, τ, worst")
    for n in unequal.index:
        own, worst = models[models["n"] == n], ceiling[ceiling["n"] == n][["ρ", "τ"]].min()
        cells = (own["ρ"], own["τ"], covered[n], [unequal[n]], small[n], worst)
        row(n, *(", ".join(f"{one:.3f}" for one in cell) for cell in cells))
    least = min(models["ρ"].min(), models["τ"].min(), covered.min(), unequal.min())
    finds.figure("least-coverage", float(min(least, ceiling[["ρ", "τ"]].min().min())), n=every)
    finds.figure("most-type-i", float(small.max()), n=every)
    bootstraps = models[["ρ bootstrap", "τ bootstrap"]]
    finds.figure("bootstrap.a", float(bootstraps.min().min()), n=fewer)
    finds.figure("bootstrap.b", float(bootstraps.max().max()), n=fewer)
    for originals, own in frames["images"].groupby("originals")["ρ"]:
        finds.figure(f"over-originals.{originals}.least", float(own.min()), n=fewest)
        finds.figure(f"over-originals.{originals}.most", float(own.max()), n=fewest)


def _targets(rows: Rows, heads: tuple[str, ...], repeats: int) -> str:
    """What the intervals over models and the tests must hold, in the worst of the rows."""
    columns = dict(zip(heads, zip(*rows, strict=True), strict=True))
    said = ""
    intervals = () if "originals" in heads else ("ρ", "τ", "coverage")
    for head in (one for one in intervals if one in heads):
        least = min(columns[head])
        said += f"; {head} held in {least:.3f} at least, {judge(least, least=0.93)}"
    if "p ≤ 0.05" in columns:
        equal = zip(columns["r A"], columns["r B"], columns["p ≤ 0.05"], strict=True)
        small = np.array([small for a, b, small in equal if a == b])
        low, _ = wilson(small, np.full(len(small), repeats), repeats)
        said += f"; a small p of equal metrics in {small.max():.3f} at most, "
        said += judge_errors(float(low.max()))
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, under a minute")
    parser.add_argument(
        "--only", default=",".join(["time", *SIMULATIONS, "swaps"]), help="with commas"
    )
    add_option(parser)
    asked = parser.parse_args()
    begin()
    parts = asked.only.split(",")
    repeats = 400 if asked.quick else 4000
    with Finds(asked.results) as finds:
        if "time" in parts:
            row = finds.table("time", "votes", "time", "target", "memory", "target")
            for study in STUDIES:
                row(*time_study(*study))
        found = {name: simulate(name, repeats) for name in SIMULATIONS if name in parts}
        if set(found) == set(SIMULATIONS):
            summary(found, finds, repeats)
        if "swaps" in parts:
            of_swaps(repeats, finds)
        for name, replay in REPLAYS.items():
            if name in parts:
                replay(released(), repeats // 20, finds)


if __name__ == "__main__":
    main()
