from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semsim.base.errors import SettingsError, StopRequestedError, WeightsError
from semsim.systems.split.defences import DropoutSingle, Ensembler, Undefended
from semsim.systems.split.networks import ResNet18, SmallResNet
from semsim.systems.split.training import TrainingStage, fit, freeze, read_tensors

STAGE = TrainingStage(name="net", epochs=3, lr=1e-2, batch_size=32, seed=0)


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(768, 10))


def train(model, data, stage, report=lambda progress: None):
    return fit(model, lambda x, y: F.cross_entropy(model(x), y), data, stage, report)


def stop_after(epoch):
    def report(progress):
        if progress.done == epoch:
            raise StopRequestedError("enough")

    return report


def test_it_learns(digits):
    model = make()
    first = train(model, digits[0], replace(STAGE, epochs=1))
    assert train(model, digits[0], replace(STAGE, epochs=20)) < first / 2


def test_an_interrupted_training_ends_in_the_same_weights(digits, tmp_path):
    whole, broken, resumed = make(), make(), make()
    train(whole, digits[0], STAGE)
    stage = replace(STAGE, checkpoint=tmp_path / "net.part")
    with pytest.raises(StopRequestedError):
        train(broken, digits[0], stage, stop_after(2))
    epochs = []
    train(resumed, digits[0], stage, lambda progress: epochs.append(progress.done))
    assert epochs == [3]
    assert torch.equal(whole[2].weight, resumed[2].weight)


def test_what_is_frozen_stays(digits):
    model = nn.Sequential(freeze(nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2))), make())
    model[1][2] = nn.Linear(2 * 14 * 14, 10)
    kept = {name: value.clone() for name, value in model[0].state_dict().items()}
    train(model, digits[0], STAGE)
    assert all(torch.equal(value, kept[n]) for n, value in model[0].state_dict().items())


def test_a_stage_of_another_training_is_refused(digits, tmp_path):
    stage = replace(STAGE, checkpoint=tmp_path / "net.part")
    train(make(), digits[0], stage)
    with pytest.raises(SettingsError, match="another training"):
        train(make(), digits[0], replace(stage, lr=0.1))


def test_a_training_that_diverges_says_so(digits):
    with pytest.raises(SettingsError, match="diverged"):
        fit(make(), lambda x, y: torch.tensor(float("nan"), requires_grad=True), digits[0], STAGE)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "net.part").write_bytes(b"no tensors")
    with pytest.raises(WeightsError, match=r"net\.part"):
        read_tensors(tmp_path / "net.part")


@pytest.mark.parametrize("defence", [DropoutSingle(), Ensembler(bodies=2, selected=1)])
def test_a_defence_that_was_stopped_goes_on_where_it_was(defence, bench, tmp_path):
    whole = defence(bench)
    kept = replace(bench, folder=tmp_path)
    told = []

    def report(progress):
        told.append(progress)
        if len(told) == 1:
            raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        defence(kept, report)
    resumed = defence(kept).state_dict()
    assert all(torch.equal(value, resumed[name]) for name, value in whole.state_dict().items())


@pytest.mark.parametrize(
    ("network", "batches"), [(ResNet18(width=2), 1), (SmallResNet(width=4), 2)]
)
def test_a_last_image_that_is_alone_is_learned_from(network, batches, bench, digits):
    """33 images in batches of 32. ResNet-18 makes maps of one pixel of 16×16, on which batch norm
    cannot train one image: it goes with those before it. Trying that leaves no trace.
    """
    system = Undefended()(replace(bench, network=network, data=digits[0].pick(range(33))))
    norms = [one for one in system.modules() if isinstance(one, nn.BatchNorm2d)]
    assert {int(one.num_batches_tracked) for one in norms} == {batches}


def test_images_that_batch_norm_only_meets_alone_are_refused(bench, digits):
    for count, batch in ((1, 32), (3, 1)):
        settings = replace(bench.settings, batch_size=batch)
        alone = replace(bench, network=ResNet18(width=2), data=digits[0].pick(range(count)))
        with pytest.raises(SettingsError, match="take 2 images or more"):
            Undefended()(replace(alone, settings=settings))
