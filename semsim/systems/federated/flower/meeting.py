"""Training between machines: the messages of a server and its clients, in order.

Messages are fields by name. The server begins with "hello" (settings, shapes and normalisation),
to which a client answers with its number, how many examples it has, and its public key; then comes
a "model" every round, answered with an update, and in the end a "released" model.

A client that is lost is waited for. Where it comes back under its number it gets the open round
again: its answer depends on the model and the round alone. With zero-sum masks all clients then
get the round again, since the lost client comes back with a new key.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from safetensors.torch import save

from semsim.base.errors import DataError, SemsimError, SettingsError
from semsim.base.jobs.orders import from_record, to_record
from semsim.base.progress import Progress, Report, silent
from semsim.layer_graph import LayerGraph
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import FederatedData, deal
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.rounds import Client, CurvePoint, Server, measured
from semsim.systems.federated.settings import FederatedSettings, generator
from semsim.systems.federated.transport import pack_keys, unpack_keys

Fields = Mapping[str, Any]  # of a message: bytes, text and numbers by name
Say = Callable[[str], None]
_BREATH = 0.5  # seconds between two looks at what has arrived
_FAREWELL = 60.0  # seconds in which clients can fetch the released model


class Wire(Protocol):
    """Carrier of messages: nodes are connected programs, by numbers of the wire's own."""

    def nodes(self) -> list[int]:
        """Return the connected nodes."""
        ...

    def push(self, node: int, kind: str, fields: Fields) -> str:
        """Send a message; returns its id."""
        ...

    def pull(self, ids: list[str]) -> dict[str, Fields | None]:
        """The answers that are there, by id; None where the node was lost before it answered."""
        ...


@dataclass(frozen=True, kw_only=True)
class MeetingResult:
    """Result of the server: the true network, its curve, and the model that clients were given."""

    model: LayerGraph
    released: LayerGraph
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True, kw_only=True)
class _Member:
    node: int
    examples: int
    key: bytes


@dataclass(kw_only=True)
class Meeting:
    """The server's side.

    Attributes:
        settings: All clients get to know them; their seed deals out examples and orders
            mini-batches.
        secret: The server's own seed, of first weights and masks.
        data: Its shapes and normalisation are known to all parties; the test examples are the
            curve's.
        patience: Seconds in which nothing happens before the training is given up.
        say: Told who comes and who is lost.
    """

    settings: FederatedSettings
    data: FederatedData
    wire: Wire
    secret: int
    patience: float = 3600.0
    report: Report = silent
    say: Say = lambda text: None
    _members: dict[int, _Member] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)  # hellos that are not answered, and nodes
    _left: set[int] = field(default_factory=set)  # nodes in whose place others are now
    _last: float = field(default_factory=time.monotonic)

    def held(self) -> MeetingResult:
        """Train to the end; `DataError` where a client fails or stays away."""
        own = replace(self.settings, seed=self.secret)
        server = Server(own, fresh_network(own, self.data), [1.0])
        curve = [measured(server.network, self.data.test, own, 0)]
        for number in range(1, own.rounds + 1):
            self._one_round(server, number)
            if number % own.evaluate_every == 0 or number == own.rounds:
                curve.append(measured(server.network, self.data.test, own, number))
            self.report(Progress(number, own.rounds, "rounds"))
        released = server.network
        if own.scheme == "pbpfl":
            released = pbpfl.release(released, own.masks, generator("release", own.seed))
        self._farewell(released)
        return MeetingResult(model=server.network, released=released, curve=tuple(curve))

    def _one_round(self, server: Server, number: int) -> None:
        members = self._everybody()
        server.shares = self._shares(members)
        models = server.open_round(number)
        open_: dict[int, str] = {}
        answers: dict[int, Fields] = {}
        while len(answers) < len(models):
            now = self._everybody()
            if now != members:  # somebody came back
                for client in self._again(members, now):
                    open_.pop(client, None), answers.pop(client, None)
                members = now
            for client in set(range(len(models))) - set(open_) - set(answers):
                fields = self._round_fields(number, models[client], client, members)
                open_[client] = self.wire.push(members[client].node, "model", fields)
            answers |= self._collected(open_)
        server.close_round([answers[client]["update"] for client in sorted(answers)])

    def _again(self, before: Mapping[int, _Member], now: Mapping[int, _Member]) -> list[int]:
        """Return the clients that have to answer again after clients came back."""
        everybody = self.settings.hides_updates
        return [client for client in now if everybody or now[client] != before[client]]

    def _collected(self, open_: dict[int, str]) -> dict[int, Fields]:
        """Answers that are there, which are open no longer; lost clients are forgotten."""
        found = self.wire.pull(list(open_.values()))
        answers = {}
        for client, message in list(open_.items()):
            if message not in found:
                continue
            del open_[client]
            self._heard()
            fields = found[message]
            if fields is None:
                self.say(f"Client {client} is lost; waiting for it to come back.")
                self._members.pop(client, None)
            else:
                answers[client] = _checked(fields)
        if not found:
            self._wait("no answer from client " + ", ".join(map(str, sorted(open_))))
        return answers

    def _everybody(self) -> dict[int, _Member]:
        """All clients by number, waiting for those that are not there."""
        self._greet()
        while missing := sorted(set(range(self.settings.clients)) - set(self._members)):
            self._wait(f"client {', '.join(map(str, missing))} is not there")
            self._greet()
        return dict(self._members)

    def _greet(self) -> None:
        """Ask those who are new for their number; take in who has answered."""
        nodes = self.wire.nodes()
        known = {member.node for member in self._members.values()}
        known |= {*self._asked.values(), *self._left}
        hello = {
            "settings": json.dumps(to_record(self.settings)),
            "facts": json.dumps(facts_of(self.data)),
        }
        for node in nodes:
            if node not in known:
                self._asked[self.wire.push(node, "hello", hello)] = node
        for message, fields in self.wire.pull(list(self._asked)).items():
            node = self._asked.pop(message)
            if fields is not None:
                self._welcome(node, _checked(fields))

    def _welcome(self, node: int, fields: Fields) -> None:
        number, key = int(fields["number"]), bytes(fields["key"])
        if not 0 <= number < self.settings.clients:
            raise DataError(
                f"A client calls itself {number}; clients are 0 to {self.settings.clients - 1}."
            )
        self._heard()
        before = self._members.get(number)
        if before is not None:
            self._left.add(before.node)
        self.say(f"Client {number} is there{', in the place of an earlier one' if before else ''}.")
        self._members[number] = _Member(node=node, examples=int(fields["examples"]), key=key)

    def _shares(self, members: Mapping[int, _Member]) -> tuple[float, ...]:
        total = sum(member.examples for member in members.values())
        return tuple(members[client].examples / total for client in sorted(members))

    def _round_fields(
        self, number: int, model: bytes, client: int, members: Mapping[int, _Member]
    ) -> Fields:
        fields: dict[str, Any] = {"round": number, "model": model}
        if self.settings.hides_updates:
            fields["keys"] = pack_keys([members[one].key for one in sorted(members)])
            fields["share"] = self._shares(members)[client]
        return fields

    def _farewell(self, released: LayerGraph) -> None:
        """Send all clients the model to use; a client that is lost now is not waited for."""
        fields = {"model": weights(released)}
        open_ = [self.wire.push(one.node, "released", fields) for one in self._members.values()]
        ends = time.monotonic() + _FAREWELL
        while open_ and time.monotonic() < ends:
            found = self.wire.pull(open_)
            open_ = [message for message in open_ if message not in found]
            time.sleep(_BREATH)

    def _heard(self) -> None:
        self._last = time.monotonic()

    def _wait(self, why: str) -> None:
        if time.monotonic() - self._last > self.patience:
            raise DataError(f"Nothing happened for {self.patience:g} seconds: {why}.")
        time.sleep(_BREATH)


