"""`semsim.attack` on any classifier, and as a campaign does it."""

import pytest
import torch
from torch import nn

import semsim
from semsim.attacks.as_text import read_attack
from semsim.campaign.cell import attack_images
from semsim.defences.strategies import read_strategy
from semsim.errors import DataError, SettingsError, UnknownNameError
from semsim.images import to_uint8
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel
from semsim.types import LabelledImages

FAST = "invgrad:fast,steps=3"


def image(seed=0):
    return torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(seed))


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(),
        nn.Linear(4 * 7 * 7, 5),
    )  # fmt: skip


def test_any_classifier_gives_a_picture_and_is_left_alone():
    model = network().train().requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = semsim.attack(model, image(), 3, FAST, device="cpu")
    assert found.image.shape == (3, 16, 16)
    assert 0 <= found.image.min() <= found.image.max() <= 1
    assert model.training
    assert model[2].inplace
    assert not any(weight.requires_grad for weight in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_an_attack_finds_the_image_behind_a_linear_layer():
    """Its gradient is the image times a number, so that a good attack has it nearly."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5))
    smooth = nn.functional.interpolate(image()[None, :, :4, :4], 16, mode="bilinear")[0]
    found = semsim.attack(model, smooth, 1, "prior", device="cpu")
    assert found.residual < 0.1 * found.grey_residual
    assert (found.image - smooth).abs().mean() < 0.05


class Attentive(nn.Module):
    """Rows of the picture as a sequence, each looking at all."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(3 * 16, 8)
        self.look = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.last = nn.Linear(8, 5)

    def forward(self, images):
        return self.last(self.look(self.rows(images.transpose(1, 2).flatten(2))).mean(1))


class WithAuxiliaryHead(nn.Module):
    """As an Inception has one, which gives nothing to the logits."""

    def __init__(self):
        super().__init__()
        self.main, self.auxiliary = network(), nn.Linear(3, 5)

    def forward(self, images):
        return self.main(images)


ANY = {
    "attention": Attentive,
    "a hard sigmoid": lambda: nn.Sequential(nn.Hardsigmoid(), *network()),
    "a hard swish": lambda: nn.Sequential(nn.Hardswish(inplace=True), *network()),
    "an idle head": WithAuxiliaryHead,
    "half precision": lambda: network().bfloat16(),
    "double precision": lambda: network().double(),
    "other normalisation of weights": lambda: nn.Sequential(
        nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(3 * 16 * 16, 5))
    ),
}


@pytest.mark.parametrize("attack", [FAST, "invgrad:steps=2", "prior:steps=2", "dlg:steps=2"])
@pytest.mark.parametrize("kind", ANY)
def test_a_classifier_may_have(kind, attack):
    torch.manual_seed(0)
    model = ANY[kind]()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = semsim.attack(model, image(), 3, attack, device="cpu")
    assert found.image.shape == (3, 16, 16)
    assert found.image.isfinite().all()
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(before[name], value) for name, value in after.items())


class Overwriting(nn.Module):
    """Adds to what its in-place activation has overwritten."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.head = nn.Conv2d(3, 4, 16), nn.ReLU(True), nn.Linear(4, 5)

    def forward(self, images):
        features = self.conv(images).flatten(1)
        return self.head(self.relu(features) + features)


def test_a_model_that_a_copy_would_change_is_refused():
    torch.manual_seed(0)
    with pytest.raises(DataError, match="Take inplace=False"):
        semsim.attack(Overwriting(), image(), 3, FAST, device="cpu")


def test_an_idle_head_changes_nothing():
    asked = {"label": 3, "attack": "invgrad:steps=5", "device": "cpu"}
    torch.manual_seed(0)
    whole = WithAuxiliaryHead()
    found, plain = (semsim.attack(one, image(), **asked).image for one in (whole, whole.main))
    assert torch.equal(found, plain)


class OnlyFunctions(nn.Module):
    """Nothing in it to be learned."""

    def forward(self, images):
        return images.flatten(1)[:, :5]


class OutOfReach(Attentive):
    """A function whose slope has no slope, where no layer can be changed for another."""

    def forward(self, images):
        return nn.functional.hardsigmoid(super().forward(images))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (OnlyFunctions(), "no parameter"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(5)), "cannot be copied"),
        (OutOfReach(), "cannot be differentiated twice"),
    ],
    ids=["nothing to learn", "not made yet", "no second derivative"],
)
def test_a_model_that_cannot_be_attacked_is_told(model, why):
    with pytest.raises(DataError, match=why):
        semsim.attack(model, image(), 0, FAST, device="cpu")


def test_it_is_what_a_campaign_computes():
    torch.manual_seed(0)
    target = TargetModel(
        CNN4(width=4), ["a", "b"], mean=[0.5] * 3, std=[0.3] * 3, size=(16, 16)
    ).eval()
    batch = LabelledImages(
        dataset="made",
        classes=("a", "b"),
        ids=("1",),
        images=image()[None],
        labels=torch.tensor([1]),
    )
    (expected,) = attack_images(target, batch, read_strategy("crop-flip"), read_attack(FAST), [7])
    mean, std = ([value] * 3 for value in (0.5, 0.3))
    plain = nn.Sequential(target.body, target.head)
    options = {"defence": "crop-flip", "mean": mean, "std": std, "seed": 7, "device": "cpu"}
    found = semsim.attack(plain, image(), 1, FAST, **options)
    assert (to_uint8(found.image) == expected.picture).all()


def test_the_same_seed_gives_the_same_picture():
    asked = {"attack": "invgrad:steps=2", "device": "cpu"}
    one, same, other = (
        semsim.attack(network(), image(), 0, seed=seed, **asked).image for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"image": image()[None]}, DataError),
        ({"image": image() * 2}, DataError),
        ({"image": torch.rand(3, 9, 9)}, DataError),
        ({"label": 5}, DataError),
        ({"attack": "nonsense"}, UnknownNameError),
        ({"attack": "invgrad:steps=many"}, SettingsError),
        ({"defence": "nonsense"}, UnknownNameError),
    ],
)
def test_what_cannot_be_attacked_is_told(wrong, error):
    asked = {"model": network(), "image": image(), "label": 0, "attack": FAST, "device": "cpu"}
    with pytest.raises(error):
        semsim.attack(**{**asked, **wrong})
