"""Plan of an experiment in split inference, as plain values, and the job it becomes."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import Place, changed, from_record, to_record
from semsim.base.progress import Report, silent
from semsim.base.registry import Checked, Registry, built, read_plugin, setting
from semsim.base.storage.names import checked_name
from semsim.base.storage.places import toml_of
from semsim.base.storage.records import read_object
from semsim.datasets import DATASETS
from semsim.grid.subprocess_worker import apart
from semsim.metrics import find_metric
from semsim.systems.split import SPLIT_DEFENCES, SPLIT_NETWORKS

if TYPE_CHECKING:
    import torch

    from semsim.systems.split.attacks import FeatureInversion
    from semsim.systems.split.networks import FeatureObservation, SplitSystem

STARTS = ("random", "identity")


@dataclass(frozen=True, kw_only=True)
class SplitTrainSettings:
    """Adam, the step size rising and falling once.

    Attributes:
        ensemble_epochs, ensemble_lr: Of Ensembler's stage 2, which needs about three times as many
            to come near the undefended accuracy.
    """

    epochs: int = setting(12, "Epochs", "Of networks trained whole.")
    ensemble_epochs: int = setting(36, "Epochs of stage 2", "Of Ensembler's second stage.")
    batch_size: int = 64
    lr: float = 2e-3
    ensemble_lr: float = 5e-3


@dataclass(frozen=True, kw_only=True)
class ShadowAttack(Checked):
    """A shadow head trained through the server's frozen bodies, then a decoder of its features.

    Attributes:
        bodies: Places of the bodies it trains through; None for all.
        learn_selector: Whether it learns how much each counts (the paper's adaptive attack) or
            counts them equally.
        start: How the two layers of the shadow head start that stand for the client's noise:
            "random" or as the "identity", which is no noise. The paper does not say; with random
            ones the shadow's accuracy often stays low, on photographs, and with the identity
            seldom.
        align: Weight of a penalty that draws mean and deviation of the shadow's features, by
            channel and position, to those of the features the client has sent; 0 as published.
    """

    bodies: tuple[int, ...] | None = None
    learn_selector: bool = True
    align: float = 0.0
    epochs: int = setting(15, "Epochs of the attack", "Epochs of shadow head and decoder.")
    decoder_epochs: int = 15
    lr: float = 2e-3
    batch_size: int = 64
    start: str = setting(
        "random",
        "Noise layers start as",
        "Initial weights of the shadow's two layers for noise: random or identity.",
        choices=STARTS,
    )

    def __call__(
        self, seen: "FeatureObservation", *, rng: "torch.Generator", report: Report = silent
    ) -> "FeatureInversion":
        from semsim.systems.split.attacks import invert  # with torch, which settings need not

        return invert(self, seen, rng, report)


_UNFIT = re.compile(r"[^0-9A-Za-z._=-]+")  # for the name of a folder
RUNS = "split-"  # begins the folder of an experiment below runs
ALIGN = 10.0  # weight of the alignment in the attacks that have it
VALID_POINTS = 0.05  # accuracy a defence may cost before a low leak says nothing about it


@dataclass(frozen=True, kw_only=True)
class SplitArm:
    """One way to attack.

    Attributes:
        bodies: "all", "each" on its own, or "selected", which only the client knows: an upper bound
            and no attack that a server can make.
    """

    title: str
    bodies: str
    align: float = 0.0


ARMS: Registry[SplitArm] = Registry(
    "attack on split inference",
    {
        "adaptive": SplitArm(title="Adaptive, all bodies", bodies="all"),
        "one-body": SplitArm(title="N=1, each body", bodies="each"),
        "oracle": SplitArm(title="Oracle that knows P", bodies="selected"),
        "adaptive-aligned": SplitArm(title="Adaptive, aligned", bodies="all", align=ALIGN),
        "one-body-aligned": SplitArm(title="N=1, aligned", bodies="each", align=ALIGN),
        "oracle-aligned": SplitArm(title="Oracle, aligned", bodies="selected", align=ALIGN),
    },
)


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """Every network under every defence and seed, attacked in every way with every seed.

    Attributes:
        dataset, networks, defences: A registry name, after a colon settings, as
            `small:h=2,width=8`.
        shadow: The settings that attacks share.
        images: The client sends all its test images.
        metrics: Beside SSIM, PSNR and the recogniser.
        attack_invalid: A system too whose accuracy is more than 5 points too low.
    """

    name: str = setting(MISSING, "Name", "Name of the experiment.")
    dataset: str = setting("digits", "Data set", "Data set, as digits or folder:root=photos.")
    networks: tuple[str, ...] = setting(("small",), "Network", "Network, as resnet18:h=2,t=1.")
    defences: tuple[str, ...] = setting(
        ("none", "single", "ensembler:bodies=4,selected=2"),
        "Defences",
        "Defence, as ensembler:bodies=4.",
    )
    attacks: tuple[str, ...] = setting(
        ("adaptive", "adaptive-aligned"), "Attacks", f"One of {', '.join(ARMS)}."
    )
    train: SplitTrainSettings = field(default_factory=SplitTrainSettings)
    shadow: ShadowAttack = field(default_factory=ShadowAttack)
    defence_seeds: tuple[int, ...] = setting((0,), "Defence seeds", "Seed of a defence's training.")
    attack_seeds: tuple[int, ...] = setting(
        (0,), "Attack seeds", "Seed of an attack; a verdict needs three."
    )
    images: int = setting(48, "Images judged", "Of the test split, those that are judged.")
    metrics: tuple[str, ...] = setting((), "More metrics", "One more metric, as semsim:mine.")
    attack_invalid: bool = False


@dataclass(frozen=True, kw_only=True)
class SplitPlace(Place):
    """Folders and device of an experiment.

    Attributes:
        checkpoints: Weights of metrics.
    """

    checkpoints: Path


PRESETS: Mapping[str, SplitPlan] = MappingProxyType(
    {
        name: changed(SplitPlan(name=name), changes)
        for name, changes in toml_of("semsim.systems.split", "presets.toml").items()
    }
)
# A decoder takes as long as the rest of an attack: the form has one number for both.
_ATTACK_EPOCHS = PRESETS["small"].shadow.epochs  # the form has one number for both of its parts
FIRST_LOOK = replace(
    PRESETS["small"],
    name="",
    defences=("none", "single"),
    attacks=("adaptive-aligned",),  # the plain one fails on the undefended system
    shadow=replace(PRESETS["small"].shadow, decoder_epochs=_ATTACK_EPOCHS),
    defence_seeds=(0,),
    attack_seeds=(0,),
    images=24,
)
SYSTEMS = replace(
    FIRST_LOOK,
    defences=("none", "single", "ensembler:bodies=4,selected=2"),
    attacks=("adaptive", "adaptive-aligned"),
    attack_seeds=(0, 1, 2),
    images=48,
)


def check(plan: SplitPlan) -> SplitPlan:
    """`plan` itself; `SettingsError` or `UnknownNameError` where it cannot be carried out."""
    checked_name(plan.name, "an experiment")
    empty = [name for name in _LISTS if not getattr(plan, name)]
    if empty:
        raise SettingsError(f"{empty[0].replace('_', ' ')}: give at least one.")
    if plan.images < 1:
        raise SettingsError(f"Give at least one image to attack; got {plan.images}.")
    read_plugin(DATASETS, plan.dataset)
    for text in plan.networks:
        make_network(text)
    for text in plan.defences:
        built(SPLIT_DEFENCES, text)
    for arm in plan.attacks:
        ARMS[arm]
    for metric in plan.metrics:
        find_metric(metric)
    return plan


def without_metrics(plan: SplitPlan) -> SplitPlan:
    """Return the slow part of a plan; metrics are needed only where all is put together."""
    return replace(plan, metrics=())


_LISTS = ("networks", "defences", "attacks", "defence_seeds", "attack_seeds")


def make_network(text: str) -> Any:
    """The network written as `text`; `SettingsError` where its cuts leave a part empty."""
    from semsim.systems.split.networks import (  # with torch, which a plan needs not
        ImageTask,
        check_cuts,
    )

    # Where it can be cut does not depend on the images.
    any_task = ImageTask(size=(32, 32), classes=2, mean=(0.5,) * 3, std=(0.25,) * 3)
    network = built(SPLIT_NETWORKS, text)
    check_cuts(network, any_task)
    return network


def model_name(network: str, defence: str, seed: int) -> str:
    """Return the name of a system, unique within an experiment."""
    return f"{network}/{defence}/seed {seed}"


def attack_name(arm: str, tool: ShadowAttack) -> str:
    """Return the name of an attack on a system, unique among those on it."""
    return f"{arm}-body{tool.bodies[0]}" if arm.startswith("one-body") and tool.bodies else arm


def set_folder(data: Path, plan: SplitPlan, model: str, attack: str) -> Path:
    """Return the folder where the reconstruction set of an attack on a system is, or will be."""
    folder = f"{_UNFIT.sub('-', model)}__{_UNFIT.sub('-', attack)}"
    return Path(data) / "runs" / f"{RUNS}{plan.name}" / folder


def attacks_on(system: "SplitSystem", arm: str, shadow: ShadowAttack) -> list[ShadowAttack]:
    """The attacks of `arm` on a system, none where another arm is the same attack on it.

    With one body all arms are `adaptive`; with all bodies selected there is nothing to know.
    """
    way, count = ARMS[arm], len(system.bodies)
    base = replace(shadow, align=way.align)
    if way.bodies == "all":
        return [base]
    if count == 1:
        return []
    if way.bodies == "each":
        return [replace(base, bodies=(place,)) for place in range(count)]
    chosen = system.selected
    if len(chosen) == count:
        return []
    return [replace(base, bodies=chosen, learn_selector=False)]


KIND = "split"


@dataclass(frozen=True, kw_only=True)
class SplitJob:
    """An experiment and where it is carried out.

    Attributes:
        workers, scheduler: As of `run_split`.
    """

    plan: SplitPlan
    place: SplitPlace
    workers: int = 1
    scheduler: str = ""


def queue_split(plan: SplitPlan, place: SplitPlace, workers: int = 1, scheduler: str = "") -> Job:
    """The job that will carry out `plan`; not yet started.

    Raises `SettingsError` for a plan that cannot be, `JobError` where one of that name is live.
    """
    check(plan)
    root = place.data / "jobs"
    if any(plan_of(job).name == plan.name for job in jobs.live_jobs(root, KIND)):
        raise JobError(f"{plan.name!r} is under way already; choose another name.")
    return jobs.create(
        root,
        kind=KIND,
        title=f"Split inference {plan.name}",
        order=SplitJob(plan=plan, place=place.resolved(), workers=workers, scheduler=scheduler),
    )


def like(plan: SplitPlan, workers: int = 1, scheduler: str = "") -> Mapping[str, Any]:
    """Return what jobs have that carry out the same experiment, whatever metrics judge it."""
    free = ("name", "metrics")
    asked = {name: one for name, one in to_record(plan).items() if name not in free}
    return {"plan": asked, "workers": workers, "scheduler": scheduler}


def plan_of(job: Job) -> SplitPlan:
    """The plan a job carries out; `SemsimError` where its folder does not say."""
    return jobs.read_order(job, SplitJob).plan


def plan_in(path: Path, *, by_hand: bool = False) -> SplitPlan:
    """The plan in a JSON file, by itself or in a job's order; `SemsimError` where there is none.

    Args:
        by_hand: As of `from_record`.
    """
    record = read_object(path, JobError)
    return from_record(SplitPlan, record.get("plan", record), by_hand=by_hand)


@lru_cache(maxsize=8)
def planned(plan: SplitPlan, data: Path) -> tuple[tuple[str, str, Path], ...]:
    """Every set of a plan: model, attack, folder; the last few are kept, as a page asks often."""
    found: tuple[tuple[str, str, Path], ...] = apart(
        "semsim.systems.split.run:planned_sets", plan, Path(data).resolve()
    )
    return found
