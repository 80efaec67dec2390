"""Carrying out a plan with Dask: workers compute and return, this process alone writes.

An answer is on disk under its key before the next one is looked at, so that a run that is stopped
or killed loses only what was being computed. Dask gives the work of a worker that dies to another
one. Nothing here decides a result: random numbers come from keys, and which images are attacked
together comes from the plan.
"""

import contextlib
import queue
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distributed import Client, Event, Future, get_worker

from semsim.campaign import work
from semsim.campaign.cell import TargetPlan
from semsim.campaign.machines import check_machines, parcel
from semsim.campaign.plan import Cell, Plan, PlannedSet, PlannedTarget
from semsim.campaign.probe import Estimate
from semsim.campaign.sets import is_written, set_folder, write_finished_set
from semsim.campaign.store import PieceStore, StoredCell
from semsim.campaign.watch import RunFolder
from semsim.errors import JobError, StopRequestedError
from semsim.images import to_uint8
from semsim.progress import Progress, Report, silent
from semsim.types import LabelledImages

_TICK = 1.0  # seconds between two looks at whether a stop was asked for
_TELL = 0.5  # seconds between two words of one worker
_PARTS = 1000  # progress is told in thousandths of a unit of work


@dataclass(frozen=True, kw_only=True)
class HowToRun:
    """device: where each worker computes: auto, cpu, cuda or mps.

    retry: try again what broke before with an error nobody foresaw; an attack that said why it
    failed is a result and stays. estimate: by which the time left is told before a pace is known.
    """

    device: str = "auto"
    retry: bool = False
    estimate: Estimate = field(default_factory=Estimate)


def run_plan(
    plan: Plan, data: Path, client: Client, how: HowToRun, report: Report = silent
) -> dict[str, Any]:
    """Compute what is missing of `plan` and write its reconstruction sets below `data`.

    Returns counts, ready for JSON; "undone" has how many images the machines could not attack, by
    reason: nothing of these is kept, and their sets are not written. Raises `StopRequestedError`
    when `report` does, `SettingsError` where another campaign has the name, `JobError` where the
    cluster went away or a worker cannot do the work.
    """
    began = time.monotonic()
    run = _Run(plan, Path(data), client, how)
    run.folder.claim(plan.campaign)
    try:
        run.begin()
        run.tell(report)
        while run.open:
            run.listen()
            run.tell(report)
    finally:
        run.end()
    sets = [str(run.finished_set(planned)) for planned in plan.sets if run.is_complete(planned)]
    seconds = round(time.monotonic() - began, 1)
    return {"campaign": plan.campaign.name, "sets": sets, "seconds": seconds, **run.sums()}


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """What one task does: train `target`, or attack `cells` of `planned` on it."""

    target: PlannedTarget
    planned: PlannedSet | None = None
    cells: tuple[Cell, ...] = ()
    weight: float = 1.0
    future: Future | None = None

    @property
    def keys(self) -> list[str]:
        """Of what it makes."""
        return [cell.key for cell in self.cells] or [self.target.key]


