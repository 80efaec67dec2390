"""The finished cells of one target under one attack, as a reconstruction set."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semsim.attacks import ATTACKS, SHARED
from semsim.attacks.assigned import BY
from semsim.campaign.plan import Plan, PlannedSet
from semsim.campaign.store import PieceStore, StoredCell
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.errors import DataError
from semsim.kept.versions import software_versions
from semsim.registry import all_settings, named
from semsim.sets.image import SetImage, set_image
from semsim.sets.reader import read_set
from semsim.sets.writer import write_set
from semsim.targets import NETWORKS
from semsim.targets.chance import target_facts
from semsim.weights import sha256_of


def set_folder(data: Path, plan: Plan, planned: PlannedSet) -> Path:
    """Where the set goes: <data>/runs/<campaign>/<target>__<attack>."""
    return Path(data) / "runs" / plan.campaign.name / planned.folder


def is_written(data: Path, plan: Plan, planned: PlannedSet) -> bool:
    """Whether the set is on disk with just these cells, as many of them failed as in the store.

    What crashed may have come again since, in a run that was stopped or in another campaign.
    """
    try:
        run = read_set(set_folder(data, plan, planned)).run
    except DataError:
        return False
    if run.get("key") != planned.key:
        return False
    store = PieceStore(data)
    cells = [store.cells.read(cell.key) for cell in planned.cells]
    failed, crashed = sum(not one.result.ok for one in cells), sum(one.crashed for one in cells)
    return (run.get("n_failed"), run.get("n_crashed")) == (failed, crashed)


def write_finished_set(data: Path, plan: Plan, planned: PlannedSet) -> Path:
    """Write the set whose cells are all done or failed, in the place of an older one.

    Raises `DataError` where a cell is missing.
    """
    store, folder = PieceStore(data), set_folder(data, plan, planned)
    cells = [store.cells.read(cell.key) for cell in planned.cells]
    names = plan.images[planned.target.dataset].names
    images = (_image(cell, names) for cell in cells)
    return write_set(folder, _run_record(store, plan, planned, cells), images)


def _image(cell: StoredCell, names: Sequence[str]) -> SetImage:
    """names: what the images of this campaign show; another's, which kept the cell, may differ."""
    return set_image(
        image_id=cell.image_id,
        class_id=names.index(cell.class_name),
        class_name=cell.class_name,
        original=cell.original,
        found=cell.result,
    )


def _run_record(
    store: PieceStore, plan: Plan, planned: PlannedSet, cells: list[StoredCell]
) -> dict[str, Any]:
    target, images = planned.target, plan.images[planned.target.dataset]
    return {
        "name": f"{plan.campaign.name}/{planned.model}",
        "model": planned.model,
        "campaign": plan.campaign.name,
        "key": planned.key,
        "cells": [cell.key for cell in planned.cells],
        "dataset": {
            "name": images.dataset,
            "settings": named(DATASETS, target.plan.dataset)["settings"],
            "classes": list(images.names),
            "size": list(images.images.shape[2:]),
        },
        "target": _target_record(store, planned),
        "attack": named(ATTACKS, planned.attack),
        "shared": _shared_record(planned),
        "together": planned.together,
        "seed": target.seed,
        "status": "ok",
        "seconds": round(sum(cell.seconds for cell in cells), 1),  # of computing the attacks
        "n_crashed": sum(cell.crashed for cell in cells),
        "versions": software_versions(),
    }


def _target_record(store: PieceStore, planned: PlannedSet) -> dict[str, Any]:
    plan, key = planned.target.plan, planned.target.key
    record = {
        "key": key,
        "architecture": named(NETWORKS, plan.architecture),
        "strategy": named(DEFENCES, plan.defence),
        "train": asdict(plan.train),
    }
    path = store.weights.path(key)
    if key not in store.weights:
        return {**record, "error": store.failure(key)}
    return {
        **record,
        "weights_sha256": sha256_of(path),
        **target_facts(path),
        "training": store.costs.read(key),
    }


def _shared_record(planned: PlannedSet) -> dict[str, Any]:
    """What clients shared, of how many pictures each, and what was known and told apart."""
    attack = all_settings(ATTACKS, planned.attack)
    record = {
        **named(SHARED, planned.shared),
        "pictures": planned.pictures,
        "labels": attack.get("label", "unknown"),
    }
    return {**record, "assigned": BY} if planned.pictures > 1 else record
