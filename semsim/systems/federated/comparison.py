"""FedAvg against PBPFL, as the command line and the page run it: curves, costs, and what leaks.

    <out>/order.json      what was asked for
    <out>/training.json   curves, costs, traffic, and what a client learns of γ
    <out>/sets/<arm>/     a reconstruction set an arm
    <out>/result.json     all that a page shows of it

What is there already is not computed again, so that an interrupted run goes on.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from semsim.attacks.as_text import read_attack
from semsim.base.errors import SettingsError, StopRequestedError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import to_record
from semsim.base.progress import Progress, Report, one_step, silent
from semsim.base.registry import built, check_settings
from semsim.base.storage.atomic import finite, write_json
from semsim.base.storage.names import free_name
from semsim.base.storage.records import read_record, write_record
from semsim.base.words import counted
from semsim.datasets import DATASETS
from semsim.lab import Effort
from semsim.metrics import Resources
from semsim.metrics.reference_classifier import learned_from, recognition
from semsim.sets.image import picture_bytes
from semsim.systems.federated import NETWORKS, OWN, TABLES, is_table, pbpfl
from semsim.systems.federated.data import (
    FederatedData,
    deal,
    digest_of,
    of_images,
    of_own_table,
    of_table,
)
from semsim.systems.federated.leak import LeakStudy, arms_for, write_arm
from semsim.systems.federated.networks import drawn_network
from semsim.systems.federated.rounds import FederatedRun, make_clients, train
from semsim.systems.federated.settings import (
    ARMS,
    FORMAT,
    KIND,
    ORDER,
    REFERENCE,
    TRAINING,
    FederatedJob,
    FederatedOrder,
)
from semsim.systems.federated.verdict import scores_in, sentence, summary
from semsim.systems.federated.views import (
    denoised_outputs,
    estimated_gamma,
    first_layer_input,
    has_linear_start,
    received,
    received_noise,
    sent,
)
from semsim.types import LabelledImages


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Data to train on, and, unless it is a table, its images for training and for tests."""

    data: FederatedData
    images: LabelledImages | None
    held_out: LabelledImages | None = None


def load(text: str, coding: Mapping[str, Any] | None = None) -> Loaded:
    """The data that `text` names, see `FederatedOrder`;

    Args:
        coding: See `of_own_table`.
    """
    if text.strip().partition(":")[0] in OWN:
        return Loaded(data=of_own_table(built(OWN, text), coding), images=None)
    if text.strip() in TABLES:
        return Loaded(data=of_table(text.strip()), images=None)
    dataset = built(DATASETS, text)
    images, held_out = dataset("train"), dataset("test")
    return Loaded(data=of_images(images, held_out), images=images, held_out=held_out)


def check_order(order: FederatedOrder) -> None:
    """Raise what is wrong with the settings of `order`; its data is not read."""
    order.training("fedavg"), order.training("pbpfl"), read_attack(order.attack)
    NETWORKS[order.network]
    check_settings(order)
    parties = [ARMS[arm] for arm in order.arms]
    lonely = [f"{arm.title!r}" for arm in parties if arm.needs_another_client]
    if order.images == 1 and lonely and not is_table(order.data):
        raise SettingsError(
            f"Images each is 1, which makes one client; but {', '.join(lonely)} "
            f"need{'s' if len(lonely) == 1 else ''} another client beside it. Take 2 images or "
            "more (--images 2), or leave that out of 'Parties and their attacks' (--arms)."
        )


def check(order: FederatedOrder) -> Loaded:
    """The data of `order`; raises what is wrong with that or with `order` before any work is done.

    One step of the attack is tried, on an untrained network, where images are attacked.
    """
    check_order(order)
    loaded = load(order.data)
    drawn_network(order.network, loaded.data, torch.float32, order.seed)
    deal(loaded.data.train, order.training("fedavg"))
    if _leaks(order, loaded):
        _check_images(order, loaded.data)
    if loaded.images is not None and order.arms:
        _check_attack(order, loaded.data, loaded.images)
    return loaded


def _leaks(order: FederatedOrder, loaded: Loaded) -> bool:
    """Return whether examples are attacked: images by arms, rows of a table in closed form."""
    return bool(order.arms) if loaded.images is not None else len(loaded.data.input_shape) == 1


def _check_images(order: FederatedOrder, data: FederatedData) -> None:
    if order.images > len(data.train):
        raise SettingsError(
            f"Images each is {order.images}, one a client, but {order.data} has "
            f"{len(data.train)} training examples. Take that many or fewer (--images)."
        )
    if len(data.input_shape) > 1 and min(data.input_shape[1:]) < 11:
        raise SettingsError(
            "Attacked images are 11 pixels a side or more: SSIM's window is that wide. Take larger "
            "ones, or attack none (--arms none)."
        )


