from dataclasses import fields

import pytest
import torch

from semsim.base.errors import SettingsError, UnknownNameError, WeightsError
from semsim.base.registry import build
from semsim.targets import TARGETS
from semsim.targets.chance import target_facts
from semsim.targets.convnet import ConvNet8, SmallCNN
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel, load_target, save_target

# Of the settings that make a network large, as many as it has; narrower ones may be dead.
SMALL = {"width": 8, "growth": 4, "model": "shufflenet_v2_x0_5"}


def model(name, size=(32, 32)):
    small = {
        field.name: SMALL[field.name] for field in fields(TARGETS[name]) if field.name in SMALL
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TargetModel(
            build(TARGETS, name, small),
            ["a", "b", "c"],
            mean=[0.4] * 3,
            std=[0.2] * 3,
            size=size,
        )


@pytest.mark.parametrize("name", TARGETS)
def test_target_gives_logits_and_features(name):
    images = torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    target = model(name).eval()
    features = target.features(images)
    assert target(images).shape == (5, 3)
    assert features.ndim == 2
    assert len(features) == 5
    assert torch.allclose(target(images[:1]), target(images)[:1], atol=1e-5)  # no batch-mates


@pytest.mark.parametrize("name", TARGETS)
def test_an_image_can_be_matched_through_the_gradient_it_gives(name):
    # What an attack needs: the gradient of every weight, differentiable in the image.
    target = model(name).eval()
    image = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = torch.nn.functional.cross_entropy(target(image), torch.tensor([1]))
    shared = torch.autograd.grad(loss, tuple(target.parameters()), create_graph=True)
    assert [g.shape for g in shared] == [p.shape for p in target.parameters()]
    (pull,) = torch.autograd.grad(sum(g.square().sum() for g in shared), image)
    assert pull.isfinite().all()
    assert pull.abs().max() > 0


@pytest.mark.parametrize("name", TARGETS)
def test_target_learns_in_training_mode(name):
    target = model(name, size=(40, 36)).train()
    images = torch.rand(4, 3, 40, 36, generator=torch.Generator().manual_seed(0))
    target(images).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in target.parameters())


@pytest.mark.parametrize("name", TARGETS)
def test_target_survives_saving(name, tmp_path):
    target, path = model(name).eval(), tmp_path / "t.safetensors"
    save_target(target, path, name=name, facts={"accuracy": 0.5})
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    again = load_target(path)
    assert torch.equal(again(images), target(images))
    assert again.classes == ("a", "b", "c")
    assert target_facts(path) == {"accuracy": 0.5}


def test_normalisation_is_inside_the_model():
    target = model("cnn-small").eval()
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(target.features(images), target.body((images - 0.4) / 0.2), atol=1e-6)


def test_full_sizes_are_those_of_the_paper():
    # Kernels counted by hand, layer by layer; biases and batch norm left out.
    def kernels(name):
        body, _ = build(TARGETS, name).build(3, (32, 32))
        return sum(p.numel() for p in body.parameters() if p.ndim == 4)

    stem, nine = 3 * 64 * 9, 9
    stages = (
        6 * 64 * 64 * nine
        + (64 + 5 * 128) * 128 * nine
        + 64 * 128
        + (128 + 5 * 256) * 256 * nine
        + 128 * 256
    )
    assert kernels("resnet20-4") == stem + stages
    plain = 64 * 128 + 128 * 128 + 128 * 256 + 4 * 256 * 256
    assert kernels("convnet8") == stem + plain * nine


def test_unusable_files_are_named(tmp_path):
    with pytest.raises(WeightsError, match=r"none\.safetensors"):
        load_target(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(WeightsError, match=r"bad\.safetensors"):
        load_target(tmp_path / "bad.safetensors")


def test_unknown_activation_lists_the_known():
    with pytest.raises(SettingsError, match=r"must be relu or .* or sigmoid; got 'rolu'"):
        build(TARGETS, "resnet20-4", {"activation": "rolu"})
    with pytest.raises(UnknownNameError, match="relu"):
        CNN4(activation="rolu").build(3, (32, 32))


@pytest.mark.parametrize(("network", "side"), [(ConvNet8(width=2), 8), (SmallCNN(width=2), 3)])
def test_pictures_that_a_network_cannot_take_are_said_to_be_too_small(network, side):
    facts = {"mean": [0.5] * 3, "std": [0.2] * 3}
    told = rf"{type(network).__name__} cannot take pictures of {side}×{side}.*take larger ones"
    with pytest.raises(SettingsError, match=told):
        TargetModel(network, "ab", **facts, size=(side, side))
    TargetModel(network, "ab", **facts, size=(9, 9))


@pytest.mark.parametrize("content", [b"", b"half", b"x" * 500])
def test_a_kept_target_that_is_broken_is_named_where_its_facts_are_read(content, tmp_path):
    path = tmp_path / "kept.safetensors"
    path.write_bytes(content)
    with pytest.raises(
        WeightsError, match=r"kept\.safetensors is not a readable weight file .*\. Delete it, and"
    ):
        target_facts(path)
