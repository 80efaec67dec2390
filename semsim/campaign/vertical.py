"""Vertical federated learning attacked: from a data set to a reconstruction set.

The paper of SemSim ranks 14 models under CAFE without saying what is vertical about them. Here a
network of quarters is trained under a strategy as a campaign's targets are; the images that take
part and the gradients of every round are what the strategy makes of them.

A campaign's grid trains targets and attacks the gradient of one image. Here the server sees rounds
over batches instead, and all images come back from one attack, so that a run is one piece of work
and this stands beside a campaign's plan. Several runs are spread over workers.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from semsim.attacks import VERTICAL_ATTACKS
from semsim.attacks.as_text import read_vertical, threat_of
from semsim.attacks.cafe import Cafe, Quartered, QuarteredNet, drawn_batches, observe_vertical
from semsim.attacks.parameters import seen_in
from semsim.base.errors import AttackFailedError, DataError, SettingsError
from semsim.base.progress import Report, silent
from semsim.base.registry import Plugin, built, named, read_plugin, setting
from semsim.base.sets.reader import read_set
from semsim.base.storage.names import checked_name
from semsim.base.storage.optional import arrow
from semsim.base.storage.versions import software_versions
from semsim.campaign.plan import Campaign, choose_images, data_content, file_name
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES, read_strategy, strategy_label
from semsim.defences.base import Defence
from semsim.grid.executor import Piece, spread
from semsim.sets.image import AttackResult, SetImage, result_of, set_images
from semsim.sets.writer import write_set
from semsim.targets.chance import facts_of_test
from semsim.targets.train import Training, accuracy, carry_out
from semsim.targets.train_settings import TrainSettings, read_training
from semsim.types import LabelledImages, Reconstruction


@dataclass(frozen=True, kw_only=True)
class VerticalRun:
    """Four participants with a quarter of every image each, and what their server sees.

    Attributes:
        dataset, attack: Text as in `read_plugin`.
        images: Test images that take part, class by class.
        batch: Images a round, fewer than all, which every round would have; 0 means half of them.
        rounds: With the same weights; the attack needs at least as many as images, and 0 means
            twice as many.
        width, hidden: Of the network.
        strategy: As in `read_strategy`.
        train: As in `read_training`; "" leaves the network untrained.
    """

    name: str = setting(MISSING, "Name", "The set goes to <data>/runs/<name>.")
    dataset: str = setting("symbols", "Data set")
    attack: str = setting("cafe", "Attack", "As cafe:steps=500.")
    images: int = setting(8, "Images", "Images that take part.")
    batch: int = setting(0, "Batch", "Images a round; 0: half of them.")
    rounds: int = setting(0, "Rounds", "Rounds; 0: twice as many as images.")
    strategy: str = setting("none", "Defence", "As crop-flip.")
    train: str = setting("", "Training", "As epochs=10,lr=0.01; empty: none.")
    width: int = 8
    hidden: int = 64
    seed: int = setting(0, "Seed", "Seed of all random draws.")

    def __post_init__(self) -> None:
        if self.images < 1:
            raise SettingsError(f"At least one image takes part; got images={self.images}.")
        if self.rounds < 0:
            raise SettingsError(f"Rounds are 1 or more, or 0 for the usual; got {self.rounds}.")
        most = max(1, self.images - 1)
        if not 0 <= self.batch <= most:
            raise SettingsError(
                f"A batch is 1 to {most} of {self.images} images, or 0 for half of them; got "
                f"{self.batch}. Rounds that all have the same images do not tell them apart: take "
                "a smaller batch or more images."
            )

    @property
    def in_a_round(self) -> int:
        """Images of one round."""
        return self.batch or max(1, self.images // 2)

    @property
    def seen_rounds(self) -> int:
        """Rounds that the server sees."""
        return self.rounds or 2 * self.images


def attack_vertical(run: VerticalRun, data: Path, report: Report = silent) -> Path:
    """Attack as `run` says; the folder of the set, <data>/runs/<name>/<target>__<attack>.

    The target is called quartered where it is untrained and under no strategy. Where the attack
    fails, the set says so for every image. Raises `SettingsError` where another run's set is there.
    """
    arrow()  # a set is written at the end
    folder = vertical_folder(run, data)
    if folder.exists() and not _is_there(run, folder):
        raise SettingsError(
            f"Another run is called {run.name!r} and has left {folder}. Take another name, or "
            "delete that folder."
        )
    return write_set(folder, *_attacked(run, report=report))


def vertical_sets(
    runs: Sequence[VerticalRun],
    data: Path,
    report: Report = silent,
    *,
    workers: int = 1,
    scheduler: str = "",
) -> list[Path]:
    """The sets of all runs, as `attack_vertical` makes them; one that is there is not made again.

    Args:
        workers, scheduler: As for `spread`; they compute, this process writes. Raises as it does,
            and as `attack_vertical`.
    """
    arrow()
    places = {str(vertical_folder(run, data)): run for run in runs}
    pieces = [
        Piece(key=place, work=_attacked, asked=(run,), note=f"{run.name}, {target_label(run)}")
        for place, run in places.items()
        if not _is_there(run, Path(place))
    ]

    def keep(piece: Piece, found: tuple[dict[str, Any], list[SetImage]]) -> None:
        write_set(Path(piece.key), *found)

    spread(pieces, keep, report, workers, scheduler, ready=len(places) - len(pieces))
    return [Path(place) for place in places]


def _is_there(run: VerticalRun, folder: Path) -> bool:
    with suppress(DataError):
        found = read_set(folder).run
        same = bool(found.get("vertical") == asdict(run))
        return same and found["dataset"].get("content", "") == data_content(run.dataset)
    return False


def _attacked(run: VerticalRun, *, report: Report) -> tuple[dict[str, Any], list[SetImage]]:
    """Attack the images of a run: return the record of its set and its images; writes nothing."""
    started = time.monotonic()
    plugin = read_vertical(run.attack)
    split = read_plugin(DATASETS, run.dataset)
    checked_name(run.name, "a campaign")
    asked = Campaign(name=run.name, images=run.images)
    content = data_content(run.dataset)  # before it is read
    test = built(DATASETS, split)("test")
    images, model = choose_images(test, asked), _network(run, split, test, report)
    attack = built(VERTICAL_ATTACKS, plugin)
    results = _results(run, attack, model, images, report)
    label = target_label(run)
    record: dict[str, Any] = {
        "name": f"{run.name}/{label}/{plugin.name}",
        "model": f"{label}/{plugin.name}",
        "campaign": run.name,
        "dataset": {
            "name": images.dataset,
            "settings": dict(split.settings),
            "classes": list(images.classes),
            "size": list(images.images.shape[2:]),
            **({"content": content} if content else {}),
        },
        "target": {
            "architecture": {"name": "quartered"},
            "strategy": named(DEFENCES, read_strategy(run.strategy)),
            "trained": bool(run.train),
            **facts_of_test(accuracy(model, test), test.labels.tolist(), len(test.classes)),
        },
        "attack": named(VERTICAL_ATTACKS, plugin),
        "threat": threat_of(plugin).record(),
        "seen": seen_in(model, dict(model.named_parameters())),
        "vertical": asdict(run),
        "seed": run.seed,
        "status": "ok",
        "seconds": round(time.monotonic() - started, 1),
        "versions": software_versions(),
    }
    return record, list(set_images(images, results))


def vertical_memory(run: VerticalRun, size: tuple[int, int]) -> int:
    """Bytes that the equations of the attack need at once, for images of `size` (H, W).

    Of each output of the joining layer in each round, a share an image and a gradient an input, in
    float64, and what solves them copies both.
    """
    inputs = run.width * size[0] * size[1]  # of four quarters
    return 2 * 8 * run.seen_rounds * run.hidden * (run.images + inputs)


def vertical_folder(run: VerticalRun, data: Path) -> Path:
    """Return the folder for the set of a run."""
    attack = read_vertical(run.attack).name
    return Path(data) / "runs" / run.name / f"{file_name(target_label(run))}__{attack}"


def target_label(run: VerticalRun) -> str:
    """Return the target model's name; width and strategy only if trained or with a strategy."""
    if not run.train and run.strategy == "none":
        return "quartered"
    return f"quartered-{run.width}/{strategy_label(run.strategy)}"


