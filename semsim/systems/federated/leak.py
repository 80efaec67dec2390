"""Reconstructions of clients' images by each party of a federated training: one set an arm.

An arm is a party, what it sees (`views`), and what it does with it first (`attacks`). All arms
attack the same images from the same random starts, so that they can be compared image by image.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from semsim.attacks import ATTACKS, run_many
from semsim.attacks.as_text import read_attack, threat_of
from semsim.attacks.parameters import seen_in
from semsim.base.errors import AttackFailedError, DataError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import all_settings, built
from semsim.base.storage.versions import software_versions
from semsim.base.threat import ThreatModel
from semsim.sets.image import result_of, set_images
from semsim.sets.writer import write_set
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import FederatedData
from semsim.systems.federated.networks import drawn_network
from semsim.systems.federated.rounds import FederatedRun, train
from semsim.systems.federated.settings import (
    ARMS,
    REFERENCE,
    FederatedOrder,
    FederatedSettings,
    PartyArm,
    with_yardsticks,
)
from semsim.systems.federated.views import (
    canonicalised,
    has_linear_start,
    observe,
    received_noise,
    recovered,
    sent,
    solved_input,
    stripped,
)
from semsim.targets.chance import facts_of_test
from semsim.types import GradientObservation, LabelledImages, Reconstruction

Found = Reconstruction | AttackFailedError


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """Result of one arm.

    Attributes:
        found: One a client, in order, or the reason why there is none.
        gradient_difference: Of the gradient the party works with from FedAvg's, ‖difference‖ /
            ‖FedAvg's‖, the worst of all clients; None where the two do not belong to one network.
    """

    arm: str
    found: tuple[Found, ...]
    gradient_difference: float | None
    seconds: float


def arms_for(network: str, data: FederatedData, wanted: Iterable[str] = ARMS) -> list[str]:
    """The arms `wanted` that the network allows, after those they are compared with."""
    solvable = has_linear_start(drawn_network(network, data, torch.float32, 0))
    asked = with_yardsticks(wanted)
    return [arm for arm in asked if solvable or ARMS[arm].treatment != "closed-form"]


class LeakStudy:
    """The trainings behind the arms, each carried out once, and the attacks on them.

    Attributes:
        images: The training split behind `data`, in the same order.
        order: As many clients as its `images`, each with one image in its mini-batch, in the rounds
            before the attacked one, too.
    """

    def __init__(self, data: FederatedData, images: LabelledImages, order: FederatedOrder) -> None:
        if len(images) != len(data.train):
            raise DataError(f"{len(images)} images do not belong to {len(data.train)} examples.")
        self.data, self.images, self.order = data, images, order
        self._runs: dict[tuple[Any, ...], FederatedRun] = {}

    def attacked(self) -> LabelledImages:
        """The attacked images, one a client, in the order of the clients."""
        kept = self.run_of(ARMS[REFERENCE]).kept[0]
        return self.images.pick([members[0] for members in kept.members])

    def attack(self, arm: str, report: Report = silent) -> ArmResult:
        """Reconstruct every client's image as the party in `arm` would.

        Args:
            report: Told in hundredths of the arm.
        """
        began = time.monotonic()
        work = self._solved if ARMS[arm].treatment == "closed-form" else self._matched
        found = work(ARMS[arm], report)
        return ArmResult(
            arm=arm,
            found=tuple(found),
            gradient_difference=self._difference(ARMS[arm]),
            seconds=time.monotonic() - began,
        )

    def _matched(self, arm: PartyArm, report: Report) -> list[Found]:
        run, count = self.run_of(arm), self.order.images
        seen = one_model_each([treated(run, arm, client) for client in range(count)])
        tool = built(ATTACKS, read_attack(self.order.attack))
        of_one_model: dict[int, list[int]] = {}
        for client, one in enumerate(seen):
            of_one_model.setdefault(id(one.model), []).append(client)
        found: dict[int, Found] = {}
        for clients in of_one_model.values():
            rngs = [self._rng(client) for client in clients]
            tell = _told(report, arm, len(found), len(clients), count)
            matched = run_many(tool, [seen[client] for client in clients], rngs=rngs, report=tell)
            found |= dict(zip(clients, matched, strict=True))
        return [found[client] for client in range(count)]

    def _rng(self, client: int) -> torch.Generator:
        return torch.Generator().manual_seed(self.order.seed * 100_003 + client)

    def _solved(self, arm: PartyArm, report: Report) -> list[Found]:
        run = self.run_of(arm)
        found: list[Found] = []
        for client in range(self.order.images):
            uploaded = pbpfl.under("g", sent(run, client, self.order.attack_round))
            try:
                found.append(solved_input(run.model, uploaded))
            except AttackFailedError as failure:
                found.append(failure)
        report(Progress(100, 100, arm.title))
        return found

    def tested(self) -> dict[str, Any]:
        """Return the target model's test before the attacked round, as `facts_of_test` has it.

        Empty where numbers are predicted.
        """
        share = self.run_of(ARMS[REFERENCE]).curves[0].accuracy
        labels = self.data.test.labels
        if share is None or labels is None:
            return {}
        return facts_of_test(share, labels.tolist(), self.data.outputs)

    def run_of(self, arm: PartyArm) -> FederatedRun:
        """The training whose messages `arm` looks at."""
        key = (arm.scheme, arm.noise_scope, arm.zero_sum)
        if key not in self._runs:
            self._runs[key] = train(self._training(arm), self.data, after=self._before())
        return self._runs[key]

    def _before(self) -> FederatedRun | None:
        """The rounds before the attacked one, by FedAvg: PBPFL's weights are the same."""
        rounds = self.order.attack_round - 1
        if rounds and ("before",) not in self._runs:
            plain = self._training(ARMS[REFERENCE])
            before = replace(plain, rounds=rounds, evaluate_every=rounds, keep=())
            self._runs["before",] = train(before, self.data)
        return self._runs.get(("before",))

    def _training(self, arm: PartyArm) -> FederatedSettings:
        own = self.order
        return FederatedSettings(
            network=own.network,
            scheme=arm.scheme,
            clients=own.images,
            rounds=own.attack_round,
            batch_size=1,
            lr=own.lr,
            seed=own.seed,
            evaluate_every=own.attack_round,
            keep=(own.attack_round,),
            masks=arm.masks,
        )

    def _difference(self, arm: PartyArm) -> float | None:
        if arm.view != "server" or arm.treatment != "plain":
            return None
        mine, reference = self.run_of(arm), self.run_of(ARMS[REFERENCE])
        number = self.order.attack_round
        clients = range(self.order.images)
        return max(
            _apart(recovered(mine, client, number), recovered(reference, client, number))
            for client in clients
        )


