"""A federated training in one process, with everything that passes between its parties.

The server masks and sends the model and takes the step. A client: bytes of a model in, bytes of an
update out; its examples never leave it.
"""

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.layer_graph import LayerGraph
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import FederatedData, FederatedExamples, batch_of, deal
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.settings import FederatedSettings, generator
from semsim.systems.federated.transport import (
    Agreement,
    Message,
    Tap,
    Transport,
    numbers_in,
    occasion_of,
    pack,
    pack_keys,
    summed,
    unpack,
    unpack_keys,
)


@dataclass(frozen=True, kw_only=True)
class ClientAnswer:
    """A client's update as bytes, and CPU seconds of its forward and backward passes."""

    payload: bytes
    forward: float
    backward: float


@dataclass(frozen=True, kw_only=True)
class Client:
    """One participant.

    Attributes:
        number: From 0.
        examples: Its own.
        architecture: A network of the public shape; its weights are not used.
        share: Its part of all examples, by which it weights what zero-sum masks hide.
        agreement: Its side of these masks; a new one where the settings want them.
    """

    number: int
    examples: FederatedExamples
    architecture: LayerGraph
    settings: FederatedSettings
    share: float
    agreement: Agreement | None = None

    def __post_init__(self) -> None:
        if self.settings.hides_updates and self.agreement is None:
            object.__setattr__(self, "agreement", Agreement(self.number))

    def answer(self, payload: bytes, round_number: int) -> ClientAnswer:
        """Train on the model in `payload` and return the update of this round (from 1)."""
        tensors = unpack(payload)
        network = with_weights(self.architecture, pbpfl.under("model", tensors))
        if self.settings.scheme == "pbpfl":
            answer = self._pbpfl(pbpfl.Masked(network=network, a=tensors["a"]), round_number)
            return self._hidden(answer, occasion_of(round_number, payload))
        return self._fedavg(network, round_number)

    def members(self, round_number: int, local_step: int = 0) -> list[int]:
        """Positions among its own examples of the mini-batch it uses."""
        step = (round_number - 1) * self.settings.local_steps + local_step
        return batch_of(len(self.examples), step, self.number, self.settings)

    def _pbpfl(self, masked: pbpfl.Masked, round_number: int) -> ClientAnswer:
        batch = self.examples.pick(self.members(round_number))
        started = time.process_time()
        losses = pbpfl.client_forward(masked, batch.inputs, batch.targets)
        between = time.process_time()
        tensors = pbpfl.client_backward(masked, losses).tensors()
        ended = time.process_time()
        return ClientAnswer(
            payload=pack(tensors), forward=between - started, backward=ended - between
        )

    def _hidden(self, answer: ClientAnswer, occasion: bytes) -> ClientAnswer:
        """The weighted update under this client's zero-sum mask (the paper's §4 extension)."""
        if self.agreement is None:
            return answer
        update = {name: self.share * value for name, value in unpack(answer.payload).items()}
        digits = self.settings.masks.zero_sum_digits
        hidden = self.agreement.hidden(update, digits, occasion)
        return replace(answer, payload=pack(hidden))

    def _fedavg(self, network: LayerGraph, round_number: int) -> ClientAnswer:
        before = {name: value.detach().clone() for name, value in network.named_parameters()}
        forward = backward = 0.0
        for local_step in range(self.settings.local_steps):
            batch = self.examples.pick(self.members(round_number, local_step))
            started = time.process_time()
            loss = plain_loss(network, batch, self.settings)
            between = time.process_time()
            gradients = torch.autograd.grad(loss, tuple(network.parameters()))
            backward += time.process_time() - between
            forward += between - started
            if self.settings.local_steps > 1:
                _descend(network, gradients, self.settings.lr)
        names = [name for name, _ in network.named_parameters()]
        update = dict(zip(names, gradients, strict=True))
        if self.settings.local_steps > 1:  # what one step of the server's size lr has to be
            update = {
                name: (before[name] - value.detach()) / self.settings.lr
                for name, value in network.named_parameters()
            }
        payload = pack({f"g/{name}": value for name, value in update.items()})
        return ClientAnswer(payload=payload, forward=forward, backward=backward)


def plain_loss(
    network: LayerGraph, batch: FederatedExamples, settings: FederatedSettings
) -> Tensor:
    """The mean over a mini-batch of ½‖y − ȳ‖², or of the cross-entropy; of shape ().

    Raises `DataError` for the cross-entropy of examples without classes.
    """
    return loss_of(network(batch.inputs), batch, settings)


def loss_of(found: Tensor, batch: FederatedExamples, settings: FederatedSettings) -> Tensor:
    """`plain_loss` of what a network has said of a mini-batch, (N, outputs).

    Raises `DataError` as that does.
    """
    if settings.loss == "mse":
        return (found - batch.targets.to(found.dtype)).square().sum(1).mean() / 2
    if batch.labels is None:
        raise DataError("Cross-entropy needs classes; this data has none. Take loss='mse'.")
    return F.cross_entropy(found, batch.labels)


@torch.no_grad()
def with_weights(architecture: LayerGraph, weights: Mapping[str, Tensor]) -> LayerGraph:
    """A copy of `architecture` that has `weights`, by parameter name, each of that one's shape.

    Raises `DataError` that names the first that is missing or has another shape.
    """
    network = copy.deepcopy(architecture)
    for name, parameter in network.named_parameters():
        if name not in weights or weights[name].shape != parameter.shape:
            raise DataError(f"The message does not fit the network: weight {name!r} is not in it.")
        parameter.copy_(weights[name])
    return network


