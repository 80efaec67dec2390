"""What the statistics of a study of the published size cost, and whether its intervals hold.

python -m benchmarks.statistics [metrics]
"""

import sys
import time

import numpy as np
import pandas as pd

from semsim.analysis.correlation import bonett_wright, kendall_rows, rank_agreement, spearman_rows
from semsim.analysis.evidence import gather
from semsim.analysis.resampling import interval
from semsim.analysis.result import AnalysisSettings
from semsim.analysis.run import analyse
from semsim.metrics.base import MetricSpec
from semsim.progress import Progress

MODELS, ORIGINALS, ANNOTATORS = 14, 600, 5
BOOTSTRAPS = 1000
REPEATS = 400  # of the simulation of coverage
RHO = 0.7  # of the normal pairs the simulation draws


def made_study(metrics: int) -> tuple[pd.DataFrame, pd.DataFrame, list[MetricSpec]]:
    """42,000 votes on 8,400 images, and metrics that follow what people see with noise."""
    draw = np.random.default_rng(0)
    images = pd.DataFrame(
        {
            "dataset": "made",
            "attack": "made",
            "model": np.repeat([f"model{i:02}_made" for i in range(MODELS)], ORIGINALS),
            "image_id": np.tile([f"{i:04}" for i in range(ORIGINALS)], MODELS),
        }
    )
    leak = np.repeat(np.linspace(0.2, 0.9, MODELS), ORIGINALS) + draw.normal(0, 0.2, len(images))
    votes = []
    for annotator in range(ANNOTATORS):
        said = draw.random(len(images)) < leak
        votes.append(
            images.assign(
                annotator=f"p{annotator}",
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
        images.assign(metric=s.name, value=leak + draw.normal(0, 0.3, len(leak))) for s in specs
    ]
    return pd.concat(votes), pd.concat(scores), specs


def time_study(metrics: int) -> None:
    votes, scores, specs = made_study(metrics)
    start = time.perf_counter()
    evidence = gather(votes, scores, specs)
    gathered = time.perf_counter()
    last = [gathered, ""]

    def report(step: Progress) -> None:
        now = time.perf_counter()
        if last[1]:
            print(f"  {last[1]:14}{now - last[0]:8.3f} s")
        last[:] = [now, step.note]

    print(f"{len(votes):,} votes, {metrics} metrics, {BOOTSTRAPS:,} bootstraps")
    print(f"  {'gathering':14}{gathered - start:8.3f} s")
    analyse(evidence, specs, AnalysisSettings(bootstraps=BOOTSTRAPS), report)
    print(f"  {'in all':14}{time.perf_counter() - start:8.3f} s")


def simulate_coverage() -> None:
    """How often 95 % intervals over 14 models hold the true ρ and τ of normal pairs."""
    rho, tau = 6 / np.pi * np.arcsin(RHO / 2), 2 / np.pi * np.arcsin(RHO)
    draw = np.random.default_rng(0)
    hits = np.zeros(3)
    for _ in range(REPEATS):
        x, noise = draw.normal(size=(2, MODELS))
        y = RHO * x + np.sqrt(1 - RHO**2) * noise
        picks = draw.integers(0, MODELS, (BOOTSTRAPS, MODELS))
        seen = rank_agreement(x, y).rho or 0.0
        ends = (
            (rho, bonett_wright(seen, MODELS)),
            (rho, interval(spearman_rows(x[picks], y[picks]))),
            (tau, interval(kendall_rows(x[picks], y[picks]))),
        )
        hits += [found is not None and found[0] <= truth <= found[1] for truth, found in ends]
    names = ("ρ, Bonett-Wright", "ρ, bootstrap over models", "τ, bootstrap over models")
    print(f"coverage of 95 % intervals, {MODELS} models, {REPEATS} repeats")
    for name, share in zip(names, hits / REPEATS, strict=True):
        print(f"  {name:26}{share:8.3f}")


def main() -> None:
    for metrics in [int(argument) for argument in sys.argv[1:]] or [2, 10]:
        time_study(metrics)
    simulate_coverage()


if __name__ == "__main__":
    main()
