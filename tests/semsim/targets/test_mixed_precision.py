"""bfloat16 in a training: what it changes, and that it is refused where it changes too much."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.datasets.symbols import Symbols
from semsim.defences.dp_sgd import DpSgd
from semsim.defences.gradient_noise import GradientNoise
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.targets.mixed_precision import COSINE, LOSS_APART, Deviation, check_mixed, deviation
from semsim.targets.model import TargetModel
from semsim.targets.train import Training, accuracy, carry_out
from semsim.targets.train_settings import TrainSettings

SETTINGS = TrainSettings(epochs=12, lr=0.05, batch_size=10, mixed_precision=True)


def few(split: str):
    data = Symbols(train_per_class=12, test_per_class=4)(split)
    return data.pick([i for i, label in enumerate(data.labels.tolist()) if label < 5])


def training(**changes) -> Training:
    usual = {
        "architecture": SmallCNN(width=8),
        "data": few("train"),
        "defence": NoDefence(),
        "settings": SETTINGS,
        "device": "cpu",
    }
    return Training(**{**usual, **changes})


class Cancelling(nn.Module):
    """Logits that are small differences of large numbers: bfloat16 loses them."""

    def __init__(self) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(20 * torch.randn(3, 192, generator=rng))
        self.other = self.weight.detach() + 0.02 * torch.randn(3, 192, generator=rng)

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        return flat @ self.weight.T - flat @ self.other.T


def batch(model: nn.Module) -> Deviation:
    rng = torch.Generator().manual_seed(0)
    return deviation(model, torch.rand(8, 3, 8, 8, generator=rng), torch.arange(8) % 3)


def test_a_small_network_hardly_changes_and_stays_as_it_is():
    torch.manual_seed(0)
    model = TargetModel(SmallCNN(width=4), tuple("abc"), mean=[0.5] * 3, std=[0.2] * 3, size=(8, 8))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = batch(model.train())
    assert 0 < found.loss <= LOSS_APART  # not the same computation twice
    assert COSINE <= found.cosine < 1
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name  # the counts of batch norm, too


def test_a_network_that_bfloat16_changes_is_refused_with_both_numbers():
    assert not batch(Cancelling()).small
    with pytest.raises(SettingsError, match=r"off by .*cosine.*Train without"):
        check_mixed(Cancelling(), torch.rand(8, 3, 8, 8), torch.arange(8) % 3)
    assert not Deviation(loss=float("nan"), cosine=float("nan")).small
    assert not Deviation(loss=0.0, cosine=COSINE - 1e-3).small
    assert not Deviation(loss=LOSS_APART + 1e-3, cosine=1.0).small


def test_a_training_in_bfloat16_learns_and_says_what_it_changes():
    notes = []
    model = carry_out(training(), lambda progress: notes.append(progress.note))
    assert notes[0].startswith("bfloat16: the loss is off by ")
    assert {value.dtype for value in model.parameters()} == {torch.float32}
    assert accuracy(model, few("test")) > 0.5  # chance is 0.2
    other = carry_out(training(settings=replace(SETTINGS, mixed_precision=False)))
    apart = [
        not torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True)
    ]
    assert any(apart)  # it was really computed otherwise


def test_it_goes_with_a_defence_of_gradients_and_not_with_each_images_gradient():
    few_steps = replace(SETTINGS, epochs=1)
    carry_out(training(defence=GradientNoise(std=1e-3), settings=few_steps))
    with pytest.raises(SettingsError, match="DP-SGD"):
        carry_out(training(defence=DpSgd(), settings=few_steps))