class _Run:
    """One run of a plan: what is open, and what came in."""

    def __init__(self, plan: Plan, data: Path, client: Client, how: HowToRun) -> None:
        self.plan, self.data, self.client, self.how = plan, data, client, how
        self.store, self.folder = PieceStore(data), RunFolder(data, plan.campaign.name)
        self.id = secrets.token_hex(6)  # two runs on one scheduler share nothing
        self.open: dict[str, _Piece] = {}  # by Dask's key
        self.missing: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._undone: Counter[str] = Counter()  # images, by what kept them from being attacked
        self._touched: set[str] = set()
        self._shares: dict[str, float] = {}
        self._news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stop = Event(_stop_name(self.id), client=client)
        self._cost = {
            cell.key: how.estimate.image(planned) for planned in plan.sets for cell in planned.cells
        }
        self._total = sum(self._cost.values()) + sum(map(how.estimate.training, plan.targets))
        self._left = 0.0

    def begin(self) -> None:
        """Ask the workers for everything that is missing and can be begun."""
        targets = [target.key for target in self.plan.targets]
        self.store.forget_machine_failures(self._cost, targets)
        if self.how.retry:
            self._forget_crashes()
        self.missing = set(self.store.missing(self._cost))
        self._counts["reused"] = len(self._cost) - len(self.missing)
        self._left = sum(self._cost[key] for key in self.missing)
        self.client.subscribe_topic(self.id, lambda event: self._news.put(event[1]))
        for target in self.plan.targets:
            if any(cell.key in self.missing for s in self._sets(target) for cell in s.cells):
                self._begin_target(target)

    def listen(self) -> None:
        """Take in what workers have to say; waits for a second at most."""
        with contextlib.suppress(queue.Empty):
            said = self._news.get(timeout=_TICK)
            while True:
                self._hear(said)
                said = self._news.get_nowait()

    def tell(self, report: Report) -> None:
        """How far the run is, to `report` and to whoever watches the folder."""
        under_way = {
            key: share
            for task, share in self._shares.items()
            if task in self.open
            for key in self.open[task].keys
        }
        self.folder.tell(under_way)
        begun = sum(self.open[t].weight * s for t, s in self._shares.items() if t in self.open)
        done, total = (
            round(_PARTS * (self._total - self._left + begun)),
            round(_PARTS * self._total),
        )
        note = f"{len(self._cost) - len(self.missing)} of {len(self._cost)} images attacked"
        note += f", {self._training} targets in training" if self._training else ""
        note += f", {self._counts['failed']} failed" if self._counts["failed"] else ""
        note += f", {self._undone.total()} could not be computed" if self._undone else ""
        note += ", waiting for a worker" if self.open and not self.client.nthreads() else ""
        report(Progress(max(0, min(done, total)), total, note))

    def end(self) -> None:
        """Leave the cluster as it was found: what still runs is told to stop."""
        self.folder.quiet()
        with contextlib.suppress(OSError, RuntimeError):  # the cluster itself may be gone
            if self.open:
                self._stop.set()
                self.client.cancel([p.future for p in self.open.values()], force=True)
            self.client.unsubscribe_topic(self.id)

    def is_complete(self, planned: PlannedSet) -> bool:
        """Whether every cell of the set has succeeded or failed."""
        return not any(cell.key in self.missing for cell in planned.cells)

    def finished_set(self, planned: PlannedSet) -> Path:
        """The set on disk, written unless it is there with just these cells."""
        if planned.folder not in self._touched and is_written(self.data, self.plan, planned):
            return set_folder(self.data, self.plan, planned)
        return write_finished_set(self.data, self.plan, planned)

    def sums(self) -> dict[str, Any]:
        """How many images of the plan succeeded and failed, and what this run did for it."""
        keys = [cell.key for cell in self.plan.cells if cell.key not in self.missing]
        cells = [self.store.read_cell(key) for key in keys]
        ok = sum(cell.ok for cell in cells)
        done = {name: self._counts[name] for name in ("computed", "reused", "trained")}
        crashed = sum(cell.crashed for cell in cells)
        counts = {"n_ok": ok, "n_failed": len(cells) - ok, "n_crashed": crashed, **done}
        return {**counts, "undone": dict(self._undone)}

    def _sets(self, target: PlannedTarget) -> list[PlannedSet]:
        return [planned for planned in self.plan.sets if planned.target.key == target.key]

    def _begin_target(self, target: PlannedTarget) -> None:
        if self.store.weights(target.key).exists():
            self._attack(target)
        elif failure := self.store.failure(target.key):
            self._give_up(target, failure)
        else:
            piece = _Piece(target=target, weight=self.how.estimate.training(target))
            self._left += piece.weight
            self._submit(piece, _train, target.plan, self.store.checkpoint(target.key))

    def _attack(self, target: PlannedTarget) -> None:
        """Ask for the missing cells of a trained target."""
        content = self.store.weights(target.key).read_bytes()
        # A task of its own: each worker gets the weights once, and any of them may be lost.
        weights = self.client.submit(bytes, content, key=f"weights-{target.key}-{self.id}")
        for planned in self._sets(target):
            for batch in planned.batches():
                cells = tuple(cell for cell in batch if cell.key in self.missing)
                if cells:
                    cost = sum(self._cost[cell.key] for cell in cells)
                    piece = _Piece(target=target, planned=planned, cells=cells, weight=cost)
                    asked = self._assault(planned, cells)
                    self._submit(piece, _attack, asked, given=(weights,))

    def _assault(self, planned: PlannedSet, cells: tuple[Cell, ...]) -> work.Assault:
        images = self.plan.images[planned.target.dataset]
        return work.Assault(
            images=images.pick([images.ids.index(cell.image_id) for cell in cells]),
            defence=planned.target.plan.defence,
            attack=planned.attack,
            draws=tuple(cell.draw for cell in cells),
        )

    def _submit(
        self, piece: _Piece, function: Callable[..., Any], *asked: Any, given: tuple[Any, ...] = ()
    ) -> None:
        """given: what is on the cluster already, the first arguments of `function`."""
        key = f"{function.__name__.strip('_')}-{piece.keys[0]}-{self.id}"
        where = _Where(run=self.id, task=key, device=self.how.device)
        opened, content = parcel(function, *asked, where)
        future = self.client.submit(opened, content, *given, key=key, pure=False)
        self.open[key] = replace(piece, future=future)
        future.add_done_callback(lambda done: self._news.put({"done": done.key}))

    def _hear(self, said: dict[str, Any]) -> None:
        """One word of a worker: how far it is, or that it is done."""
        if "done" not in said:
            self._shares[said["task"]] = said["share"]
            return
        piece = self.open.pop(said["done"], None)
        self._shares.pop(said["done"], None)
        if piece is None or piece.future is None:
            return  # whatever Dask computed twice is kept once
        answer = _answer(piece.future)
        if piece.planned is None:
            self._left -= piece.weight
        if isinstance(answer, work.Undone):
            self._leave(piece, answer)
        elif piece.planned is None:
            self._trained(piece.target, answer)
        else:
            self._attacked(piece.planned, piece.cells, answer)

    def _leave(self, piece: _Piece, undone: work.Undone) -> None:
        """Keep nothing of `piece`. A worker that can do none of the work ends the run."""
        planned = self._sets(piece.target) if piece.planned is None else ()
        waiting = [c for s in planned for c in s.cells if c.key in self.missing]
        for cell in piece.cells or waiting:
            self._leave_cell(cell, undone)
        check_machines(self.client)

    def _leave_cell(self, cell: Cell, undone: work.Undone) -> None:
        self._left -= self._cost[cell.key]
        self._undone[undone.why.strip().splitlines()[-1]] += 1

    def _trained(self, target: PlannedTarget, answer: work.Trained | work.Untrainable) -> None:
        if isinstance(answer, work.Untrainable):
            self.store.write_failure(target.key, answer.why)
            self._give_up(target, answer.why)
            return
        cost = {"seconds": round(answer.seconds, 1), "device": answer.device}
        self.store.write_target(target.key, answer.content, cost)
        self._counts["trained"] += 1
        self._attack(target)

    def _attacked(
        self,
        planned: PlannedSet,
        cells: tuple[Cell, ...],
        answer: Sequence[work.Attacked | work.Undone],
    ) -> None:
        images = self._assault(planned, cells).images
        for place, (cell, one) in enumerate(zip(cells, answer, strict=True)):
            if isinstance(one, work.Undone):
                self._leave_cell(cell, one)
            else:
                self._keep(planned, cell, images.pick([place]), one)

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
        label = int(image.labels[0])
        stored = StoredCell(
            image_id=cell.image_id,
            class_id=label,
            class_name=image.classes[label],
            original=to_uint8(image.images[0]),
            result=found.result,
            crashed=found.crashed,
            seconds=found.seconds,
        )
        self.store.write_cell(cell.key, stored)
        self.missing.remove(cell.key)
        self._left -= self._cost[cell.key]
        self._touched.add(planned.folder)
        self._counts["computed"] += 1
        self._counts["failed"] += not stored.ok

    def _forget_crashes(self) -> None:
        for target in self.plan.targets:
            self.store.forget_failure(target.key)
        for key in set(self._cost) - set(self.store.missing(self._cost)):
            if self.store.read_cell(key).crashed:
                self.store.forget_cell(key)

    @property
    def _training(self) -> int:
        return sum(piece.planned is None for piece in self.open.values())


