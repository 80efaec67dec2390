"""Defences of split inference: each is its settings, and trains a client and a server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import Checked, setting
from semsim.systems.split.networks import (
    FeatureNoise,
    Parts,
    SplitSystem,
    feature_shape,
    make_parts,
)
from semsim.systems.split.training import Bench, Loss, TrainingStage, fit, freeze

_SELECTOR, _NOISE, _ENSEMBLE, _BATCHES = 1_000_003, 2_000_003, 3_000_017, 4_000_037  # seeds apart


class SplitDefence(Protocol):
    """Settings of a defence; calling them trains the system that has it, in eval mode."""

    __dataclass_fields__: ClassVar[dict]

    def __call__(self, bench: Bench, report: Report = ...) -> SplitSystem: ...


@dataclass(frozen=True, kw_only=True)
class Undefended:
    """One network, nothing added: NONE in the Ensembler paper's Table 1."""

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        return _trained_whole(bench, 1, 0.0, 0.0, report)


@dataclass(frozen=True, kw_only=True)
class Shredder(Checked):
    """Additive noise on the undefended network, without retraining (after Mireshghallah 2020).

    The Ensembler paper reduces Shredder to this; Shredder itself learns its noise.

    Attributes:
        sigma: Standard deviation.
        fresh: Drawn anew for every image instead of once for all.
    """

    sigma: float = setting(0.3, least=0)
    fresh: bool = True

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        system = _trained_whole(bench, 1, 0.0, 0.0, report)
        system.noise = _noise(bench, system.head, self.sigma, self.fresh, bench.seed)
        return system


@dataclass(frozen=True, kw_only=True)
class Single(Checked):
    """One network trained with a Gaussian noise that stays the same in use.

    Attributes:
        sigma: Standard deviation; the paper writes N(0, 0.1), read here as a deviation.
        fresh: Drawn anew for every image instead of once for all.
    """

    sigma: float = setting(0.1, least=0)
    fresh: bool = False

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        return _trained_whole(bench, 1, self.sigma, 0.0, report, fresh=self.fresh)


@dataclass(frozen=True, kw_only=True)
class DropoutSingle(Checked):
    """One network with dropout of the body's answer: DR-single.

    Attributes:
        p: Share that is dropped.
    """

    p: float = setting(0.5, least=0, most=1)
    sigma: float = setting(0.0, least=0)

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        return _trained_whole(bench, 1, self.sigma, self.p, report)


@dataclass(frozen=True, kw_only=True)
class DropoutEnsemble(Checked):
    """`bodies` bodies trained at once behind one head, with dropout of their answers: DR-ensemble.

    It has Ensembler's shape but neither its diverse bodies nor its secret.
    """

    bodies: int = setting(10, least=1)
    p: float = setting(0.5, least=0, most=1)
    sigma: float = setting(0.0, least=0)

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        return _trained_whole(bench, self.bodies, self.sigma, self.p, report)


@dataclass(frozen=True, kw_only=True)
class Ensembler(Checked):
    """N bodies of networks that were trained apart, of which a secret P answer (paper, §4).

    Attributes:
        bodies: N.
        selected: P.
        sigma: Of each network's own fixed noise.
        weight: Λ of Eq. 3, which the paper does not give.
    """

    bodies: int = 10
    selected: int = 4
    sigma: float = setting(0.1, least=0)
    weight: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.selected <= self.bodies:
            raise SettingsError(
                f"selected must lie between 1 and bodies; got {self.selected} of {self.bodies}."
            )

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        # Bodies are frozen for good once their own training is over.
        heads, bodies = [], []
        for place in range(self.bodies):
            apart = replace(bench, seed=_seed_of(bench.seed, place))
            told = stage_of(report, place, self.bodies + 1)
            system = _trained_whole(apart, 1, self.sigma, 0.0, told, name=f"network {place + 1}")
            heads.append(freeze(system.head))
            bodies.append(freeze(system.bodies[0]))
        return _second_stage(
            bench, self, heads, bodies, stage_of(report, self.bodies, self.bodies + 1)
        )


@dataclass(frozen=True, kw_only=True)
class RandomHead(Checked):
    """The undefended network behind an untrained head: what no training of the head can hide.

    The paper has it on CelebA-HQ only, at the cost of nearly all accuracy.

    Attributes:
        sigma: Standard deviation of a fixed noise.
    """

    sigma: float = setting(0.1, least=0)

    def __call__(self, bench: Bench, report: Report = silent) -> SplitSystem:
        system = _trained_whole(bench, 1, 0.0, 0.0, report)
        fresh = make_parts(bench.network, bench.task, bench.seed + _ENSEMBLE)
        system.head = freeze(fresh.head.to(bench.device))
        system.noise = _noise(bench, system.head, self.sigma, False, bench.seed)
        return system


def draw_selector(bodies: int, selected: int, seed: int) -> Tensor:
    """(bodies,) float32 that sums to one: 1 / `selected` at as many places, else 0 (Eq. 1)."""
    rng = torch.Generator().manual_seed(seed + _SELECTOR)
    selector = torch.zeros(bodies)
    selector[torch.randperm(bodies, generator=rng)[:selected]] = 1 / selected
    return selector


