"""FedAvg against PBPFL, as the command line and the page run it: curves, costs, and what leaks.

    <out>/order.json      what was asked for
    <out>/training.json   curves, costs, traffic, and what a client learns of γ
    <out>/sets/<arm>/     a reconstruction set an arm

What is there already is not computed again, so that an interrupted run goes on.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from semsim.attacks.spec import read_attack
from semsim.datasets import DATASETS
from semsim.datasets.digits import Digits
from semsim.defences import pbpfl
from semsim.errors import AttackFailedError, DataError, SettingsError
from semsim.federated import (
    NETWORKS,
    FederatedData,
    FederatedRun,
    FederatedSettings,
    of_images,
    of_table,
)
from semsim.federated import train as train_federated
from semsim.federated.attacks import (
    denoised_outputs,
    estimated_gamma,
    first_layer_input,
    has_linear_start,
)
from semsim.federated.data import TABLES
from semsim.federated.leak import ARMS, REFERENCE, RESCALED, ArmResult, LeakSettings, LeakStudy
from semsim.federated.leak import write_arm as write_leak
from semsim.federated.rounds import make_clients
from semsim.federated.settings import Split
from semsim.federated.verdict import ArmScore, scored, sentence, summary
from semsim.federated.views import received, received_noise, sent
from semsim.images import read_image, read_images
from semsim.jobs import folders as jobs
from semsim.kept.whole import write_json
from semsim.progress import Progress, Report, silent
from semsim.registry import Registry, build, read_plugin
from semsim.sets.reader import read_set
from semsim.types import LabelledImages, Reconstruction

IMAGE_DATA: Registry[Any] = Registry("data set", {**DATASETS, "digits": Digits})
KIND = "federated"
TRAINING = "training.json"


@dataclass(frozen=True, kw_only=True)
class FederatedOrder:
    """What to compare.

    data: a data set with its settings, as in "symbols:train_per_class=4", or one of `TABLES`.
    network to seed: see `FederatedSettings`; both schemes start from the same weights.
    cross_entropy: train FedAvg with it too. arms: names in `ARMS`, attacked in rounds of their own
    with as many clients as `images` and one image each; empty attacks nothing. attack: as in
    "invgrad:steps=300". attack_round: 1 attacks an untrained network.
    """

    data: str = "digits"
    network: str = "lenet"
    clients: int = 3
    split: Split = "iid"
    dirichlet_alpha: float = 0.5
    rounds: int = 50
    batch_size: int = 32
    lr: float = 0.05
    seed: int = 0
    noise_scope: pbpfl.NoiseScope = "client"
    cross_entropy: bool = False
    arms: tuple[str, ...] = tuple(ARMS)
    images: int = 5
    attack: str = "invgrad:steps=300,tv=0.002"
    attack_round: int = 1

    def training(self, scheme: str, loss: str = "mse") -> FederatedSettings:
        """The settings of one of the trainings; raises `SettingsError` where they cannot be."""
        return FederatedSettings(
            network=self.network,
            scheme="pbpfl" if scheme == "pbpfl" else "fedavg",
            loss="mse" if loss == "mse" else "cross-entropy",
            clients=self.clients,
            split=self.split,
            dirichlet_alpha=self.dirichlet_alpha,
            rounds=self.rounds,
            batch_size=self.batch_size,
            lr=self.lr,
            seed=self.seed,
            evaluate_every=max(1, self.rounds // 20),
            keep=(self.rounds,),
            masks=pbpfl.Pbpfl(noise_scope=self.noise_scope),
        )

    def leak(self) -> LeakSettings:
        """The settings of the attacks."""
        return LeakSettings(
            network=self.network,
            images=self.images,
            round_number=self.attack_round,
            lr=self.lr,
            seed=self.seed,
            masks=pbpfl.Pbpfl(),
            attack=read_attack(self.attack),
        )


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Data to train on, and, unless it is a table, its training images."""

    data: FederatedData
    images: LabelledImages | None


def load(text: str) -> Loaded:
    """The data that `text` names, see `FederatedOrder`."""
    if text.strip() in TABLES:
        return Loaded(data=of_table(text.strip()), images=None)
    plugin = read_plugin(IMAGE_DATA, text)
    dataset = build(IMAGE_DATA, plugin.name, plugin.settings)
    images = dataset("train")
    return Loaded(data=of_images(images, dataset("test")), images=images)


def check_settings(order: FederatedOrder) -> None:
    """Raise what is wrong with the settings of `order`; its data is not read."""
    order.training("fedavg"), order.training("pbpfl"), order.leak()
    NETWORKS[order.network]
    for name in ("images", "attack_round"):
        if getattr(order, name) < 1:
            raise SettingsError(f"{name} is 1 or more; got {getattr(order, name)}.")
    parties = [ARMS[arm] for arm in order.arms]
    lonely = [f"{arm.title!r}" for arm in parties if arm.needs_another_client]
    if order.images == 1 and lonely and order.data.strip() not in TABLES:
        raise SettingsError(
            f"Images each is 1, which makes one client; but {', '.join(lonely)} "
            f"need{'s' if len(lonely) == 1 else ''} another client beside it. Take 2 images or "
            "more (--images 2), or leave that out of 'Who looks, and how' (--arms)."
        )


