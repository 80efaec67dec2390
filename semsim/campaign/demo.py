"""The built-in studies: ordinary campaigns, and what judges and the jury see in their sets.

Everything is computed here from seeds; `python -m semsim demo build` does it again. Finished
trainings and attacks are kept in a work folder, so that an interrupted build goes on.
"""

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from semsim.campaign.campaign_job import plan_of
from semsim.campaign.demo_plan import JUDGES, DemoSettings, campaigns, symbols_of
from semsim.campaign.jury import train_jury, write_jury
from semsim.campaign.plan import Campaign
from semsim.campaign.runner import HowToRun, run_plan
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.device import pick_device
from semsim.errors import DataError
from semsim.grid.engine import Piece, Standing, spread
from semsim.images import from_uint8, read_image, to_uint8
from semsim.jobs.folders import read_json
from semsim.judges.apply import write_judged
from semsim.kept.keys import key_of
from semsim.metrics.classifier import load_classifier
from semsim.metrics.predictions import predictions
from semsim.progress import Progress, Report, silent
from semsim.registry import build
from semsim.sets.format import RUN
from semsim.sets.reader import read_set
from semsim.targets import TARGETS
from semsim.targets.degrade import degrade
from semsim.targets.model import save_target
from semsim.targets.train import accuracy, train_target
from semsim.targets.train_settings import TrainSettings
from semsim.weights import sha256_of

if TYPE_CHECKING:
    from semsim.grid.machines import Client

_PIECE = "demo/4"  # of the judges in the work folder: what other code made is not used again


def build_demo(
    out: Path, work: Path, settings: DemoSettings, client: "Client", *, report: Report = silent
) -> list[Path]:
    """Make the demo in `out`, keeping finished pieces in `work`; returns the set folders.

    client: of the cluster that trains and attacks, see `connect`. Raises `DataError` where an
    attack could not be computed; another build goes on from there.
    """
    settings = replace(settings, device=str(pick_device(settings.device)))
    judges = _train_judges(work, settings, report)
    jury = train_jury(work, settings.jury, workers=settings.workers, report=report)
    made: dict[str, list[Path]] = {}
    for kind, wanted in campaigns(settings).items():
        found = [one for each in wanted for one in _sets(each, work, settings, client, report)]
        shutil.rmtree(out / kind, ignore_errors=True)
        made[kind] = [Path(shutil.copytree(one, out / kind / one.name)) for one in sorted(found)]
    for folder in made["sets"]:
        _write_predictions(folder, judges["predictor"])
    write_jury(made["sets"], jury)
    shutil.copyfile(judges["recogniser"], out / "recogniser.safetensors")
    return [folder for folders in made.values() for folder in folders]


def _sets(
    campaign: Campaign, work: Path, settings: DemoSettings, client: "Client", report: Report
) -> list[Path]:
    """The finished sets of a campaign, in `work`."""
    how = HowToRun(device=settings.device)
    outcome = run_plan(plan_of(campaign), work, client, how, report)
    if outcome["undone"]:
        why = "; ".join(outcome["undone"])
        raise DataError(f"Not all of {campaign.name} could be computed; build again. {why}")
    return [Path(folder) for folder in outcome["sets"]]


def _train_judges(work: Path, settings: DemoSettings, report: Report) -> dict[str, Path]:
    """The weights of both judges; those that are there are used again."""
    paths = {name: _judge_path(name, work, settings) for name in JUDGES}

    def tell(standing: Standing) -> None:
        report(Progress(standing.over, max(1, standing.over + standing.open), standing.last))

    pieces = [
        Piece(key=name, work=_train_judge, asked=(name, settings, path), note=f"trained the {name}")
        for name, path in paths.items()
        if not path.exists()
    ]
    spread(pieces, lambda piece, answer: None, tell, settings.workers)
    return paths


def _judge_training(name: str, settings: DemoSettings) -> TrainSettings:
    # Judges differ from the targets, and from each other, in seed as well as in architecture.
    seed = 1000 + list(JUDGES).index(name) + settings.seed
    return TrainSettings(epochs=settings.judge_epochs, lr=0.05, seed=seed)


def _judge_path(name: str, work: Path, settings: DemoSettings) -> Path:
    train = _judge_training(name, settings)
    parts = [_PIECE, JUDGES[name], settings.judge_per_class, train, settings.device]
    return work / "judges" / f"{name}-{key_of(parts, 16)}.safetensors"


def _train_judge(name: str, settings: DemoSettings, path: Path, *, report: Report) -> None:
    """A classifier that has nothing to do with the targets and has seen bad pictures."""
    torch.set_num_threads(1)
    judge, data = JUDGES[name], symbols_of(settings.judge_per_class)
    dataset = build(DATASETS, data.name, data.settings)
    model = train_target(
        build(TARGETS, judge.name, judge.settings),
        dataset("train"),
        build(DEFENCES, "crop-flip", {"flip": 0.0}),
        _judge_training(name, settings),
        device=torch.device(settings.device),
        report=report,
        degrade=degrade,
    )
    facts = {"role": name, "accuracy": accuracy(model, dataset("test"))}
    save_target(model, path, name=judge.name, facts=facts)


def _write_predictions(folder: Path, predictor: Path) -> None:
    """What the independent classifier reads in each original, into a set and its record."""
    pairs = read_set(folder).pairs
    read = predictions(
        load_classifier(predictor, "cpu"),
        (
            (image_id, "original", from_uint8(to_uint8(read_image(Path(path)))))
            for image_id, path in zip(pairs["image_id"], pairs["original"], strict=True)
        ),
    )
    who = {
        "name": "predictor",
        "architecture": asdict(JUDGES["predictor"]),
        "sha256": sha256_of(predictor),
    }
    write_judged(folder, read_json(folder / RUN), who, read)