class Guest:
    """A client's side.

    Attributes:
        number: Its own, from 0.
        source: Its data, as the server's facts about shapes and normalisation want it.
        dealt: Take only the part of it that the settings deal to this number.
    """

    def __init__(
        self, number: int, source: Callable[[Fields], FederatedData], *, dealt: bool = False
    ) -> None:
        self.number, self.source, self.dealt = number, source, dealt
        self.released: bytes | None = None
        self.failure: SemsimError | None = None
        self._client: Client | None = None
        self._asked = ""

    def answer(self, kind: str, fields: Fields) -> Fields:
        """The answer to one of the server's messages; what goes wrong here is told there too."""
        try:
            return self._answers()[kind](fields)
        except SemsimError as failure:
            self.failure = failure
            return {"error": f"client {self.number}: {failure}"}

    def _answers(self) -> Mapping[str, Callable[[Fields], Fields]]:
        return {"hello": self._hello, "model": self._model, "released": self._released}

    def _hello(self, fields: Fields) -> Fields:
        asked = f"{fields['settings']}{fields['facts']}"
        if self._client is None or asked != self._asked:
            settings = from_record(FederatedSettings, json.loads(fields["settings"]))
            self._client, self._asked = self._made(settings, json.loads(fields["facts"])), asked
        agreement = self._client.agreement
        return {
            "number": self.number,
            "examples": len(self._client.examples),
            "key": agreement.public if agreement else b"",
        }

    def _made(self, settings: FederatedSettings, facts: Fields) -> Client:
        if not 0 <= self.number < settings.clients:
            raise SettingsError(
                f"This is client {self.number}; the server wants 0 to {settings.clients - 1}."
            )
        data = fitted(self.source(facts), facts)
        dealt = deal(data.train, settings)[self.number] if self.dealt else ()
        return Client(
            number=self.number,
            examples=data.train.pick(dealt) if self.dealt else data.train,
            architecture=fresh_network(settings, data),
            settings=settings,
            share=0.0,  # told with every round
        )

    def _model(self, fields: Fields) -> Fields:
        if self._client is None:
            raise DataError("The server sent a model before the settings of the training.")
        if self._client.agreement:
            self._client.agreement.agree(unpack_keys(fields["keys"]))
        client = replace(self._client, share=float(fields.get("share", 0.0)))
        return {"update": client.answer(fields["model"], int(fields["round"])).payload}

    def _released(self, fields: Fields) -> Fields:
        self.released = bytes(fields["model"])
        return {"number": self.number}


def weights(network: LayerGraph) -> bytes:
    """Parameters and normalisation as the bytes of a safetensors file."""
    found: bytes = save(dict(network.state_dict()))
    return found


def facts_of(data: FederatedData) -> dict[str, Any]:
    """Return what clients need of the data, ready for JSON: shapes, words, normalisation."""
    return {
        "shape": list(data.input_shape),
        "outputs": data.outputs,
        "classes": list(data.classes),
        "mean": list(data.mean),
        "std": list(data.std),
        "coding": data.coding,
    }


def fitted(data: FederatedData, facts: Fields) -> FederatedData:
    """`data` with the server's normalisation; `DataError` where it is of another kind."""
    own = facts_of(data)
    for name in ("shape", "outputs", "classes"):
        if own[name] != facts[name]:
            raise DataError(
                f"This data does not fit the server's: {name} is {own[name]}, there {facts[name]}."
            )
    return replace(data, mean=tuple(facts["mean"]), std=tuple(facts["std"]))


def _checked(fields: Fields) -> Fields:
    if "error" in fields:
        raise DataError(f"A client could not go on; {fields['error']}")
    return fields
