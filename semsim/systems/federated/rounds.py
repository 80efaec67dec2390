"""A federated training in one process, with everything that passes between its parties."""

import copy
import math
import time
from dataclasses import dataclass

import torch

from semsim.base.errors import SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.layer_graph import LayerGraph
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import Examples, FederatedData, deal
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.parties import Client, Server, loss_of
from semsim.systems.federated.settings import FederatedSettings, generator
from semsim.systems.federated.transport import (
    Message,
    Tap,
    Transport,
    numbers_in,
    pack_keys,
    unpack_keys,
)

_EVALUATION_BATCH = 256


@dataclass(frozen=True, kw_only=True)
class Point:
    """The true model on the test examples after `round` rounds.

    loss: the mean of the training loss. squared_error: mean over examples and outputs, which is
    what the paper's Table 2 calls MSE. accuracy: share, None where there are no classes.
    """

    round: int
    loss: float
    squared_error: float
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Costs:
    """CPU seconds over all rounds and clients, the four columns of the paper's Table 5.

    perturb: server, with packing (PP). forward, backward: clients (LFP, LBP). update: server, with
    unpacking and recovery (MU).
    """

    perturb: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    update: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes over the wire in all rounds, and numbers in one message of the first round."""

    bytes_down: int
    bytes_up: int
    numbers_down: int
    numbers_up: int


@dataclass(frozen=True, kw_only=True)
class KeptRound:
    """Private data of the parties in one round.

    server: the true network before the step. keys: the server's, one a client, none with FedAvg.
    members: each client's mini-batch, as indices into the training examples.
    """

    number: int
    server: LayerGraph
    keys: tuple[pbpfl.Key, ...]
    members: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class FederatedRun:
    """A finished training.

    curves: one point every `evaluate_every` rounds, the start and the end included. model: the
    true final network, which only the server has. released: what clients get at the end; with
    FedAvg it is `model`. messages, kept: of the rounds in `settings.keep`. condition: of the worst
    recovery.
    """

    settings: FederatedSettings
    data: FederatedData
    curves: tuple[Point, ...]
    model: LayerGraph
    released: LayerGraph
    messages: tuple[Message, ...]
    kept: tuple[KeptRound, ...]
    costs: Costs
    traffic: Traffic
    condition: float


def train(
    settings: FederatedSettings,
    data: FederatedData,
    *,
    report: Report = silent,
    tap: Tap | None = None,
    after: FederatedRun | None = None,
) -> FederatedRun:
    """Train as `settings` says; equal settings give equal weights on one machine.

    report: told after every round; at a point of the curve its values hold the point. tap: told of
    every message. after: go on from the weights and the round where that training ended.
    Raises `SettingsError` where the training diverges or a recovery is too inexact.
    """
    session = _Session(settings, data, tap, after)
    for number in range(session.begun + 1, settings.rounds + 1):
        session.one_round(number)
        values = {}
        if number % settings.evaluate_every == 0 or number == settings.rounds:
            values = session.evaluate(number)
        report(Progress(number, settings.rounds, "rounds", values))
    return session.finished()


class _Session:
    """A training under way."""

    def __init__(
        self,
        settings: FederatedSettings,
        data: FederatedData,
        tap: Tap | None,
        after: FederatedRun | None,
    ) -> None:
        self.settings, self.data = settings, data
        self.parts = deal(data.train, settings)
        self.begun = after.settings.rounds if after else 0
        if self.begun >= settings.rounds:
            raise SettingsError(f"{self.begun} rounds are done; rounds is {settings.rounds}.")
        network = copy.deepcopy(after.model) if after else fresh_network(settings, data)
        self.clients = make_clients(settings, data)
        self.server = Server(settings, network, [client.share for client in self.clients])
        self.transport = Transport(tap=tap, keep=frozenset(settings.keep))
        self.seconds = {"perturb": 0.0, "forward": 0.0, "backward": 0.0, "update": 0.0}
        self.numbers = (0, 0)
        self.kept: list[KeptRound] = []
        self._agree()
        self.curves: list[Point] = []
        self.evaluate(self.begun)

    def one_round(self, number: int) -> None:
        started = time.process_time()
        models = self.server.open_round(number)
        self.seconds["perturb"] += time.process_time() - started
        if number in self.settings.keep:
            self._keep(number)
        updates = [
            self._exchange(client, model, number)
            for client, model in zip(self.clients, models, strict=True)
        ]
        if number == self.begun + 1:
            self.numbers = (numbers_in(models[0]), numbers_in(updates[0]))
        started = time.process_time()
        self.server.close_round(updates)
        self.seconds["update"] += time.process_time() - started

    def evaluate(self, number: int) -> dict[str, float]:
        point = measured(self.server.network, self.data.test, self.settings, number)
        self.curves.append(point)
        values = {"loss": point.loss, "squared_error": point.squared_error}
        return values if point.accuracy is None else {**values, "accuracy": point.accuracy}

    def finished(self) -> FederatedRun:
        settings, model = self.settings, self.server.network
        released = model
        if settings.scheme == "pbpfl":
            released = pbpfl.release(model, settings.masks, generator("release", settings.seed))
        return FederatedRun(
            settings=settings,
            data=self.data,
            curves=tuple(self.curves),
            model=model,
            released=released,
            messages=tuple(self.transport.kept),
            kept=tuple(self.kept),
            costs=Costs(**self.seconds),
            traffic=Traffic(
                bytes_down=self.transport.down,
                bytes_up=self.transport.up,
                numbers_down=self.numbers[0],
                numbers_up=self.numbers[1],
            ),
            condition=self.server.condition,
        )

    def _exchange(self, client: Client, model: bytes, number: int) -> bytes:
        down = Message(kind="model", round=number, client=client.number, payload=model)
        answer = client.answer(self.transport.send(down), number)
        self.seconds["forward"] += answer.forward
        self.seconds["backward"] += answer.backward
        up = Message(kind="update", round=number, client=client.number, payload=answer.payload)
        return self.transport.send(up)

    def _agree(self) -> None:
        """Carry the clients' public keys among them, where zero-sum masks need them."""
        sides = [client.agreement for client in self.clients if client.agreement]
        first = self.begun + 1
        keys = [
            self.transport.send(
                Message(kind="key", round=first, client=one.number, payload=pack_keys([one.public]))
            )
            for one in sides
        ]
        for one in sides:
            payload = pack_keys([unpack_keys(key)[0] for key in keys])
            down = Message(kind="keys", round=first, client=one.number, payload=payload)
            one.agree(unpack_keys(self.transport.send(down)))

    def _keep(self, number: int) -> None:
        members = tuple(
            tuple(part[place] for place in client.members(number))
            for client, part in zip(self.clients, self.parts, strict=True)
        )
        server = copy.deepcopy(self.server.network)
        self.kept.append(
            KeptRound(number=number, server=server, keys=self.server.keys, members=members)
        )


