import dataclasses

import pytest
import torch
from made_federated import made_data

from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress
from semsim.layer_graph import count_parameters
from semsim.systems.federated.data import of_table
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.rounds import (
    Server,
    make_clients,
    measured,
    plain_loss,
    train,
    with_weights,
)
from semsim.systems.federated.settings import FederatedSettings, Pbpfl
from semsim.systems.federated.transport import Message, as_numbers, unpack, unpack_keys


def settings(**changes):
    usual = {"clients": 3, "rounds": 20, "batch_size": 4, "lr": 0.05}
    return FederatedSettings(**{**usual, **changes})


def furthest(one, other):
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.mark.parametrize(
    ("network", "masks"),
    [
        ("mlp-3", Pbpfl()),
        ("mlp-5", Pbpfl(noise_scope="round", zero_sum=True)),
        ("lenet", Pbpfl()),
        ("lenet-avg", Pbpfl()),
    ],
)
def test_pbpfl_trains_the_weights_of_fedavg(network, masks):
    data = made_data()
    plain = train(settings(network=network), data)
    masked = train(settings(network=network, scheme="pbpfl", masks=masks), data)
    assert furthest(plain.model, masked.model) <= 1e-9  # in every parameter, after 20 rounds
    assert plain.curves[-1].loss < 0.9 * plain.curves[0].loss
    assert masked.curves[-1].loss == pytest.approx(plain.curves[-1].loss, abs=1e-9)


@pytest.mark.parametrize("network", ["resnet20", "resnet20-add"])
def test_residual_networks_train_the_same_too(network):
    data = made_data(count=6)
    few = settings(network=network, rounds=2, clients=2, batch_size=1, lr=0.01)
    plain = train(few, data)
    masked = train(dataclasses.replace(few, scheme="pbpfl"), data)
    assert furthest(plain.model, masked.model) <= 1e-9


def test_a_table_trains_the_same_too():
    data = of_table("breast-cancer")
    plain = train(settings(batch_size=32), data)
    masked = train(settings(batch_size=32, scheme="pbpfl"), data)
    assert furthest(plain.model, masked.model) <= 1e-9
    assert masked.curves[-1].accuracy is None
    assert masked.curves[-1].squared_error < masked.curves[0].squared_error


def test_clients_get_a_model_that_predicts_the_same_with_other_weights():
    data = made_data()
    run = train(settings(scheme="pbpfl", rounds=5), data)
    inputs = data.test.inputs
    assert torch.allclose(run.released(inputs), run.model(inputs), rtol=1e-12, atol=1e-12)
    assert furthest(run.released, run.model) > 0.01


def test_one_client_is_plain_descent():
    data = made_data()
    run = train(settings(clients=1, rounds=1, batch_size=24, evaluate_every=1), data)
    start = train(settings(clients=1, rounds=1, batch_size=24, lr=1e-300), data).model
    loss = (start(data.train.inputs) - data.train.targets).square().sum(1).mean() / 2
    for before, after, slope in zip(
        start.parameters(),
        run.model.parameters(),
        torch.autograd.grad(loss, tuple(start.parameters())),
        strict=True,
    ):
        assert torch.allclose(after, before - 0.05 * slope, rtol=1e-12, atol=1e-14)


def test_clients_count_by_how_many_examples_they_have():
    data = made_data(count=23)  # 12 and 11
    joint = train(settings(clients=1, rounds=1, batch_size=23), data)
    apart = train(settings(clients=2, rounds=1, batch_size=23), data)
    assert furthest(joint.model, apart.model) <= 1e-12


def test_local_steps_are_averaged_as_weights():
    data = made_data()
    one = settings(clients=1, batch_size=6)
    many = train(dataclasses.replace(one, rounds=2, local_steps=4), data)
    few = train(dataclasses.replace(one, rounds=8), data)
    assert furthest(many.model, few.model) <= 1e-12
    two = dataclasses.replace(one, clients=2, rounds=2, local_steps=4)
    assert furthest(train(two, data).model, few.model) > 1e-6


def test_cross_entropy_trains_too():
    run = train(settings(loss="cross-entropy", lr=0.1), made_data())
    assert run.curves[-1].loss < 0.9 * run.curves[0].loss


