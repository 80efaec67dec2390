"""Do simulated annotators err as people do? The jury beside CIFAR-10H, picture by picture.

python -m benchmarks.jury --dataset folder:root=CIFAR10 --from FOLDER --work FOLDER
    [--epochs 10] [--photographs 10] [--workers 1] [--results jury]

About fifty people named each test picture of CIFAR-10 (Peterson et al. 2019, ICCV). CIFAR10 has the
training pictures as train/CLASS/NAME and other test pictures as test/CLASS/NAME; the FOLDER of
--from a copy of CIFAR-10H with images/INDEX.png. Two juries learn the training pictures, in tenths
of their usual epochs; what is trained in --work is used again, and what was stopped goes on. What
has a choice is chosen on one half of the pictures that people named, and the other is opened once.
With --results the sentences of semsim/base/jury.toml have the new numbers, too.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from annotation.votes.agreement import cohen
from benchmarks.claims import Claim
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import ROOT, begin, judge
from semsim.base.progress import Report, silent
from semsim.base.registry import Plugin, read_plugin
from semsim.base.stats.correlation import pearson_rows, weighted_spearman
from semsim.base.stats.intervals import Ends, error, fisher, left_out, share_ends, why_none, wilson
from semsim.base.storage.atomic import write_text
from semsim.campaign.campaign_job import load
from semsim.datasets import DATASETS
from semsim.papers.simulated_votes import data_set_jury
from semsim.people.cifar import CIFAR10, named_pictures
from semsim.reporting.notation import with_interval, with_interval_or_why
from semsim.targets.chance import target_facts
from semsim.targets.simulated_annotators import (
    JURORS,
    PHOTOGRAPH_JURORS,
    Juror,
    TrainedJuror,
    in_turn,
    kept_jury,
    log_probabilities,
)
from semsim.targets.train import accuracy

# In bfloat16, which is refused where it would change what they learn.
JURIES: Mapping[str, Sequence[Juror]] = {
    "five networks": [replace(one, training={"mixed_precision": True}) for one in JURORS],
    "photographs": PHOTOGRAPH_JURORS,
}
SENTENCES = ROOT / "semsim" / "base" / "jury.toml"
STATISTICS = ("rho_hard", "kappa", "right", "confusions")
TARGET = {"rho_hard": 0.35, "kappa": 0.8}  # fixed before anything was measured
HARD = 0.9  # of a picture, a smaller share of people says its commonest word
_COPIES, _SEED = 4, 49


class Found(NamedTuple):
    """A statistic of `n` pictures and the ends of its interval; NaN, and why, where it has none."""

    value: float
    low: float
    high: float
    n: int
    why: str | None = None


Numbers = dict[str, Found]


@dataclass(frozen=True, kw_only=True)
class People:
    """Pictures that people named.

    Attributes:
        images: (N, 3, H, W) in [0, 1].
        counts: (N, 10), how many people said each word.
        true: (N,) int.
    """

    images: Tensor
    counts: np.ndarray
    true: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """(N, 10), shares of people."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    @property
    def hard(self) -> np.ndarray:
        """(N,) bool, the pictures on which fewer than nine in ten people say one word."""
        return self.shares.max(axis=1) < HARD


def people_of(folder: Path) -> People:
    """Return the judgements and pictures in a copy of CIFAR-10H; `DataError` without pictures."""
    counts, true, images = named_pictures(folder)
    return People(images=images, counts=counts, true=true)


def train_juries(
    dataset: Plugin, epochs: Mapping[str, int], work: Path, workers: int, report: Report = silent
) -> dict[str, list[Path]]:
    """Train the juries of `JURIES` with epochs, in tenths; those that are there are used again."""
    return {
        name: data_set_jury(
            dataset, tenths, work, jurors=JURIES[name], workers=workers, report=report
        )
        for name, tenths in epochs.items()
        if tenths
    }


