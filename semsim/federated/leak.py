"""What each party of a federated training gets back of clients' images: one set an arm.

An arm is a party, what it sees (`semsim.federated.views`), and what it does with it first
(`semsim.federated.attacks`). All arms attack the same images from the same random starts, so that
they can be compared image by image.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from semsim.attacks import ATTACKS, run_many
from semsim.defences import pbpfl
from semsim.errors import AttackFailedError, DataError
from semsim.federated import FederatedData, FederatedRun, FederatedSettings, View, observe, train
from semsim.federated.attacks import canonicalised, has_linear_start, solved_input, stripped
from semsim.federated.networks import drawn_network
from semsim.federated.views import received_noise, recovered, sent
from semsim.kept.versions import software_versions
from semsim.progress import Progress, Report, silent
from semsim.registry import Plugin, Registry, all_settings, build
from semsim.sets.image import result_of, set_images
from semsim.sets.writer import write_set
from semsim.types import GradientObservation, LabelledImages, Reconstruction

Found = Reconstruction | AttackFailedError
Treatment = Literal["plain", "canonical", "stripped", "closed-form"]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A party and what it does.

    title: for people. treatment: "plain" runs the attack on what is seen; "canonical" rescales
    hidden rows first; "stripped" takes the additive noise out and then rescales; "closed-form"
    needs no attack.
    """

    title: str
    scheme: Literal["fedavg", "pbpfl"] = "pbpfl"
    view: View
    treatment: Treatment = "plain"
    noise_scope: pbpfl.NoiseScope = "client"
    zero_sum: bool = False

    @property
    def needs_another_client(self) -> bool:
        """Whether there is nothing to see with a single client, and so with a single image."""
        return self.view == "client" or self.zero_sum


REFERENCE, RESCALED = "server-fedavg", "server-fedavg-canonical"
ARMS: Registry[Arm] = Registry(
    "arm",
    {
        REFERENCE: Arm(title="FedAvg, server", scheme="fedavg", view="server"),
        RESCALED: Arm(
            title="FedAvg, server, rows rescaled",
            scheme="fedavg",
            view="server",
            treatment="canonical",
        ),
        "server-pbpfl": Arm(title="PBPFL, server", view="server"),
        "links-naive": Arm(title="PBPFL, eavesdropper on both links", view="up_and_downlink"),
        "links-canonical": Arm(
            title="PBPFL, eavesdropper on both links, rows rescaled",
            view="up_and_downlink",
            treatment="canonical",
        ),
        "links-stripped": Arm(
            title="PBPFL, eavesdropper on both links, noise removed and rows rescaled",
            view="up_and_downlink",
            treatment="stripped",
        ),
        "uplink": Arm(title="PBPFL, eavesdropper on the uplink", view="uplink"),
        "uplink-closed-form": Arm(
            title="PBPFL, eavesdropper on the uplink, first layer solved",
            view="uplink",
            treatment="closed-form",
        ),
        "client-own-mask": Arm(title="PBPFL, another client with a mask of its own", view="client"),
        "client-same-mask": Arm(
            title="PBPFL, another client with the same mask, rows rescaled",
            view="client",
            treatment="canonical",
            noise_scope="round",
        ),
        "server-zero-sum": Arm(
            title="PBPFL with zero-sum masks, server",
            view="server",
            noise_scope="round",
            zero_sum=True,
        ),
    },
)

# Who may choose among which arms.
PARTIES: Mapping[str, tuple[str, ...]] = {
    "The server": ("server-pbpfl",),
    "An eavesdropper on both links": ("links-naive", "links-canonical", "links-stripped"),
    "An eavesdropper on the uplink alone": ("uplink", "uplink-closed-form"),
    "Another client": ("client-own-mask", "client-same-mask"),
    "The server under zero-sum masks": ("server-zero-sum",),
}