@torch.no_grad()
def _descend(network: LayerGraph, gradients: tuple[Tensor, ...], lr: float) -> None:
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        parameter.sub_(lr * gradient)


class Server:
    """Holds the true weights and, with PBPFL, the keys of the round that is open.

    Attributes:
        shares: Every client's part of all examples, summing to 1. network is trained in place.
        condition: Of the worst recovery so far, see `pbpfl.Recovered`; 1 with FedAvg.
    """

    def __init__(
        self, settings: FederatedSettings, network: LayerGraph, shares: Sequence[float]
    ) -> None:
        self.settings = settings
        self.network = network
        self.shares = tuple(shares)
        self.keys: tuple[pbpfl.MaskKey, ...] = ()
        self.condition = 1.0

    def open_round(self, number: int) -> list[bytes]:
        """Return the messages to each client in round `number`, from 1."""
        clients = len(self.shares)
        if self.settings.scheme == "fedavg":
            return [pack(_named("model", self.network))] * clients
        drawn = [self._masked(number, client) for client in self._draws()]
        if len(drawn) == 1:
            drawn = drawn * clients
        self.keys = tuple(key for key, _ in drawn)
        return [payload for _, payload in drawn]

    def close_round(self, payloads: Sequence[bytes]) -> dict[str, Tensor]:
        """Take one step with all clients' updates, in order; returns the gradient it went by.

        It has the shape of each parameter, by name. Raises `DataError` for more or fewer updates
        than clients, and for one that cannot be read.
        """
        if len(payloads) != len(self.shares):
            raise DataError(
                f"A round needs the updates of all {len(self.shares)} clients; got {len(payloads)}."
            )
        gradient = self._gradient([unpack(payload) for payload in payloads])
        with torch.no_grad():
            for name, parameter in self.network.named_parameters():
                parameter.sub_(self.settings.lr * gradient[name])
        return gradient

    def _gradient(self, updates: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        if self.settings.scheme == "fedavg":
            return weighted([pbpfl.under("g", one) for one in updates], self.shares)
        if self.settings.hides_updates:  # clients have weighted already
            digits = self.settings.masks.zero_sum_digits
            total = summed(updates, digits, self.settings.torch_dtype)
            return self._recovered(self.keys[0], total)
        found = [
            self._recovered(key, update) for key, update in zip(self.keys, updates, strict=True)
        ]
        return weighted(found, self.shares)

    def _recovered(self, key: pbpfl.MaskKey, update: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = pbpfl.recover(key, pbpfl.ClientUpload.of(update), self.settings.masks)
        self.condition = max(self.condition, found.condition)
        return found.gradients

    def _masked(self, number: int, client: int) -> tuple[pbpfl.MaskKey, bytes]:
        rng = generator("masks", self.settings.seed, number, client)
        key, masked = pbpfl.perturb(self.network, self.settings.masks, rng)
        return key, pack({**_named("model", masked.network), "a": masked.a})

    def _draws(self) -> range:
        scope = self.settings.masks.noise_scope
        return range(len(self.shares) if scope == "client" else 1)


def weighted(parts: Sequence[Mapping[str, Tensor]], weights: Sequence[float]) -> dict[str, Tensor]:
    """Σ weight · part, by name; tensors of one name have one shape in all parts."""
    total = {name: weights[0] * value for name, value in parts[0].items()}
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        for name, value in part.items():
            total[name] = total[name] + weight * value
    return total


def _named(part: str, network: LayerGraph) -> dict[str, Tensor]:
    return {f"{part}/{name}": value for name, value in network.named_parameters()}


_EVALUATION_BATCH = 256


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The true model on the test examples after `round` rounds.

    Attributes:
        loss: The mean of the training loss.
        squared_error: Mean over examples and outputs, which is what the paper's Table 2 calls MSE.
        accuracy: Share, None where there are no classes.
    """

    round: int
    loss: float
    squared_error: float
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Costs:
    """CPU seconds over all rounds and clients, the four columns of the paper's Table 5.

    Attributes:
        perturb: Server, with packing (PP).
        forward, backward: Clients (LFP, LBP).
        update: Server, with unpacking and recovery (MU).
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

    Attributes:
        server: The true network before the step.
        keys: The server's, one a client, none with FedAvg.
        members: Each client's mini-batch, as indices into the training examples.
    """

    number: int
    server: LayerGraph
    keys: tuple[pbpfl.MaskKey, ...]
    members: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class FederatedRun:
    """A finished training.

    Attributes:
        curves: One point every `evaluate_every` rounds, the start and the end included.
        model: The true final network, which only the server has.
        released: What clients get at the end; with FedAvg it is `model`.
        messages, kept: Of the rounds in `settings.keep`.
        condition: Of the worst recovery.
    """

    settings: FederatedSettings
    data: FederatedData
    curves: tuple[CurvePoint, ...]
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

    Args:
        report: Told after every round; at a point of the curve its values hold the point.
        tap: Told of every message.
        after: Go on from the weights and the round where that training ended.

    Raises:
        SettingsError: Where the training diverges or a recovery is too inexact.
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
        self.curves: list[CurvePoint] = []
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
    network: LayerGraph, examples: FederatedExamples, settings: FederatedSettings, number: int
) -> CurvePoint:
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
    return CurvePoint(
        round=number, loss=loss / count, squared_error=squares / count, accuracy=accuracy
    )