def _check_attack(order: FederatedOrder, data: FederatedData, images: LabelledImages) -> None:
    few = replace(data, train=data.train.pick([0]), test=data.test.pick([0]))
    alone = replace(order, images=1, attack_round=1)
    try:
        LeakStudy(few, images.pick([0]), alone).attack(REFERENCE, one_step)
    except SettingsError as error:
        raise SettingsError(
            f"The attack {order.attack} does not go with {order.network}: {error} Take another, as "
            "invgrad, or attack none (--arms none)."
        ) from error
    except StopRequestedError:
        pass


def effort(order: FederatedOrder) -> Effort:
    """Return what carrying out `order` makes; raises what is wrong with its settings."""
    check_order(order)
    loaded = load(order.data)
    attacked = order.arms and loaded.images is not None
    n = len(arms_for(order.network, loaded.data, order.arms)) if attacked else 0
    pictures = f"{counted(n, 'attack')} on {counted(order.images, 'picture')} each"
    return Effort(
        made=counted(3 if order.cross_entropy else 2, "training"),
        more=f" of {counted(order.rounds, 'round')} with {counted(order.clients, 'client')}",
        attacked=pictures if n else "nothing attacked",
        disk=n * order.images * picture_bytes(math.prod(loaded.data.input_shape)),
    )


def carry_out(order: FederatedOrder, out: Path, report: Report = silent) -> dict[str, Any]:
    """Train, attack and judge; returns what a result page needs, ready for JSON.

    Raises `SettingsError` where `out` holds another order's results, and what `check` raises where
    the order cannot be carried out.
    """
    loaded = check(order)
    _begin(order, digest_of(loaded.data), out)
    total = _Total(order, loaded.data, report)
    if not (out / TRAINING).exists():
        write_json(out / TRAINING, compared(order, loaded.data, total.training))
    training = jobs.read_json(out / TRAINING)
    result = {"order": asdict(order), "out": str(out), "training": training}
    if loaded.images is None:
        return {**result, "leak": _table_leak(order, loaded.data)}
    if not order.arms:
        return {**result, "leak": {}}
    study = LeakStudy(loaded.data, loaded.images, order)
    arms = arms_for(order.network, loaded.data, order.arms)
    for arm in arms:
        total.arm(arm)
        if not (out / "sets" / arm / "run.json").exists():
            write_arm(out / "sets" / arm, study, study.attack(arm, total.within))
    scores = scores_in(out, arms)
    named = _recognition({arm: out / "sets" / arm for arm in arms}, loaded)
    total.end()
    leak = {
        "scores": [asdict(score) for score in scores],
        "sentences": [sentence(score) for score in scores],
        "summary": summary(scores),
        "recognition": named,
    }
    return {**result, "leak": leak}


def _recognition(folders: Mapping[str, Path], loaded: Loaded) -> dict[str, Any]:
    """Ask a classifier at hand, or one that learns here from test pictures, which no client has."""
    if loaded.held_out is None or loaded.images is None:
        return recognition(folders, Resources())
    return recognition(folders, Resources(), partial(learned_from, loaded.held_out, loaded.images))


def compared(order: FederatedOrder, data: FederatedData, report: Report = silent) -> dict[str, Any]:
    """Train FedAvg and PBPFL from the same start; curves, costs, traffic and differences."""
    runs = {"FedAvg": train(order.training("fedavg"), data, report=report)}
    runs["PBPFL"] = train(order.training("pbpfl"), data, report=report)
    if order.cross_entropy:
        settings = order.training("fedavg", "cross-entropy")
        runs["FedAvg, cross-entropy"] = train(settings, data, report=report)
    masked = runs["PBPFL"]
    return {
        "curves": {name: [asdict(point) for point in run.curves] for name, run in runs.items()},
        "costs": {name: asdict(run.costs) for name, run in runs.items()},
        "traffic": {name: asdict(run.traffic) for name, run in runs.items()},
        "condition": masked.condition,
        "largest_difference": largest_difference(runs["FedAvg"].model, masked.model),
        "released": released_facts(masked),
        "gamma": gamma_facts(masked),
    }


@torch.no_grad()
def released_facts(run: FederatedRun) -> dict[str, float]:
    """Compare the released model with the true one: predictions on test data, parameters."""
    inputs = run.data.test.inputs
    true, released = run.model(inputs), run.released(inputs)
    return {
        "predictions": float((true - released).abs().max() / true.abs().max()),
        "parameters": largest_difference(run.model, run.released),
    }


@torch.no_grad()
def gamma_facts(run: FederatedRun) -> dict[str, float]:
    """Return client 0's estimate of γ in the last round, from its own examples, and its worth.

    error_before, error_after: mean distance of its outputs on test data from the true ones,
    relative to these; agreement_before, agreement_after: share of the same largest output.
    """
    kept = run.kept[-1]
    masked = pbpfl.Masked(
        network=received(run, 0, kept.number), a=received_noise(run, 0, kept.number)
    )
    gamma = estimated_gamma(masked, make_clients(run.settings, run.data)[0].examples)
    inputs = run.data.test.inputs
    true = kept.server(inputs)
    noisy, clean = masked.network(inputs), denoised_outputs(masked, inputs, gamma)
    facts = {"gamma": kept.keys[0].gamma, "estimated": gamma}
    for name, found in (("before", noisy), ("after", clean)):
        facts[f"error_{name}"] = float((found - true).norm() / true.norm())
        if true.shape[1] > 1:
            same = found.argmax(1) == true.argmax(1)
            facts[f"agreement_{name}"] = float(same.double().mean())
    return facts


