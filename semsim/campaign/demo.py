"""The built-in study: six targets trained on `symbols`, 24 test images of each attacked.

Everything is computed here from seeds; `python -m semsim demo build` does it again. Finished
trainings and attacks are kept in a work folder, so that an interrupted build goes on.
"""

import hashlib
import json
import multiprocessing
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch.nn.functional import softmax

from semsim.campaign.cell import AttackResult, Plugin, TargetPlan, attack_image, train_plan
from semsim.campaign.records import ATTACKED, software_versions, write_set
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.images import read_image, to_uint8, write_png
from semsim.progress import Progress, Report, silent
from semsim.registry import build
from semsim.targets import TARGETS, load_target, save_target, target_facts
from semsim.targets.degrade import degrade
from semsim.targets.train import TrainSettings, accuracy, train_target
from semsim.types import LabelledImages

# Smooth activations and early training, as in the first rounds of federated learning: both leak
# more, so that a few hundred steps on two cores give images from clear to hopeless.
TARGETS_OF_DEMO = (
    (
        Plugin(name="resnet20-4", settings={"width": 32, "activation": "tanh"}),
        TrainSettings(epochs=1, lr=0.005),
    ),
    (
        Plugin(name="convnet8", settings={"width": 16, "activation": "tanh"}),
        TrainSettings(epochs=4, lr=0.05),
    ),
)
STRATEGIES = ("none", "crop-flip", "gradient-noise")
_RESULT = "attack/2"  # of the work folder: results without the attacked image are not used again
JUDGES = {
    "recogniser": Plugin(name="cnn-small"),
    "predictor": Plugin(name="convnet8", settings={"width": 12}),
}


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What the demo is made with; few epochs and steps, so that two cores manage.

    images: originals attacked, each of another class. train_per_class: training images of the
    targets. steps, tv: of InvGrad. noise_std: standard deviation of the gradient-noise strategy,
    in training and in what leaks. judge_epochs, judge_per_class: of the two
    classifiers that judge. workers: processes.
    """

    images: int = 24
    train_per_class: int = 20
    steps: int = 250
    tv: float = 1e-2
    noise_std: float = 5e-2
    judge_epochs: int = 10
    judge_per_class: int = 120
    seed: int = 0
    workers: int = 2


def target_plans(settings: DemoSettings) -> list[TargetPlan]:
    """Two architectures under three strategies."""
    noise = {"std": settings.noise_std, "apply_at": "both"}
    return [
        TargetPlan(
            label=f"{architecture.name}/{strategy}",
            dataset=_symbols(settings.train_per_class),
            architecture=architecture,
            defence=Plugin(name=strategy, settings=noise if strategy == "gradient-noise" else {}),
            train=replace(train, seed=settings.seed),
        )
        for architecture, train in TARGETS_OF_DEMO
        for strategy in STRATEGIES
    ]


def build_demo(
    out: Path, work: Path, settings: DemoSettings, *, report: Report = silent
) -> list[Path]:
    """Make the demo in `out`, keeping finished pieces in `work`; returns the set folders.

    A piece in `work` is used again only when all settings that decide it are the same.
    """
    started = time.monotonic()
    plans = target_plans(settings)
    chosen = _chosen_images(settings)
    paths = [_attack_path(plan, name, settings, work) for plan in plans for name in chosen.ids]
    reused = sum(path.exists() for path in paths)
    total = len(JUDGES) + len(plans) + len(paths)
    steps = iter(range(1, total + 1))

    def tell(note: str) -> None:
        report(Progress(next(steps), total, note))

    trained: dict[str, Path] = {}
    results: dict[tuple[str, str], AttackResult] = {}
    with _pool(settings.workers) as pool:
        judges = {pool.submit(_train_judge, name, settings, work): name for name in JUDGES}
        targets = {pool.submit(_train_target, plan, work): plan for plan in plans}
        attacks: dict[Future, tuple[str, str]] = {}
        for training in as_completed(targets):
            plan = targets[training]
            trained[plan.label] = training.result()
            tell(f"trained {plan.label}")
            for image_id in chosen.ids:
                task = pool.submit(_attack, plan, trained[plan.label], image_id, settings, work)
                attacks[task] = (plan.label, image_id)
        judged = {}
        for judge in as_completed(judges):
            judged[judges[judge]] = judge.result()
            tell(f"trained the {judges[judge]}")
        for attack in as_completed(attacks):
            results[attacks[attack]] = attack.result()
            tell("attacked {1} on {0}".format(*attacks[attack]))
    shutil.rmtree(out / "sets", ignore_errors=True)
    cost = {"seconds": round(time.monotonic() - started, 1), "attacks_reused": reused}
    for plan in plans:
        mine = [results[plan.label, image_id] for image_id in chosen.ids]
        folder = out / "sets" / plan.label.replace("/", "__")
        _write_set(folder, plan, trained[plan.label], chosen, mine, settings, cost)
        _write_predictions(folder, judged["predictor"], chosen)
    shutil.copyfile(judged["recogniser"], out / "recogniser.safetensors")
    return sorted((out / "sets").iterdir())


def _symbols(train_per_class: int) -> Plugin:
    return Plugin(name="symbols", settings={"train_per_class": train_per_class})


@cache
def _chosen_images(settings: DemoSettings) -> LabelledImages:
    """The first test image of `settings.images` classes drawn by the seed, in class order."""
    test = build(DATASETS, "symbols")("test")
    rng = np.random.default_rng(settings.seed)
    classes = sorted(rng.choice(len(test.classes), settings.images, replace=False).tolist())
    labels = test.labels.tolist()
    return test.pick([labels.index(label) for label in classes])


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=torch.set_num_threads,
        initargs=(1,),
    )


def _key(*parts: Any) -> str:
    """A short hash of everything that decides a piece of work."""
    text = json.dumps(parts, default=asdict, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _train_target(plan: TargetPlan, work: Path) -> Path:
    path = work / "targets" / f"{_key(plan)}.safetensors"
    if not path.exists():
        started = time.monotonic()
        model, share = train_plan(plan)
        facts = {"accuracy": share, "seconds": round(time.monotonic() - started, 1)}
        save_target(model, path, name=plan.architecture.name, facts=facts)
    return path


def _train_judge(name: str, settings: DemoSettings, work: Path) -> Path:
    """A classifier that has nothing to do with the targets and has seen bad pictures."""
    judge, data = JUDGES[name], _symbols(settings.judge_per_class)
    # Judges differ from the targets, and from each other, in seed as well as in architecture.
    train = TrainSettings(
        epochs=settings.judge_epochs, lr=0.05, seed=1000 + list(JUDGES).index(name) + settings.seed
    )
    path = work / "judges" / f"{name}-{_key(judge, data, train)}.safetensors"
    if not path.exists():
        dataset = build(DATASETS, data.name, data.settings)
        model = train_target(
            build(TARGETS, judge.name, judge.settings),
            dataset("train"),
            build(DEFENCES, "crop-flip", {"flip": 0.0}),
            train,
            degrade=degrade,
        )
        facts = {"role": name, "accuracy": accuracy(model, dataset("test"))}
        save_target(model, path, name=judge.name, facts=facts)
    return path


def _invgrad(settings: DemoSettings) -> Plugin:
    return Plugin(
        name="invgrad", settings={"steps": settings.steps, "tv": settings.tv, "start": "grey"}
    )


def _attack_path(plan: TargetPlan, image_id: str, settings: DemoSettings, work: Path) -> Path:
    key = _key(_RESULT, plan, _invgrad(settings), image_id, settings.seed)
    return work / "attacks" / f"{key}.npz"


def _attack(
    plan: TargetPlan, weights: Path, image_id: str, settings: DemoSettings, work: Path
) -> AttackResult:
    """One attack, or what an earlier build found with the same settings."""
    path = _attack_path(plan, image_id, settings, work)
    if path.exists():
        return _read_result(path)
    images = _chosen_images(settings)
    place = images.ids.index(image_id)
    # Without a seed of its own, every image would get the same shift and the same noise.
    seed = settings.seed * 100_003 + place
    result = attack_image(weights, images.pick([place]), plan.defence, _invgrad(settings), seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_result(path, result)
    return result


def _write_result(path: Path, result: AttackResult) -> None:
    facts = {**asdict(result), "picture": None, "attacked": None}
    picture = np.empty(0, np.uint8) if result.picture is None else result.picture
    temporary = path.with_suffix(".part.npz")
    np.savez(temporary, picture=picture, attacked=result.attacked, facts=json.dumps(facts))
    temporary.rename(path)


def _read_result(path: Path) -> AttackResult:
    with np.load(path) as stored:
        picture, attacked = stored["picture"], stored["attacked"]
        facts = json.loads(str(stored["facts"]))
    known = {"picture": picture if picture.size else None, "attacked": attacked}
    return AttackResult(**{**facts, **known})


def _write_set(
    folder: Path,
    plan: TargetPlan,
    weights: Path,
    images: LabelledImages,
    results: list[AttackResult],
    settings: DemoSettings,
    cost: Mapping[str, float],
) -> None:
    rows = []
    for place, (image_id, result) in enumerate(zip(images.ids, results, strict=True)):
        label = int(images.labels[place])
        original = f"originals/{image_id}.png"
        write_png(images.images[place], folder / original)
        reconstruction, attacked = None, original
        if result.picture is not None:
            reconstruction = f"reconstructions/{image_id}.png"
            _save(result.picture, folder / reconstruction)
        if not np.array_equal(result.attacked, to_uint8(images.images[place])):
            attacked = f"attacked/{image_id}.png"
            _save(result.attacked, folder / attacked)
        rows.append(
            {
                "image_id": image_id,
                "class_id": label,
                "class_name": images.classes[label],
                "original": original,
                "reconstruction": reconstruction,
                ATTACKED: attacked,
                "status": "ok" if result.picture is not None else "failed",
                "error": result.error,
                "objective": result.objective,
                "shift_x": result.shift_x,
                "shift_y": result.shift_y,
                "flipped": result.flipped,
            }
        )
    write_set(folder, _run_record(plan, weights, images, settings, cost), rows)


def _save(picture: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path, optimize=True)


def _run_record(
    plan: TargetPlan,
    weights: Path,
    images: LabelledImages,
    settings: DemoSettings,
    cost: Mapping[str, float],
) -> dict[str, Any]:
    """Everything that decided the set, for run.json."""
    return {
        "name": f"demo/{plan.label}",
        "model": plan.label,
        "dataset": {
            **asdict(plan.dataset),
            "classes": list(images.classes),
            "size": list(images.images.shape[2:]),
        },
        "target": {
            "architecture": asdict(plan.architecture),
            "strategy": asdict(plan.defence),
            "train": asdict(plan.train),
            "weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
            **target_facts(weights),
        },
        "attack": {**asdict(_invgrad(settings)), "label": "known", "batch_norm": "eval"},
        "predictor": {"name": "predictor", "architecture": asdict(JUDGES["predictor"])},
        "demo": asdict(settings),
        "seed": settings.seed,
        "status": "ok",
        **cost,  # of the whole build that wrote this set
        "versions": software_versions(),
    }


@torch.no_grad()
def _write_predictions(folder: Path, predictor: Path, images: LabelledImages) -> None:
    """What the independent classifier reads in each original and each reconstruction."""
    model = load_target(predictor)
    rows = []
    for subject in ("original", "reconstruction"):
        for image_id in images.ids:
            path = folder / f"{subject}s" / f"{image_id}.png"
            if not path.exists():
                continue
            chances = softmax(model(read_image(path)[None]), dim=1)[0].tolist()
            rows += [
                (image_id, subject, name, round(chance, 6))
                for name, chance in zip(model.classes, chances, strict=True)
            ]
    columns = ["image_id", "subject", "class_name", "probability"]
    table = pd.DataFrame(rows, columns=columns).astype({"probability": "float32"})
    table.to_parquet(folder / "predictions.parquet", index=False, compression="zstd")
