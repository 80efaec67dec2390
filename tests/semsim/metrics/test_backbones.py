"""Every network gives the features it promises."""

import sys
from importlib.util import find_spec

import pytest
import torch

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.metrics import BACKBONES
from semsim.metrics.backbones import make_backbone


@pytest.mark.parametrize("small_stem", [True, False])
@pytest.mark.parametrize("name", BACKBONES)
def test_features_have_the_promised_width(name, small_stem):
    body, width = BACKBONES[name](small_stem)
    with torch.no_grad():
        assert body.eval()(torch.rand(2, 3, 32, 32)).shape == (2, width)


@pytest.mark.parametrize("name", BACKBONES)
def test_other_sizes_of_input_work(name):
    body, width = BACKBONES[name](False)
    with torch.no_grad():
        assert body.eval()(torch.rand(1, 3, 64, 64)).shape == (1, width)


def test_the_small_stem_keeps_the_resolution():
    for small_stem, side in ((True, 32), (False, 8)):
        body, _ = BACKBONES["resnet18"](small_stem)
        stem = torch.nn.Sequential(body.conv1, body.bn1, body.relu, body.maxpool)
        assert stem(torch.rand(1, 3, 32, 32)).shape[2:] == (side, side)


@pytest.mark.parametrize("name", ["resnet18", "lenet"])
def test_networks_start_from_scratch(name):
    made = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        made.append(torch.nn.utils.parameters_to_vector(BACKBONES[name](True)[0].parameters()))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def build(name, small_stem=False, side=32):
    torch.manual_seed(0)
    return make_backbone(name, small_stem, side)


@pytest.mark.parametrize(
    ("name", "small_stem", "width"),
    [("resnet34", True, 512), ("squeezenet1_1", False, None), ("mobilenet_v3_small", False, 1024)],
)
def test_torchvisions_classifiers_come_without_their_last_layer(name, small_stem, width):
    if width is None:
        with pytest.raises(SettingsError, match="no linear classifier"):
            build(name)
        return
    body, found = build(name, small_stem)
    assert found == width
    assert body.training
    with torch.no_grad():
        assert body.eval()(torch.rand(2, 3, 32, 32)).shape == (2, width)
    if name == "resnet34":
        assert body.conv1.stride == (1, 1)


def test_a_stem_for_small_images_is_for_resnets():
    with pytest.raises(SettingsError, match="--no-small-stem"):
        build("mobilenet_v3_small", small_stem=True)


def test_a_network_that_needs_larger_images_says_so():
    with pytest.raises(SettingsError, match="cannot take images of 8×8"):
        build("alexnet", side=8)


@pytest.mark.parametrize("name", ["vgg", "Resnet18", "timm", ""])
def test_an_unknown_name_tells_where_names_come_from(name):
    with pytest.raises(UnknownNameError, match="every classifier of torchvision"):
        build(name)


@pytest.mark.parametrize("name", ["timm:hf-hub:somebody/net", "timm:../x", "timm:"])
def test_timm_is_asked_for_plain_names_only(name):
    with pytest.raises(SettingsError, match="plain name"):
        build(name)


def test_timm_makes_networks_where_it_is_installed(tmp_path, monkeypatch):
    (tmp_path / "timm.py").write_text(
        "from torch import nn\n"
        "def create_model(name, *, pretrained, num_classes):\n"
        "    if name != 'tiny' or pretrained or num_classes: raise RuntimeError('unknown model')\n"
        "    return nn.Sequential(nn.Conv2d(3, 5, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.modules.pop("timm", None)
    assert build("timm:tiny")[1] == 5
    with pytest.raises(UnknownNameError, match="unknown model"):
        build("timm:huge")
    sys.modules.pop("timm")
    if before is not None:
        sys.modules["timm"] = before


@pytest.mark.skipif(find_spec("timm") is not None, reason="timm is installed")
def test_timm_that_is_missing_is_told():
    with pytest.raises(SettingsError, match="pip install timm"):
        build("timm:resnet26d")


def test_lenet_needs_more_than_a_few_pixels():
    with pytest.raises(SettingsError, match="'lenet' cannot take images of 8×8"):
        make_backbone("lenet", True, 8)