@dataclass(frozen=True, kw_only=True)
class LeakSettings:
    """What is attacked, and how.

    network: a name in `NETWORKS`. images: as many clients, each with one image in its mini-batch.
    round_number: of the attacked messages; 1 is an untrained network. lr: of the rounds before,
    in which every client takes one image, too.
    """

    network: str = "lenet"
    images: int = 5
    round_number: int = 1
    lr: float = 0.05
    seed: int = 0
    masks: pbpfl.Pbpfl = field(default_factory=pbpfl.Pbpfl)
    attack: Plugin = field(
        default_factory=lambda: Plugin(
            name="invgrad", settings={"steps": 300, "tv": 2e-3, "start": "normal"}
        )
    )


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """What one arm got back.

    found: one a client, in order, or the reason why there is none. gradient_difference: of the
    gradient the party works with from FedAvg's, ‖difference‖ / ‖FedAvg's‖, the worst of all
    clients; None where the two do not belong to one network.
    """

    arm: str
    found: tuple[Found, ...]
    gradient_difference: float | None
    seconds: float


class LeakStudy:
    """The trainings behind the arms, each carried out once, and the attacks on them.

    images: the training split behind `data`, in the same order.
    """

    def __init__(self, data: FederatedData, images: LabelledImages, settings: LeakSettings) -> None:
        if len(images) != len(data.train):
            raise DataError(f"{len(images)} images do not belong to {len(data.train)} examples.")
        self.data, self.images, self.settings = data, images, settings
        self._runs: dict[tuple[Any, ...], FederatedRun] = {}

    def arms(self) -> list[str]:
        """The arms that this network allows."""
        network = drawn_network(self.settings.network, self.data, torch.float32, 0)
        return [n for n in ARMS if n != "uplink-closed-form" or has_linear_start(network)]

    def attacked(self) -> LabelledImages:
        """The attacked images, one a client, in the order of the clients."""
        kept = self._run(ARMS[REFERENCE]).kept[0]
        return self.images.pick([members[0] for members in kept.members])

    def attack(self, arm: str, report: Report = silent) -> ArmResult:
        """Reconstruct every client's image as the party in `arm` would.

        report: told in hundredths of the arm.
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

    def _matched(self, arm: Arm, report: Report) -> list[Found]:
        run, count = self._run(arm), self.settings.images
        seen = one_model_each([treated(run, arm, client) for client in range(count)])
        tool = build(ATTACKS, self.settings.attack.name, self.settings.attack.settings)
        found: dict[int, Found] = {}
        for clients in _of_one_model(seen):
            rngs = [self._rng(client) for client in clients]
            tell = _told(report, arm, len(found), len(clients), count)
            matched = run_many(tool, [seen[client] for client in clients], rngs=rngs, report=tell)
            found |= dict(zip(clients, matched, strict=True))
        return [found[client] for client in range(count)]

    def _rng(self, client: int) -> torch.Generator:
        return torch.Generator().manual_seed(self.settings.seed * 100_003 + client)

    def _solved(self, arm: Arm, report: Report) -> list[Found]:
        run = self._run(arm)
        found: list[Found] = []
        for client in range(self.settings.images):
            uploaded = pbpfl.under("g", sent(run, client, self.settings.round_number))
            try:
                found.append(solved_input(run.model, uploaded))
            except AttackFailedError as failure:
                found.append(failure)
        report(Progress(100, 100, arm.title))
        return found

    def accuracy(self) -> float:
        """Of the attacked network on test images, before the attacked round."""
        share = self._run(ARMS[REFERENCE]).curves[0].accuracy
        return float("nan") if share is None else share

    def run_of(self, arm: str) -> FederatedRun:
        """The training whose messages `arm` looks at."""
        return self._run(ARMS[arm])

    def _run(self, arm: Arm) -> FederatedRun:
        key = (arm.scheme, arm.noise_scope, arm.zero_sum)
        if key not in self._runs:
            self._runs[key] = train(self._training(arm), self.data, after=self._before())
        return self._runs[key]

    def _before(self) -> FederatedRun | None:
        """The rounds before the attacked one, by FedAvg: PBPFL's weights are the same."""
        rounds = self.settings.round_number - 1
        if rounds and ("before",) not in self._runs:
            plain = self._training(ARMS[REFERENCE])
            before = replace(plain, rounds=rounds, evaluate_every=rounds, keep=())
            self._runs["before",] = train(before, self.data)
        return self._runs.get(("before",))

    def _training(self, arm: Arm) -> FederatedSettings:
        own = self.settings
        return FederatedSettings(
            network=own.network,
            scheme=arm.scheme,
            clients=own.images,
            rounds=own.round_number,
            batch_size=1,
            lr=own.lr,
            seed=own.seed,
            evaluate_every=own.round_number,
            keep=(own.round_number,),
            masks=replace(own.masks, noise_scope=arm.noise_scope, zero_sum=arm.zero_sum),
        )

    def _difference(self, arm: Arm) -> float | None:
        if arm.view != "server" or arm.treatment != "plain":
            return None
        mine, reference = self._run(arm), self._run(ARMS[REFERENCE])
        number = self.settings.round_number
        clients = range(self.settings.images)
        return max(
            _apart(recovered(mine, client, number), recovered(reference, client, number))
            for client in clients
        )


