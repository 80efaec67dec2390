"""The built-in study: two architectures under the paper's seven strategies, attacked on `symbols`.

Everything is computed here from seeds; `python -m semsim demo build` does it again. Finished
trainings and attacks are kept in a work folder, so that an interrupted build goes on.
"""

import json
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import softmax

from semsim.campaign.cell import TargetPlan, attack_images, train_plan
from semsim.campaign.demo_plan import JUDGES, DemoSettings, invgrad, symbols_of, target_plans
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.device import pick_device
from semsim.grid.processes import FRESH
from semsim.images import from_uint8, to_uint8
from semsim.kept.keys import key_of
from semsim.kept.versions import software_versions
from semsim.kept.whole import whole_file
from semsim.progress import Progress, Report, silent
from semsim.registry import build
from semsim.sets.image import AttackResult, set_images
from semsim.sets.writer import write_set
from semsim.targets import TARGETS, load_target, save_target, target_facts
from semsim.targets.degrade import degrade
from semsim.targets.train import TrainSettings, accuracy, train_target
from semsim.types import LabelledImages
from semsim.weights import sha256_of

_PIECE = "demo/3"  # of the work folder: what other code made is not used again


def build_demo(
    out: Path, work: Path, settings: DemoSettings, *, report: Report = silent
) -> list[Path]:
    """Make the demo in `out`, keeping finished pieces in `work`; returns the set folders.

    A piece in `work` is used again only when all settings that decide it are the same.
    """
    started = time.monotonic()
    settings = replace(settings, device=str(pick_device(settings.device)))
    plans = target_plans(settings)
    chosen = _chosen_images(settings)
    parts = [
        chosen.ids[at : at + settings.together] for at in range(0, len(chosen), settings.together)
    ]
    paths = [_attack_path(plan, part, settings, work) for plan in plans for part in parts]
    reused = sum(path.exists() for path in paths)
    total = len(JUDGES) + len(plans) + len(paths)
    steps = iter(range(1, total + 1))

    def tell(note: str) -> None:
        report(Progress(next(steps), total, note))

    trained: dict[str, Path] = {}
    results: dict[tuple[str, str], AttackResult] = {}
    with _pool(settings.workers) as pool:
        judges = {pool.submit(_train_judge, name, settings, work): name for name in JUDGES}
        targets = {pool.submit(_train_target, plan, settings, work): plan for plan in plans}
        attacks: dict[Future, tuple[str, tuple[str, ...]]] = {}
        for training in as_completed(targets):
            plan = targets[training]
            trained[plan.label] = training.result()
            tell(f"trained {plan.label}")
            for part in parts:
                task = pool.submit(_attack, plan, trained[plan.label], part, settings, work)
                attacks[task] = (plan.label, part)
        judged = {}
        for judge in as_completed(judges):
            judged[judges[judge]] = judge.result()
            tell(f"trained the {judges[judge]}")
        for attack in as_completed(attacks):
            label, part = attacks[attack]
            for image_id, result in zip(part, attack.result(), strict=True):
                results[label, image_id] = result
            tell(f"attacked {len(part)} images on {label}")
    shutil.rmtree(out / "sets", ignore_errors=True)
    cost = {"seconds": round(time.monotonic() - started, 1), "batches_reused": reused}
    for plan in plans:
        mine = [results[plan.label, image_id] for image_id in chosen.ids]
        folder = out / "sets" / plan.label.replace("/", "__")
        run = _run_record(plan, trained[plan.label], chosen, settings, cost)
        predictions = _predictions(judged["predictor"], chosen, mine)
        write_set(folder, run, set_images(chosen, mine), predictions)
    shutil.copyfile(judged["recogniser"], out / "recogniser.safetensors")
    return sorted((out / "sets").iterdir())


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
        mp_context=FRESH,
        initializer=_set_up,
    )


def _set_up() -> None:
    torch.set_num_threads(1)
    # On a GPU: the same seed, the same pictures, and gradients that are not rounded to 10 bits.
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.allow_tf32 = False


def _key(*parts: Any) -> str:
    """A short hash of everything that decides a piece of work."""
    return key_of(parts, 16)


def _train_target(plan: TargetPlan, settings: DemoSettings, work: Path) -> Path:
    path = work / "targets" / f"{_key(_PIECE, plan, settings.device)}.safetensors"
    if not path.exists():
        started = time.monotonic()
        model, share = train_plan(plan, device=settings.device)
        facts = {"accuracy": share, "seconds": round(time.monotonic() - started, 1)}
        save_target(model, path, name=plan.architecture.name, facts=facts)
    return path