def networks(
    juries: Mapping[str, Sequence[Path]], dataset: Plugin
) -> list[tuple[str, str, str, float, float]]:
    """Each network: set, name, kind, share right of the test split, CPU minutes of training."""
    test, rows = load(dataset, "test"), []
    for jury, paths in juries.items():
        for path, (name, one) in zip(paths, kept_jury(paths).items(), strict=True):
            minutes = float(str(target_facts(path)["cpu_seconds"])) / 60
            kind = type(one.model.architecture).__name__
            rows.append((jury, name, kind, accuracy(one.model, test), minutes))
    return rows


def raters(
    juries: Mapping[str, Mapping[str, TrainedJuror]], people: People, chosen: np.ndarray
) -> dict[str, np.ndarray]:
    """Return what each rater says of each picture: (N, 10), shares of its voices by word.

    Args:
        juries: Trained jurors by jury and name.
        chosen: (N,) bool, the pictures on which temperatures and the best network are chosen.
    """
    found: dict[str, np.ndarray] = {}
    single: dict[str, np.ndarray] = {}
    for jury, jurors in juries.items():
        plain, spoilt = [], []
        for juror, (name, one) in zip(JURIES[jury], jurors.items(), strict=True):
            places = [one.model.classes.index(word) for word in CIFAR10]
            logs = log_probabilities(one.model, people.images)
            single[name] = logs[:, places]
            plain.append((_votes(logs, one.threshold)[:, places], logs[:, places]))
            spoilt.append(_spoilt(one, in_turn(juror.bad), people.images)[:, places])
        votes, own = [list(part) for part in zip(*plain, strict=True)]
        found |= {
            f"{jury}: votes": np.mean(votes, axis=0),
            f"{jury}: certainties": _mean(own),
            f"{jury}: certainties, degraded pictures": _mean(spoilt),
            f"{jury}: calibrated": _mean(_calibrated(own, people, chosen)),
            f"{jury}: calibrated, degraded pictures": _mean(_calibrated(spoilt, people, chosen)),
        }
    best = max(single, key=lambda name: _right(single[name], people.true, chosen))
    found["one network"] = _mean([single[best]])
    found["one calibrated network"] = _mean(_calibrated([single[best]], people, chosen))
    rng, words = np.random.default_rng(_SEED), np.eye(len(CIFAR10))
    found["control: votes on other pictures"] = rng.permutation(next(iter(found.values())))
    found["control: a no-image baseline"] = words[rng.integers(len(words), size=len(people.true))]
    found["control: one word always"] = words[np.zeros(len(people.true), int)]
    return found


def held_against(rater: np.ndarray, people: People, of: np.ndarray) -> Numbers:
    """`STATISTICS` of a rater, (N, 10), on the pictures `of`, (N,) bool, each with its interval.

    `right` has Wilson's interval, ρ that of Fisher's scale, and κ that of the share that agrees, by
    the jackknife over pictures. `confusions` has none: where a class has few pictures, noise lowers
    it, and resamples do not show by how much.
    """
    said, shares, true, hard = rater[of], people.shares[of], people.true[of], people.hard[of]
    rows, n = np.arange(len(true)), len(true)
    named, by_people = (side[rows, true][hard] for side in (said, shares))
    mine, theirs = said.argmax(axis=1), shares.argmax(axis=1)
    confused = (_confusions(side, true)[None] for side in (said, shares))
    right, same = (np.array((mine == others).mean()) for others in (true, theirs))
    low, high = wilson(right, np.array(n), n)
    return {
        "rho_hard": _found(
            weighted_spearman(named, by_people, left_out(len(named))), len(named), fisher
        ),
        "kappa": _found(
            cohen(mine, theirs, rows, left_out(n).T, ordered=False), n, partial(kappa_ends, same)
        ),
        "right": Found(float(right), float(low), float(high), n),
        "confusions": Found(float(pearson_rows(*confused)[0]), np.nan, np.nan, n),
    }


def kappa_ends(same: np.ndarray, kappa: np.ndarray, spread: np.ndarray, units: int) -> Ends:
    """The ends of `share_ends` of the share that agrees, `same`, corrected for chance as κ is.

    A rater near chance agrees on few pictures, where Fisher's scale leaves out too many κ.
    """
    chance = (same - kappa) / (1 - kappa)
    ends = share_ends(same, spread * (1 - chance), units)
    low, high = ((end - chance) / (1 - chance) for end in ends)
    return low, high