def largest_difference(first: torch.nn.Module, second: torch.nn.Module) -> float:
    """The largest difference of two networks' parameters."""
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


class _Total:
    """Turns the rounds of several trainings and the images of several arms into one count."""

    def __init__(self, order: FederatedOrder, data: FederatedData, report: Report) -> None:
        self._rounds = order.rounds * (3 if order.cross_entropy else 2)
        self._per_image = max(1, order.rounds // 5)  # so that neither part is a sliver of the bar
        arms = len(order.arms) if len(data.input_shape) == 3 else 0
        self._total = self._rounds + arms * order.images * self._per_image
        self._order, self._report = order, report
        self._done = self._arms = 0

    def training(self, progress: Progress) -> None:
        """One more round of some training."""
        self._done += 1
        self._say(self._done, f"training, round {progress.done} of {progress.total}")

    def arm(self, arm: str) -> None:
        """The next arm begins."""
        start = self._rounds + self._arms * self._order.images * self._per_image
        self._arms += 1
        self._done = start
        self._say(start, ARMS[arm].title)

    def within(self, progress: Progress) -> None:
        """Part of that arm."""
        size = self._order.images * self._per_image
        self._say(self._done + size * progress.done // progress.total, progress.note)

    def end(self) -> None:
        """Arms that the network does not allow were counted, too."""
        self._say(self._total, "all arms are attacked")

    def _say(self, done: int, note: str) -> None:
        self._report(Progress(min(done, self._total), self._total, note))


def _begin(order: FederatedOrder, examples: str, out: Path) -> None:
    """Keep what is computed in `out`;

    Args:
        examples: Their digest.
    """
    path = out / ORDER
    asked = {**to_record(order), "examples": examples}
    begun = read_record(path, FORMAT, SettingsError) if path.exists() else asked
    changed = [key for key in asked if asked[key] != begun.get(key)]
    if changed == ["examples"]:
        raise SettingsError(
            f"{out} was begun with other examples than {order.data} has now. Choose another folder."
        )
    if changed:
        raise SettingsError(
            f"{out} was begun with {changed[0]}={begun.get(changed[0])!r}, not "
            f"{asked[changed[0]]!r}. Choose another folder, or go on with its own settings."
        )
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_record(path, FORMAT, asked)


def _table_leak(order: FederatedOrder, data: FederatedData) -> dict[str, Any]:
    """Rows of a table have no pictures; but a biased linear start gives them away exactly."""
    if len(data.input_shape) > 1:
        return {
            "summary": [
                "Attacks reconstruct images of classes; of these a number is predicted, so that "
                "none was attacked."
            ]
        }
    settings = replace(
        order.training("pbpfl"),
        clients=order.images,
        batch_size=1,
        rounds=1,
        keep=(1,),
        split="iid",
        evaluate_every=1,
    )
    run = train(settings, data)
    if not has_linear_start(run.model):
        raise SettingsError(f"{order.network!r} cannot be solved for its input in closed form.")
    errors = [_row_error(run, client) for client in range(order.images)]
    return {
        "rows": order.images,
        "largest_error": max(errors),
        "summary": [
            "An eavesdropper on the uplink alone: no protection, the first layer's gradient gives "
            f"a client's row away ({order.images} rows, largest error {max(errors):.0e} of a "
            "column's standard deviation)."
        ],
    }


def _row_error(run: FederatedRun, client: int) -> float:
    found = first_layer_input(run.model, pbpfl.under("g", sent(run, client, 1)))
    truth = run.data.train.inputs[run.kept[0].members[client][0]]
    return float(((found - truth) / run.model.std[0]).abs().max())


def queue_comparison(order: FederatedOrder, data: Path) -> Job:
    """The job that will carry out `order`; not yet started.

    Args:
        data: The data folder; results go to runs/federated/<name> below it, where studies find the
            sets.

    Raises:
        SemsimError: Where the order cannot be carried out.
    """
    check(order)
    root = Path(data).resolve() / "runs" / "federated"
    out = root / free_name(root, f"{order.data.partition(':')[0]}-{order.network}")
    return jobs.create(
        Path(data) / "jobs",
        kind=KIND,
        title=f"{order.network} on {order.data}, {order.clients} clients",
        order=FederatedJob(order=order, out=out),
    )


def do_comparison(order: FederatedJob, folder: Path, report: Report) -> dict[str, Any]:
    """Carry out a job's order, and keep the result beside the sets, not in `folder` alone."""
    result = carry_out(order.order, order.out, report)
    write_json(order.out / "result.json", finite(result))
    return result
