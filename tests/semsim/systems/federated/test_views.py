import dataclasses

import pytest
import torch
from made_federated import made_data

from semsim.attacks import ATTACKS
from semsim.attacks.fast_gradients import gradient_of_each
from semsim.base.errors import DataError, SettingsError
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import FederatedData, FederatedExamples, of_table
from semsim.systems.federated.networks import drawn_network
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import FederatedSettings, Pbpfl
from semsim.systems.federated.views import (
    VIEWS,
    canonical_scales,
    canonicalised,
    denoised_outputs,
    estimated_gamma,
    first_layer_input,
    guessed_gamma,
    network_of,
    observe,
    received,
    received_noise,
    recovered,
    sent,
    stripped,
)

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


def check_gradients(found, image, label):
    """Check that the observation is the gradient of its model on the image."""
    loss = torch.nn.functional.cross_entropy(found.model(image), torch.tensor([label]))
    for here, wanted in zip(
        torch.autograd.grad(loss, tuple(found.model.parameters())), found.gradients, strict=True
    ):
        torch.testing.assert_close(here, wanted, rtol=1e-8, atol=1e-10)


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


NETWORKS = ["mlp-3", "lenet", "resnet20", "resnet20-add"]
DOUBLE = torch.float64


def data(count: int = 12, side: int = 8, classes: int = 3) -> FederatedData:
    rng = torch.Generator().manual_seed(5)
    images = torch.rand(count, 3, side, side, generator=rng)
    labels = torch.arange(count) % classes
    targets = torch.nn.functional.one_hot(labels, classes).double()
    split = FederatedExamples(inputs=images, targets=targets, labels=labels)
    return FederatedData(
        name="made",
        train=split,
        test=split,
        mean=(0.5, 0.4, 0.6),
        std=(0.3, 0.2, 0.25),
        classes=("a", "b", "c"),
    )


def settings(network: str, **given: object) -> FederatedSettings:
    base = {"scheme": "pbpfl", "clients": 2, "rounds": 1, "batch_size": 1, "lr": 0.01}
    return FederatedSettings(network=network, **{**base, **given})  # type: ignore[arg-type]


def masks_of(network, count: int):
    rngs = [torch.Generator().manual_seed(seed) for seed in range(count)]
    return [pbpfl.release(network, Pbpfl(r_low=0.1, r_high=9.0), rng) for rng in rngs]


@pytest.mark.parametrize("name", NETWORKS)
def test_all_multiplicative_masks_have_one_canonical_form(name):
    network = drawn_network(name, data(), DOUBLE, seed=3)
    forms = []
    for masked in masks_of(network, 2):
        scales = canonical_scales(masked)
        forms.append({n: p.detach() * scales[n] for n, p in masked.named_parameters()})
    for parameter in forms[0]:
        torch.testing.assert_close(forms[0][parameter], forms[1][parameter], rtol=1e-10, atol=0)
    first = next(weight for weight in forms[0].values() if weight.dim() > 1)
    torch.testing.assert_close(first.flatten(1).norm(dim=1), torch.ones(len(first), dtype=DOUBLE))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_canonicalised_observation_is_true_of_the_same_function(name):
    run = train(settings(name), data())
    seen = observe(run, "up_and_downlink", dtype=DOUBLE)
    found = canonicalised(seen)
    image = run.data.train.pick(run.kept[0].members[0]).inputs.to(DOUBLE)
    torch.testing.assert_close(found.model(image), seen.model(image), rtol=1e-9, atol=1e-9)
    check_gradients(found, image, seen.label)


def test_stripped_with_the_true_gamma_the_eavesdropper_has_what_the_server_has():
    run = train(settings("lenet"), data())
    upload = pbpfl.ClientUpload.of(sent(run, 0, 1))
    eavesdropped = stripped(
        observe(run, "up_and_downlink", dtype=DOUBLE),
        upload,
        received_noise(run, 0, 1),
        gamma=run.kept[0].keys[0].gamma,
    )
    mine, servers = canonicalised(eavesdropped), canonicalised(observe(run, "server", dtype=DOUBLE))
    for a, b in zip(mine.model.parameters(), servers.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    for a, b in zip(mine.gradients, servers.gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)


def test_stripped_with_a_wrong_gamma_network_and_gradient_still_agree():
    run = train(settings("mlp-3"), data())
    seen = observe(run, "up_and_downlink", dtype=DOUBLE)
    found = stripped(
        seen, pbpfl.ClientUpload.of(sent(run, 0, 1)), received_noise(run, 0, 1), gamma=0.123
    )
    image = run.data.train.pick(run.kept[0].members[0]).inputs.to(DOUBLE)
    check_gradients(found, image, seen.label)


def test_gamma_shows_in_the_last_layer():
    run = train(settings("lenet"), data())
    seen = observe(run, "up_and_downlink", dtype=DOUBLE)
    found = guessed_gamma(network_of(seen.model), received_noise(run, 0, 1))
    # 64 columns of weights with deviation 0.1/√64, of which the mean's is 0.1/64 by ‖a‖ < 1.8
    assert found == pytest.approx(run.kept[0].keys[0].gamma, abs=0.02)


def test_a_client_learns_gamma_and_with_it_the_true_outputs():
    made = data(count=60)
    network = drawn_network("mlp-3", made, DOUBLE, seed=1)
    rng = torch.Generator().manual_seed(2)
    key, masked = pbpfl.perturb(network, Pbpfl(a_high=10.0), rng)
    gamma = estimated_gamma(masked, made.train)
    assert gamma == pytest.approx(key.gamma, rel=0.05)
    true = network(made.test.inputs).detach()
    exact = denoised_outputs(masked, made.test.inputs, key.gamma)
    torch.testing.assert_close(exact, true, rtol=1e-9, atol=1e-10)
    noisy = masked.network(made.test.inputs).detach()
    near = denoised_outputs(masked, made.test.inputs, gamma)
    assert (near - true).abs().mean() < 0.1 * (noisy - true).abs().mean()


def test_a_biased_linear_start_gives_the_image_away_in_the_upload():
    run = train(settings("mlp-3"), data())
    public = drawn_network("mlp-3", run.data, DOUBLE, seed=99)
    found = first_layer_input(public, pbpfl.under("g", sent(run, 1, 1)))
    truth = run.data.train.pick(run.kept[0].members[1]).inputs[0]
    torch.testing.assert_close(found, truth.to(DOUBLE), rtol=1e-6, atol=1e-6)


def test_a_convolution_has_no_closed_form():
    run = train(settings("lenet"), data())
    with pytest.raises(SettingsError, match="begins with Conv2d"):
        first_layer_input(run.model, pbpfl.under("g", sent(run, 0, 1)))