def ensembler_loss(
    logits: Tensor, labels: Tensor, own: Tensor, others: Sequence[Tensor], weight: float
) -> Tensor:
    """Cross-entropy and the penalty for a head that is like one of the first stage's (Eq. 3).

    Args:
        own: (N, …) the new head's features, without noise.
        others: Those of the selected networks' heads for the same images. Cosines are of one
            image's features, averaged over the batch before the largest is taken.
    """
    cosines = [F.cosine_similarity(own.flatten(1), other.flatten(1)).mean() for other in others]
    return F.cross_entropy(logits, labels) + weight * torch.stack(cosines).max()


def stage_of(report: Report, place: int, stages: int) -> Report:
    """A report for stage `place` (from 0) of `stages`, each counted as long as the others."""

    def tell(progress: Progress) -> None:
        share = progress.done / progress.total if progress.total else 1.0
        done = round(100 * (place + share))
        report(replace(progress, done=done, total=100 * stages))

    return tell


def _second_stage(
    bench: Bench,
    defence: Ensembler,
    heads: list[nn.Module],
    bodies: list[nn.Module],
    report: Report,
) -> SplitSystem:
    """A new head, noise and tail in front of and behind the frozen bodies (paper, §4.2)."""
    parts = make_parts(bench.network, bench.task, bench.seed + _ENSEMBLE, copies=defence.bodies)
    head = parts.head.to(bench.device)
    system = SplitSystem(
        head=head,
        noise=_noise(bench, head, defence.sigma, False, bench.seed + _ENSEMBLE),
        bodies=bodies,
        selector=draw_selector(defence.bodies, defence.selected, bench.seed).to(bench.device),
        tail=parts.tail.to(bench.device),
    )
    rivals = [heads[place] for place in system.selected]

    def loss(images: Tensor, labels: Tensor) -> Tensor:
        own = system.head(images)
        with torch.no_grad():
            others = [rival(images) for rival in rivals]
        logits = system.conclude(system.noise(own))
        return ensembler_loss(logits, labels, own, others, defence.weight)

    trained = nn.ModuleList([system.head.train(), system.tail.train()])
    settings = bench.settings
    stage = _stage(bench, "ensemble", settings.ensemble_epochs, settings.ensemble_lr)
    fit(trained, loss, bench.data, stage, report)
    return system.eval()


def _trained_whole(
    bench: Bench,
    bodies: int,
    sigma: float,
    drop: float,
    report: Report,
    **more: Any,
) -> SplitSystem:
    """Head, bodies and tail trained together by cross-entropy (Eq. 2).

    Args:
        more: `fresh`, whether the noise is drawn anew for every image; `name`, of the stage.
    """
    parts = _fresh_parts(bench, bodies)
    head = parts[0].head.to(bench.device)
    system = SplitSystem(
        head=head,
        noise=_noise(bench, head, sigma, more.get("fresh", False), bench.seed),
        bodies=[part.body.to(bench.device) for part in parts],
        selector=torch.full((bodies,), 1 / bodies, device=bench.device),
        tail=parts[0].tail.to(bench.device),
        drop=drop,
    )
    settings = bench.settings
    stage = _stage(bench, more.get("name", "network"), settings.epochs, settings.lr)
    fit(system.train(), _cross_entropy(system), bench.data, stage, report)
    return system.eval()


def _fresh_parts(bench: Bench, bodies: int) -> list[Parts]:
    """As many parts as bodies, of which only the first's head and tail are used."""
    seeds = [bench.seed, *(_seed_of(bench.seed, place) for place in range(1, bodies))]
    return [make_parts(bench.network, bench.task, seed, copies=bodies) for seed in seeds]


def _cross_entropy(system: Callable[[Tensor], Tensor]) -> Loss:
    return lambda images, labels: F.cross_entropy(system(images), labels)


def _noise(bench: Bench, head: nn.Module, sigma: float, fresh: bool, seed: int) -> FeatureNoise:
    """A Gaussian noise for the features of `head`: one for all images, or drawn anew."""
    shape = feature_shape(head, bench.task)
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed + _NOISE))
    fixed = torch.zeros(shape) if fresh else sigma * drawn
    return FeatureNoise(fixed, sigma if fresh else 0.0).to(bench.device)


def _stage(bench: Bench, name: str, epochs: int, lr: float) -> TrainingStage:
    file = f"{name.replace(' ', '-')}.part"
    return TrainingStage(
        name=name,
        epochs=epochs,
        lr=lr,
        batch_size=bench.settings.batch_size,
        seed=bench.seed + _BATCHES,
        checkpoint=None if bench.folder is None else bench.folder / file,
    )


def _seed_of(seed: int, place: int) -> int:
    """A seed of the network at `place` that no other seed of an experiment shares."""
    return seed * 1009 + 101 * (place + 1)
