"""Carrying out a plan: workers train and attack, this process keeps what they find.

The finished cells of one target under one attack become a reconstruction set. Random numbers come
from keys, and which images are attacked together comes from the plan, so that a result does not
depend on who computes it, nor when.
"""

import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsim.attacks import ATTACKS, SHARED
from semsim.attacks.observe import BY
from semsim.base.errors import DataError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import named
from semsim.base.sets.reader import read_set
from semsim.base.storage.versions import software_versions
from semsim.base.words import counted
from semsim.campaign import work
from semsim.campaign.forecast import Estimate, seconds_of
from semsim.campaign.plan import Cell, Plan, PlannedSet, PlannedTarget
from semsim.campaign.store import PieceStore, StoredCell
from semsim.campaign.watch import RunFolder
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.grid.executor import Piece, Standing, compute
from semsim.grid.previews import Strip
from semsim.images import to_uint8
from semsim.sets.image import set_image
from semsim.sets.writer import write_set
from semsim.targets import NETWORKS
from semsim.targets.chance import target_facts
from semsim.targets.noticed import signs_of
from semsim.types import LabelledImages
from semsim.weights import sha256_of

if TYPE_CHECKING:
    from semsim.grid.machines import Client

_PARTS = 1000  # progress is told in thousandths of a unit of work


@dataclass(frozen=True, kw_only=True)
class HowToRun:
    """Settings for carrying out a plan.

    Attributes:
        device: Where each worker computes: auto, cpu, cuda or mps.
        retry: Try again what broke before with an unforeseen error; an attack that gave a reason
            for its failure is a result and stays.
        estimate: Cost of each piece, by which pieces done are weighed; None where it is unknown.
    """

    device: str = "auto"
    retry: bool = False
    estimate: Estimate | None = None