def _found(draws: np.ndarray, n: int, ends: Callable[[np.ndarray, np.ndarray, int], Ends]) -> Found:
    """A statistic under all weights of `left_out`, (1 + G,)."""
    spread = error(draws, n)
    if (why := why_none(n, float(spread), "picture")) is not None:
        return Found(float(draws[0]), np.nan, np.nan, n, why)
    low, high = ends(draws[0], spread, n)
    return Found(float(draws[0]), float(low), float(high), n)


def halves(people: People) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of one half of the voices on each picture, and the counts of the other.

    Both (N, 10). The first is held against `replace(people, counts=second)`: a ceiling.
    """
    rng = np.random.default_rng(_SEED)
    counts = people.counts.astype(int)
    first = np.array([rng.multivariate_hypergeometric(row, row.sum() // 2) for row in counts])
    return first / first.sum(axis=1, keepdims=True), counts - first


def compare(
    juries: Mapping[str, Mapping[str, TrainedJuror]], people: People
) -> tuple[dict[str, Numbers], str, Numbers]:
    """Return all raters' numbers on the half that is opened, which was chosen, and the votes'.

    The last are the first rater's numbers on all pictures: votes of a jury, in which nothing is
    chosen.

    Of the juries that is chosen whose lesser share of `TARGET` is greatest on the other half.
    """
    rng = np.random.default_rng(_SEED)
    chosen = rng.permutation(len(people.true)) < len(people.true) / 2
    said = raters(juries, people, chosen)
    first, second = halves(people)

    def lesser(name: str) -> float:
        numbers = held_against(said[name], people, chosen)
        return float(np.nan_to_num(min(numbers[key].value / goal for key, goal in TARGET.items())))

    best = max((name for name in said if name.partition(":")[0] in juries), key=lesser)
    found = {name: held_against(one, people, ~chosen) for name, one in said.items()}
    ceiling = held_against(first, replace(people, counts=second), ~chosen)
    votes = held_against(next(iter(said.values())), people, np.ones(len(people.true), bool))
    return {**found, "people: one half against the other": ceiling}, best, votes


@torch.no_grad()
def _spoilt(one: TrainedJuror, bad: Callable[..., Tensor], images: Tensor) -> np.ndarray:
    """Log of a juror's mean probabilities over degraded copies, (N, K + 1)."""
    rng = torch.Generator().manual_seed(_SEED)
    copies = [np.exp(log_probabilities(one.model, bad(images, rng))) for _ in range(_COPIES)]
    return np.asarray(np.log(np.mean(copies, axis=0)))


def _votes(logs: np.ndarray, threshold: float) -> np.ndarray:
    """One vote a picture, or none where a juror is not certain: (N, K + 1) of 0 and 1."""
    words = logs[:, :-1]
    best = words.argmax(axis=1)
    sure = np.exp(words.max(axis=1)) >= threshold
    return np.eye(logs.shape[1])[best] * sure[:, None]