def test_bytes_and_numbers_are_those_of_the_messages():
    data = made_data()
    messages = []
    run = train(settings(scheme="pbpfl", rounds=2), data, tap=messages.append)
    assert len(messages) == 2 * 3 * 2
    sizes = {
        kind: sum(len(m.payload) for m in messages if m.kind == kind)
        for kind in ("model", "update")
    }
    assert (run.traffic.bytes_down, run.traffic.bytes_up) == (sizes["model"], sizes["update"])
    weights = count_parameters(run.model)
    last = 50 * 3 + 3  # Ψ does not depend on the last layer
    assert run.traffic.numbers_down == weights + 3
    assert run.traffic.numbers_up == 3 * weights - last
    assert sizes["update"] > 8 * run.traffic.numbers_up * 6  # float64, six updates, headers
    assert run.messages == tuple(m for m in messages if m.round == 1)


def test_the_server_of_zero_sum_masks_sees_public_keys_and_sums_alone():
    """All that the server ever gets is the transcript; equal settings do not repeat it."""
    data, masks = made_data(), Pbpfl(noise_scope="round", zero_sum=True)
    runs, told = [], []
    for _ in range(2):
        heard: list[Message] = []
        told.append(heard)
        runs.append(train(settings(scheme="pbpfl", rounds=2, masks=masks), data, tap=heard.append))
    keys = [[m.payload for m in heard if m.kind == "key"] for heard in told]
    assert [len(unpack_keys(key)[0]) for key in keys[0]] == [32] * 3
    kinds = [message.kind for message in told[0]]
    assert kinds[:6] == ["key"] * 3 + ["keys"] * 3
    assert sorted(set(kinds[6:])) == ["model", "update"]
    assert not set(keys[0]) & set(keys[1])
    updates = [{m.payload for m in heard if m.kind == "update"} for heard in told]
    assert not updates[0] & updates[1]  # other masks
    assert furthest(runs[0].model, runs[1].model) == 0  # which leave nothing behind


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_a_point_of_the_curve_asks_the_network_once(loss):
    data, settings = made_data(side=8), FederatedSettings(loss=loss)
    network, asked = fresh_network(settings, data), []
    network.register_forward_hook(lambda *_: asked.append(1))
    point = measured(network, data.test, settings, 0)
    assert len(asked) == 1
    expected = plain_loss(network, data.test, settings).item()
    assert point.loss == pytest.approx(expected, rel=1e-12)


def test_costs_are_told_apart():
    costs = train(settings(scheme="pbpfl", rounds=2), made_data()).costs
    assert min(costs.perturb, costs.forward, costs.backward, costs.update) > 0


def test_the_same_seed_gives_the_same_run_whatever_the_global_one_is():
    data = made_data()
    torch.manual_seed(1)
    one = train(settings(scheme="pbpfl", rounds=3), data)
    torch.manual_seed(2)
    same = train(settings(scheme="pbpfl", rounds=3), data)
    other = train(settings(scheme="pbpfl", rounds=3, seed=1), data)
    assert furthest(one.model, same.model) == 0
    assert one.messages == same.messages
    assert furthest(one.model, other.model) > 0.01


def test_progress_reaches_its_total_and_carries_the_curve():
    told: list[Progress] = []
    run = train(settings(rounds=5, evaluate_every=2), made_data(), report=told.append)
    assert [p.done for p in told] == [1, 2, 3, 4, 5]
    assert all(p.total == 5 for p in told)
    assert [point.round for point in run.curves] == [0, 2, 4, 5]
    assert told[3].values["loss"] == run.curves[2].loss
    assert told[2].values == {}


def test_a_training_that_diverges_says_so():
    with pytest.raises(SettingsError, match="smaller lr than 1e\\+06"):
        train(settings(lr=1e6, network="lenet"), made_data())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"scheme": "secret"}, "scheme must be fedavg or pbpfl"),
        ({"clients": 0}, "clients must be at least 1"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"scheme": "pbpfl", "loss": "cross-entropy"}, "quadratic loss only"),
        ({"scheme": "pbpfl", "local_steps": 2}, "one local step"),
        (
            {
                "scheme": "pbpfl",
                "clients": 1,
                "masks": Pbpfl(noise_scope="round", zero_sum=True),
            },
            "2 clients or more",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong, reason):
    with pytest.raises(SettingsError, match=reason):
        settings(**wrong)


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
