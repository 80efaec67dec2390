import pytest
import torch
from torchvision.models import resnet50

from semsim.base.errors import SettingsError
from semsim.targets.resnet import ResNet50, ResNet152


def test_resnet50_with_the_original_stem_is_torchvisions():
    theirs = resnet50(weights=None)
    body, features = ResNet50(stem="large").build(3, (64, 64))
    assert features == theirs.fc.in_features
    theirs.fc = torch.nn.Identity()
    shapes = [tuple(p.shape) for p in theirs.parameters()]
    assert [tuple(p.shape) for p in body.parameters()] == shapes
    # Same weights, same features: the layers stand in the same order.
    for ours, other in zip(body.state_dict(), theirs.state_dict(), strict=True):
        body.state_dict()[ours].copy_(theirs.state_dict()[other])
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        gap = (body.eval()(images) - theirs.eval()(images)).abs().max().item()
    assert gap < 1e-4  # float32, summed in another order at most


@pytest.mark.parametrize(("size", "stem_stride"), [((32, 32), 1), ((64, 90), 1), ((65, 70), 2)])
def test_small_images_get_the_small_stem(size, stem_stride):
    body, _ = ResNet50(width=2).build(3, size)
    assert body[0].stride == (stem_stride, stem_stride)
    assert body[0].kernel_size == ((3, 3) if stem_stride == 1 else (7, 7))


def test_stem_can_be_chosen():
    body, _ = ResNet152(width=2, stem="small").build(3, (112, 112))
    assert body[0].stride == (1, 1)
    with pytest.raises(SettingsError, match="'huge'"):
        ResNet50(stem="huge").build(3, (32, 32))


def test_resnet152_has_fifty_blocks():
    body, features = ResNet152(width=2).build(3, (32, 32))
    assert features == 64
    # The stem, three convolutions in each of 50 blocks; the head is the 152nd layer.
    inner = [m for name, m in body.named_modules() if isinstance(m, torch.nn.Conv2d)]
    shortcuts = [name for name, _ in body.named_modules() if name.endswith("shortcut.0")]
    assert len(inner) - len(shortcuts) == 151
