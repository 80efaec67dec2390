import pytest
import torch
from made_federated import made_data

from semsim.defences.pbpfl_settings import Pbpfl
from semsim.errors import DataError
from semsim.federated.clients import with_weights, zero_sum_masks
from semsim.federated.networks import fresh_network
from semsim.federated.rounds import make_clients
from semsim.federated.server import Server
from semsim.federated.settings import FederatedSettings
from semsim.federated.transport import unpack

HIDDEN = FederatedSettings(
    scheme="pbpfl", clients=3, batch_size=4, masks=Pbpfl(noise_scope="round", zero_sum=True)
)


def test_zero_sum_masks_cancel_and_hide():
    like = {"g": torch.zeros(200, dtype=torch.float64), "beta": torch.zeros(3, 4)}
    masks = [zero_sum_masks(like, client, 1, HIDDEN) for client in range(3)]
    total = sum(mask["g"] for mask in masks)
    assert total.abs().max() < 1e-10  # float64 sums of numbers of size 1e4
    # Two pairs' masks of standard deviation 1e4 each, 200 draws: within 20 %.
    assert masks[0]["g"].std().item() == pytest.approx(1e4 * 2**0.5, rel=0.2)
    assert not torch.equal(masks[0]["g"], zero_sum_masks(like, 0, 2, HIDDEN)["g"])


def test_one_hidden_update_is_mostly_mask():
    data = made_data()
    server = Server(HIDDEN, fresh_network(HIDDEN, data), [1 / 3] * 3)
    model = server.open_round(1)[0]
    client = make_clients(HIDDEN, data)[0]
    hidden = unpack(client.answer(model, 1).payload)
    mask = zero_sum_masks(hidden, 0, 1, HIDDEN)
    name = "g/layers.fc1.weight"
    real = hidden[name] - mask[name]
    assert real.abs().max() > 0
    assert real.norm() < 0.01 * hidden[name].norm()


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
