import dataclasses

import pytest
import torch
from made_federated import made_data

from semsim.base.errors import DataError
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.rounds import Server, make_clients, with_weights
from semsim.systems.federated.settings import FederatedSettings, Pbpfl
from semsim.systems.federated.transport import as_numbers, unpack

HIDDEN = FederatedSettings(
    scheme="pbpfl", clients=3, batch_size=4, masks=Pbpfl(noise_scope="round", zero_sum=True)
)


def test_one_hidden_update_is_mostly_mask():
    data = made_data()
    server = Server(HIDDEN, fresh_network(HIDDEN, data), [1 / 3] * 3)
    model = server.open_round(1)[0]
    client, *others = make_clients(HIDDEN, data)
    bare = dataclasses.replace(HIDDEN, masks=Pbpfl(noise_scope="round"))
    real = unpack(make_clients(bare, data)[0].answer(model, 1).payload)
    with pytest.raises(DataError, match="agree on their secrets"):
        client.answer(model, 1)
    client.agreement.agree([one.agreement.public for one in (client, *others)])
    hidden = unpack(client.answer(model, 1).payload)
    name = "g/layers.fc1.weight"
    assert real[name].abs().max() > 0
    assert hidden[name].shape == real[name].shape
    seen = as_numbers(hidden, HIDDEN.masks.zero_sum_digits, torch.float64)[name]
    assert real[name].norm() < 1e-4 * seen.norm()


def test_a_client_walks_through_its_own_examples():
    client = make_clients(FederatedSettings(clients=3, batch_size=3), made_data())[1]
    epoch = [place for step in (1, 2, 3) for place in client.members(step)]
    assert sorted(epoch) == list(range(8))
    assert [place for step in (4, 5, 6) for place in client.members(step)] != epoch


def test_a_message_of_another_network_is_refused():
    network = fresh_network(FederatedSettings(), made_data())
    with pytest.raises(DataError, match="does not fit"):
        with_weights(network, {})


def test_a_round_needs_every_client():
    server = Server(HIDDEN, fresh_network(HIDDEN, made_data()), [1 / 3] * 3)
    server.open_round(1)
    with pytest.raises(DataError, match="all 3 clients; got 1"):
        server.close_round([b""])


def test_the_noise_scope_decides_who_gets_the_same_model():
    data = made_data()
    for scope, same in (("round", True), ("client", False)):
        settings = FederatedSettings(scheme="pbpfl", masks=Pbpfl(noise_scope=scope))
        server = Server(settings, fresh_network(settings, data), [0.5, 0.5])
        first, second = server.open_round(1)
        assert (first == second) is same
        assert server.open_round(2)[0] != first