def treated(run: FederatedRun, arm: Arm, client: int) -> GradientObservation:
    """What the party in `arm` works with: its view, after its treatment."""
    # In double precision, since stripping subtracts large numbers; the attack itself needs less.
    seen = observe(run, arm.view, client=client, guess=client, dtype=torch.float64)
    if arm.treatment == "stripped":
        number = run.kept[0].number
        upload = pbpfl.Upload.of(sent(run, client, number))
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


def _of_one_model(seen: Sequence[GradientObservation]) -> list[list[int]]:
    """The places in `seen`, by model object."""
    groups: dict[int, list[int]] = {}
    for place, one in enumerate(seen):
        groups.setdefault(id(one.model), []).append(place)
    return list(groups.values())


def _told(report: Report, arm: Arm, before: int, now: int, count: int) -> Report:
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
    settings, arm = study.settings, ARMS[result.arm]
    closed = arm.treatment == "closed-form"
    attack: Mapping[str, Any] = (
        {"name": "first-layer", "settings": {}}
        if closed
        else {"name": settings.attack.name, "settings": all_settings(ATTACKS, settings.attack)}
    )
    return {
        "name": f"federated/{settings.network}/{result.arm}",
        "model": f"{settings.network}/{result.arm}",
        "dataset": {
            "name": attacked.dataset,
            "classes": list(attacked.classes),
            "size": list(attacked.images.shape[2:]),
        },
        "target": {
            "architecture": {"name": settings.network},
            "strategy": {"name": arm.scheme},
            "round": settings.round_number,
            "accuracy": study.accuracy(),
            "lr": settings.lr,
        },
        "federated": {**asdict(arm), "arm": result.arm, "masks": asdict(settings.masks)},
        "attack": dict(attack),
        "gradient_difference": result.gradient_difference,
        "seed": settings.seed,
        "status": "ok",
        "seconds": round(result.seconds, 2),
        "versions": software_versions(),
    }


def _apart(mine: Mapping[str, Tensor], reference: Mapping[str, Tensor]) -> float:
    """‖mine − reference‖ / ‖reference‖ over all tensors."""
    gap = sum((mine[name] - value).square().sum().item() for name, value in reference.items())
    size = sum(value.square().sum().item() for value in reference.values())
    return float((gap / size) ** 0.5) if size > 0 else float("inf")


def pictures(found: Sequence[Found]) -> list[Tensor | None]:
    """The image of each result, or None where the attack failed."""
    return [one.image if isinstance(one, Reconstruction) else None for one in found]
