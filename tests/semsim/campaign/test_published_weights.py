"""The whole chain on weights others trained: observe, attack, reconstruction set, score.

The adapter for the published CIFAR-10 ResNet20 is here; the product has none.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from semsim.base.registry import Plugin
from semsim.base.sets.reader import read_set
from semsim.campaign.work import attack_images
from semsim.datasets.folder import Folder
from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_folders, score_sets
from semsim.sets.image import set_images
from semsim.sets.writer import write_set
from semsim.targets.model import TargetModel
from semsim.targets.train import accuracy

SHARED = Path(__file__).resolve().parents[4] / "shared/data"
WEIGHTS = SHARED / "weights/resnet20-cifar10-12fca82f.th"
IMAGES = SHARED / "cifar10_sample/test"


class Block(nn.Module):
    """Its shortcut has no weights: every other pixel, and zeros for the new channels."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.more = stride, (outputs - inputs) // 2

    def forward(self, x):
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        short = x[:, :, :: self.stride, :: self.stride]
        return F.relu(inner + F.pad(short, (0, 0, 0, 0, self.more, self.more)))


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*(Block(16, 16, 1) for _ in range(3)))
        self.layer2 = nn.Sequential(Block(16, 32, 2), *(Block(32, 32, 1) for _ in range(2)))
        self.layer3 = nn.Sequential(Block(32, 64, 2), *(Block(64, 64, 1) for _ in range(2)))

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return x.mean(dim=(2, 3))


@dataclass(frozen=True, kw_only=True)
class PublishedResNet20:
    def build(self, channels, size):
        return Body(), 64


@pytest.fixture(scope="module")
def images():
    if not WEIGHTS.is_file() or not IMAGES.is_dir():
        pytest.skip(f"no published weights and images at {SHARED}")
    return Folder(root=str(IMAGES), test_share=1.0)("test")


@pytest.fixture(scope="module")
def model(images):
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # what they were trained with
    model = TargetModel(PublishedResNet20(), images.classes, mean=mean, std=std, size=(32, 32))
    stored = torch.load(WEIGHTS, map_location="cpu", weights_only=True)["state_dict"]
    names = {name: name.removeprefix("module.") for name in stored}
    renamed = {
        to.replace("linear.", "head.") if to.startswith("linear.") else f"body.{to}": stored[name]
        for name, to in names.items()
    }
    model.load_state_dict({**renamed, "mean": model.mean, "std": model.std}, strict=True)
    return model.eval()


def test_the_adapter_reads_the_weights_as_they_are_meant(model, images):
    # Published: 91.7% on all of CIFAR-10; with a wrong shortcut or scale it is far less.
    assert accuracy(model, images) > 0.8


def test_observed_attacked_written_and_scored(model, images, tmp_path):
    two = images.pick([0, len(images) - 1])
    attack = Plugin(name="invgrad", settings={"steps": 12, "start": "grey"})
    results = attack_images(model, two, Plugin(name="none"), attack, seeds=[0, 1])
    assert all(one.ok and not one.worse_than_grey for one in results)
    run = {
        "model": "resnet20/published",
        "dataset": {"name": images.dataset},
        "attack": {"name": "invgrad", "settings": dict(attack.settings)},
    }
    write_set(tmp_path / "set", run, set_images(two, results))
    assert (read_set(tmp_path / "set").manifest["status"] == "ok").all()
    resources = Resources(checkpoints=tmp_path / "checkpoints", classifiers=())
    sets = pair_sets_of_folders([tmp_path / "set"])
    scores = score_sets(sets, ["mse", "psnr"], resources, tmp_path / "scores").scores
    by_image = scores.pivot(index="image_id", columns="metric", values="value")
    assert set(by_image.index) == set(two.ids)
    for image_id, original, found in zip(two.ids, two.images, results, strict=True):
        picture = torch.from_numpy(found.picture).permute(2, 0, 1) / 255
        expected = (picture - original).square().mean().item()
        assert by_image.loc[image_id, "mse"] == pytest.approx(expected, rel=1e-4)