def _mean(logs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean probability of the words among themselves, (N, 10)."""
    return np.mean([torch.from_numpy(one).softmax(1).numpy() for one in logs], axis=0)


def _calibrated(logs: Sequence[np.ndarray], people: People, chosen: np.ndarray) -> list[np.ndarray]:
    """Each divided by its temperature of the least cross-entropy with people on `chosen`."""
    wanted = torch.from_numpy(people.shares[chosen])
    cooled = []
    for one in logs:
        own = torch.from_numpy(one[chosen])

        def loss(log_heat: float, own: Tensor = own) -> float:
            return -float((wanted * (own / np.exp(log_heat)).log_softmax(1)).sum())

        cooled.append(one / np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))
    return cooled


def _right(rater: np.ndarray, true: np.ndarray, of: np.ndarray) -> float:
    return float((rater.argmax(axis=1) == true)[of].mean())


def _confusions(said: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Mean shares of wrong words by true word: (90,), 0 where a true word is absent."""
    cells = np.zeros((len(CIFAR10),) * 2)
    np.add.at(cells, true, said)
    cells /= np.maximum(np.bincount(true, minlength=len(CIFAR10)), 1)[:, None]
    return cells[~np.eye(len(CIFAR10), dtype=bool)]


def keep_sentences(votes: Numbers, single: Numbers, people: People, right: Sequence[float]) -> None:
    """Write the sentences beside simulated votes and beside what a classifier recognises.

    Args:
        votes: Of the usual jury's votes on all pictures.
        single: Of the one network that is best.
        right: Shares of test pictures that its networks have right.
    """
    rho, kappa = (_shown(votes[name]) for name in TARGET)
    said = (
        "Programs answer, not people. Five such networks learned CIFAR-10, each until it had "
        f"{min(right):.0%} to {max(right):.0%} of test pictures right. On {len(people.true):,} "
        f"pictures their majorities and people's agree with κ {kappa}. On the {people.hard.sum()} "
        f"hard ones, the shares that name the true class have ρ {rho}."
    )
    sentences = {"simulated": said, "classifier": classifier_sentence(votes, single)}
    lines = (f"{key} = {json.dumps(one, ensure_ascii=False)}" for key, one in sentences.items())
    write_text(SENTENCES, "\n".join(["# Written by benchmarks.jury.", *lines, ""]))


def classifier_sentence(votes: Numbers, single: Numbers) -> str:
    """Return how networks err against people, for other networks on other pictures."""
    five, best = (_shown(numbers["kappa"]) for numbers in (votes, single))
    return (
        "Not measured against people: on photographs, other networks agree with people's majority "
        f"with κ {five} (five voting) and {best} (the best)."
    )


def _shown(found: Found) -> str:
    return with_interval(found.value, found.low, found.high)


def claims_of(found: Mapping[str, Numbers], run: str) -> dict[str, Claim]:
    """Return each number by its rater and statistic; what is no number has none."""
    claims = {}
    for rater, every in found.items():
        for name, (value, low, high, n, _) in every.items():
            if np.isfinite(value):
                key = f"{re.sub(r'[^a-z]+', '-', rater)}.{name}"
                known = np.isfinite(low)
                claims[key] = Claim(
                    value, low if known else None, high if known else None, f"{n} pictures", run=run
                )
    return claims


def main() -> None:
    """Print and keep the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="for training: CIFAR-10")
    parser.add_argument("--from", dest="copy", type=Path, required=True, help="of CIFAR-10H")
    parser.add_argument("--work", type=Path, required=True, help="for the networks")
    parser.add_argument("--epochs", type=int, default=10, help="of the five networks, in tenths")
    parser.add_argument("--photographs", type=int, default=10, help="in tenths; 0: none of these")
    parser.add_argument("--workers", type=int, default=1)
    add_option(parser)
    asked = parser.parse_args()
    begin()
    dataset = read_plugin(DATASETS, asked.dataset)
    people = people_of(asked.copy)
    paths = train_juries(
        dataset,
        {"five networks": asked.epochs, "photographs": asked.photographs},
        asked.work,
        asked.workers,
        lambda progress: print(f"{progress.done} of {progress.total}: {progress.note}", flush=True),
    )
    juries = {name: kept_jury(own) for name, own in paths.items()}
    with Finds(asked.results) as finds:
        row = finds.table("networks", "set", "network", "kind", "right", "CPU minutes")
        trained = networks(paths, dataset)
        for *names, right, minutes in trained:
            row(*names, f"{right:.3f}", f"{minutes:.1f}")
        found, best, votes = compare(juries, people)
        row = finds.table("table", "who", "ρ, hard", "κ", "right", "confusions")
        for name, numbers in found.items():
            mark = " (chosen)" if name == best else ""
            cells = (numbers[one] for one in STATISTICS)
            row(name + mark, *(with_interval_or_why(*one[:3], one.why) for one in cells))
        every = {**found, "chosen": found[best], "all five networks: votes": votes}
        finds.claims |= claims_of(every, finds.run)
        for name, least in TARGET.items():
            print(f"{best}, {name}: {judge(found[best][name].value, least=least)}")
        if asked.results:
            shares = [one[3] for one in trained if one[0] == "five networks"]
            keep_sentences(votes, found["one network"], people, shares)


if __name__ == "__main__":
    main()
