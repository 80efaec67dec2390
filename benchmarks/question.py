"""Is a SemSim trained on votes better, held out, than pixels, initial weights and a classifier?

The rule, which stands here before the second half is opened:

1. The originals are halved once, by `HALVING_SEED`. What follows up to 3 sees the first half only.
2. Candidates are every start with every recipe of `RECIPES`. A start is random weights, a file
   given as --start NAME=FILE (of `train pretrain` on other pictures), or torchvision's ImageNet
   weights, if their file is on this machine already; nothing is fetched. Weights that are no
   better than guessing are no start, and those that learned of the study's own data set have not
   seen other pictures: what a run with these among them says is outside this rule.
3. Each candidate is trained with each of `CHOOSING_SEEDS` and each architecture left out, and
   judged by that architecture's reconstructions of a third of the originals, which it has not
   seen. Chosen is the candidate with the highest mean of its pooled AUC less the highest of those
   of MSE, PSNR and SSIM. On a tie the earlier in the list is chosen. One whose loss leaves the
   finite numbers in any training is not chosen.
4. The second half is opened. For each of ten seeds, which draw half of its originals, and each
   architecture left out: the chosen one learns from the other architectures' reconstructions of
   all other originals and is judged by this one's of these. No setting changes after this.
5. It is ahead of (a) MSE, PSNR and SSIM, (b) its initial weights, (c) the reference classifier,
   where its AUC is higher. The target is (a) and (b) in 8 of 10 seeds with either architecture
   left out.

Seeds share originals, so that the intervals over seeds, Student's t, are too narrow.

python -m benchmarks.question --labels labels.parquet --votes votes.parquet --out FOLDER
    [--start symbols=start.safetensors] [--backbone lenet] [--seeds 10] [--choose-only]
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measuring import begin
from semsim.base.cli.terminal import text_table
from semsim.base.errors import DataError, SettingsError
from semsim.base.stats.grouping import named_in
from semsim.base.stats.intervals import half_words, of_means
from semsim.base.stats.roc import POOLED
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations_run import Material, Sides, Workplace, read_material, run_sides
from semsim.learning.evaluation import auc_of
from semsim.learning.settings import IMAGENET, SCRATCH
from semsim.learning.splits import HoldOut, choices, divide, originals_of
from semsim.learning.triplets import is_simulated
from semsim.metrics.backbones import torchvision_name
from semsim.weights import CHECKPOINTS

HALVING_SEED = 1811
CHOOSING_SEEDS = (0, 1)
CLASSIC = ("mse", "psnr", "ssim")
TARGET = 0.8  # of the seeds
_BASE: dict[str, Any] = {"small_stem": False, "device": "cpu"}
_WHOLE: dict[str, Any] = {"validation_fraction": 0.0, "patience": 0}
_TRIPLET = replace(PRESETS["triplet"], **_BASE, validation_fraction=0.0)
_TRIPLET = replace(PRESETS["triplet"], **_BASE, validation_fraction=0.0)
RECIPES: dict[str, TrainSettings] = {
    "triplet": _TRIPLET,
    "contrastive": replace(_TRIPLET, loss="contrastive"),
    "pooled": replace(PRESETS["pooled"], **_BASE, **_WHOLE),
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A recipe from a start; backbone, weights: as of `TrainSettings`."""

    backbone: str
    recipe: str
    start: str
    weights: str

    @property
    def name(self) -> str:
        return f"{self.recipe}-{self.start}"

    def settings(self, seed: int) -> TrainSettings:
        """The averages of batch normalisation stay where the start has any worth keeping."""
        kept: dict[str, Any] = {} if self.weights == SCRATCH else {"batch_norm": "frozen"}
        network: dict[str, Any] = {"backbone": self.backbone, "weights": self.weights}
        return replace(RECIPES[self.recipe], **network, seed=seed, **kept)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a study. recogniser: name of the metric that is (c)."""

    material: Material
    place: Workplace
    out: Path
    recogniser: str
    seeds: int


def halves_of(labels: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(R,) bool, rows of the first half of originals, and (R,) int, the original of every row."""
    original = originals_of(labels)
    every = np.random.default_rng(HALVING_SEED).permutation(np.unique(original))
    return np.isin(original, every[: len(every) // 2]), original


def architectures(labels: pd.DataFrame) -> list[str]:
    """Those that are left out in turn; `DataError` where leaving one out leaves none."""
    found = choices(labels, "architecture")
    if not found:
        raise DataError("The question leaves out one architecture; this study has only one.")
    return found


def candidates(backbone: str, given: Mapping[str, str]) -> list[Candidate]:
    """Every recipe from every start there is."""
    starts = {"random": SCRATCH, **given}
    if imagenet_is_here(backbone):
        starts["imagenet"] = IMAGENET
    return [
        Candidate(backbone=backbone, recipe=recipe, start=start, weights=weights)
        for recipe in RECIPES
        for start, weights in starts.items()
    ]


def imagenet_is_here(backbone: str) -> bool:
    """Whether torchvision's weights lie where torchvision would put them."""
    import torch
    from torchvision.models import get_model_weights

    try:
        url = get_model_weights(torchvision_name(backbone)).DEFAULT.url
    except SettingsError:  # torchvision has none of this network
        return False
    return (Path(torch.hub.get_dir()) / "checkpoints" / Path(url).name).is_file()


def choose(question: Question, offered: Sequence[Candidate]) -> tuple[Candidate, list[list[str]]]:
    """The candidate that leads most on the first half, and a row a candidate, best first."""
    labels = question.material.labels
    first = labels[halves_of(labels)[0]]
    means, rows = {}, {}
    for one in offered:
        try:
            found = [
                _lead(_choosing_run(question, one, first, architecture, seed)["held_out"])
                for architecture in architectures(first)
                for seed in CHOOSING_SEEDS
            ]
        except SettingsError as error:  # its loss left the finite numbers
            means[one.name], rows[one.name] = -np.inf, ["–", f"not chosen: {error}"]
            continue
        leads = [lead for lead in found if lead is not None]
        means[one.name] = float(np.mean(leads)) if leads else -np.inf
        rows[one.name] = [f"{means[one.name]:+.3f}", " ".join(f"{lead:+.2f}" for lead in leads)]
    best = max(offered, key=lambda one: means[one.name])
    return best, [[name, *rows[name]] for name in sorted(means, key=lambda name: -means[name])]


def _choosing_run(
    question: Question, one: Candidate, first: pd.DataFrame, architecture: str, seed: int
) -> dict[str, Any]:
    held = HoldOut(kind="architecture", value=architecture, fraction=1 / 3, seed=seed)
    split = divide(first, held)
    sides = Sides(train=split.train, test=split.test, votes=question.material.votes)
    facts = {"candidate": one.name, "architecture": architecture, "seed": seed}
    folder = question.out / "choosing" / one.name / f"{architecture}-{seed}"
    return run_sides(one.settings(seed), sides, question.place, folder, facts)


def opened(question: Question, chosen: Candidate) -> list[dict[str, Any]]:
    """One row an architecture left out and seed, on the second half."""
    labels = question.material.labels
    rows = []
    for architecture in architectures(labels):
        for seed in range(question.seeds):
            sides = opened_sides(labels, architecture, seed, question.material.votes)
            facts = {"candidate": chosen.name, "architecture": architecture, "seed": seed}
            folder = question.out / "opened" / chosen.name / f"{architecture}-{seed}"
            rows.append(run_sides(chosen.settings(seed), sides, question.place, folder, facts))
    return rows


def opened_sides(
    labels: pd.DataFrame, architecture: str, seed: int, votes: pd.DataFrame | None
) -> Sides:
    """Half of the second half's originals to judge by, by the architecture left out alone."""
    first, original = halves_of(labels)
    closed = np.unique(original[~first])
    tested = np.random.default_rng(seed).permutation(closed)[: max(1, len(closed) // 2)]
    in_test = np.isin(original, tested)
    left_out = np.array([own == architecture for own, _ in named_in(labels)])
    train, test = labels[~in_test & ~left_out], labels[in_test & left_out]
    return Sides(train=train, test=test, votes=votes, controls="all")


def table(rows: Sequence[Mapping[str, Any]], recogniser: str) -> str:
    """AUCs of every seed, and what it is ahead of, an architecture left out after the other."""
    columns = {
        **{"SemSim": "semsim", "initial weights": "semsim:semsim.start"},
        **{"shuffled": "shuffled", "MSE": "mse", "PSNR": "psnr", "SSIM": "ssim"},
        **{"recogniser": recogniser, "one person": "human"},
    }
    parts = []
    for architecture in dict.fromkeys(row["architecture"] for row in rows):
        own = [row for row in rows if row["architecture"] == architecture]
        found = {
            head: np.array([_auc(row["held_out"], name) for row in own])
            for head, name in columns.items()
        }
        lines = [
            [str(row["seed"]), *(_number(found[head][i]) for head in columns)]
            for i, row in enumerate(own)
        ]
        lines.append(["mean", *(_number(_mean(found[head])) for head in columns)])
        parts += [f"{architecture} left out:", text_table(["seed", *columns], lines)]
        parts += [_ahead(found)]
    return "\n".join(parts)


def _ahead(found: Mapping[str, np.ndarray]) -> str:
    own, n = found["SemSim"], len(found["SemSim"])
    pixels = np.nanmax([found[name] for name in ("MSE", "PSNR", "SSIM")], axis=0)
    rivals = {
        "(a) MSE, PSNR and SSIM": pixels,
        "(b) its initial weights": found["initial weights"],
        "(c) the reference classifier": found["recogniser"],
        "the same training on shuffled votes": found["shuffled"],
    }
    lines = []
    for name, other in rivals.items():
        lead = own - other
        lead = lead[~np.isnan(lead)]
        if not len(lead):
            lines.append(f"  not compared with {name}: it has no AUC here")
            continue
        told, won = half_words(*of_means(lead, noun="seed")), int((lead > 0).sum())
        lines.append(f"  ahead of {name} in {won} of {n}: {lead.mean():+.3f}{told}")
    both = int(((own > pixels) & (own > found["initial weights"])).sum())
    met = "met" if both >= TARGET * n else "missed"
    lines.append(f"  ahead of (a) and (b) in {both} of {n}; target {TARGET:.0%}: {met}")
    return "\n".join(lines)


def _lead(held_out: Mapping[str, Any]) -> float | None:
    """Return pooled AUC of the SemSim less the best of the classic ones'; None without an AUC."""
    own = auc_of(held_out, "semsim", POOLED)
    others = [auc_of(held_out, name, POOLED) for name in CLASSIC]
    known = [value for value in others if value is not None]
    return None if own is None or not known else own - max(known)


def _auc(held_out: Mapping[str, Any], name: str) -> float:
    value = auc_of(held_out, name, POOLED)
    return np.nan if value is None else value


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="what is there is not done again")
    parser.add_argument("--start", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--backbone", default="resnet18", help="network of every candidate")
    parser.add_argument("--recogniser", default="recogniser", help="name of a metric")
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--choose-only", action="store_true", help="leave the second half closed")
    asked = parser.parse_args()
    begin()
    given = dict(text.split("=", 1) for text in asked.start)
    if not all(Path(file).is_file() for file in given.values()):
        raise SettingsError(f"--start needs NAME=FILE of weights that are there; got {given}.")
    place = Workplace(
        checkpoints=asked.checkpoints.resolve(),
        scores=(asked.out / "scores").resolve(),
        device="cpu",
        metrics=(*CLASSIC, asked.recogniser),
    )
    question = Question(
        material=read_material(asked.labels, asked.votes),
        place=place,
        out=asked.out.resolve(),
        recogniser=asked.recogniser,
        seeds=asked.seeds,
    )
    votes = "simulated votes" if is_simulated(question.material.labels) else "people's votes"
    print(f"{len(question.material.labels)} reconstructions, {votes}")
    chosen, rows = choose(question, candidates(asked.backbone, given))
    print(text_table(["candidate", "mean lead", "of each training"], rows), flush=True)
    print(f"chosen on the first half: {chosen.name}", flush=True)
    if not asked.choose_only:
        print(table(opened(question, chosen), asked.recogniser))


if __name__ == "__main__":
    main()
