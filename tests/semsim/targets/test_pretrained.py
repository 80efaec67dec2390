import re
from collections import defaultdict

import pytest
import torch
from torchvision import models

from semsim.base.errors import SettingsError, UnknownNameError, WeightsError
from semsim.defences.none import NoDefence
from semsim.targets import pretrained
from semsim.targets.model import load_target, save_target
from semsim.targets.pretrained import Torchvision
from semsim.targets.train import train_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages


def test_the_last_linear_layer_is_left_out_and_nothing_else():
    body, features = Torchvision(model="mobilenet_v3_small").build(3, (32, 32))
    theirs = models.mobilenet_v3_small(weights=None)
    assert features == theirs.classifier[-1].in_features
    names = {name for name, _ in theirs.named_parameters()}
    kept = {name for name, _ in body.named_parameters()}
    assert names - kept == {"classifier.3.weight", "classifier.3.bias"}
    assert kept < names
    assert not any(getattr(module, "inplace", False) for module in body.modules())


def test_a_vision_transformer_takes_the_size_of_the_images():
    body, features = Torchvision(model="vit_b_32").build(3, (64, 64))
    assert features == 768
    assert body.encoder.pos_embedding.shape == (1, 5, 768)  # 2×2 patches and the class


@pytest.mark.parametrize(
    ("model", "channels", "error", "says"),
    [
        ("resnet19", 3, UnknownNameError, "resnet18"),
        ("squeezenet1_0", 3, SettingsError, "does not end in a linear layer"),
        ("inception_v3", 3, SettingsError, "cannot take 32×32"),
        ("resnet18", 1, SettingsError, "3 channels"),
    ],
)
def test_what_does_not_fit_is_refused(model, channels, error, says):
    with pytest.raises(error, match=says):
        Torchvision(model=model).build(channels, (32, 32))


@pytest.fixture
def checkpoints(tmp_path, monkeypatch):
    """A folder of weight files, with those of another start under torchvision's own name."""
    monkeypatch.setattr(pretrained, "CHECKPOINTS", tmp_path)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        state = models.shufflenet_v2_x0_5(weights=None).state_dict()
    name = models.ShuffleNet_V2_X0_5_Weights.DEFAULT.url.rpartition("/")[2]
    torch.save(state, tmp_path / name)
    return state


def test_named_weights_are_taken_from_the_checkpoints_folder(checkpoints):
    architecture = Torchvision(model="shufflenet_v2_x0_5", weights="DEFAULT")
    body, _ = architecture.build(3, (32, 32))
    first = "conv1.0.weight"
    assert not torch.equal(body.state_dict()[first], checkpoints[first])
    architecture.start(body)
    for name, value in body.state_dict().items():
        assert torch.equal(value, checkpoints[name])
    assert not any(value.isnan().any() for value in body.state_dict().values())


def test_training_starts_from_them_and_the_result_needs_them_no_more(checkpoints, tmp_path):
    data = LabelledImages(
        dataset="noise",
        classes=("a", "b"),
        ids=("0", "1"),
        images=torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)),
        labels=torch.tensor([0, 1]),
    )
    architecture = Torchvision(model="shufflenet_v2_x0_5", weights="DEFAULT")
    model = train_target(architecture, data, NoDefence(), TrainSettings(epochs=0))
    assert torch.equal(model.body.state_dict()["conv5.0.weight"], checkpoints["conv5.0.weight"])
    for path in tmp_path.glob("*.pth"):
        path.unlink()
    save_target(model, tmp_path / "t.safetensors", name="torchvision", facts={})
    assert torch.equal(load_target(tmp_path / "t.safetensors")(data.images), model(data.images))


def test_without_named_weights_nothing_is_loaded():
    architecture = Torchvision(model="shufflenet_v2_x0_5")
    body, _ = architecture.build(3, (32, 32))
    before = body.state_dict()["conv1.0.weight"].clone()
    architecture.start(body)
    assert torch.equal(body.state_dict()["conv1.0.weight"], before)


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        ("shufflenet_v2_x0_5", "IMAGENET9"),
        ("shufflenet_v2_x0_5", "IMAGENET1K_V2"),  # another model's
        ("vgg16", "IMAGENET1K_FEATURES"),  # not a number where the classifier is
    ],
)
def test_weights_a_model_has_not_are_refused_with_those_it_has(model, weights):
    architecture = Torchvision(model=model, weights=weights)
    with torch.device("meta"), pytest.raises(UnknownNameError, match="Known: DEFAULT, IMAGENET"):
        architecture.build(3, (32, 32))  # before anything is trained
    with pytest.raises(UnknownNameError, match="Known: DEFAULT, IMAGENET1K_V1"):
        architecture.start(torch.nn.Identity())


def size_of(name):
    return models.get_model_weights(name).DEFAULT.meta["num_params"]


def test_a_family_is_offered_whose_smallest_model_can_be_a_target_and_no_other():
    (offered,) = pretrained.offered_models().values()
    families = defaultdict(list)
    for name in models.list_models(module=models):
        families[re.match("[a-z]+", name)[0]].append(name)
    assert len(families) > 15
    for names in families.values():
        try:
            with torch.device("meta"):  # as a campaign is planned
                _, features = Torchvision(model=min(names, key=size_of)).build(3, (224, 224))
        except SettingsError:
            features = 0
        assert (set(names) & set(offered)) == (set(names) if features else set())


def test_the_weights_of_every_model_that_are_offered_know_classes():
    offered = pretrained.offered_weights()
    assert list(offered) == list(pretrained.offered_models()[""])
    for model, names in offered.items():
        first, usual, *others = names
        assert (first, usual) == ("", "DEFAULT")
        for name in (usual, *others):
            entry = models.get_model_weights(model)[name]
            assert len(entry.meta["categories"]) == 1000


def test_broken_weight_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "CHECKPOINTS", tmp_path)
    url = models.ShuffleNet_V2_X0_5_Weights.DEFAULT.url
    (tmp_path / url.rpartition("/")[2]).write_bytes(b"version https://git-lfs")
    architecture = Torchvision(model="shufflenet_v2_x0_5", weights="DEFAULT")
    body, _ = architecture.build(3, (32, 32))
    with pytest.raises(WeightsError, match=r"shufflenetv2_x0\.5"):
        architecture.start(body)
