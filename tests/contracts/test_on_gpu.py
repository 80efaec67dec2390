"""What a GPU computes is what a CPU computes. Skipped where there is no CUDA."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from contracts.test_attacks import chain, picture, pooled, quick, seeded
from contracts.test_metrics import RUNNABLE, pairs
from contracts.test_targets import model
from learning_toy import toy_labels
from made_campaign import one_thread_cluster, toy_campaign
from made_weights import MADE, make_checkpoints

from semsim.attacks import ATTACKS, run_many
from semsim.attacks.descent.first_order import Descent, descend, slope_of
from semsim.attacks.observe import observe_gradient
from semsim.base.errors import SettingsError
from semsim.base.progress import silent
from semsim.base.registry import build
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.runner import HowToRun, run_plan
from semsim.datasets.symbols import Symbols
from semsim.defences import DEFENCES
from semsim.defences.base import of_one
from semsim.defences.none import NoDefence
from semsim.learning import TrainSettings as LearnSettings
from semsim.learning.train import train
from semsim.metrics import find_metric
from semsim.targets import TARGETS
from semsim.targets.convnet import SmallCNN
from semsim.targets.train import accuracy, train_target
from semsim.targets.train_settings import TrainSettings

GPU = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA")


def seen_of(model, device, seeds=(3, 4)):
    """Observations of pictures on `device`, by a model of the same weights wherever it is."""
    there, rng = model.to(device), torch.Generator()
    return [
        observe_gradient(there, picture(seed).to(device), 1, NoDefence(), rng).observation
        for seed in seeds
    ]


def found_by(attack, model, device):
    seen = seen_of(model, device)
    found = run_many(attack, seen, rngs=seeded(0, 1))
    for one in found:
        if isinstance(one, Exception):
            raise one
    return torch.stack([one.image.cpu() for one in found]), [one.residual for one in found]


@pytest.mark.parametrize("made", [chain, pooled])
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_finds_what_it_finds_on_a_cpu(name, made):
    attack = quick(name)
    try:
        images, residuals = found_by(attack, made(), "cpu")
    except SettingsError:
        pytest.skip("refused by name")
    there, theirs = found_by(attack, made(), GPU)
    assert (there - images).abs().mean() < 1e-2
    assert theirs == pytest.approx(residuals, rel=0.02, abs=1e-4)


def bowl(unknown):
    return (unknown - 0.25).square().flatten(1).sum(1)


def test_an_image_that_diverges_on_a_gpu_names_its_own_step():
    def breaks(unknown):
        gone = torch.tensor([0.0, 0.3], device=GPU) > unknown.flatten(1).mean(1)
        return torch.where(gone, torch.nan, bowl(unknown))

    start = torch.full((2, 3, 4, 4), 0.9, device=GPU)
    told = Descent(steps=40, lr=0.1, signed=True, schedule="constant")
    found = descend(partial(slope_of, breaks), start, descent=told, keep=None, report=silent)
    assert found.failures[0] is None
    assert "at step 8 of 40" in found.failures[1]


@pytest.mark.parametrize("name", DEFENCES)
def test_a_defence_does_there_what_it_does_on_a_cpu(name):
    defence = build(DEFENCES, name)
    gradients = (torch.linspace(-1, 1, 12).view(4, 3), torch.ones(4))
    here, there = (
        of_one(
            defence,
            [one.to(place) for one in gradients],
            torch.Generator().manual_seed(1),
            "attack",
        )
        for place in ("cpu", GPU)
    )
    for one, other in zip(here, there, strict=True):
        torch.testing.assert_close(other.cpu(), one)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return make_checkpoints(tmp_path_factory.mktemp("weights"), MADE)


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_metric_says_there_what_it_says_on_a_cpu(name, weights):
    there = replace(weights, device=GPU)
    values = [find_metric(name).prepare(one)(pairs(0.5, name)).values for one in (weights, there)]
    assert values[1] == pytest.approx(values[0], rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_target_learns_there(mixed):
    data = Symbols(train_per_class=4, test_per_class=1)("train").pick(range(20))
    settings = TrainSettings(epochs=12, lr=0.05, batch_size=10, mixed_precision=mixed)
    device = torch.device(GPU)
    untrained = train_target(SmallCNN(width=8), data, NoDefence(), replace(settings, epochs=0))
    model = train_target(SmallCNN(width=8), data, NoDefence(), settings, device=device)
    assert accuracy(model, data) > accuracy(untrained, data) + 0.1


@pytest.mark.parametrize("mixed", [False, True])
def test_a_semsim_learns_there(mixed, tmp_path):
    settings = LearnSettings(
        backbone="lenet",
        lr=0.005,
        batch_size=16,
        epochs=6,
        triplets_per_original=6,
        device=GPU,
        mixed_precision=mixed,
    )
    last = train(toy_labels(tmp_path, originals=24), settings).records[-1]
    assert last.validation_accuracy > 0.9


def test_a_campaign_there_is_whole(tmp_path):
    plan = plan_of(toy_campaign())
    with one_thread_cluster() as cluster, cluster.get_client() as client:
        result = run_plan(plan, tmp_path, client, HowToRun(device=GPU))
    assert (result["n_ok"], result["n_failed"]) == (6, 0)


@pytest.mark.parametrize("name", TARGETS)
def test_a_network_answers_there_as_on_a_cpu_and_is_attacked_there(name):
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    target = model(name).eval()
    with torch.no_grad():
        here, there = target(images), target.to(GPU)(images.to(GPU)).cpu()
    np.testing.assert_allclose(there, here, rtol=1e-2, atol=1e-3)
    rng = torch.Generator()
    seen = [
        observe_gradient(target, image.to(GPU), 1, NoDefence(), rng).observation for image in images
    ]
    for one in run_many(replace(quick("invgrad"), steps=6), seen, rngs=seeded(0, 1)):
        assert torch.isfinite(one.image).all()
