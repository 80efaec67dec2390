"""Vertical federated learning attacked: from a data set to a reconstruction set.

A campaign's grid trains targets and attacks the gradient of one image. Here the server sees rounds
over batches instead, and all images come back from one attack, so there is nothing to spread over
workers and this stands beside the grid.
"""

import time
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from semsim.attacks import VERTICAL_ATTACKS
from semsim.attacks.cafe import Cafe
from semsim.attacks.vertical import QuarteredNet, drawn_batches, observe_vertical
from semsim.campaign.plan import Campaign, choose_images
from semsim.datasets import DATASETS
from semsim.errors import AttackFailedError, SettingsError
from semsim.kept.names import checked_name
from semsim.kept.versions import software_versions
from semsim.progress import Report, silent
from semsim.registry import build, named, read_plugin, setting
from semsim.sets.image import AttackResult, result_of, set_images
from semsim.sets.writer import write_set
from semsim.targets.chance import facts_of_test
from semsim.targets.train import accuracy
from semsim.types import LabelledImages, Reconstruction


@dataclass(frozen=True, kw_only=True)
class VerticalRun:
    """Four participants with a quarter of every image each, and what their server sees.

    dataset, attack: text as in `read_plugin`. images: test images that take part,
    class by class. batch: images a round. rounds: with the same weights; the attack needs at least
    as many as images, and 0 means twice as many. width, hidden: of the untrained network.
    """

    name: str = setting(MISSING, "Name", "The set goes to <data>/runs/<name>.")
    dataset: str = setting("symbols", "Data set")
    attack: str = setting("cafe", "Attack", "As cafe:steps=500.")
    images: int = setting(8, "Images", "Images that take part.")
    batch: int = setting(4, "Batch", "Images a round.")
    rounds: int = setting(0, "Rounds", "Rounds; 0: twice as many as images.")
    width: int = 8
    hidden: int = 64
    seed: int = setting(0, "Seed", "Seed of everything.")

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= self.images:
            raise SettingsError(f"A batch is 1 to {self.images} images; got {self.batch}.")


def attack_vertical(run: VerticalRun, data: Path, report: Report = silent) -> Path:
    """Attack as `run` says; the folder of the set, <data>/runs/<name>/quartered__<attack>.

    Where the attack fails, the set says so for every image.
    """
    started = time.monotonic()
    plugin = read_plugin(VERTICAL_ATTACKS, run.attack)
    split = read_plugin(DATASETS, run.dataset)
    checked_name(run.name, "a campaign")
    asked = Campaign(name=run.name, images=run.images)
    test = build(DATASETS, split.name, split.settings)("test")
    images, model = choose_images(test, asked), _network(run, test)
    attack = build(VERTICAL_ATTACKS, plugin.name, plugin.settings)
    results = _results(run, attack, model, images, report)
    folder = Path(data) / "runs" / run.name / f"quartered__{plugin.name}"
    record: dict[str, Any] = {
        "name": f"{run.name}/quartered/{plugin.name}",
        "model": f"quartered/{plugin.name}",
        "campaign": run.name,
        "dataset": {
            "name": images.dataset,
            "settings": dict(split.settings),
            "classes": list(images.classes),
            "size": list(images.images.shape[2:]),
        },
        "target": {
            "architecture": {"name": "quartered"},
            "trained": False,
            **facts_of_test(accuracy(model, test), len(test), len(test.classes)),
        },
        "attack": named(VERTICAL_ATTACKS, plugin),
        "vertical": asdict(run),
        "seed": run.seed,
        "status": "ok",
        "seconds": round(time.monotonic() - started, 1),
        "versions": software_versions(),
    }
    return write_set(folder, record, set_images(images, results))


def _network(run: VerticalRun, data: LabelledImages) -> QuarteredNet:
    size = (data.images.shape[2], data.images.shape[3])
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        model = QuarteredNet(len(data.classes), size=size, width=run.width, hidden=run.hidden)
    return model.eval()


def _results(
    run: VerticalRun, attack: Cafe, model: QuarteredNet, images: LabelledImages, report: Report
) -> list[AttackResult]:
    rng = torch.Generator().manual_seed(run.seed)
    batches = drawn_batches(
        len(images), size=run.batch, rounds=run.rounds or 2 * len(images), rng=rng
    )
    seen = observe_vertical(model, images.images, images.labels, batches)
    found: list[Reconstruction | AttackFailedError]
    try:
        found = [*attack(seen, rng=rng, report=report)]
    except AttackFailedError as failure:
        found = [failure] * len(images)
    return [result_of(one, image) for image, one in zip(images.images, found, strict=True)]