def _network(run: VerticalRun, split: Plugin, test: LabelledImages, report: Report) -> QuarteredNet:
    size = (test.images.shape[2], test.images.shape[3])
    if run.train:
        base = replace(TrainSettings(), seed=run.seed)
        training = Training(
            architecture=Quartered(width=run.width, hidden=run.hidden),
            data=built(DATASETS, split)("train"),
            defence=_shield(run),
            settings=read_training(run.train, base, "--seed"),
            device="cpu",
            test=test,
        )
        return QuarteredNet.of(carry_out(training, report))
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        model = QuarteredNet(len(test.classes), size=size, width=run.width, hidden=run.hidden)
    return model.eval()


def _shield(run: VerticalRun) -> Defence:
    made: Defence = built(DEFENCES, read_strategy(run.strategy))
    if made.private is not None:
        raise SettingsError(
            "In vertical federated learning the gradient is that of a batch, and DP-SGD cuts that "
            "of each image. Take another defence, such as gradient-noise."
        )
    return made


def _results(
    run: VerticalRun, attack: Cafe, model: QuarteredNet, images: LabelledImages, report: Report
) -> list[AttackResult]:
    rng, shield = torch.Generator().manual_seed(run.seed), _shield(run)
    batches = drawn_batches(len(images), size=run.in_a_round, rounds=run.seen_rounds, rng=rng)
    shown = shield.images(images.images, rng)
    seen = observe_vertical(model, shown.images, images.labels, batches)
    rounds = tuple(
        replace(one, gradients=shield.gradients(one.gradients, rng, "attack"))
        for one in seen.rounds
    )
    found: list[Reconstruction | AttackFailedError]
    try:
        found = [*attack(replace(seen, rounds=rounds), rng=rng, report=report)]
    except AttackFailedError as failure:
        found = [failure] * len(images)
    return [result_of(one, *shown.one(place)) for place, one in enumerate(found)]