@dataclass(frozen=True, kw_only=True)
class _Where:
    """What a task must know of the run it belongs to."""

    run: str
    task: str
    device: str


def _train(plan: TargetPlan, checkpoint: Path, where: _Where) -> work.Trained | work.Untrainable:
    return work.train(plan, where.device, _Worker(where), checkpoint)


def _attack(
    weights: bytes, asked: work.Assault, where: _Where
) -> list[work.Attacked | work.Undone]:
    return work.attack(weights, asked, where.device, _Worker(where))


class _Worker:
    """Tells the run how far a task is, and ends the task where the run was stopped."""

    def __init__(self, where: _Where) -> None:
        self._where = where
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < _TELL:
            return
        self._last = now
        share = min(1.0, progress.done / max(1, progress.total))
        get_worker().log_event(self._where.run, {"task": self._where.task, "share": share})
        if Event(_stop_name(self._where.run)).is_set():
            raise StopRequestedError("A stop was asked for.")


def _stop_name(run: str) -> str:
    return f"semsim-stop-{run}"


def _answer(future: Future) -> Any:
    """What a task returned, or `Undone` where it did not come to return anything."""
    if future.status in {"cancelled", "lost"}:
        raise JobError("The Dask scheduler forgot this run (was it restarted?). Resume goes on.")
    try:
        return future.result()
    except Exception:  # noqa: BLE001  whatever broke it, no training and no attack has said it
        return work.Undone(why=traceback.format_exc())