def treated(run: FederatedRun, arm: PartyArm, client: int) -> GradientObservation:
    """Return the observation that the party in `arm` attacks: its view, after its treatment."""
    # In double precision, since stripping subtracts large numbers; the attack itself needs less.
    seen = observe(run, arm.view, client=client, guess=client, dtype=torch.float64)
    if arm.treatment == "stripped":
        number = run.kept[0].number
        upload = pbpfl.ClientUpload.of(sent(run, client, number))
        seen = stripped(seen, upload, received_noise(run, client, number))
    if arm.treatment in ("canonical", "stripped"):
        seen = canonicalised(seen)
    if isinstance(seen.model, torch.nn.Module):
        seen.model.float()
    return replace(seen, gradients=tuple(gradient.float() for gradient in seen.gradients))


def one_model_each(seen: Sequence[GradientObservation]) -> list[GradientObservation]:
    """The same observations; those of networks with equal weights share one model object."""
    shared: list[GradientObservation] = []
    for one in seen:
        twin = next((other for other in shared if _same_weights(one, other)), one)
        shared.append(replace(one, model=twin.model))
    return shared


def _same_weights(one: GradientObservation, other: GradientObservation) -> bool:
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return all(torch.equal(mine, its) for mine, its in pairs)


def _told(report: Report, arm: PartyArm, before: int, now: int, count: int) -> Report:
    """A report for an attack on `now` images, after `before` of `count`."""

    def tell(progress: Progress) -> None:
        share = (before + now * progress.done / progress.total) / count
        report(Progress(int(100 * share), 100, f"{arm.title}: {before + now} of {count}"))

    return tell


def write_arm(folder: Path, study: LeakStudy, result: ArmResult) -> None:
    """Write an arm's reconstruction set, in the place of an older one."""
    attacked = study.attacked()
    results = [
        result_of(found, image) for found, image in zip(result.found, attacked.images, strict=True)
    ]
    write_set(folder, _record(study, result, attacked), set_images(attacked, results))


def _record(study: LeakStudy, result: ArmResult, attacked: LabelledImages) -> dict[str, Any]:
    """Everything that decided the set, for run.json."""
    order, arm = study.order, ARMS[result.arm]
    chosen, network = read_attack(order.attack), study.run_of(arm).model
    attack = {"name": chosen.name, "settings": all_settings(ATTACKS, chosen)}
    threat = threat_of(chosen)
    if arm.treatment == "closed-form":
        attack, threat = {"name": "first-layer", "settings": {}}, ThreatModel(basic=True)
    return {
        "name": f"federated/{order.network}/{result.arm}",
        "model": f"{order.network}/{result.arm}",
        "dataset": {
            "name": attacked.dataset,
            "classes": list(attacked.classes),
            "size": list(attacked.images.shape[2:]),
        },
        "target": {
            "architecture": {"name": order.network},
            "strategy": {"name": arm.scheme},
            "round": order.attack_round,
            **study.tested(),
            "lr": order.lr,
        },
        "federated": {**asdict(arm), "arm": result.arm, "masks": asdict(arm.masks)},
        "attack": attack,
        "threat": threat.record(),
        "seen": seen_in(network, dict(network.named_parameters())),
        "gradient_difference": result.gradient_difference,
        "seed": order.seed,
        "status": "ok",
        "seconds": round(result.seconds, 2),
        "versions": software_versions(),
    }


def _apart(mine: Mapping[str, Tensor], reference: Mapping[str, Tensor]) -> float:
    """‖mine − reference‖ / ‖reference‖ over all tensors."""
    gap = sum((mine[name] - value).square().sum().item() for name, value in reference.items())
    size = sum(value.square().sum().item() for value in reference.values())
    return float((gap / size) ** 0.5) if size > 0 else float("inf")
