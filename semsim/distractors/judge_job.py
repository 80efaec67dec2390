"""Training a judge: an independent classifier that has seen what attacks do to pictures."""

import hashlib
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from semsim.base.errors import SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import Place
from semsim.base.progress import Report
from semsim.base.registry import built, named, read_plugin
from semsim.base.storage.names import checked_name
from semsim.base.storage.versions import software_versions
from semsim.datasets import DATASETS
from semsim.distractors.registry import BUILT_IN, judge_path, write_card
from semsim.targets import TARGETS
from semsim.targets.chance import facts_of_test
from semsim.targets.degrade import as_attacks_leave_them
from semsim.targets.model import save_target
from semsim.targets.train import Training, accuracy, carry_out
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

KIND = "judge"
USUAL = TrainSettings(epochs=10, lr=0.05)
STATE = "training.pt"  # in the folder of its job


@dataclass(frozen=True, kw_only=True)
class JudgeOrder(Place):
    """A judge to train, `name` in `checkpoints`/judges.

    Attributes:
        dataset, architecture: As in "symbols:train_per_class=20".
        train: Its seed is added to a number drawn from the name, so that two judges of one data set
            never begin alike.
    """

    name: str
    dataset: str
    checkpoints: Path
    architecture: str = "cnn-small"
    train: TrainSettings = USUAL


def queue_judge(order: JudgeOrder, root: Path) -> Job:
    """The job that will train the judge, below `root`; not yet started.

    Raises `SettingsError` for a name that cannot be or is taken, and for settings that cannot be.
    """
    checked_name(order.name, "a distractor model")
    read_plugin(DATASETS, order.dataset)
    read_plugin(TARGETS, order.architecture)
    path = judge_path(order.name, order.checkpoints)
    if path.exists() or order.name == BUILT_IN:
        raise SettingsError(f"The distractor model {order.name!r} exists; choose another name.")
    title = f"Train the distractor model {order.name}"
    return jobs.create(root, kind=KIND, title=title, order=order)


def seed_of(order: JudgeOrder) -> int:
    """The seed of its weights, which no judge of another name has."""
    drawn = hashlib.sha256(order.name.encode()).digest()
    return int.from_bytes(drawn[:4], "big") // 2 + order.train.seed


def do_judge(order: JudgeOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Train the judge, test it clean and degraded, and write it with its card.

    An interrupted training goes on from what lies in `folder`. The card alone says when: the same
    judge trained again is the same file, and known by its hash. Returns the card.
    """
    source = read_plugin(DATASETS, order.dataset)
    dataset = built(DATASETS, source)
    architecture = read_plugin(TARGETS, order.architecture)
    train = replace(order.train, seed=seed_of(order))
    data, test = dataset("train"), dataset("test")
    training = Training(
        architecture=built(TARGETS, architecture),
        data=data,
        settings=train,
        device=order.device,
        degrade=as_attacks_leave_them,
        checkpoint=folder / STATE,
    )
    model = carry_out(training, report)
    asked = test.labels.tolist(), len(test.classes)
    facts = {
        "name": order.name,
        "role": KIND,
        "dataset": named(DATASETS, source),
        "architecture": named(TARGETS, architecture),
        "train": asdict(train),
        "n_train": len(data),
        "clean": facts_of_test(accuracy(model, test), *asked),
        "degraded": facts_of_test(accuracy(model, degraded(test, train.seed)), *asked),
        "versions": software_versions(),
    }
    path = judge_path(order.name, order.checkpoints)
    save_target(model, path, name=architecture.name, facts=facts)
    return write_card(path, {"created": datetime.now(UTC).isoformat(timespec="seconds"), **facts})


def degraded(images: LabelledImages, seed: int) -> LabelledImages:
    """The same images as attacks might leave them."""
    rng = torch.Generator().manual_seed(seed)
    return replace(images, images=as_attacks_leave_them(images.images, rng))