def run_plan(
    plan: Plan, data: Path, client: "Client | None", how: HowToRun, report: Report = silent
) -> dict[str, Any]:
    """Compute what is missing of `plan` and write its reconstruction sets below `data`.

    Args:
        client: Of a cluster, see `connect`; None attacks one batch after the other in this process.

    Returns:
        Counts, ready for JSON; "undone" has how many images the machines could not attack, by
        reason: nothing of these is kept, and their sets are not written.

    Raises:
        StopRequestedError: When `report` does.
        SettingsError: Where another campaign has the name.
        JobError: Where the cluster went away or a worker cannot do the work.
    """
    began = time.monotonic()
    run = _CampaignRun(plan, Path(data), how, report)
    run.folder.claim(plan.campaign)
    run.folder.quiet()  # whatever a run that was killed has left
    try:
        compute(run.begin(), run.keep, run.tell, client, leave=run.leave)
    finally:
        run.folder.quiet()
    sets = [str(run.finished_set(planned)) for planned in plan.sets if run.is_complete(planned)]
    seconds = round(time.monotonic() - began, 1)
    return {"campaign": plan.campaign.name, "sets": sets, "seconds": seconds, **run.sums()}


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One piece of work: to train `target`, or to attack `cells` of `planned` on it."""

    target: PlannedTarget
    planned: PlannedSet | None = None
    cells: tuple[Cell, ...] = ()
    weight: float = 1.0

    @property
    def keys(self) -> list[str]:
        """Of what it makes."""
        return [cell.key for cell in self.cells] or [self.target.key]


class _CampaignRun:
    """One run of a plan: what was asked of the workers, and what came in."""

    def __init__(self, plan: Plan, data: Path, how: HowToRun, report: Report) -> None:
        self.plan, self.data, self.how = plan, data, how
        self.store, self.folder = PieceStore(data), RunFolder(data, plan.campaign.name)
        self.missing: set[str] = set()
        self._report, self._costs = report, how.estimate or Estimate()
        self._asked: dict[str, _Asked] = {}  # by the key of the piece of work
        self._counts: Counter[str] = Counter()
        self._undone: Counter[str] = Counter()  # images, by what kept them from being attacked
        self._touched: set[str] = set()
        self._watched = ""
        self._seen: Strip = ()
        self._cost = {
            cell.key: self._costs.image(planned) for planned in plan.sets for cell in planned.cells
        }
        self._total = seconds_of(plan, self._costs, self._cost.keys(), plan.targets)
        self._left = 0.0

    def begin(self) -> Iterator[Piece]:
        """All work that is missing and can be begun."""
        if self.how.retry:
            self._forget_crashes()
        self.missing = set(self.store.cells.missing(self._cost))
        for client in (client for planned in self.plan.sets for client in planned.clients()):
            keys = {cell.key for cell in client}
            if keys & self.missing:  # of a client's pictures all come back or none
                self.missing |= keys
        self._counts["reused"] = len(self._cost) - len(self.missing)
        self._left = sum(self._cost[key] for key in self.missing)
        for target in self.plan.targets:
            if not all(map(self.is_complete, self._sets(target))):
                yield from self._begin_target(target)

    def tell(self, standing: Standing) -> None:
        """Report the run's progress to its caller, and write it to the folder for its watchers."""
        shares = standing.shares.items()
        self.folder.tell({key: share for one, share in shares for key in self._asked[one].keys})
        self._show(standing.strips)
        begun = sum(self._asked[one].weight * share for one, share in shares)
        done = round(_PARTS * (self._total - self._left + begun))
        total, failed = round(_PARTS * self._total), self._counts["failed"]
        training = [key for key, one in self._asked.items() if one.planned is None]
        trained = self._counts["trained"] + sum(standing.shares.get(key, 0.0) for key in training)
        of = len(training) + self._counts["trained"]
        note = f"{len(self._cost) - len(self.missing)} of {len(self._cost)} images attacked"
        if self._asked and not (shares or standing.over or standing.waiting):
            note = f"starting the workers: {note}"
        elif training:
            note = f"training {counted(of, 'target')}: {trained / of:.0%} done, {note}"
        elif self._asked:
            note = f"attacking: {note}"
        note += f", {failed} failed" if failed else ""
        note += f", {self._undone.total()} could not be computed" if self._undone else ""
        note += ", waiting for a worker" if standing.open and standing.waiting else ""
        paced = self.how.estimate is not None or not training
        self._report(Progress(max(0, min(done, total)), total, note, paced=paced))

    def keep(self, piece: Piece, answer: Any) -> Iterable[Piece]:
        """Keep what a worker found; where it is a target, its images can be attacked."""
        asked = self._over(piece)
        if asked.planned is not None:
            self._attacked(asked.planned, asked.cells, answer)
            return ()
        target = asked.target
        if isinstance(answer, work.Untrainable):
            self.store.failures.write(target.key, answer.why)
            self._give_up(target, answer.why)
            return ()
        cost = {"seconds": round(answer.seconds, 1), "device": answer.device}
        if answer.course:
            cost["test_accuracy"] = [round(share, 4) for share in answer.course]
        self.store.write_target(target.key, answer.content, cost)
        self._counts["trained"] += 1
        return self._attack(target)

    def leave(self, piece: Piece, error: Exception) -> None:
        """Keep nothing of what the machines could not do."""
        asked = self._over(piece)
        waiting = () if asked.planned is not None else self._sets(asked.target)
        cells = asked.cells or {c for s in waiting for c in s.cells if c.key in self.missing}
        for cell in cells:
            self._leave_cell(cell, "".join(traceback.format_exception_only(error)))

    def is_complete(self, planned: PlannedSet) -> bool:
        """Return whether every cell of the set has succeeded or failed."""
        return not any(cell.key in self.missing for cell in planned.cells)

    def finished_set(self, planned: PlannedSet) -> Path:
        """The set on disk, written unless it is there as its cells now are."""
        if planned.folder not in self._touched and is_written(self.data, self.plan, planned):
            return set_folder(self.data, self.plan, planned)
        return write_finished_set(self.data, self.plan, planned)

    def sums(self) -> dict[str, Any]:
        """Count the images of the plan that succeeded and failed, and what this run did for it."""
        keys = [cell.key for cell in self.plan.cells if cell.key not in self.missing]
        cells = [self.store.cells.read(key) for key in keys]
        ok = sum(cell.result.ok for cell in cells)
        done = {name: self._counts[name] for name in ("computed", "reused", "trained")}
        crashed = sum(cell.crashed for cell in cells)
        counts = {"n_ok": ok, "n_failed": len(cells) - ok, "n_crashed": crashed, **done}
        return {**counts, "undone": dict(self._undone)}

    def _show(self, strips: Mapping[str, Strip]) -> None:
        """Keep for who watches what is seen of one piece, until it is done and another comes."""
        if self._watched not in strips:
            self._watched = next(iter(strips), "")
        strip = strips.get(self._watched, ())
        if strip == self._seen:
            return
        self._seen = strip
        if strip:
            cell = self._asked[self._watched].cells[strip[-1].place]
            self.folder.show(cell.key, strip)
        else:
            self.folder.hide()

    def _sets(self, target: PlannedTarget) -> list[PlannedSet]:
        return [planned for planned in self.plan.sets if planned.target.key == target.key]

    def _begin_target(self, target: PlannedTarget) -> Iterator[Piece]:
        if target.key in self.store.weights:
            yield from self._attack(target)
        elif failure := self.store.failure(target.key):
            self._give_up(target, failure)
        elif target.key not in self._asked:
            asked = _Asked(target=target, weight=self._costs.training(target))
            self._left += asked.weight
            self._asked[target.key] = asked
            kept = self.store.checkpoint(target.key)
            words = (target.plan, self.how.device, kept, target.content)
            yield Piece(key=target.key, work=work.train, asked=words)

    def _attack(self, target: PlannedTarget) -> Iterator[Piece]:
        """The missing cells of a trained target."""
        weights = self.store.weights.path(target.key)
        for planned in self._sets(target):
            for batch in planned.batches():
                cells = tuple(cell for cell in batch if cell.key in self.missing)
                if cells and cells[0].key not in self._asked:  # two sets may have the same cells
                    cost = sum(self._cost[cell.key] for cell in cells)
                    asked = _Asked(target=target, planned=planned, cells=cells, weight=cost)
                    self._asked[cells[0].key] = asked
                    words = (self._assault(planned, cells), self.how.device)
                    about: dict[str, Any] = {"asked": words, "given": weights, "seen": True}
                    yield Piece(key=cells[0].key, work=work.attack, **about)

    def _assault(self, planned: PlannedSet, cells: tuple[Cell, ...]) -> work.Assault:
        images = self.plan.images[planned.target.dataset]
        return work.Assault(
            images=images.pick([images.ids.index(cell.image_id) for cell in cells]),
            defence=planned.target.plan.defence,
            attack=planned.attack,
            draws=tuple(cell.draw for cell in cells),
            shared=planned.shared,
            pictures=planned.pictures,
            kept=str(self.store.weights.path(planned.target.key)),
        )

    def _over(self, piece: Piece) -> _Asked:
        asked = self._asked.pop(piece.key)
        if asked.planned is None:
            self._left -= asked.weight
        return asked

    def _attacked(
        self,
        planned: PlannedSet,
        cells: tuple[Cell, ...],
        answer: Sequence[work.Attacked | work.Undone],
    ) -> None:
        images = self._assault(planned, cells).images
        for place, (cell, one) in enumerate(zip(cells, answer, strict=True)):
            if isinstance(one, work.Undone):
                self._leave_cell(cell, one.why)
            else:
                self._keep(planned, cell, images.pick([place]), one)

    def _leave_cell(self, cell: Cell, why: str) -> None:
        self._left -= self._cost[cell.key]
        self._undone[why.strip().splitlines()[-1]] += 1

    def _give_up(self, target: PlannedTarget, why: str) -> None:
        """Every missing cell of a target without weights has failed with it."""
        told = f"{target.plan.label} could not be trained.\n\n{why}"
        for planned in self._sets(target):
            cells = tuple(cell for cell in planned.cells if cell.key in self.missing)
            images = self._assault(planned, cells).images.images
            self._attacked(planned, cells, [work.crashed(to_uint8(one), told) for one in images])

    def _keep(
        self, planned: PlannedSet, cell: Cell, image: LabelledImages, found: work.Attacked
    ) -> None:
        images = self.plan.images[planned.target.dataset]
        shown = image.shown(0)
        stored = StoredCell(
            image_id=cell.image_id,
            class_id=images.names.index(shown),
            class_name=shown,
            original=to_uint8(image.images[0]),
            result=found.result,
            crashed=found.crashed,
            seconds=found.seconds,
        )
        self.store.cells.write(cell.key, stored)
        self.missing.remove(cell.key)
        self._left -= self._cost[cell.key]
        self._touched.add(planned.folder)
        self._counts["computed"] += 1
        self._counts["failed"] += not found.result.ok

    def _forget_crashes(self) -> None:
        for target in self.plan.targets:
            self.store.failures.forget(target.key)
        for key in set(self._cost) - set(self.store.cells.missing(self._cost)):
            if self.store.cells.read(key).crashed:
                self.store.cells.forget(key)


