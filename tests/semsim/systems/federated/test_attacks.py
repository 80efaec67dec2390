"""The eavesdropper's algebra: what masks do not hide."""

import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import FederatedData, FederatedExamples
from semsim.systems.federated.networks import drawn_network
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import FederatedSettings, Pbpfl
from semsim.systems.federated.views import (
    canonical_scales,
    canonicalised,
    denoised_outputs,
    estimated_gamma,
    first_layer_input,
    guessed_gamma,
    network_of,
    observe,
    received_noise,
    sent,
    stripped,
)

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
    loss = torch.nn.functional.cross_entropy(found.model(image), torch.tensor([seen.label]))
    for here, wanted in zip(
        torch.autograd.grad(loss, tuple(found.model.parameters())), found.gradients, strict=True
    ):
        torch.testing.assert_close(here, wanted, rtol=1e-8, atol=1e-10)


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
    loss = torch.nn.functional.cross_entropy(found.model(image), torch.tensor([seen.label]))
    for here, wanted in zip(
        torch.autograd.grad(loss, tuple(found.model.parameters())), found.gradients, strict=True
    ):
        torch.testing.assert_close(here, wanted, rtol=1e-8, atol=1e-10)


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