def make_clients(settings: FederatedSettings, data: FederatedData) -> tuple[Client, ...]:
    """All clients of a training, each with its part of the training examples."""
    architecture = fresh_network(settings, data)
    return tuple(
        Client(
            number=number,
            examples=data.train.pick(part),
            architecture=architecture,
            settings=settings,
            share=len(part) / len(data.train),
        )
        for number, part in enumerate(deal(data.train, settings))
    )


@torch.no_grad()
def measured(
    network: LayerGraph, examples: Examples, settings: FederatedSettings, number: int
) -> Point:
    """Measure `network` on `examples` after `number` rounds.

    Raises `SettingsError` where the training has diverged.
    """
    count, loss, squares, hits = len(examples), 0.0, 0.0, 0
    for start in range(0, count, _EVALUATION_BATCH):
        batch = examples.pick(range(start, min(start + _EVALUATION_BATCH, count)))
        found = network(batch.inputs)
        loss += loss_of(found, batch, settings).item() * len(batch)
        squares += (found - batch.targets.to(found.dtype)).square().mean(1).sum().item()
        if batch.labels is not None:
            hits += int((found.argmax(1) == batch.labels).sum())
    if not math.isfinite(loss):
        raise SettingsError(
            f"The training diverged: after round {number} the loss is {loss / count}. Take a "
            f"smaller lr than {settings.lr:g}."
        )
    accuracy = None if examples.labels is None else hits / count
    return Point(round=number, loss=loss / count, squared_error=squares / count, accuracy=accuracy)