def _train_judge(name: str, settings: DemoSettings, work: Path) -> Path:
    """A classifier that has nothing to do with the targets and has seen bad pictures."""
    judge, data = JUDGES[name], symbols_of(settings.judge_per_class)
    # Judges differ from the targets, and from each other, in seed as well as in architecture.
    train = TrainSettings(
        epochs=settings.judge_epochs, lr=0.05, seed=1000 + list(JUDGES).index(name) + settings.seed
    )
    key = _key(_PIECE, judge, data, train, settings.device)
    path = work / "judges" / f"{name}-{key}.safetensors"
    if not path.exists():
        dataset = build(DATASETS, data.name, data.settings)
        model = train_target(
            build(TARGETS, judge.name, judge.settings),
            dataset("train"),
            build(DEFENCES, "crop-flip", {"flip": 0.0}),
            train,
            device=torch.device(settings.device),
            degrade=degrade,
        )
        facts = {"role": name, "accuracy": accuracy(model, dataset("test"))}
        save_target(model, path, name=judge.name, facts=facts)
    return path


def _attack_path(
    plan: TargetPlan, ids: tuple[str, ...], settings: DemoSettings, work: Path
) -> Path:
    key = _key(_PIECE, plan, invgrad(settings), ids, settings.seed, settings.device)
    return work / "attacks" / f"{key}.npz"


def _attack(
    plan: TargetPlan, weights: Path, ids: tuple[str, ...], settings: DemoSettings, work: Path
) -> list[AttackResult]:
    """Attack several images at once, or what an earlier build found with the same settings."""
    path = _attack_path(plan, ids, settings, work)
    if path.exists():
        return _read_results(path)
    images = _chosen_images(settings)
    places = [images.ids.index(image_id) for image_id in ids]
    results = attack_images(
        load_target(weights).to(settings.device),
        images.pick(places),
        plan.defence,
        invgrad(settings),
        # Without a seed of its own, every image would get the same shift and the same noise.
        [settings.seed * 100_003 + place for place in places],
    )
    _write_results(path, results)
    return results


def _write_results(path: Path, results: list[AttackResult]) -> None:
    """Facts as JSON; pictures as one array an image, absent where the attack failed."""
    facts = [{**asdict(each), "picture": None, "attacked": None} for each in results]
    pictures: dict[str, Any] = {
        f"{kind}{place}": picture
        for place, each in enumerate(results)
        for kind, picture in (("picture", each.picture), ("attacked", each.attacked))
        if picture is not None
    }
    with whole_file(path) as part, open(part, "wb") as file:
        np.savez(file, facts=json.dumps(facts), **pictures)


def _read_results(path: Path) -> list[AttackResult]:
    with np.load(path) as stored:
        return [
            AttackResult(
                **{
                    **facts,
                    "picture": stored.get(f"picture{place}"),
                    "attacked": stored[f"attacked{place}"],
                }
            )
            for place, facts in enumerate(json.loads(str(stored["facts"])))
        ]


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
            "weights_sha256": sha256_of(weights),
            **target_facts(weights),
        },
        "attack": {**asdict(invgrad(settings)), "label": "known", "batch_norm": "eval"},
        "predictor": {"name": "predictor", "architecture": asdict(JUDGES["predictor"])},
        "demo": asdict(settings),
        "device": _device_name(settings.device),
        "seed": settings.seed,
        "status": "ok",
        **cost,  # of the whole build that wrote this set
        "versions": software_versions(),
    }


def _device_name(device: str) -> str:
    """Such as "cpu", or "cuda (…)" with the name that the driver gives the card."""
    is_cuda = torch.device(device).type == "cuda"
    return f"{device} ({torch.cuda.get_device_name(device)})" if is_cuda else device


@torch.no_grad()
def _predictions(
    predictor: Path, images: LabelledImages, results: list[AttackResult]
) -> pd.DataFrame:
    """What the independent classifier reads in each original and each reconstruction."""
    model = load_target(predictor)
    subjects: dict[str, list[np.ndarray | None]] = {
        "original": [to_uint8(image) for image in images.images],
        "reconstruction": [found.picture for found in results],
    }
    rows = []
    for subject, pictures in subjects.items():
        for image_id, picture in zip(images.ids, pictures, strict=True):
            if picture is None:
                continue
            chances = softmax(model(from_uint8(picture)[None]), dim=1)[0].tolist()
            rows += [
                (image_id, subject, name, round(chance, 6))
                for name, chance in zip(model.classes, chances, strict=True)
            ]
    columns = ["image_id", "subject", "class_name", "probability"]
    return pd.DataFrame(rows, columns=columns).astype({"probability": "float32"})
