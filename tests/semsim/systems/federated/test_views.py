import dataclasses

import pytest
import torch
from made_federated import made_data

from semsim.attacks import ATTACKS
from semsim.attacks.per_sample import gradient_of_each
from semsim.base.errors import DataError, SettingsError
from semsim.systems.federated.data import of_table
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import FederatedSettings, Pbpfl
from semsim.systems.federated.views import VIEWS, observe, received, received_noise, recovered, sent

USUAL = FederatedSettings(network="lenet", clients=3, rounds=2, batch_size=1, keep=(1, 2))
MASKED = dataclasses.replace(USUAL, scheme="pbpfl")
HIDDEN = dataclasses.replace(MASKED, masks=Pbpfl(noise_scope="round", zero_sum=True))


@pytest.fixture(scope="module")
def runs():
    data = made_data()
    return {name: train(s, data) for name, s in (("plain", USUAL), ("masked", MASKED))}


def exact(run, view, **settings):
    return observe(run, view, dtype=torch.float64, **settings)


def gap(run, seen, client=0):
    """How far the observed gradients are from those of the observed model on the true image."""
    kept = run.kept[0]
    image = run.data.train.inputs[list(kept.members[client])]
    found = gradient_of_each(seen.model, image, torch.tensor([seen.label]))
    off = sum((a[0] - b).square().sum() for a, b in zip(found, seen.gradients, strict=True))
    return (off / sum(b.square().sum() for b in seen.gradients)).sqrt().item()


def test_the_server_sees_the_same_with_and_without_masks(runs):
    plain, masked = exact(runs["plain"], "server"), exact(runs["masked"], "server")
    for one, other in zip(plain.gradients, masked.gradients, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)
    weights = zip(plain.model.parameters(), masked.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)
    assert plain.label == masked.label
    assert gap(runs["masked"], masked) < 1e-9


def test_a_listener_on_both_links_holds_a_gradient_of_a_model_he_holds(runs):
    for name in runs:
        assert gap(runs[name], exact(runs[name], "up_and_downlink", client=1), client=1) < 1e-9
    seen = exact(runs["masked"], "up_and_downlink")
    true = exact(runs["masked"], "server")
    assert not torch.allclose(seen.gradients[0], true.gradients[0], rtol=1e-2)


def test_others_hold_a_model_that_does_not_fit_unless_it_is_shared(runs):
    assert gap(runs["masked"], exact(runs["masked"], "uplink")) > 0.1
    assert gap(runs["masked"], exact(runs["masked"], "client")) > 0.1
    assert gap(runs["plain"], exact(runs["plain"], "client")) < 1e-9
    shared = train(dataclasses.replace(MASKED, masks=Pbpfl(noise_scope="round")), made_data())
    assert gap(shared, exact(shared, "client")) < 1e-9


def test_the_guess_of_the_uplink_is_seeded(runs):
    one, same, other = (
        next(iter(exact(runs["masked"], "uplink", guess=guess).model.parameters()))
        for guess in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_zero_sum_masks_leave_the_server_only_the_mean():
    run = train(HIDDEN, made_data())
    plain = train(USUAL, made_data())
    mean = sum(sent(plain, client, 1)["g/layers.fc1.weight"] for client in range(3)) / 3
    for client in range(3):
        found = recovered(run, client, 1)["layers.fc1.weight"]
        assert torch.allclose(found, mean, rtol=1e-9, atol=1e-10)
    assert gap(run, exact(run, "server")) > 0.1
    assert gap(run, exact(run, "up_and_downlink")) > 0.9


@pytest.mark.parametrize("view", VIEWS)
def test_attacks_take_every_view(runs, view):
    attack = ATTACKS["invgrad"](steps=3)
    seen = observe(runs["masked"], view)
    assert seen.gradients[0].dtype == torch.float32
    found = attack(seen, rng=torch.Generator().manual_seed(0))
    assert found.image.shape == (3, 8, 8)


def test_a_listener_on_both_links_gets_the_image_out_of_a_fully_connected_network():
    run = train(dataclasses.replace(MASKED, network="mlp-3"), made_data())
    attack = ATTACKS["invgrad"](steps=150, start="grey", tv=0.0)
    seen = observe(run, "up_and_downlink")
    found = attack(seen, rng=torch.Generator().manual_seed(0))
    private = run.data.train.inputs[run.kept[0].members[0][0]]
    assert (found.image - private).square().mean() < 1e-3  # mid-grey is at 0.05


def test_what_was_sent_can_be_looked_at(runs):
    run = runs["masked"]
    assert received_noise(run, 0, 2).shape == (3,)
    assert received(run, 0, 2)(run.data.test.inputs).shape == (12, 3)
    assert {name.split("/")[0] for name in sent(run, 0, 2)} == {"g", "sigma", "beta"}
    with pytest.raises(DataError, match="Only PBPFL"):
        received_noise(runs["plain"], 0, 1)
    with pytest.raises(DataError, match="No update message of client 0 in round 7"):
        sent(run, 0, 7)


def test_what_cannot_be_seen_is_refused(runs):
    run = runs["masked"]
    with pytest.raises(SettingsError, match="view is one of"):
        observe(run, "moon")
    with pytest.raises(SettingsError, match="Clients are 0 to 2"):
        observe(run, "server", client=3)
    with pytest.raises(DataError, match="kept: 1, 2"):
        observe(run, "server", round_number=5)
    batched = train(dataclasses.replace(USUAL, batch_size=2, rounds=1), made_data())
    with pytest.raises(DataError, match="trained on 2"):
        observe(batched, "server")
    alone = train(dataclasses.replace(USUAL, clients=1, rounds=1), made_data())
    with pytest.raises(SettingsError, match="2 clients or more"):
        observe(alone, "client")
    table = train(FederatedSettings(rounds=1, batch_size=1), of_table("diabetes"))
    with pytest.raises(DataError, match="Only images"):
        observe(table, "server")
