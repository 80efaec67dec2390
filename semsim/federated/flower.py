"""The same server and clients over a real network, by Flower (an optional extra: `flwr`).

Flower only carries bytes here: what is sent, computed and recovered is that of `train`. A server
on one machine calls `serve`, and each of its clients, on other machines, `join`:

    network = serve(settings, data, "0.0.0.0:8080")
    join(settings, data, my_examples, number, "server.example:8080")

In a real training the server's seed has to differ from that of the clients, because masks and
first weights are drawn from it; the clients' seed only decides the order of their mini-batches.
Connections are not encrypted: run it in a network that you trust, or through a tunnel.
"""

import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from semsim.errors import DataError, SettingsError
from semsim.federated.clients import Client
from semsim.federated.data import Examples, FederatedData
from semsim.federated.networks import fresh_network
from semsim.federated.server import Server
from semsim.federated.settings import FederatedSettings
from semsim.layer_graph import LayerGraph
from semsim.progress import Progress, Report, silent

_TENSOR_TYPE = "safetensors"
_PATIENCE = 3600  # seconds in which all clients have to have joined


def is_installed() -> bool:
    """Whether Flower can be imported."""
    return importlib.util.find_spec("flwr") is not None


def serve(
    settings: FederatedSettings,
    data: FederatedData,
    address: str,
    *,
    report: Report = silent,
) -> LayerGraph:
    """Wait at `address` ("host:port") for all clients, train, and return the true network.

    data: only its shapes and normalisation are used. Raises `SettingsError` where Flower is
    missing or zero-sum masks are wanted, `DataError` where a client fails.
    """
    _check(settings)
    common, server_side = _flower("flwr.common"), _flower("flwr.server")
    strategy = _Strategy(settings, data, common, report)
    server_side.start_server(
        server_address=address,
        config=server_side.ServerConfig(num_rounds=settings.rounds),
        strategy=strategy,
    )
    if strategy.server is None or strategy.done < settings.rounds:
        reason = strategy.failure or "a client was lost"
        raise DataError(
            f"The training ended after {strategy.done} of {settings.rounds} rounds: {reason}"
        )
    return strategy.server.network


def join(
    settings: FederatedSettings,
    data: FederatedData,
    examples: Examples,
    number: int,
    address: str,
) -> None:
    """Take part as client `number` (from 0) with `examples` until the server ends the training.

    data: only its shapes and normalisation are used. The first connection is tried for a minute.
    """
    _check(settings)
    common, client_side = _flower("flwr.common"), _flower("flwr.client")
    client = Client(
        number=number,
        examples=examples,
        architecture=fresh_network(settings, data),
        settings=settings,
        share=0.0,  # only zero-sum masks need it
    )
    client_side.start_client(
        server_address=address,
        client=_participant(client, common, client_side),
        insecure=True,
        max_wait_time=60.0,
    )


class _Strategy:
    """Flower's hooks around a `Server`, which starts once all clients have told their sizes."""

    def __init__(
        self,
        settings: FederatedSettings,
        data: FederatedData,
        common: ModuleType,
        report: Report,
    ) -> None:
        self.settings, self.data, self.common, self.report = settings, data, common, report
        self.server: Server | None = None
        self.proxies: list[Any] = []
        self.done = 0
        self.failure = ""

    def initialize_parameters(self, client_manager: Any) -> Any:
        return self.common.Parameters(tensors=[], tensor_type=_TENSOR_TYPE)

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[Any]:
        if self.server is None:
            self._meet(client_manager)
        if self.server is None or self.failure:
            return []
        models = self.server.open_round(server_round)
        return [
            (proxy, self.common.FitIns(self._parameters(model), {"round": server_round}))
            for proxy, model in zip(self.proxies, models, strict=True)
        ]

    def aggregate_fit(
        self, server_round: int, results: Sequence[Any], failures: Sequence[Any]
    ) -> tuple[Any, Mapping[str, Any]]:
        if self.server is None or failures or len(results) != self.settings.clients:
            self.failure = f"round {server_round} failed: {list(failures) or 'no answers'}"
            return None, {}
        ordered = sorted((answer for _, answer in results), key=lambda a: a.metrics["client"])
        self.server.close_round([answer.parameters.tensors[0] for answer in ordered])
        self.done = server_round
        self.report(Progress(server_round, self.settings.rounds, "rounds"))
        return self.common.Parameters(tensors=[], tensor_type=_TENSOR_TYPE), {}

    def configure_evaluate(self, server_round: int, parameters: Any, client_manager: Any) -> list:
        return []

    def aggregate_evaluate(
        self, server_round: int, results: Any, failures: Any
    ) -> tuple[None, Mapping[str, Any]]:
        return None, {}

    def evaluate(self, server_round: int, parameters: Any) -> None:
        return None

    def _meet(self, client_manager: Any) -> None:
        """Learn which connection is which client, and how many examples each has."""
        if not client_manager.wait_for(self.settings.clients, timeout=_PATIENCE):
            self.failure = f"fewer than {self.settings.clients} clients joined"
            return
        ask = self.common.GetPropertiesIns(config={})
        told = {
            proxy: proxy.get_properties(ask, timeout=None, group_id=None).properties
            for proxy in client_manager.all().values()
        }
        ordered = sorted(told, key=lambda proxy: told[proxy]["client"])
        numbers = [told[proxy]["client"] for proxy in ordered]
        if numbers != list(range(self.settings.clients)):
            self.failure = f"clients are numbered from 0 without gaps; these joined: {numbers}"
            return
        counts = [int(told[proxy]["examples"]) for proxy in ordered]
        shares = [count / sum(counts) for count in counts]
        self.proxies = ordered
        self.server = Server(self.settings, fresh_network(self.settings, self.data), shares)

    def _parameters(self, payload: bytes) -> Any:
        return self.common.Parameters(tensors=[payload], tensor_type=_TENSOR_TYPE)


def _participant(client: Client, common: ModuleType, client_side: ModuleType) -> Any:
    """Flower's hooks around a `Client`."""
    good = common.Status(code=common.Code.OK, message="")

    def get_properties(flower_client: Any, ins: Any) -> Any:
        properties = {"client": client.number, "examples": len(client.examples)}
        return common.GetPropertiesRes(status=good, properties=properties)

    def fit(flower_client: Any, ins: Any) -> Any:
        answer = client.answer(ins.parameters.tensors[0], int(ins.config["round"]))
        return common.FitRes(
            status=good,
            parameters=common.Parameters(tensors=[answer.payload], tensor_type=_TENSOR_TYPE),
            num_examples=len(client.examples),
            metrics={"client": client.number},
        )

    # Flower is not there when this file is read, so that its class is extended here.
    hooks = {"get_properties": get_properties, "fit": fit}
    return type("Participant", (client_side.Client,), hooks)()


def _flower(module: str) -> ModuleType:
    if not is_installed():
        raise SettingsError(
            "Training over a network needs Flower, which is not installed. Install `flwr` in an "
            "environment of its own beside this program's requirements; training in one process "
            "needs nothing."
        )
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")  # Flower reports its use otherwise
    return importlib.import_module(module)


def _check(settings: FederatedSettings) -> None:
    if settings.masks.zero_sum:
        raise SettingsError(
            "Zero-sum masks need clients that agree on secrets, which is not done over Flower. "
            "Take zero_sum=False, or train in one process."
        )