def carry_out(order: FederatedOrder, out: Path, report: Report = silent) -> dict[str, Any]:
    """Train, attack and judge; returns what a result page needs, ready for JSON.

    Raises `SettingsError` where `out` holds another order's results, or where the order cannot be
    carried out (`check_settings`).
    """
    check_settings(order)
    _begin(order, out)
    loaded = load(order.data)
    total = _Total(order, loaded.data, report)
    training = _training(order, loaded.data, out, total)
    result = {"order": asdict(order), "out": str(out), "training": training}
    if loaded.images is None:
        return {**result, "leak": _table_leak(order, loaded.data)}
    if not order.arms:
        return {**result, "leak": {}}
    study = LeakStudy(loaded.data, loaded.images, order.leak())
    for arm in _arms(order, study):
        total.arm(arm)
        if not (out / "sets" / arm / "run.json").exists():
            write_leak(out / "sets" / arm, study, study.attack(arm, total.within))
    total.end()
    scores = scores_in(out, _arms(order, study), loaded.data.mean)
    return {**result, "leak": _leak_record(scores)}


def scores_in(out: Path, arms: list[str], mean: tuple[float, ...]) -> list[ArmScore]:
    """Figures and verdicts of the sets below `out`, from their pictures."""
    originals = _originals(out / "sets" / arms[0])
    return scored([read_arm(out / "sets" / arm, arm) for arm in arms], originals, mean)


def read_arm(folder: Path, arm: str) -> ArmResult:
    """What `write_arm` wrote, with pictures of 8 bits."""
    found = read_set(folder)
    return ArmResult(
        arm=arm,
        found=tuple(_found(folder, row) for row in found.manifest.to_dict("records")),
        gradient_difference=found.run["gradient_difference"],
        seconds=float(found.run["seconds"]),
    )


def compared(order: FederatedOrder, data: FederatedData, report: Report = silent) -> dict[str, Any]:
    """Train FedAvg and PBPFL from the same start; curves, costs, traffic and differences."""
    runs = {"FedAvg": train_federated(order.training("fedavg"), data, report=report)}
    runs["PBPFL"] = train_federated(order.training("pbpfl"), data, report=report)
    if order.cross_entropy:
        settings = order.training("fedavg", "cross-entropy")
        runs["FedAvg, cross-entropy"] = train_federated(settings, data, report=report)
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
    """How far the released model is from the true one: predictions on test data, parameters."""
    inputs = run.data.test.inputs
    true, released = run.model(inputs), run.released(inputs)
    return {
        "predictions": float((true - released).abs().max() / true.abs().max()),
        "parameters": largest_difference(run.model, run.released),
    }


@torch.no_grad()
def gamma_facts(run: FederatedRun) -> dict[str, float]:
    """What client 0 learns of γ in the last round from its own examples, and what that is worth.

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


def _begin(order: FederatedOrder, out: Path) -> None:
    path = out / "order.json"
    asked = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(order).items()}
    if path.exists():
        begun = jobs.read_json(path)
        changed = [key for key in asked if asked[key] != begun.get(key)]
        if changed:
            raise SettingsError(
                f"{out} was begun with {changed[0]}={begun.get(changed[0])!r}, not "
                f"{asked[changed[0]]!r}. Choose another folder, or go on with its own settings."
            )
        return
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, asked)


def _training(
    order: FederatedOrder, data: FederatedData, out: Path, total: _Total
) -> dict[str, Any]:
    path = out / TRAINING
    if not path.exists():
        write_json(path, compared(order, data, total.training))
    return jobs.read_json(path)


def _arms(order: FederatedOrder, study: LeakStudy) -> list[str]:
    """The arms asked for that the network allows, after those they are compared with."""
    wanted = {*order.arms, REFERENCE, RESCALED}
    return [arm for arm in study.arms() if arm in wanted]


def _leak_record(scores: list[ArmScore]) -> dict[str, Any]:
    return {
        "scores": [asdict(score) for score in scores],
        "sentences": [sentence(score) for score in scores],
        "summary": summary(scores),
    }


def _table_leak(order: FederatedOrder, data: FederatedData) -> dict[str, Any]:
    """Rows of a table have no pictures; but a biased linear start gives them away exactly."""
    settings = replace(
        order.training("pbpfl"),
        clients=order.images,
        batch_size=1,
        rounds=1,
        keep=(1,),
        split="iid",
        evaluate_every=1,
    )
    run = train_federated(settings, data)
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


def _found(folder: Path, row: Mapping[Any, Any]) -> Reconstruction | AttackFailedError:
    if row["status"] != "ok":
        return AttackFailedError(str(row["error"]))
    return Reconstruction(
        image=read_image(folder / row["reconstruction"]),
        objective=float(row["objective"]),
        residual=float(row["residual"]),
        grey_residual=float(row["grey_residual"]),
        blown_up=row["blown_up"] is True,
        solver=row["solver"] or "",
    )


def _originals(folder: Path) -> Tensor:
    manifest = read_set(folder).manifest
    if manifest.empty:
        raise DataError(f"{folder} has no images.")
    return read_images([folder / path for path in manifest["original"]])
