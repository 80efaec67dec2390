"""The server: it masks and sends the model, recovers and sums the updates, and takes the step."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from semsim.defences import pbpfl
from semsim.errors import DataError
from semsim.federated.settings import FederatedSettings, generator
from semsim.federated.transport import pack, unpack
from semsim.federated.zero_sum import summed
from semsim.layer_graph import LayerGraph


class Server:
    """Holds the true weights and, with PBPFL, the keys of the round that is open.

    shares: every client's part of all examples, summing to 1. network is trained in place.
    condition: of the worst recovery so far, see `pbpfl.Recovered`; 1 with FedAvg.
    """

    def __init__(
        self, settings: FederatedSettings, network: LayerGraph, shares: Sequence[float]
    ) -> None:
        self.settings = settings
        self.network = network
        self.shares = tuple(shares)
        self.keys: tuple[pbpfl.Key, ...] = ()
        self.condition = 1.0

    def open_round(self, number: int) -> list[bytes]:
        """What to send to each client in round `number`, from 1."""
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

    def _recovered(self, key: pbpfl.Key, update: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = pbpfl.recover(key, pbpfl.Upload.of(update), self.settings.masks)
        self.condition = max(self.condition, found.condition)
        return found.gradients

    def _masked(self, number: int, client: int) -> tuple[pbpfl.Key, bytes]:
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