def set_folder(data: Path, plan: Plan, planned: PlannedSet) -> Path:
    """Return the folder of the set: <data>/runs/<campaign>/<target>__<attack>."""
    return Path(data) / "runs" / plan.campaign.name / planned.folder


def is_written(data: Path, plan: Plan, planned: PlannedSet) -> bool:
    """Tell whether the set is on disk with just these cells, as many failed as in the store.

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
    return (run["n_failed"], run["n_crashed"]) == (failed, crashed)


def write_finished_set(data: Path, plan: Plan, planned: PlannedSet) -> Path:
    """Write the set whose cells are all done or failed, in the place of an older one.

    Raises `DataError` where a cell is missing.
    """
    store, folder = PieceStore(data), set_folder(data, plan, planned)
    cells = [store.cells.read(cell.key) for cell in planned.cells]
    # What the images of this campaign show; another's, which kept the cell, may differ.
    names = plan.images[planned.target.dataset].names
    images = (
        set_image(
            image_id=cell.image_id,
            class_id=names.index(cell.class_name),
            class_name=cell.class_name,
            original=cell.original,
            found=cell.result,
        )
        for cell in cells
    )
    return write_set(folder, _run_record(store, plan, planned, cells), images)


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
        **planned.facts,
        **_noticed(store, planned, images),
        "together": planned.together,
        "seed": target.seed,
        "status": "ok",
        "seconds": round(sum(cell.seconds for cell in cells), 1),  # of computing the attacks
        "n_crashed": sum(cell.crashed for cell in cells),
        "versions": software_versions(),
    }


def _noticed(
    store: PieceStore, planned: PlannedSet, images: LabelledImages
) -> dict[str, list[dict[str, Any]]]:
    """Return the signs that a client could notice, of an attack that changes the model."""
    key = planned.target.key
    if not planned.facts["threat"]["changes_model"] or key not in store.weights:
        return {}
    return {"noticed": [asdict(one) for one in signs_of(store.weights.path(key), images)]}


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
    """Record what clients shared, of how many pictures each, and how these were told apart."""
    record = {**named(SHARED, planned.shared), "pictures": planned.pictures}
    return {**record, "assigned": BY} if planned.pictures > 1 else record
